"""The vector index in memory, which follows the vectors of the file by generation.

An index belongs to one generation. A snapshot that is ahead of it applies what changed since (rows carry the
generation that wrote them, deletes leave tombstones); for one that is behind an older index is kept, or one is made
for that query alone. Where the vectors would take much memory their codes are kept instead, made in the background.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.background import Background, Stopping
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head, read_head
from twofold.backends.sqlite.pragmas import reading_through
from twofold.backends.sqlite.sidecar import Sidecar
from twofold.backends.sqlite.visible_keys import Keys, changed_since
from twofold.errors import InvalidVectorError, StoreError
from twofold.vectors import CompactIndex, VectorIndex, empty_index, faiss_problem, index_in_use

__all__ = ["VectorIndexes", "spaces_of"]

Matrix: TypeAlias = npt.NDArray[np.float32]

KEPT_INDEXES: Final = 4
"""How many generations of the index are kept for snapshots that are behind; they share their memory."""
FLOATS_IN_MEMORY: Final = 256 * 1024 * 1024
"""How many bytes of vectors are kept in memory; of more, ``auto`` and ``faiss-flat`` keep the codes alone."""
_JOB: Final = "vector index"
_BATCH: Final = 1024


def spaces_of(connection: Connection, fingerprint: str | None) -> dict[str, int]:
    """The spaces of an embedder, by field."""
    return dict(connection.execute("SELECT field, id FROM spaces WHERE fingerprint = ?", (fingerprint,)))


class VectorIndexes:
    """The indexes of one backend, for all its threads.

    Args:
        choice: a value of ``StoreSettings.index``.
        sidecar: where the index is saved.
        codes: where the codes are saved, if many vectors are not to be kept in memory.
        background: what builds those.
        sessions: opens a session for that.
        writer: begins a transaction, for saving them.
    """

    def __init__(
        self,
        choice: str = "exact",
        *,
        sidecar: Sidecar | None = None,
        codes: Sidecar | None = None,
        background: Background | None = None,
        sessions: Callable[[], AbstractContextManager[Connection]] | None = None,
        writer: Callable[[], AbstractContextManager[Connection]] | None = None,
    ) -> None:
        self._choice = choice
        self._sidecar = sidecar
        self._codes = codes
        self._background = background
        self._sessions = sessions
        self._writer = writer
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, VectorIndex] = OrderedDict()  # by generation, the newest last
        self._fingerprint: str | None = None
        self._built_anew = False
        self._failed = False

    def of(self, connection: Connection, head: Head) -> VectorIndex | None:
        """The index of the session's snapshot; None while it is being built."""
        index = self._of(connection, head)
        if index is None and self._background is not None:
            self._background.start(_JOB, self._build)
        return index

    def in_use(self, connection: Connection) -> tuple[str, str | None]:
        """The name of the index that searches use, and why it is not the one that was asked for."""
        newest = self._newest()
        if newest is not None and newest[1].problem is not None:
            return "exact", newest[1].problem
        vectors = 0
        if self._choice == "auto":
            (vectors,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        problem = None
        if self._background is not None and self._background.is_busy(_JOB):
            problem = "it is being built; until then searches of many records are answered by keywords alone"
        return index_in_use(self._choice, vectors), problem

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
        kept = self._newest() if self._fingerprint == head.fingerprint else None
        if kept is None or kept[1].problem is not None or kept[0] < head.pruned:
            return
        sidecar = self._codes if isinstance(kept[1], CompactIndex) else self._sidecar
        if sidecar is not None and not sidecar.is_current(connection, head):
            sidecar.save(connection, head, *kept)

    # -- by generation --------------------------------------------------------------------------------------------

    def _of(self, connection: Connection, head: Head) -> VectorIndex | None:
        if head.changed:
            with self._lock:
                base = self._base(head)
            return _brought_up(connection, head, *base) if base else self._loaded(connection, head)
        with self._lock:
            kept = self._indexes.get(head.generation)
            if kept is not None and self._fingerprint == head.fingerprint:
                return kept
            base = self._base(head)
            ahead = self._is_ahead(head)
            if base is not None or ahead:
                index = _brought_up(connection, head, *base) if base else self._loaded(connection, head)
                if ahead and index is not None:
                    ready = index.prepared()
                    self._built_anew |= ready is not index and base is None and ready.takes_long_to_build
                    self._keep(head, ready)
                    return ready
                return index
        return self._loaded(connection, head)  # behind all that is kept: for this query alone

    def _newest(self) -> tuple[int, VectorIndex] | None:
        with self._lock:
            return next(reversed(self._indexes.items()), None)

    def _is_ahead(self, head: Head) -> bool:
        return not self._indexes or head.generation > next(reversed(self._indexes))

    def _base(self, head: Head) -> tuple[int, VectorIndex] | None:
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

    # -- making one -----------------------------------------------------------------------------------------------

    def _loaded(self, connection: Connection, head: Head) -> VectorIndex | None:
        """An index of all vectors of the snapshot: the saved one, brought up to date, or made from the BLOBs; None if
        that is left to the background.
        """
        dimension = _dimension(head)
        (vectors,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        if self._codes is not None and self._is_large(dimension, vectors):
            # Even an empty one FAISS may refuse to make: then it is no saved index, and what builds one takes note.
            saved_codes = self._codes.load(
                connection, head, lambda parts: CompactIndex.empty(dimension).restored(parts)
            )
            return None if saved_codes is None else _brought_up(connection, head, *saved_codes)
        empty = empty_index(self._choice, dimension, room=vectors)
        saved = None if self._sidecar is None else self._sidecar.load(connection, head, empty.restored)
        if saved is not None:
            return _brought_up(connection, head, *saved)
        with reading_through(connection):
            return _with_vectors(empty, connection, head, "vectors v WHERE", (), np.empty(0, dtype=np.int64))

    def _is_large(self, dimension: int, vectors: int) -> bool:
        return 4 * dimension * vectors > FLOATS_IN_MEMORY and not self._failed and faiss_problem() is None

    def _build(self, stopping: Stopping) -> None:
        """Make the codes of all vectors, and save them."""
        with suppress(StoreError, OSError):  # closed meanwhile, read-only, no room: nobody asks, or it is a cache
            made = self._made(stopping)
            if made is None:
                return
            head, index = made
            with self._lock:
                if self._is_ahead(head) or self._fingerprint != head.fingerprint:
                    self._keep(head, index)
            if self._codes is not None and self._writer is not None:
                self._codes.save_unhurried(
                    self._writer, head.generation, index, lambda: self._fingerprint == head.fingerprint
                )

    def _made(self, stopping: Stopping) -> tuple[Head, CompactIndex] | None:
        """The snapshot that the vectors are read in keeps the log from shrinking meanwhile: a second for every 80,000
        of them or so.
        """
        if self._sessions is None:
            return None
        with self._sessions() as connection, reading_through(connection):
            head = read_head(connection)
            try:
                index = CompactIndex.built(
                    _dimension(head), lambda: _stored_vectors(connection, head, "vectors v WHERE", ()), stopping
                )
            except (RuntimeError, MemoryError):  # FAISS's own: the vectors themselves then have to do
                self._failed = True
                return None
        return None if index is None else (head, index)


def _brought_up(connection: Connection, head: Head, generation: int, index: VectorIndex) -> VectorIndex:
    """The index of an earlier generation, with all that changed since."""
    gone = changed_since(connection, generation)
    source = "records r CROSS JOIN vectors v ON v.key = r.key WHERE r.generation > ? AND"
    return _with_vectors(index, connection, head, source, (generation,), gone)


def _with_vectors(
    index: VectorIndex, connection: Connection, head: Head, source: str, params: tuple[Any, ...], removed: Keys
) -> VectorIndex:
    """``index`` without ``removed`` and with the vectors of ``source``; in memory they are there but once."""
    nothing = np.empty(0, dtype=np.int64), np.empty((0, _dimension(head)), dtype=np.float32)
    index = index.updated(removed, *nothing)
    for keys, vectors in _stored_vectors(connection, head, source, params):
        index = index.updated(nothing[0], keys, vectors)
    return index


def _stored_vectors(
    connection: Connection, head: Head, source: str, params: tuple[Any, ...]
) -> Iterator[tuple[Keys, Matrix]]:
    """Keys and vectors of the active embedder, some thousand at a time.

    Damaged ones, of a wrong length, not finite or all zero, are passed over here and reported by ``check``: they must
    not take the sound ones with them.
    """
    spaces = spaces_of(connection, head.fingerprint).values()
    dimension = _dimension(head)
    rows = connection.execute(
        f"SELECT v.key, v.vector FROM {source} v.space IN ({', '.join('?' * len(spaces))})"  # noqa: S608 - constants
        " AND typeof(v.vector) = 'blob' AND length(v.vector) = ?",
        (*params, *spaces, 4 * dimension),
    )
    while batch := rows.fetchmany(_BATCH):
        keys = np.fromiter((key for key, _ in batch), dtype=np.int64, count=len(batch))
        joined = b"".join([blob for _, blob in batch])
        vectors = np.frombuffer(joined, dtype="<f4").reshape(len(batch), dimension).astype(np.float32, copy=False)
        squares = np.vecdot(vectors, vectors)
        if not (np.isfinite(squares).all() and squares.all()):  # also where only the square is beyond float32
            sound = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
            keys, vectors = keys[sound], vectors[sound]
        yield keys, vectors


def _dimension(head: Head) -> int:
    if head.dimension is None:
        raise InvalidVectorError("the store has no vectors yet")
    return head.dimension
