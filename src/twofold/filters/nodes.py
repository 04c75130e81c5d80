"""The tree itself: conditions, and how they combine.

Every node is frozen, checked when it is made, hashable and compared by value with strict types, so that a filter can be
the key of a cache. Lists and dicts given as operands are copied; do not change the copies.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, NoReturn

from twofold.errors import InvalidFilterError
from twofold.filters.values import Role, Typed, checked_operand, strict_key

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "All",
    "And",
    "Any",
    "Between",
    "Condition",
    "Contains",
    "Eq",
    "Exists",
    "Filter",
    "Ge",
    "Gt",
    "In",
    "IsEmpty",
    "Le",
    "Like",
    "Lt",
    "Ne",
    "Not",
    "NotIn",
    "Or",
    "Prefix",
    "Target",
    "TextMatch",
    "TextMatchInsensitive",
]

MAX_DEPTH: Final = 40
"""How deep And, Or and Not may nest; SQLite before 3.47 parses no more than about 70 open brackets."""

MAX_NODES: Final = 1000
"""How many conditions and connectives one filter holds: their parameters stay far below SQLite's limit."""


class Filter:
    """Says of each record whether it is wanted. Combine with ``&``, ``|`` and ``~``, not ``and``, ``or``, ``not``."""

    depth: int = 1
    """How deep it nests; a single condition is 1."""
    size: int = 1
    """How many nodes it has."""

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes it mentions; metadata is not among them."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, typing.Any]:
        """Its dict spelling, which JSON can hold and :meth:`from_dict` turns back into an equal filter."""
        from twofold.filters.spelling import to_dict  # noqa: PLC0415 - the spelling is made of these nodes

        return to_dict(self)

    @classmethod
    def from_dict(cls, spelled: Mapping[str, typing.Any]) -> Filter:
        """The filter that a Mongo-like dict spells; see :mod:`twofold.filters.spelling`.

        Raises:
            InvalidFilterError: the dict is malformed or an operand cannot be used.
            UnsupportedFilterError: an operator that does not exist.
        """
        from twofold.filters.spelling import from_dict  # noqa: PLC0415 - the spelling is made of these nodes

        return from_dict(spelled)

    def __and__(self, other: Filter) -> And:
        return And(*_operands(And, self), *_operands(And, other))

    def __or__(self, other: Filter) -> Or:
        return Or(*_operands(Or, self), *_operands(Or, other))

    def __invert__(self) -> Not:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidFilterError(
            "a filter is neither true nor false: combine with & | ~ (each side in brackets) instead of and, or, not; "
            "write .between(lo, hi) instead of lo <= x <= hi; ask 'is None' instead of 'if where'"
        )

    @cached_property
    def key(self) -> Hashable:
        """What equality and hash go by: strict about types, as the filter itself is."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Filter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def _operands(connective: type[_Connective], filter: object) -> tuple[Filter, ...]:
    """What ``a & b & c`` joins: three conditions side by side, not one inside another."""
    if isinstance(filter, connective):
        return filter.filters
    return (typing.cast("Filter", filter),)  # what is none is refused by the connective


@dataclass(frozen=True, eq=False, init=False)
class _Connective(Filter):
    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter) -> None:
        for part in filters:
            if not isinstance(part, Filter):
                raise InvalidFilterError(f"{type(self).__name__} joins filters, not {part!r}; see Filter.from_dict")
        set_ = object.__setattr__
        set_(self, "filters", filters)
        set_(self, "depth", 1 + max((part.depth for part in filters), default=0))
        set_(self, "size", 1 + sum(part.size for part in filters))
        if self.depth > MAX_DEPTH:
            raise InvalidFilterError(
                f"a filter nests at most {MAX_DEPTH} deep; join with And(...) and Or(...) side by side"
            )
        if self.size > MAX_NODES:
            raise InvalidFilterError(f"a filter has at most {MAX_NODES} conditions; for many values write .in_([...])")

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset().union(*(part.attributes for part in self.filters))

    @cached_property
    def key(self) -> Hashable:
        return (type(self), *(part.key for part in self.filters))


class And(_Connective):
    """All of ``filters`` hold; without any, true of every record."""


class Or(_Connective):
    """At least one of ``filters`` holds; without any, true of no record."""


class Not(_Connective):
    """Its filter does not hold, which includes that what it asks for is missing."""

    def __init__(self, filter: Filter) -> None:
        super().__init__(filter)

    @property
    def filter(self) -> Filter:
        """What must not hold."""
        return self.filters[0]


class Target:
    """What a condition is about: a key of the metadata or an attribute."""

    __slots__ = ()

    @property
    def typed(self) -> Typed:
        """What type of value it leads to."""
        raise NotImplementedError

    @property
    def key(self) -> Hashable:
        """The same for two references to one thing."""
        raise NotImplementedError

    @property
    def attribute(self) -> str | None:
        """The attribute's name; None for metadata."""
        return None


@dataclass(frozen=True, eq=False)
class Condition(Filter):
    """A filter about one reference."""

    operator: ClassVar[str]
    """Its name in the dict spelling."""
    role: ClassVar[Role]
    """What its operand is to it."""
    reference: Target
    """What it is about."""

    def __post_init__(self) -> None:
        if not isinstance(self.reference, Target):
            raise InvalidFilterError(f"a condition is about F(...) or A.name, not {self.reference!r}")

    @property
    def attributes(self) -> frozenset[str]:
        """The attribute's name, if it is about one."""
        return frozenset(() if self.reference.attribute is None else (self.reference.attribute,))

    def _checked(self, value: object) -> typing.Any:
        if isinstance(value, (Target, Filter)):
            raise InvalidFilterError(f"{self.reference!r} is compared with values, not with {value!r}")
        return checked_operand(self.reference.typed, self.role, self.operator, value, repr(self.reference))

    @cached_property
    def key(self) -> Hashable:
        """Operator, reference and operand."""
        return (type(self), self.reference.attribute, self.reference.key, self._operand_key)

    @property
    def _operand_key(self) -> Hashable:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _Single(Condition):
    value: typing.Any
    """The operand."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "value", self._checked(self.value))

    @property
    def _operand_key(self) -> Hashable:
        return strict_key(self.value)


@dataclass(frozen=True, eq=False)
class _Several(Condition):
    values: tuple[typing.Any, ...]
    """The operands."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.values, (str, bytes, Mapping)) or not isinstance(self.values, Iterable):
            raise InvalidFilterError(f"{self.operator} takes a list of values, not {self.values!r}")
        object.__setattr__(self, "values", tuple(self._checked(value) for value in self.values))

    @cached_property
    def keys(self) -> frozenset[Hashable]:
        """The strict keys of the values, for fast membership."""
        return frozenset(map(strict_key, self.values))

    @property
    def _operand_key(self) -> Hashable:
        return strict_key(self.values)


class Eq(_Single):
    """The value equals, with strict types; lists and dicts compare deeply, dicts in any order.

    ``F("x") == None`` is true of an explicit null only, not of a missing key (that is ``~F("x").exists()``);
    ``A.project == None`` of an attribute that is not set.
    """

    operator = "$eq"
    role = Role.EQUAL


class Ne(_Single):
    """Not :class:`Eq`; true where the key is missing."""

    operator = "$ne"
    role = Role.EQUAL


class Lt(_Single):
    """Less than: number with number, text with text (by code point), time with time; anything else is false.

    A bool is no number.
    """

    operator = "$lt"
    role = Role.ORDER


class Le(_Single):
    """Less or equal; see :class:`Lt`."""

    operator = "$lte"
    role = Role.ORDER


class Gt(_Single):
    """Greater than; see :class:`Lt`."""

    operator = "$gt"
    role = Role.ORDER


class Ge(_Single):
    """Greater or equal; see :class:`Lt`."""

    operator = "$gte"
    role = Role.ORDER


class In(_Several):
    """The value equals one of ``values``, each as in :class:`Eq`. There may be any number of them."""

    operator = "$in"
    role = Role.EQUAL


class NotIn(_Several):
    """Not :class:`In`; true where the key is missing."""

    operator = "$nin"
    role = Role.EQUAL


@dataclass(frozen=True, eq=False)
class Between(Condition):
    """``low <= value <= high``, both ends included; see :class:`Lt`."""

    operator = "$between"
    role = Role.ORDER
    low: typing.Any
    """The least value."""
    high: typing.Any
    """The greatest value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "low", self._checked(self.low))
        object.__setattr__(self, "high", self._checked(self.high))

    @property
    def _operand_key(self) -> Hashable:
        return strict_key((self.low, self.high))


@dataclass(frozen=True, eq=False)
class Exists(Condition):
    """The key is there, with whatever value, null too; the attribute is set. ``yes=False`` asks for the contrary."""

    operator = "$exists"
    yes: bool = True
    """Whether it must exist. Default: True."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.yes, bool):
            raise InvalidFilterError(f"{self.operator} takes True or False, not {self.yes!r}")

    @property
    def _operand_key(self) -> Hashable:
        return self.yes


@dataclass(frozen=True, eq=False)
class IsEmpty(Condition):
    """The value is missing, null, ``""``, ``[]`` or ``{}``."""

    operator = "$empty"

    @property
    def _operand_key(self) -> Hashable:
        return None


class Contains(_Single):
    """A list has an element that equals ``value``, text has it as a substring; anything else is false.

    ``A.tags`` is a list of tags, ``A.namespace`` of words.
    """

    operator = "$contains"
    role = Role.ELEMENT


class Any(_Several):
    """:class:`Contains` is true of at least one of ``values``."""

    operator = "$any"
    role = Role.ELEMENT


class All(_Several):
    """A list or text of which :class:`Contains` is true for each of ``values``; without values, any list or text."""

    operator = "$all"
    role = Role.ELEMENT


class Prefix(_Single):
    """Text that starts with ``value``, case-sensitive. ``A.namespace``: by whole words, given as a tuple."""

    operator = "$prefix"
    role = Role.PREFIX


class Like(_Single):
    r"""Text that fits a pattern as a whole: ``%`` is any text, ``_`` one code point, ``\`` makes the next one literal.

    Case-sensitive, as in standard SQL (SQLite's own LIKE is not).

    Raises:
        InvalidFilterError: the pattern ends in a single backslash.
    """

    operator = "$like"
    role = Role.TEXT

    def __post_init__(self) -> None:
        super().__post_init__()
        if (len(self.value) - len(self.value.rstrip("\\"))) % 2:
            raise InvalidFilterError(
                f"the pattern {self.value!r} ends in a lone backslash; write two for a literal one"
            )


class TextMatch(_Single):
    """Text that has ``value`` as a substring, case-sensitive."""

    operator = "$text_match"
    role = Role.TEXT


class TextMatchInsensitive(_Single):
    """Text that has ``value`` as a substring after Unicode case folding of both."""

    operator = "$text_match_insensitive"
    role = Role.TEXT
