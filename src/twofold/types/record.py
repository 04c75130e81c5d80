"""What is stored, and what a caller asks to have stored."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from itertools import repeat
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from twofold.errors import InvalidRecordError
from twofold.types.access import Owner, Scope
from twofold.types.json import checked_json, checked_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "UNSET",
    "Fields",
    "NewRecord",
    "Record",
    "Unset",
    "Vector",
    "Vectors",
    "checked_namespace",
    "checked_time",
    "content_hash",
    "expires_after",
    "stored_record",
]

FieldText: TypeAlias = "str | tuple[str, ...]"
"""A field's text: one string, or several parts, each with a vector of its own."""

Fields: TypeAlias = Mapping[str, FieldText]
"""A record's text by field name."""

Vector: TypeAlias = "Sequence[float] | npt.NDArray[np.floating[Any]]"
"""One embedding: shape (dimension,), finite, not all zero; it need not be of unit length, only its direction counts."""

Vectors: TypeAlias = "Vector | Mapping[str, Vector | Sequence[Vector]]"
"""One embedding for a store with one field, or one (or one a part) by field name."""


class Unset(Enum):
    """The type of :data:`UNSET`."""

    UNSET = "unset"


UNSET: Final[Literal[Unset.UNSET]] = Unset.UNSET
"""Stands for "leave as it is" where None has a meaning of its own."""


def checked_time(value: object, what: str) -> datetime:
    """``value`` in UTC.

    Raises:
        InvalidRecordError: it is no datetime, or a naive one.
    """
    if not isinstance(value, datetime):
        raise InvalidRecordError(f"{what} is a datetime, not {type(value).__name__}")
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidRecordError(f"{what} has no time zone; write datetime.now(UTC), say")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidRecordError(f"{what} is outside of the years 1 to 9999 in UTC") from None


def checked_namespace(value: object) -> tuple[str, ...]:
    """``value`` as a path of words.

    Raises:
        InvalidRecordError: it is no sequence of non-empty texts, or one holds NUL, U+001F or a lone surrogate.
    """
    if type(value) is not tuple and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise InvalidRecordError(f"a namespace is a tuple of words, e.g. ('users', 'u1'), not {value!r}")
    try:
        return _checked_words(tuple(value))
    except TypeError:  # a word that cannot be looked up in a cache is none
        return _checked_words.__wrapped__(tuple(value))


@lru_cache(maxsize=1024)  # thousands of records are in few namespaces
def _checked_words(value: tuple[object, ...]) -> tuple[str, ...]:
    words = tuple(checked_text(word, "a word of a namespace") for word in value)
    if any(not word or "\x1f" in word for word in words):
        raise InvalidRecordError("a word of a namespace is not empty and holds no U+001F")
    return words


def content_hash(fields: Fields) -> str:
    """The SHA-256 of a record's text, as 64 hexadecimal digits; equal text has an equal hash."""
    digest = hashlib.sha256()
    for name, text in fields.items():
        for piece in (name, *((text,) if isinstance(text, str) else (f"\x00{len(text)}", *text))):
            data = piece.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as it is stored. Two records are one and the same if owner, namespace and id are."""

    id: str
    """The caller's, or a UUIDv7; unique per owner and namespace."""
    fields: Fields
    """The text by field name: exactly the names that the store was created with and the record has."""
    kind: str
    """Its type: ``semantic``, ``episodic``, ``procedural``, ``insight`` or a word of the user's."""
    scope: Scope
    """How far it is shared."""
    owner: str | None
    """The user or the room it belongs to; None if global."""
    namespace: tuple[str, ...]
    """A path of words; ``()`` is the root."""
    project: str | None
    """Soft grouping."""
    source: str | None
    """The document it came from."""
    tags: tuple[str, ...]
    """Words to find and filter by."""
    metadata: Mapping[str, Any]
    """The user's own JSON, exactly as given."""
    payload: Any
    """An adapter's own JSON, never filtered or shown."""
    importance: float
    """0 to 1."""
    strength: float
    """Above 0."""
    access_count: int
    """How often it was touched."""
    created_at: datetime
    """UTC; kept when the id is added again."""
    updated_at: datetime
    """UTC; the last change of text or attributes."""
    last_accessed: datetime
    """UTC; restarts the decay clock."""
    event_at: datetime | None
    """UTC; when what it tells of happened."""
    valid_from: datetime | None
    """UTC; not shown before."""
    valid_to: datetime | None
    """UTC; not shown from then on."""
    expires_at: datetime | None
    """UTC; not shown from then on, and may be swept."""
    archived_at: datetime | None
    """UTC; set while it is archived, and so not shown."""
    superseded_by: str | None
    """The id, under the same owner and namespace, of the record that replaces it; set: not shown."""
    content_hash: str
    """See :func:`content_hash`."""
    revision: int
    """1 when added, one more with each change."""

    @property
    def belongs_to(self) -> Owner:
        """Scope and owner as one value."""
        return Owner(self.scope, self.owner)

    def is_living(self, at: datetime) -> bool:
        """Whether calls that do not ask for archived records see it at ``at``.

        It is neither archived nor superseded, ``at`` lies before ``expires_at`` and ``valid_to`` and not before
        ``valid_from``: the plain predicate that every backend must match.
        """
        return (
            self.archived_at is None
            and self.superseded_by is None
            and (self.expires_at is None or at < self.expires_at)
            and (self.valid_from is None or self.valid_from <= at)
            and (self.valid_to is None or at < self.valid_to)
        )

    def was_living(self, at: datetime) -> bool:
        """Whether calls with ``as_of=at`` see it, as things stood then: the plain predicate that every backend must
        match.

        It begins with ``valid_from``, or where that is not set with ``created_at``, and ends with ``valid_to`` (which
        is set when another record takes its place), ``expires_at`` or ``archived_at``. What else it says is of today.
        """
        begins = self.created_at if self.valid_from is None else self.valid_from
        ends = (self.valid_to, self.expires_at, self.archived_at)
        was_replaced_at_no_known_time = self.superseded_by is not None and self.valid_to is None
        return begins <= at and all(end is None or at < end for end in ends) and not was_replaced_at_no_known_time

    @property
    def text(self) -> str:
        """All of its text: fields and parts joined by line ends."""
        return "\n".join(text if isinstance(text, str) else "\n".join(text) for text in self.fields.values())


_ATTRIBUTES: Final = tuple(Record.__dataclass_fields__)


def stored_record(values: Iterable[Any]) -> Record:
    """``Record(...)``, without its names and so at two thirds of the price: a search makes ten.

    Args:
        values: of all attributes, in their order.
    """
    record = object.__new__(Record)
    for _ in map(object.__setattr__, repeat(record), _ATTRIBUTES, values):
        pass
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to be added. Whose it becomes follows from the access that adds it.

    Give ``text`` (for a store with one field) or ``fields``; ``fields={}`` stores a record without text, which
    ``get`` and ``list`` find, and searches by its tags and by the ``vector`` that is given with it (of an image, say).

    Raises:
        InvalidRecordError: a value is outside of its range or cannot be stored as it is.
    """

    text: str | None = None
    """The text of the store's one field. Any characters, NUL and lone surrogates too."""
    fields: Mapping[str, str | Sequence[str]] | None = None
    """The text by field name; a list holds several parts, each with a vector of its own."""
    id: str | None = None
    """Not empty, no NUL. Default: a UUIDv7. An id that is there already is replaced."""
    kind: str = "semantic"
    """Its type, not empty. Default: ``semantic``."""
    scope: Scope | str | None = None
    """Default: personal if the access has a user, else room if it has one, else global."""
    room: str | None = None
    """Which of the access's rooms, for scope ``room``."""
    namespace: tuple[str, ...] = ()
    """A path of words. Default: the root."""
    project: str | None = None
    """Soft grouping. Default: none."""
    source: str | None = None
    """The document it comes from. Default: none."""
    tags: tuple[str, ...] = ()
    """Words to find and filter by; searched like text. Default: none."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON that comes back exactly; no NUL, lone surrogate, NaN or integer beyond 64 bits. Default: ``{}``."""
    payload: Any = None
    """An adapter's own JSON. Default: None."""
    importance: float = 0.5
    """0 to 1. Default: 0.5."""
    strength: float = 1.0
    """Above 0, finite. Default: 1."""
    created_at: datetime | None = None
    """With a time zone. Default: now; ignored where the id is there already."""
    event_at: datetime | None = None
    """With a time zone. Default: none."""
    valid_from: datetime | None = None
    """With a time zone. Default: always."""
    valid_to: datetime | None = None
    """With a time zone. Default: for ever."""
    expires_at: datetime | None = None
    """With a time zone. Default: never."""
    ttl: timedelta | float | None = None
    """How long it is kept from when it is stored, or how many seconds, instead of ``expires_at``; above 0. Default: for
    ever."""
    vector: Vectors | None = None
    """Ready embeddings, of any of the store's fields, also of those that have no text. Default: the store's embedder
    makes them."""

    def __post_init__(self) -> None:
        if (self.text is None) == (self.fields is None):
            raise InvalidRecordError("give either text=... or fields={name: text, ...}")
        if self.text is not None and not isinstance(self.text, str):
            hint = "; for several records use add_many([...])" if isinstance(self.text, (list, tuple)) else ""
            raise InvalidRecordError(f"text is text, not {type(self.text).__name__}{hint}")
        set_ = object.__setattr__
        if self.fields is not None:
            set_(self, "fields", _checked_fields(self.fields))
        for value, (name, default, checked) in zip(_CHECKED(self), _CHECKS, strict=True):
            if value is not default:  # most records leave most of it unset
                set_(self, name, checked(value, name))
        if self.ttl is not None and self.expires_at is not None:
            raise InvalidRecordError("give either expires_at=... or ttl=...")

    @classmethod
    def from_value(cls, value: NewRecord | Record | Mapping[str, Any] | str) -> NewRecord:
        """A record to be added, from any of the forms that ``add_many`` takes.

        A stored :class:`Record` keeps id, text, attributes and times; a dict has the names of this class.

        Raises:
            InvalidRecordError: an unknown name in a dict, or another type.
        """
        if isinstance(value, NewRecord):
            return value
        if isinstance(value, str):
            return cls(text=value)
        if isinstance(value, Record):
            return cls._from_record(value)
        if isinstance(value, Mapping):
            unknown = sorted(str(name) for name in value if name not in cls.__dataclass_fields__)
            if unknown:
                raise InvalidRecordError(
                    f"unknown names in a record: {', '.join(unknown)}; known: {', '.join(cls.__dataclass_fields__)}"
                )
            return cls(**value)
        raise InvalidRecordError(f"a record is text, a dict, a NewRecord or a Record, not {type(value).__name__}")

    @classmethod
    def _from_record(cls, record: Record) -> NewRecord:
        return cls(
            fields=record.fields,
            id=record.id,
            kind=record.kind,
            scope=record.scope,
            room=record.owner if record.scope is Scope.ROOM else None,
            namespace=record.namespace,
            project=record.project,
            source=record.source,
            tags=record.tags,
            metadata=record.metadata,
            payload=record.payload,
            importance=record.importance,
            strength=record.strength,
            created_at=record.created_at,
            event_at=record.event_at,
            valid_from=record.valid_from,
            valid_to=record.valid_to,
            expires_at=record.expires_at,
        )


def _checked_fields(fields: object) -> Fields:
    if not isinstance(fields, (dict, Mapping)):  # a dict is told from what is none many times quicker
        raise InvalidRecordError(f"fields is a dict, not {type(fields).__name__}")
    return {checked_text(name, "a field's name"): _field_text(name, text) for name, text in fields.items()}


def _field_text(name: object, text: object) -> FieldText:
    if isinstance(text, str):
        return text
    if isinstance(text, (tuple, Sequence)) and all(isinstance(part, str) for part in text):
        return tuple(text)
    raise InvalidRecordError(f"field {name!r} is text or a list of texts")


def _checked_word(value: object, what: str) -> str:
    if word := checked_text(value, what):
        return word
    raise InvalidRecordError(f"{what} is not empty")


def _checked_tags(value: object, what: str) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InvalidRecordError(f"{what} is a tuple of words: write {what}=('one', 'two')")
    return tuple(dict.fromkeys(checked_text(tag, "a tag") for tag in value))


def _checked_metadata(value: object, what: str) -> Any:
    if not isinstance(value, (dict, Mapping)):
        raise InvalidRecordError(f"{what} is a dict, not {type(value).__name__}")
    return checked_json(value if isinstance(value, dict) else dict(value), what) if value else {}


def _checked_number(value: object, what: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidRecordError(f"{what} is a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an integer that no float is large enough for
        number = math.inf
    if not (math.isfinite(number) and least <= number <= most):
        limits = f"from {least:g} to {most:g}" if math.isfinite(most) else "finite and above 0"
        raise InvalidRecordError(f"{what} is {limits}, not {number}")
    return number


def expires_after(ttl: object, now: datetime) -> datetime:
    """When what is stored now expires.

    Raises:
        InvalidRecordError: ``ttl`` is no timedelta above 0, or reaches beyond the year 9999.
    """
    try:
        return now + _checked_ttl(ttl, "ttl")
    except OverflowError:
        raise InvalidRecordError("ttl reaches beyond the year 9999: leave it out for what never expires") from None


def _checked_ttl(value: object, what: str) -> timedelta:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (OverflowError, ValueError):  # infinite, or not a number
            raise InvalidRecordError(f"{what} is a number of seconds that there is a time for, not {value}") from None
    if not isinstance(value, timedelta) or value <= timedelta(0):
        raise InvalidRecordError(f"{what} is above 0, as timedelta(days=30) or in seconds, not {value!r}")
    return value


def _checked_importance(value: object, what: str) -> float:
    return _checked_number(value, what, 0.0, 1.0)


def _checked_strength(value: object, what: str) -> float:
    return _checked_number(value, what, math.ulp(0.0), math.inf)


_CHECKS: Final[tuple[tuple[str, object, Callable[[Any, str], object]], ...]] = tuple(
    (name, NewRecord.__dataclass_fields__[name].default, checked)
    for name, checked in {
        "id": _checked_word,
        "kind": _checked_word,
        "project": checked_text,
        "source": checked_text,
        "namespace": lambda value, _: checked_namespace(value),
        "tags": _checked_tags,
        "metadata": _checked_metadata,
        "payload": checked_json,
        "importance": _checked_importance,
        "strength": _checked_strength,
        "ttl": _checked_ttl,
        **dict.fromkeys(("created_at", "event_at", "valid_from", "valid_to", "expires_at"), checked_time),
    }.items()
)
"""By name, the default, which needs no check, and the check of everything else."""

_CHECKED: Final[Callable[[NewRecord], tuple[object, ...]]] = attrgetter(*(name for name, _, _ in _CHECKS))
"""The values of what :data:`_CHECKS` names."""
