"""What a condition may compare with: the types of attributes, the checks of operands, and strict equality."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from twofold.errors import InvalidFilterError, InvalidRecordError
from twofold.types.access import Scope
from twofold.types.json import checked_json, checked_text
from twofold.types.record import checked_namespace, checked_time

__all__ = ["ATTRIBUTE_TYPES", "METADATA", "Role", "Typed", "ValueType", "checked_operand", "checked_path", "strict_key"]


class ValueType(Enum):
    """What kind of value a reference leads to."""

    JSON = auto()
    TEXT = auto()
    SCOPE = auto()
    NAMESPACE = auto()
    TAGS = auto()
    NUMBER = auto()
    TIME = auto()


class Role(Enum):
    """What an operand is to its operator."""

    EQUAL = "equality"
    ORDER = "an order"
    ELEMENT = "what it contains"
    PREFIX = "a prefix"
    TEXT = "text"


class Typed(NamedTuple):
    """The type of a reference's value, and whether None may stand for it."""

    type: ValueType
    nullable: bool


METADATA: Final = Typed(ValueType.JSON, nullable=False)
"""Any JSON; its null is a value like others."""

ATTRIBUTE_TYPES: Final[Mapping[str, Typed]] = {
    "id": Typed(ValueType.TEXT, nullable=False),
    "kind": Typed(ValueType.TEXT, nullable=False),
    "scope": Typed(ValueType.SCOPE, nullable=False),
    "owner": Typed(ValueType.TEXT, nullable=True),
    "namespace": Typed(ValueType.NAMESPACE, nullable=False),
    "project": Typed(ValueType.TEXT, nullable=True),
    "source": Typed(ValueType.TEXT, nullable=True),
    "tags": Typed(ValueType.TAGS, nullable=False),
    "importance": Typed(ValueType.NUMBER, nullable=False),
    "strength": Typed(ValueType.NUMBER, nullable=False),
    "access_count": Typed(ValueType.NUMBER, nullable=False),
    "created_at": Typed(ValueType.TIME, nullable=False),
    "updated_at": Typed(ValueType.TIME, nullable=False),
    "last_accessed": Typed(ValueType.TIME, nullable=False),
    "event_at": Typed(ValueType.TIME, nullable=True),
    "valid_from": Typed(ValueType.TIME, nullable=True),
    "valid_to": Typed(ValueType.TIME, nullable=True),
    "expires_at": Typed(ValueType.TIME, nullable=True),
    "archived_at": Typed(ValueType.TIME, nullable=True),
    "superseded_by": Typed(ValueType.TEXT, nullable=True),
    "revision": Typed(ValueType.NUMBER, nullable=False),
}
"""The attributes a filter may name. A nullable one that is not set equals None and does not exist."""

_LONGEST_PATH = 100
"""Metadata does not nest deeper, and SQLite walks a path recursively."""


def checked_path(path: object) -> tuple[str, ...]:
    """The keys that a metadata reference goes through.

    Args:
        path: text, cut at each dot, or a sequence of keys taken as they are.

    Raises:
        InvalidFilterError: no keys, more than 100, or one that JSON cannot hold.
    """
    if isinstance(path, str):
        path = path.split(".")
    if not isinstance(path, Sequence) or not path:
        raise InvalidFilterError(
            f"a metadata key is text or a tuple of texts, e.g. F('lang') or F(('a.b', 'c')): {path!r}"
        )
    if len(path) > _LONGEST_PATH:
        raise InvalidFilterError(f"a metadata key is at most {_LONGEST_PATH} deep, not {len(path)}")
    return tuple(_refused(checked_text, key, "a metadata key") for key in path)


def checked_operand(typed: Typed, role: Role, operator: str, value: object, what: str) -> Any:
    """A copy of ``value`` that the reference's values can be compared with.

    Args:
        typed: what the reference leads to.
        role: what the value is to the operator.
        operator: the operator's name, for the message.
        value: what the user gave.
        what: how the message calls the reference, e.g. ``A.kind``.

    Raises:
        InvalidFilterError: the wrong type, a value that cannot be stored, or an operator that the attribute has no
            meaning for.
    """
    check = _CHECKS[typed.type].get(role)
    if check is None:
        known = ", ".join(role.value for role in _CHECKS[typed.type])
        raise InvalidFilterError(f"{what} cannot be compared by {operator}; it has operators of {known}")
    if value is None and typed.nullable and role is Role.EQUAL:
        return None
    return _refused(check, value, f"the value compared with {what}")


def strict_key(value: Any) -> Hashable:
    """A key that two values share exactly if they are equal with strict types.

    ``True`` is not 1 and ``"1"`` is not 1, but 1 is 1.0; lists and dicts compare by content, dicts in any order.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, (list, tuple)):
        return (list, *map(strict_key, value))
    if isinstance(value, dict):
        return (dict, frozenset((key, strict_key(item)) for key, item in value.items()))
    return value  # type: ignore[no-any-return]  # None, a number or a time


def _refused(check: Callable[[Any, str], Any], value: object, what: str) -> Any:
    """The checks of records, whose refusals are a filter's here."""
    try:
        return check(value, what)
    except InvalidRecordError as error:
        raise InvalidFilterError(str(error)) from None


def _scope(value: object, what: str) -> Scope:
    try:
        return Scope(value)  # type: ignore[arg-type]  # anything else is a ValueError
    except ValueError:
        raise InvalidRecordError(f"{what} is one of {', '.join(Scope)}, not {value!r}") from None


def _namespace(value: object, what: str) -> tuple[str, ...]:
    try:
        return checked_namespace(value)
    except InvalidRecordError as error:
        raise InvalidRecordError(f"{what}: {error}") from None


def _namespace_word(value: object, what: str) -> str:
    return _namespace((value,), what)[0]


def _tags(value: object, what: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidRecordError(
            f"{what} is the whole list of tags, not {value!r}; for single ones write .contains('one') or .any(['one'])"
        )
    return tuple(checked_text(tag, f"a tag of {what}") for tag in value)


def _number(value: object, what: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRecordError(f"{what} is a number, not {type(value).__name__}")
    return checked_json(value, what)  # type: ignore[no-any-return]  # it gives back what it was given


_CHECKS: Final[Mapping[ValueType, Mapping[Role, Callable[[Any, str], Any]]]] = {
    ValueType.JSON: {
        Role.EQUAL: checked_json,
        Role.ORDER: checked_json,
        Role.ELEMENT: checked_json,
        Role.PREFIX: checked_text,
        Role.TEXT: checked_text,
    },
    ValueType.TEXT: dict.fromkeys(Role, checked_text),
    ValueType.SCOPE: {Role.EQUAL: _scope},
    ValueType.NAMESPACE: {Role.EQUAL: _namespace, Role.ELEMENT: _namespace_word, Role.PREFIX: _namespace},
    ValueType.TAGS: {Role.EQUAL: _tags, Role.ELEMENT: checked_text},
    ValueType.NUMBER: {Role.EQUAL: _number, Role.ORDER: _number},
    ValueType.TIME: {Role.EQUAL: checked_time, Role.ORDER: checked_time},
}
"""By type, the operators it has and how their operand is checked."""
