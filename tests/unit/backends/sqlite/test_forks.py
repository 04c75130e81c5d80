"""A forked child inherits SQLite's idea of its locks, but not the locks."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

IN_CHILD = """
import threading, traceback

def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            print(work(), flush=True)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

def add(file, key):
    with file.pool.writer() as connection:
        connection.execute("INSERT INTO pending (key) VALUES (?)", (key,))

def keys(file):
    with file.pool.reader() as connection:
        return [key for (key,) in connection.execute("SELECT key FROM pending ORDER BY key").fetchall()]

def refused(work):
    try:
        return work()
    except StoreError as error:
        return type(error).__name__
"""


def test_an_inherited_store_is_refused_and_the_parents_lives(run, tmp_path):
    answer = run(
        IN_CHILD
        + """
for path in (arguments[0], ":memory:"):
    file = opened(path)
    add(file, 1)
    in_child(lambda: (refused(lambda: keys(file)), refused(lambda: add(file, 2)), file.close()))
    add(file, 3)
    print(keys(file))
    file.close()
""",
        tmp_path / "a.db",
    )
    assert answer.split("\n") == ["('ForkedStoreError', 'ForkedStoreError', None)", "[1, 3]"] * 2


def test_a_child_may_open_the_file_anew_and_its_locks_are_real(run, tmp_path):
    # Without locks of its own the child would not be seen, and its log be deleted when the parent closes.
    answer = run(
        IN_CHILD
        + """
file = opened(arguments[0])
add(file, 1)
keys(file)
(from_child, to_parent), (from_parent, to_child) = os.pipe(), os.pipe()

def child():
    mine = opened(arguments[0])
    before = keys(mine)
    os.write(to_parent, b"open")
    os.read(from_parent, 6)
    log = os.path.exists(arguments[0] + "-wal")
    add(mine, 2)
    mine.close()
    return before, log

def parent():
    os.read(from_child, 4)
    file.close()
    os.write(to_child, b"closed")

thread = threading.Thread(target=parent)
thread.start()
in_child(child)
thread.join()
print(keys(opened(arguments[0])))
""",
        tmp_path / "a.db",
    )
    assert answer.split("\n") == ["([1], True)", "[1, 2]"]


def test_a_file_that_was_in_use_cannot_be_opened_by_the_child(run, tmp_path):
    answer = run(
        IN_CHILD
        + """
file = opened(arguments[0])
inside, done = threading.Event(), threading.Event()
def work():
    with file.pool.writer() as connection:
        connection.execute("INSERT INTO pending (key) VALUES (1)")
        inside.set()
        done.wait()
thread = threading.Thread(target=work)
thread.start()
inside.wait()
in_child(lambda: (refused(lambda: opened(arguments[0])), opened(arguments[0] + "2").path == arguments[0] + "2"))
done.set()
thread.join()
print(keys(file))
""",
        tmp_path / "a.db",
    )
    assert answer.split("\n") == ["('ForkedStoreError', True)", "[1]"]


def test_a_fork_inside_of_a_session_leaves_the_transaction_to_the_parent(run, tmp_path):
    answer = run(
        IN_CHILD
        + """
import gc
file = opened(arguments[0])
def both():
    with file.pool.writer() as connection:
        connection.execute("INSERT INTO pending (key) VALUES (1)")
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
    return pid
try:
    both()
except ForkedStoreError:
    del file
    gc.collect()
    print("refused", flush=True)
    sys.exit()  # with all that the interpreter closes at its end
print(keys(file))
""",
        tmp_path / "a.db",
    )
    assert answer.split("\n") == ["refused", "[1]"]


def test_multiprocessing_with_fork(run, tmp_path):
    answer = run(
        IN_CHILD
        + """
import multiprocessing
file = opened(arguments[0])
add(file, 0)
def work(number):
    mine = opened(arguments[0])
    add(mine, number)
    mine.close()
for round in range(5):
    processes = [multiprocessing.get_context("fork").Process(target=work, args=(round * 4 + n,)) for n in range(1, 5)]
    for process in processes: process.start()
    assert keys(file)
    for process in processes: process.join()
print(keys(file) == list(range(21)))
""",
        tmp_path / "a.db",
    )
    assert answer == "True"
