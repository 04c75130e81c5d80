"""Calls that may hang, under a deadline.

Python cannot stop a thread, so a call that may block is made in another one, which the caller stops waiting for. Such
threads are daemons: one that never returns holds up neither the caller nor the end of the program. They are kept for a
few seconds after a call, for the next: starting one takes some 100 µs, waking one 30 µs.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import copy_context
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from twofold.cancellation import Cancellation, current_cancellation
from twofold.embedders.breaker import Breaker
from twofold.embedders.bridging import blocks_a_loop, runs_a_loop
from twofold.errors import EmbedderTimeoutError, EmbedderUnreachableError

__all__ = ["Threads"]

_T = TypeVar("_T")

_KEPT: Final = 5.0
"""Seconds that a thread is kept for the next call."""


class Threads:
    """Makes calls in other threads, at most so many at a time."""

    def __init__(self, most: int, name: str, breaker: Breaker) -> None:
        """No thread is started yet.

        Args:
            most: how many calls at a time, those left behind included, at least 1.
            name: what errors call the one who is asked.
            breaker: told of calls that are left behind, and when they end after all.
        """
        self._most = most
        self._name = name
        self._breaker = breaker
        self._forget_threads()

    def _forget_threads(self) -> None:
        """As at first, and in the child of a fork, where none of them runs."""
        self._process = os.getpid()
        self._free = threading.BoundedSemaphore(self._most)
        self._idle: deque[_Worker] = deque()

    def call(self, work: Callable[[], _T], seconds: float) -> _T:
        """What ``work()`` gives, or raises, in a thread that has this thread's context variables.

        At the deadline work that is async is cancelled, and work that blocks is left behind.

        Args:
            work: what is to be done.
            seconds: how long that may take, waiting for its turn included.

        Raises:
            EmbedderTimeoutError: it took longer.
            EmbedderUnreachableError: no thread can be started.
            asyncio.CancelledError: the call was called off while it waited.
        """
        if seconds <= 0:
            raise EmbedderTimeoutError(f"{self._name} was not asked: the time for it was up")
        if os.getpid() != self._process:
            self._forget_threads()
        started = monotonic()
        if not self._free.acquire(timeout=seconds):
            raise EmbedderTimeoutError(
                f"{self._name} was busy with {self._most} other calls, and none ended within {seconds:.3g} s"
            )
        call = _Call(work, self._breaker)
        outer = current_cancellation.get()
        try:
            self._hand_over(call)
            with nullcontext() if outer is None else outer.calling(call.call_off):
                finished = call.wait(seconds - (monotonic() - started))
        finally:
            call.leave()
        if outer is not None and outer.cancelled:
            raise asyncio.CancelledError("called off while the embedder was asked")
        if not finished:
            raise EmbedderTimeoutError(f"{self._name} gave no answer within {seconds:.3g} s")
        return call.result()

    def _hand_over(self, call: _Call[_T]) -> None:
        """Have a thread make it.

        Raises:
            EmbedderUnreachableError: the system has no more threads, or the interpreter is ending.
        """
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(self._idle, self._free)
            try:
                worker.start()
            except RuntimeError as error:
                self._free.release()
                call.finish()
                message = f"no thread could be started to ask {self._name}: {error}"
                raise EmbedderUnreachableError(message, text_at_fault=False) from error
        worker.inbox.put(call)


class _Worker(threading.Thread):
    """Makes one call after another, and ends when there is none for a while."""

    def __init__(self, idle: deque[_Worker], free: threading.BoundedSemaphore) -> None:
        super().__init__(name="twofold-embedder", daemon=True)
        self.inbox: SimpleQueue[_Call[Any]] = SimpleQueue()
        self._idle = idle
        self._free = free

    def run(self) -> None:
        while self._serve_one():
            pass

    def _serve_one(self) -> bool:
        """Whether to go on."""
        try:
            call = self.inbox.get(timeout=_KEPT)
        except Empty:
            try:
                self._idle.remove(self)
            except ValueError:  # somebody has just taken it from there, and a call is coming
                return True
            return False
        call.make()
        self._idle.append(self)
        self._free.release()
        call.finish()
        return True


class _Call(Generic[_T]):
    """One call: what is to be done, and what came of it."""

    def __init__(self, work: Callable[[], _T], breaker: Breaker) -> None:
        self._work = work
        self._breaker = breaker
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._finished = False
        self._left = False
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._cancellation = Cancellation()
        self._context = copy_context()
        self._context.run(current_cancellation.set, self._cancellation)
        if runs_a_loop():
            self._context.run(blocks_a_loop.set, True)  # noqa: FBT003 - a context variable takes no other

    def make(self) -> None:
        """Do it."""
        try:
            self._results.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 - raised again, whatever it is, where it is waited for
            self._error = error

    def finish(self) -> None:
        """Wake who waits for it, or say that it has come back."""
        with self._lock:
            self._finished = True
            left = self._left
        self._awake.set()
        if left:
            self._breaker.came_back(answered=bool(self._results))

    def wait(self, seconds: float) -> bool:
        """Whether it ended in time."""
        self._awake.wait(max(0.0, seconds))
        return self._finished

    def call_off(self) -> None:
        """Stop waiting, and cancel what can be."""
        self._cancellation.cancel()
        self._awake.set()

    def leave(self) -> None:
        """Nobody waits any more; if it is still at work, say so and cancel what can be."""
        with self._lock:
            if self._finished:
                return
            self._left = True
            self._breaker.hangs()
        self._cancellation.cancel()

    def result(self) -> _T:
        """What came of it."""
        if self._error is not None:
            raise self._error
        return self._results[0]
