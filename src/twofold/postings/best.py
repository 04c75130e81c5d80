"""The best records of several words, exactly, without looking at all that hold them.

MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995): once enough records are known to
score more than the commonest words could add together, a record that has only those words cannot be among the best.
That is found out in float32; the few records that are left are scored anew, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.postings.bm25 import contributions

__all__ = ["Among", "Best", "Postings", "Weighted", "best_of_terms", "holds_any", "scores_of"]

Slots: TypeAlias = npt.NDArray[np.uint32]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Sums: TypeAlias = npt.NDArray[np.float32]
Places: TypeAlias = npt.NDArray[np.intp]
Norms: TypeAlias = Callable[[Slots], Floats]

_ROUNDING: Final = 2.0**-23
"""What one operation in float32 may be off by, relatively; twice the truth, for safety."""
_LOOK_UPS: Final = 8
"""A look-up costs about as much as adding up so many postings."""
_FEW: Final = 512
"""So many records, if there are no more of those that may be found who hold a term, are scored one and all."""
_AT_A_TIME: Final = 4096
_NOBODY: Final = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True, eq=False, slots=True)
class Postings:
    """Who holds a word (or a phrase) in one stretch of slots, and what it adds to their scores."""

    slots: Slots
    """Places of records, ascending, none twice; shape (n,)."""
    gains: Sums
    """What each gains, nearly; 0 or more; shape (n,)."""
    most: float
    """The highest of them."""
    values: Callable[[Places], Floats]
    """How often those at these places hold it, weighted, or what they gain, to the last bit; of a place behind the
    last one, the last one's."""


@dataclass(frozen=True, eq=False, slots=True)
class Weighted:
    """A term of a query."""

    stretches: Sequence[Postings]
    """Who holds it; the slots of each are above those of the one before, and none is empty."""
    weight: float
    """What gains are to be multiplied with, above 0."""
    scored: bool = False
    """Whether the values of the stretches are scores already, and the weight is 1."""
    most: float = field(init=False)
    """The most that any record gains."""
    holders: int = field(init=False)
    """How many hold it."""

    def __post_init__(self) -> None:
        most = self.weight * max([each.most for each in self.stretches], default=0.0)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "holders", sum([len(each.slots) for each in self.stretches]))


class Best(NamedTuple):
    """What :func:`best_of_terms` found."""

    slots: Slots
    """At least all records that are among the best or tied with the last of them, in no particular order, none of them
    twice."""
    scores: Floats
    """Of each of these."""
    also: Floats
    """Of each of those who were to be scored besides; 0 of one that holds none of the terms."""


@dataclass(eq=False, slots=True)
class Among:
    """Which records may be found."""

    mask: Mask | None
    """By slot; None: all."""
    records: int
    """How many these are."""
    _slots: Slots | None = field(default=None, init=False, repr=False)

    @property
    def slots(self) -> Slots:
        """Theirs, where they are not all. Kept: one asks for few of them, and again."""
        if self._slots is None:
            self._slots = _NOBODY if self.mask is None else self.mask.nonzero()[0].astype(np.uint32)
        return self._slots


def best_of_terms(
    terms: Sequence[Weighted],
    norms: Norms,
    size: int,
    among: Among,
    limit: int,
    drift: float = 1.0,
    also: Slots = _NOBODY,
) -> Best:
    """Records that hold any of the terms, with the sum of what the terms add, in the order of the terms.

    Args:
        terms: a query's terms in order; one that counts twice stands there twice.
        norms: gives the length norms of slots.
        size: how many places there are.
        among: which records may be found.
        limit: how many are wanted, at least 1.
        drift: what a score may differ from the sum of its gains by, as a factor, either way.
        also: whose scores are wanted besides, whether they may be found or not.
    """
    slots = _contenders(terms, size, among, limit, drift)
    scores = scores_of(terms, norms, np.concatenate((slots, also)) if len(also) else slots)
    return Best(slots, scores[: len(slots)], scores[len(slots) :])


def _contenders(terms: Sequence[Weighted], size: int, among: Among, limit: int, drift: float) -> Slots:
    """All who may be among the best, none twice; each of them holds any of the terms."""
    mask = among.mask
    times = dict.fromkeys(terms, 0)
    for term in terms:
        times[term] += 1
    holders = sum([each.holders for each in times])
    if mask is not None and among.records * len(times) * _LOOK_UPS < holders:
        return _holding(times, among.slots)
    if among.records * holders < _FEW * size:
        return _holders_among(times, mask)
    most = {each: number * each.most for each, number in times.items()}
    ordered = sorted(times, key=most.__getitem__, reverse=True)
    search = _Search(size, mask, limit, _certain(len(terms), drift))
    rests = [0.0, *accumulate(most[each] for each in reversed(ordered))]
    for each, rest in zip(ordered, reversed(rests[:-1]), strict=True):
        search.add(each, times[each], most[each], rest)
    if search.found is not None:
        return search.found.astype(np.uint32)
    held = np.zeros(size, dtype=np.bool_)  # fewer than are wanted gain anything
    for term in ordered:
        for stretch in term.stretches:
            held[stretch.slots] = True
    return (held if mask is None else held & mask).nonzero()[0].astype(np.uint32)


def _holders_among(terms: Iterable[Weighted], mask: Mask | None) -> Slots:
    """All of a few who hold any of the terms, none twice."""
    held = (each.slots for term in terms for each in term.stretches)
    slots = np.concatenate([_NOBODY, *(held if mask is None else (each[mask.take(each)] for each in held))])
    slots.sort()
    first = np.empty(len(slots), dtype=np.bool_)
    first[:1] = True
    np.not_equal(slots[1:], slots[:-1], out=first[1:])
    return slots[first]


def _holding(terms: Iterable[Weighted], slots: Slots) -> Slots:
    """Those of ``slots`` who hold any of the terms."""
    held = np.zeros(len(slots), dtype=np.bool_)
    for term in terms:
        for each in term.stretches:
            held |= _look_up(each.slots, slots)[1]
    return slots[held]


def scores_of(terms: Sequence[Weighted], norms: Norms, slots: Slots) -> Floats:
    """What the terms add to the score of each of ``slots``, to the last bit; 0 of one that holds none of them."""
    rows = {term: row for row, term in enumerate(dict.fromkeys(terms))}
    values = np.array([_values_of(term, slots) for term in rows]).reshape(len(rows), len(slots))
    weights = np.array([term.weight for term in rows])
    gains = contributions(values, norms(slots), weights[:, np.newaxis])
    scores = np.zeros(len(slots))
    for term in terms:  # one after the other: a sum of other order has other bits
        scores += values[rows[term]] if term.scored else gains[rows[term]]
    return scores


def _values_of(term: Weighted, slots: Slots) -> Floats:
    """How often each of ``slots`` holds the term, or what it gains by it; 0 of one that does not hold it."""
    values: Floats | None = None
    for each in term.stretches:
        places, there = _look_up(each.slots, slots)
        own = each.values(places) * there
        values = own if values is None else values + own
    return np.zeros(len(slots)) if values is None else values


def holds_any(term: Weighted, among: Mask | None) -> bool:
    """Whether any record of ``among`` holds the term. Mostly one of the first does."""
    for each in term.stretches:
        for start in range(0, len(each.slots), _AT_A_TIME):
            if among is None or among[each.slots[start : start + _AT_A_TIME]].any():
                return True
    return False


class _Search:
    """The sums of the gains of what was added, and who may still be among the best."""

    def __init__(self, size: int, among: Mask | None, limit: int, certain: float) -> None:
        self._sums = np.zeros(size, dtype=np.float32)
        self._among = among
        self._limit = limit
        self._certain = certain
        self._least = 0.0
        """As many as are wanted have at least this sum."""
        self._most = 0.0
        """The most that a sum can be."""
        self.found: Places | None = None
        """All who may be among the best; None while anybody may."""

    def add(self, term: Weighted, times: int, most: float, rest: float) -> None:
        """Add up the gains of a term.

        Args:
            term: what is added.
            times: how often it counts.
            most: the most that it may add.
            rest: the most that the terms after it may add together.
        """
        weight = np.float32(times * term.weight)
        self._most += most
        if self.found is None:
            for each in term.stretches:
                slots, sums = self._add_all(each, weight)
                if self._most > rest:  # before that nobody can be certain
                    sums = sums if self._among is None else sums[self._among.take(slots)]
                    # Each stretch may have enough by itself; mostly there is but one.
                    self._least = _least_of_best(sums, self._limit, self._least)
            bound = self._least * self._certain - rest
            if bound > 0:
                found = (self._sums >= bound).nonzero()[0]
                self.found = found if self._among is None else found[self._among.take(found)]
            return
        for each in term.stretches:
            if len(self.found) * _LOOK_UPS > len(each.slots):
                self._add_all(each, weight)
            else:
                places, there = _look_up(each.slots, self.found.astype(np.uint32))
                self._sums[self.found] += weight * each.gains.take(places, mode="clip") * there
        sums = self._sums.take(self.found)
        self._least = _least_of_best(sums, self._limit, self._least)
        self.found = self.found[sums >= self._least * self._certain - rest]

    def _add_all(self, stretch: Postings, weight: np.float32) -> tuple[Places, Sums]:
        """Add up the gains of all who hold it; who these are, and their sums."""
        slots = stretch.slots.astype(np.intp)
        sums = self._sums.take(slots)
        sums += weight * stretch.gains
        self._sums[slots] = sums
        return slots, sums


def _certain(terms: int, drift: float) -> float:
    """The share of one sum that another must have for its score to be able to be higher."""
    rounding = (terms + 8) * _ROUNDING
    return max(0.0, (1 - rounding) / (1 + rounding) / (drift * drift))


def _least_of_best(sums: Sums, limit: int, least: float) -> float:
    """The sum of the ``limit``-th best, if it is above ``least``."""
    higher = sums[sums > least]
    if len(higher) < limit:
        return least
    higher.partition(len(higher) - limit)
    return float(higher[len(higher) - limit])


def _look_up(slots: Slots, wanted: Slots) -> tuple[Places, Mask]:
    """The places in ``slots``, of which there are some, that ``wanted`` have or would have, and which have one."""
    places = slots.searchsorted(wanted)
    return places, slots.take(places, mode="clip") == wanted
