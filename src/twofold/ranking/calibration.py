"""What a cosine means: how near to each other vectors are that have nothing to do with each other."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["SAMPLES", "background_of", "spread_evenly"]

SAMPLES: Final = 64
"""How many records the background is taken from; of fewer it counts in proportion."""

_MOST: Final = 0.99
"""No background is higher: something must be left to tell records apart by."""


def background_of(vectors: npt.NDArray[Any]) -> float:
    """The background of a space: ``min(1, n / 64) · mean_{i≠j} cos(v_i, v_j)``, from 0 to 0.99.

    Of n records taken without regard to what they say, nearly all pairs have nothing to do with each other. With few
    records that does not hold, and their mean would be off: so it counts in proportion to their number.

    Args:
        vectors: shape (n, dimension), one a record; of any length, finite, none all zero.

    Returns:
        The same bits for the same vectors in the same order; 0 for fewer than two.
    """
    count = len(vectors)
    if count < 2:
        return 0.0
    wide = vectors.astype(np.float64)
    wide /= np.sqrt(np.add.reduce(wide * wide, axis=1))[:, np.newaxis]
    total = np.add.reduce(wide, axis=0)  # |Σ v|² is the sum of all cosines, those of each with itself included
    mean = (float(np.add.reduce(total * total)) - count) / (count * (count - 1))
    return min(_MOST, max(0.0, mean * min(1.0, count / SAMPLES)))


def spread_evenly(count: int) -> npt.NDArray[np.int64]:
    """The places of at most :data:`SAMPLES` of ``count`` things, evenly spread."""
    taken = min(count, SAMPLES)
    return np.arange(taken, dtype=np.int64) * count // max(1, taken)
