"""The vector leg: vectors as BLOBs, the index in memory that follows them by generation, and whom it may show.

An index belongs to one generation. A snapshot that is ahead of it applies what changed since (rows carry the
generation that wrote them, deletes leave tombstones); for one that is behind an older index is kept, or one is made
for that query alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Identity, Nearest, StoredVectors, Visibility
from twofold.backends.sqlite.candidates import best_candidates
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.visible_keys import Keys, Seen, VisibleKeys, changed_since
from twofold.errors import InvalidVectorError
from twofold.vectors import ExactIndex

__all__ = ["VectorLeg", "blob_of", "spaces_of", "stored_vectors"]

Matrix: TypeAlias = npt.NDArray[np.float32]

KEPT_INDEXES: Final = 4
"""How many generations of the index are kept for snapshots that are behind; they share their memory."""
_BATCH: Final = 4096
_HAS_VECTORS_OR_TEXT: Final = "(r.parts > 0 OR EXISTS (SELECT 1 FROM vectors v WHERE v.key = r.key))"


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


class _Reach(NamedTuple):
    """Whom the caller may see, set against what has a vector."""

    searchable: Keys | None
    """Those who have one; None if these are all that have."""
    unembedded: int
    """How many with text have none."""


class VectorLeg:
    """Finds the nearest among the visible. One for a backend, for all its threads."""

    def __init__(self, visible_keys: VisibleKeys) -> None:
        self._visible_keys = visible_keys
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, ExactIndex] = OrderedDict()  # by generation, the newest last
        self._fingerprint: str | None = None
        self._reaches: WeakKeyDictionary[Seen, tuple[ExactIndex, _Reach]] = WeakKeyDictionary()

    def nearest(
        self,
        connection: Connection,
        head: Head,
        vector: Matrix,
        visible: Visibility,
        limit: int,
        identities: Callable[[Sequence[int]], Mapping[int, Identity]],
    ) -> Nearest:
        """See :meth:`Reader.nearest`."""
        index = self._index(connection, head)
        seen = self._visible_keys.of(connection, head, visible)
        if index is None:
            return Nearest((), int(np.count_nonzero(seen.has_text)))
        reach = self._reach(index, seen)
        keys, scores = index.search(vector, reach.searchable, limit)
        return Nearest(tuple(best_candidates(keys, scores, limit, identities)), reach.unembedded)

    def _reach(self, index: ExactIndex, seen: Seen) -> _Reach:
        with self._lock:
            known = self._reaches.get(seen)
        if known is not None and known[0] is index:
            return known[1]
        reach = _reach(index, seen)
        with self._lock:
            self._reaches[seen] = (index, reach)
        return reach

    # -- the index ------------------------------------------------------------------------------------------------

    def _index(self, connection: Connection, head: Head) -> ExactIndex | None:
        """The index of the session's snapshot; None if the file has no embedder yet."""
        if head.fingerprint is None or head.dimension is None:
            return None
        if head.changed:
            base = self._base(head)
            return _brought_up(connection, head, *base) if base else _loaded(connection, head)
        with self._lock:
            kept = self._indexes.get(head.generation)
            if kept is not None and self._fingerprint == head.fingerprint:
                return kept
            base = self._base_locked(head)
            ahead = not self._indexes or head.generation > next(reversed(self._indexes))
            if base is not None or ahead:
                index = _brought_up(connection, head, *base) if base else _loaded(connection, head)
                if ahead:
                    self._keep(head, index)
                return index
        return _loaded(connection, head)  # behind all that is kept: for this query alone

    def _base(self, head: Head) -> tuple[int, ExactIndex] | None:
        with self._lock:
            return self._base_locked(head)

    def _base_locked(self, head: Head) -> tuple[int, ExactIndex] | None:
        """The newest kept index that the snapshot can bring up to date."""
        if self._fingerprint != head.fingerprint:
            return None
        for generation in reversed(self._indexes):
            if head.pruned <= generation < head.generation:
                return generation, self._indexes[generation]
        return None

    def _keep(self, head: Head, index: ExactIndex) -> None:
        if self._fingerprint != head.fingerprint:
            self._indexes.clear()
            self._fingerprint = head.fingerprint
        self._indexes[head.generation] = index
        while len(self._indexes) > KEPT_INDEXES:
            self._indexes.popitem(last=False)


def _reach(index: ExactIndex, seen: Seen) -> _Reach:
    if np.array_equal(seen.keys, index.keys):
        return _Reach(None, 0)
    embedded = np.isin(seen.keys, index.keys, assume_unique=True)
    return _Reach(seen.keys[embedded], int(np.count_nonzero(seen.has_text & ~embedded)))


def _loaded(connection: Connection, head: Head) -> ExactIndex:
    """An index of all vectors of the snapshot."""
    sql = "SELECT v.key, v.vector FROM vectors v WHERE"
    return _with_vectors(ExactIndex.empty(_dimension(head)), connection, head, sql, (), np.empty(0, dtype=np.int64))


def _brought_up(connection: Connection, head: Head, generation: int, index: ExactIndex) -> ExactIndex:
    """The index of an earlier generation, with all that changed since."""
    gone = changed_since(connection, generation)
    sql = "SELECT v.key, v.vector FROM records r CROSS JOIN vectors v ON v.key = r.key WHERE r.generation > ? AND"
    return _with_vectors(index, connection, head, sql, (generation,), gone)


def _with_vectors(
    index: ExactIndex, connection: Connection, head: Head, sql: str, params: tuple[Any, ...], removed: Keys
) -> ExactIndex:
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


def _dimension(head: Head) -> int:
    if head.dimension is None:
        raise InvalidVectorError("the store has no vectors yet")
    return head.dimension
