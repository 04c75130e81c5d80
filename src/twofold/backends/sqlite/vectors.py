"""The vector leg: vectors as BLOBs, the index in memory that follows them by generation, and whom it may show.

An index belongs to one generation. A snapshot that is ahead of it applies what changed since (rows carry the
generation that wrote them, deletes leave tombstones); for one that is behind an older index is kept, or one is made
for that query alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Nearest, StoredVectors
from twofold.backends.sqlite.candidates import Ties
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head, read_head
from twofold.backends.sqlite.rescoring import vectors_of
from twofold.backends.sqlite.sidecar import Sidecar
from twofold.backends.sqlite.vec0 import Vec0
from twofold.backends.sqlite.visible_keys import Keys, Seen, changed_since
from twofold.errors import InvalidVectorError, SearchUnavailableError
from twofold.ranking import background_of, spread_evenly
from twofold.vectors import VectorIndex, as_vector, best_of_each, empty_index, exact_cosines, index_in_use

__all__ = ["VectorLeg", "blob_of", "spaces_of", "stored_vectors"]

Matrix: TypeAlias = npt.NDArray[np.float32]

KEPT_INDEXES: Final = 4
"""How many generations of the index are kept for snapshots that are behind; they share their memory."""
_BATCH: Final = 4096


def blob_of(vector: Matrix) -> bytes:
    """A vector as it is stored: little-endian float32."""
    return vector.astype("<f4", copy=False).tobytes()


def spaces_of(connection: Connection, fingerprint: str | None) -> dict[str, int]:
    """The spaces of an embedder, by field."""
    return dict(connection.execute("SELECT field, id FROM spaces WHERE fingerprint = ?", (fingerprint,)))


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
        choice: the index in memory: a value of ``StoreSettings.index``.
        vec0: the vec0 table, which is then asked first.
        sidecar: where the index in memory is saved.
        problem: why ``choice`` is not the one that was asked for.
    """

    def __init__(
        self,
        choice: str = "exact",
        *,
        vec0: Vec0 | None = None,
        sidecar: Sidecar | None = None,
        problem: str | None = None,
    ) -> None:
        self._choice = choice
        self.vec0: Final = vec0
        self._sidecar = sidecar
        self._problem = problem
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, VectorIndex] = OrderedDict()  # by generation, the newest last
        self._fingerprint: str | None = None
        self._reaches: WeakKeyDictionary[Seen, tuple[_HasKeys, _Reach]] = WeakKeyDictionary()
        self._backgrounds: WeakKeyDictionary[Seen, float] = WeakKeyDictionary()
        self._built_anew = False

    def nearest(
        self,
        connection: Connection,
        head: Head,
        vector: Matrix,
        seen: Seen,
        limit: int,
    ) -> Nearest:
        """See :meth:`Reader.nearest`."""
        if head.fingerprint is None or head.dimension is None:
            return Nearest((), int(np.count_nonzero(seen.has_text)))
        fell_back = self._problem
        ties = Ties(connection, seen)
        if self.vec0 is not None:
            query = as_vector(vector, head.dimension, "the query vector")
            try:
                members = self.vec0.members(connection, head)
                reach = self._reach(members, seen)
                keys, scores = self.vec0.search(connection, members, query, reach.searchable, limit)
                return Nearest(tuple(ties.candidates(keys, scores, limit)), reach.unembedded)
            except SearchUnavailableError as error:
                fell_back = str(error)
        index = self._index(connection, head)
        reach = self._reach(index, seen)
        keys, scores = index.search(vector, reach.searchable, limit)
        found = tuple(ties.candidates(keys, scores, limit))
        return Nearest(found, reach.unembedded, fell_back or index.problem)

    def cosines(self, connection: Connection, head: Head, vector: Matrix, keys: Sequence[int]) -> dict[int, float]:
        """See :meth:`Reader.cosines`."""
        if head.fingerprint is None or head.dimension is None or not keys:
            return {}
        if self.vec0 is None:
            wanted = np.sort(np.array(keys, dtype=np.int64))
            found, scores = self._index(connection, head).cosines(vector, wanted)
        else:
            query = as_vector(vector, head.dimension, "the query vector")
            of, vectors = vectors_of(connection, head, _json(keys))
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
        of, vectors = vectors_of(connection, head, _json(embedded[spread_evenly(len(embedded))].tolist()))
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
            holder = self._index(connection, head)
        searchable = self._reach(holder, seen).searchable
        return holder.keys if searchable is None else searchable

    def in_use(self, connection: Connection, head: Head) -> tuple[str, str | None]:
        """The name of the index that a search of this session uses, and why it is not the one that was asked for."""
        if self.vec0 is not None:
            if head.fingerprint is None or self.vec0.is_current(connection, head):
                return "sqlite-vec", None
            return "exact", "the vec0 table is missing or behind; the next write with index='sqlite-vec' brings it up"
        with self._lock:
            newest = next(reversed(self._indexes.values()), None)
        if newest is not None and newest.problem is not None:
            return "exact", newest.problem
        vectors = 0
        if self._choice == "auto":
            (vectors,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        return index_in_use(self._choice, vectors), self._problem

    # -- saving ---------------------------------------------------------------------------------------------------

    @property
    def wants_to_be_saved(self) -> bool:
        """Whether an index was built that took its time."""
        return self._built_anew and self._sidecar is not None

    def save(self, connection: Connection) -> None:
        """Save the newest index beside the file, unless nearly the same is there already.

        Args:
            connection: in a transaction with the write lock held.

        Raises:
            OSError: it cannot be written.
        """
        self._built_anew = False
        head = read_head(connection)
        with self._lock:
            kept = next(reversed(self._indexes.items()), None) if self._fingerprint == head.fingerprint else None
        if self._sidecar is None or kept is None or kept[1].problem is not None or kept[0] < head.pruned:
            return
        if not self._sidecar.is_current(connection, head):
            self._sidecar.save(connection, head, *kept)

    def _reach(self, index: _HasKeys, seen: Seen) -> _Reach:
        with self._lock:
            known = self._reaches.get(seen)
        if known is not None and known[0] is index:
            return known[1]
        reach = _reach(index, seen)
        with self._lock:
            self._reaches[seen] = (index, reach)
        return reach

    # -- the index ------------------------------------------------------------------------------------------------

    def _index(self, connection: Connection, head: Head) -> VectorIndex:
        """The index of the session's snapshot."""
        if head.changed:
            base = self._base(head)
            return _brought_up(connection, head, *base) if base else self._loaded(connection, head)
        with self._lock:
            kept = self._indexes.get(head.generation)
            if kept is not None and self._fingerprint == head.fingerprint:
                return kept
            base = self._base_locked(head)
            ahead = not self._indexes or head.generation > next(reversed(self._indexes))
            if base is not None or ahead:
                index = _brought_up(connection, head, *base) if base else self._loaded(connection, head)
                if ahead:
                    ready = index.prepared()
                    self._built_anew |= ready is not index and base is None and ready.takes_long_to_build
                    self._keep(head, ready)
                    return ready
                return index
        return self._loaded(connection, head)  # behind all that is kept: for this query alone

    def _loaded(self, connection: Connection, head: Head) -> VectorIndex:
        """An index of all vectors of the snapshot: the saved one, brought up to date, or made from the BLOBs."""
        empty = empty_index(self._choice, _dimension(head))
        saved = None if self._sidecar is None else self._sidecar.load(connection, head, empty)
        if saved is not None:
            return _brought_up(connection, head, *saved)
        sql = "SELECT v.key, v.vector FROM vectors v WHERE"
        return _with_vectors(empty, connection, head, sql, (), np.empty(0, dtype=np.int64))

    def _base(self, head: Head) -> tuple[int, VectorIndex] | None:
        with self._lock:
            return self._base_locked(head)

    def _base_locked(self, head: Head) -> tuple[int, VectorIndex] | None:
        """The newest kept index that the snapshot can bring up to date."""
        if self._fingerprint != head.fingerprint:
            return None
        for generation in reversed(self._indexes):
            if head.pruned <= generation < head.generation:
                return generation, self._indexes[generation]
        return None

    def _keep(self, head: Head, index: VectorIndex) -> None:
        if self._fingerprint != head.fingerprint:
            self._indexes.clear()
            self._fingerprint = head.fingerprint
        self._indexes[head.generation] = index
        while len(self._indexes) > KEPT_INDEXES:
            self._indexes.popitem(last=False)


def _reach(index: _HasKeys, seen: Seen) -> _Reach:
    if np.array_equal(seen.keys, index.keys):
        return _Reach(None, 0)
    embedded = np.isin(seen.keys, index.keys, assume_unique=True)
    return _Reach(seen.keys[embedded], int(np.count_nonzero(seen.has_text & ~embedded)))


def _brought_up(connection: Connection, head: Head, generation: int, index: VectorIndex) -> VectorIndex:
    """The index of an earlier generation, with all that changed since."""
    gone = changed_since(connection, generation)
    sql = "SELECT v.key, v.vector FROM records r CROSS JOIN vectors v ON v.key = r.key WHERE r.generation > ? AND"
    return _with_vectors(index, connection, head, sql, (generation,), gone)


def _with_vectors(
    index: VectorIndex, connection: Connection, head: Head, sql: str, params: tuple[Any, ...], removed: Keys
) -> VectorIndex:
    """``index`` without ``removed`` and with the vectors that ``sql`` gives, some thousand at a time.

    Blobs of a wrong length are passed over here and reported by ``check``.
    """
    spaces = spaces_of(connection, head.fingerprint).values()
    dimension = _dimension(head)
    rows = connection.execute(
        f"{sql} v.space IN ({', '.join('?' * len(spaces))}) AND typeof(v.vector) = 'blob' AND length(v.vector) = ?",
        (*params, *spaces, 4 * dimension),
    )
    keys: list[Keys] = [np.empty(0, dtype=np.int64)]
    vectors: list[Matrix] = [np.empty((0, dimension), dtype=np.float32)]
    while batch := rows.fetchmany(_BATCH):
        keys.append(np.fromiter((key for key, _ in batch), dtype=np.int64, count=len(batch)))
        joined = b"".join([blob for _, blob in batch])
        vectors.append(np.frombuffer(joined, dtype="<f4").reshape(len(batch), dimension))
    all_keys, all_vectors = np.concatenate(keys), np.concatenate(vectors).astype(np.float32, copy=False)
    try:
        return index.updated(removed, all_keys, all_vectors)
    except InvalidVectorError:  # a damaged blob must not take the sound ones with it
        sound = np.isfinite(all_vectors).all(axis=1) & all_vectors.any(axis=1)
        return index.updated(removed, all_keys[sound], all_vectors[sound])


def _json(keys: Sequence[int]) -> str:
    return f"[{','.join(map(str, keys))}]"


def _dimension(head: Head) -> int:
    if head.dimension is None:
        raise InvalidVectorError("the store has no vectors yet")
    return head.dimension
