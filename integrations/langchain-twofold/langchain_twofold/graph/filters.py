"""LangGraph's filters as twofold's.

LangGraph compares with ``{"key": value}`` and ``{"key": {"$gt": 1}}``; besides these there are ``$in``, ``$nin``,
``$exists``, ``$contains``, and ``$and``, ``$or``, ``$not`` of whole filters. What no stored value can be, NaN, infinity
or an integer beyond 64 bits, may be compared with all the same.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any, Final

from twofold import F, Filter

__all__ = ["as_filter"]

_KEY: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_ALL: Final = Filter.from_dict({})
_NONE: Final = ~_ALL
_LARGEST: Final = sys.float_info.max
_INT64: Final = range(-(2**63), 2**63)


def as_filter(filter: Mapping[str, Any] | None) -> Filter | None:
    """The filter that ``filter`` spells, or None if there is none.

    A dict is compared key by key, so ``{"a": {"b": 1}}`` fits a value whose ``a`` has more in it. A key with dots names
    what is nested. None is equal to what is missing.

    Raises:
        ValueError: a key or an operator that there is not, or an operand that it cannot compare with.
    """
    return _all_of(filter) if filter else None


def _all_of(filter: object) -> Filter:
    if not isinstance(filter, Mapping):
        raise ValueError(f"a filter is a dict, e.g. {{'kind': 'fact'}}, not {filter!r}")  # noqa: TRY004 - as LangGraph's
    return _joined(and_, [_part(key, value) for key, value in filter.items()], _ALL)


def _joined(join: Callable[[Filter, Filter], Filter], parts: Sequence[Filter], empty: Filter) -> Filter:
    return reduce(join, parts) if parts else empty


def _part(key: object, value: Any) -> Filter:
    if key == "$not":
        return ~_all_of(value)
    if key in ("$and", "$or"):
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{key} takes a list of filters, not {value!r}")
        parts = [_all_of(each) for each in value]
        return _joined(and_, parts, _ALL) if key == "$and" else _joined(or_, parts, _NONE)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(
            f"Invalid filter key: {key!r}; keys are of letters, digits, '_' and '-', with '.' for nested ones"
        )
    return _condition(tuple(key.split(".")), value)


def _condition(path: tuple[str, ...], value: Any) -> Filter:
    if not isinstance(value, Mapping) or not value:
        return _equal(path, value)
    if any(isinstance(name, str) and name.startswith("$") for name in value):
        return _joined(and_, [_compared(path, name, operand) for name, operand in value.items()], _ALL)
    return _joined(and_, [_condition((*path, str(name)), inner) for name, inner in value.items()], _ALL)


@lru_cache(maxsize=1024)  # thousands of filters are about few keys
def _key(path: tuple[str, ...]) -> F:
    return F(path)


def _equal(path: tuple[str, ...], value: Any) -> Filter:
    if value is None:
        return (F(path) == None) | F(path).exists(yes=False)  # noqa: E711 - a filter, not a comparison
    return _key(path) == _plain(value) if _is_storable(value) else _NONE


def _compared(path: tuple[str, ...], operator: object, operand: Any) -> Filter:
    if operator == "$eq":
        return _equal(path, operand)
    if operator == "$ne":
        return ~_equal(path, operand)
    if operator in ("$in", "$nin"):
        if not isinstance(operand, (list, tuple, set, frozenset)):
            raise ValueError(f"{operator} takes a list of values, not {operand!r}")
        among = _joined(or_, [_equal(path, each) for each in operand], _NONE)
        return among if operator == "$in" else ~among
    if operator == "$exists":
        return F(path).exists(operand)
    if operator == "$contains":
        return F(path).contains(operand) if _is_storable(operand) else _NONE
    if operator in _ORDERS:
        return _ordered(path, str(operator), operand)
    known = ("$eq", "$ne", *_ORDERS, "$in", "$nin", "$exists", "$contains")
    raise ValueError(f"Unsupported operator: {operator!r}; there are {', '.join(known)}")


_ORDERS: Final[Mapping[str, Callable[[F, Any], Filter]]] = {
    "$gt": lambda key, operand: key > operand,
    "$gte": lambda key, operand: key >= operand,
    "$lt": lambda key, operand: key < operand,
    "$lte": lambda key, operand: key <= operand,
}


def _ordered(path: tuple[str, ...], operator: str, operand: Any) -> Filter:
    key = F(path)
    if isinstance(operand, bool) or not isinstance(operand, (int, float)):
        return _ORDERS[operator](key, operand) if not isinstance(operand, str) or _is_storable(operand) else _NONE
    if operand != operand:  # noqa: PLR0124 - NaN; math.isnan takes no integer beyond a float's range
        return _NONE
    if isinstance(operand, int) and operand in _INT64:
        return _ORDERS[operator](key, operand)
    if abs(operand) <= _LARGEST:
        return _ORDERS[operator](key, float(operand))
    below_it = operand > 0  # all stored numbers are
    return key.between(-_LARGEST, _LARGEST) if below_it == operator.startswith("$l") else _NONE


def _plain(value: Any) -> Any:
    """A tuple as the list that it is stored as."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _is_storable(value: Any) -> bool:
    """Whether a stored value can be equal to this one."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return isinstance(value, bool) or value in _INT64
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, (list, tuple)):
        return all(map(_is_storable, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_storable(key) and _is_storable(each) for key, each in value.items())
    return value is None
