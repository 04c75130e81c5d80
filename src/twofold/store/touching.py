"""Touches: which records were of use, kept in memory until a write takes them along.

A search only appends to a list, so it is never slowed, blocked or failed by it. What has gathered is written in the
transaction of the next write, by age (a timer that is started with the first touch of a while), and by ``close()``.
If the file is locked the touches stay where they are. A search that ends while another thread closes the store may not
be counted.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Final, NamedTuple

from twofold.backends.protocol import Backend, Touch, Writer
from twofold.config import StoreSettings
from twofold.errors import StoreError

__all__ = ["Touches"]

_MOST_WAITING: Final = 10_000
"""Searches after which the touches are written whatever their age, so that they take little memory."""


_MOST_GROWTH: Final = 1e12
"""Any strength has come to its cap long before."""


class _Search(NamedTuple):
    """What one search returned."""

    keys: tuple[int, ...]
    at: datetime
    growth: float


class Touches:
    """The touches of one store, for all its threads and views.

    Args:
        backend: where they go.
        settings: how long they may wait, and what they do to a record's strength.
    """

    def __init__(self, backend: Backend, settings: StoreSettings) -> None:
        self._backend = backend
        self._age = settings.touch_flush_seconds
        self._growth = settings.touch_growth
        self._waiting: deque[_Search] = deque()  # its own methods are atomic: a search takes no lock to append
        self._taken: dict[int, Touch] = {}  # of a flush that failed
        self._lock = threading.Lock()  # of the timer alone
        self._timer: threading.Timer | None = None
        self._closed = False
        self._pid = os.getpid()

    def add(self, keys: Sequence[int], at: datetime, growth: float | None = None) -> None:
        """Count one use of each of ``keys``. Of a store that cannot be written nothing is kept.

        Args:
            keys: each once.
            at: when.
            growth: what it multiplies their strength with. Default: the settings'.
        """
        if not keys or self._backend.read_only:
            return
        self._waiting.append(_Search(tuple(keys), at, self._growth if growth is None else growth))
        if self._timer is None:
            self._start_timer(self._age)
        elif len(self._waiting) == _MOST_WAITING:
            self._start_timer(0.0)

    def writing(self) -> AbstractContextManager[Writer]:
        """A transaction of the backend that, when all else is done, takes along the touches that there were when it was
        asked for. What raises leaves them where they were.
        """
        return self._taking_along() if self._waiting or self._taken else self._backend.write()

    @contextmanager
    def _taking_along(self) -> Iterator[Writer]:
        taken: dict[int, Touch] = {}
        try:
            with self._backend.write() as writer:
                yield writer
                taken = self._take()
                if taken:
                    writer.touch(taken)
        except BaseException:
            self._give_back(taken)
            raise

    def flush(self) -> None:
        """Write what has gathered, if anything has.

        Raises:
            StoreError: it cannot be written now; it is kept.
        """
        if self._waiting or self._taken:
            with self.writing():
                pass

    def close(self) -> None:
        """Write what has gathered and stop the timer; before the backend is closed. Calling it again does nothing.

        Raises:
            StoreError: it could not be written, and is lost.
        """
        if os.getpid() != self._pid:
            return  # the touches are the parent's, as the file is
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
        try:
            self.flush()
        finally:
            self._take()  # there is nowhere left to write it to

    def _take(self) -> dict[int, Touch]:
        """All that has gathered, which is no longer kept here."""
        with self._lock:
            taken, self._taken = self._taken, {}
            while self._waiting:
                for key in (search := self._waiting.popleft()).keys:
                    _count(taken, key, Touch(1, search.at, search.growth))
            return taken

    def _give_back(self, taken: dict[int, Touch]) -> None:
        if not taken:
            return
        with self._lock:
            for key, touch in taken.items():
                _count(self._taken, key, touch)
        self._start_timer(self._age)

    def _start_timer(self, seconds: float) -> None:
        with self._lock:
            if self._closed:
                return
            if self._timer is not None:
                if seconds:
                    return
                self._timer.cancel()
            timer = threading.Timer(seconds, self._by_age)
            timer.daemon = True
            timer.name = "twofold-touches"
            self._timer = timer
            try:
                timer.start()
            except RuntimeError:  # no thread can be had, at the end of the interpreter say: the next write takes them
                self._timer = None

    def _by_age(self) -> None:
        with self._lock:
            self._timer = None
        try:
            self.flush()
        except StoreError:  # locked, or full: they are kept, and it is tried again
            self._start_timer(self._age)


def _count(touches: dict[int, Touch], key: int, touch: Touch) -> None:
    """Add a touch to those of its record."""
    known = touches.get(key)
    if known is None:
        touches[key] = touch
        return
    growth = min(_MOST_GROWTH, (known.growth or 1.0) * (touch.growth or 1.0))
    touches[key] = Touch(known.times + touch.times, max(known.at, touch.at), growth)
