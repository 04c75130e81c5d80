"""``TwofoldRecordManager`` of LangChain, by itself and under ``index()``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import aindex, index

import twofold
from langchain_twofold import TwofoldRecordManager, TwofoldVectorStore
from twofold import Access, HybridStore, StoreSettings
from twofold.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)


class Pair:
    """A vector store and its record manager, whose time a test turns."""

    def __init__(self, open_store: Callable[..., HybridStore]) -> None:
        self.clock = FakeClock(START)
        self.store = open_store(settings=StoreSettings(clock=self.clock))
        self.vectors = TwofoldVectorStore(self.store, namespace=("docs",))
        self.manager = TwofoldRecordManager(self.vectors)

    def index(self, *documents: Document, **options: Any) -> dict[str, int]:
        self.clock.advance(seconds=1)
        done = index(
            list(documents), self.manager, self.vectors, key_encoder="sha256", source_id_key="source", **options
        )
        return {name: count for name, count in done.items() if count}  # type: ignore[misc]

    def texts(self) -> set[str]:
        return {record.text for record in self.store.list()}


@pytest.fixture
def pair(open_store: Callable[..., HybridStore]) -> Pair:
    return Pair(open_store)


def of(source: str, *texts: str) -> list[Document]:
    return [Document(text, metadata={"source": source}) for text in texts]


def test_what_is_there_is_skipped(pair: Pair) -> None:
    assert pair.index(*of("a", "one", "two")) == {"num_added": 2}
    assert pair.index(*of("a", "one", "two", "three")) == {"num_added": 1, "num_skipped": 2}
    assert pair.texts() == {"one", "two", "three"}
    assert pair.index(*of("a", "one"), force_update=True) == {"num_updated": 1}


@pytest.mark.parametrize(
    ("cleanup", "left"),
    [
        (None, {"one", "two", "other", "new"}),
        ("incremental", {"one", "other", "new"}),
        ("full", {"one", "new"}),
        ("scoped_full", {"one", "other", "new"}),
    ],
)
def test_what_is_gone_is_cleaned_up(pair: Pair, cleanup: Any, left: set[str]) -> None:
    pair.index(*of("a", "one", "two"), *of("b", "other"))
    pair.index(*of("a", "one", "new"), cleanup=cleanup)
    assert pair.texts() == left


def test_it_cannot_drift_from_the_store(pair: Pair) -> None:
    """langchain-ai/langchain#39937: what was deleted by other means is indexed again."""
    pair.index(*of("a", "one", "two"))
    pair.store.delete(where={"source": "a"})
    assert pair.index(*of("a", "one", "two")) == {"num_added": 2}
    assert pair.texts() == {"one", "two"}


async def test_it_is_alike_in_async(pair: Pair) -> None:
    documents = of("a", "one", "two")
    options: dict[str, Any] = {"key_encoder": "sha256", "source_id_key": "source", "cleanup": "full"}
    assert (await aindex(documents, pair.manager, pair.vectors, **options))["num_added"] == 2
    pair.clock.advance(seconds=1)
    done = await aindex(documents[:1], pair.manager, pair.vectors, **options)
    assert (done["num_skipped"], done["num_deleted"]) == (1, 1)
    assert pair.texts() == {"one"}


async def test_every_twin_does_what_its_method_does(pair: Pair) -> None:
    manager = pair.manager
    manager.create_schema()
    await manager.acreate_schema()
    pair.vectors.add_texts(["a", "b"], ids=["a", "b"])
    assert manager.get_time() == await manager.aget_time() == START.timestamp()
    manager.update(["a", "gone"], group_ids=["g", None])
    pair.clock.advance(seconds=1)
    await manager.aupdate(["b"], group_ids=["h"])
    asked = ["a", "b", "gone", "unknown"]
    assert manager.exists(asked) == await manager.aexists(asked) == [True, True, False, False]

    async def both(expected: Sequence[str], **arguments: Any) -> None:
        assert manager.list_keys(**arguments) == await manager.alist_keys(**arguments) == list(expected)

    await both(["a", "gone", "b"])
    await both(["a", "gone"], before=START.timestamp() + 1)
    await both(["b"], after=START.timestamp())
    await both(["a", "b"], group_ids=["g", "h"])
    await both(["a"], limit=1)
    manager.delete_keys(["gone"])
    await manager.adelete_keys(["a"])
    await both(["b"])
    assert manager.list_keys() == ["b"]


def test_a_clock_turned_back_is_told(pair: Pair) -> None:
    with pytest.raises(ValueError, match="clock"):
        pair.manager.update(["a"], time_at_least=START.timestamp() + 1)
    with pytest.raises(ValueError, match="groups"):
        pair.manager.update(["a"], group_ids=["g", "h"])
    pair.manager.update(["a"], time_at_least=START.timestamp())


def test_marks_of_others_are_not_seen(open_store: Callable[..., HybridStore]) -> None:
    store = open_store()
    managers = [
        TwofoldRecordManager(TwofoldVectorStore(store, namespace=namespace, access=access), name)
        for namespace in ((), ("a",))
        for access in (None, Access(user="ann"), Access(user="ben"))
        for name in ("index", "other")
    ]
    managers[3].update(["k"])
    assert [manager.list_keys() for manager in managers] == [["k"] if place == 3 else [] for place in range(12)]


def test_it_is_in_the_same_file(tmp_path: Any) -> None:
    for expected in ("num_added", "num_skipped"):
        with TwofoldVectorStore(tmp_path / "d.db") as vectors:
            manager = TwofoldRecordManager(vectors)
            done = index(of("a", "one"), manager, vectors, key_encoder="sha256")
            assert done[expected] == 1  # type: ignore[literal-required]
    with twofold.open(tmp_path / "d.db") as store:
        assert store.count() == 1
