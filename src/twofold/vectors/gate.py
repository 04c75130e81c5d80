"""Who may use a structure at once that is safe to be read by many, and to be changed by one alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["Gate"]


class Gate:
    """Many may pass together, or one alone; who waits to be alone is let in before those that come later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)  # as a context it is a detour to its lock
        self._inside = 0  # -1: one alone
        self._waiting = 0
        self._together = _Together(self)

    def together(self) -> AbstractContextManager[None]:
        """Be inside with others who are content with company."""
        return self._together

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be inside with nobody else."""
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: self._inside == 0)
            except BaseException:  # Ctrl-C: whoever stands behind this one has nobody to wait for any more
                self._condition.notify_all()
                raise
            finally:
                self._waiting -= 1
            self._inside = -1
        try:
            yield
        finally:
            with self._condition:
                self._inside = 0
                self._condition.notify_all()

    def enter(self) -> None:
        """See :meth:`together`."""
        with self._lock:
            while self._waiting or self._inside < 0:
                self._condition.wait()
            self._inside += 1

    def leave(self) -> None:
        """See :meth:`together`."""
        with self._lock:
            self._inside -= 1
            if self._waiting:
                self._condition.notify_all()


class _Together:
    """A block of those who pass together; it has no state of its own."""

    __slots__ = ("_gate",)

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate.enter()

    def __exit__(self, *_: object) -> None:
        self._gate.leave()
