"""The vector leg: vectors as BLOBs, the index that finds the nearest of them, and whom it may show."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Nearest, StoredVectors
from twofold.backends.sqlite.candidates import Ties, json_keys
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.rescoring import vectors_of
from twofold.backends.sqlite.vec0 import Vec0
from twofold.backends.sqlite.vector_indexes import VectorIndexes
from twofold.backends.sqlite.visible_keys import Keys, Seen
from twofold.errors import SearchUnavailableError
from twofold.ranking import background_of, spread_evenly
from twofold.vectors import as_vector, best_of_each, exact_cosines

__all__ = ["VectorLeg", "blob_of", "stored_vectors"]

Matrix: TypeAlias = npt.NDArray[np.float32]
Found: TypeAlias = tuple[Keys, npt.NDArray[np.float64]]

_FEW: Final = 2_000
"""Up to so many visible records are looked at one by one while the index is being built."""


def blob_of(vector: Matrix) -> bytes:
    """A vector as it is stored: little-endian float32."""
    return vector.astype("<f4", copy=False).tobytes()


def stored_vectors(connection: Connection, fingerprint: str | None, keys_json: str) -> dict[int, StoredVectors]:
    """The vectors of the records of a JSON list of keys; records without one are left out."""
    found: dict[int, dict[str, list[Matrix]]] = {}
    rows = connection.execute(
        "SELECT v.key, s.field, v.vector FROM json_each(?) j CROSS JOIN vectors v ON v.key = j.value"
        " JOIN spaces s ON s.id = v.space WHERE s.fingerprint = ? ORDER BY v.key, v.space, v.part",
        (keys_json, fingerprint),
    )
    for key, field, blob in rows:
        found.setdefault(key, {}).setdefault(field, []).append(np.frombuffer(blob, dtype="<f4").astype(np.float32))
    return {
        key: StoredVectors(key, {field: np.stack(parts) for field, parts in by_field.items()})
        for key, by_field in found.items()
    }


class _HasKeys(Protocol):
    @property
    def keys(self) -> Keys: ...


class _Reach(NamedTuple):
    """Whom the caller may see, set against what has a vector."""

    searchable: Keys | None
    """Those who have one; None if these are all that have."""
    unembedded: int
    """How many with text have none."""


class VectorLeg:
    """Finds the nearest among the visible. One for a backend, for all its threads.

    Args:
        indexes: the index in memory.
        vec0: the vec0 table, which is then asked first.
        problem: why the index is not the one that was asked for.
    """

    def __init__(self, indexes: VectorIndexes, *, vec0: Vec0 | None = None, problem: str | None = None) -> None:
        self.indexes: Final = indexes
        self.vec0: Final = vec0
        self._problem = problem
        self._lock = threading.Lock()
        self._reaches: WeakKeyDictionary[Seen, tuple[_HasKeys, _Reach]] = WeakKeyDictionary()
        self._backgrounds: WeakKeyDictionary[Seen, float] = WeakKeyDictionary()

    def nearest_many(
        self, connection: Connection, head: Head, vectors: Sequence[Matrix], seen: Seen, limit: int
    ) -> list[Nearest]:
        """See :meth:`Reader.nearest_many`."""
        if head.fingerprint is None or head.dimension is None:
            return [Nearest((), int(np.count_nonzero(seen.has_text)))] * len(vectors)
        fell_back = self._problem
        found: Sequence[Found]
        if self.vec0 is not None:
            queries = [as_vector(vector, head.dimension, "the query vector") for vector in vectors]
            try:
                members = self.vec0.members(connection, head)
                reach = self._reach(members, seen)
                found = [self.vec0.search(connection, members, query, reach.searchable, limit) for query in queries]
                return _in_order(found, limit, Ties(connection, seen), reach.unembedded, None)
            except SearchUnavailableError as error:
                fell_back = str(error)
        index = self.indexes.of(connection, head)
        if index is None:
            return self._among_few(connection, head, vectors, seen, limit)
        reach = self._reach(index, seen)
        found = index.reading(_reader_of(connection, head)).search_many(vectors, reach.searchable, limit)
        return _in_order(found, limit, Ties(connection, seen), reach.unembedded, fell_back or index.problem)

    def _among_few(
        self, connection: Connection, head: Head, vectors: Sequence[Matrix], seen: Seen, limit: int
    ) -> list[Nearest]:
        """While the index is being built: the nearest of few visible records, read now."""
        queries = [as_vector(vector, head.dimension, "the query vector") for vector in vectors]
        if len(seen.keys) > _FEW:
            raise SearchUnavailableError(
                "the index of so many vectors is being built in the background, which takes a second for every 80,000 "
                "or so; ask again then"
            )
        of, stored = vectors_of(connection, head, json_keys(seen.keys.tolist()))
        found = [best_of_each(of, exact_cosines(stored, query), max(1, limit)) for query in queries]
        unembedded = np.count_nonzero(seen.has_text & ~np.isin(seen.keys, of))
        return _in_order(found, limit, Ties(connection, seen), int(unembedded), None)

    def cosines(self, connection: Connection, head: Head, vector: Matrix, keys: Sequence[int]) -> dict[int, float]:
        """See :meth:`Reader.cosines`."""
        if head.fingerprint is None or head.dimension is None or not keys:
            return {}
        index = None if self.vec0 is not None else self.indexes.of(connection, head)
        if index is not None:
            wanted = np.sort(np.array(keys, dtype=np.int64))
            found, scores = index.reading(_reader_of(connection, head)).cosines(vector, wanted)
        else:
            query = as_vector(vector, head.dimension, "the query vector")
            of, vectors = vectors_of(connection, head, json_keys(list(keys)))
            found, scores = best_of_each(of, exact_cosines(vectors, query), len(of) or 1)
        return dict(zip(found.tolist(), scores.tolist(), strict=True))

    def background(self, connection: Connection, head: Head, seen: Seen) -> float:
        """See :meth:`Reader.background`."""
        if head.fingerprint is None or head.dimension is None:
            return 0.0
        with self._lock:
            known = self._backgrounds.get(seen)
        if known is not None and not head.changed:
            return known
        embedded = self._embedded(connection, head, seen)
        of, vectors = vectors_of(connection, head, json_keys(embedded[spread_evenly(len(embedded))].tolist()))
        first = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1]))) if len(of) else of
        value = background_of(vectors[first])
        if not head.changed:
            with self._lock:
                self._backgrounds[seen] = value
        return value

    def _embedded(self, connection: Connection, head: Head, seen: Seen) -> Keys:
        """Those of the visible that have a vector."""
        holder: _HasKeys | None = None
        if self.vec0 is not None:
            with suppress(SearchUnavailableError):
                holder = self.vec0.members(connection, head)
        if holder is None:
            holder = self.indexes.of(connection, head)
        if holder is None:
            return seen.keys
        searchable = self._reach(holder, seen).searchable
        return holder.keys if searchable is None else searchable

    def in_use(self, connection: Connection, head: Head) -> tuple[str, str | None]:
        """The name of the index that a search of this session uses, and why it is not the one that was asked for."""
        if self.vec0 is not None:
            if head.fingerprint is None or self.vec0.is_current(connection, head):
                return "sqlite-vec", None
            return "exact", "the vec0 table is missing or behind; the next write with index='sqlite-vec' brings it up"
        name, problem = self.indexes.in_use(connection)
        return name, problem or self._problem

    def _reach(self, index: _HasKeys, seen: Seen) -> _Reach:
        with self._lock:
            known = self._reaches.get(seen)
        if known is not None and known[0] is index:
            return known[1]
        reach = _reach(index, seen)
        with self._lock:
            self._reaches[seen] = (index, reach)
        return reach


def _reach(index: _HasKeys, seen: Seen) -> _Reach:
    if np.array_equal(seen.keys, index.keys):
        return _Reach(None, 0)
    embedded = np.isin(seen.keys, index.keys, assume_unique=True)
    return _Reach(seen.keys[embedded], int(np.count_nonzero(seen.has_text & ~embedded)))


def _in_order(found: Sequence[Found], limit: int, ties: Ties, unembedded: int, fell_back: str | None) -> list[Nearest]:
    """What was found for each query, ties in their order and cut."""
    return [Nearest(tuple(ties.candidates(*each, limit)) if limit > 0 else (), unembedded, fell_back) for each in found]


def _reader_of(connection: Connection, head: Head) -> Callable[[Keys], tuple[Keys, Matrix]]:
    """What gives the stored vectors of records in this session."""
    return lambda keys: vectors_of(connection, head, json_keys(keys.tolist()))
