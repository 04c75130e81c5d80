from __future__ import annotations

import threading

import pytest

from twofold.backends.sqlite import pragmas
from twofold.backends.sqlite.driver import load_driver
from twofold.errors import StoreError


@pytest.fixture
def connect(driver_name, tmp_path):
    connections = []

    def make(database=None):
        connection = load_driver(driver_name).connect(database or (tmp_path / "a.db").as_uri())
        connections.append(connection)
        return connection

    yield make
    for connection in connections:
        connection.close()


def test_the_switch_to_a_log_waits_for_others(connect, driver_name):
    holding, waiting = connect(), connect()
    holding.execute("CREATE TABLE t (x)")
    pragmas.busy_timeout(waiting, 0)
    holding.execute("BEGIN EXCLUSIVE")
    with pytest.raises(load_driver(driver_name).module.OperationalError, match="locked"):
        pragmas.use_wal(waiting, 0.05)
    threading.Timer(0.2, lambda: holding.execute("COMMIT")).start()
    pragmas.use_wal(waiting, 20)
    assert waiting.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_where_no_log_can_be_is_told(connect):
    with pytest.raises(StoreError, match="its journal stays 'memory'"):
        pragmas.use_wal(connect(":memory:"), 1)


def test_a_checkpoint_says_whether_it_could(connect, tmp_path):
    reading, writing = connect(), connect()
    pragmas.use_wal(writing, 1)
    pragmas.busy_timeout(writing, 0)
    writing.execute("CREATE TABLE t (x)")
    reading.execute("BEGIN")
    reading.execute("SELECT * FROM t").fetchall()
    writing.execute("INSERT INTO t VALUES (1)")
    assert not pragmas.checkpoint(writing)
    reading.execute("COMMIT")
    assert pragmas.checkpoint(writing)
    assert (tmp_path / "a.db-wal").stat().st_size == 0


def test_what_is_read_through_is_not_kept_and_then_all_is_as_before(connect):
    connection = connect()
    pragmas.cache_size(connection, 7)

    def read():
        with pragmas.reading_through(connection):
            assert connection.execute("PRAGMA cache_size").fetchone() == (-1024,)
            raise LookupError

    with pytest.raises(LookupError):
        read()
    assert connection.execute("PRAGMA cache_size").fetchone() == (-7 * 1024,)


@pytest.mark.parametrize(("level", "pages"), [("NORMAL", 2000), ("FULL", 1000)])
def test_the_log_starts_over_sooner_where_each_commit_waits_for_the_disk(opened, tmp_path, level, pages):
    with opened(tmp_path / "a.db", synchronous=level).pool.writer() as connection:
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchall() == [(pages,)]
        assert connection.execute("PRAGMA synchronous").fetchall() == [({"NORMAL": 1, "FULL": 2}[level],)]
