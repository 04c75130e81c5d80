"""Calling off what runs in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Cancellation", "current_cancellation"]


class Cancellation:
    """Set once; whoever does interruptible work under it is told.

    ``cancel()`` may be called from any thread, before, during or after the work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Tell all who listen, and all who will."""
        with self._lock:
            self._cancelled = True
            for callback in self._callbacks.values():
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call ``callback`` if this is cancelled within the block, or was before it; never after the block."""
        with self._lock:
            self._callbacks[id(callback)] = callback
            if self._cancelled:
                callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(id(callback), None)


current_cancellation: ContextVar[Cancellation | None] = ContextVar("twofold_cancellation", default=None)
"""What the work of this context is called off by; None if nothing can."""
