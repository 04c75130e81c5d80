"""When an embedder that failed is asked again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from twofold.config import EmbeddingSettings
from twofold.embedders import BreakerState, EmbedderState, Guard
from twofold.errors import ConfigurationError, EmbedderTimeoutError, EmbedderUnreachableError, EmbeddingError
from twofold.types import DegradationCode

GuardOf = Callable[..., Guard]


def ask(guard: Guard) -> EmbeddingError | None:
    try:
        guard.query("a")
    except EmbeddingError as error:
        return error
    return None


def test_after_so_many_failures_it_is_left_alone(scripted: Any, seconds: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=3, first_pause=10.0)
    scripted.error = ConnectionError("no")
    assert guard.state == EmbedderState(BreakerState.CLOSED, 0, None, None)
    for count in (1, 2):
        ask(guard)
        assert guard.state == EmbedderState(BreakerState.CLOSED, count, "ConnectionError", None)
    ask(guard)
    assert guard.state == EmbedderState(BreakerState.OPEN, 3, "ConnectionError", 10.0)
    seconds.now += 4
    error = ask(guard)
    assert isinstance(error, EmbedderUnreachableError)
    assert str(error) == (
        "the embedder 'scripted' was not asked: it failed 4.0 s ago (ConnectionError); next try in 6.0 s"
    )
    assert len(scripted.calls) == 3


def test_only_failures_in_a_row_count(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=2)
    for _ in range(5):
        scripted.error = ConnectionError("no")
        ask(guard)
        scripted.error = None
        assert ask(guard) is None
    assert len(scripted.calls) == 10


def test_one_that_runs_out_of_time_is_left_alone_at_once(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=3)
    scripted.error = TimeoutError("slow")
    assert isinstance(ask(guard), EmbedderTimeoutError)
    assert guard.state.breaker is BreakerState.OPEN


def test_pauses_double_up_to_the_longest_and_begin_anew(scripted: Any, seconds: Any, guard_of: GuardOf) -> None:
    """memrynote/memry#1378: suspended with a growing, bounded delay, tried after it, back to normal after success."""
    guard = guard_of(scripted, failures_to_open=1, first_pause=1.0, longest_pause=5.0)
    for _ in range(2):
        scripted.error = ConnectionError("no")
        for pause in (1.0, 1.0 * 2, 1.0 * 2 * 2, 5.0, 5.0):
            calls = len(scripted.calls)
            ask(guard)
            assert guard.state.next_try == pause
            seconds.now += pause - 0.01
            ask(guard)
            assert len(scripted.calls) == calls + 1
            seconds.now += 0.01
        scripted.error = None
        assert ask(guard) is None
        assert guard.state == EmbedderState(BreakerState.CLOSED, 0, None, None)


def test_one_call_at_a_time_finds_out(scripted: Any, seconds: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=1)
    scripted.error = ConnectionError("no")
    ask(guard)
    assert scripted.entered.acquire(timeout=30)
    seconds.now += 1
    scripted.error = None
    scripted.gate.clear()
    probe = threading.Thread(target=ask, args=(guard,))
    probe.start()
    assert scripted.entered.acquire(timeout=30)
    assert guard.state.breaker is BreakerState.HALF_OPEN
    error = ask(guard)
    assert "another call is trying it now" in str(error)
    scripted.gate.set()
    probe.join(30)
    assert guard.state.breaker is BreakerState.CLOSED
    assert len(scripted.calls) == 2


@pytest.mark.parametrize("raised", [ConfigurationError("no"), KeyboardInterrupt()])
def test_an_attempt_that_is_broken_off_decides_nothing(
    scripted: Any, seconds: Any, guard_of: GuardOf, raised: BaseException
) -> None:
    guard = guard_of(scripted, failures_to_open=1)
    scripted.error = ConnectionError("no")
    ask(guard)
    seconds.now += 1
    scripted.error = raised
    with pytest.raises(type(raised)):
        guard.query("a")
    scripted.error = None
    assert ask(guard) is None


def test_what_was_asked_before_it_opened_has_no_say_after(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=1)
    scripted.gate.clear()
    slow = threading.Thread(target=ask, args=(guard,))
    slow.start()
    assert scripted.entered.acquire(timeout=30)
    inner, scripted.embed = scripted.embed, None
    ask(guard)  # 'NoneType' is not callable
    assert guard.state.breaker is BreakerState.OPEN
    scripted.embed = inner
    scripted.gate.set()
    slow.join(30)
    assert guard.state.breaker is BreakerState.OPEN


def test_a_query_that_waits_in_vain_behind_documents_does_not_stop_them(scripted: Any, guard_of: GuardOf) -> None:
    """One request at a time is what Ollama does by default."""
    guard = guard_of(scripted, query_deadline=0.02, warm_up=0.0, batch_size=1, first_pause=1000.0)
    scripted.gate.clear()
    rows: list[Any] = []
    writing = threading.Thread(target=lambda: rows.extend(guard.documents(["x", "y"])))
    writing.start()
    assert scripted.entered.acquire(timeout=30)
    assert isinstance(ask(guard), EmbedderTimeoutError)
    assert "was not asked" in str(ask(guard))
    scripted.gate.set()
    writing.join(30)
    assert [isinstance(row, EmbeddingError) for row in rows] == [False, False]
    assert guard.state.breaker is BreakerState.CLOSED, "documents are embedded, so it is well"
    scripted.gate.clear()
    assert isinstance(ask(guard), EmbedderTimeoutError)
    assert "was not asked" in str(guard.documents(["z"])[0]), "with no document under way, it hangs"


@pytest.mark.parametrize("answer", [[], [[float("nan"), 1.0]], [[1.0, 2.0, 3.0]], None, "text"])
def test_bad_output_counts(scripted: Any, guard_of: GuardOf, answer: Any) -> None:
    guard = guard_of(scripted, failures_to_open=2)
    scripted.answer = lambda texts: answer
    ask(guard)
    guard.documents(["a"])
    assert guard.state.breaker is BreakerState.OPEN


def test_one_warning_an_outage_and_a_word_when_it_is_over(
    scripted: Any, seconds: Any, guard_of: GuardOf, caplog: pytest.LogCaptureFixture
) -> None:
    """nowledge-co/community#599: one warning per outage, not per call."""
    caplog.set_level(logging.INFO, "twofold.embedders")
    recovered: list[BreakerState] = []
    guard = guard_of(scripted, failures_to_open=2)
    guard.when_recovered(lambda: recovered.append(guard.state.breaker))
    for outage in (1, 2):
        scripted.error = ConnectionError("no route")
        for _ in range(5):
            ask(guard)
        seconds.now += 100
        ask(guard)
        seconds.now += 100
        scripted.error = None
        ask(guard)
        ask(guard)
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * outage
        assert recovered == [BreakerState.CLOSED] * outage
    assert "no route" in caplog.records[0].getMessage()
    assert caplog.records[1].getMessage() == "the embedder 'scripted' answers again"


def test_the_first_answer_is_told_once(scripted: Any, guard_of: GuardOf) -> None:
    told: list[str] = []
    guard = guard_of(scripted)
    guard.when_first_answered(lambda: told.append("first"))
    guard.when_recovered(lambda: told.append("recovered"))
    ask(guard)
    ask(guard)
    assert told == ["first"]


def test_a_first_answer_that_ends_an_outage_is_a_recovery(scripted: Any, guard_of: GuardOf) -> None:
    told: list[str] = []
    guard = guard_of(scripted, failures_to_open=2)
    guard.when_first_answered(lambda: told.append("first"))
    guard.when_recovered(lambda: told.append("recovered"))
    scripted.error = ConnectionError("no route")
    ask(guard)
    scripted.error = None
    ask(guard)
    ask(guard)
    assert told == ["recovered"]


def test_what_others_are_told_repeats_no_text(scripted: Any, guard_of: GuardOf) -> None:
    guard = guard_of(scripted, failures_to_open=1)
    scripted.error = KeyError("the secret text of somebody else")
    ask(guard)
    assert "secret" not in str(ask(guard))
    assert "secret" not in str(guard.state)


def test_a_refusal_is_unreachable() -> None:
    from twofold.embedders import degradation_of

    assert degradation_of(EmbedderUnreachableError("x")).code is DegradationCode.EMBEDDER_UNREACHABLE


@pytest.mark.parametrize(
    "wrong",
    [
        {"query_deadline": 0},
        {"query_deadline": float("inf")},
        {"query_deadline": True},
        {"document_deadline": -1},
        {"warm_up": -1},
        {"batch_size": 0},
        {"failures_to_open": 0},
        {"first_pause": 0},
        {"longest_pause": "60"},
        {"query_cache_size": -1},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        EmbeddingSettings(**wrong)
