"""One transaction on a SQLite file: rows, and with each row its tokens, its vectors or its pending mark."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import LinkWrite, Mark, Space, Touch, VectorWrite, Visibility
from twofold.backends.sqlite import next_space, pending
from twofold.backends.sqlite.examining import all_sound, as_they_are, examined
from twofold.backends.sqlite.known import Known
from twofold.backends.sqlite.links import delete_links, drop_links_of, put_links
from twofold.backends.sqlite.marks import delete_marks, forget_marks, put_marks
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.reader import Parts, SqliteReader
from twofold.backends.sqlite.rows import COLUMNS, load_fields, store_time, to_row
from twofold.backends.sqlite.schema import EQUAL_TEXT
from twofold.backends.sqlite.touches import touch_rows
from twofold.backends.sqlite.vector_rows import blobs_of, drop_vectors, put_blobs
from twofold.errors import ConfigurationError, InvalidRecordError, RecordNotFoundError
from twofold.types import Owner, Record

__all__ = ["KEPT_TOMBSTONES", "SqliteWriter"]

Matrix: TypeAlias = npt.NDArray[np.float32]

KEPT_TOMBSTONES: Final = 100_000
"""How many deletes leave a trace; an index that is further behind is made anew."""

_PRUNE_EVERY: Final = 256  # writes
_BATCH: Final = 1000
_RESERVED: Final = 4096
"""How many keys ahead SQLite is told of: it then need not write down the last one with each record."""

_FIELDS, _PARTS, _TAGS, _HASH = (COLUMNS.index(name) for name in ("fields", "parts", "tags", "content_hash"))
_INSERT: Final = (
    f"INSERT INTO records (key, {', '.join(COLUMNS)}, generation) VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"
)
_LAST_KEY: Final = "SELECT last_key, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'records'), 0) FROM state"
_RESERVE: Final = "UPDATE sqlite_sequence SET seq = ? WHERE name = 'records'"
_DELETED: Final = "UPDATE counters SET last_key = max(last_key, ?)"
_UPDATE: Final = f"UPDATE records SET {', '.join(f'{name} = ?' for name in COLUMNS)}, generation = ? WHERE key = ?"
_OLD: Final = "SELECT fields, tags, content_hash FROM records WHERE key = ?"
_ADD_PENDING: Final = (
    "INSERT INTO pending (key) VALUES (?) ON CONFLICT (key) DO UPDATE SET reason = NULL, attempts = 0,"
    " claimed_until = NULL"
)
_IN: Final = "IN (SELECT value FROM json_each(?))"


class SqliteWriter(SqliteReader):
    """A transaction with the write lock held. See :class:`twofold.backends.protocol.Writer`."""

    def __init__(self, known: Known, parts: Parts) -> None:
        super().__init__(known.connection, parts, known.head)
        self.known = known
        self._counted = False
        """Whether a record or a tombstone carries the number of this write, and so the file knows of it."""

    def finish(self) -> None:
        """Before the commit: bring along what shares the transaction of the rows."""
        if self._head.changed and not self._counted:
            self._connection.execute("UPDATE counters SET generation = ?", (self._head.generation,))
        vec0 = self._parts.vectors.vec0
        if vec0 is not None and self._head.changed:
            vec0.catch_up(self._connection, self._head)

    # -- records --------------------------------------------------------------------------------------------------

    def adopt(self, fingerprint: str, dimension: int) -> None:
        """Make this the embedder that vectors are of, if there is none yet; every record with text is then pending.

        Raises:
            ConfigurationError: another fingerprint or dimension is there, or the dimension is below 1.
        """
        head = self._head
        if head.fingerprint is not None:
            if (head.fingerprint, head.dimension) != (fingerprint, dimension):
                raise ConfigurationError(
                    f"the file's vectors are of {head.fingerprint!r} ({head.dimension} numbers), not of "
                    f"{fingerprint!r} ({dimension} numbers)"
                )
            return
        if dimension < 1:
            raise ConfigurationError(f"a vector has at least 1 number, not {dimension}")
        self._begin_change()
        write_meta(self._connection, "fingerprint", fingerprint)
        write_meta(self._connection, "dimension", str(dimension))
        self._connection.executemany(
            "INSERT INTO spaces (fingerprint, field, dimension) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(fingerprint, field, dimension) for field in self._parts.fields],
        )
        self._connection.execute("INSERT OR IGNORE INTO pending (key) SELECT key FROM records WHERE parts > 0")
        head.fingerprint, head.dimension = fingerprint, dimension
        self.known.spaces = None

    def insert(self, record: Record, vectors: VectorWrite | None) -> int:
        """Add a record; see :meth:`insert_many`, also for the errors."""
        return self.insert_many([(record, vectors)])[0]

    def insert_many(self, new: Sequence[tuple[Record, VectorWrite | None]]) -> list[int]:
        """Add records; see the protocol. Vectors of another text than the record's are not attached.

        Table by table, which is faster than record by record; so the keys cannot be left to SQLite.

        Raises:
            InvalidRecordError: it has a field that the file does not.
            InvalidVectorError: a vector is zero, not finite or of the wrong length, or of an unknown field.
            ConfigurationError: there are vectors, but no embedder was adopted.
        """
        if not new:
            return []
        for record, _ in new:
            self._check_fields(record)
        rows = [to_row(record) for record, _ in new]
        examine = as_they_are if all_sound((vectors for _, vectors in new), self._head.dimension) else examined
        blobs = [
            blobs_of(self.known, vectors, row[_HASH], examine) for (_, vectors), row in zip(new, rows, strict=True)
        ]
        self._begin_change()
        indexed = self._tokens_usable()  # before the rows are there: it may make the index anew from all rows
        keys = self._new_keys(len(rows))
        generation = self._head.generation
        self._connection.executemany(_INSERT, [(key, *row, generation) for key, row in zip(keys, rows, strict=True)])
        self._counted = True
        self._reserve(keys[-1])
        if indexed:
            keyword = self._parts.keyword
            tokens = [keyword.tokens(record.fields, record.tags) for record, _ in new]
            keyword.add(self._connection, zip(keys, tokens, strict=True))
        if self._head.fingerprint is not None:
            put_blobs(
                self._connection, ((key, row[_HASH], each) for key, row, each in zip(keys, rows, blobs, strict=True))
            )
            waiting = [(key,) for key, row, each in zip(keys, rows, blobs, strict=True) if row[_PARTS] and not each]
            if waiting:
                self._connection.executemany(_ADD_PENDING, waiting)
        return list(keys)

    def replace(self, key: int, record: Record, vectors: VectorWrite | None) -> None:
        """Put ``record`` in the place of the one at ``key``; see the protocol. Tokens are rewritten only if they
        change.

        Raises:
            RecordNotFoundError: there is no such record.
            InvalidRecordError, InvalidVectorError, ConfigurationError: as for :meth:`insert`.
        """
        self._check_fields(record)
        row = to_row(record)
        old = self._connection.execute(_OLD, (key,)).fetchone()
        if old is None:
            raise RecordNotFoundError("there is no such record")
        old_fields, old_tags, old_hash = old
        blobs = blobs_of(self.known, vectors, row[_HASH], examined)
        self._begin_change()
        if (old_fields, old_tags) != (row[_FIELDS], row[_TAGS]) and self._tokens_usable():
            keyword = self._parts.keyword
            before = keyword.tokens(load_fields(old_fields), json.loads(old_tags))
            after = keyword.tokens(record.fields, record.tags)
            if before != after:
                keyword.remove(self._connection, key, before)
                keyword.add(self._connection, [(key, after)])
        self._connection.execute(_UPDATE, (*row, self._head.generation, key))
        self._counted = True
        if blobs:
            drop_vectors(self._connection, key)
            put_blobs(self._connection, [(key, row[_HASH], blobs)])
        elif old_hash != row[_HASH]:
            drop_vectors(self._connection, key)
            if row[_PARTS] and self._head.fingerprint is not None:
                self._connection.execute(_ADD_PENDING, (key,))

    def set_archived(self, keys: Sequence[int], at: datetime | None) -> None:
        """Archive (or, with None, restore) records; tokens and vectors stay. What is so already stays as it is."""
        if at is None:
            value, differs = None, "archived_at IS NOT NULL"
        else:
            value, differs = store_time(at), "archived_at IS NULL"
        for chunk in _chunks(keys):
            changed = self._column(f"SELECT key FROM records WHERE key {_IN} AND {differs}", (chunk,))
            if changed:
                self._begin_change()
                self._connection.execute(
                    f"UPDATE records SET archived_at = ?, revision = revision + 1, generation = ? WHERE key {_IN}",
                    (value, self._head.generation, json.dumps(changed)),
                )
                self._counted = True

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows, tokens, vectors, pending marks and links; unknown keys are passed over."""
        for chunk in _chunks(keys):
            rows = self._connection.execute(
                f"SELECT key, fields, tags FROM records WHERE key {_IN}", (chunk,)
            ).fetchall()
            if not rows:
                continue
            self._begin_change()
            if self._tokens_usable():
                keyword = self._parts.keyword
                for key, fields, tags in rows:
                    keyword.remove(self._connection, key, keyword.tokens(load_fields(fields), json.loads(tags)))
            gone = json.dumps([key for key, _, _ in rows])
            for table in ("records", "vectors", "pending"):
                self._connection.execute(f"DELETE FROM {table} WHERE key {_IN}", (gone,))
            drop_links_of(self._connection, gone)
            self._connection.execute(
                "INSERT INTO tombstones (generation, key) SELECT ?, value FROM json_each(?)",
                (self._head.generation, gone),
            )
            self._connection.execute(_DELETED, (max(key for key, _, _ in rows),))
            self._counted = True

    def with_equal_text(self, content_hash: str, owner: Owner, namespace: tuple[str, ...]) -> list[int]:
        """Keys of an owner's records in a namespace with this text; see the protocol."""
        if not self.known.finds_equal_text:
            self._connection.execute(EQUAL_TEXT)
            self.known.finds_equal_text = True
        return super().with_equal_text(content_hash, owner, namespace)

    # -- vectors --------------------------------------------------------------------------------------------------

    def attach(self, key: int, vectors: VectorWrite) -> bool:
        """Attach vectors to a pending record if its text is still the one they were made of; whether it was.

        Raises:
            InvalidVectorError, ConfigurationError: as for :meth:`insert`.
        """
        row = self._connection.execute(
            "SELECT r.content_hash FROM records r JOIN pending p ON p.key = r.key WHERE r.key = ?", (key,)
        ).fetchone()
        if row is None:
            return False
        (content_hash,) = row
        blobs = blobs_of(self.known, vectors, content_hash, examined)
        if not blobs:
            return False
        self._begin_change()
        drop_vectors(self._connection, key)
        put_blobs(self._connection, [(key, content_hash, blobs)])
        self._connection.execute("UPDATE records SET generation = ? WHERE key = ?", (self._head.generation, key))
        self._counted = True
        return True

    def claim_pending(self, visible: Visibility, limit: int, now: datetime, until: datetime) -> dict[int, Record]:
        """Visible records that wait for a vector, claimed until ``until``; see the protocol."""
        return self.records(pending.claim(self._connection, visible, limit, now, until))

    def release(self, keys: Sequence[int]) -> None:
        """Give claims back."""
        pending.release(self._connection, keys)

    def park(self, key: int, reason: str) -> None:
        """Leave a waiting record out of claims until its text changes or it is unparked."""
        pending.park(self._connection, key, reason)

    def unpark(self, visible: Visibility) -> int:
        """Take visible parked records in again."""
        return pending.unpark(self._connection, visible)

    def begin_space(self, space: Space) -> None:
        """Begin to make the vectors anew with another embedder; see the protocol.

        Raises:
            ConfigurationError: another one's are under way, they are in use already, or the dimension is below 1.
        """
        next_space.begin(self._connection, self._head, self._parts.fields, space)

    def put_next(self, key: int, vectors: VectorWrite) -> bool:
        """Keep vectors of the next space; see the protocol. Does not count as a write of records."""
        return next_space.put(self._connection, key, vectors)

    def swap_space(self, refused: Mapping[int, str]) -> None:
        """Let the next space be the one in use; see the protocol."""
        self._begin_change()
        next_space.swap(self._connection, self._head, refused)
        self.known.spaces = None

    def drop_next(self) -> None:
        """Give the next space up."""
        next_space.drop(self._connection)

    def drop_former(self, limit: int) -> int:
        """Remove up to ``limit`` vectors of embedders that are neither in use nor next."""
        return next_space.drop_former(self._connection, self._head, limit)

    # -- links and touches ----------------------------------------------------------------------------------------

    def put_links(self, links: Sequence[LinkWrite], at: datetime) -> int:
        """Make links; one that is there gets the new weight. How many are new.

        Raises:
            RecordNotFoundError: an end does not exist.
            ConfigurationError: both ends are one record.
        """
        return put_links(self._connection, links, at, self.identities, self._begin_change)

    def delete_links(
        self, *, source: int | None = None, target: int | None = None, kinds: Sequence[str] | None = None
    ) -> int:
        """Remove the links from ``source``, to ``target``, or of both. How many there were.

        Raises:
            ConfigurationError: neither end is given.
        """
        return delete_links(self._connection, source, target, kinds, self._begin_change)

    def touch(self, touches: Mapping[int, Touch], growth: float = 1.0) -> None:
        """Count uses of records; see the protocol. Does not count as a write of records."""
        touch_rows(self._connection, self._head, touches, growth)

    # -- marks ----------------------------------------------------------------------------------------------------

    def put_marks(self, owner: Owner, namespace: str, marks: Sequence[Mark]) -> None:
        """Write marks; the same key again replaces it. Does not count as a write of records."""
        put_marks(self._connection, owner, namespace, marks)

    def delete_marks(self, owner: Owner, namespace: str, keys: Sequence[str]) -> None:
        """Remove marks; unknown keys are passed over. Does not count as a write of records."""
        delete_marks(self._connection, owner, namespace, keys)

    def forget_marks(self, owner: Owner, keys: Sequence[str] | None = None) -> int:
        """Remove an owner's marks in every namespace. Does not count as a write of records."""
        return forget_marks(self._connection, owner, keys)

    # -- within ---------------------------------------------------------------------------------------------------

    def _check_fields(self, record: Record) -> None:
        names = self._parts.fields
        unknown = [repr(name) for name in record.fields if name not in names]
        if unknown:
            raise InvalidRecordError(f"the store has no field {', '.join(unknown)}; it has {', '.join(names)}")

    def _new_keys(self, count: int) -> Sequence[int]:
        """So many keys that no record ever had."""
        known = self.known
        if known.last_key is None:
            known.last_key, known.reserved = self._connection.execute(_LAST_KEY).fetchone()
        first = known.last_key + 1
        known.last_key += count
        return range(first, first + count)

    def _reserve(self, key: int) -> None:
        """Have SQLite know keys ahead of the one that a row was just given, if it does not."""
        if key > self.known.reserved:
            self._connection.execute(_RESERVE, (key + _RESERVED,))
            self.known.reserved = key + _RESERVED

    def _begin_change(self) -> None:
        """Count this transaction as a write, once."""
        head = self._head
        if head.changed:
            return
        head.changed = True
        head.generation += 1
        if head.generation % _PRUNE_EVERY == 0:
            self._prune()

    def _prune(self) -> None:
        """Forget the oldest tombstones, whole generations of them."""
        found = self._connection.execute(
            "SELECT generation FROM tombstones ORDER BY generation DESC, key DESC LIMIT 1 OFFSET ?", (KEPT_TOMBSTONES,)
        ).fetchone()
        if found is not None:
            self._connection.execute("DELETE FROM tombstones WHERE generation <= ?", found)
            write_meta(self._connection, "tombstones_pruned", str(found[0]))
            self._head.pruned = found[0]

    def _tokens_usable(self) -> bool:
        """Whether tokens can be written: the index must be of this analyser, or is made so now."""
        if not self.known.tokens_checked:
            version = self._parts.keyword.analyzer.version
            if not self._parts.has_fts5:
                version = ""  # what is written now will be missing in the index
            if self._head.analyzer != version or (version and not self._parts.keyword.exists(self._connection)):
                if version:
                    self._parts.keyword.rebuild(self._connection)
                write_meta(self._connection, "analyzer", version)
                self._head.analyzer = version
            self.known.tokens_checked = True
        return self._parts.has_fts5

    def _column(self, sql: str, params: tuple[object, ...]) -> list[int]:
        return [value for (value,) in self._connection.execute(sql, params)]


def _chunks(keys: Sequence[int]) -> Iterator[str]:
    """JSON lists of some of the keys at a time, none twice: memory stays bounded."""
    distinct = list(dict.fromkeys(map(int, keys)))
    for start in range(0, len(distinct), _BATCH):
        yield json.dumps(distinct[start : start + _BATCH])
