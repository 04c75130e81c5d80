"""BM25 as SQLite's FTS5 computes it, operation by operation: the same bits, so that either may answer.

Source of formula and constants: https://www.sqlite.org/fts5.html#the_bm25_function. A query's score is the sum of its
phrases' contributions, in the order of the phrases; here higher is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["contributions", "inverse_document_frequency", "length_norms", "weighted_frequencies"]

_K1: Final = 1.2
_B: Final = 0.75
_LEAST_IDF: Final = 1e-6

Floats = npt.NDArray[np.float64]


def inverse_document_frequency(records: int, holding: int) -> float:
    """``ln((N - n + 0.5) / (n + 0.5))``, at least 0.000001: a word that most records hold never counts against one.

    Args:
        records: N, how many there are.
        holding: n, how many hold the word; 0 to N.
    """
    return max(math.log((records - holding + 0.5) / (holding + 0.5)), _LEAST_IDF)


def length_norms(lengths: Floats, mean: float) -> Floats:
    """``k1 · (1 - b + b · length / mean)`` with k1 = 1.2 and b = 0.75, for each record.

    Args:
        lengths: shape (n,), tokens of each record.
        mean: tokens of a record on average, above 0.
    """
    return _K1 * (1 - _B + _B * lengths / mean)


def contributions(frequencies: Floats, norms: Floats, idf: float | Floats) -> Floats:
    """What a word adds to the score of each record: ``idf · f · (k1 + 1) / (f + norm)``.

    Args:
        frequencies: shape (n,) or (words, n), how often each record holds it, weighted by column; 0 or more.
        norms: shape (n,), of the same records, see :func:`length_norms`.
        idf: see :func:`inverse_document_frequency`; one, or of shape (words, 1).
    """
    return idf * ((frequencies * (_K1 + 1.0)) / (frequencies + norms))


def weighted_frequencies(counts: npt.NDArray[np.int64], weights: Sequence[float]) -> Floats:
    """How often each record holds a word, each time counted as the weight of its column.

    FTS5 adds up weight by weight, column by column; what a product rounds otherwise is added up likewise here.

    Args:
        counts: shape (n, columns).
        weights: one a column.
    """
    total = np.zeros(len(counts), dtype=np.float64)
    for count, weight in zip(counts.T, weights, strict=True):
        if float(weight).is_integer():
            total += count * weight
        else:
            for times in range(int(count.max(initial=0))):
                total[count > times] += weight
    return total
