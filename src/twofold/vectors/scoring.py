"""What every index scores with: exact cosines, the best vector of each record, and the products of a float32 scan."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.vectors.protocol import Floats, Kernel, Keys, Rows, Scores

__all__ = [
    "NUMPY",
    "best_of_each",
    "distinct_keys",
    "exact_cosines",
    "is_increasing",
    "lengths_of",
    "membership",
    "places_of",
    "scan_error",
]

FEW_SOUGHT: Final = 8
"""Of so many times more keys than are sought, looking each up is faster than looking through all."""

_SCORE_DECIMALS = 12
"""Cosines nearer to each other than this are one: float64 sums of some thousand products are uncertain below it."""
_BLOCK = 1024
"""How many rows are gathered or widened at a time: a few MB, so that they stay in the processor's cache."""


def exact_cosines(
    rows: npt.NDArray[np.float32], query: npt.NDArray[np.float32], at: Rows | None = None, lengths: Scores | None = None
) -> Scores:
    """The cosine of each row with ``query``: the score that every vector index of twofold gives.

    A row's score depends on its numbers alone, not on its place or on the rows beside it: equal rows get the same
    bits. Rounded to 12 decimals, so that directions which differ by rounding only are ties.

    Args:
        rows: shape (n, dimension), finite, none all zero; of any length.
        query: shape (dimension,), finite, not all zero; of any length.
        at: which rows; None: all.
        lengths: of all rows, as :func:`lengths_of` gives them. Default: they are computed.

    Returns:
        One score a row, -1 to 1, in the order of ``at``.
    """
    wide = query.astype(np.float64)
    wide /= np.sqrt(np.add.reduce(wide * wide))
    scores = np.empty(len(rows) if at is None else len(at), dtype=np.float64)
    for start in range(0, len(scores), _BLOCK):
        stop = start + _BLOCK
        block = (rows[start:stop] if at is None else rows.take(at[start:stop], axis=0)).astype(np.float64)
        own = lengths_of(block) if lengths is None else lengths[start:stop] if at is None else lengths[at[start:stop]]
        # Row by row: the sums of a product of matrices run in an order that depends on where a row lies.
        scores[start:stop] = np.vecdot(block, wide) / own
    np.round(scores, _SCORE_DECIMALS, out=scores)
    np.clip(scores, -1.0, 1.0, out=scores)
    return scores + 0.0  # -0.0 becomes 0.0


def lengths_of(rows: npt.NDArray[np.float64]) -> Scores:
    """The length of each row, the same bits wherever it lies."""
    lengths: Scores = np.sqrt(np.vecdot(rows, rows))
    return lengths


def distinct_keys(keys: Keys) -> Keys:
    """Sorted, none twice, not to be written to; quick where they are nearly in order."""
    keys = np.sort(keys, kind="stable")
    if keys.size:
        keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
    keys.flags.writeable = False
    return keys


def best_of_each(keys: Keys, scores: Scores, limit: int) -> tuple[Keys, Scores]:
    """The ``limit`` best records, each with its best score, and every other one that is tied with the last.

    Args:
        keys: shape (n,): the record of each scored vector; a record may stand there several times.
        scores: shape (n,), higher is better.
        limit: how many, at least 1.

    Returns:
        Best first, equal ones by key.
    """
    order = np.lexsort((keys, -scores))
    keys, scores = keys[order], scores[order]
    sorted_keys = np.sort(keys)
    if (sorted_keys[1:] == sorted_keys[:-1]).any():
        first = np.sort(np.unique(keys, return_index=True)[1])
        keys, scores = keys[first], scores[first]
    if len(keys) > limit:
        tied = np.count_nonzero(scores >= scores[limit - 1])
        keys, scores = keys[:tied], scores[:tied]
    return keys, scores


def scan_error(dimension: int) -> float:
    """The largest error of a float32 scan: (d + 8) · 2⁻²⁴ bounds a sum of d products in any order of two vectors of
    length at most 1, with the rounding of the query, of the length and of the last product (Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd edition, §3.1).
    """
    return 1.01 * (dimension + 8) * 2.0**-24


class _Numpy:
    """The dot products of the float32 scan, by numpy.

    Row by row: BLAS would share one large product among threads that wait for each other, which on two busy
    processors took four times the work and ten times as long.
    """

    gather_share: Final = 0.1

    def products(self, rows: Floats, unit: Floats) -> Floats:
        found: Floats = np.vecdot(rows, unit)
        return found

    def products_at(self, rows: Floats, at: Rows, unit: Floats) -> Floats:
        blocks = (at[start : start + _BLOCK] for start in range(0, len(at), _BLOCK))
        return np.concatenate([self.products(rows[block], unit) for block in blocks])


NUMPY: Final[Kernel] = _Numpy()
"""Needs nothing but numpy."""


def is_increasing(keys: Keys) -> bool:
    """Whether each is larger than the one before it, as those are that come with new records."""
    return bool((keys[1:] > keys[:-1]).all())


def places_of(keys: Keys, sought: Keys) -> Rows:
    """Where those of ``sought`` (sorted, none twice) stand that are among ``keys``, which are increasing."""
    if not len(keys):
        return np.empty(0, dtype=np.intp)
    first, last = int(keys[0]), int(keys[-1])
    if last - first == len(keys) - 1:  # none was ever deleted: nothing need be looked for
        within = sought[np.searchsorted(sought, first) : np.searchsorted(sought, last, side="right")]
        return (within - first).astype(np.intp, copy=False)
    places = np.searchsorted(keys, sought)
    places[places == len(keys)] = 0
    found: Rows = places[keys[places] == sought]
    return found


def membership(keys: Keys, sought: Keys) -> npt.NDArray[np.bool_]:
    """Which of ``keys`` stand in ``sought`` (sorted, none twice)."""
    if not len(sought):
        return np.zeros(len(keys), dtype=np.bool_)
    least, most = int(sought[0]), int(sought[-1])
    if most - least < 8 * (len(keys) + 1024):  # keys of one table lie close: a table of them is the fastest
        table = np.zeros(most - least + 1, dtype=np.bool_)
        table[sought - least] = True
        places = np.clip(keys, least, most)
        found: npt.NDArray[np.bool_] = table[places - least] & (places == keys)
    else:
        places = np.minimum(np.searchsorted(sought, keys), len(sought) - 1)
        found = sought[places] == keys
    return found
