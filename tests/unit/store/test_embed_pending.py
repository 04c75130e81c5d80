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
        assert store.embed_pending() == twofold.EmbedReport(remaining=1, elsewhere=1), "it does not look finished"
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
        assert filled_in(store)
        assert store.search("kettle", mode="vector", access=Access(user="u1")).ids == ("m1",)


class Gated(FakeEmbedder):
    """Once shut, waits at each call for documents until the test opens it, and says when one has come."""

    def __init__(self) -> None:
        super().__init__(8)
        self.shut = False
        self.arrived, self.gate = threading.Semaphore(0), threading.Event()

    def embed(self, texts: Any, kind: Any) -> Any:
        if kind == "document" and self.shut:
            self.arrived.release()
            assert self.gate.wait(30)
        return super().embed(texts, kind)


@pytest.fixture
def gated() -> Iterator[Gated]:
    embedder = Gated()
    yield embedder
    embedder.gate.set()


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A file in which three of four records wait for vectors."""
    embedder = FlakyEmbedder(FakeEmbedder(8))
    with twofold.open(tmp_path / "w.db", embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        store.add("teapot")
        add_while_down(store, embedder, 3)
    return tmp_path / "w.db"


BY_HAND = StoreSettings(embedding=EmbeddingSettings(fill_in=False))


def assert_all_can_be_filled_in(path: Path) -> None:
    with twofold.open(path, embedder=FakeEmbedder(8), settings=BY_HAND) as store:
        assert store.embed_pending() == twofold.EmbedReport(embedded=3)
        assert store.check().ok


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), twofold.ConfigurationError("mine")])
def test_an_error_in_the_middle_of_a_batch_gives_its_claims_back(
    waiting: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Any:
        raise error

    with twofold.open(waiting, embedder=FakeEmbedder(8), settings=BY_HAND) as store:
        with monkeypatch.context() as patch:
            patch.setattr(store._parts.guard, "documents", interrupted)
            with pytest.raises(type(error)) as raised:
                store.embed_pending(batch_size=2)
            assert raised.value is error
        assert store.embed_pending() == twofold.EmbedReport(embedded=3)


def test_claims_that_cannot_be_given_back_do_not_mask_the_error(waiting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with twofold.open(waiting, embedder=FakeEmbedder(8), settings=BY_HAND) as store:

        def closed_and_interrupted(*_: Any) -> Any:
            store._backend.close()
            raise KeyboardInterrupt

        monkeypatch.setattr(store._parts.guard, "documents", closed_and_interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.embed_pending()


def test_close_gives_back_what_a_call_in_another_thread_has_claimed(waiting: Path, gated: Gated) -> None:
    ended: list[BaseException] = []

    def work() -> None:
        try:
            store.embed_pending(batch_size=2)
        except twofold.StoreClosedError as error:
            ended.append(error)

    store = twofold.open(waiting, embedder=gated, settings=BY_HAND)
    gated.shut = True
    thread = threading.Thread(target=work)
    thread.start()
    assert gated.arrived.acquire(timeout=30)
    store.close()
    assert not gated.gate.is_set(), "the embedder is not waited for"
    assert_all_can_be_filled_in(waiting)
    gated.gate.set()
    thread.join(30)
    assert len(ended) == 1


def test_close_gives_back_what_is_claimed_in_the_background(waiting: Path, gated: Gated) -> None:
    with twofold.open(waiting, embedder=gated) as store:
        gated.shut = True
        store.search("teapot")
        assert gated.arrived.acquire(timeout=30)
        (worker,) = (each for each in threading.enumerate() if each.name == "twofold-backfill")
    assert_all_can_be_filled_in(waiting)
    gated.gate.set()
    worker.join(30)
    assert not worker.is_alive()


def test_calls_run_side_by_side_and_say_what_others_are_at_work_on(waiting: Path, gated: Gated) -> None:
    reports: list[twofold.EmbedReport] = []
    with twofold.open(waiting, embedder=gated, settings=BY_HAND) as store:
        gated.shut = True
        thread = threading.Thread(target=lambda: reports.append(store.embed_pending()))
        thread.start()
        assert gated.arrived.acquire(timeout=30)
        assert store.embed_pending() == twofold.EmbedReport(remaining=3, elsewhere=3)
        gated.gate.set()
        thread.join(30)
        assert reports == [twofold.EmbedReport(embedded=3)]


def filled_in(store: HybridStore) -> bool:
    for _ in range(3_000):
        if store.info(access=Access.everything()).pending == 0:
            return True
        threading.Event().wait(0.01)
    return False


def test_it_happens_by_itself_when_an_embedder_answers_that_was_always_well(waiting: Path) -> None:
    with twofold.open(waiting, embedder=FakeEmbedder(8)) as store:
        store.search("teapot")
        assert filled_in(store)
        assert store.search("kettle 2", mode="vector", k=1).ids == ("m2",)


def test_it_does_not_happen_by_itself_while_a_call_is_at_work(waiting: Path) -> None:
    """The call's own first answer would start it, and leave the call less to do."""
    with twofold.open(waiting, embedder=FakeEmbedder(8)) as store:
        done: list[int] = []
        report = store.embed_pending(batch_size=1, progress=lambda each: done.append(each.done))
        assert (report, done) == (twofold.EmbedReport(embedded=3), [1, 2, 3])


def test_what_a_call_leaves_of_others_happens_by_itself_after_it(waiting: Path) -> None:
    with twofold.open(waiting, embedder=FakeEmbedder(8)) as store:
        assert store.embed_pending(batch_size=1, access=Access(user="u1")).embedded == 3
    embedder = FlakyEmbedder(FakeEmbedder(8))
    with twofold.open(waiting, embedder=embedder, settings=StoreSettings(embedding=IMPATIENT)) as store:
        add_while_down(store, embedder, 2, access=Access(user="u1"))
        add_while_down(store, embedder, 2, access=Access(user="u2"))
    with twofold.open(waiting, embedder=FakeEmbedder(8)) as store:
        assert store.embed_pending(access=Access(user="u1")).embedded == 2
        assert filled_in(store)


@pytest.mark.parametrize("fill_in", [True, False])
def test_an_answer_alone_neither_takes_a_file_over_nor_overrules_the_setting(
    tmp_path: Path, waiting: Path, fill_in: bool
) -> None:
    path = waiting
    if fill_in:
        path = tmp_path / "never.db"
        with twofold.open(path) as store:
            store.add("kettle")
    settings = StoreSettings(embedding=EmbeddingSettings(fill_in=fill_in))
    with twofold.open(path, embedder=FakeEmbedder(8), settings=settings) as store:
        store.search("kettle")
        for worker in [each for each in threading.enumerate() if each.name == "twofold-backfill"]:
            worker.join(30)
        assert store.info().pending == (1 if fill_in else 3)


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
