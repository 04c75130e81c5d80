"""Whatever is read, with touch off the file stays as it is, byte for byte; with touch on it changes in touches only."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold
from twofold import A, Access, SearchParams
from twofold.store import Get, ListRecords, Search
from twofold.testing import FakeEmbedder

WORDS = ("kettle", "teapot", "broker", "nothing such", "")
IDS = ("m0", "m3", "no such id")


def open_(path: Path) -> twofold.HybridStore:
    return twofold.open(
        path,
        embedder=FakeEmbedder(8),
        reranker=lambda question, texts: [len(text) / 100 for text in texts],
        hyde=lambda question: f"what is said of {question}",
        settings=twofold.StoreSettings(touch_flush_seconds=80_000),
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reads") / "store.db"
    with open_(path) as store:
        store.add_many(
            [{"id": f"m{n}", "text": f"{WORDS[n % 3]} number {n}", "tags": ("t",)} for n in range(9)],
            extracted_together=True,
        )
        store.archive("m8")
        store.add("personal kettle", access=Access(user="u1"))
    return path


def digest(path: Path) -> str:
    """Of the file alone: nobody has it open, so there is no log."""
    assert not path.with_name(f"{path.name}-wal").exists()
    return hashlib.sha256(path.read_bytes()).hexdigest()


params = st.builds(
    SearchParams,
    expand=st.integers(0, 3),
    hops=st.integers(1, 3),
    include_archived=st.booleans(),
    trace=st.booleans(),
    pool=st.integers(1, 20),
    rescore=st.booleans(),
    fusion=st.sampled_from(("rrf", "calibrated")),
    mmr_lambda=st.none() | st.just(0.5),
    rerank=st.sampled_from((0, 5)),
    hyde=st.sampled_from(("never", "always")),
)
reads = st.one_of(
    st.tuples(
        st.just("search"),
        st.sampled_from(WORDS),
        st.fixed_dictionaries(
            {
                "k": st.integers(0, 5),
                "mode": st.sampled_from(("hybrid", "keyword", "vector")),
                "params": params,
                "phrasings": st.just(()) | st.just(("broker", "tea")),
            }
        ),
    ),
    st.tuples(st.just("search_many"), st.just(WORDS[:3]), st.fixed_dictionaries({"params": params})),
    st.tuples(st.just("context"), st.sampled_from(WORDS), st.fixed_dictionaries({"params": params})),
    st.tuples(st.just("export_jsonl"), st.builds(io.BytesIO), st.just({"vectors": True})),
    st.tuples(st.sampled_from(("get", "links", "neighbors")), st.sampled_from(IDS), st.just({})),
    st.tuples(st.just("get_many"), st.just(IDS), st.just({"include_archived": True})),
    st.tuples(st.just("distinct"), st.sampled_from(("kind", "tags")), st.just({})),
    st.tuples(st.just("batch"), st.just([Get("m0"), Search("kettle"), ListRecords()]), st.just({})),
    st.tuples(
        st.sampled_from(("list", "count")),
        st.none(),
        st.fixed_dictionaries({"where": st.none() | st.just(A.id == "m1")}),
    ),
    st.tuples(st.sampled_from(("info", "namespaces", "stats")), st.none(), st.just({})),
)


def carry_out(store: twofold.HybridStore, read: tuple[str, Any, dict[str, Any]], access: Access) -> None:
    name, argument, more = read
    # Some of what is asked for is not there, and a text with nothing to embed cannot be searched by vector.
    with suppress(twofold.RecordNotFoundError, twofold.SearchUnavailableError):
        getattr(store, name)(*(() if argument is None else (argument,)), access=access, **more)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(reads, min_size=1, max_size=6), user=st.none() | st.just("u1"))
def test_reads_with_touch_off_change_nothing_in_the_file(path: Path, asked: list[Any], user: str | None) -> None:
    before = digest(path)
    with open_(path) as store:
        for read in asked:
            carry_out(store, read, Access(user=user))
        changes = store._parts.backend._file.pool._main
        assert changes is None or changes.total_changes == 0
    assert digest(path) == before


@settings(max_examples=20, deadline=None)
@given(asked=st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 5), params), min_size=1, max_size=5))
def test_reads_with_touch_on_change_touches_only(path: Path, asked: list[tuple[str, int, SearchParams]]) -> None:
    everything = Access.everything()

    def records(store: twofold.HybridStore) -> dict[str, twofold.Record]:
        return {record.id: record for record in store.list(access=everything, include_archived=True)}

    with open_(path) as store:
        before = records(store)
        wanted = dict.fromkeys(before, 0)
        for text, k, each in asked:
            result = store.search(text, k=k, params=replace(each, touch=True))
            for hit in (*result.hits, *result.linked):
                wanted[hit.id] += 1
    with open_(path) as store:
        after = records(store)
        assert store.check().ok
    assert {id_: record.access_count - before[id_].access_count for id_, record in after.items()} == wanted
    for id_, record in after.items():
        touched = {"access_count": record.access_count, "last_accessed": record.last_accessed}
        assert replace(before[id_], **touched) == record
        assert (record.last_accessed > before[id_].last_accessed) == (wanted[id_] > 0)
