"""The exact index for very many vectors: their codes in memory, the vectors themselves where they are stored.

A ninth of the memory of :class:`twofold.vectors.flat.FlatIndex`, and the same answers: the codes say which records can
be among the nearest, and the vectors of those alone are read. What came since the codes were made stands beside
them, in an exact index of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.vectors.checks import as_vector
from twofold.vectors.codes import TOGETHER, Codes
from twofold.vectors.coding import Coding
from twofold.vectors.exact import ExactIndex
from twofold.vectors.flat import FlatIndex
from twofold.vectors.proposals import merged, nearest_by_codes
from twofold.vectors.protocol import Floats, Found, Keys, Scores, SearchedAlone
from twofold.vectors.scoring import (
    FEW_SOUGHT,
    distinct_keys,
    exact_cosines,
    is_increasing,
    membership,
    places_of,
)
from twofold.vectors.subsets import Subsets

__all__ = ["CompactIndex", "Stored"]

Stored: TypeAlias = Callable[[Keys], tuple[Keys, Floats]]
"""Gives the stored vectors of some records, and the record of each."""

_FOLDED: Final = 1024
"""From how many new vectors on they get codes."""
_SAMPLE: Final = 8192
"""How many vectors say where the centre of all is; a few that lie far from it stay beside the codes."""
_FAR_SHARE: Final = 0.05
"""If a larger share of any later ones lies far from it, they are of another kind: all get codes without a centre."""
_MOST_FETCHED: Final = 32_768
"""How many neighbours are fetched at most; beyond, every vector is read."""
_FEW_BYTES: Final = 32 * 1024 * 1024
"""If the vectors of all visible records take no more, they are kept in memory for who asks again."""
_BLOCK: Final = 4096


class CompactIndex(SearchedAlone):
    """Vectors by key, searched by cosine, none missed but for what :class:`twofold.vectors.coding.Losses` leaves to
    chance. A snapshot, as :class:`twofold.vectors.VectorIndex` says; one that is searched has to be told where the
    vectors are (:meth:`reading`).

    Args:
        codes: of all vectors but the recent ones; later ones than ``keys`` are not this snapshot's.
        keys: by code, its record.
        recent: the vectors that have no code.
        alive: by code, whether it still counts; None: all do.
        stored: where the vectors are.
    """

    __slots__ = ("_alive", "_codes", "_increasing", "_keys", "_recent", "_sorted_keys", "_stored", "_subsets")

    problem: None = None
    """Nothing stands in for it."""

    def __init__(
        self,
        codes: Codes,
        keys: Keys,
        recent: ExactIndex,
        alive: npt.NDArray[np.bool_] | None = None,
        stored: Stored | None = None,
    ) -> None:
        self._codes = codes
        self._keys = keys
        self._recent = recent
        self._alive = alive
        self._stored = stored
        self._sorted_keys: Keys | None = None
        self._increasing: bool | None = None
        self._subsets = Subsets()

    @classmethod
    def empty(cls, dimension: int) -> CompactIndex:
        """An index without vectors.

        Raises:
            MissingExtraError: FAISS is not installed.
        """
        return cls(Codes(Coding.plain(dimension)), np.empty(0, dtype=np.int64), ExactIndex.empty(dimension))

    @classmethod
    def built(
        cls, dimension: int, batches: Callable[[], Iterable[tuple[Keys, Floats]]], stop: Callable[[], bool]
    ) -> CompactIndex | None:
        """An index of all of these; memory is bounded by the codes.

        Args:
            dimension: how many numbers a vector has.
            batches: begins to give keys, and shape (n, dimension), of any length above 0; called once or twice.
            stop: whether to end early.

        Returns:
            None if it ended early.

        Raises:
            MissingExtraError: FAISS is not installed.
            RuntimeError, MemoryError: FAISS failed.
        """
        first = next(_gathered(batches(), _SAMPLE), None)
        if first is None:
            return cls.empty(dimension)
        centred = cls._built(Coding.for_such(_units(first[1])), batches(), stop, _FAR_SHARE)
        return centred or cls._built(Coding.plain(dimension), batches(), stop, 1.0)

    @classmethod
    def _built(
        cls, coding: Coding, batches: Iterable[tuple[Keys, Floats]], stop: Callable[[], bool], far_share: float
    ) -> CompactIndex | None:
        """The same with this coding; None also if more than this share of some thousand vectors does not fit in."""
        codes = Codes(coding)
        none = np.empty(0, dtype=np.int64)
        keys, recent = [none], ExactIndex.empty(coding.dimension)
        for own, vectors in _gathered(batches, _SAMPLE):
            units = _units(vectors)
            coded = _codable(codes, units)
            far = len(own) - np.count_nonzero(coded)
            if stop() or far > TOGETHER + far_share * len(own):
                return None
            codes.add(codes.count, units[coded])
            keys.append(own[coded])
            recent = recent.updated(none, own[~coded], vectors[~coded])
        return cls(codes, np.concatenate(keys), recent)

    def __len__(self) -> int:
        """How many vectors it holds."""
        coded = len(self._keys) if self._alive is None else int(np.count_nonzero(self._alive))
        return coded + len(self._recent)

    def __repr__(self) -> str:
        return f"CompactIndex(dimension={self.dimension}, vectors={len(self)}, recent={len(self._recent)})"

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._recent.dimension

    @property
    def keys(self) -> Keys:
        """The records that have a vector here: sorted, none twice."""
        if self._sorted_keys is None:  # two threads may both make it; they make the same
            coded = self._keys if self._alive is None else self._keys[self._alive]
            self._sorted_keys = distinct_keys(np.concatenate([coded, self._recent.keys]))
        return self._sorted_keys

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self._codes.nbytes + self._keys.nbytes + self._recent.nbytes + self._subsets.nbytes

    @property
    def takes_long_to_build(self) -> bool:
        """Every vector is read."""
        return True

    def reading(self, stored: Stored) -> CompactIndex:
        """The same index, to be searched in a session that reads the vectors by ``stored``."""
        index = CompactIndex(self._codes, self._keys, self._recent, self._alive, stored)
        index._sorted_keys, index._increasing, index._subsets = self.keys, self._is_increasing, self._subsets
        return index

    # -- updating -------------------------------------------------------------------------------------------------

    def updated(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> CompactIndex:
        """The index after removing and then adding; what is new has no codes yet. See :class:`VectorIndex`.

        Raises:
            InvalidVectorError: an added vector is zero, not finite or of another length.
        """
        recent = self._recent.updated(removed_keys, added_keys, added_vectors)
        alive = self._alive
        if len(removed_keys):
            stay = ~np.isin(self._keys, removed_keys)
            alive = stay if alive is None else alive & stay
        return CompactIndex(self._codes, self._keys, recent, alive)

    def prepared(self) -> CompactIndex:
        """The same index with codes of what is new; see :class:`VectorIndex`."""
        if len(self._recent) < _FOLDED:
            return self
        recent = self._recent.parts()
        own, vectors = recent["keys"].astype(np.int64, copy=False), recent["vectors"].astype(np.float32, copy=False)
        units = _units(vectors)
        coded = _codable(self._codes, units)
        if 2 * np.count_nonzero(coded) < _FOLDED:
            return self  # most lie too far
        try:
            if not self._codes.add(len(self._keys), units[coded]):
                return self  # another future of this index has gone there
        except (RuntimeError, MemoryError):  # FAISS's own: they are as well found beside the codes
            return self
        # As they are, not at a length of 1: a cosine is exact only of a vector's own numbers.
        rest = ExactIndex.empty(self.dimension).updated(own[:0], own[~coded], vectors[~coded])
        alive = self._alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(np.count_nonzero(coded), dtype=np.bool_)])
        return CompactIndex(self._codes, np.concatenate([self._keys, own[coded]]), rest, alive)

    # -- searching ------------------------------------------------------------------------------------------------

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """See :meth:`ExactIndex.search_many`: the same keys and scores.

        Raises:
            InvalidVectorError: a query is zero, not finite or of another length.
        """
        checked = [as_vector(query, self.dimension, "the query vector") for query in queries]
        if visible_keys is not None and 4 * self.dimension * len(visible_keys) <= _FEW_BYTES:
            return self._subsets.of(visible_keys, self._of_few).search_many(checked, None, limit)
        recent = self._recent.search_many(checked, visible_keys, limit)
        among = self._alive if visible_keys is None else self._coded_of(visible_keys)
        size = len(self._keys) if among is None else int(np.count_nonzero(among))
        if limit < 1 or not size:
            return recent
        found = nearest_by_codes(
            self._codes,
            len(self._keys),
            among,
            checked,
            limit,
            most=min(_MOST_FETCHED, size - 1),
            scored=lambda asked, nodes: self._scored(asked, [np.sort(self._keys[own]) for own in nodes], limit),
        )
        unsettled = [number for number, each in enumerate(found) if each is None]
        if unsettled:
            everything = [np.sort(self._keys if among is None else self._keys[among])] * len(unsettled)
            rest = self._scored([checked[number] for number in unsettled], everything, limit)
            for number, each in zip(unsettled, rest, strict=True):
                found[number] = each
        return [merged(each, own, limit) for own, each in zip(recent, found, strict=True) if each is not None]

    def cosines(self, query: Floats, keys: Keys) -> tuple[Keys, Scores]:
        """See :meth:`ExactIndex.cosines`."""
        query = as_vector(query, self.dimension, "the query vector")
        return self._scored([query], [keys], max(1, len(keys)))[0]

    @property
    def _is_increasing(self) -> bool:
        if self._increasing is None:
            self._increasing = is_increasing(self._keys)
        return self._increasing

    def _coded_of(self, visible_keys: Keys) -> npt.NDArray[np.bool_]:
        """By code, whether it is a living one of the visible records."""
        if self._is_increasing and FEW_SOUGHT * len(visible_keys) < len(self._keys):
            mask = np.zeros(len(self._keys), dtype=np.bool_)
            mask[places_of(self._keys, visible_keys)] = True
        else:
            mask = membership(self._keys, visible_keys)
        return mask if self._alive is None else mask & self._alive

    def _of_few(self, visible_keys: Keys) -> FlatIndex:
        """An index of the vectors of these records, which are read for that."""
        index = FlatIndex.empty(self.dimension, room=len(visible_keys))
        for keys, vectors in self._read(visible_keys):
            index = index.updated(keys[:0], keys, vectors)
        return index.prepared()

    def _scored(self, queries: Sequence[Floats], keys: Sequence[Keys], limit: int) -> list[Found]:
        """For each query the best of its records (sorted) by their stored vectors, which are read once for all
        queries.
        """
        best: list[Found] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)) for _ in queries]
        for of, vectors in self._read(np.unique(np.concatenate([self._keys[:0], *keys]))):
            for number, (query, own) in enumerate(zip(queries, keys, strict=True)):
                rows = np.flatnonzero(membership(of, own))
                best[number] = merged(best[number], (of[rows], exact_cosines(vectors, query, rows)), limit)
        return best

    def _read(self, keys: Keys) -> Iterator[tuple[Keys, Floats]]:
        """The stored vectors of these records (sorted), some thousand at a time, and the record of each."""
        if self._stored is None:
            raise TypeError("reading(...) says where the vectors are")
        for start in range(0, len(keys), _BLOCK):
            yield self._stored(keys[start : start + _BLOCK])

    # -- saving ---------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that :meth:`restored` needs."""
        recent = self._recent.parts()
        alive = np.ones(len(self._keys), dtype=np.bool_) if self._alive is None else self._alive
        return {
            **self._codes.parts(len(self._keys)),
            "code_keys": self._keys,
            "alive": alive.astype(np.uint8),
            "recent_keys": recent["keys"],
            "recent_vectors": recent["vectors"],
        }

    def restored(self, parts: Mapping[str, npt.NDArray[np.generic]]) -> CompactIndex:
        """The index whose :meth:`parts` were saved; called on an empty one.

        Raises:
            ValueError: they are of another dimension.
        """
        codes = Codes.restored(self.dimension, parts)
        recent = self._recent.restored({"keys": parts["recent_keys"], "vectors": parts["recent_vectors"]})
        alive = parts["alive"].astype(np.bool_)
        keys = parts["code_keys"].astype(np.int64, copy=False)
        return CompactIndex(codes, keys, recent, None if alive.all() else alive)


def _codable(codes: Codes, units: Floats) -> npt.NDArray[np.bool_]:
    """Which of these are to get codes: those that fit in, but for the last of them if they do not fill a group."""
    fits = codes.coding.fits(units)
    fits[np.flatnonzero(fits)[np.count_nonzero(fits) // TOGETHER * TOGETHER :]] = False
    return fits


def _gathered(batches: Iterable[tuple[Keys, Floats]], count: int) -> Iterator[tuple[Keys, Floats]]:
    """The same, so many at a time; the last may be fewer."""
    keys: list[Keys] = []
    vectors: list[Floats] = []
    held = 0
    for batch in batches:
        keys.append(batch[0])
        vectors.append(batch[1])
        held += len(batch[0])
        while held >= count:
            own, rows = np.concatenate(keys), np.concatenate(vectors)
            yield own[:count], rows[:count]
            keys, vectors, held = [own[count:]], [rows[count:]], held - count
    if held:
        yield np.concatenate(keys), np.concatenate(vectors)


def _units(vectors: Floats) -> Floats:
    """The same at a length of 1."""
    units = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK // 4):
        wide = vectors[start : start + _BLOCK // 4].astype(np.float64)
        units[start : start + len(wide)] = wide / np.sqrt(np.add.reduce(wide * wide, axis=1))[:, np.newaxis]
    return units
