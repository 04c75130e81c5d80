"""The vector leg by sqlite-vec: a vec0 table in the same file, kept up in the transaction that writes the rows.

The table is derived from ``vectors`` by generation, like every index: the generation that it belongs to stands in
``meta``. A handle that cannot load sqlite-vec, or does not want it, writes rows and leaves that generation behind, so
the table is never silently wrong; the next write by a handle that has it brings it up.

vec0 compares unit vectors by L2, which has the order of the cosine. What it finds is scored again from the BLOBs.
``INSERT OR REPLACE`` and UPSERT do not work on it, ``LIMIT`` in place of ``k`` not everywhere, and k ends at 4,096.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import functools
import importlib
import importlib.metadata
import json
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.driver import Connection, Driver, load_extension
from twofold.backends.sqlite.faults import Fault, driver_errors, fault_of
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.visible_keys import Keys, changed_since
from twofold.errors import MissingExtraError, SearchUnavailableError
from twofold.vectors import best_of_each, exact_cosines, membership

__all__ = [
    "Members",
    "Vec0",
    "Vec0State",
    "extension_path",
    "extension_problem",
    "forget_vec0",
    "read_state",
    "unit_blobs",
]

MOST_FETCHED: Final = 4096
"""vec0's largest k."""
EXACT_SHARE: Final = 0.02
"""Up to this share of visible vectors their BLOBs are read instead."""
_EXACT_COUNT: Final = 256
"""The same, in vectors: to read so few costs less than to ask vec0."""
_MARGIN: Final = 32
"""How many more are fetched than records are asked for, so that a tie is seldom cut."""
_IN: Final = "IN (SELECT value FROM json_each(?))"
_BATCH: Final = 2048
_SHADOWS: Final = ("vec_chunks", "vec_info", "vec_rowids", "vec_vector_chunks00")
"""The tables that vec0 keeps its own in."""
_RELEASE: Final = "0.1.9"
"""Of sqlite-vec. Later ones are built for CPUs with AVX2, and on others end the process, which cannot be tried out in
it (paperless-ngx/paperless-ngx#12990).
"""
_STATE: Final = "vec0"
"""The value of this name in ``meta``: what the table belongs to."""
_NOT_ITS_FAULT: Final = (Fault.BUSY, Fault.LOCKED, Fault.READ_ONLY, Fault.INTERRUPTED, Fault.IO, Fault.FULL)

Scores = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]


def extension_path() -> str:
    """Where sqlite-vec lies.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return str(importlib.import_module("sqlite_vec").loadable_path())
    except ImportError as error:
        raise MissingExtraError("sqlite-vec", extra="sqlite-vec") from error


@functools.cache
def extension_problem(driver: Driver) -> str | None:
    """Why sqlite-vec cannot be used with this SQLite library; None if it can. Tried once a process."""
    stands_in = "until then an exact scan stands in for it"
    release = _installed_release()
    if release is not None and not f"{release}.".startswith(f"{_RELEASE}."):
        return (
            f"sqlite-vec {release} is installed, which may end the process on some CPUs: "
            f"install 'twofold[sqlite-vec]', that is {_RELEASE}; {stands_in}"
        )
    if not driver.can_load_extensions:
        return (
            f"the {driver.name} in use cannot load sqlite-vec: install 'twofold[sqlite-vec]' and leave driver='auto', "
            f"with the file not open otherwise in this process; {stands_in}"
        )
    try:
        path = extension_path()
    except MissingExtraError as error:
        return f"{error}; {stands_in}"
    connection = driver.connect(":memory:")
    try:
        load_extension(connection, path)
        connection.execute("CREATE VIRTUAL TABLE probe USING vec0(vector float[2])")
        connection.execute("INSERT INTO probe (rowid, vector) VALUES (1, ?)", (unit_blobs(np.ones((1, 2)))[0],))
        connection.execute(
            "SELECT rowid FROM probe WHERE vector MATCH ? AND k = ?", (unit_blobs(np.ones((1, 2)))[0], 1)
        ).fetchall()
    except driver_errors() as error:
        return f"sqlite-vec cannot be loaded ({error}); {stands_in}"
    finally:
        connection.close()
    return None


def _installed_release() -> str | None:
    """None: there is none, or it lies there without having been installed."""
    try:
        return importlib.metadata.version("sqlite-vec")
    except importlib.metadata.PackageNotFoundError:
        return None


class Vec0State(NamedTuple):
    """What the table belongs to."""

    generation: int
    fingerprint: str
    dimension: int


def read_state(connection: Connection) -> Vec0State | None:
    """What the table belongs to; None if there is none, or that cannot be read."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (_STATE,)).fetchone()
    if row is None:
        return None
    try:
        generation, fingerprint, dimension = json.loads(row[0])
    except (ValueError, TypeError):
        return None
    return Vec0State(generation, fingerprint, dimension) if isinstance(generation, int) else None


def forget_vec0(connection: Connection) -> None:
    """Empty the table, if there is one, without sqlite-vec: it is as good as missing, until it is made anew."""
    connection.execute("DELETE FROM meta WHERE name = ?", (_STATE,))
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for table in ("vec_members", *_SHADOWS):
        if table in there:
            connection.execute(f"DELETE FROM {table}")


class Members:
    """Which vectors the table holds at one generation.

    Args:
        ids: of the vectors, ascending.
        row_keys: the record of each.
    """

    def __init__(self, ids: Keys, row_keys: Keys) -> None:
        self.ids = ids
        self.row_keys = row_keys
        self.keys = np.unique(row_keys)

    @property
    def has_parts(self) -> bool:
        """Whether a record has several vectors."""
        return len(self.keys) < len(self.ids)


class Vec0:
    """The vec0 table of one file, for all threads of one backend."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: tuple[int, Members] | None = None

    # -- keeping it up --------------------------------------------------------------------------------------------

    def catch_up(self, connection: Connection, head: Head) -> None:
        """Bring the table to the generation of a transaction that holds the write lock.

        A damaged table fails no write: it is left behind, and searches say so.
        """
        if head.fingerprint is None or head.dimension is None:
            return
        if self.is_current(connection, head) and not head.changed:
            return
        connection.execute("SAVEPOINT vec0")
        try:
            self._bring_up(connection, head, head.fingerprint, head.dimension)
        except driver_errors() as error:
            if fault_of(error) in _NOT_ITS_FAULT:
                raise
            connection.execute("ROLLBACK TO vec0")
        connection.execute("RELEASE vec0")

    def rebuild(self, connection: Connection, head: Head) -> None:
        """Make the table anew from the BLOBs, a damaged one too; in a transaction with the write lock held."""
        if head.fingerprint is None or head.dimension is None:
            return
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vec'").fetchone():
            for shadow in _SHADOWS:  # a damaged table can only be dropped if it finds all that it is made of
                connection.execute(f"CREATE TABLE IF NOT EXISTS {shadow} (x)")
        for table in ("vec", "vec_members", *_SHADOWS):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE VIRTUAL TABLE vec USING vec0(vector float[{head.dimension:d}])")
        connection.execute("CREATE TABLE vec_members (id INTEGER PRIMARY KEY, key INTEGER NOT NULL)")
        connection.execute("CREATE INDEX vec_members_by_key ON vec_members (key)")
        self._insert(connection, head, "", ())
        self._note(connection, head, head.fingerprint, head.dimension)

    def is_current(self, connection: Connection, head: Head) -> bool:
        """Whether the table holds what the session sees."""
        return read_state(connection) == (head.generation, head.fingerprint, head.dimension)

    def differences(self, connection: Connection, head: Head) -> int:
        """In how many vectors the table differs from the BLOBs it was made of, if it is current; all are read."""
        found = 0
        for ids, keys, vectors in _batches(_stored(connection, head)):
            sound = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
            wanted = json.dumps(ids[sound].tolist())
            here = dict(connection.execute(f"SELECT rowid, vector FROM vec WHERE rowid {_IN}", (wanted,)))
            of = dict(connection.execute(f"SELECT id, key FROM vec_members WHERE id {_IN}", (wanted,)))
            blobs = unit_blobs(vectors[sound])
            expected = zip(ids[sound].tolist(), keys[sound].tolist(), blobs, strict=True)
            found += sum(here.get(id_) != blob or of.get(id_) != key for id_, key, blob in expected)
        for table, column in (("vec", "rowid"), ("vec_members", "id")):
            held = {id_ for (id_,) in connection.execute(f"SELECT {column} FROM {table}")}
            known = {id_ for (id_,) in connection.execute("SELECT id FROM vectors")}
            found += len(held - known)
        return found

    def _bring_up(self, connection: Connection, head: Head, fingerprint: str, dimension: int) -> None:
        state = read_state(connection)
        if state is None or state[1:] != (fingerprint, dimension) or state.generation < head.pruned:
            self.rebuild(connection, head)
            return
        # All of this transaction's writes have one generation: the table may have some of them and lack the rest.
        changed = changed_since(connection, min(state.generation, head.generation - 1)).tolist()
        for start in range(0, len(changed), _BATCH):
            keys = json.dumps(changed[start : start + _BATCH])
            gone = f"SELECT m.id FROM vec_members m WHERE m.key {_IN}"
            ids = connection.execute(gone, (keys,)).fetchall()
            connection.executemany("DELETE FROM vec WHERE rowid = ?", ids)
            connection.executemany("DELETE FROM vec_members WHERE id = ?", ids)
        for start in range(0, len(changed), _BATCH):  # after all deletes: the number of a vector may be used again
            keys = json.dumps(changed[start : start + _BATCH])
            self._insert(connection, head, f"AND v.key {_IN}", (keys,))
        self._note(connection, head, fingerprint, dimension)

    def _insert(self, connection: Connection, head: Head, where: str, params: tuple[str, ...]) -> None:
        for ids, keys, vectors in _batches(_stored(connection, head, where, params)):
            sound = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
            wanted = ids[sound].tolist()
            blobs = unit_blobs(vectors[sound])
            connection.executemany("INSERT INTO vec (rowid, vector) VALUES (?, ?)", zip(wanted, blobs, strict=True))
            connection.executemany(
                "INSERT INTO vec_members (id, key) VALUES (?, ?)", zip(wanted, keys[sound].tolist(), strict=True)
            )

    def _note(self, connection: Connection, head: Head, fingerprint: str, dimension: int) -> None:
        write_meta(connection, _STATE, json.dumps((head.generation, fingerprint, dimension)))

    # -- searching ------------------------------------------------------------------------------------------------

    def members(self, connection: Connection, head: Head) -> Members:
        """What the table holds in the session.

        Raises:
            SearchUnavailableError: the table is not there or behind.
        """
        if head.changed:
            self.catch_up(connection, head)
        if not self.is_current(connection, head):
            raise SearchUnavailableError(
                "the vec0 table is missing or behind: it was written without sqlite-vec. The next write with "
                "index='sqlite-vec' brings it up; until then an exact scan stands in for it"
            )
        with self._lock:
            kept = self._members
        if kept is not None and kept[0] == head.generation and not head.changed:
            return kept[1]
        rows = np.fromiter(
            connection.execute("SELECT id, key FROM vec_members ORDER BY id"),
            dtype=np.dtype([("id", np.int64), ("key", np.int64)]),
        )
        members = Members(np.ascontiguousarray(rows["id"]), np.ascontiguousarray(rows["key"]))
        if not head.changed:
            with self._lock:
                if self._members is None or self._members[0] < head.generation:
                    self._members = (head.generation, members)
        return members

    def search(
        self, connection: Connection, members: Members, query: Matrix, visible_keys: Keys | None, limit: int
    ) -> tuple[Keys, Scores]:
        """The records nearest to ``query`` among the visible, as :meth:`twofold.vectors.ExactIndex.search` gives them.

        Args:
            connection: of the session.
            members: of the session.
            query: shape (dimension,), of any length, checked already.
            visible_keys: the records that may be found, sorted, none twice; None: all.
            limit: how many; 0 gives none.

        Raises:
            SearchUnavailableError: the table is damaged.
        """
        ids = members.ids
        if visible_keys is not None:
            ids = ids[membership(members.row_keys, visible_keys)]
        if limit < 1 or not len(ids):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        if len(ids) > max(_EXACT_COUNT, EXACT_SHARE * len(members.ids)):
            try:
                found = self._nearest(connection, members, query, ids, limit)
            except driver_errors() as error:
                if fault_of(error) in _NOT_ITS_FAULT:
                    raise
                raise SearchUnavailableError(
                    f"the vec0 table is damaged ({error}): make it anew with reindex(); until then an exact scan "
                    "stands in for it"
                ) from error
            if found is not None:
                return found
        return best_of_each(*_scored(connection, ids, query), limit)

    def _nearest(
        self, connection: Connection, members: Members, query: Matrix, ids: Keys, limit: int
    ) -> tuple[Keys, Scores] | None:
        """What vec0 finds, if it is certain that nothing better or tied was left out."""
        unit = unit_blobs(query[np.newaxis])[0]
        within = ""
        params: tuple[str, ...] = ()
        if len(ids) < len(members.ids):
            within, params = f"AND rowid {_IN}", (json.dumps(ids.tolist()),)
        wanted = (limit + _MARGIN) * (2 if members.has_parts else 1)
        while wanted <= min(MOST_FETCHED, len(ids) / 2):
            rows = connection.execute(
                f"SELECT rowid, distance FROM vec WHERE vector MATCH ? AND k = ? {within}", (unit, wanted, *params)
            ).fetchall()
            keys, scores = _scored(connection, np.array([row[0] for row in rows], dtype=np.int64), query)
            keys, scores = best_of_each(keys, scores, limit)
            farthest = max((distance for _, distance in rows), default=0.0)
            # What was not fetched is at least so far away; |a - b|² = 2 - 2·cos for vectors of length 1.
            best_left_out = 1 - farthest**2 / 2 + _rounding(len(query))
            if len(rows) == wanted and len(keys) >= limit and scores[limit - 1] > best_left_out:
                return keys, scores
            wanted *= 4
        return None


def unit_blobs(vectors: npt.NDArray[Any]) -> list[bytes]:
    """Each row as vec0 stores it: little-endian float32, of length 1."""
    wide = vectors.astype(np.float64)
    units = wide / np.sqrt(np.add.reduce(wide * wide, axis=1))[:, np.newaxis]
    return [unit.tobytes() for unit in units.astype("<f4")]


def _stored(connection: Connection, head: Head, where: str = "", params: tuple[str, ...] = ()) -> Any:
    """The vectors of the file's embedder, of the right length."""
    return connection.execute(
        "SELECT v.id, v.key, v.vector FROM vectors v JOIN spaces s ON s.id = v.space WHERE s.fingerprint = ?"
        f" AND typeof(v.vector) = 'blob' AND length(v.vector) = ? {where}",
        (head.fingerprint, 4 * (head.dimension or 0), *params),
    )


def _rounding(dimension: int) -> float:
    """How far a cosine that is taken from vec0's distance may be off: it sums d squares in float32, of numbers that
    were rounded to float32; (d + 8) · 2⁻²⁴ of at most 4, halved, and as much again to be safe.
    """
    return 4 * (dimension + 8) * 2.0**-24


def _scored(connection: Connection, ids: Keys, query: Matrix) -> tuple[Keys, Scores]:
    """Record and exact cosine of each vector, read some thousand at a time."""
    keys: list[Keys] = [np.empty(0, dtype=np.int64)]
    scores: list[Scores] = [np.empty(0, dtype=np.float64)]
    for start in range(0, len(ids), _BATCH):
        rows = connection.execute(
            "SELECT v.id, v.key, v.vector FROM json_each(?) j CROSS JOIN vectors v ON v.id = j.value",
            (json.dumps(ids[start : start + _BATCH].tolist()),),
        )
        for _, batch_keys, vectors in _batches(rows):
            keys.append(batch_keys)
            scores.append(exact_cosines(vectors, query))
    return np.concatenate(keys), np.concatenate(scores)


def _batches(rows: Any) -> Iterator[tuple[Keys, Keys, Matrix]]:
    while batch := rows.fetchmany(_BATCH):
        joined = np.frombuffer(b"".join([blob for _, _, blob in batch]), dtype="<f4")
        yield (
            np.fromiter((id_ for id_, _, _ in batch), dtype=np.int64, count=len(batch)),
            np.fromiter((key for _, key, _ in batch), dtype=np.int64, count=len(batch)),
            joined.reshape(len(batch), -1).astype(np.float32, copy=False),
        )
