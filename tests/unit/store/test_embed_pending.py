"""Vectors that were missing are filled in: when asked to, by itself after an outage, by several processes at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import twofold
from twofold import Access, CallableEmbedder, EmbeddingSettings, HybridStore, Outcome, Progress, StoreSettings
from twofold.testing import FakeClock, FakeEmbedder, FlakyEmbedder

IMPATIENT = EmbeddingSettings(failures_to_open=1_000_000, fill_in=False)
"""Asks at every call, and does nothing by itself: most of these tests are not about that."""


@pytest.fixture
def embedder() -> FlakyEmbedder:
    return FlakyEmbedder(FakeEmbedder(8))


@pytest.fixture
def store(embedder: FlakyEmbedder) -> Iterator[HybridStore]:
    with twofold.open(":memory:", embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        yield store


def add_while_down(store: HybridStore, embedder: FlakyEmbedder, count: int, **more: Any) -> None:
    embedder.down = True
    store.add_many([{"text": f"kettle {n}", "id": f"m{n}"} for n in range(count)], **more)
    embedder.down = False


def test_what_waits_is_embedded_in_batches(store: HybridStore, embedder: FlakyEmbedder) -> None:
    """raphasouthall/neurostack#29."""
    store.add("teapot")
    add_while_down(store, embedder, 10)
    assert store.info().pending == 10
    progress: list[Progress] = []
    report = store.embed_pending(batch_size=4, progress=progress.append)
    assert (report.embedded, report.parked, report.remaining, report.degradations) == (10, 0, 0, ())
    assert progress == [Progress(4, 10), Progress(8, 10), Progress(10, 10)]
    assert store.info().pending == 0
    result = store.search("kettle 3", mode="vector", k=1)
    assert (result.ids, result.degraded) == (("m3",), False)
    assert store.embed_pending() == twofold.EmbedReport()
    assert store.check().ok


def test_a_file_that_no_embedder_has_served_is_taken_over(tmp_path: Path, embedder: FlakyEmbedder) -> None:
    path = tmp_path / "s.db"
    with twofold.open(path) as store:
        store.add_many([{"text": "kettle", "id": "m1"}, {"text": "", "id": "empty"}, {"text": "teapot", "id": "m2"}])
        with pytest.raises(twofold.ConfigurationError, match="embedder"):
            store.embed_pending()
    with twofold.open(path, embedder=embedder) as store:
        assert store.search("kettle").has("vectors_pending")
        assert store.embed_pending().embedded == 2
        assert store.search("kettle").degraded is False
        assert store.check().ok
    with twofold.open(path, embedder=FakeEmbedder(8, name="another")) as store:
        store.add("broker")
        with pytest.raises(twofold.ConfigurationError, match="made with"):
            store.embed_pending()
    with (
        twofold.open(path, embedder=twofold.GivenVectors("mine", 8)) as store,
        pytest.raises(twofold.ConfigurationError, match="embedder"),
    ):
        store.embed_pending()


def test_an_embedder_that_is_down_ends_the_work_and_loses_nothing(store: HybridStore, embedder: FlakyEmbedder) -> None:
    store.add("teapot")
    add_while_down(store, embedder, 5)
    embedder.down = True
    report = store.embed_pending()
    assert (report.embedded, report.parked, report.remaining) == (0, 0, 5)
    assert [each.code for each in report.degradations] == ["embedder_unreachable"]
    embedder.down = False
    assert store.embed_pending().embedded == 5


def test_a_bad_text_is_parked_and_does_not_stop_the_others() -> None:
    """ollama/ollama#14657."""
    refuses = {"kettle bad"}
    down = True

    def embed(texts: list[str], kind: str) -> list[list[float]]:
        if down:
            raise ConnectionError("down")
        return [[0.0, 0.0] if text in refuses else [1.0, float(len(text))] for text in texts]

    embedder = CallableEmbedder(embed, name="m", dimension=2)
    with twofold.open(":memory:", embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        store.add_many([{"text": f"kettle {word}", "id": word} for word in ("one", "bad", "two", "three")])
        down = False
        report = store.embed_pending(batch_size=2)
        assert (report.embedded, report.parked, report.remaining) == (3, 1, 1)
        assert store.embed_pending().parked == 0, "what is parked is left alone"
        assert store.search("kettle").has("vectors_pending")
        refuses.clear()
        assert store.embed_pending(retry_parked=True).embedded == 1
        refuses.add("kettle bad")
        store.add("kettle bad", id="again")
        assert store.info().pending == 1
        store.add("kettle good", id="again")
        assert store.info().pending == 0, "another text is another chance"
        assert store.check().ok


def test_a_vector_never_lands_on_a_text_that_changed_meanwhile() -> None:
    meanwhile: list[Any] = []
    down = True

    def embed(texts: list[str], kind: str) -> list[list[float]]:
        if down:
            raise ConnectionError("down")
        if kind == "document" and meanwhile:
            meanwhile.pop()()
        return [[1.0, float(len(text))] for text in texts]

    embedder = CallableEmbedder(embed, name="m", dimension=2)
    with twofold.open(":memory:", embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        store.add_many([{"text": "kettle", "id": "m1"}, {"text": "teapot", "id": "m2"}, {"text": "x", "id": "m3"}])
        down = False

        def change() -> None:
            store.add("another text altogether", id="m1")
            store.delete("m2")

        meanwhile.append(change)
        report = store.embed_pending()
        assert (report.embedded, report.remaining) == (1, 0)
        best = store.search("another text altogether", mode="vector")
        assert best.ids[0] == "m1"
        assert best[0].score == pytest.approx(1.0)
        assert store.check().ok


def test_only_what_the_access_may_see_is_embedded_and_counted(store: HybridStore, embedder: FlakyEmbedder) -> None:
    store.add("teapot")
    add_while_down(store, embedder, 3, access=Access(user="u1"))
    add_while_down(store, embedder, 2)
    report = store.embed_pending(access=Access(user="u2"))
    assert (report.embedded, report.remaining) == (2, 0)
    assert store.embed_pending(access=Access.everything()).embedded == 3


def test_archived_records_are_filled_in_too(store: HybridStore, embedder: FlakyEmbedder) -> None:
    store.add("teapot")
    add_while_down(store, embedder, 1)
    store.archive("m0")
    assert store.embed_pending().embedded == 1
    store.restore("m0")
    assert store.search("kettle 0", mode="vector", k=1).ids == ("m0",)


def test_adding_a_waiting_record_again_gives_it_its_vector_and_nothing_else(
    store: HybridStore, embedder: FlakyEmbedder
) -> None:
    store.add("teapot")
    add_while_down(store, embedder, 1)
    before = store.get("m0")
    again = store.add("kettle 0", id="m0")
    assert (again.outcome, again.pending) == (Outcome.UNCHANGED, False)
    assert store.get("m0") == before
    assert store.info().pending == 0


def test_a_claim_lapses_so_that_a_dead_process_holds_nothing_up() -> None:
    clock, down = FakeClock(datetime(2026, 1, 1, tzinfo=UTC)), True

    def embed(texts: list[str], kind: str) -> list[list[float]]:
        if down:
            raise ConnectionError("down")
        return [[1.0, 0.5] for _ in texts]

    settings = StoreSettings(embedding=IMPATIENT, clock=clock)
    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="m", dimension=2), settings=settings) as store:
        store.add("kettle")
        down = False
        store.add("teapot")
        visible = store._visible(Access(), include_archived=True)
        with store._backend.write() as writer:  # a process that claims and dies
            assert len(writer.claim_pending(visible, 10, clock(), clock.now.replace(hour=1))) == 1
        assert store.embed_pending().embedded == 0
        clock.advance(hours=2)
        assert store.embed_pending().embedded == 1


def test_it_happens_by_itself_once_the_embedder_is_well_again(tmp_path: Path) -> None:
    clock_free = EmbeddingSettings(failures_to_open=1, first_pause=0.01, longest_pause=0.01)
    down, filled = True, threading.Event()

    def embed(texts: list[str], kind: str) -> list[list[float]]:
        if down:
            raise ConnectionError("down")
        if kind == "document":
            filled.set()
        return [[1.0, float(len(text))] for text in texts]

    embedder = CallableEmbedder(embed, name="m", dimension=2)
    with twofold.open(tmp_path / "s.db", embedder=embedder, settings=StoreSettings(embedding=clock_free)) as store:
        store.add("kettle", id="m1", access=Access(user="u1"))
        down = False
        for number in range(1_000):  # until the breaker lets one through
            if store.search(f"question {number}").degraded and not filled.wait(0.02):
                continue
            break
        assert filled.wait(30)
        for _ in range(1_000):
            if store.info(access=Access(user="u1")).pending == 0:
                break
            threading.Event().wait(0.01)
        assert store.search("kettle", mode="vector", access=Access(user="u1")).ids == ("m1",)


SHARER = """
import sys, twofold
from twofold.testing import FakeEmbedder
class Counting(FakeEmbedder):
    seen = []
    def embed(self, texts, kind):
        if kind == "document":
            Counting.seen += texts
        return super().embed(texts, kind)
with twofold.open(sys.argv[1], embedder=Counting(8)) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    store.embed_pending(batch_size=7)
    print(*Counting.seen, sep="\\n")
"""


def test_two_processes_share_the_work_and_do_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    embedder = FlakyEmbedder(FakeEmbedder(8))
    with twofold.open(path, embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        store.add("teapot")
        add_while_down(store, embedder, 300)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", SHARER, str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        said = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            out, errors = process.communicate(timeout=120)
            assert (process.returncode, errors) == (0, "")
            said += [line for line in out.splitlines() if line]
        assert sorted(said) == sorted(f"kettle {n}" for n in range(300))
        assert store.info().pending == 0
        assert store.check().ok
