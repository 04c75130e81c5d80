from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter

import pytest

from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.driver import load_driver
from twofold.backends.sqlite.faults import InterruptedStoreError
from twofold.cancellation import Cancellation, current_cancellation
from twofold.errors import (
    ReadOnlyStoreError,
    StorageFullError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
)

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
COUNT = "SELECT count(*) FROM pending"


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path):
    return tmp_path / "a.db" if request.param == "file" else MEMORY


def add(connection, key):
    connection.execute("INSERT INTO pending (key) VALUES (?)", (key,))


def count(pool):
    with pool.reader() as connection:
        return connection.execute(COUNT).fetchone()[0]


def in_threads(number, work):
    errors = []

    def run(index):
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_a_write_is_there_after_the_block(opened, place):
    pool = opened(place).pool
    with pool.writer() as connection:
        add(connection, 1)
    assert count(pool) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_a_write_that_raises_leaves_nothing_and_is_not_masked(opened, place, error):
    pool = opened(place).pool
    with pytest.raises(error, match="mine"), pool.writer() as connection:  # noqa: PT012 - the block is what is tested
        add(connection, 1)
        raise error("mine")
    assert count(pool) == 0
    with pool.writer() as connection:
        assert connection.in_transaction
        add(connection, 2)
    assert count(pool) == 1


def test_the_first_error_is_kept_when_the_transaction_is_gone_already(opened, place):
    pool = opened(place).pool
    with pytest.raises(ValueError, match="mine"), pool.writer() as connection:  # noqa: PT012
        connection.execute("ROLLBACK")
        raise ValueError("mine")
    assert count(pool) == 0


def test_an_error_is_kept_when_rolling_back_fails_too(opened, place, driver_name, monkeypatch):
    from twofold.backends.sqlite import connections

    pool = opened(place).pool
    with pool.writer() as connection:
        add(connection, 1)
    for session in (pool.writer, pool.reader):
        with monkeypatch.context() as patch, pytest.raises(ValueError, match="mine"), session():  # noqa: PT012
            # As after a disk error: the file's connection is given up, the one that is the data is not.
            patch.setattr(connections, "_end_transaction", lambda connection: connection.rollback())
            raise ValueError("mine")
        assert count(pool) == 1


def test_a_constraint_is_no_fault_of_the_file(opened, place, driver_name):
    pool = opened(place).pool
    broken = load_driver(driver_name).module.IntegrityError
    with pytest.raises(broken), pool.writer() as connection:  # noqa: PT012
        add(connection, 1)
        add(connection, 1)
    assert count(pool) == 0


def test_a_snapshot_is_taken_at_entry(opened, tmp_path):
    pool = opened(tmp_path / "a.db").pool
    with pool.reader() as connection:
        with pool.writer() as writing:
            add(writing, 1)
        assert connection.execute(COUNT).fetchone() == (0,)
    assert count(pool) == 1


def test_a_reader_cannot_write_and_the_writer_can_afterwards(opened, place):
    pool = opened(place).pool
    with pytest.raises(ReadOnlyStoreError), pool.reader() as connection:
        add(connection, 1)
    with pool.writer() as connection:
        add(connection, 1)
    assert count(pool) == 1


def test_no_transaction_stays_open(opened, place):
    pool = opened(place).pool
    with pool.reader() as connection:
        assert connection.in_transaction
    assert not connection.in_transaction
    with pytest.raises(ValueError, match="mine"), pool.reader() as connection:
        raise ValueError("mine")
    assert not connection.in_transaction
    with pool.writer() as connection:
        pass
    assert not connection.in_transaction


def test_connections_are_used_again_and_no_more_than_allowed(opened, tmp_path):
    pool = opened(tmp_path / "a.db", max_readers=3).pool
    used, at_once, most = Counter(), Counter(), []
    lock = threading.Lock()

    def work(index):
        for _ in range(20):
            with pool.reader() as connection:
                with lock:
                    used[id(connection)] += 1
                    at_once[id(connection)] += 1
                    most.append((max(at_once.values()), at_once.total()))
                connection.execute(COUNT).fetchall()
                with lock:
                    at_once[id(connection)] -= 1

    in_threads(12, work)
    assert used.total() == 12 * 20
    assert len(used) <= 3
    assert max(one for one, _ in most) == 1
    assert max(total for _, total in most) <= 3


def test_sixteen_threads_read_and_write(opened, place):
    pool = opened(place).pool

    def work(index):
        for number in range(25):
            with pool.writer() as connection:
                add(connection, index * 100 + number)
                add(connection, 10_000 + index * 100 + number)
            assert count(pool) % 2 == 0

    in_threads(16, work)
    assert count(pool) == 16 * 25 * 2


def test_one_writer_at_a_time_and_none_inside_another(opened, place):
    pool = opened(place).pool
    with pool.writer() as connection:
        add(connection, 1)
        with pytest.raises(StoreError, match="inside a session"), pool.writer():
            pass
        add(connection, 2)
    assert count(pool) == 2


def test_what_would_wait_for_itself_is_refused(opened, tmp_path):
    memory = opened(MEMORY).pool
    with memory.reader(), pytest.raises(StoreError, match="inside a session"), memory.reader():
        pass
    pool = opened(tmp_path / "a.db", max_readers=1).pool
    with pool.reader(), pytest.raises(StoreError, match="raise max_readers"), pool.reader():
        pass
    assert count(memory) == count(pool) == 0


def test_waiting_has_an_end(opened, tmp_path):
    pool = opened(tmp_path / "a.db", max_readers=1, busy_timeout=0.05).pool
    with pool.writer(), pool.reader():

        def work(index):
            with pytest.raises(StoreBusyError, match="busy_timeout"), pool.writer():
                pass
            with pytest.raises(StoreBusyError, match="busy_timeout"), pool.reader():
                pass

        in_threads(1, work)


def test_another_process_with_the_lock(opened, start, tmp_path):
    path = tmp_path / "a.db"
    file = opened(path, busy_timeout=0.1)
    holder = start(
        """
with opened(arguments[0]).pool.writer():
    print("held", flush=True)
    sys.stdin.readline()
""",
        path,
    )
    assert holder.stdout.readline() == "held\n"
    assert count(file.pool) == 0  # reading does not wait
    with pytest.raises(StoreBusyError, match="another process"), file.pool.writer():
        pass
    patient = opened(path, busy_timeout=20.0)
    threading.Timer(0.3, lambda: (holder.stdin.write("\n"), holder.stdin.flush())).start()
    with patient.pool.writer() as connection:
        add(connection, 1)
    assert count(file.pool) == 1


def test_a_cancelled_reader_stops_and_the_connection_lives(opened, place):
    pool = opened(place).pool
    cancellation = Cancellation()
    token = current_cancellation.set(cancellation)
    try:
        threading.Timer(0.2, cancellation.cancel).start()
        began = time.monotonic()
        with pytest.raises(InterruptedStoreError), pool.reader() as connection:
            connection.execute(ENDLESS).fetchall()
        assert time.monotonic() - began < 20
        with pytest.raises(InterruptedStoreError), pool.reader():
            pytest.fail("the session of cancelled work must not begin")
    finally:
        current_cancellation.reset(token)
    with pool.reader() as again:
        assert again is connection
        assert again.execute(COUNT).fetchone() == (0,)


def test_cancelling_after_the_session_does_not_hit_the_next(opened, place):
    pool = opened(place).pool
    cancellation = Cancellation()
    token = current_cancellation.set(cancellation)
    with pool.reader():
        pass
    current_cancellation.reset(token)
    with pool.reader() as connection:
        rows = connection.execute("SELECT value FROM json_each('[1, 2, 3]')")
        rows.fetchone()
        cancellation.cancel()
        assert rows.fetchall() == [(2,), (3,)]


def test_functions_are_there_for_both(opened, place):
    pool = opened(place, functions=[("twice", 1, lambda value: value * 2)]).pool
    for session in (pool.reader, pool.writer):
        with session() as connection:
            assert connection.execute("SELECT twice(21)").fetchone() == (42,)


def test_every_connection_is_set_up(opened, tmp_path):
    pool = opened(tmp_path / "a.db", synchronous="FULL", cache_mib=3, busy_timeout=7.5).pool
    wanted = {"journal_mode": "wal", "synchronous": 2, "cache_size": -3 * 1024, "busy_timeout": 7500}
    for session, query_only in ((pool.reader, 1), (pool.writer, 0)):
        with session() as connection:
            found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in (*wanted, "query_only")}
            assert found == wanted | {"query_only": query_only}
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_exclusive_use_is_outside_of_a_transaction(opened, place):
    pool = opened(place).pool
    with pool.exclusive() as connection:
        assert not connection.in_transaction
        connection.execute("VACUUM")
        connection.execute("BEGIN IMMEDIATE")
        add(connection, 1)
    assert count(pool) == 0


def test_close_waits_for_what_is_in_flight(opened, place):
    file = opened(place)
    inside, events = threading.Event(), []

    def work():
        with file.pool.reader() as connection:
            inside.set()
            time.sleep(0.3)
            connection.execute(COUNT).fetchall()
            events.append("read")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    file.close()
    events.append("closed")
    thread.join()
    assert events == ["read", "closed"]


def test_closing_under_load_ends_in_clean_errors(opened, place):
    file = opened(place)
    started = threading.Barrier(9)
    answers = Counter()

    def work(index):
        started.wait()
        try:
            for number in range(100_000):
                if number % 5 == 0:
                    with file.pool.writer() as connection:
                        add(connection, index * 100_000 + number)
                count(file.pool)
        except StoreClosedError:
            answers["closed"] += 1

    closer = threading.Thread(target=lambda: (started.wait(), time.sleep(0.2), file.close()))
    closer.start()
    in_threads(8, work)
    closer.join()
    assert answers == {"closed": 8}


def test_after_close(opened, place):
    file = opened(place)
    file.close()
    file.close()
    for session in (file.pool.reader, file.pool.writer, file.pool.exclusive):
        with pytest.raises(StoreClosedError, match="open it again"), session():
            pass


def test_close_inside_of_a_session_is_refused(opened, place):
    file = opened(place)
    for session in (file.pool.reader, file.pool.writer):
        with session() as connection:
            with pytest.raises(StoreError, match="inside one of its own sessions"):
                file.close()
            connection.execute(COUNT).fetchall()
    assert count(file.pool) == 0


def test_the_log_is_small_and_gone_at_the_end(opened, tmp_path):
    path = tmp_path / "a.db"
    file, idle = opened(path), opened(path)
    count(idle.pool)
    for number in range(2_000):
        with file.pool.writer() as connection:
            connection.execute("INSERT INTO marks VALUES (0, '', '', ?, NULL, 0)", (f"{number}" * 100,))
    log = tmp_path / "a.db-wal"
    assert log.stat().st_size < 16 * 1024 * 1024
    idle.close()
    file.close()
    assert not log.exists()


def test_the_log_is_cut_while_another_process_has_the_file_open(opened, start, tmp_path):
    path = tmp_path / "a.db"
    file = opened(path)
    other = start("file = opened(arguments[0]); print(1, flush=True); sys.stdin.readline()", path)
    other.stdout.readline()
    with file.pool.writer() as connection:
        add(connection, 1)
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    file.close()
    assert (tmp_path / "a.db-wal").stat().st_size == 0


def test_a_full_disk(opened, tmp_path):
    file = opened(tmp_path / "a.db")
    with file.pool.writer() as connection:
        add(connection, 1)
    with file.pool.exclusive() as connection:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages + 5}").fetchall()
    full = pytest.raises(StorageFullError, match="nothing of this write was kept")
    with full, file.pool.writer() as connection:
        add(connection, 2)
        connection.execute("INSERT INTO meta VALUES ('big', ?)", ("x" * 1_000_000,))
    assert count(file.pool) == 1
    with file.pool.writer() as connection:
        add(connection, 3)
    assert count(file.pool) == 2


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root on Linux, to make a small disk")
def test_a_disk_that_is_really_full(run, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m none '{disk}' 2> /dev/null") != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        answer = run(
            """
file = opened(arguments[0])
def add(first, last):
    with file.pool.writer() as connection:
        for key in range(first, last):
            connection.execute("INSERT INTO marks VALUES (0, '', '', ?, NULL, 0)", (str(key) * 200,))
def count():
    with file.pool.reader() as connection:
        return connection.execute("SELECT count(*) FROM marks").fetchone()[0]
add(0, 10)
try:
    add(10, 20_000)
except StorageFullError as error:
    print("full", count())
file.close()
file = opened(arguments[0])
with file.pool.reader() as connection:
    print(count(), *connection.execute("PRAGMA integrity_check").fetchone())
file.close()
""",
            disk / "a.db",
        )
    finally:
        os.system(f"umount -l '{disk}'")
    assert answer.split("\n") == ["full 10", "10 ok"]
