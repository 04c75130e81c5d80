"""Items and batches: what is put, got, listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langchain_twofold import TwofoldStore
from twofold.testing import FakeClock


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


def test_an_item_comes_back_as_it_was_put(store: TwofoldStore) -> None:
    value = {"text": "a kettle", "n": 1, "one": 1.0, "yes": True, "no": None, "deep": {"list": [1, {"é": []}]}}
    store.put(("users", "ann"), "k", value)
    item = store.get(("users", "ann"), "k")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "k", value)
    assert [type(item.value[key]) for key in ("n", "one", "yes")] == [int, float, bool]
    item.value["deep"].clear()
    value["deep"].clear()  # type: ignore[attr-defined]
    again = store.get(("users", "ann"), "k")
    assert again is not None
    assert again.value["deep"] == {"list": [1, {"é": []}]}
    assert store.get(("users", "ann"), "other") is None
    assert store.get(("users", "ben"), "k") is None
    store.delete(("users", "ann"), "k")
    store.delete(("users", "ann"), "never there")
    assert store.get(("users", "ann"), "k") is None


def test_times_have_a_zone_and_an_update_keeps_the_first(tmp_path: Path) -> None:
    """langgraph's SQLite store resets ``created_at`` and counts in naive seconds."""
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with TwofoldStore(clock=clock) as store:
        store.put(("a",), "k", {"n": 1})
        began = clock()
        clock.advance(seconds=0.25)
        store.put(("a",), "k", {"n": 1})  # the same again is a put all the same
        item = store.get(("a",), "k")
        assert item is not None
        assert (item.created_at, item.updated_at) == (began, began + timedelta(milliseconds=250))


def test_what_is_no_json_is_refused_and_nothing_written(store: TwofoldStore) -> None:
    for value in ({"x": math.nan}, {"x": {1, 2}}, {"x": datetime.now(UTC)}, {"x": 2**63}, {1: "x"}):
        with pytest.raises(ValueError, match="metadata"):
            store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", value)])
    assert store.search(()) == []


def test_a_tuple_becomes_a_list(store: TwofoldStore) -> None:
    store.put(("a",), "k", {"pair": (1, 2)})
    assert keys(store.search(("a",), filter={"pair": (1, 2)})) == ["k"]
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"pair": [1, 2]}


def test_results_stand_in_the_order_of_operations(store: TwofoldStore) -> None:
    store.put(("a",), "there", {"n": 1})
    results = store.batch(
        [
            PutOp(("a",), "new", {"n": 2}),
            GetOp(("a",), "there"),
            SearchOp(("a",)),
            ListNamespacesOp(),
            GetOp(("a",), "new"),
            PutOp(("a",), "there", None),
        ]
    )
    assert results[0] is results[4] is results[5] is None
    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert keys(results[2]) == ["there"]  # type: ignore[arg-type]
    assert results[3] == [("a",)]
    assert store.get(("a",), "there") is None
    assert store.get(("a",), "new") is not None
    assert store.batch([]) == []


def test_of_several_puts_of_a_key_the_last_counts(store: TwofoldStore) -> None:
    store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", None), PutOp(("a",), "k", {"n": 2})])
    assert store.get(("a",), "k").value == {"n": 2}  # type: ignore[union-attr]
    store.batch([PutOp(("a",), "k", {"n": 3}), PutOp(("a",), "k", None)])
    assert store.get(("a",), "k") is None


def test_a_failed_batch_changes_nothing(store: TwofoldStore) -> None:
    """langgraph's SQLite store commits the first half."""
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match="JSON"):
        store.batch([PutOp(("a",), "k", None), PutOp(("a",), "bad", {"x": {1}})])
    assert store.get(("a",), "k").value == {"n": 1}  # type: ignore[union-attr]


async def test_batches_are_alike_in_async(store: TwofoldStore) -> None:
    await store.abatch([PutOp(("a",), "1", {"n": 1}), PutOp(("a",), "2", {"n": 2})])
    found, listed, missing = await store.abatch(
        [GetOp(("a",), "1"), SearchOp(("a",), filter={"n": 2}), GetOp(("a",), "3")]
    )
    assert (found.key, keys(listed), missing) == ("1", ["2"], None)  # type: ignore[union-attr, arg-type]
    with pytest.raises(ValueError, match="JSON"):
        await store.abatch([PutOp(("a",), "1", None), PutOp(("a",), "bad", {"x": {1}})])
    assert await store.aget(("a",), "1") is not None


@pytest.mark.parametrize("query", [None, "note"])
def test_pages_are_exact(store: TwofoldStore, query: str | None) -> None:
    """langchain-ai/langgraph#8977."""
    store.batch([PutOp(("a",), str(n), {"text": f"note {'x' * n}"}) for n in range(10)])
    whole = keys(store.search(("a",), query=query, limit=100))
    assert len(whole) == 10
    for limit in (1, 2, 3, 7):
        pages = [keys(store.search(("a",), query=query, limit=limit, offset=at)) for at in range(0, 12, limit)]
        assert [key for page in pages for key in page] == whole
    assert store.search(("a",), query=query, offset=10) == []
    assert store.search(("a",), query=query, limit=0) == []


def test_without_a_query_the_latest_put_comes_first() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with TwofoldStore(clock=clock, ttl={"refresh_on_read": True}) as store:
        for key in ("first", "second", "third"):
            store.put(("a",), key, {"n": 1}, ttl=60)
            clock.advance(seconds=1)
        store.put(("a",), "first", {"n": 2}, ttl=60)
        for query in (None, ""):
            found = store.search(("a",), query=query)
            assert keys(found) == ["first", "third", "second"]  # and reading does not change it
            assert [item.score for item in found] == [None] * 3
