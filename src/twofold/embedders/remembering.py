"""The vectors of the queries asked last."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

__all__ = ["Remembered"]


class Remembered:
    """A bounded cache that forgets what was not asked for the longest. May be used from any number of threads."""

    def __init__(self, size: int) -> None:
        """Begin empty.

        Args:
            size: how many vectors at most; with 0 nothing is remembered.
        """
        self._size = size
        self._vectors: OrderedDict[tuple[str, str], npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> npt.NDArray[np.float32] | None:
        """The vector of (fingerprint, text), or None."""
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, key: tuple[str, str], vector: npt.NDArray[np.float32]) -> None:
        """Remember it, and forget another if there are too many."""
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
