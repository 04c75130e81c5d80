"""Leaving no byte of what was deleted: not in the keyword index, in free pages, in the log, nor beside the file.

A 'delete' of FTS5 only adds a note that the words are gone; ``optimize`` merges all into one segment in which neither
is left. VACUUM then writes every page anew, which goes through the log; a checkpoint moves it into the file and cuts
the log to nothing. FTS5's own ``secure-delete`` is not used: it makes files that SQLite before 3.42 cannot read.
"""

from __future__ import annotations

from typing import Final

from twofold.backends.sqlite import pragmas
from twofold.backends.sqlite.connections import MEMORY, Pool
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.head import read_head
from twofold.backends.sqlite.keyword import is_index_fault
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.reader import Parts
from twofold.backends.sqlite.sidecar import sidecar_files
from twofold.backends.sqlite.vec0 import forget_vec0
from twofold.errors import CorruptStoreError, StoreBusyError, StoreError, UnsupportedOperationError

__all__ = ["scrub"]

_AGAIN: Final = "The records are deleted, but traces of them may still be in the file: call purge again."


def scrub(path: str, pool: Pool, parts: Parts) -> None:
    """Leave no byte of what was deleted before; see :meth:`twofold.backends.protocol.Backend.scrub`.

    Args:
        path: the file, or ``":memory:"``.
        pool: its connections.
        parts: what its sessions share.

    Raises:
        UnsupportedOperationError: the SQLite library has no FTS5, so that words cannot be taken out of the index.
        CorruptStoreError: the keyword index is damaged.
        StoreBusyError: a reader still needs an old state of the file, or another process is writing.
        StorageFullError: the disk has no room for a second copy of the file, which this needs for a moment.
    """
    if not parts.has_fts5:
        raise UnsupportedOperationError(
            "this SQLite library has no FTS5, so words cannot be taken out of the keyword index: purge with a Python "
            "that has it, or driver='pysqlite3'"
        )
    try:
        with pool.writer() as connection:
            _merge_keyword_index(connection)
            _forget_derived(connection, parts)
            if path != MEMORY:
                for file in sidecar_files(path):
                    file.unlink(missing_ok=True)
        with pool.exclusive() as connection:
            connection.execute("VACUUM")
            if not pragmas.checkpoint(connection):
                raise StoreBusyError(
                    "a reader, of this process or another, still needs an old state of the file, in which they are: "
                    "let it end, or close it"
                )
    except StoreError as error:
        error.add_note(_AGAIN)
        raise


def _merge_keyword_index(connection: Connection) -> None:
    try:
        connection.execute("INSERT INTO fts (fts) VALUES ('optimize')")
    except driver_errors() as error:
        if is_index_fault(error):
            raise CorruptStoreError(
                f"the keyword index is damaged, so it cannot be cleaned; make it anew with reindex() (SQLite: {error})"
            ) from error
        raise


def _forget_derived(connection: Connection, parts: Parts) -> None:
    """Indexes of vectors hold those of deleted records too: what lies in the file or beside it is made anew.

    Tombstones go as well, and with them every index in memory, of any process, that was made before: it cannot be
    brought up to date any more, only built from what there is now.
    """
    connection.execute("UPDATE counters SET generation = (SELECT generation + 1 FROM state)")
    head = read_head(connection)
    connection.execute("DELETE FROM tombstones")
    write_meta(connection, "tombstones_pruned", str(head.generation))
    head.pruned = head.generation
    connection.execute("DELETE FROM meta WHERE name LIKE 'sidecar:%'")
    if parts.vectors.vec0 is not None:
        parts.vectors.vec0.rebuild(connection, head)
    else:
        forget_vec0(connection)
