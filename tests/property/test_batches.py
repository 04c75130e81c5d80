"""A batch does what its operations do one after the other, and its reads see what was there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import HybridStore, NewRecord, Record
from twofold.embedders import EmbeddingKind
from twofold.store import Add, Delete, Get, ListRecords, Operation, Search
from twofold.testing import FakeClock, FakeEmbedder

IDS = ("a", "b", "c")
NAMESPACES: tuple[tuple[str, ...], ...] = ((), ("notes",))
TEXTS = ("kettle", "teapot", "broker", "")

adds = st.builds(
    lambda id_, namespace, text, n: Add(NewRecord(text=text, id=id_, namespace=namespace, metadata={"n": n})),
    st.sampled_from(IDS), st.sampled_from(NAMESPACES), st.sampled_from(TEXTS), st.sampled_from([1, True, 2]),
)  # fmt: skip
deletes = st.builds(Delete, st.sampled_from(IDS), st.sampled_from(NAMESPACES))
gets = st.builds(Get, st.sampled_from(IDS), st.sampled_from(NAMESPACES))
searches = st.sampled_from([ListRecords(order="id"), Search("kettle", mode="keyword"), Search("teapot", mode="vector")])
operations = st.lists(st.one_of(adds, adds, deletes, gets, searches), max_size=12)


def one_by_one(store: HybridStore, asked: list[Operation]) -> list[Any]:
    """The reads first, then the writes, each in a call of its own."""
    results: list[Any] = [None] * len(asked)
    for index, each in enumerate(asked):
        if isinstance(each, Get):
            results[index] = store.get(each.id, namespace=each.namespace)
        elif isinstance(each, ListRecords):
            results[index] = store.list(order=each.order)
        elif isinstance(each, Search):
            results[index] = store.search(each.text, mode=each.mode)
    for index, each in enumerate(asked):
        if isinstance(each, Add):
            report = store.add_many([each.record])
            results[index] = (report.ids[0], report.added, report.updated, report.unchanged)
        elif isinstance(each, Delete):
            results[index] = store.delete(each.id, namespace=each.namespace) > 0
    return results


def shown(result: Any) -> Any:
    """What of a result must be equal."""
    if isinstance(result, Record):
        return (result.namespace, result.id, result.text, repr(result.metadata), result.revision, result.created_at)
    if isinstance(result, twofold.Added):
        outcomes = (twofold.Outcome.ADDED, twofold.Outcome.UPDATED, twofold.Outcome.UNCHANGED)
        return (result.id, *(int(result.outcome is outcome) for outcome in outcomes))
    if isinstance(result, twofold.SearchResult):
        return [(shown(hit.record), hit.score) for hit in result]
    return [shown(each) for each in result] if isinstance(result, list) else result


@settings(max_examples=100, deadline=None)
@given(before=operations, asked=operations)
def test_a_batch_is_its_operations_one_by_one(before: list[Operation], asked: list[Operation]) -> None:
    clock = FakeClock()
    with (
        twofold.open(":memory:", embedder=FakeEmbedder(), settings=twofold.StoreSettings(clock=clock)) as together,
        twofold.open(":memory:", embedder=FakeEmbedder(), settings=twofold.StoreSettings(clock=clock)) as apart,
    ):
        for store in (together, apart):
            one_by_one(store, before)
        clock.advance(seconds=1)
        assert [shown(each) for each in together.batch(asked)] == [shown(each) for each in one_by_one(apart, asked)]
        assert together.info().pending == apart.info().pending == 0
        assert shown(together.list(order="id")) == shown(apart.list(order="id"))
        for word in TEXTS[:3]:
            for mode in ("keyword", "vector"):
                assert shown(together.search(word, mode=mode)) == shown(apart.search(word, mode=mode))
        assert together.check().ok


WAYS = {
    "deleted, then added": [Delete("a"), Add(NewRecord(text="kettle", id="a"))],
    "changed, then changed back": [Add(NewRecord(text="x", id="a")), Add(NewRecord(text="kettle", id="a"))],
    "emptied, then changed back": [Add(NewRecord(text="", id="a")), Add(NewRecord(text="kettle", id="a"))],
    "deleted between": [Add(NewRecord(text="kettle", id="a")), Delete("a"), Add(NewRecord(text="kettle", id="a"))],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_text_that_comes_back_within_a_batch_has_its_vector(way: str) -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder()) as store:
        store.add("kettle", id="a")
        *_, added = store.batch(WAYS[way])
        assert (added.pending, store.info().pending) == (False, 0)
        assert store.search("kettle", mode="vector").ids == ("a",)


def test_what_is_there_already_is_not_embedded_again() -> None:
    embedded: list[str] = []

    class Counted(FakeEmbedder):
        def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> npt.NDArray[np.float32]:
            embedded.extend(texts)
            return super().embed(texts, kind)

    with twofold.open(":memory:", embedder=Counted()) as store:
        kettle = Add(NewRecord(text="kettle", id="a"))
        store.batch([kettle])
        store.batch([Delete("b"), Delete("a", ("notes",)), kettle, kettle])
        assert embedded == ["kettle"]
