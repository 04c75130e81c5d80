"""Filters of LangGraph, and those it does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import PutOp

from langchain_twofold import TwofoldStore


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


ITEMS: dict[str, dict[str, Any]] = {
    "one": {"n": 1, "word": "a", "tags": ["x", "y"], "deep": {"er": 1, "more": 2}, "kebab-case": 1, "1st": 1},
    "two": {"n": 2, "word": "it's", "tags": ["y"], "deep": {"er": 2}},
    "half": {"n": 0.5, "word": "b"},
    "true": {"n": True},
    "null": {"n": None},
    "none": {"other": 1},
}


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({}, set(ITEMS)),
        ({"n": 1}, {"one"}),
        ({"n": 1.0}, {"one"}),
        ({"n": True}, {"true"}),
        ({"n": {"$eq": 1}}, {"one"}),
        ({"n": {"$ne": 1}}, set(ITEMS) - {"one"}),
        ({"n": {"$gt": 0.5}}, {"one", "two"}),
        ({"n": {"$gte": 0.5, "$lt": 2}}, {"half", "one"}),
        ({"n": {"$lte": 1}}, {"half", "one"}),
        ({"n": {"$in": [1, True]}}, {"one", "true"}),
        ({"n": {"$in": []}}, set()),
        ({"n": {"$nin": [1, 2]}}, {"half", "true", "null", "none"}),
        ({"n": {"$exists": True}}, {"one", "two", "half", "true", "null"}),
        ({"n": None}, {"null", "none"}),
        ({"n": {"$ne": None}}, {"one", "two", "half", "true"}),
        ({"tags": ["y"]}, {"two"}),
        ({"tags": {"$eq": ["y"]}}, {"two"}),
        ({"tags": {"$contains": "x"}}, {"one"}),
        ({"deep": {"er": 1}}, {"one"}),
        ({"deep": {"er": {"$gt": 1}}}, {"two"}),
        ({"deep.er": 2}, {"two"}),
        ({"kebab-case": 1, "1st": 1}, {"one"}),
        ({"n": 1, "word": "b"}, set()),
        ({"$or": [{"n": 1}, {"word": "b"}]}, {"one", "half"}),
        ({"$and": [{"n": {"$gt": 0}}, {"$not": {"n": 1}}]}, {"half", "two"}),
        ({"$or": []}, set()),
        ({"$and": []}, set(ITEMS)),
        ({"word": "it's"}, {"two"}),
        ({"word": "' UNION SELECT 1 --"}, set()),
        ({"word": "a\0"}, set()),
        ({"word": {"$gt": "a"}}, {"half", "two"}),
        ({"n": math.nan}, set()),
        ({"n": {"$ne": math.nan}}, set(ITEMS)),
        ({"n": {"$gt": math.nan}}, set()),
        ({"n": {"$lt": math.inf}}, {"one", "two", "half"}),
        ({"n": {"$gt": math.inf}}, set()),
        ({"n": {"$gte": -math.inf}}, {"one", "two", "half"}),
        ({"n": {"$lt": -math.inf}}, set()),
        ({"n": {"$lt": 10**100}}, {"one", "two", "half"}),
        ({"n": {"$gt": -(10**400)}}, {"one", "two", "half"}),
        ({"n": 10**100}, set()),
        ({"n": {"$gt": [1]}}, set()),
        ({"n": {"$lt": True}}, set()),
    ],
)
async def test_filters(store: TwofoldStore, filter: dict[str, Any], expected: set[str]) -> None:
    """langchain-ai/langgraph#8759: a list is equal to itself in either spelling."""
    store.batch([PutOp(("a",), key, {"text": "kettle", **value}) for key, value in ITEMS.items()])
    for query in (None, "kettle"):
        assert set(keys(store.search(("a",), query=query, filter=filter))) == expected
        assert set(keys(await store.asearch(("a",), query=query, filter=filter))) == expected


@pytest.mark.parametrize("key", ["x' OR 1=1 --", 'a"b', "a[0]", "", "a..b", "a b", "$.a", 1])
def test_a_key_that_is_none_is_refused(store: TwofoldStore, key: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ii]nvalid filter key"):
        store.search((), filter={key: 1})


@pytest.mark.parametrize(
    "filter",
    [
        {"$nor": []}, {"n": {"$near": 1}}, {"n": {"$gt": 1, "plain": 2}}, {"$or": {"n": 1}}, {"n": {"$in": 1}},
        {"$not": 1}, {"n": {"$exists": 1}}, "n = 1",
    ],
)  # fmt: skip
def test_an_operator_that_is_none_is_refused(store: TwofoldStore, filter: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        store.search((), filter=filter)
