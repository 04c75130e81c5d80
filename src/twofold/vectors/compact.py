"""The exact index for very many vectors: their codes in memory, the vectors themselves where they are stored.

A quarter of the memory of :class:`twofold.vectors.flat.FlatIndex`, and the same answers: the codes say which records
can be among the nearest, and the vectors of those alone are read. What came since the codes were made stands beside
them, in an exact index of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.vectors.checks import as_vector
from twofold.vectors.codes import Codes, Proposed
from twofold.vectors.exact import ExactIndex
from twofold.vectors.proposals import nearest_by_codes
from twofold.vectors.protocol import Floats, Found, Keys, Scores, SearchedAlone
from twofold.vectors.scoring import (
    FEW_SOUGHT,
    best_of_each,
    distinct_keys,
    exact_cosines,
    is_increasing,
    membership,
    places_of,
)
from twofold.vectors.subsets import Searched, Subsets

__all__ = ["CompactIndex", "Stored"]

Stored: TypeAlias = Callable[[Keys], tuple[Keys, Floats]]
"""Gives the stored vectors of some records, and the record of each."""

_FOLDED: Final = 1024
"""From how many new vectors on they get codes."""
_SAMPLE: Final = 20_000
"""How many vectors say how large the numbers of all will be; what is larger stays beside the codes."""
_MOST_FETCHED: Final = 4096
"""How many neighbours are fetched at most; beyond, every vector is read."""
_SUBSET_SHARE: Final = 0.02
"""Up to this share of visible records their codes are copied: to scan those takes less than to ask of each code whether
it counts.
"""
_BLOCK: Final = 4096


class CompactIndex(SearchedAlone):
    """Vectors by key, searched by cosine, none missed. A snapshot, as :class:`twofold.vectors.VectorIndex` says; one
    that is searched has to be told where the vectors are (:meth:`reading`).

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
        return cls(Codes.with_room(dimension, 1.0), np.empty(0, dtype=np.int64), ExactIndex.empty(dimension))

    @classmethod
    def built(
        cls, dimension: int, batches: Iterable[tuple[Keys, Floats]], stop: Callable[[], bool]
    ) -> CompactIndex | None:
        """An index of all of these; memory is bounded by the codes.

        Args:
            dimension: how many numbers a vector has.
            batches: keys, and shape (n, dimension), of any length above 0.
            stop: whether to end early.

        Returns:
            None if it ended early.

        Raises:
            MissingExtraError: FAISS is not installed.
            RuntimeError, MemoryError: FAISS failed.
        """
        sample = _Sample()
        codes: Codes | None = None
        keys: list[Keys] = []
        recent = ExactIndex.empty(dimension)
        none = np.empty(0, dtype=np.int64)
        for own, vectors in sample.first(batches):
            if stop():
                return None
            units = _units(vectors)
            if codes is None:
                codes = Codes.with_room(dimension, sample.largest)
            fits = codes.fits(units)
            codes.add(codes.count, units[fits])
            keys.append(own[fits])
            if not fits.all():
                recent = recent.updated(none, own[~fits], vectors[~fits])
        codes = Codes.with_room(dimension, 1.0) if codes is None else codes
        return cls(codes, np.concatenate([none, *keys]), recent)

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
        fits = self._codes.fits(units)
        if np.count_nonzero(fits) < _FOLDED or not self._codes.add(len(self._keys), units[fits]):
            return self  # it does not fit in, or another future of this index has gone there
        # As they are, not at a length of 1: a cosine is exact only of a vector's own numbers.
        rest = ExactIndex.empty(self.dimension).updated(own[:0], own[~fits], vectors[~fits])
        alive = self._alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(np.count_nonzero(fits), dtype=np.bool_)])
        return CompactIndex(self._codes, np.concatenate([self._keys, own[fits]]), rest, alive)

    # -- searching ------------------------------------------------------------------------------------------------

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """See :meth:`ExactIndex.search_many`: the same keys and scores.

        Raises:
            InvalidVectorError: a query is zero, not finite or of another length.
        """
        checked = [as_vector(query, self.dimension, "the query vector") for query in queries]
        searched = self._searched(visible_keys)
        recent = self._recent.search_many(checked, visible_keys, limit)
        size = searched.size
        if limit < 1 or not size:
            return recent
        found = nearest_by_codes(
            searched.codes,
            len(searched.keys),
            searched.among,
            checked,
            limit,
            most=min(_MOST_FETCHED, size - 1),
            scored=lambda asked, proposals: self._best_proposed(asked, proposals, searched.keys, limit),
        )
        unsettled = [number for number, each in enumerate(found) if each is None]
        if unsettled:
            everything = [np.sort(searched.visible_keys)] * len(unsettled)
            rest = self._scored([checked[number] for number in unsettled], everything, limit)
            for number, each in zip(unsettled, rest, strict=True):
                found[number] = each
        return [_merged(own, each, limit) for own, each in zip(recent, found, strict=True) if each is not None]

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

    def _searched(self, visible_keys: Keys | None) -> Searched:
        """The codes of the visible records: of few of them a copy, which is kept for who asks again."""
        if visible_keys is None:
            return Searched(self._codes, self._keys, self._alive)
        if len(visible_keys) > _SUBSET_SHARE * len(self._keys):
            return Searched(self._codes, self._keys, self._coded_of(visible_keys))
        return self._subsets.of(visible_keys, self._copied)

    def _copied(self, visible_keys: Keys) -> Searched:
        nodes = np.flatnonzero(self._coded_of(visible_keys))
        return Searched(self._codes.subset(nodes), self._keys[nodes])

    def _best_proposed(
        self, queries: Sequence[Floats], proposals: Sequence[Proposed], key_of: Keys, limit: int
    ) -> list[Found]:
        """For each query the best of what is proposed for it, by code. Reading a vector is dear, so those that seem
        best are read first: they say how good another must be to come in.
        """
        first = [np.sort(key_of[proposed.nodes[:limit]]) for proposed in proposals]
        found = self._scored(queries, first, limit)
        more: list[Keys] = []
        for proposed, (keys, scores) in zip(proposals, found, strict=True):
            least = scores[limit - 1] - proposed.error if len(keys) >= limit else -np.inf
            more.append(np.sort(key_of[proposed.nodes[limit:][proposed.cosines[limit:] >= least]]))
        if not any(map(len, more)):
            return found
        others = self._scored(queries, more, limit)
        return [_merged(one, other, limit) for one, other in zip(found, others, strict=True)]

    def _scored(self, queries: Sequence[Floats], keys: Sequence[Keys], limit: int) -> list[Found]:
        """For each query the best of its records (sorted) by their stored vectors, which are read once for all
        queries, some thousand at a time.
        """
        if self._stored is None:
            raise TypeError("reading(...) says where the vectors are")
        best: list[Found] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)) for _ in queries]
        distinct = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *keys]))
        for start in range(0, len(distinct), _BLOCK):
            of, vectors = self._stored(distinct[start : start + _BLOCK])
            for number, (query, own) in enumerate(zip(queries, keys, strict=True)):
                rows = np.flatnonzero(membership(of, own))
                best[number] = _merged(best[number], (of[rows], exact_cosines(vectors, query, rows)), limit)
        return best

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
        numbers = parts["numbers"].astype(np.float64)
        codes = Codes.restored(self.dimension, parts["codes"].astype(np.uint8, copy=False), numbers)
        recent = self._recent.restored({"keys": parts["recent_keys"], "vectors": parts["recent_vectors"]})
        alive = parts["alive"].astype(np.bool_)
        keys = parts["code_keys"].astype(np.int64, copy=False)
        return CompactIndex(codes, keys, recent, None if alive.all() else alive)


def _merged(one: Found, other: Found, limit: int) -> Found:
    """The best of both."""
    return best_of_each(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), limit)


class _Sample:
    """The first vectors of a stream, held back until they say how large their numbers are."""

    def __init__(self) -> None:
        self.largest = 0.0

    def first(self, batches: Iterable[tuple[Keys, Floats]]) -> Iterable[tuple[Keys, Floats]]:
        """The same batches, once :attr:`largest` is known."""
        held: list[tuple[Keys, Floats]] | None = []
        count = 0
        for batch in batches:
            if held is None:
                yield batch
                continue
            held.append(batch)
            count += len(batch[0])
            self.largest = max(self.largest, float(np.abs(_units(batch[1])).max(initial=0.0)))
            if count >= _SAMPLE:
                yield from held
                held = None
        yield from held or ()


def _units(vectors: Floats) -> Floats:
    """The same at a length of 1."""
    wide = vectors.astype(np.float64)
    wide /= np.sqrt(np.add.reduce(wide * wide, axis=1))[:, np.newaxis]
    return wide.astype(np.float32)
