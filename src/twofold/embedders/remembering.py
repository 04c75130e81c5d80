"""What was made for the queries asked last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Remembered"]

_T = TypeVar("_T")


class Remembered(Generic[_T]):
    """A bounded cache that forgets what was not asked for the longest. May be used from any number of threads."""

    def __init__(self, size: int) -> None:
        """Begin empty.

        Args:
            size: how many at most; with 0 nothing is remembered.
        """
        self._size = size
        self._values: OrderedDict[tuple[Hashable, ...], _T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, *key: Hashable) -> _T | None:
        """What was made for this, or None."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, value: _T, *key: Hashable) -> None:
        """Remember it for this, and forget another if there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
