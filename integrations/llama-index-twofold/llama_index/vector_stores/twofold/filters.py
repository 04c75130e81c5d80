"""LlamaIndex's metadata filters as twofold's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from twofold import A, F, Filter, InvalidFilterError, UnsupportedFilterError
from twofold.filters import And, Not, Or

__all__ = ["as_filter", "narrowed"]

_MOST_OBJECT_KEYS: Final = 100
"""Up to how many values ``any`` and ``all`` also look for among the keys of an object: each is a condition of its
own, and a filter has at most 1,000."""


def as_filter(filters: MetadataFilters | None) -> Filter | None:
    """``filters`` as a filter of twofold; None if they let everything through.

    It means what they mean to LlamaIndex's own ``SimpleVectorStore``, nested ones too, but that ``True`` is not 1;
    that what cannot be compared (text with a number, a list by ``>``) does not match, in place of an error; and that
    ``text_match_insensitive`` folds case as Unicode does (ß is ss). A key is taken as it is, dots included.

    Args:
        filters: any tree of them. One without filters in it lets everything through.

    Raises:
        UnsupportedFilterError: an operator with a value that it cannot be about, e.g. ``in`` with a text; the message
            says what it takes.
        InvalidFilterError: more than about a thousand conditions (a list of values is one, however long it is), or
            more than 40 groups within each other.
    """
    if filters is None:
        return None
    try:
        return _tree(filters)
    except RecursionError:
        raise InvalidFilterError("the filters are nested too deep; put them side by side") from None


def narrowed(
    namespace: tuple[str, ...],
    *,
    filters: MetadataFilters | None = None,
    doc_ids: Sequence[str] | None = None,
    node_ids: Sequence[str] | None = None,
    where: Filter | None = None,
) -> Filter:
    """The records in ``namespace``, neither above nor below it, to which all that is given applies.

    Args:
        namespace: where they are.
        filters: LlamaIndex's.
        doc_ids: their documents. Default: any; empty: none.
        node_ids: their ids. Default: any; empty: none.
        where: twofold's own.
    """
    found: Filter = A.namespace == namespace
    for more in (
        as_filter(filters),
        None if doc_ids is None else A.source.in_(doc_ids),
        None if node_ids is None else A.id.in_(node_ids),
        where,
    ):
        if more is not None:
            found = found & more
    return found


def _tree(filters: MetadataFilters) -> Filter | None:
    """``filters`` as a filter; None if they let everything through, empty groups within them included."""
    if not isinstance(filters, MetadataFilters):
        raise UnsupportedFilterError(f"filters is a MetadataFilters of LlamaIndex's, not {type(filters).__name__}")
    parts = [_tree(each) if isinstance(each, MetadataFilters) else _one(each) for each in filters.filters]
    given = [part for part in parts if part is not None]
    condition = FilterCondition.AND if filters.condition is None else filters.condition
    if condition == FilterCondition.AND:
        return And(*given) if given else None
    if condition == FilterCondition.OR:
        return Or(*given) if given and len(given) == len(parts) else None
    if not parts:
        return None
    return Not(Or(*given)) if len(given) == len(parts) else Or()  # none of them, which is how LlamaIndex reads it


def _one(each: MetadataFilter) -> Filter:
    return _OPERATORS[each.operator](F((each.key,)), each)


def _equal(key: F, each: MetadataFilter) -> Filter:
    return Or() if each.value is None else key == each.value  # nothing equals None, a null neither


def _ordered(compare: Callable[[F, Any], Filter]) -> Callable[[F, MetadataFilter], Filter]:
    def compared(key: F, each: MetadataFilter) -> Filter:
        if isinstance(each.value, (int, float, str)):
            return compare(key, each.value)
        raise _refused(each, "a number or a text")

    return compared


def _among(key: F, each: MetadataFilter) -> Filter:
    return key.in_(_values(each))


def _not_among(key: F, each: MetadataFilter) -> Filter:
    return key.not_in(_values(each))


def _contains(key: F, each: MetadataFilter) -> Filter:
    return Or(key.contains(each.value), *_keys(key, [each.value]))


def _any(key: F, each: MetadataFilter) -> Filter:
    values = _values(each)
    return Or(key.any(values), *_keys(key, values))


def _all(key: F, each: MetadataFilter) -> Filter:
    values = _values(each)
    if not values:
        return And(key.exists(), key != None)  # noqa: E711 - a filter; anything but null has all of nothing
    keys = _keys(key, values)
    return Or(key.all(values), And(*keys)) if len(keys) == len(values) else key.all(values)


def _keys(key: F, values: Sequence[Any]) -> list[Filter]:
    """Whether an object has the values among its keys, as Python's ``in`` asks; only texts can be keys."""
    if len(values) > _MOST_OBJECT_KEYS:
        return []
    return [F((*key.path, value)).exists() for value in values if isinstance(value, str)]


def _text_match(key: F, each: MetadataFilter) -> Filter:
    return key.text_match(_text(each))


def _text_match_insensitive(key: F, each: MetadataFilter) -> Filter:
    return key.text_match_insensitive(_text(each))


def _is_empty(key: F, _each: MetadataFilter) -> Filter:
    return key.is_empty() & (key != {})  # to LlamaIndex an empty object is not empty


_OPERATORS: Final[dict[FilterOperator, Callable[[F, MetadataFilter], Filter]]] = {
    FilterOperator.EQ: _equal,
    FilterOperator.NE: lambda key, each: Not(_equal(key, each)),
    FilterOperator.GT: _ordered(lambda key, value: key > value),
    FilterOperator.GTE: _ordered(lambda key, value: key >= value),
    FilterOperator.LT: _ordered(lambda key, value: key < value),
    FilterOperator.LTE: _ordered(lambda key, value: key <= value),
    FilterOperator.IN: _among,
    FilterOperator.NIN: _not_among,
    FilterOperator.ANY: _any,
    FilterOperator.ALL: _all,
    FilterOperator.CONTAINS: _contains,
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text_match_insensitive,
    FilterOperator.IS_EMPTY: _is_empty,
}


def _values(each: MetadataFilter) -> list[Any]:
    if isinstance(each.value, list):
        return each.value
    raise _refused(each, "a list of values")


def _text(each: MetadataFilter) -> str:
    if isinstance(each.value, str):
        return each.value
    raise _refused(each, "a text")


def _refused(each: MetadataFilter, what: str) -> UnsupportedFilterError:
    return UnsupportedFilterError(
        f"the operator {each.operator.value!r} on {each.key!r} takes {what}, not {each.value!r}"
    )
