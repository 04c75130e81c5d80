"""The exact vector index: every visible vector is looked at, so nothing is missed and ties are whole.

A scan in float32 picks the candidates with a margin that its rounding cannot exceed; those are scored again in
float64, row by row, so that equal vectors get equal scores wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.errors import InvalidVectorError
from twofold.vectors.buffers import Buffers
from twofold.vectors.checks import as_vector
from twofold.vectors.protocol import Floats, Found, Kernel, Keys, Rows, Scores, SearchedAlone
from twofold.vectors.scoring import (
    FEW_SOUGHT,
    NUMPY,
    best_of_each,
    distinct_keys,
    exact_cosines,
    lengths_of,
    membership,
    places_of,
    scan_error,
)

__all__ = ["Change", "ExactIndex"]

_BLOCK = 1024
"""How many rows are widened at a time: a few MB, so that they stay in the processor's cache."""
_DEAD_SHARE = 0.25
"""Above this share of deleted rows the buffers are made anew without them."""
_FEW = 5
"""Up to so many times the rows that are asked for are scored exactly at once, without a scan before."""
_LEAST_CAPACITY = 64
"""Rows that the first buffer has room for."""
_SHARED_BYTES = 512 * 1024
"""So many bytes of vectors are multiplied with one query after the other while they are in the processor's cache."""
_SHARED_SCORES = 4 * 1024 * 1024
"""How many scores of several queries are held at a time: 16 MB."""


class Change(NamedTuple):
    """What :meth:`ExactIndex.changed` did."""

    after: ExactIndex
    """The index after it."""
    moved: Rows | None
    """For each row of the index before: its row in the new one, -1 if it is gone; None if every row is where it was."""


class ExactIndex(SearchedAlone):
    """Vectors by key, searched by cosine. A snapshot: it never changes, :meth:`updated` gives a new one.

    Snapshots share memory, so that a new one costs about what was added; the older ones stay as they were. Safe to
    be searched and updated from several threads at once.
    """

    __slots__ = ("_alive", "_buffers", "_dead", "_keys", "_size", "dimension")

    problem: ClassVar[str | None] = None
    """Nothing can be missing here."""
    dimension: int
    """How many numbers a vector has."""

    def __init__(self, buffers: Buffers, size: int, alive: npt.NDArray[np.bool_] | None, dead: int) -> None:
        self._buffers = buffers
        self._size = size
        self._alive = alive
        self._dead = dead
        self._keys: Keys | None = None
        self.dimension = buffers.vectors.shape[1]

    @classmethod
    def empty(cls, dimension: int, kernel: Kernel = NUMPY, *, room: int = 0) -> ExactIndex:
        """An index without vectors.

        Args:
            dimension: how many numbers a vector has, at least 1.
            kernel: what computes the products of the float32 scan; it changes how fast, never what is found.
            room: about how many vectors are going to be added: they are then not copied as it grows.
        """
        return cls(Buffers(dimension, _capacity(room), kernel), 0, None, 0)

    def __len__(self) -> int:
        """How many vectors it holds; a record with several parts counts once for each."""
        return self._size - self._dead

    def __repr__(self) -> str:
        return f"ExactIndex(dimension={self.dimension}, vectors={len(self)})"

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays, those that it shares with other snapshots included."""
        return self._buffers.nbytes + (0 if self._alive is None else self._alive.nbytes)

    @property
    def keys(self) -> Keys:
        """The keys of the records that have a vector here: sorted, none twice, not to be written to."""
        if self._keys is None:  # two threads may both make it; they make the same
            self._keys = distinct_keys(self._living(self._buffers.keys[: self._size]))
        return self._keys

    def updated(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> ExactIndex:
        """The index after removing and then adding.

        Args:
            removed_keys: records whose vectors go, in any order; unknown ones are passed over.
            added_keys: shape (n,): the record of each added vector. A key may stand there several times (parts,
                fields). Vectors that it already has stay unless ``removed_keys`` names it.
            added_vectors: shape (n, dimension), of any length.

        Raises:
            InvalidVectorError: an added vector is zero, not finite or of another length; this index is as before.
        """
        return self.changed(removed_keys, added_keys, added_vectors).after

    def changed(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> Change:
        """The same as :meth:`updated`, and what became of the rows."""
        added, lengths = self._scaled(added_keys, added_vectors)
        alive, dead = self._without(removed_keys)
        if dead == self._dead and not len(added_keys):
            return Change(self, None)
        size = self._size + len(added_keys)
        crowded = dead > _DEAD_SHARE * size
        if crowded or not self._buffers.append(self._size, added_keys, added, lengths):
            moved = None
            if alive is not None:
                moved = np.where(alive, np.cumsum(alive) - 1, -1)
            return Change(self._copied(alive, dead, added_keys, added, lengths), moved)
        if alive is not None:
            alive = np.concatenate((alive, np.ones(len(added_keys), dtype=np.bool_)))
        return Change(ExactIndex(self._buffers, size, alive, dead), None)

    def prepared(self) -> ExactIndex:
        """Itself: there is nothing to be built."""
        return self

    def reading(self, stored: object) -> ExactIndex:  # noqa: ARG002 - of the protocol
        """Itself: it has the vectors."""
        return self

    @property
    def takes_long_to_build(self) -> bool:
        """There is nothing to be built."""
        return False

    def parts(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that :meth:`restored` needs: the living vectors and their keys."""
        living = slice(0, self._size) if self._alive is None else np.flatnonzero(self._alive)
        return {"keys": self._buffers.keys[living], "vectors": self._buffers.vectors[living]}

    def restored(self, parts: Mapping[str, npt.NDArray[np.generic]]) -> ExactIndex:
        """The index whose :meth:`parts` were saved; called on an empty one."""
        keys, vectors = parts["keys"].astype(np.int64), parts["vectors"].astype(np.float32)
        return self.updated(np.empty(0, dtype=np.int64), keys, vectors)

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """The records nearest to each query: the true nearest among the visible, however few those are.

        Args:
            queries: each of shape (dimension,), of any length.
            visible_keys: the records that may be found, sorted, none twice; None: all.
            limit: how many; 0 gives none.

        Returns:
            For each query keys, and the cosine of each one's best vector as :func:`exact_cosines` gives it; best
            first. Every record tied with the last one is there too, so there may be more than ``limit``: the caller
            orders ties (here they are by key) and cuts.

        Raises:
            InvalidVectorError: a query is zero, not finite or of another length.
        """
        checked = [as_vector(query, self.dimension, "the query vector") for query in queries]
        return self.search_rows(checked, self.rows_of(visible_keys), limit)

    def cosines(self, query: Floats, keys: Keys) -> tuple[Keys, Scores]:
        """Those of ``keys`` (sorted, none twice) that have a vector, and the cosine of each one's best, which is the
        number that :meth:`search` gives; in any order.

        Raises:
            InvalidVectorError: as for :meth:`search`.
        """
        query = as_vector(query, self.dimension, "the query vector")
        rows = self.rows_of(keys)
        at = np.arange(self._size) if rows is None else rows
        scores = exact_cosines(self._buffers.vectors, query, at, self._buffers.lengths)
        own = self._buffers.keys[at]
        return best_of_each(own, scores, max(1, len(at))) if self.repeats else (own, scores)

    # -- searching ----------------------------------------------------------------------------------------------

    def search_rows(self, queries: Sequence[Floats], rows: Rows | None, limit: int) -> list[Found]:
        """The same as :meth:`search_many`, among rows that :meth:`rows_of` gave, or some of them.

        Args:
            queries: checked already.
            rows: living ones, ascending; None: all there are, if none is dead.
            limit: how many.
        """
        if limit < 1 or (self._size if rows is None else len(rows)) == 0:
            return [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)) for _ in queries]
        if rows is not None and len(rows) <= _FEW * limit:
            return [self._scored(query, rows, limit) for query in queries]
        scans = self._scans(queries, rows)
        return [
            self._scored(query, self._candidates(scan, rows, limit), limit)
            for query, scan in zip(queries, scans, strict=True)
        ]

    def _scored(self, query: Floats, candidates: Rows, limit: int) -> Found:
        scores = exact_cosines(self._buffers.vectors, query, candidates, self._buffers.lengths)
        return best_of_each(self._buffers.keys[candidates], scores, limit)

    def rows_of(self, visible_keys: Keys | None) -> Rows | None:
        """The living rows of the visible records, ascending; None if those are all rows."""
        if visible_keys is None:
            return None if self._alive is None else np.flatnonzero(self._alive)
        keys = self._buffers.keys[: self._size]
        if self._buffers.increasing and FEW_SOUGHT * len(visible_keys) < self._size:
            rows = places_of(keys, visible_keys)
            return rows if self._alive is None else rows[self._alive[rows]]
        mask = membership(keys, visible_keys)
        if self._alive is not None:
            mask &= self._alive
        return None if mask.all() else np.flatnonzero(mask)

    @property
    def size(self) -> int:
        """How many rows there are, dead ones included."""
        return self._size

    def unit_vectors(self, rows: Rows | slice) -> Floats:
        """The vectors of these rows, scaled to a length of 1."""
        return self._buffers.vectors[rows] * self._buffers.inverse_lengths[rows, np.newaxis]

    @property
    def repeats(self) -> bool:
        """Whether a record has several vectors."""
        return len(self.keys) < len(self)

    def _scans(self, queries: Sequence[Floats], rows: Rows | None) -> Iterator[Floats]:
        """For each query cosines in float32, one a row of ``rows``; off by at most :func:`scan_error`."""
        scanned = self._size if rows is None else len(rows)
        at_once = max(1, _SHARED_SCORES // scanned)
        for start in range(0, len(queries), at_once):
            units = [_unit(query) for query in queries[start : start + at_once]]
            with np.errstate(under="ignore"):  # products too small for float32 are far below the margin
                yield from self._scan(units[0], rows)[np.newaxis] if len(units) == 1 else self._shared(units, rows)

    def _scan(self, unit: Floats, rows: Rows | None) -> Floats:
        vectors, kernel = self._buffers.vectors, self._buffers.kernel
        if rows is None:
            scores = kernel.products(vectors[: self._size], unit)
        elif len(rows) > kernel.gather_share * self._size:
            scores = kernel.products(vectors[: self._size], unit)[rows]
        else:
            scores = kernel.products_at(vectors, rows, unit)
        scores *= self._buffers.inverse_lengths[: self._size] if rows is None else self._buffers.inverse_lengths[rows]
        return scores

    def _shared(self, units: Sequence[Floats], rows: Rows | None) -> Floats:
        """The same for several queries; the vectors come from memory but once. Not by BLAS, see :data:`NUMPY`."""
        vectors, kernel = self._buffers.vectors, self._buffers.kernel
        scores = np.empty((len(units), self._size if rows is None else len(rows)), dtype=np.float32)
        step = max(1, _SHARED_BYTES // (4 * self.dimension))
        for start in range(0, scores.shape[1], step):
            stop = min(start + step, scores.shape[1])
            at = slice(start, stop) if rows is None else rows[start:stop]
            block, inverse_lengths = vectors[at], self._buffers.inverse_lengths[at]
            for unit, row in zip(units, scores, strict=True):
                np.multiply(kernel.products(block, unit), inverse_lengths, out=row[start:stop])
        return scores

    def _candidates(self, approximate: Floats, rows: Rows | None, limit: int) -> Rows:
        """The rows that may be among the ``limit`` best records, or tied with the last of them.

        If ``limit`` records have a row that scans at or above t, the last of the best truly scores at least
        t less the scan's error, so each of its equals scans at or above t less twice that error.
        """
        wanted = limit if not self.repeats else 2 * limit
        while wanted < len(approximate):
            least = np.partition(approximate, len(approximate) - wanted)[len(approximate) - wanted]
            if not self.repeats or self._records(np.flatnonzero(approximate >= least), rows) >= limit:
                return _taken(rows, np.flatnonzero(approximate >= least - np.float32(2 * scan_error(self.dimension))))
            wanted *= 4
        return np.arange(len(approximate)) if rows is None else rows

    def _records(self, places: Rows, rows: Rows | None) -> int:
        """How many records the rows at these places belong to."""
        return len(np.unique(self._buffers.keys[_taken(rows, places)]))

    # -- updating -----------------------------------------------------------------------------------------------

    def _scaled(self, keys: Keys, vectors: Floats) -> tuple[Floats, Scores]:
        """The vectors scaled to a length of 0.5 to 1 by a power of two, and those lengths."""
        if vectors.shape != (len(keys), self.dimension):
            raise InvalidVectorError(
                f"the added vectors have the shape {vectors.shape}; {(len(keys), self.dimension)} is expected: "
                f"one row of {self.dimension} numbers a key"
            )
        lengths = np.empty(len(keys), dtype=np.float64)
        for start in range(0, len(keys), _BLOCK):
            lengths[start : start + _BLOCK] = lengths_of(vectors[start : start + _BLOCK].astype(np.float64))
        unusable = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if unusable.size:
            raise InvalidVectorError(
                f"{unusable.size} of the added vectors are all zero or not finite, the first at row {unusable[0]}; "
                "check vectors with as_vector before they are stored"
            )
        fractions, exponents = np.frexp(lengths)
        with np.errstate(under="ignore"):  # a number 2¹⁴⁹ times smaller than its vector's length counts for nothing
            scaled = np.ldexp(vectors, -exponents[:, np.newaxis])
        return scaled, fractions

    def _without(self, removed_keys: Keys) -> tuple[npt.NDArray[np.bool_] | None, int]:
        """Which rows live on, and how many do not."""
        if not len(removed_keys) or not self._size:
            return self._alive, self._dead
        alive = ~np.isin(self._buffers.keys[: self._size], removed_keys)
        if self._alive is not None:
            alive &= self._alive
        dead = self._size - int(np.count_nonzero(alive))
        return (alive, dead) if dead != self._dead else (self._alive, self._dead)

    def _copied(
        self,
        alive: npt.NDArray[np.bool_] | None,
        dead: int,
        added_keys: Keys,
        added: Floats,
        lengths: Scores,
    ) -> ExactIndex:
        """The living rows and the added ones in buffers of their own."""
        kept = self._size - dead
        size = kept + len(added_keys)
        buffers = Buffers(self.dimension, _capacity(size), self._buffers.kernel)
        rows = slice(0, self._size) if alive is None else np.flatnonzero(alive)
        old = self._buffers
        buffers.append(0, old.keys[rows], old.vectors[rows], old.lengths[rows])
        buffers.append(kept, added_keys, added, lengths)
        return ExactIndex(buffers, size, None, 0)

    def _living(self, keys: Keys) -> Keys:
        return keys if self._alive is None else keys[self._alive]


def _capacity(size: int) -> int:
    """Room for half as many rows again; what is not used takes no memory on most systems."""
    return max(_LEAST_CAPACITY, size + size // 2)


def _unit(query: Floats) -> Floats:
    """The query at a length of 1."""
    wide = query.astype(np.float64)
    unit: Floats = (wide / np.sqrt(np.add.reduce(wide * wide))).astype(np.float32)
    return unit


def _taken(rows: Rows | None, places: Rows) -> Rows:
    return places if rows is None else rows[places]
