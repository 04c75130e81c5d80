"""What stands between a store and its embedder: batches, their halves, the cache, deadlines in real threads."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from twofold.cancellation import Cancellation, current_cancellation
from twofold.embedders import BreakerState, CallableEmbedder, GivenVectors, Guard, calling_loop
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
)
from twofold.testing import FakeEmbedder

GuardOf = Callable[..., Guard]
PATIENT = 60.0
"""Seconds that no test waits for unless it fails."""
NEVER = 1000.0
"""A deadline that no test lives to see."""
SHORT = {"query_deadline": 0.02, "warm_up": 0.0, "document_deadline": 0.02}


def refusing(bad: set[str], error: Callable[[], Exception]) -> Callable[[Sequence[str]], Any]:
    def answer(texts: Sequence[str]) -> Any:
        if bad & set(texts):
            raise error()
        return [[1.0, float(len(text))] for text in texts]

    return answer


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail("it did not come true in 60 s")


# Queries


def test_a_query_is_one_vector(guard_of: GuardOf) -> None:
    guard, fake = guard_of(FakeEmbedder(8)), FakeEmbedder(8)
    np.testing.assert_array_equal(guard.query("tea"), fake.embed(["tea"], "query")[0])
    np.testing.assert_array_equal(guard.queries(["tea", "cup", "tea"]), fake.embed(["tea", "cup", "tea"], "query"))
    assert guard.queries([]).shape == (0, 8)
    assert (guard.fingerprint, guard.dimension, guard.embeds) == ("fake:64".replace("64", "8"), 8, True)


def test_queries_are_remembered_the_last_ones_only(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, query_cache_size=2)
    for text in ("a", "b", "a", "c", "a", "b"):  # b is asked again: c had pushed it out
        guard.query(text)
    assert scripted.calls == [["a"], ["b"], ["c"], ["b"]]
    guard.queries(["b", "d", "a", "d"])
    assert scripted.calls[4:] == [["d"]]
    assert guard.documents(["b"])[0] is not None
    assert scripted.calls[5:] == [["b"]], "a document is another thing than a query"


def test_a_text_that_stands_for_a_document_is_embedded_as_one_and_waited_for_as_a_query(guard_of: GuardOf) -> None:
    class Telling:
        fingerprint, dimension = "telling", 2
        asked: list[tuple[str, list[str]]] = []  # noqa: RUF012 - of this test alone

        def embed(self, texts: Sequence[str], kind: Any) -> Any:
            self.asked.append((kind, list(texts)))
            return np.full((len(texts), 2), 1.0 if kind == "query" else 2.0, dtype=np.float32)

    guard = guard_of(Telling(), query_cache_size=4)
    assert guard.query("a").tolist() == [1, 1]
    assert [row.tolist() for row in guard.stand_ins(["a", "b"])] == [[2, 2], [2, 2]]
    assert [row.tolist() for row in guard.stand_ins(["b"])] == [[2, 2]]
    assert guard.query("a").tolist() == [1, 1]
    assert Telling.asked == [("query", ["a"]), ("document", ["a", "b"])]


def test_it_has_a_querys_deadline(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, query_deadline=0.05, warm_up=0, document_deadline=3600)
    scripted.gate.clear()
    with pytest.raises(EmbedderTimeoutError):
        guard.stand_ins(["a"])


def test_what_is_remembered_is_nobody_elses(guard_of: GuardOf) -> None:
    shared = np.ones((1, 2), dtype=np.float32)
    guard = guard_of(CallableEmbedder(lambda texts: shared, "shared"), query_cache_size=2)
    first = guard.query("a")
    shared[:] = 7
    assert guard.query("a").tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 3


def test_failures_are_not_remembered(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, query_cache_size=2)
    scripted.error = ConnectionError("no")
    with pytest.raises(EmbedderUnreachableError):
        guard.query("a")
    scripted.error = None
    assert guard.query("a").tolist() == [1, 1]


def test_given_vectors_are_never_asked_for(guard_of: GuardOf) -> None:
    guard = guard_of(GivenVectors("m", 2))
    assert not guard.embeds
    with pytest.raises(ConfigurationError, match="takes its vectors from the caller"):
        guard.query("a")


# Documents, in batches and their halves


def test_documents_go_in_batches(scripted: Any, guard_of: GuardOf) -> None:
    assert len(guard_of(scripted, batch_size=2).documents(list("abcde"))) == 5
    assert scripted.calls == [["a", "b"], ["c", "d"], ["e"]]
    scripted.batch_size = 4
    guard_of(scripted, batch_size=2).documents(list("abcde"))
    assert scripted.calls[3:] == [["a", "b", "c", "d"], ["e"]], "the embedder's own word counts more"
    assert guard_of(scripted).documents([]) == []


@pytest.mark.parametrize("bad", [{"a"}, {"h"}, {"c", "f"}, set("abg")])
def test_one_bad_text_leaves_the_others_their_vectors(scripted: Any, guard_of: GuardOf, bad: set[str]) -> None:
    scripted.answer = refusing(bad, lambda: RuntimeError("cannot read it"))
    guard = guard_of(scripted)
    rows = guard.documents(list("abcdefgh"))
    assert {text for text, row in zip("abcdefgh", rows, strict=True) if isinstance(row, EmbeddingError)} == bad
    # Each bad text fails alone, and in every batch on the way there: 8, 4, 2, 1.
    assert len(scripted.calls) <= 1 + 2 * len(bad) * math.log2(8)
    assert guard.state.failures == 0, "a batch with a vector in it is no failure of the embedder"


def test_a_short_answer_is_asked_for_again_in_halves_never_attached_by_position(scripted: Any, guard_of: Any) -> None:
    def answer(texts: Sequence[str]) -> Any:  # leaves out what it does not like
        return [[float(ord(text)), 1.0] for text in texts if text != "b"]

    scripted.answer = answer
    rows = guard_of(scripted).documents(list("abc"))
    assert [row.tolist() if isinstance(row, np.ndarray) else type(row) for row in rows] == [
        [ord("a"), 1],
        EmbedderOutputError,
        [ord("c"), 1],
    ]


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (ConnectionRefusedError("no"), 1),
        (TimeoutError(), 1),
        (EmbedderUnreachableError("down", text_at_fault=False), 1),
        (RuntimeError("all of them"), 7),  # the batch, its halves, its quarters
    ],
)
def test_an_embedder_that_is_down_is_not_asked_for_every_text(
    scripted: Any, guard_of: GuardOf, error: Exception, calls: int
) -> None:
    scripted.error = error
    rows = guard_of(scripted).documents([str(number) for number in range(32)])
    assert all(isinstance(row, EmbeddingError) for row in rows)
    assert len(rows) == 32
    assert len(scripted.calls) == calls


def test_after_a_batch_that_found_it_down_the_rest_is_not_asked_for(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, batch_size=2)

    def answer(texts: Sequence[str]) -> Any:
        if "c" in texts:
            raise ConnectionError("gone")
        return [[1.0, 2.0] for _ in texts]

    scripted.answer = answer
    rows = guard.documents(list("abcdefgh"))
    assert [isinstance(row, EmbeddingError) for row in rows] == [False] * 2 + [True] * 6
    assert scripted.calls == [["a", "b"], ["c", "d"]]


def test_an_embedder_that_goes_away_between_halves_keeps_what_it_gave(scripted: Any, guard_of: GuardOf) -> None:
    def answer(texts: Sequence[str]) -> Any:
        if len(texts) > 2:
            raise RuntimeError("too many")
        if "c" in texts:
            raise ConnectionError("gone")
        return [[1.0, 2.0] for _ in texts]

    scripted.answer = answer
    guard = guard_of(scripted)
    rows = guard.documents(list("abcd"))
    assert [isinstance(row, EmbedderUnreachableError) for row in rows] == [False, False, True, True]
    assert guard.state.failures == 1


def test_one_length_across_batches(guard_of: GuardOf) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0] * (3 if "e" in texts else 2) for _ in texts]

    rows = guard_of(CallableEmbedder(embed, "m"), batch_size=2).documents(list("abcdef"))
    assert [isinstance(row, EmbedderOutputError) for row in rows] == [False] * 4 + [True] * 2
    rows = guard_of(CallableEmbedder(embed, "m"), batch_size=2).documents(list("abef"))
    assert all(isinstance(row, EmbedderOutputError) for row in rows), "two of each: no length is guessed"


def test_a_text_the_model_knows_no_word_of_is_no_failure(scripted: Any, guard_of: GuardOf) -> None:
    scripted.answer = lambda texts: [[0.0, 0.0] for _ in texts]
    guard = guard_of(scripted, failures_to_open=1)
    for _ in range(3):
        assert isinstance(guard.documents(["?"])[0], EmbedderOutputError)
        with pytest.raises(EmbedderOutputError):
            guard.query("?")
    assert guard.state.breaker is BreakerState.CLOSED


# Deadlines


def test_a_query_that_hangs_is_left_behind(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, **SHORT)
    scripted.gate.clear()
    with pytest.raises(EmbedderTimeoutError, match=r"'scripted' gave no answer within 0\.02 s"):
        guard.query("a")
    with pytest.raises(EmbedderUnreachableError, match=r"was not asked: it failed 0\.0 s ago .*; next try in 1\.0 s"):
        guard.query("b")
    assert scripted.entered.acquire(timeout=PATIENT)  # on a busy machine later than it was given up
    assert scripted.calls == [["a"]]


def test_a_write_that_hangs_has_its_records_wait(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, batch_size=2, **SHORT)
    scripted.gate.clear()
    rows = guard.documents(list("abcdef"))
    assert [type(row) for row in rows] == [EmbedderTimeoutError] * 6
    assert scripted.entered.acquire(timeout=PATIENT)
    assert scripted.calls == [["a", "b"]]


def test_halves_share_the_deadline_of_their_batch(scripted: Any, seconds: Any, guard_of: GuardOf) -> None:
    def answer(texts: Sequence[str]) -> Any:
        seconds.now += 4
        if "d" in texts:
            raise RuntimeError("d")
        return [[1.0, 2.0] for _ in texts]

    scripted.answer = answer
    guard = guard_of(scripted, document_deadline=10.0)
    rows = guard.documents(list("abcd"))  # abcd, ab, cd take 12 s; then there is no time left for c and d
    assert [isinstance(row, EmbedderTimeoutError) for row in rows] == [False, False, True, True]
    assert scripted.calls == [list("abcd"), list("ab"), list("cd")]


def test_the_first_query_may_wait_for_a_model_to_be_loaded(scripted: Any, guard_of: GuardOf) -> None:
    """QuixiAI/Hexis#25"""
    guard = guard_of(scripted, query_deadline=0.02, warm_up=PATIENT)
    scripted.gate.clear()
    waiting: list[Any] = []
    thread = threading.Thread(target=lambda: waiting.append(guard.query("a")))
    thread.start()
    assert scripted.entered.acquire(timeout=PATIENT)
    thread.join(0.1)
    assert thread.is_alive(), "0.02 s have passed, and it waits"
    scripted.gate.set()
    thread.join(PATIENT)
    assert waiting[0].tolist() == [1, 1]
    scripted.gate.clear()
    with pytest.raises(EmbedderTimeoutError, match=r"within 0\.02 s"):
        guard.query("b")


def test_a_late_answer_has_it_asked_again_at_once_but_once_only(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, **SHORT)
    for expected in (0.0, 2.0):  # of one that is always late: after the first attempt in vain the pause has doubled
        scripted.gate.clear()
        with pytest.raises(EmbedderTimeoutError):
            guard.query("a")
        scripted.gate.set()
        if expected == 0.0:
            wait_until(lambda: guard.state.next_try == 0.0)
    wait_until(lambda: guard._breaker._hanging == 0)
    assert guard.state.next_try == 2.0


def test_calls_that_never_come_back_are_few(scripted: Any, seconds: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, **SHORT)
    scripted.gate.clear()
    for _ in range(5):
        with pytest.raises(EmbeddingError):
            guard.query("a")
        seconds.now += 1000
    with pytest.raises(EmbedderUnreachableError, match="2 calls to it have not come back yet"):
        guard.query("a")
    for _ in range(2):
        assert scripted.entered.acquire(timeout=PATIENT)
    assert len(scripted.calls) == 2
    scripted.gate.set()
    wait_until(lambda: guard._breaker._hanging == 0)
    assert guard.query("a").tolist() == [1, 1]


def test_no_more_than_so_many_threads(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, query_deadline=PATIENT, warm_up=PATIENT)
    scripted.gate.clear()
    threads = [threading.Thread(target=guard.query, args=(str(number),)) for number in range(20)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        assert scripted.entered.acquire(timeout=PATIENT)
    with pytest.raises(EmbedderTimeoutError, match="was busy with 8 other calls"):
        guard._threads["query"].call(lambda: None, 0.05)
    assert len(scripted.calls) == 8
    scripted.gate.set()
    for thread in threads:
        thread.join(PATIENT)
    assert len(scripted.calls) == 20


def test_in_process_embedders_are_asked_on_the_callers_thread(guard_of: GuardOf) -> None:
    threads: list[threading.Thread] = []

    class Here(FakeEmbedder):
        in_process = True

        def embed(self, texts: Sequence[str], kind: Any) -> Any:
            threads.append(threading.current_thread())
            return super().embed(texts, kind)

    class Elsewhere(Here):
        in_process = False

    guard_of(Here()).query("a")
    guard_of(Elsewhere()).query("a")
    assert threads[0] is threading.current_thread()
    assert (threads[1].name, threads[1].daemon) == ("twofold-embedder", True)


def test_a_hang_does_not_hold_up_the_end_of_the_program() -> None:
    script = """
import threading, twofold
from twofold import CallableEmbedder, EmbeddingSettings, StoreSettings
settings = StoreSettings(embedding=EmbeddingSettings(query_deadline=0.05, warm_up=0, document_deadline=0.05))
embedder = CallableEmbedder(lambda texts: threading.Event().wait(), "m")
store = twofold.open(":memory:", embedder=embedder, settings=settings)
store.add("a kettle")
print(store.search("kettle").ids != ())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "True"


# What is not the embedder's fault


@pytest.mark.parametrize("error", [ConfigurationError("no"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_the_callers_own_doing_is_no_failure(scripted: Any, guard_of: GuardOf, error: BaseException) -> None:
    scripted.error = error
    guard = guard_of(scripted, failures_to_open=1)
    for ask in (lambda: guard.query("a"), lambda: guard.documents(["a"])):
        with pytest.raises(type(error)):
            ask()
    assert guard.state.breaker is BreakerState.CLOSED
    assert guard.state.last_error is None


def test_cancelling_ends_the_wait(scripted: Any, guard_of: GuardOf) -> None:
    guard, cancellation = guard_of(scripted, query_deadline=NEVER, warm_up=NEVER), Cancellation()
    scripted.gate.clear()
    raised: list[BaseException] = []

    def ask() -> None:
        current_cancellation.set(cancellation)
        try:
            guard.query("a")
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert scripted.entered.acquire(timeout=PATIENT)
    cancellation.cancel()
    thread.join(PATIENT)
    assert [type(error) for error in raised] == [asyncio.CancelledError]
    assert guard.state.breaker is BreakerState.CLOSED


async def test_an_async_embedder_is_cancelled_at_the_deadline(guard_of: GuardOf) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def embed(texts: list[str]) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    token = calling_loop.set(asyncio.get_running_loop())
    try:
        for deadline in (0.02, 0.2, 2.0, 20.0):  # a busy machine may not even begin within the first
            guard = guard_of(CallableEmbedder(embed, "m"), query_deadline=deadline, warm_up=0.0)
            with pytest.raises(EmbedderTimeoutError):
                await asyncio.to_thread(guard.query, "a")
            if entered.is_set():
                break
    finally:
        calling_loop.reset(token)
    await asyncio.wait_for(cancelled.wait(), PATIENT)


async def test_async_embedders_are_refused_where_they_would_block_the_loop(guard_of: GuardOf) -> None:
    async def embed(texts: list[str]) -> Any:
        return [[1.0] for _ in texts]

    with pytest.raises(ConfigurationError, match="asearch"):
        guard_of(CallableEmbedder(embed, "m")).query("a")
