"""Very many vectors: their codes in memory, made in the background, saved beside the file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import Access, GivenVectors, StoreSettings
from twofold.backends.sqlite import vector_indexes, vectors
from twofold.errors import SearchUnavailableError
from twofold.store import HybridStore
from twofold.vectors import CompactIndex, choice, codes, flat

pytest.importorskip("faiss", reason="the extra faiss is not installed")

DIMENSION = 16
COUNT = 3000


def vectors_of(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def opened(path: Path, **settings: Any) -> HybridStore:
    return twofold.open(path, embedder=GivenVectors("given", DIMENSION), settings=StoreSettings(**settings))


def ready(store: HybridStore) -> bool:
    return store._backend._background.wait("vector index", 60)  # type: ignore[attr-defined]


def found(store: HybridStore, query: Any, **arguments: Any) -> list[tuple[str, float]]:
    return [(hit.record.id, hit.score) for hit in store.search("", vector=query, **arguments)]


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_indexes, "FLOATS_IN_MEMORY", 0)
    monkeypatch.setattr(choice, "LEAST_ROWS", 2000)
    monkeypatch.setattr(vectors, "_FEW", 20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with opened(path, index="exact") as store:
        store.add_many(
            [{"text": f"kettle {n}", "id": f"{n}", "vector": row} for n, row in enumerate(vectors_of(COUNT))]
        )
        for n in range(5):
            store.add(
                "kettle of mine", id=f"own {n}", access=Access(user="u"), namespace=("u",), vector=vectors_of(5, 1)[n]
            )
    return path


@pytest.fixture
def truth(path: Path) -> Iterator[HybridStore]:
    copy = path.with_name("copy.db")
    with opened(path, index="exact") as store:
        store.backup(copy)
    with opened(copy, index="exact") as store:
        yield store


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set nothing is built."""
    release = threading.Event()
    real = CompactIndex.built

    def built(*arguments: Any) -> Any:
        release.wait(60)
        return real(*arguments)

    monkeypatch.setattr(CompactIndex, "built", built)
    yield release
    release.set()


def test_until_it_is_built_keywords_answer_alone_and_say_so(
    path: Path, truth: HybridStore, held: threading.Event
) -> None:
    query = vectors_of(1, 7)[0]
    with opened(path) as store:
        result = store.search("kettle 17", vector=query)
        assert result[0].record.id == "17"
        assert [each.code for each in result.degradations] == ["index_building"]
        with pytest.raises(SearchUnavailableError, match="being built"):
            store.search("", vector=query, mode="vector")
        assert "being built" in str(store.info().backend.details["vector_index_problem"])
        held.set()
        assert ready(store)
        result = store.search("kettle 17", vector=query)
        assert not result.degradations
        assert found(store, query) == found(truth, query)
        assert store.info().backend.details["vector_index"] == "faiss-flat"
        assert store.info().backend.details["vector_index_problem"] is None


def test_few_visible_records_do_not_wait_for_it(path: Path, truth: HybridStore, held: threading.Event) -> None:
    query = vectors_of(1, 7)[0]
    own = twofold.A.scope == "personal"
    with opened(path) as store:
        for mode in ("vector", "hybrid"):
            result = store.search("kettle", vector=query, access=Access(user="u"), where=own, mode=mode)
            assert not result.degradations
        asked: dict[str, Any] = {"access": Access(user="u"), "where": own, "mode": "vector"}
        assert len(found(store, query, **asked)) == 5
        assert found(store, query, **asked) == found(truth, query, **asked)
        held.set()  # or closing would wait


def test_it_is_saved_and_not_built_again(path: Path, truth: HybridStore, monkeypatch: pytest.MonkeyPatch) -> None:
    query = vectors_of(1, 7)[0]
    with opened(path) as store:
        store.search("kettle", vector=query)
        assert ready(store)
    assert path.with_name("store.db.faiss-codes").exists()

    def built(*_: Any) -> Any:
        raise AssertionError("it was saved")

    monkeypatch.setattr(CompactIndex, "built", built)
    with opened(path) as store:
        assert found(store, query) == found(truth, query)
        new = {"id": "new", "vector": 3 * query}
        for each in (store, truth):
            each.add("pot", **new)  # type: ignore[arg-type]
            each.delete("5")
            each.add("kettle again", id="6", vector=-query)
        for asked in (query, -query, vectors_of(COUNT)[5]):
            assert found(store, asked) == found(truth, asked)
            assert found(store, asked, where=twofold.A.id > "2") == found(truth, asked, where=twofold.A.id > "2")
    with opened(path) as store:
        assert found(store, query, mode="vector")[0] == ("new", 1.0)


def test_what_is_written_while_it_is_built_is_found(path: Path, truth: HybridStore, held: threading.Event) -> None:
    query = vectors_of(1, 7)[0]
    with opened(path) as store:
        assert store.search("kettle", vector=query).has("index_building")
        for each in (store, truth):
            each.add("pot", id="new", vector=query)
            each.delete("17")
        held.set()
        assert ready(store)
        assert found(store, query, mode="vector")[0] == ("new", 1.0)
        for asked in (query, vectors_of(COUNT)[17]):
            assert found(store, asked) == found(truth, asked)


def test_writes_with_near_duplicates_and_links_do_not_wait_for_it(path: Path, held: threading.Event) -> None:
    with opened(path, near_duplicates=0.9, semantic_links=0.9) as store:
        added = store.add("kettle", id="twin", vector=vectors_of(COUNT)[5])
        assert added.near_duplicates == ()
        held.set()
        store.search("kettle", vector=vectors_of(1, 7)[0])
        assert ready(store)
        added = store.add("kettle", id="triplet", vector=vectors_of(COUNT)[5])
        assert {each.id for each in added.near_duplicates} >= {"5", "twin"}


def test_closing_does_not_wait_for_all_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    real = CompactIndex.built

    def built(dimension: int, batches: Any, stop: Any) -> Any:
        def endless() -> Iterator[Any]:
            batch = next(iter(batches()))
            while True:
                begun.set()
                yield batch

        return real(dimension, endless, stop)

    monkeypatch.setattr(CompactIndex, "built", built)
    with opened(path) as store:
        assert store.search("kettle", vector=vectors_of(1, 7)[0]).has("index_building")
        assert begun.wait(60)
    assert not path.with_name("store.db.faiss-codes").exists()


def test_where_faiss_fails_the_vectors_themselves_are_kept(
    path: Path, truth: HybridStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(CompactIndex, "built", built)
    query = vectors_of(1, 7)[0]
    with opened(path) as store:
        assert store.search("kettle", vector=query).has("index_building")
        assert ready(store)
        assert found(store, query) == found(truth, query)


@pytest.mark.parametrize("saved", [False, True])
def test_where_faiss_counts_wrong_the_vectors_themselves_are_kept(
    path: Path, truth: HybridStore, monkeypatch: pytest.MonkeyPatch, *, saved: bool
) -> None:
    query = vectors_of(1, 7)[0]
    if saved:
        with opened(path) as store:
            store.search("kettle", vector=query)
            assert ready(store)
    monkeypatch.setattr(codes, "_counts_right", lambda _: False)
    monkeypatch.setattr(flat, "LEAST_ROWS", 2000)
    with opened(path) as store:
        assert store.search("kettle", vector=query).has("index_building")
        assert ready(store)
        assert found(store, query) == found(truth, query)
        details = store.info().backend.details
        assert details["vector_index"] == "exact"
        assert "not right on this machine" in str(details["vector_index_problem"])


def test_another_process_sees_what_was_written_here(path: Path, truth: HybridStore) -> None:
    query = vectors_of(1, 7)[0]
    with opened(path) as store:
        store.search("kettle", vector=query)
        assert ready(store)
        with closing(opened(path)) as other:
            other.add("pot", id="new", vector=query)
            truth.add("pot", id="new", vector=query)
            assert found(store, query) == found(other, query) == found(truth, query)
