"""How conditions are written: ``F`` for metadata, ``A`` for attributes, and the operators of both."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from twofold.errors import InvalidFilterError
from twofold.filters.nodes import (
    All,
    And,
    Any,
    Between,
    Contains,
    Eq,
    Exists,
    Filter,
    Ge,
    Gt,
    In,
    IsEmpty,
    Le,
    Like,
    Lt,
    Ne,
    NotIn,
    Prefix,
    Target,
    TextMatch,
    TextMatchInsensitive,
)
from twofold.filters.values import ATTRIBUTE_TYPES, METADATA, Typed, checked_path

__all__ = ["A", "Attribute", "F", "Reference"]


class Reference(Target):
    """What a condition is about. Comparing it makes a :class:`Filter`, so it is neither hashable nor comparable."""

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]  # == makes a filter

    def __eq__(self, value: object) -> Eq:  # type: ignore[override]  # a filter, not a verdict
        return Eq(self, value)

    def __ne__(self, value: object) -> Ne:  # type: ignore[override]  # a filter, not a verdict
        return Ne(self, value)

    def __lt__(self, value: object) -> Lt:
        return Lt(self, value)

    def __le__(self, value: object) -> Le:
        return Le(self, value)

    def __gt__(self, value: object) -> Gt:
        return Gt(self, value)

    def __ge__(self, value: object) -> Ge:
        return Ge(self, value)

    def __bool__(self) -> NoReturn:
        raise InvalidFilterError(f"{self!r} is no filter yet: compare it, or write {self!r}.exists()")

    def __contains__(self, value: object) -> NoReturn:
        raise InvalidFilterError(f"write {self!r}.contains(x) instead of: x in {self!r}")

    def in_(self, values: Iterable[object]) -> In:
        """See :class:`In`."""
        return In(self, values)  # type: ignore[arg-type]  # made a tuple of

    def not_in(self, values: Iterable[object]) -> NotIn:
        """See :class:`NotIn`."""
        return NotIn(self, values)  # type: ignore[arg-type]  # made a tuple of

    def between(self, low: object, high: object) -> Between:
        """See :class:`Between`."""
        return Between(self, low, high)

    def exists(self, yes: bool = True) -> Exists:  # noqa: FBT001, FBT002 - .exists(False) is how people write it
        """See :class:`Exists`."""
        return Exists(self, yes)

    def is_empty(self) -> IsEmpty:
        """See :class:`IsEmpty`."""
        return IsEmpty(self)

    def contains(self, value: object) -> Contains:
        """See :class:`Contains`."""
        return Contains(self, value)

    def any(self, values: Iterable[object]) -> Any:
        """See :class:`Any`."""
        return Any(self, values)  # type: ignore[arg-type]  # made a tuple of

    def all(self, values: Iterable[object]) -> All:
        """See :class:`All`."""
        return All(self, values)  # type: ignore[arg-type]  # made a tuple of

    def prefix(self, value: str | Sequence[str]) -> Prefix:
        """See :class:`Prefix`."""
        return Prefix(self, value)

    def like(self, pattern: str) -> Like:
        """See :class:`Like`."""
        return Like(self, pattern)

    def text_match(self, text: str) -> TextMatch:
        """See :class:`TextMatch`."""
        return TextMatch(self, text)

    def text_match_insensitive(self, text: str) -> TextMatchInsensitive:
        """See :class:`TextMatchInsensitive`."""
        return TextMatchInsensitive(self, text)


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class F(Reference):
    """A key of the metadata.

    Args:
        path: ``"lang"``; ``"a.b"`` for b inside the object a; a tuple of keys as they are, dots included. A path goes
            through objects only: in ``"a.0"`` the 0 is a key, no place in a list.

    Raises:
        InvalidFilterError: no keys, more than 100, or one that JSON cannot hold.
    """

    path: tuple[str, ...]
    """The keys, outermost first."""

    def __init__(self, path: str | Sequence[str]) -> None:
        object.__setattr__(self, "path", checked_path(path))

    @property
    def typed(self) -> Typed:
        """What type of value it leads to."""
        return METADATA

    @property
    def key(self) -> Hashable:
        """The path."""
        return self.path

    def __repr__(self) -> str:
        dotted = ".".join(self.path)
        return f"F({dotted!r})" if dotted.split(".") == list(self.path) else f"F({self.path!r})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute(Reference):
    """What twofold itself keeps of a record; ``A.kind`` is ``Attribute("kind")``.

    Raises:
        InvalidFilterError: there is no such attribute.
    """

    name: str
    """Its name."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in ATTRIBUTE_TYPES:
            raise InvalidFilterError(f"no attribute {self.name!r}; there are {', '.join(ATTRIBUTE_TYPES)}")

    @property
    def typed(self) -> Typed:
        """What type of value it leads to."""
        return ATTRIBUTE_TYPES[self.name]

    @property
    def key(self) -> Hashable:
        """The name."""
        return self.name

    @property
    def attribute(self) -> str:
        """The name."""
        return self.name

    def __repr__(self) -> str:
        return f"A.{self.name}"


class _Attributes:
    """All attributes by name: ``A.kind``; an unknown one raises :class:`InvalidFilterError`. Called, it gives the usual
    conditions on several at once.
    """

    id: Final = Attribute("id")
    kind: Final = Attribute("kind")
    scope: Final = Attribute("scope")
    owner: Final = Attribute("owner")
    namespace: Final = Attribute("namespace")
    project: Final = Attribute("project")
    source: Final = Attribute("source")
    tags: Final = Attribute("tags")
    importance: Final = Attribute("importance")
    strength: Final = Attribute("strength")
    access_count: Final = Attribute("access_count")
    created_at: Final = Attribute("created_at")
    updated_at: Final = Attribute("updated_at")
    last_accessed: Final = Attribute("last_accessed")
    event_at: Final = Attribute("event_at")
    valid_from: Final = Attribute("valid_from")
    valid_to: Final = Attribute("valid_to")
    expires_at: Final = Attribute("expires_at")
    archived_at: Final = Attribute("archived_at")
    superseded_by: Final = Attribute("superseded_by")
    revision: Final = Attribute("revision")

    def __call__(
        self,
        *,
        kind: str | Iterable[str] | None = None,
        project: str | Iterable[str] | None = None,
        source: str | Iterable[str] | None = None,
        tags_any: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        importance: tuple[float | None, float | None] | None = None,
        created_at: tuple[datetime | None, datetime | None] | None = None,
        event_at: tuple[datetime | None, datetime | None] | None = None,
    ) -> Filter:
        """All of these conditions, as a filter like any other: ``A(kind="insight", importance=(0.5, None)) & ...``.

        Args:
            kind: this one, or one of these.
            project: this one, or one of these.
            source: this one, or one of these.
            tags_any: at least one of these tags.
            tags_all: each of these tags.
            importance: least and greatest, both included; None for no bound.
            created_at: first and last instant, with a time zone; both included, None for no bound.
            event_at: the same.

        Raises:
            InvalidFilterError: nothing is given, or something that the attribute cannot be.
        """
        found: list[Filter] = []
        for name, value in (("kind", kind), ("project", project), ("source", source)):
            if value is not None:
                about = Attribute(name)
                found.append(about == value if isinstance(value, str) else about.in_(value))
        if tags_any is not None:
            found.append(self.tags.any(tags_any))
        if tags_all is not None:
            found.append(self.tags.all(tags_all))
        for name, ends in (("importance", importance), ("created_at", created_at), ("event_at", event_at)):
            if ends is not None:
                found.append(_within(Attribute(name), ends))
        if not found:
            raise InvalidFilterError(
                "A(...) names at least one condition, e.g. A(kind='insight'); for all records, None"
            )
        return found[0] if len(found) == 1 else And(*found)

    if not TYPE_CHECKING:  # a type checker should see the names above, and no others

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)  # what copy, pickle and inspect ask every object for
            Attribute(name)
            raise AttributeError(name)


A: Final = _Attributes()
"""The attributes: ``A.kind == "insight"``; several at once: ``A(kind="insight", tags_any=["ops"])``."""


def _within(about: Attribute, ends: tuple[object, object]) -> Filter:
    """From one end to the other, as far as they are given."""
    if not isinstance(ends, (tuple, list)) or len(ends) != 2 or (ends[0] is None and ends[1] is None):
        raise InvalidFilterError(
            f"{about.name} is a pair, the least and the greatest, None for no bound: write {about.name}=(low, None)"
        )
    low, high = ends
    if high is None:
        return about >= low
    return about <= high if low is None else about.between(low, high)
