"""Filters that a language model writes, for LangChain's self-query retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery, Visitor

__all__ = ["TwofoldTranslator"]

_COMPARATORS: Final[Mapping[Comparator, str]] = {
    Comparator.EQ: "$eq",
    Comparator.NE: "$ne",
    Comparator.GT: "$gt",
    Comparator.GTE: "$gte",
    Comparator.LT: "$lt",
    Comparator.LTE: "$lte",
    Comparator.CONTAIN: "$contains",
    Comparator.LIKE: "$like",
    Comparator.IN: "$in",
    Comparator.NIN: "$nin",
}


class TwofoldTranslator(Visitor):
    """Makes the ``filter`` of a search of what a language model asked for.

    LangChain finds translators by a list of its own, so name it:
    ``SelfQueryRetriever.from_llm(..., vectorstore, structured_query_translator=TwofoldTranslator())``.

    An attribute is a key of the metadata; dots name nested ones. A date is compared as text, as ``YYYY-MM-DD``.
    """

    allowed_comparators: ClassVar[tuple[Comparator, ...]] = tuple(_COMPARATORS)  # type: ignore[misc]
    allowed_operators: ClassVar[tuple[Operator, ...]] = (Operator.AND, Operator.OR, Operator.NOT)  # type: ignore[misc]

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """``operation`` as a dict."""
        self._validate_func(operation.operator)
        parts = [part.accept(self) for part in operation.arguments]
        if operation.operator is not Operator.NOT:
            return {f"${operation.operator.value}": parts}
        return {"$not": parts[0] if len(parts) == 1 else {"$and": parts}}

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """``comparison`` as a dict."""
        self._validate_func(comparison.comparator)
        operator, value = _COMPARATORS[comparison.comparator], _plain(comparison.value)
        if operator in ("$in", "$nin") and not isinstance(value, list):
            value = [value]
        return {comparison.attribute: {operator: value}}

    def visit_structured_query(self, structured_query: StructuredQuery) -> tuple[str, dict[str, Any]]:
        """The text to search for, and the arguments of the search."""
        if structured_query.filter is None:
            return structured_query.query, {}
        return structured_query.query, {"filter": structured_query.filter.accept(self)}


def _plain(value: Any) -> Any:
    """A value as JSON: LangChain's parser gives dates as ``{"date": ..., "type": "date"}``."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping) and value.get("type") in ("date", "datetime"):
        return value[value["type"]]
    return value
