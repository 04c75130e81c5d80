"""How a vector is written in 4 bits a number, and how far a cosine by such codes can be from the true one.

Vectors are moved so that their mean lies at the origin, and turned by a random rotation. Whatever they were, their
numbers then are much like those of a normal distribution, and what rounding takes from them points in a direction
that has nothing to do with a query's; that bounds an error closely (the idea of RaBitQ: Gao and Long, 2024,
arXiv:2405.12497).
"""

from __future__ import annotations

import math
import secrets
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.vectors.protocol import Floats

__all__ = ["LEVELS", "Coded", "Coding", "Losses", "Question", "levels_of"]

LEVELS: Final = 16
"""How many values a number of a code has."""
_STEP: Final = 0.45
"""How far these are apart, in standard deviations of the numbers that they stand for. Wider steps lose more of all
vectors, narrower ones more of the few that have a number beyond the last level; here both weigh about the same.
"""
_REACH: Final = 1.5
"""So many times as far from the centre as most a vector may be."""
_MISSED: Final = 1e-6
"""How likely it is, at most, that a search is told too small a bound for any vector."""
_DEVIATIONS: Final = 7.0
"""Beyond so many standard deviations of a normal distribution lies one of 8e11."""
_BINS: Final = 2048
"""Losses are counted by length, in so many bins."""
_BIN: Final = 4.0 / _BINS
"""All together they reach beyond any difference of two vectors of length 1."""
_ROUNDING: Final = 1e-5
"""More than what float32 does to all this."""
_SEED_BITS: Final = 32
_ROUNDS: Final = 2
"""Of signs and transforms, after which a vector of a single number, or of equal ones, too looks like any other."""


class Losses(NamedTuple):
    """What codes lose of vectors."""

    lengths: npt.NDArray[np.int64]
    """By bin, how many vectors there are for which the difference to what the code stands for is so long."""
    short: float = 0.0
    """By what share of its length a code falls short of its vector in the vector's own direction: the most there is."""
    beyond: float = 0.0
    """By what share it goes beyond that; much, where a vector lies next to the centre."""
    farthest: float = 0.0
    """How far the vectors are from the centre at most."""

    @classmethod
    def none(cls) -> Losses:
        """Of no vectors."""
        return cls(np.zeros(_BINS, dtype=np.int64))

    def and_of(self, other: Losses) -> Losses:
        """Of both together."""
        return Losses(
            self.lengths + other.lengths,
            max(self.short, other.short),
            max(self.beyond, other.beyond),
            max(self.farthest, other.farthest),
        )

    def across(self, dimension: int) -> float:
        """The most that the product of such a difference with a query can be, as far as it does not lie in the
        direction of the vector, but for a chance of ``_MISSED``.

        As the rotation is drawn at random, what is left of the query without the vector's own direction points in any
        other with the same likelihood. A share s of the length or more then comes to lie in the direction of the
        difference with a probability of at most (1 - s²)^((d - 2) / 2), which bounds the area of a cap of a sphere in
        d - 1 dimensions. So few vectors of which much is lost weigh less than many of which little is.
        """
        bins = np.flatnonzero(self.lengths)
        if not len(bins):
            return 0.0
        as_long = np.cumsum(self.lengths[::-1])[::-1][bins]
        shares = np.ones(len(bins))
        if dimension > 2:
            shares = np.sqrt(1.0 - (_MISSED / as_long) ** (2.0 / (dimension - 2)))
        return float(((bins + 1) * _BIN * shares).max())


class Coded(NamedTuple):
    """Vectors as codes."""

    codes: npt.NDArray[np.uint8]
    """Shape (n, dimension), 0 to 15."""
    losses: Losses


class Question(NamedTuple):
    """A query as codes are asked."""

    numbers: Floats
    """Shape (dimension,): to be multiplied with the level of each number of a code."""
    offset: float
    """The product of the query with the centre."""


class Coding:
    """A way to write vectors of length 1 as codes.

    Args:
        centre: shape (dimension,): the mean of the vectors, or near it.
        spread: how far from it they are, as the root of the mean square.
        seed: of the rotation. Default: drawn by lot, so that nobody can make vectors of which much is lost, and that
            all searches would then have to allow for.
    """

    def __init__(self, centre: Floats, spread: float, seed: int | None = None) -> None:
        self.centre: Final = centre
        self.spread: Final = spread
        self.seed: Final = secrets.randbits(_SEED_BITS) if seed is None else seed
        self.dimension: Final = len(centre)
        self.step: Final = _STEP * spread / math.sqrt(self.dimension)
        """How far the levels are apart."""
        self._rotation = _Rotation(self.dimension, self.seed)
        self._turned_centre = self._rotation.turned(centre)

    @classmethod
    def for_such(cls, units: Floats) -> Coding:
        """One for these vectors of length 1, shape (n, dimension), n at least 1, and others like them."""
        centre = units.mean(axis=0, dtype=np.float64).astype(np.float32)
        distances = _distances(units, centre)
        spread = math.sqrt(float(np.vecdot(distances, distances)) / len(units))
        return cls(centre, max(spread, 1.01 * float(distances.max()) / _REACH, _ROUNDING))

    @classmethod
    def plain(cls, dimension: int) -> Coding:
        """One that any vectors of length 1 fit in."""
        return cls(np.zeros(dimension, dtype=np.float32), 1.0)

    @property
    def reach(self) -> float:
        """How far from the centre a vector may be."""
        return _REACH * self.spread

    def fits(self, units: Floats) -> npt.NDArray[np.bool_]:
        """Which of these vectors of length 1 are near enough to the centre."""
        return _distances(units, self.centre) <= self.reach

    def coded(self, units: Floats) -> Coded:
        """The codes of vectors of length 1, shape (n, dimension), n at least 1."""
        numbers = self._rotation.turned(units) - self._turned_centre
        numbers /= np.float32(self.step)
        codes = np.clip(numbers + np.float32(LEVELS // 2), 0, LEVELS - 1).astype(np.uint8)
        return Coded(codes, self._losses(numbers, numbers - levels_of(codes)))

    def question(self, query: Floats) -> Question:
        """A query of shape (dimension,), of any length above 0."""
        wide = query.astype(np.float64)
        unit = (wide / math.sqrt(wide @ wide)).astype(np.float32)
        return Question(self._rotation.turned(unit), float(np.vecdot(unit, self.centre)))

    def across(self, lost: float, grain: float) -> float:
        """How far a cosine can be from what it seems to be, without what lies in the vector's own direction.

        Args:
            lost: what :meth:`Losses.across` says.
            grain: to what the product of each number was rounded before they were added up, in steps: that adds the
                variance of as many roundings.
        """
        rounded = self.step * grain * min(_DEVIATIONS * math.sqrt(self.dimension / 12), self.dimension / 2)
        return math.hypot(lost, rounded) + _ROUNDING

    def _losses(self, numbers: Floats, lost: Floats) -> Losses:
        """What codes lose: turned vectors, and what is lost of them, in steps."""
        lengths = self.step * np.sqrt(np.vecdot(lost, lost))
        bins = np.bincount((lengths / np.float32(_BIN)).astype(np.int64), minlength=_BINS)
        squares = np.vecdot(numbers, numbers)
        leans = np.vecdot(numbers, lost) / np.maximum(squares, np.float32(1e-30))
        return Losses(
            bins,
            short=min(max(0.0, float(leans.max())), 1 - _ROUNDING),
            beyond=max(0.0, -float(leans.min())),
            farthest=self.step * math.sqrt(float(squares.max())),
        )


def levels_of(codes: npt.NDArray[np.uint8]) -> Floats:
    """What the numbers of codes stand for, in steps: -7.5 to 7.5."""
    return codes - np.float32((LEVELS - 1) / 2)


def _distances(units: Floats, centre: Floats) -> Floats:
    moved = units - centre
    distances: Floats = np.sqrt(np.vecdot(moved, moved))
    return distances


class _Rotation:
    """A rotation that is as good as one drawn at random: each round changes the signs of numbers drawn by lot, and
    takes the Fourier transform. It needs no matrix, and costs n log n.

    Args:
        dimension: how many numbers a vector has.
        seed: of the lot; the same one gives the same rotation at any time.
    """

    def __init__(self, dimension: int, seed: int) -> None:
        self._dimension = dimension
        # Of a real vector's transform one half is told, in which all frequencies but the first and the middle one
        # stand for two.
        weights = np.full(dimension, math.sqrt(2.0), dtype=np.float32)
        weights[0] = 1.0
        if dimension % 2 == 0:
            weights[-1] = 1.0
        signs = np.random.default_rng(seed).choice(np.array([-1.0, 1.0], dtype=np.float32), (_ROUNDS, dimension))
        self._factors = [signs[0], *(signs[1:] * weights), weights]

    def turned(self, vectors: Floats) -> Floats:
        """The same vectors, shape (n, dimension) or (dimension,), turned."""
        *rounds, weights = self._factors
        for factors in rounds:
            found = np.fft.rfft(vectors * factors, norm="ortho").view(np.float32)
            found[..., 1] = found[..., 0]  # the first frequency has no imaginary part, nor has the middle one
            vectors = found[..., 1 : self._dimension + 1]
        turned: Floats = vectors * weights
        return turned
