"""What a backend builds beside its callers, so that none of them waits for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeAlias

__all__ = ["Background", "Job", "Stopping"]


class Stopping(Protocol):
    """Whether a job is to end early; to be asked often."""

    def __call__(self) -> bool:
        """True once the backend is being closed."""
        ...


Job: TypeAlias = Callable[[Stopping], None]
"""Something to be built. It opens what sessions it needs itself, and deals with its own errors."""


class Background:
    """One thread that does jobs one after the other; it is there only while there are some.

    It is a daemon: a process that ends without closing its store does not wait for it. Jobs only read, or write what
    can be made anew.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._doing: str | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, name: str, job: Job) -> None:
        """Do ``job`` soon, unless one of this name is waiting or being done."""
        with self._condition:
            if self._closed or name in self._jobs or name == self._doing:
                return
            self._jobs[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="twofold-background", daemon=True)
                self._thread.start()

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

    def _run(self) -> None:
        while True:
            with self._condition:
                self._doing = None
                self._condition.notify_all()
                if not self._jobs:
                    self._thread = None
                    return
                self._doing, job = self._jobs.popitem(last=False)
            try:
                job(lambda: self._closed)
            except BaseException:
                with self._condition:
                    self._doing, self._thread = None, None
                    self._jobs.clear()
                    self._condition.notify_all()
                raise
