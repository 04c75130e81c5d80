"""SQLite's errors in twofold's words."""

from __future__ import annotations

import errno
import sqlite3
import sys
from enum import Enum
from typing import Final

from twofold.errors import (
    CorruptStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    StorageFullError,
    StoreBusyError,
    StoreError,
)

__all__ = [
    "DAMAGED_ADVICE",
    "FULL_DISK",
    "Fault",
    "InterruptedStoreError",
    "driver_errors",
    "fault_of",
    "translate",
    "translating",
]


DAMAGED_ADVICE: Final = (
    "restore a copy of the file; `twofold check` tells what is wrong with this one, if it can still be opened"
)
"""What to do where the database itself is damaged."""

FULL_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The error numbers of a disk, or a quota, that is full."""


class InterruptedStoreError(StoreError):
    """The statement was called off by a :class:`twofold.cancellation.Cancellation`."""


class Fault(Enum):
    """What went wrong, whichever driver says so: SQLite's result code (-1: none of its own), and how its message
    begins. The SQL is our own and known to be right, so a table that it does not find was taken away.
    """

    BUSY = (5, "database is locked")
    LOCKED = (6, "database table is locked", "database schema is locked")
    READ_ONLY = (8, "attempt to write a readonly database")
    INTERRUPTED = (9, "interrupted")
    IO = (10, "disk I/O error")
    CORRUPT = (11, "database disk image is malformed", "malformed database schema", "fts5: corruption")
    DAMAGED = (-1, "no such table", "no such fts5 table", "malformed JSON")
    KEYWORD_INDEX = (-1, "constraint failed", "table fts has no column")  # a constraint of ours is named
    FULL = (13, "database or disk is full")
    CANNOT_OPEN = (14, "unable to open database file")
    NOT_A_DATABASE = (26, "file is not a database")

    def __init__(self, code: int, *messages: str) -> None:
        self.code = code
        self.messages = messages


_ANSWERS: Final[dict[Fault, tuple[type[StoreError], str]]] = {
    Fault.BUSY: (
        StoreBusyError,
        "another process held the write lock for longer than busy_timeout; try again, or raise it",
    ),
    Fault.LOCKED: (StoreBusyError, "another session of this process is in the way; try again"),
    Fault.READ_ONLY: (ReadOnlyStoreError, "the file is open for reading only"),
    Fault.INTERRUPTED: (InterruptedStoreError, "it was called off"),
    Fault.IO: (StoreError, "the disk reports an I/O error; look at its space, its quota and its health"),
    Fault.CORRUPT: (CorruptStoreError, f"the database is damaged: {DAMAGED_ADVICE}"),
    Fault.DAMAGED: (
        CorruptStoreError,
        f"something that belongs to the store is missing or unreadable: {DAMAGED_ADVICE}",
    ),
    Fault.KEYWORD_INDEX: (CorruptStoreError, "the keyword index is damaged; make it anew with reindex()"),
    Fault.FULL: (StorageFullError, "the disk is full; nothing of this write was kept. Make room and try again"),
    Fault.CANNOT_OPEN: (StoreError, "the file, or the log beside it, cannot be opened; look at the folder's rights"),
    Fault.NOT_A_DATABASE: (NotAStoreError, "the file is no SQLite database"),
}


def driver_errors() -> tuple[type[Exception], ...]:
    """The base classes of the errors of the drivers in use, to be written after ``except``."""
    other = sys.modules.get("pysqlite3")
    return (sqlite3.Error,) if other is None else (sqlite3.Error, other.Error)


def fault_of(error: BaseException) -> Fault | None:
    """What a driver's error stands for; None if it is none of the known ones."""
    code = getattr(error, "sqlite_errorcode", None)  # pysqlite3 does not have it
    text = str(error)
    for fault in Fault:
        if (code is not None and code & 0xFF == fault.code) or text.startswith(fault.messages):
            return fault
    return None


class translating:  # noqa: N801 - it reads as what is done
    """Turn the errors of the drivers, and a full disk, into twofold's; the cause stays chained.

    Errors of another kind, such as a broken constraint or wrong SQL, pass as they are.

    Args:
        what: what is being done, e.g. ``"writing to memory.db"``; the message begins with it.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            translate(error, self._what)


def translate(error: BaseException, what: str) -> None:
    """Raise what ``error`` is in twofold's words, with it as the cause; nothing if it has no other words there.

    Args:
        error: anything.
        what: what was being done; the message begins with it.
    """
    if isinstance(error, driver_errors()):
        fault = fault_of(error)
        if fault is not None:
            raises, message = _ANSWERS[fault]
            raise raises(f"{what}: {message} (SQLite: {error})") from error
    elif isinstance(error, OSError) and error.errno in FULL_DISK:
        raise StorageFullError(f"{what}: {_ANSWERS[Fault.FULL][1]}") from error
