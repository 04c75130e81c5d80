"""``TwofoldTranslator`` of LangChain: what a model asks for is what is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery

from langchain_twofold import TwofoldTranslator, TwofoldVectorStore
from twofold import HybridStore

FILMS: dict[str, dict[str, Any]] = {
    "old": {"year": 1972, "genre": "drama", "tags": ["slow", "long"], "on": "1972-03-20"},
    "new": {"year": 2020, "genre": "comedy", "tags": ["fast"], "on": "2020-01-02"},
    "none": {"genre": "drama"},
}


def compare(attribute: str, comparator: Comparator, value: Any) -> Comparison:
    return Comparison(comparator=comparator, attribute=attribute, value=value)


def join(operator: Operator, *parts: Any) -> Operation:
    return Operation(operator=operator, arguments=list(parts))


OLD = compare("year", Comparator.LT, 2000)
DRAMA = compare("genre", Comparator.EQ, "drama")


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (None, {"old", "new", "none"}),
        (DRAMA, {"old", "none"}),
        (compare("genre", Comparator.NE, "drama"), {"new"}),
        (compare("year", Comparator.GT, 1972), {"new"}),
        (compare("year", Comparator.GTE, 1972), {"old", "new"}),
        (OLD, {"old"}),
        (compare("year", Comparator.LTE, 2020), {"old", "new"}),
        (compare("tags", Comparator.CONTAIN, "long"), {"old"}),
        (compare("genre", Comparator.LIKE, "com%"), {"new"}),
        (compare("year", Comparator.IN, [1972, 1973]), {"old"}),
        (compare("genre", Comparator.IN, "comedy"), {"new"}),
        (compare("year", Comparator.NIN, [1972]), {"new", "none"}),
        (compare("on", Comparator.GT, {"date": "2000-01-01", "type": "date"}), {"new"}),
        (join(Operator.AND, OLD, DRAMA), {"old"}),
        (join(Operator.OR, compare("year", Comparator.EQ, 2020), DRAMA), {"old", "new", "none"}),
        (join(Operator.NOT, DRAMA), {"new"}),
        (join(Operator.AND, join(Operator.NOT, OLD), DRAMA), {"none"}),
    ],
)
def test_a_structured_query_finds_what_it_says(
    open_store: Callable[..., HybridStore], filter: Any, expected: set[str]
) -> None:
    store = TwofoldVectorStore(open_store())
    store.add_texts(["a film"] * len(FILMS), list(FILMS.values()), ids=list(FILMS))
    asked = StructuredQuery(query="film", filter=filter, limit=None)
    query, options = TwofoldTranslator().visit_structured_query(asked)
    assert query == "film"
    assert {document.id for document in store.similarity_search(query, **options)} == expected
