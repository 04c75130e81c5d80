"""Maximal marginal relevance: an answer whose records do not say the same thing several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Chosen", "diverse"]

_DIGITS: Final = 9
"""What is rounded away is noise of the sums: of records that are worth the same the first is chosen."""
_LARGEST: Final = 1e6
"""How relevant a record can be: of more, and of less than its negative, the difference would be lost in rounding."""


class Chosen(NamedTuple):
    """A record that was chosen, and why."""

    key: int
    """Which."""
    similarity: float | None
    """The largest cosine to those chosen before it, -1 to 1; None where there is none to compare."""


def diverse(
    candidates: Sequence[tuple[int, float]],
    vectors: Mapping[int, npt.NDArray[np.float32]],
    limit: int,
    balance: float,
) -> list[Chosen]:
    """The records that are relevant and differ from each other, in the order they are chosen: each next one is that of
    the largest ``balance · relevance - (1 - balance) · s``, s being the largest cosine to any chosen before it, and 0
    while there is none.

    Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
    Summaries", SIGIR 1998. The first n of a longer choice are the choice of n.

    Args:
        candidates: keys and relevance, all of them to be chosen from, the first of equal ones preferred. Beyond a
            million to either side relevances count as equal.
        vectors: by key, shape (parts, dimension). Two records are as alike as the nearest two of their parts. A record
            that has none counts as alike as the others that are left are on average, and changes nothing for them.
        limit: how many at most.
        balance: 1 is for relevance alone, which keeps the order by it, 0 for difference alone.
    """
    if not candidates or limit < 1:
        return []
    relevance = np.clip(np.array([each for _, each in candidates], np.float64), -_LARGEST, _LARGEST)
    parts = _Parts([vectors.get(key) for key, _ in candidates])
    left = np.ones(len(candidates), np.bool_)
    similarity = np.full(len(candidates), -np.inf)
    chosen: list[Chosen] = []
    for _ in range(min(limit, len(candidates))):
        compared = np.isfinite(similarity)
        known = similarity[compared & left]
        alike = np.where(compared, similarity, known.mean() if len(known) else 0.0)
        worth = np.round(balance * relevance - (1.0 - balance) * alike, _DIGITS)
        place = int(np.argmax(np.where(left, worth, -np.inf)))
        chosen.append(Chosen(candidates[place][0], float(similarity[place]) if compared[place] else None))
        left[place] = False
        np.maximum(similarity, parts.cosines(place), out=similarity)
    return chosen


class _Parts:
    """The vectors of all candidates in one matrix, each of length 1."""

    def __init__(self, vectors: Sequence[npt.NDArray[np.float32] | None]) -> None:
        units = [_units(each) for each in vectors]
        counts = [0 if each is None else len(each) for each in units]
        stop = np.cumsum(counts, dtype=np.intp)
        self._has = np.flatnonzero(counts)
        self._first: npt.NDArray[np.intp] = (stop - np.array(counts, np.intp))[self._has]
        self._spans = [slice(int(end) - count, int(end)) for end, count in zip(stop, counts, strict=True)]
        self._rows = np.concatenate([each for each in units if each is not None]) if len(self._has) else None

    def cosines(self, place: int) -> npt.NDArray[np.float64]:
        """Of each candidate the largest cosine of its parts to those of one of them; -inf without vectors."""
        span = self._spans[place]
        found = np.full(len(self._spans), -np.inf)
        if self._rows is not None and span.stop > span.start:
            to_any = (self._rows @ self._rows[span].T).max(axis=1)
            found[self._has] = np.round(np.maximum.reduceat(to_any, self._first), _DIGITS)
        return found


def _units(rows: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float64] | None:
    """The rows at length 1, without damaged ones; None if none is left."""
    if rows is None:
        return None
    exact = rows[np.isfinite(rows).all(axis=1) & rows.any(axis=1)].astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True) if len(exact) else None
