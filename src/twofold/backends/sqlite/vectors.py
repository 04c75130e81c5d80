"""The vector leg: vectors as BLOBs, the index in memory that follows them by generation, and whom it may show.

An index belongs to one generation. A snapshot that is ahead of it applies what changed since (rows carry the
generation that wrote them, deletes leave tombstones); for one that is behind an older index is kept, or one is made
for that query alone.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate, Identity, Nearest, StoredVectors, Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.rows import store_time
from twofold.backends.sqlite.visible import Condition, alive_at, permitted
from twofold.errors import InvalidVectorError
from twofold.ranking.order import in_total_order
from twofold.vectors import ExactIndex

__all__ = ["VectorLeg", "blob_of", "spaces_of", "stored_vectors"]

Keys: TypeAlias = npt.NDArray[np.int64]
Matrix: TypeAlias = npt.NDArray[np.float32]

KEPT_INDEXES: Final = 4
"""How many generations of the index are kept for snapshots that are behind; they share their memory."""
MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
"""How much the kept lists of visible keys may take."""

_ALWAYS: Final = (-sys.maxsize - 1, sys.maxsize)
_TOUCHED: Final = ("access_count", "last_accessed")
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """Which records a caller may see, at one generation and within a span of time."""

    generation: int
    span: tuple[int, int]
    """From the first instant (microseconds) to the second, excluded, no record becomes visible or ceases to be."""
    keys: Keys
    """Those with text, ascending."""
    searchable: Keys | None
    """Those of them that have a vector; None if these are all that have."""
    unembedded: int
    """How many of them have none."""


class VectorLeg:
    """Finds the nearest among the visible. One for a backend, for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, ExactIndex] = OrderedDict()  # by generation, the newest last
        self._fingerprint: str | None = None
        self._seen: OrderedDict[tuple[Any, ...], _Seen] = OrderedDict()  # the last used last
        self._seen_bytes = 0

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
        seen = self._visible(connection, head, index, visible)
        if index is None or limit < 1:
            return Nearest((), seen.unembedded)
        keys, scores = index.search(vector, seen.searchable, limit)
        by_key = dict(zip(keys.tolist(), scores.tolist(), strict=True))
        ordered = in_total_order(by_key, lambda tied: {key: each.order for key, each in identities(tied).items()})
        return Nearest(tuple(Candidate(key, by_key[key]) for key in ordered[:limit]), seen.unembedded)

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

    # -- whom it may show -----------------------------------------------------------------------------------------

    def _visible(self, connection: Connection, head: Head, index: ExactIndex | None, visible: Visibility) -> _Seen:
        condition = permitted(visible)
        at = store_time(visible.at)
        # 1, 1.0 and True are equal and have one hash, but a filter tells them apart: their types belong to the key.
        key = (condition.sql, visible.include_archived, *((type(value), value) for value in condition.params))
        # Touches do not count as writes, so what depends on them cannot be kept.
        lasting = not head.changed and not any(column in condition.sql for column in _TOUCHED)
        known = self._known(key)
        if known is not None:
            reachable = head.pruned <= known.generation <= head.generation
            if not reachable or not known.span[0] <= at < known.span[1]:
                known = None
            elif known.generation == head.generation:
                return known
        alive = Condition("") if visible.include_archived else alive_at(at)
        shown = Condition("r.parts > 0") & condition & alive
        if known is None:
            keys = _key_array(connection, f"SELECT r.key FROM records r WHERE {shown.sql} ORDER BY r.key", shown.params)
            since = None
        else:
            since = known.generation
            keys = _changed_keys(connection, known, shown)
        span = _ALWAYS if visible.include_archived else _span(connection, at, since)
        if known is not None:
            span = max(span[0], known.span[0]), min(span[1], known.span[1])
        seen = _against(index, head.generation, span, keys)
        if lasting:
            self._remember(key, seen)
        return seen

    def _known(self, key: tuple[Any, ...]) -> _Seen | None:
        with self._lock:
            known = self._seen.get(key)
            if known is not None:
                self._seen.move_to_end(key)
            return known

    def _remember(self, key: tuple[Any, ...], seen: _Seen) -> None:
        with self._lock:
            before = self._seen.pop(key, None)
            if before is not None:
                self._seen_bytes -= _bytes_of(before)
                if before.generation > seen.generation:
                    seen = before
            self._seen[key] = seen
            self._seen_bytes += _bytes_of(seen)
            while self._seen_bytes > MAX_CACHED_BYTES:
                _, dropped = self._seen.popitem(last=False)
                self._seen_bytes -= _bytes_of(dropped)


def _bytes_of(seen: _Seen) -> int:
    return 1024 + seen.keys.nbytes + (0 if seen.searchable is None else seen.searchable.nbytes)


def _against(index: ExactIndex | None, generation: int, span: tuple[int, int], keys: Keys) -> _Seen:
    """Set what may be seen against what has a vector."""
    if index is None:
        return _Seen(generation, span, keys, None, len(keys))
    if np.array_equal(keys, index.keys):
        return _Seen(generation, span, keys, None, 0)
    searchable = keys[np.isin(keys, index.keys, assume_unique=True)]
    return _Seen(generation, span, keys, searchable, len(keys) - len(searchable))


def _key_array(connection: Connection, sql: str, params: Sequence[Any]) -> Keys:
    return np.fromiter((key for (key,) in connection.execute(sql, params)), dtype=np.int64)


def _gone_since(connection: Connection, generation: int) -> Keys:
    """Records that were written or deleted since."""
    return _key_array(
        connection,
        "SELECT key FROM records WHERE generation > ? UNION SELECT key FROM tombstones WHERE generation > ?",
        (generation, generation),
    )


def _changed_keys(connection: Connection, known: _Seen, shown: Condition) -> Keys:
    """The visible keys of a snapshot from those of an earlier one."""
    gone = _gone_since(connection, known.generation)
    stayed = known.keys[~np.isin(known.keys, gone, assume_unique=True)]
    come = _key_array(
        connection,
        f"SELECT r.key FROM records r WHERE r.generation > ? AND {shown.sql}",
        (known.generation, *shown.params),
    )
    return np.union1d(stayed, come)


def _span(connection: Connection, at: int, since: int | None) -> tuple[int, int]:
    """The span around ``at`` in which no record begins or ceases to be valid, of those written after ``since``.

    All records are looked at, also those that the caller cannot see: that only makes the span shorter.
    """
    timed = "(valid_from IS NOT NULL OR valid_to IS NOT NULL OR expires_at IS NOT NULL)"
    where = timed if since is None else f"generation > {since:d} AND {timed}"
    start, end = _ALWAYS
    for row in connection.execute(f"SELECT valid_from, valid_to, expires_at FROM records WHERE {where}"):
        for instant in row:
            if instant is not None:
                if instant <= at:
                    start = max(start, instant)
                else:
                    end = min(end, instant)
    return start, end


def _loaded(connection: Connection, head: Head) -> ExactIndex:
    """An index of all vectors of the snapshot."""
    sql = "SELECT v.key, v.vector FROM vectors v WHERE"
    return _with_vectors(ExactIndex.empty(_dimension(head)), connection, head, sql, (), np.empty(0, dtype=np.int64))


def _brought_up(connection: Connection, head: Head, generation: int, index: ExactIndex) -> ExactIndex:
    """The index of an earlier generation, with all that changed since."""
    gone = _gone_since(connection, generation)
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
