"""What every connection is set to, one named function a pragma."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import Fault, driver_errors, fault_of
from twofold.errors import StoreError

__all__ = [
    "autocheckpoint",
    "busy_timeout",
    "cache_size",
    "checkpoint",
    "data_version",
    "journal_size_limit",
    "query_only",
    "reading_through",
    "synchronous",
    "trusted_schema",
    "use_wal",
]

_CHECKPOINT_PAGES: Final = {"NORMAL": 2000, "FULL": 1000}
_WAL_LIMIT: Final = 16 * 1024 * 1024
_RETRY_PAUSE: Final = 0.01
_PASSING: Final = 1
"""How many MiB of the file are kept while it is read from end to end."""


def busy_timeout(connection: Connection, seconds: float) -> None:
    """How long a statement waits for another connection's lock before it fails; 0: not at all."""
    connection.execute(f"PRAGMA busy_timeout = {max(0, round(seconds * 1000))}").fetchall()


def cache_size(connection: Connection, mebibytes: int) -> None:
    """How much of the file a connection keeps in memory; SQLite's own default is 2 MiB."""
    connection.execute(f"PRAGMA cache_size = -{mebibytes * 1024}").fetchall()


def data_version(connection: Connection) -> int:
    """A number that stays the same until another connection, of any process, commits. Its own commits do not count."""
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return int(version)


@contextmanager
def reading_through(connection: Connection) -> Iterator[None]:
    """Read much of the file, each page once, without keeping it: it is the system that has it at hand."""
    ((kept,),) = connection.execute("PRAGMA cache_size").fetchall()
    cache_size(connection, _PASSING)
    try:
        yield
    finally:
        connection.execute(f"PRAGMA cache_size = {kept}").fetchall()


def synchronous(connection: Connection, level: Literal["NORMAL", "FULL"]) -> None:
    """When a commit waits for the disk. In WAL, ``NORMAL`` waits at checkpoints only: a crash of the machine may lose
    the last commits, never the file. ``FULL`` waits at each commit.
    """
    connection.execute(f"PRAGMA synchronous = {level}").fetchall()


def journal_size_limit(connection: Connection) -> None:
    """Cut the write-ahead log back to 16 MiB when it starts over: one large write must not leave a large file."""
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}").fetchall()


def autocheckpoint(connection: Connection, level: Literal["NORMAL", "FULL"]) -> None:
    """Move the log into the file at the first commit after 8 MiB, not 4: a bulk add writes many a page once less, and
    waits for the disk half as often. Where each commit waits for it (``synchronous`` is ``FULL``), at SQLite's own 4:
    while the log still grows a commit waits about twice as long as when it writes over what is there.
    """
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES[level]}").fetchall()


def trusted_schema(connection: Connection) -> None:
    """Do not trust the file: a schema that somebody tampered with cannot call functions with side effects."""
    connection.execute("PRAGMA trusted_schema = OFF").fetchall()


def query_only(connection: Connection, *, on: bool) -> None:
    """Refuse every write, so that a reader that writes by mistake is found at once."""
    connection.execute(f"PRAGMA query_only = {'ON' if on else 'OFF'}").fetchall()


def use_wal(connection: Connection, timeout: float) -> None:
    """Write ahead: readers and the writer do not wait for each other. The file remembers it.

    The switch needs the file for itself, and SQLite does not wait for that by the busy time-out; so another process
    that makes the same file at the same moment is waited for here.

    Args:
        connection: outside of a transaction.
        timeout: seconds to try.

    Raises:
        StoreError: the file system cannot do it.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except driver_errors() as error:
            if fault_of(error) is not Fault.BUSY or time.monotonic() >= deadline:
                raise
        else:
            if mode == "wal":
                return
            raise StoreError(
                f"the file cannot have a write-ahead log (its journal stays {mode!r}): keep it on a local file system"
            )
        time.sleep(_RETRY_PAUSE)


def checkpoint(connection: Connection) -> bool:
    """Move the write-ahead log into the file and cut it to nothing; whether that could be done.

    It cannot while a reader, of any process, still needs the log.
    """
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy
