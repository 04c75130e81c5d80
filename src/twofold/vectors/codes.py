"""Vectors in a quarter of their size: 8 bits a number, scanned by FAISS in whole numbers.

The codes only propose. How far a vector is from its code is known, so who could be among the nearest, and who could
not, is known too: nothing is missed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.vectors.faiss_library import BUILD_THREADS, bitmap_selector, load_faiss, threads
from twofold.vectors.gate import Gate
from twofold.vectors.protocol import Floats

__all__ = ["Codes", "Nodes", "Proposed"]

Nodes = npt.NDArray[np.int64]
"""Numbers of vectors, in the order they came."""

_LARGEST: Final = 127
"""Codes are whole numbers from minus this to this."""
_HEADROOM: Final = 1.1
"""How much larger than those there are the numbers of a later vector may be."""
_WIDTH: Final = 16
"""FAISS has no fast scan of lengths that this does not divide: vectors are filled up with zeros."""
_ROUNDING: Final = 1e-5
"""More than what float32 does to all this."""
_BLOCK: Final = 1024


class Proposed(NamedTuple):
    """What the codes propose."""

    nodes: Nodes
    """The one that seems nearest first."""
    cosines: npt.NDArray[np.float32]
    """What they seem to be, descending."""
    error: float
    """The most that a cosine can differ from what it seems."""
    all: bool
    """Whether there are no others."""

    @property
    def most(self) -> float:
        """The most that the cosine of any other can be."""
        return -1.0 if self.all else float(self.cosines[-1]) + self.error

    def contenders(self, limit: int) -> Nodes:
        """Those that can be among the ``limit`` best, or tied with the last of them."""
        if len(self.nodes) <= limit:
            return self.nodes
        least = float(self.cosines[limit - 1]) - 2 * self.error
        return self.nodes[self.cosines >= least]


class _Asked(NamedTuple):
    """A query as its code."""

    code: npt.NDArray[np.float64]
    length: float
    """Of the query, in the code's units."""
    error: float
    """How far the code is from the query, at a length of 1."""

    @classmethod
    def of(cls, query: Floats) -> _Asked:
        wide = query.astype(np.float64)
        wide *= _LARGEST / np.abs(wide).max()
        code = np.rint(wide)
        length = math.sqrt(wide @ wide)
        wide -= code
        return cls(code, length, math.sqrt(wide @ wide) / length)


class Codes:
    """Vectors of length 1 as codes. Safe to be searched by several threads while another adds: FAISS alone is not.

    Args:
        dimension: how many numbers a vector has.
        largest: the largest number, by amount, that a vector may have; the smaller, the finer are the codes.

    Raises:
        RuntimeError: FAISS fails, or does not count right.
    """

    def __init__(self, dimension: int, largest: float) -> None:
        self._dimension = dimension
        self._width = -(-dimension // _WIDTH) * _WIDTH
        if not _adds_exactly(self._width):
            raise RuntimeError("its sums of 8-bit products are not exact on this machine")
        self._faiss = _empty(self._width)
        self._scale = _LARGEST / largest
        self._error = 0.0
        self._gate = Gate()

    @classmethod
    def with_room(cls, dimension: int, largest: float) -> Codes:
        """None yet, for numbers up to ``largest`` and a little larger; see :class:`Codes`."""
        return cls(dimension, min(1.0, _HEADROOM * largest))

    @classmethod
    def restored(cls, dimension: int, codes: npt.NDArray[np.uint8], numbers: npt.NDArray[np.float64]) -> Codes:
        """What :meth:`parts` gave."""
        made = cls(dimension, 1.0)
        made._scale, made._error = map(float, numbers)
        faiss: Any = load_faiss()
        if codes.shape[1] != made._width:
            raise ValueError(f"codes of {codes.shape[1]} bytes")
        faiss.copy_array_to_vector(np.ascontiguousarray(codes).reshape(-1), made._faiss.codes)
        made._faiss.ntotal = len(codes)
        return made

    def parts(self, count: int) -> dict[str, npt.NDArray[np.generic]]:
        """The first ``count``, to be saved."""
        with self._gate.together():
            codes = load_faiss().vector_to_array(self._faiss.codes)[: count * self._width]
        return {"codes": codes.reshape(count, self._width), "numbers": np.array([self._scale, self._error])}

    def subset(self, nodes: Nodes) -> Codes:
        """A copy of some of them, numbered anew in this order."""
        faiss: Any = load_faiss()
        with self._gate.together():
            every = faiss.rev_swig_ptr(self._faiss.codes.data(), self.count * self._width)
            rows = every.reshape(self.count, self._width)[nodes]
        return Codes.restored(self._dimension, rows, np.array([self._scale, self._error]))

    def fits(self, units: Floats) -> npt.NDArray[np.bool_]:
        """Which of these have no larger number than there is room for."""
        fits: npt.NDArray[np.bool_] = np.abs(units).max(axis=1, initial=0.0) * self._scale <= _LARGEST
        return fits

    @property
    def count(self) -> int:
        """How many vectors there are."""
        count: int = self._faiss.ntotal
        return count

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.count * self._width

    def add(self, after: int, units: Floats) -> bool:
        """Append vectors of length 1 that fit in behind the first ``after``; False if somebody else has taken that
        place.
        """
        with self._gate.alone():
            if self.count != after:
                return False
            for start in range(0, len(units), _BLOCK):
                self._append(units[start : start + _BLOCK])
            return True

    def search(
        self, queries: Sequence[Floats], known: int, among: npt.NDArray[np.bool_] | None, limit: int
    ) -> list[Proposed]:
        """For each query the vectors whose codes are nearest to its own.

        Args:
            queries: each of shape (dimension,), of any length above 0.
            known: how many vectors the caller knows of; those that came later do not count.
            among: by known number, whether a vector counts; None: all of them.
            limit: how many, at least 1.

        Returns:
            At most ``limit`` of them each. With x' for what the code of x stands for, ``q·x - q'·x' = q·(x - x') +
            (q - q')·x'``, which is at most ``|x - x'| + |q - q'| (1 + |x - x'|)`` where q and x have a length of 1.
        """
        asked = [_Asked.of(query) for query in queries]
        codes = np.zeros((len(asked), self._width), dtype=np.float32)
        for row, each in zip(codes, asked, strict=True):
            row[: self._dimension] = each.code
        scores, nodes = np.empty((len(asked), limit), dtype=np.float32), np.empty((len(asked), limit), dtype=np.int64)
        faiss: Any = load_faiss()
        pointer = faiss.swig_ptr
        with self._gate.together(), threads(1):
            if among is None and self.count > known:
                among = np.ones(known, dtype=np.bool_)
            params = None
            if among is not None:
                params = faiss.SearchParameters(sel=bitmap_selector(among, self.count))
            # FAISS's own function, without what its wrapper in Python does around it.
            self._faiss.search_c(len(asked), pointer(codes), limit, pointer(scores), pointer(nodes), params)
        return [self._proposed(*found) for found in zip(asked, nodes, scores, strict=True)]

    def _proposed(self, asked: _Asked, found: Nodes, scores: npt.NDArray[np.float32]) -> Proposed:
        error = self._error + asked.error * (1 + self._error) + _ROUNDING
        cosines = scores / np.float32(self._scale * asked.length)
        if found[-1] >= 0:
            return Proposed(found, cosines, error, all=False)
        there = found >= 0  # missing neighbours are -1
        return Proposed(found[there], cosines[there], error, all=True)

    def _append(self, units: Floats) -> None:
        codes = np.zeros((len(units), self._width), dtype=np.float32)
        own = codes[:, : self._dimension]
        np.rint(units * np.float32(self._scale), out=own)
        lost = units.astype(np.float64) - own / self._scale
        self._error = max(self._error, float(np.sqrt(np.add.reduce(lost * lost, axis=1).max())))
        with threads(BUILD_THREADS if len(units) > 1000 else 1):
            self._faiss.add(codes)


def _empty(width: int) -> Any:
    faiss: Any = load_faiss()
    eight_bits = faiss.ScalarQuantizer.QT_8bit_direct_signed
    return faiss.IndexScalarQuantizer(width, eight_bits, faiss.METRIC_INNER_PRODUCT)


@functools.cache
def _adds_exactly(width: int) -> bool:
    """Whether FAISS's sums are right where they are largest: instructions that saturate would be wrong there."""
    index = _empty(width)
    signs = np.resize(np.array([1, 1, -1], dtype=np.float32), width)
    extremes = np.stack([signs, -signs, np.abs(signs), -np.abs(signs)]) * np.float32(_LARGEST)
    index.add(extremes)
    scores, nodes = index.search(extremes, len(extremes))
    expected = extremes @ extremes.T
    return all(np.allclose(found, row[at], rtol=1e-6) for found, at, row in zip(scores, nodes, expected, strict=True))
