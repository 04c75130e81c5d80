"""The best records of several words, exactly, without looking at all that hold them.

MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995): once enough records are known to
score more than the commonest words could add together, a record that has only those words cannot be among the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Postings", "best_of_terms"]

Slots = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PRUNES_FROM: Final = 20_000
"""Postings of a query from which on leaving some out is cheaper than adding all up."""
_SLACK: Final = 1e-9
"""Sums in another order differ by rounding; a bound is taken as this much larger, relatively."""


@dataclass(frozen=True, eq=False)
class Postings:
    """Who holds a word (or a phrase), and what it adds to their scores."""

    slots: Slots
    """Places of records, ascending, none twice; shape (n,)."""
    contributions: Floats
    """What each gains, 0 or more; shape (n,)."""

    @cached_property
    def most(self) -> float:
        """The most that any record gains."""
        return float(self.contributions.max(initial=0.0))

    def of(self, slots: Slots) -> Floats:
        """What each of ``slots`` gains, 0 where it does not hold the word."""
        if not len(self.slots):
            return np.zeros(len(slots))
        places = np.searchsorted(self.slots, slots)
        places[places == len(self.slots)] = 0
        return np.where(self.slots[places] == slots, self.contributions[places], 0.0)


def best_of_terms(
    terms: Sequence[Postings], size: int, among: npt.NDArray[np.bool_] | None, limit: int
) -> tuple[Slots, Floats]:
    """Records that hold any of the terms, with the sum of what the terms add, in the order of the terms.

    Args:
        terms: a query's terms in order; one that counts twice stands there twice.
        size: how many places there are.
        among: shape (size,), which records may be found. Default: all.
        limit: how many are wanted, at least 1.

    Returns:
        Slots and scores: at least all records that are among the ``limit`` best or tied with the last of them, in no
        particular order, none of them twice.
    """
    if sum(len(each.slots) for each in terms) < PRUNES_FROM:
        return _all_of(terms, size, among)
    times = Counter(terms)
    ordered = sorted(times, key=lambda each: times[each] * each.most, reverse=True)
    most = [times[each] * each.most for each in ordered]
    sums = np.zeros(size)
    least = 0.0  # so many are known to score at least this as are wanted
    for done, each in enumerate(ordered, start=1):
        sums[each.slots] += times[each] * each.contributions
        rest = sum(most[done:]) * (1 + _SLACK)  # what the terms that are left can add
        least = max(least, _least_of_best(sums, each.slots, among, limit))
        if least > rest:
            break
    if rest == 0.0:  # nothing was left out
        return _all_of(terms, size, among)
    slots = np.flatnonzero(sums >= (least - rest) * (1 - _SLACK))
    if among is not None:
        slots = slots[among[slots]]
    scores = np.zeros(len(slots))
    for each in terms:
        scores += each.of(slots)
    return slots, scores


def _all_of(terms: Sequence[Postings], size: int, among: npt.NDArray[np.bool_] | None) -> tuple[Slots, Floats]:
    sums, held = np.zeros(size), np.zeros(size, dtype=np.bool_)
    for each in terms:
        sums[each.slots] += each.contributions
        held[each.slots] = True
    if among is not None:
        held &= among
    slots = np.flatnonzero(held)
    return slots, sums[slots]


def _least_of_best(sums: Floats, slots: Slots, among: npt.NDArray[np.bool_] | None, limit: int) -> float:
    """The score so far of the ``limit``-th best of ``slots``; 0 if there are fewer."""
    scores = sums[slots if among is None else slots[among[slots]]]
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit]) if len(scores) >= limit else 0.0
