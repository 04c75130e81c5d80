"""Filters as dicts, in the Mongo-like spelling that users of LangChain know.

::

    {"lang": "en", "year": {"$gte": 2020, "$lt": 2024}}     several keys, or several operators, must all hold
    {"a.b": 1}                                              b inside the object a
    {"@kind": "insight", "@tags": {"$any": ["x", "y"]}}     attributes
    {"$or": [{...}, {...}], "$not": {...}}                  also $and, $nor; {"year": {"$not": {"$gt": 2020}}} works too
    {"meta": {"$eq": {"$p": 1}}}                            equality with a dict whose keys begin with $
    {"$path": ["a.b", "@c"], "$eq": 1}                      keys taken as they are: dots, a leading $ or @

A value that is a dict without operators is an equality, ``{"meta": {"p": 1}}``; one that mixes operators with other
keys is refused. Times of attributes are ISO 8601 text with a zone (or datetimes). ``{}`` matches every record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from twofold.errors import InvalidFilterError, UnsupportedFilterError
from twofold.filters import nodes
from twofold.filters.expression import Attribute, F, Reference
from twofold.filters.nodes import MAX_DEPTH, And, Condition, Filter, Not, Or
from twofold.filters.values import ValueType

__all__ = ["as_filter", "from_dict", "to_dict"]

_SINGLE: Final = {
    node.operator: node
    for node in (
        nodes.Eq, nodes.Ne, nodes.Lt, nodes.Le, nodes.Gt, nodes.Ge,
        nodes.Contains, nodes.Prefix, nodes.Like, nodes.TextMatch, nodes.TextMatchInsensitive,
    )
}  # fmt: skip
_SEVERAL: Final = {node.operator: node for node in (nodes.In, nodes.NotIn, nodes.Any, nodes.All)}
_BETWEEN: Final = nodes.Between.operator
_EXISTS: Final = nodes.Exists.operator
_EMPTY: Final = nodes.IsEmpty.operator
_NOT: Final = "$not"
_PATH: Final = "$path"
_OPERATORS: Final = (*_SINGLE, *_SEVERAL, _BETWEEN, _EXISTS, _EMPTY, _NOT)
_CONNECTIVES: Final = ("$and", "$or", "$nor", _NOT)


def as_filter(value: Filter | Mapping[str, Any] | None) -> Filter | None:
    """A filter from what a caller may give as ``where``: a filter, its dict spelling, or None for none.

    Raises:
        InvalidFilterError: anything else, or a dict that spells no filter.
    """
    if value is None or isinstance(value, Filter):
        return value
    if isinstance(value, Mapping):
        return from_dict(value)
    raise InvalidFilterError(f"a filter is F(...) == x, A.name == x or a dict, not {value!r}")


def to_dict(filter: Filter) -> dict[str, Any]:
    """The dict spelling of ``filter``; see the module.

    Raises:
        UnsupportedFilterError: a node that is not twofold's.
    """
    if isinstance(filter, Not):
        return {_NOT: to_dict(filter.filter)}
    if isinstance(filter, And):
        return {"$and": [to_dict(part) for part in filter.filters]}
    if isinstance(filter, Or):
        return {"$or": [to_dict(part) for part in filter.filters]}
    if not isinstance(filter, Condition):
        raise UnsupportedFilterError(f"no filter of twofold's: {filter!r}")
    operand = _operand(filter)
    reference = filter.reference
    key = f"@{reference.attribute}" if reference.attribute is not None else _dotted(cast("F", reference).path)
    if key is None:
        return {_PATH: list(cast("F", reference).path), filter.operator: operand}
    if isinstance(filter, nodes.Eq) and not isinstance(operand, dict):
        return {key: operand}
    return {key: {filter.operator: operand}}


def from_dict(spelled: Mapping[str, Any]) -> Filter:
    """The filter that ``spelled`` stands for; see the module.

    Raises:
        InvalidFilterError: the dict is malformed, or an operand cannot be used.
        UnsupportedFilterError: an operator that does not exist.
    """
    return _filter(spelled, 0)


def _dotted(path: tuple[str, ...]) -> str | None:
    """A path as one key of a dict; None if only ``$path`` can say it."""
    dotted = ".".join(path)
    return dotted if dotted.split(".") == list(path) and dotted[:1] not in ("$", "@") else None


def _operand(condition: Condition) -> Any:
    if isinstance(condition, nodes.Exists):
        return condition.yes
    if isinstance(condition, nodes.IsEmpty):
        return True
    if isinstance(condition, nodes.Between):
        return [_encoded(condition.low), _encoded(condition.high)]
    if type(condition) in _SEVERAL.values():
        return [_encoded(value) for value in condition.values]  # type: ignore[attr-defined]  # these have
    if type(condition) in _SINGLE.values():
        return _encoded(condition.value)  # type: ignore[attr-defined]  # these have
    raise UnsupportedFilterError(f"no filter of twofold's: {condition!r}")


def _encoded(value: Any) -> Any:
    """An operand as JSON: a copy, so that a change to the dict leaves the filter as it is."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    return str(value) if isinstance(value, str) else value


def _decoded(reference: Reference, value: Any) -> Any:
    """An operand as the condition takes it: times may be text."""
    if reference.typed.type is ValueType.TIME and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise InvalidFilterError(
                f"{reference!r} is compared with times such as '2024-05-01T12:00:00+00:00', not {value!r}"
            ) from None
    return value


def _filter(spelled: object, depth: int) -> Filter:
    if not isinstance(spelled, Mapping):
        raise InvalidFilterError(f"a filter is spelled as a dict, not {spelled!r}")
    if depth > MAX_DEPTH:
        raise InvalidFilterError(f"a filter nests at most {MAX_DEPTH} deep")
    if _PATH in spelled:
        return _joined(list(_escaped(spelled, depth)))
    parts: list[Filter] = []
    for key, value in spelled.items():
        if not isinstance(key, str):
            raise InvalidFilterError(f"the keys of a filter are text, not {key!r}")
        if key.startswith("$"):
            parts.append(_connected(key, value, depth + 1))
        else:
            parts.extend(_conditions(Attribute(key[1:]) if key.startswith("@") else F(key), value, depth))
    return _joined(parts)


def _joined(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else And(*parts)


def _connected(operator: str, value: Any, depth: int) -> Filter:
    if operator not in _CONNECTIVES:
        hint = f"; write {{key: {{{operator!r}: ...}}}}" if operator in _OPERATORS else ""
        raise UnsupportedFilterError(f"{operator!r} joins no filters; {', '.join(_CONNECTIVES)} do{hint}")
    if operator == _NOT:
        return Not(_filter(value, depth))
    if not isinstance(value, (list, tuple)):
        raise InvalidFilterError(f"{operator} takes a list of filters, not {value!r}")
    parts = [_filter(part, depth) for part in value]
    if operator == "$and":
        return And(*parts)
    return Or(*parts) if operator == "$or" else Not(Or(*parts))


def _escaped(spelled: Mapping[str, Any], depth: int) -> Iterator[Filter]:
    path = spelled[_PATH]
    if isinstance(path, str) or not isinstance(path, Sequence):
        raise InvalidFilterError(f"{_PATH} takes a list of keys, not {path!r}")
    operators = {key: value for key, value in spelled.items() if key != _PATH}
    if not operators:
        raise InvalidFilterError(f'{_PATH} goes with an operator: {{"{_PATH}": [...], "$eq": ...}}')
    return _operators(F(tuple(path)), operators, depth)


def _conditions(reference: Reference, value: Any, depth: int) -> Iterator[Filter]:
    if isinstance(value, Mapping):
        marked = [isinstance(key, str) and key.startswith("$") for key in value]
        if marked and all(marked):
            yield from _operators(reference, value, depth)
            return
        if any(marked):
            raise InvalidFilterError(
                f'{reference!r}: operators and other keys in one dict; for a dict to equal write {{"$eq": {{...}}}}'
            )
    yield nodes.Eq(reference, _decoded(reference, value))


def _operators(reference: Reference, operators: Mapping[str, Any], depth: int) -> Iterator[Filter]:
    if depth > MAX_DEPTH:
        raise InvalidFilterError(f"a filter nests at most {MAX_DEPTH} deep")
    for operator, operand in operators.items():
        yield _condition(reference, operator, operand, depth)


def _condition(reference: Reference, operator: str, operand: Any, depth: int) -> Filter:
    if operator in _SINGLE:
        return _SINGLE[operator](reference, _decoded(reference, operand))
    if operator in _SEVERAL:
        return _SEVERAL[operator](reference, tuple(_decoded(reference, value) for value in _listed(operator, operand)))
    if operator == _BETWEEN:
        ends = _listed(operator, operand)
        if len(ends) != 2:
            raise InvalidFilterError(f"{operator} takes [low, high], not {operand!r}")
        return nodes.Between(reference, *(_decoded(reference, end) for end in ends))
    if operator == _EXISTS:
        return nodes.Exists(reference, operand)
    if operator == _EMPTY:
        if not isinstance(operand, bool):
            raise InvalidFilterError(f"{operator} takes True or False, not {operand!r}")
        return nodes.IsEmpty(reference) if operand else Not(nodes.IsEmpty(reference))
    if operator == _NOT:
        if not isinstance(operand, Mapping) or not operand:
            raise InvalidFilterError(f"{operator} takes a dict of operators, not {operand!r}")
        return Not(_joined(list(_operators(reference, operand, depth + 1))))
    raise UnsupportedFilterError(f"no operator {operator!r}; there are {', '.join(_OPERATORS)}")


def _listed(operator: str, operand: Any) -> Sequence[Any]:
    if not isinstance(operand, (list, tuple, set, frozenset)):
        raise InvalidFilterError(f"{operator} takes a list of values, not {operand!r}")
    return tuple(operand)
