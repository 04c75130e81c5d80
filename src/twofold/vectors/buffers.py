"""Where the rows of the exact index lie."""

from __future__ import annotations

import threading

import numpy as np

from twofold.vectors.protocol import Floats, Kernel, Keys, Scores
from twofold.vectors.scoring import is_increasing

__all__ = ["Buffers"]


class Buffers:
    """Room for rows, shared by snapshots: each sees the first so many, only the newest may append.

    Rows are kept scaled by a power of two to a length of 0.5 to 1: that changes no bit of their cosines, and sums
    of them cannot overflow.
    """

    __slots__ = ("capacity", "increasing", "inverse_lengths", "kernel", "keys", "lengths", "lock", "used", "vectors")

    def __init__(self, dimension: int, capacity: int, kernel: Kernel) -> None:
        self.capacity = capacity
        self.kernel = kernel
        self.vectors = np.empty((capacity, dimension), dtype=np.float32)
        self.lengths = np.empty(capacity, dtype=np.float64)
        self.inverse_lengths = np.empty(capacity, dtype=np.float32)
        self.keys = np.empty(capacity, dtype=np.int64)
        self.used = 0
        self.increasing = True
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The bytes of the rows that are used: room that was never written to takes no memory."""
        arrays = (self.vectors, self.lengths, self.inverse_lengths, self.keys)
        return sum(array[: self.used].nbytes for array in arrays)

    def append(self, after: int, keys: Keys, vectors: Floats, lengths: Scores) -> bool:
        """Add rows behind the first ``after``; False if another snapshot has taken that place, or there is no room."""
        with self.lock:
            stop = after + len(keys)
            if self.used != after or stop > self.capacity:
                return False
            self.keys[after:stop] = keys
            self.increasing &= is_increasing(self.keys[max(0, after - 1) : stop])
            self.vectors[after:stop] = vectors
            self.lengths[after:stop] = lengths
            self.inverse_lengths[after:stop] = 1.0 / lengths
            self.used = stop
            return True
