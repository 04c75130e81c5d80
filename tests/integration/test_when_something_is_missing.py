"""What a store answers when something is missing, row by row of the table in the README, through the public names.

The Ollama rows go through Ollama's own client to a server on this machine that speaks the real protocol.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import twofold
from twofold import (
    Access,
    BreakerState,
    CallableEmbedder,
    EmbeddingSettings,
    GivenVectors,
    HybridStore,
    OllamaEmbedder,
    SearchUnavailableError,
    StoreSettings,
)
from twofold.backends.sqlite import vec0
from twofold.testing import FailingEmbedder, FakeEmbedder, FakeOllama, FlakyEmbedder, OllamaFault
from twofold.vectors import faiss_library

PATIENT = 60.0
"""Seconds that no test waits for unless it fails."""
NOTES = {"key": "The deploy key lives in the vault.", "tea": "Anna prefers tea to coffee."}


def settings(**embedding: Any) -> StoreSettings:
    return StoreSettings(embedding=EmbeddingSettings(**embedding))


def fill(store: HybridStore, **more: str) -> HybridStore:
    store.add_many([{"id": id_, "text": text} for id_, text in (NOTES | more).items()])
    return store


def codes(result: Any) -> list[str]:
    return [each.code.value for each in result.degradations]


class Gated(FakeEmbedder):
    """Blocks, once it is shut, on an event that only the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0

    def embed(self, texts: Any, kind: Any) -> Any:
        self.calls += 1
        self.gate.wait(PATIENT)
        return super().embed(texts, kind)


@pytest.fixture
def gated() -> Iterator[Gated]:
    embedder = Gated()
    yield embedder
    embedder.gate.set()


# The embedder is well


def test_up_and_all_vectors_there() -> None:
    embedder = FakeEmbedder()
    key, tea, asked = embedder.embed([*NOTES.values(), "deploy key"], "document")
    background = max(0.0, 2 / 64 * float(key @ tea))
    with fill(twofold.open(":memory:", embedder=embedder)) as store:
        result = store.search("deploy key")
        assert (result.ids[0], codes(result)) == ("key", [])
        assert result[0].score == pytest.approx(0.6 * (float(key @ asked) - background) / (1 - background) + 0.4)
        assert store.search("deploy key", preset="rrf")[0].score == 1.0
        assert set(result[0].explanation.legs) == {"keyword", "vector"}
        assert store.info().embedder_state == twofold.EmbedderState(BreakerState.CLOSED, 0, None, None)


def test_some_vectors_there() -> None:
    embedder = FlakyEmbedder()
    with fill(twofold.open(":memory:", embedder=embedder, settings=settings(fill_in=False))) as store:
        embedder.down = True
        added = store.add("The deploy log is long.", id="log")
        assert (added.pending, codes(added)) == (True, ["embedder_unreachable"])
        embedder.down = False
        result = store.search("deploy")
        assert set(result.ids[:2]) == {"key", "log"}
        assert codes(result) == ["vectors_pending"]


def test_no_vectors_there_yet() -> None:
    embedder = FlakyEmbedder(down=True)
    with fill(twofold.open(":memory:", embedder=embedder, settings=settings(fill_in=False))) as store:
        embedder.down = False
        result = store.search("deploy")
        assert (result.ids, codes(result)) == (("key",), ["vectors_pending"])
        assert store.info().pending == len(NOTES)


# The embedder is not well


@pytest.mark.parametrize(
    ("embedder", "code"),
    [
        (FailingEmbedder(ConnectionError("no route")), "embedder_unreachable"),
        (FailingEmbedder(RuntimeError("out of memory")), "embedder_unreachable"),
        (FailingEmbedder(TimeoutError("slow")), "embedder_timeout"),
        (CallableEmbedder(lambda texts: [], "short"), "embedder_bad_output"),
        (CallableEmbedder(lambda texts: [[float("nan"), 1.0] for _ in texts], "nan"), "embedder_bad_output"),
        (CallableEmbedder(lambda texts: [[0.0, 0.0] for _ in texts], "zero"), "embedder_bad_output"),
        (CallableEmbedder(lambda texts: [[1.0] for _ in texts], "other", dimension=2), "embedder_bad_output"),
    ],
)
async def test_down_raising_or_giving_nonsense(embedder: Any, code: str) -> None:
    with fill(twofold.open(":memory:", embedder=embedder)) as store:
        assert store.info().pending == len(NOTES)
    with fill(twofold.open(":memory:", embedder=embedder)) as store:
        for result in (store.search("deploy key"), await store.asearch("deploy key")):
            assert result.ids == ("key",)
            assert result[0].score == pytest.approx(0.4 / (0.4 + 0.6))
            assert codes(result)[0] in {code, "embedder_unreachable"}, "not asked any more, if writing has found it out"
        with pytest.raises(SearchUnavailableError):
            store.search("deploy key", mode="vector")
    with twofold.open(":memory:", embedder=embedder) as store:
        assert codes(store.search("deploy key")) == [code]


def test_blocked_on_an_event_keywords_answer_before_it_is_released(gated: Gated) -> None:
    """And the next searches do not ask it, until the breaker has one try: here, when the late answer comes."""
    with fill(
        twofold.open(":memory:", embedder=gated, settings=settings(query_deadline=0.1, first_pause=60.0))
    ) as store:
        gated.gate.clear()
        calls = gated.calls
        first = store.search("deploy key")
        assert not gated.gate.is_set()
        assert (first.ids, codes(first)) == (("key",), ["embedder_timeout"])
        assert gated.calls == calls + 1
        for number in range(20):
            result = store.search(f"deploy key {number}")
            assert (result.ids, codes(result)) == (("key",), ["embedder_unreachable"])
            assert gated.calls == calls + 1
        state = store.info().embedder_state
        assert state is not None
        assert (state.breaker, state.failures) == (BreakerState.OPEN, 1)
        assert "gave no answer within 0.1 s" in str(state.last_error)
        guard = store._parts.guard
        assert guard is not None
        guard._settings = replace(guard._settings, query_deadline=PATIENT)  # what follows is not about time
        gated.gate.set()
        deadline = time.monotonic() + PATIENT
        while store.search("deploy key").degraded:
            assert time.monotonic() < deadline, "the breaker never asked again"
        assert set(store.search("the deploy key")[0].explanation.legs) == {"keyword", "vector"}


async def test_blocked_on_an_event_the_loop_goes_on(gated: Gated) -> None:
    """doobidoo/mcp-memory-service#433"""
    with fill(twofold.open(":memory:", embedder=gated, settings=settings(query_deadline=0.5))) as store:
        gated.gate.clear()
        beats = 0
        searching = asyncio.create_task(store.asearch("deploy key"))
        adding = asyncio.create_task(store.aadd("The deploy log."))
        while not searching.done():
            beats += 1
            await asyncio.sleep(0.005)
        assert codes(await searching) == ["embedder_timeout"]
        assert beats > 1, "once it begins by itself"
        assert not adding.done(), "a write has longer"
        gated.gate.set()
        await asyncio.wait_for(adding, PATIENT)


async def test_an_async_embedder_that_hangs() -> None:
    hanging = False

    async def embed(texts: list[str]) -> list[list[float]]:
        if hanging:
            await asyncio.Event().wait()
        return [[1.0, float(len(text))] for text in texts]

    embedder = CallableEmbedder(embed, "async")
    with twofold.open(":memory:", embedder=embedder, settings=settings(query_deadline=0.05)) as store:
        await store.aadd(NOTES["key"], id="key")
        hanging = True
        result = await store.asearch("deploy key")
        assert (result.ids, codes(result)) == (("key",), ["embedder_timeout"])


def test_one_warning_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    embedder = FlakyEmbedder(down=True)
    with fill(twofold.open(":memory:", embedder=embedder, settings=settings(fill_in=False))) as store:
        for _ in range(10):
            store.search("deploy key")
    assert [(each.name, each.levelname) for each in caplog.records] == [("twofold.embedders", "WARNING")]


def test_nobody_is_told_of_texts_that_are_not_theirs() -> None:
    class Telling(FailingEmbedder):
        def embed(self, texts: Any, kind: Any) -> Any:
            raise KeyError(texts[0])

    with twofold.open(":memory:", embedder=Telling(), settings=settings(failures_to_open=1)) as store:
        store.add("a note")
        store.search("the secret of ann", access=Access(user="ann"))
        other = store.search("a note", access=Access(user="ben"))
        assert codes(other) == ["embedder_unreachable"]
        assert "secret" not in f"{other.degradations} {store.info(access=Access(user='ben'))}"


# Ollama


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    pytest.importorskip("ollama", reason="the extra 'ollama' is not installed")
    with FakeOllama() as fake:
        yield fake


OLLAMA_ROWS = [
    (OllamaFault.NOT_PULLED, "embedder_unreachable"),
    (OllamaFault.BAD_REQUEST, "embedder_unreachable"),
    (OllamaFault.ERROR, "embedder_unreachable"),
    (OllamaFault.BUSY, "embedder_unreachable"),
    (OllamaFault.DROPPED, "embedder_unreachable"),
    (OllamaFault.WAITS, "embedder_timeout"),
    (OllamaFault.DRIPS, "embedder_timeout"),
    (OllamaFault.TOO_LONG, "embedder_bad_output"),
    (OllamaFault.NAN_REFUSED, "embedder_bad_output"),
    (OllamaFault.CUT, "embedder_bad_output"),
    (OllamaFault.HTML, "embedder_bad_output"),
    (OllamaFault.NO_FIELD, "embedder_bad_output"),
    (OllamaFault.EMPTY, "embedder_bad_output"),
    (OllamaFault.SHORT, "embedder_bad_output"),
    (OllamaFault.NAN, "embedder_bad_output"),
    (OllamaFault.NULL, "embedder_bad_output"),
    (OllamaFault.ZERO, "embedder_bad_output"),
    (OllamaFault.OTHER_DIMENSION, "embedder_bad_output"),
]


def test_every_fault_has_a_row() -> None:
    assert {fault for fault, _ in OLLAMA_ROWS} == set(OllamaFault)


def deadline_for(code: str) -> float:
    """Short where the time is to run out, and only there."""
    return 0.3 if code == "embedder_timeout" else PATIENT


def ollama_store(server: FakeOllama, **embedding: Any) -> HybridStore:
    """A store that waits long enough for everything, unless told otherwise."""
    options = {"query_deadline": PATIENT, "document_deadline": PATIENT, "warm_up": PATIENT, **embedding}
    return twofold.open(":memory:", embedder=OllamaEmbedder(host=server.host), settings=settings(**options))


@pytest.mark.parametrize(("fault", "code"), OLLAMA_ROWS)
def test_ollama_fails(server: FakeOllama, fault: OllamaFault, code: str) -> None:
    with ollama_store(server, query_deadline=deadline_for(code)) as store:
        fill(store)
        server.fault = fault
        result = store.search("deploy key")
        assert (result.ids, codes(result)) == (("key",), [code])
        server.fault = None
        server.release()
        assert store.search("Anna", mode="keyword").degraded is False


@pytest.mark.parametrize(("fault", "code"), OLLAMA_ROWS)
async def test_ollama_fails_async(server: FakeOllama, fault: OllamaFault, code: str) -> None:
    with ollama_store(server, query_deadline=deadline_for(code)) as store:
        await store.aadd_many([{"id": id_, "text": text} for id_, text in NOTES.items()])
        server.fault = fault
        result = await store.asearch("deploy key")
        assert (result.ids, codes(result)) == (("key",), [code])


@pytest.mark.parametrize(("fault", "code"), OLLAMA_ROWS)
def test_ollama_fails_while_records_are_added(server: FakeOllama, fault: OllamaFault, code: str) -> None:
    """ollama/ollama#7490: 200 and no embeddings, for a misspelt request, was stored as a vector of no length."""
    with ollama_store(server, document_deadline=deadline_for(code)) as store:
        store.embed_queries(["so that the dimension is known"])
        server.fault = fault
        report = store.add_many([{"id": id_, "text": text} for id_, text in NOTES.items()])
        assert (report.added, report.pending, codes(report)) == (len(NOTES), len(NOTES), [code])
        assert store.check().ok


@pytest.mark.parametrize("twin", ["search", "asearch"])
async def test_an_answer_that_drips_is_not_left_behind(server: FakeOllama, twin: str) -> None:
    """Each byte comes within the client's time-out; the deadline is that of the whole call, and ends its connection."""
    with ollama_store(server, query_deadline=0.3) as store:
        await store.aadd_many([{"id": id_, "text": text} for id_, text in NOTES.items()])
        server.fault = OllamaFault.DRIPS
        result = store.search("deploy key") if twin == "search" else await store.asearch("deploy key")
        assert (result.ids, codes(result)) == (("key",), ["embedder_timeout"])
        assert await asyncio.to_thread(server.hung_up.wait, PATIENT), "else the connection is kept, and its thread"
        guard = store._parts.guard
        assert guard is not None
        deadline = time.monotonic() + PATIENT
        while guard._breaker._hanging:
            assert time.monotonic() < deadline, "the call never came back"
            await asyncio.sleep(0.01)


def test_ollama_is_not_there_and_comes_back(server: FakeOllama) -> None:
    with ollama_store(server, failures_to_open=1, first_pause=0.05) as store:
        fill(store)
        server.stop()
        result = store.search("deploy key")
        assert (result.ids, codes(result)) == (("key",), ["embedder_unreachable"])
        assert "start Ollama" in str(result.degradations[0])
        server.start()
        deadline = time.monotonic() + PATIENT
        while store.search("deploy key").degraded:
            assert time.monotonic() < deadline
        assert store.info().embedder_state == twofold.EmbedderState(BreakerState.CLOSED, 0, None, None)


def test_ollama_without_the_model_says_how_to_get_it(server: FakeOllama, caplog: pytest.LogCaptureFixture) -> None:
    """CaviraOSS/LongMemory#58"""
    server.models.clear()
    with ollama_store(server) as store:
        fill(store)
        result = store.search("deploy key")
    assert "ollama pull nomic-embed-text" in str(result.degradations[0])
    assert "ollama pull nomic-embed-text" in caplog.records[0].getMessage()
    assert len(server.requests) == 2, "one write, one search: what is permanent is not retried"


@pytest.mark.parametrize("fault", [OllamaFault.ERROR, OllamaFault.NAN_REFUSED, OllamaFault.SHORT, OllamaFault.NULL])
def test_one_text_that_ollama_cannot_do_is_parked(server: FakeOllama, fault: OllamaFault) -> None:
    """ollama/ollama#14657"""
    server.fault = lambda texts: fault if any("poison" in text for text in texts) else None
    with ollama_store(server) as store:
        report = store.add_many([f"poison {n}" if n == 5 else f"note {n}" for n in range(12)])
        assert (report.added, report.pending) == (12, 1)
        assert store.info().pending == 1
        assert codes(store.search("note 3")) == ["vectors_pending"]
        assert store.search("poison", mode="keyword")[0].text == "poison 5"


def test_a_cold_start_is_waited_for(server: FakeOllama) -> None:
    """QuixiAI/Hexis#25"""
    with twofold.open(":memory:") as plain:
        assert plain.info().embedder_state is None
    server.fault = OllamaFault.WAITS
    with ollama_store(server, query_deadline=0.01) as store:
        loaded = threading.Timer(0.2, server.release)
        loaded.start()
        assert not store.search("anything").degraded
        loaded.join()


def test_another_model_of_the_same_length(server: FakeOllama, tmp_path: Path) -> None:
    """fabio-rovai/open-ontologies#74"""
    server.models.append("m-b:latest")
    with twofold.open(tmp_path / "memory.db", embedder=OllamaEmbedder(host=server.host)) as store:
        fill(store)
    with twofold.open(tmp_path / "memory.db", embedder=OllamaEmbedder("m-b", host=server.host)) as store:
        assert codes(store.search("deploy key")) == ["space_mismatch"]
        assert codes(store.add("another")) == ["space_mismatch"]


# No embedder, or another


def test_no_embedder_is_a_mode() -> None:
    with fill(twofold.open(":memory:")) as store:
        result = store.search("deploy key")
        assert (result.ids, result[0].score, codes(result)) == (("key",), 1.0, [])
        assert (store.info().mode, store.info().embedder_state) == ("keyword", None)


def test_the_caller_brings_vectors() -> None:
    with twofold.open(":memory:", embedder=GivenVectors("mine", 2)) as store:
        store.add(NOTES["key"], id="key", vector=[1.0, 0.0])
        store.add(NOTES["tea"], id="tea", vector=[0.0, 1.0])
        with_vector, without = store.search("deploy key", vector=[0.0, 1.0]), store.search("deploy key")
        assert (set(with_vector.ids), codes(with_vector)) == ({"key", "tea"}, [])
        assert (without.ids, codes(without)) == (("key",), [])
        assert store.info().embedder_state is None


def test_the_files_vectors_are_of_another_model(tmp_path: Path) -> None:
    with twofold.open(tmp_path / "memory.db", embedder=FakeEmbedder(name="old")) as store:
        fill(store)
    with twofold.open(tmp_path / "memory.db", embedder=FakeEmbedder(name="new")) as store:
        result = store.search("deploy key")
        assert (result.ids, codes(result)) == (("key",), ["space_mismatch"])


def test_no_keyword_matches() -> None:
    with fill(twofold.open(":memory:", embedder=FakeEmbedder())) as store:
        result = store.search("vaulted")
        assert (result.ids[0], codes(result)) == ("key", [])
        result = store.search("xyzzy")
        assert (set(result.ids), codes(result)) == (set(NOTES), [])


def test_the_keyword_index_is_broken() -> None:
    with fill(twofold.open(":memory:", embedder=FakeEmbedder())) as store:
        with store._backend._file.pool.writer() as connection:  # type: ignore[attr-defined]
            connection.execute("DROP TABLE fts")
        result = store.search("deploy key")
        assert (result.ids[0], codes(result)) == ("key", ["keyword_unavailable"])


def test_more_words_than_are_searched() -> None:
    with fill(twofold.open(":memory:")) as store:
        result = store.search("vault " + " ".join(f"word{number}" for number in range(600)))
        assert (result.ids, codes(result)) == (("key",), ["query_truncated"])


def indexed(path: Path, index: Any) -> HybridStore:
    return twofold.open(path, embedder=FakeEmbedder(), settings=StoreSettings(index=index))


def many(path: Path, index: Any) -> twofold.SearchResult:
    """A file with so many records that the index is asked, and what is right."""
    with indexed(path, index) as store:
        store.add_many([f"the deploy key {number}" for number in range(600)])
        return store.search("the deploy key 7", mode="vector")


def alike(result: twofold.SearchResult, whole: twofold.SearchResult) -> bool:
    return result.ids == whole.ids and [hit.score for hit in result] == pytest.approx([hit.score for hit in whole])


@pytest.mark.parametrize("index", ["faiss-flat", "faiss-hnsw", "sqlite-vec"])
def test_a_library_that_cannot_be_loaded(tmp_path: Path, index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = many(tmp_path / "memory.db", "exact")
    for name in ("faiss", "sqlite_vec"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    tried = (faiss_library._loaded, vec0.extension_problem)
    for each in tried:
        each.cache_clear()
    try:
        with indexed(tmp_path / "memory.db", index) as store:
            result = store.search("the deploy key 7", mode="vector")
            assert alike(result, whole)
            assert codes(result) == ["exact_fallback"]
            assert f"twofold[{'faiss' if 'faiss' in index else 'sqlite-vec'}]" in str(result.degradations[0])
            store.add("the deploy key is here too", id="new")
            assert store.search("the deploy key is here too", mode="vector").ids[0] == "new"
    finally:
        for each in tried:
            each.cache_clear()


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("DROP TABLE vec", "exact_fallback"),
        ("DELETE FROM vec_vector_chunks00", "exact_fallback"),
        ("UPDATE vec_chunks SET validity = x'00'", "exact_fallback"),
        ("UPDATE meta SET value = 'nonsense' WHERE name = 'vec0'", None),  # opening the file makes it anew
        ("DELETE FROM meta WHERE name = 'vec0'", None),
    ],
)
def test_a_vec0_table_that_is_damaged(tmp_path: Path, damage: str, code: str | None) -> None:
    pytest.importorskip("sqlite_vec", reason="the extra 'sqlite-vec' is not installed")
    path = tmp_path / "memory.db"
    whole = many(path, "sqlite-vec")
    with indexed(path, "sqlite-vec") as store:
        if store.info().backend.details["vector_index"] != "sqlite-vec":
            pytest.skip("this Python has no SQLite that can load sqlite-vec")
        with store._backend._file.pool.writer() as connection:  # type: ignore[attr-defined]
            connection.execute(damage)
    with indexed(path, "sqlite-vec") as store:
        result = store.search("the deploy key 7", mode="vector")
        assert alike(result, whole)
        assert codes(result) == ([] if code is None else [code])
        store.add("another", id="another")
        assert store.search("another", mode="vector").ids[0] == "another"
        store.reindex()
        result = store.search("the deploy key 7", mode="vector")
        assert (alike(result, whole), codes(result)) == (True, [])
        assert store.check().ok


@pytest.mark.parametrize(
    "damage", [lambda saved: saved[: len(saved) // 2], lambda saved: b"", lambda saved: saved + b"x"]
)
def test_a_saved_index_that_is_cut_short_is_made_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    pytest.importorskip("faiss", reason="the extra 'faiss' is not installed")
    path = tmp_path / "memory.db"
    whole = many(path, "faiss-hnsw")
    (saved,) = tmp_path.glob("memory.db.faiss-*")
    saved.write_bytes(damage(saved.read_bytes()))
    with indexed(path, "faiss-hnsw") as store:
        result = store.search("the deploy key 7", mode="vector")
        assert alike(result, whole)
        assert codes(result) == []


# What cannot be answered is an error, never an empty answer


@pytest.mark.parametrize(
    ("embedder", "text", "mode"),
    [
        (None, "deploy key", "vector"),
        (GivenVectors("mine", 2), "deploy key", "vector"),
        (FailingEmbedder(), "deploy key", "vector"),
        (FailingEmbedder(), "𝄞é", "vector"),
    ],
)
async def test_vectors_asked_for_and_impossible(embedder: Any, text: str, mode: str) -> None:
    with fill(twofold.open(":memory:", embedder=embedder)) as store:
        with pytest.raises(SearchUnavailableError):
            store.search(text, mode=mode)
        with pytest.raises(SearchUnavailableError):
            await store.asearch(text, mode=mode)


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_no_leg_can_answer(mode: str) -> None:
    with fill(twofold.open(":memory:", embedder=FailingEmbedder())) as store:
        with store._backend._file.pool.writer() as connection:  # type: ignore[attr-defined]
            connection.execute("DROP TABLE fts")
        with pytest.raises(SearchUnavailableError):
            store.search("deploy key", mode=mode)
