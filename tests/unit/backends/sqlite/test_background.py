"""Jobs beside the callers: one after the other, none twice, and gone at close and in a forked child."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from twofold.backends.sqlite.background import Background, Stopping
from twofold.testing.patience import PATIENT


class Held:
    """A job that goes on until it may end."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.times = 0

    def __call__(self, stopping: Stopping) -> None:
        self.times += 1
        self.begun.set()
        assert self.may_end.wait(PATIENT)


class UntilTold:
    """A job that goes on until it is told to end."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.times = 0

    def __call__(self, stopping: Stopping) -> None:
        self.times += 1
        self.begun.release()
        while not stopping():
            pass


@pytest.fixture
def background() -> Any:
    made = Background()
    yield made
    made.close()


def test_jobs_are_done_one_after_the_other(background: Background) -> None:
    first, done = Held(), []
    background.start("first", first)
    background.start("second", lambda stopping: done.append(("second", stopping())))
    background.start("third", lambda stopping: done.append(("third", stopping())))
    assert first.begun.wait(PATIENT)
    assert background.is_busy("first")
    assert background.is_busy("third")
    assert not done
    first.may_end.set()
    assert background.wait("third", PATIENT)
    assert done == [("second", False), ("third", False)]
    assert not background.is_busy("first")


def test_a_job_that_waits_or_is_being_done_is_not_begun_twice(background: Background) -> None:
    first, second = Held(), Held()
    for job, name in ((first, "first"), (second, "second")) * 2:
        background.start(name, job)
    assert first.begun.wait(PATIENT)
    background.start("first", first)
    assert not background.wait("first", 0)
    first.may_end.set()
    second.may_end.set()
    assert background.wait("second", PATIENT)
    assert background.wait("first", PATIENT)
    assert (first.times, second.times) == (1, 1)
    background.start("first", first)
    assert background.wait("first", PATIENT)
    assert first.times == 2


def test_one_that_fails_does_not_take_others_with_it(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    held, done, told = Held(), threading.Event(), threading.Semaphore(0)
    monkeypatch.setattr(threading, "excepthook", lambda arguments: told.release())

    def fails(stopping: Stopping) -> None:
        raise ZeroDivisionError

    background.start("held", held)
    background.start("fails", fails)
    background.start("after", lambda stopping: done.set())
    held.may_end.set()
    assert done.wait(PATIENT)
    assert background.wait("fails", PATIENT)
    assert told.acquire(timeout=PATIENT)  # as of any thread that fails


def test_close_ends_what_is_done_and_drops_what_waits(background: Background) -> None:
    job, never = UntilTold(), Held()
    background.start("long", job)
    background.start("never", never)
    assert job.begun.acquire(timeout=PATIENT)
    background.close()
    assert not background.is_busy("long")
    assert background.wait("never", PATIENT)
    background.start("never", never)
    assert not background.is_busy("never")
    assert (job.times, never.times) == (1, 0)


def test_a_job_may_close_it(background: Background) -> None:
    background.start("closes", lambda stopping: background.close())
    assert background.wait("closes", PATIENT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_job_makes_way_for_a_fork_and_is_done_again_in_the_parent_alone(background: Background) -> None:
    job = UntilTold()
    background.start("long", job)
    assert job.begun.acquire(timeout=PATIENT)
    child = os.fork()
    if child == 0:
        background.start("long", job)
        idle = not background.is_busy("long") and background.wait("long", 0)
        background.close()
        os._exit(0 if idle and job.times == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert job.begun.acquire(timeout=PATIENT)
    assert job.times == 2
    background.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_does_not_wait_for_good(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twofold.backends.sqlite.background.FORK_PATIENCE", 0.01)
    held = Held()
    background.start("held", held)
    assert held.begun.wait(PATIENT)
    child = os.fork()
    if child == 0:
        background.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert background.is_busy("held")
    held.may_end.set()
    assert background.wait("held", PATIENT)
    assert held.times == 1
