"""What a filter means, in plain Python: the oracle that every backend's compiler is tested against."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Final

from twofold.errors import UnsupportedFilterError
from twofold.filters.expression import Attribute, F
from twofold.filters.nodes import (
    All,
    And,
    Any,
    Between,
    Condition,
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
    Not,
    NotIn,
    Or,
    Prefix,
    Target,
    TextMatch,
    TextMatchInsensitive,
)
from twofold.filters.values import strict_key
from twofold.types.record import Record

__all__ = ["like", "matches"]


class _Missing(Enum):
    MISSING = "missing"


_MISSING: Final = _Missing.MISSING


def matches(filter: Filter, record: Record) -> bool:
    """Whether ``filter`` holds of ``record``.

    Raises:
        UnsupportedFilterError: a node that is not twofold's.
    """
    if isinstance(filter, And):
        return all(matches(part, record) for part in filter.filters)
    if isinstance(filter, Or):
        return any(matches(part, record) for part in filter.filters)
    if isinstance(filter, Not):
        return not matches(filter.filter, record)
    test = _TESTS.get(type(filter))
    if test is None or not isinstance(filter, Condition):
        raise UnsupportedFilterError(f"no filter of twofold's: {filter!r}")
    return test(_value(filter.reference, record), filter)


def like(text: str, pattern: str) -> bool:
    r"""Whether ``text`` as a whole fits a pattern of ``%``, ``_`` and ``\`` (see :class:`~twofold.filters.Like`).

    Takes at most time in proportion to both lengths multiplied, whatever the pattern.
    """
    return _like_regex(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _like_regex(pattern: str) -> re.Pattern[str]:
    pieces = [""]
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        if piece == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if piece == "_" else re.escape(piece[-1])
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *middle, last = pieces
    # The leftmost place of each middle piece is as good as any other: atomic groups never go back on it.
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle if piece) + ".*" + last, re.DOTALL)


def _value(reference: Target, record: Record) -> typing.Any:
    if isinstance(reference, Attribute):
        return getattr(record, reference.name)
    value: typing.Any = record.metadata
    for key in typing.cast("F", reference).path:
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _ordered(value: object, operand: object) -> bool:
    """Whether the two can be told less from greater."""
    return (
        (_is_number(value) and _is_number(operand))
        or (isinstance(value, str) and isinstance(operand, str))
        or (isinstance(value, datetime) and isinstance(operand, datetime))
    )


def _equal(value: typing.Any, node: Eq | Ne) -> bool:
    return value is not _MISSING and strict_key(value) == strict_key(node.value)


def _among(value: typing.Any, node: In | NotIn) -> bool:
    return value is not _MISSING and strict_key(value) in node.keys


def _between(value: typing.Any, node: Between) -> bool:
    return _ordered(value, node.low) and _ordered(value, node.high) and node.low <= value <= node.high


def _exists(value: typing.Any, node: Exists) -> bool:
    there = value is not None if isinstance(node.reference, Attribute) else value is not _MISSING
    return there is node.yes


def _is_empty(value: typing.Any, _node: IsEmpty) -> bool:
    return value is _MISSING or value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


def _contained(value: typing.Any, wanted: tuple[typing.Any, ...]) -> typing.Iterator[bool]:
    """Of each wanted value, whether a list has it or text holds it."""
    if isinstance(value, str):
        return (isinstance(one, str) and one in value for one in wanted)
    elements = set(map(strict_key, value))
    return (strict_key(one) in elements for one in wanted)


def _is_container(value: object) -> bool:
    return isinstance(value, (str, list, tuple))


def _prefix(value: typing.Any, node: Prefix) -> bool:
    if isinstance(node.value, tuple):
        return bool(value[: len(node.value)] == node.value)
    return isinstance(value, str) and value.startswith(node.value)


_TESTS: Final[Mapping[type[Filter], Callable[[typing.Any, typing.Any], bool]]] = {
    Eq: _equal,
    Ne: lambda value, node: not _equal(value, node),
    Lt: lambda value, node: _ordered(value, node.value) and value < node.value,
    Le: lambda value, node: _ordered(value, node.value) and value <= node.value,
    Gt: lambda value, node: _ordered(value, node.value) and value > node.value,
    Ge: lambda value, node: _ordered(value, node.value) and value >= node.value,
    In: _among,
    NotIn: lambda value, node: not _among(value, node),
    Between: _between,
    Exists: _exists,
    IsEmpty: _is_empty,
    Contains: lambda value, node: _is_container(value) and any(_contained(value, (node.value,))),
    Any: lambda value, node: _is_container(value) and any(_contained(value, node.values)),
    All: lambda value, node: _is_container(value) and all(_contained(value, node.values)),
    Prefix: _prefix,
    Like: lambda value, node: isinstance(value, str) and like(value, node.value),
    TextMatch: lambda value, node: isinstance(value, str) and node.value in value,
    TextMatchInsensitive: lambda value, node: isinstance(value, str) and node.value.casefold() in value.casefold(),
}
