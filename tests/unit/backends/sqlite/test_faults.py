from __future__ import annotations

import errno
import sqlite3

import pytest

from twofold.backends.sqlite.driver import load_driver
from twofold.backends.sqlite.faults import Fault, InterruptedStoreError, fault_of, translating
from twofold.errors import (
    CorruptStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    StorageFullError,
    StoreBusyError,
    StoreError,
)

CASES = [
    ("database is locked", StoreBusyError),
    ("database table is locked: records", StoreBusyError),
    ("database or disk is full", StorageFullError),
    ("attempt to write a readonly database", ReadOnlyStoreError),
    ("file is not a database", NotAStoreError),
    ("database disk image is malformed", CorruptStoreError),
    ("malformed database schema (t)", CorruptStoreError),
    ("interrupted", InterruptedStoreError),
    ("disk I/O error", StoreError),
    ("unable to open database file", StoreError),
]


@pytest.mark.parametrize(("message", "kind"), CASES)
def test_what_the_drivers_say_is_said_in_our_words(driver_name, message, kind):
    cause = load_driver(driver_name).module.OperationalError(message)
    with pytest.raises(StoreError, match=r"reading a\.db: ") as caught, translating("reading a.db"):
        raise cause
    assert type(caught.value) is kind
    assert caught.value.__cause__ is cause


def test_a_code_is_believed_before_a_message():
    error = sqlite3.DatabaseError("something else entirely")
    error.sqlite_errorcode = 11 | (1 << 8)  # SQLITE_CORRUPT_VTAB
    assert fault_of(error) is Fault.CORRUPT


@pytest.mark.parametrize("kind", ["IntegrityError", "ProgrammingError", "OperationalError"])
def test_what_is_no_fault_of_the_file_passes(driver_name, kind):
    cause = getattr(load_driver(driver_name).module, kind)("no such column: x")
    with pytest.raises(type(cause)) as caught, translating("reading"):
        raise cause
    assert caught.value is cause


def test_a_full_disk_under_python_itself():
    with pytest.raises(StorageFullError), translating("writing"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError), translating("writing"):
        raise FileNotFoundError(errno.ENOENT, "No such file")


def test_the_real_messages(driver_name, tmp_path):
    module = load_driver(driver_name).module
    (tmp_path / "a.db").write_bytes(b"no database at all, but long enough to look at" * 100)
    connection = module.connect(str(tmp_path / "a.db"))
    with pytest.raises(module.DatabaseError) as caught:
        connection.execute("SELECT * FROM sqlite_master")
    assert fault_of(caught.value) is Fault.NOT_A_DATABASE
    connection.close()
    first, second = (module.connect(str(tmp_path / "b.db"), timeout=0, isolation_level=None) for _ in range(2))
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(module.OperationalError) as caught:
        second.execute("BEGIN IMMEDIATE")
    assert fault_of(caught.value) is Fault.BUSY
    first.execute("ROLLBACK")
    second.execute("PRAGMA query_only = ON")
    with pytest.raises(module.OperationalError) as caught:
        second.execute("INSERT INTO t VALUES (1)")
    assert fault_of(caught.value) is Fault.READ_ONLY
    first.close()
    second.close()
