"""Filters as SQL on the table ``records``: each becomes one expression that is 0 or 1, never NULL.

Keys and values are bound, never written into the text. How it is kept exactly as strict as
:func:`twofold.filters.matches`:

* Every comparison with metadata first asks ``json_type``, so that ``true`` is not 1 and ``["a"]`` not ``'["a"]'``.
* Floats inside JSON are read by Python (``twofold_real``): SQLite from 3.43 on, and any on a machine without long
  doubles, may be off by one unit in the last place. Integers, and comparing the two, are exact in SQLite.
* A key with a quote, a backslash or a control character cannot be written in a JSON path of SQLite 3.40. Such a path
  is walked by Python (``twofold_json_get``), which gives the value back as JSON text, so that floats stay exact.
* Lists and dicts are compared by Python: no canonical text of theirs says that 1 is 1.0.
* A list of values is one bound JSON list, however long it is.

Every connection that runs these expressions has :data:`FUNCTIONS` registered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, cast

from twofold import filters as ft
from twofold.backends.sqlite.filter_functions import FUNCTIONS
from twofold.backends.sqlite.schema import SCOPE_CODES
from twofold.errors import UnsupportedFilterError
from twofold.filters.expression import Attribute
from twofold.filters.nodes import Condition
from twofold.filters.values import ValueType
from twofold.types.json import dump_json

__all__ = ["FUNCTIONS", "compile_filter"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SEPARATOR: Final = "\x1f"
_CHAIN: Final = 100
"""How many conditions stand side by side without brackets; SQLite's limit is a depth of 1,000."""

_HOSTILE: Final = re.compile(r'["\\\x00-\x1f]')
"""What a key in a JSON path cannot hold."""

_PLAIN: Final = 1e15
"""Below it whole numbers are written in digits alone, and floats are those digits and ``.0``."""

_COMPARISONS: Final[Mapping[type[ft.Filter], str]] = {ft.Lt: "<", ft.Le: "<=", ft.Gt: ">", ft.Ge: ">="}


class _Sql(NamedTuple):
    """An expression, and what its question marks stand for in their order."""

    text: str
    values: Sequence[object] = ()


_Cases: TypeAlias = Mapping[str, _Sql]
"""What to ask of a value, by its JSON type."""

_TRUE: Final = _Sql("1")
_FALSE: Final = _Sql("0")


def compile_filter(filter: ft.Filter, alias: str = "r") -> tuple[str, list[object]]:
    """The filter as a boolean SQL expression.

    Args:
        filter: what to ask of each row.
        alias: the name that ``records`` has in the statement; written into the text as it is.

    Returns:
        The expression, which is 0 or 1 and can stand beside ``AND`` without brackets, and the values that its question
        marks stand for. There are at most a few for each condition, however many values an ``In`` has.

    Raises:
        UnsupportedFilterError: a node that is not twofold's.
    """
    text, values = _filter(filter, alias)
    return f"({text})", list(values)


def _filter(filter: ft.Filter, alias: str) -> _Sql:
    if isinstance(filter, ft.And):
        return _joined(filter.filters, " AND ", _TRUE, alias)
    if isinstance(filter, ft.Or):
        return _joined(filter.filters, " OR ", _FALSE, alias)
    if isinstance(filter, ft.Not):
        return _negated(_filter(filter.filter, alias))
    if isinstance(filter, ft.Ne):
        return _negated(_filter(ft.Eq(filter.reference, filter.value), alias))
    if isinstance(filter, ft.NotIn):
        return _negated(_filter(ft.In(filter.reference, filter.values), alias))
    if isinstance(filter, ft.Between):
        ends = (ft.Ge(filter.reference, filter.low), ft.Le(filter.reference, filter.high))
        return _joined(ends, " AND ", _TRUE, alias)
    if not isinstance(filter, Condition):
        raise UnsupportedFilterError(f"no filter of twofold's: {filter!r}")
    if isinstance(filter.reference, Attribute):
        return _attribute(filter, filter.reference, alias)
    return _metadata(filter, _place(cast("ft.F", filter.reference).path, alias))


def _joined(filters: Sequence[ft.Filter], connective: str, empty: _Sql, alias: str) -> _Sql:
    """Conditions side by side.

    The largest comes first, because an opening bracket costs SQLite's parser (a stack of 100 before 3.47) least at the
    start of an expression.
    """
    largest_first = sorted(filters, key=lambda part: part.size, reverse=True)
    return _chain([_filter(part, alias) for part in largest_first], connective, empty)


def _chain(parts: Sequence[_Sql], connective: str, empty: _Sql) -> _Sql:
    if len(parts) <= 1:
        return parts[0] if parts else empty
    if len(parts) > _CHAIN:
        groups = [parts[start : start + _CHAIN] for start in range(0, len(parts), _CHAIN)]
        return _chain([_chain(group, connective, empty) for group in groups], connective, empty)
    return _Sql(connective.join(f"({text})" for text, _ in parts), [value for part in parts for value in part.values])


def _negated(part: _Sql) -> _Sql:
    return _Sql(f"({part.text}) = 0", part.values)  # costs the parser less than NOT (...)


# --- metadata ---------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where in the metadata a value is: SQL that needs ``values`` bound each time it is written."""

    stored: str
    """The metadata as it is stored; nothing is bound in it."""
    key: str
    """The last key of the path with its colon, as JSON."""
    type: str
    """Its JSON type, NULL if it is missing."""
    value: str
    """Its SQL value."""
    json: str
    """It as JSON text."""
    values: tuple[object, ...]
    """What the question marks of each of the three stand for."""


@lru_cache(maxsize=1024)  # filters differ in their values far more often than in what they ask of
def _place(path: tuple[str, ...], alias: str) -> _Place:
    document = stored = f"{alias}.metadata"
    values: tuple[object, ...] = ("$" + "".join(f'."{key}"' for key in path),)
    if any(_HOSTILE.search(key) for key in path):
        document, values = f"twofold_json_get({document}, ?)", (dump_json(list(path)), "$")
    key = f"{dump_json(path[-1])}:"
    return _Place(
        stored, key, f"json_type({document}, ?)", f"json_extract({document}, ?)", f"({document} -> ?)", values
    )


def _by_type(place: _Place, cases: _Cases) -> _Sql:
    """The case of the value's JSON type, else false."""
    if not cases:
        return _FALSE
    whens = "".join(f" WHEN '{type_}' THEN {case.text}" for type_, case in cases.items())
    return _Sql(
        f"CASE {place.type}{whens} ELSE 0 END",
        [*place.values, *(value for case in cases.values() for value in case.values)],
    )


def _metadata(condition: Condition, place: _Place) -> _Sql:
    comparison = _COMPARISONS.get(type(condition))
    if comparison is not None:
        return _by_type(place, _ordered(place, comparison, condition.value))  # type: ignore[attr-defined]  # these have
    match condition:
        case ft.Eq(_, value):
            return _spelled(place, value, _by_type(place, _equal(place, (value,))))
        case ft.In(_, values):
            return _by_type(place, _equal(place, values))
        case ft.Exists(_, yes):
            return _Sql(f"{place.type} IS {'NOT ' if yes else ''}NULL", place.values)
        case ft.IsEmpty():
            return _metadata_empty(place)
        case ft.Contains(_, value):
            return _by_type(place, _containing(place, (value,), every=True))
        case ft.Any(_, values):
            return _by_type(place, _containing(place, values, every=False))
        case ft.All(_, values):
            return _by_type(place, _containing(place, values, every=True))
    return _by_type(place, {"text": _text_test(condition, _Sql(place.value, place.values))})


def _spelled(place: _Place, operand: Any, test: _Sql) -> _Sql:
    """``test``, made only where the metadata's text, which :func:`twofold.types.json.dump_json` has written, holds the
    key with what a value equal to ``operand`` begins with: to look for that is many times quicker than to parse.
    """
    begins = dump_json(operand)
    if isinstance(operand, (list, dict)):
        begins = begins[0]
    elif isinstance(operand, (int, float)) and not isinstance(operand, bool):
        if not 0 < abs(operand) < _PLAIN:  # 0 is -0.0 too, and how a large number is written depends on its type
            begins = ""
        elif operand == int(operand):  # 1 is 1.0, which begins with it
            begins = str(int(operand))
    return _Sql(f"instr({place.stored}, ?) > 0 AND {test.text}", (f"{place.key}{begins}", *test.values))


def _ordered(place: _Place, comparison: str, operand: object) -> _Cases:
    if isinstance(operand, str):
        return {"text": _Sql(f"{place.value} {comparison} ?", (*place.values, operand))}
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return {
            "integer": _Sql(f"{place.value} {comparison} ?", (*place.values, operand)),
            "real": _Sql(f"twofold_real({place.json}) {comparison} ?", (*place.values, operand)),
        }
    return {}  # nothing is less or greater than null, a bool, a list or a dict


def _equal(place: _Place, operands: Sequence[Any]) -> _Cases:
    """By JSON type, equality with one of the operands."""
    by_type: dict[str, list[Any]] = {}
    for operand in operands:
        by_type.setdefault(_json_type(operand), []).append(operand)
    cases: dict[str, _Sql] = {}
    for type_, those in by_type.items():
        if type_ == "text":
            cases[type_] = _among(_Sql(place.value, place.values), those)
        elif type_ == "number":
            cases["integer"] = _among(_Sql(place.value, place.values), those)
            cases["real"] = _among(_Sql(f"twofold_real({place.json})", place.values), those)
        elif type_ in ("array", "object"):
            cases[type_] = _Sql(f"twofold_json_in({place.json}, ?)", (*place.values, dump_json(those)))
        else:
            cases[type_] = _TRUE
    return cases


def _json_type(operand: Any) -> str:
    """What SQLite's ``json_type`` says of it; of both kinds of numbers ``number``."""
    if isinstance(operand, str):
        return "text"
    if operand is None:
        return "null"
    if isinstance(operand, bool):
        return "true" if operand else "false"
    if isinstance(operand, (int, float)):
        return "number"
    return "array" if isinstance(operand, list) else "object"


def _among(expression: _Sql, operands: Sequence[Any]) -> _Sql:
    """Whether the expression, which is not NULL, equals one of some texts or of some numbers."""
    if not operands:
        return _FALSE
    if len(operands) == 1:
        return _Sql(f"{expression.text} = ?", (*expression.values, operands[0]))
    exact = [operand for operand in operands if not isinstance(operand, float)]
    floats = [repr(operand) for operand in operands if isinstance(operand, float)]
    lists, values = [], list(expression.values)
    if exact:
        lists.append("SELECT value FROM json_each(?)")
        values.append(dump_json(exact))
    if floats:
        lists.append("SELECT twofold_real(value) FROM json_each(?)")
        values.append(dump_json(floats))
    return _Sql(f"{expression.text} IN ({' UNION ALL '.join(lists)})", values)


def _metadata_empty(place: _Place) -> _Sql:
    no_elements = f"NOT EXISTS (SELECT 1 FROM json_each({place.json}))"  # noqa: S608 - made of our own words
    return _Sql(
        f"CASE coalesce({place.type}, 'null') WHEN 'null' THEN 1 WHEN 'text' THEN {place.value} = ''"
        f" WHEN 'array' THEN {no_elements} WHEN 'object' THEN {no_elements} ELSE 0 END",
        place.values * 4,
    )


def _containing(place: _Place, wanted: Sequence[Any], *, every: bool) -> _Cases:
    """By JSON type, whether a list or a text has all of the wanted values, or any."""
    cases = {"array": _list_test(_Sql(place.json, place.values), wanted, every=every)}
    texts = [value for value in wanted if isinstance(value, str)]
    if not every or len(texts) == len(wanted):
        cases["text"] = _substrings(_Sql(place.value, place.values), texts, every=every)
    return cases


# --- attributes -------------------------------------------------------------------------------------------------------


def _attribute(condition: Condition, attribute: Attribute, alias: str) -> _Sql:
    """A condition on a column; where it is NULL the answer is false."""
    type_, nullable = attribute.typed
    column = f"{alias}.{attribute.name}"
    if isinstance(condition, ft.Prefix) and isinstance(condition.value, tuple):
        return _namespace_prefix(column, condition.value)
    if attribute.name == "owner":
        column = f"nullif({column}, '')"
    match condition:
        case ft.Exists(_, yes):
            there = f"{column} IS NOT NULL" if nullable else "1"
            return _Sql(there if yes else f"({there}) = 0")
        case ft.IsEmpty():
            return _attribute_empty(column, type_, nullable=nullable)
        case ft.Eq(_, None):
            return _Sql(f"{column} IS NULL")
        case ft.In(_, values) if None in values:
            others = ft.In(attribute, tuple(value for value in values if value is not None))
            return _chain([_Sql(f"{column} IS NULL"), _attribute(others, attribute, alias)], " OR ", _FALSE)
    test = _column_test(condition, column, type_)
    return _chain([_Sql(f"{column} IS NOT NULL"), test], " AND ", _TRUE) if nullable else test


def _column_test(condition: Condition, column: str, type_: ValueType) -> _Sql:
    """A condition on a column that is not NULL."""
    comparison = _COMPARISONS.get(type(condition))
    if comparison is not None:
        operand = _stored(condition.value, type_)  # type: ignore[attr-defined]  # these have
        return _Sql(f"{column} {comparison} ?", (operand,))
    match condition:
        case ft.Eq(_, value):
            return _column_among(column, (value,), type_)
        case ft.In(_, values):
            return _column_among(column, values, type_)
        case ft.Contains(_, value):
            return _column_containing(column, (value,), type_, every=True)
        case ft.Any(_, values):
            return _column_containing(column, values, type_, every=False)
        case ft.All(_, values):
            return _column_containing(column, values, type_, every=True)
    return _text_test(condition, _Sql(column))


def _stored(value: Any, type_: ValueType) -> Any:
    """An operand as its column holds it."""
    if type_ is ValueType.SCOPE:
        return SCOPE_CODES[value]
    if type_ is ValueType.NAMESPACE:
        return "".join(word + _SEPARATOR for word in value)
    if type_ is ValueType.TIME:
        return (value - _EPOCH) // _MICROSECOND
    return value


def _column_among(column: str, operands: Sequence[Any], type_: ValueType) -> _Sql:
    if type_ is ValueType.TAGS:
        return _Sql(f"twofold_json_in({column}, ?)", (dump_json([list(tags) for tags in operands]),))
    stored = [_stored(operand, type_) for operand in operands]
    if type_ is ValueType.NAMESPACE and all(stored):
        return _chain([_among(_Sql(column), stored), _Sql(_below_root(column))], " AND ", _TRUE)
    if type_ is ValueType.NUMBER:
        column = f"+{column}"  # no column affinity: it would round large integers of the list to floats
    return _among(_Sql(column), stored)


def _column_containing(column: str, wanted: Sequence[Any], type_: ValueType, *, every: bool) -> _Sql:
    if type_ is ValueType.TAGS:
        return _list_test(_Sql(column), wanted, every=every)
    if type_ is ValueType.NAMESPACE:
        words = [f"{_SEPARATOR}{word}{_SEPARATOR}" for word in wanted]
        return _substrings(_Sql(f"(char(31) || {column})"), words, every=every)
    return _substrings(_Sql(column), wanted, every=every)


@lru_cache(maxsize=1024)  # many filters are about few namespaces
def _namespace_prefix(column: str, words: tuple[str, ...]) -> _Sql:
    if not words:
        return _TRUE
    start = _stored(words, ValueType.NAMESPACE)
    return _Sql(
        f"{column} >= ? AND {column} < ? AND {_below_root(column)}", (start, start[:-1] + chr(ord(_SEPARATOR) + 1))
    )


def _below_root(column: str) -> str:
    """What the index of namespaces has: SQLite takes it for a condition that says so in these words."""
    return f"{column} > ''"


def _attribute_empty(column: str, type_: ValueType, *, nullable: bool) -> _Sql:
    if type_ is ValueType.TAGS:
        return _Sql(f"json_array_length({column}) = 0")
    if type_ in (ValueType.TEXT, ValueType.NAMESPACE):
        return _Sql(f"coalesce({column}, '') = ''")
    return _Sql(f"{column} IS NULL") if nullable else _FALSE


# --- shared -----------------------------------------------------------------------------------------------------------


def _text_test(condition: Condition, expression: _Sql) -> _Sql:
    """A condition on an expression that is text (or a column's NULL, which the caller takes care of)."""
    text, values = expression
    match condition:
        case ft.Prefix(_, value):
            return _Sql(f"substr({text}, 1, ?) = ?", (*values, len(value), value))
        case ft.Like(_, value):
            return _Sql(f"twofold_like({text}, ?)", (*values, value))
        case ft.TextMatch(_, value):
            return _Sql(f"instr({text}, ?) > 0", (*values, value))
        case ft.TextMatchInsensitive(_, value):
            return _Sql(f"instr(twofold_casefold({text}), ?) > 0", (*values, value.casefold()))
    raise UnsupportedFilterError(f"no filter of twofold's: {condition!r}")


def _substrings(expression: _Sql, wanted: Sequence[str], *, every: bool) -> _Sql:
    """Whether text holds all of the wanted ones, or any."""
    if len(wanted) == 1:
        return _Sql(f"instr({expression.text}, ?) > 0", (*expression.values, wanted[0]))
    exists, test = ("NOT EXISTS", "= 0") if every else ("EXISTS", "> 0")
    return _Sql(  # what stands in the text is our own; keys and values are bound
        f"{exists} (SELECT 1 FROM json_each(?) AS wanted WHERE instr({expression.text}, wanted.value) {test})",  # noqa: S608
        (dump_json(list(wanted)), *expression.values),
    )


def _list_test(expression: _Sql, wanted: Sequence[Any], *, every: bool) -> _Sql:
    """Whether a JSON list has all of the wanted values, or any."""
    function = "twofold_json_all" if every else "twofold_json_any"
    return _Sql(f"{function}({expression.text}, ?)", (*expression.values, dump_json(list(wanted))))
