"""What a backend builds beside its callers, so that none of them waits for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from twofold.backends.sqlite import forks
from twofold.backends.sqlite.driver import Connection

__all__ = ["Background", "Job", "Stopping"]

FORK_PATIENCE: Final = 1.0
"""Seconds that a fork waits for a job to let go of its session. A child of a process that is in the middle of one
cannot open the file; nothing else becomes of it."""


class Stopping(Protocol):
    """Whether a job is to end early; to be asked often, outside of sessions too."""

    def __call__(self) -> bool:
        """True once the backend is being closed, or the process is about to fork."""
        ...


Job: TypeAlias = Callable[[Stopping], None]
"""Something to be built. It opens what sessions it needs itself, and deals with its own errors. One that ended early
because of a fork is done again."""


class Background:
    """One thread that does jobs one after the other; it is there only while there are some.

    It is a daemon: a process that ends without closing its store does not wait for it. Jobs only read, or write what
    can be made anew. In a forked child there is neither the thread nor any job.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._doing: str | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._forking = False
        self._told = False  # whether the job was told to end early
        forks.watch(self, ahead=True)

    def start(self, name: str, job: Job) -> None:
        """Do ``job`` soon, unless one of this name is waiting or being done."""
        with self._condition:
            if self._closed or name in self._jobs or name == self._doing:
                return
            self._jobs[name] = job
            self._go_on()

    def is_busy(self, name: str) -> bool:
        """Whether a job of this name is waiting or being done."""
        with self._condition:
            return name in self._jobs or name == self._doing

    def wait(self, name: str, timeout: float | None = None) -> bool:
        """Wait until no job of this name is waiting or being done; False if that took longer than ``timeout``."""
        with self._condition:
            return self._condition.wait_for(lambda: name not in self._jobs and name != self._doing, timeout)

    def close(self) -> None:
        """Take no more jobs, and wait for the one that is being done to see that it is to end."""
        with self._condition:
            self._closed = True
            self._jobs.clear()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def before_fork(self) -> None:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._condition.acquire()
        self._forking = True
        self._condition.wait_for(lambda: self._doing is None, FORK_PATIENCE)

    def after_fork_in_parent(self) -> None:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._forking = False
        self._go_on()
        self._condition.release()

    def after_fork_in_child(self) -> list[Connection]:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._closed, self._doing, self._thread = True, None, None
        self._jobs.clear()
        self._condition.release()
        return []

    def _go_on(self) -> None:
        if self._jobs and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="twofold-background", daemon=True)
            self._thread.start()

    def _is_stopping(self) -> bool:
        self._told |= self._closed or self._forking
        return self._told

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._jobs or self._forking:
                    self._thread = None
                    return
                name, job = self._jobs.popitem(last=False)
                self._doing, self._told = name, False
            try:
                job(self._is_stopping)
            except BaseException:
                with self._condition:
                    self._doing, self._thread = None, None
                    self._go_on()
                    self._condition.notify_all()
                raise
            with self._condition:
                self._doing = None
                if self._told and not self._closed:
                    self._jobs[name] = job
                self._condition.notify_all()
