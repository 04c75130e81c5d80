from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.driver import load_driver
from twofold.backends.sqlite.opening import open_file
from twofold.config import DEFAULT_FIELDS, DEFAULT_LANGUAGE, StoreSettings
from twofold.errors import (
    ConfigurationError,
    CorruptStoreError,
    DriverConflictError,
    NotAStoreError,
    ReadOnlyStoreError,
    WrongTenantError,
)


def mark(file, key):
    with file.pool.writer() as connection:
        connection.execute("INSERT INTO pending (key) VALUES (?)", (key,))


def marks(file):
    with file.pool.reader() as connection:
        return [key for (key,) in connection.execute("SELECT key FROM pending ORDER BY key").fetchall()]


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


# What a path may be


def test_a_missing_file_is_made_with_the_defaults(opened, tmp_path, driver_name):
    file = opened(tmp_path / "a.db")
    assert file.path == str(tmp_path / "a.db")
    assert file.driver.name == driver_name
    assert (file.fields, file.language, file.stop_words) == (DEFAULT_FIELDS, DEFAULT_LANGUAGE, None)
    assert (file.tenant, file.read_only, file.immutable) == (None, False, False)
    file.close()
    assert names(tmp_path) == ["a.db"]


def test_an_empty_file_is_a_new_store(opened, tmp_path):
    (tmp_path / "a.db").touch()
    file = opened(tmp_path / "a.db")
    mark(file, 1)
    assert marks(file) == [1]


@pytest.mark.parametrize(
    "name", ["a b.db", "what?.db", "#1.db", "100%.db", "%41.db", "é 漢字 🦊.db", "a&mode=ro.db", "'\".db"]
)
def test_odd_names(opened, tmp_path, name):
    for key in (1, 2):
        file = opened(tmp_path / name)
        mark(file, key)
        assert marks(file) == list(range(1, key + 1))
        file.close()
    assert names(tmp_path) == [name]


def test_a_relative_path_and_a_text(opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = opened("a.db")
    monkeypatch.chdir("/")
    mark(file, 1)
    assert marks(file) == [1]
    assert names(tmp_path) == ["a.db", "a.db-shm", "a.db-wal"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_paths_that_cannot_be_used(opened, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "round").symlink_to(tmp_path / "round")
    os.mkfifo(tmp_path / "pipe")
    for path, message in [
        (tmp_path / "no" / "a.db", "create it first"),
        (tmp_path, "folder: name a file in it, or say whose file with tenant="),
        (tmp_path / "file" / "a.db", "create it first"),
        (tmp_path / "round", "cannot be used as a path"),
        (tmp_path / "pipe", "no regular file"),
        (tmp_path / ("x" * 300), "cannot be used as a path"),
        ("", "name of a file"),
        (b"a.db", "name of a file"),
        ("a\0b", "name of a file"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            opened(path)
    assert names(tmp_path) == ["file", "pipe", "round"]


# Tenants


def test_a_tenant_is_a_file_of_its_own(opened, tmp_path):
    for key, tenant in enumerate(("acme", "ACME", "../acme", "x" * 400)):
        file = opened(tmp_path, tenant=tenant)
        assert Path(file.path).parent == tmp_path
        assert file.tenant == tenant
        mark(file, key)
        assert marks(file) == [key]
        file.close()
    assert len(names(tmp_path)) == 4
    assert marks(opened(tmp_path, tenant="ACME")) == [1]


def test_a_tenant_needs_a_folder_that_exists(opened, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="is a file"):
        opened(tmp_path / "file", tenant="acme")
    with pytest.raises(ConfigurationError, match="does not exist: create it"):
        opened(tmp_path / "no", tenant="acme")


def test_a_file_refuses_every_other_tenant(opened, tmp_path, digest):
    opened(tmp_path, tenant="acme").close()
    opened(tmp_path / "nobody.db").close()
    (tmp_path / "evil.db").write_bytes((tmp_path / "acme.db").read_bytes())
    before = {name: digest(tmp_path / name) for name in names(tmp_path)}
    for path, tenant in [
        (tmp_path, "evil"),
        (tmp_path / "acme.db", None),
        (tmp_path, "nobody"),
    ]:
        for read_only in (False, True):
            with pytest.raises(WrongTenantError) as caught:
                opened(path, tenant=tenant, read_only=read_only)
            assert tenant == "nobody" or "acme'" not in str(caught.value)
    assert {name: digest(tmp_path / name) for name in names(tmp_path)} == before


def test_memory_may_have_a_tenant(opened):
    assert opened(MEMORY, tenant="acme").tenant == "acme"
    one, other = opened(MEMORY), opened(MEMORY)
    mark(one, 1)
    assert (marks(one), marks(other)) == ([1], [])
    assert one.path == MEMORY


# What the file fixed, and what may be changed


def test_fields_are_the_files(opened, tmp_path):
    opened(tmp_path / "a.db", fields=("title", "body")).close()
    assert opened(tmp_path / "a.db").fields == ("title", "body")
    assert opened(tmp_path / "a.db", fields=("title", "body")).fields == ("title", "body")
    with pytest.raises(ConfigurationError, match=r"fields=\('title', 'body'\)"):
        opened(tmp_path / "a.db", fields=("body", "title"))


def test_language_and_stop_words_can_be_changed_and_stay(opened, tmp_path):
    def found(**settings):
        file = opened(tmp_path / "a.db", **settings)
        file.close()
        return file.language, file.stop_words

    assert found() == (DEFAULT_LANGUAGE, None)
    assert found(language="russian") == ("russian", None)
    assert found(stop_words=()) == ("russian", ())
    assert found() == ("russian", ())
    assert found(stop_words=("и", "в"), language="none") == ("none", ("и", "в"))
    assert found(read_only=True) == ("none", ("и", "в"))
    with pytest.raises(ReadOnlyStoreError, match=r"\(language\).*leave them unset"):
        found(read_only=True, language="english")


# What is not ours


def test_a_file_that_is_no_database_is_refused_unchanged(opened, tmp_path, digest):
    path = tmp_path / "a.db"
    for content in (b"x", b"hello world" * 1000, b"SQLite format 4\0" + bytes(5000), os.urandom(100)):
        path.write_bytes(content)
        before = digest(path)
        for read_only in (False, True):
            with pytest.raises(NotAStoreError, match="no SQLite database"):
                opened(path, read_only=read_only)
        assert digest(path) == before
        assert names(tmp_path) == ["a.db"]


@pytest.mark.parametrize("statements", [
    ["CREATE TABLE t (x)"],
    ["PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"],
    ["PRAGMA application_id = 7", "VACUUM"],
    ["CREATE TABLE twofold_migrations (name)"],
    ["CREATE TABLE meta (name, value)", "INSERT INTO meta VALUES ('fields', '[]')"],
])  # fmt: skip
def test_another_programs_database_is_refused_unchanged(opened, run, tmp_path, digest, statements):
    path = tmp_path / "a.db"
    run(
        """
import json
connection = module.connect(arguments[0], isolation_level=None)
for statement in json.loads(arguments[1]):
    connection.execute(statement).fetchall()
connection.close()
""",
        path,
        json.dumps(statements),
    )
    before = digest(path)
    for _ in range(2):
        with pytest.raises(NotAStoreError, match="another program's"):
            opened(path)
    assert digest(path) == before
    assert names(tmp_path) == ["a.db"]


def test_another_programs_log_is_not_moved_into_its_file(opened, run, tmp_path, digest):
    path = tmp_path / "a.db"
    run(
        """
connection = module.connect(arguments[0], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL").fetchall()
connection.execute("CREATE TABLE t (x)")
os._exit(0)
""",
        path,
    )
    before = [digest(tmp_path / name) for name in ("a.db", "a.db-wal")]
    with pytest.raises(NotAStoreError, match="another program's"):
        opened(path)
    assert [digest(tmp_path / name) for name in ("a.db", "a.db-wal")] == before


def test_a_damaged_file_is_told(opened, tmp_path):
    path = tmp_path / "a.db"
    opened(path).close()
    content = bytearray(path.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError):
        opened(path)


def test_what_a_crash_left_in_the_log_is_there(opened, run, tmp_path):
    run(
        """
file = opened(arguments[0])
with file.pool.writer() as connection:
    connection.execute("INSERT INTO pending (key) VALUES (1)")
os._exit(0)
""",
        tmp_path / "a.db",
    )
    assert marks(opened(tmp_path / "a.db")) == [1]


# Drivers


@pytest.mark.parametrize("link", ["itself", "symbolic"])
def test_a_second_handle_takes_the_first_ones_driver_or_is_refused(opened, tmp_path, driver_name, link):
    path = tmp_path / "a.db"
    first = opened(path)
    if link == "symbolic":
        (tmp_path / "b.db").symlink_to(path)
        path = tmp_path / "b.db"
    second = opened(path, driver="auto")
    assert second.driver.name == driver_name
    mark(first, 1)
    assert marks(second) == [1]
    load_driver("sqlite3")
    other = "pysqlite3" if driver_name == "sqlite3" else "sqlite3"
    with pytest.raises(DriverConflictError, match=f"driver='{driver_name}'"):
        opened(path, driver=other)
    first.close()
    with pytest.raises(DriverConflictError):
        opened(path, driver=other)
    second.close()
    assert opened(path, driver=other).driver.name == other


def test_a_refused_file_is_let_go(opened, tmp_path, driver_name):
    path = tmp_path / "a.db"
    opened(path, fields=("a",)).close()
    with pytest.raises(ConfigurationError):
        opened(path, fields=("b",))
    other = "pysqlite3" if driver_name == "sqlite3" else "sqlite3"
    assert opened(path, driver=other).driver.name == other


# Reading only


def test_read_only_reads_and_never_writes(opened, tmp_path, digest):
    path = tmp_path / "a.db"
    file = opened(path)
    mark(file, 1)
    file.close()
    before = digest(path)
    file = opened(path, read_only=True)
    assert (file.read_only, file.immutable) == (True, False)
    assert marks(file) == [1]
    for session in (file.pool.writer, file.pool.exclusive):
        with pytest.raises(ReadOnlyStoreError), session():
            pass
    file.close()
    assert digest(path) == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("goes", [True, False])
def test_what_comes_and_goes_beside_the_file_forbids_no_writing(opened, tmp_path, monkeypatch, suffix, goes):
    # Another process closes the file, and the log goes; or opens it, and the log comes, in this very moment.
    path, looks = tmp_path / "a.db", []
    opened(path).close()
    beside = Path(f"{path}{suffix}")
    real = os.access

    def access(name, mode):
        if str(name) != str(beside):
            return real(name, mode)
        looks.append(name)
        if goes and len(looks) == 1:
            beside.unlink()
        may = real(name, mode)
        if not goes and len(looks) == 1:
            beside.touch()
        return may

    if goes:
        beside.touch()
    monkeypatch.setattr(os, "access", access)
    file = opened(path)
    assert looks
    assert not file.read_only
    mark(file, 1)
    assert marks(file) == [1]


def test_read_only_sees_what_others_write(opened, tmp_path):
    writing = opened(tmp_path / "a.db")
    reading = opened(tmp_path / "a.db", read_only=True)
    mark(writing, 1)
    assert marks(reading) == [1]


def test_read_only_makes_nothing(opened, tmp_path):
    with pytest.raises(ConfigurationError, match="no file"):
        opened(tmp_path / "a.db", read_only=True)
    assert names(tmp_path) == []
    (tmp_path / "a.db").touch()
    with pytest.raises(ReadOnlyStoreError, match="open it once for writing"):
        opened(tmp_path / "a.db", read_only=True)


def test_read_only_does_not_bring_up_to_date(opened, tmp_path):
    from twofold.backends.sqlite.migrations import MIGRATIONS, Migration

    opened(tmp_path / "a.db").close()
    longer = (*MIGRATIONS, Migration("0002", lambda connection, creation: None))
    with pytest.raises(ReadOnlyStoreError, match="older release"):
        opened(tmp_path / "a.db", read_only=True, migrations=longer)


LOOK = """
become_nobody()
try:
    file = opened(arguments[0])
    with file.pool.reader() as connection:
        rows = connection.execute("SELECT key FROM pending").fetchall()
    print(rows, "read-only" if file.read_only else "", "immutable" if file.immutable else "")
    try:
        with file.pool.writer() as connection:
            connection.execute("INSERT INTO pending (key) VALUES (2)")
    except ReadOnlyStoreError:
        print("refused")
    file.close()
except StoreError as error:
    print(type(error).__name__, error)
"""


def test_a_file_that_cannot_be_written(opened, run, open_folder):
    file = opened(open_folder / "a.db")
    mark(file, 1)
    file.close()
    (open_folder / "a.db").chmod(0o444)
    open_folder.chmod(0o777)
    assert run(LOOK, open_folder / "a.db").split("\n") == ["[(1,)] read-only ", "refused"]


def test_a_folder_that_cannot_be_written(opened, run, open_folder):
    file = opened(open_folder / "a.db")
    mark(file, 1)
    file.close()
    (open_folder / "a.db").chmod(0o666)  # the file could be, but its log has no place
    open_folder.chmod(0o755)
    assert run(LOOK, open_folder / "a.db").split("\n") == ["[(1,)] read-only immutable", "refused"]
    assert names(open_folder) == ["a.db"]


def test_a_log_that_cannot_be_read_is_not_passed_over(opened, run, open_folder):
    run(
        """
file = opened(arguments[0])
with file.pool.writer() as connection:
    connection.execute("INSERT INTO pending (key) VALUES (1)")
os._exit(0)
""",
        open_folder / "a.db",
    )
    (open_folder / "a.db-shm").unlink()
    open_folder.chmod(0o755)
    for name in names(open_folder):
        (open_folder / name).chmod(0o444)
    answer = run(LOOK, open_folder / "a.db")
    assert answer.startswith("StoreError")
    assert "write-ahead log (-wal) without its index (-shm)" in answer


def test_a_new_file_in_a_folder_that_cannot_be_written(run, open_folder):
    open_folder.chmod(0o755)
    assert run(LOOK, open_folder / "a.db").startswith("ReadOnlyStoreError there is no file")


def test_a_file_that_cannot_be_read(opened, run, open_folder):
    opened(open_folder / "a.db").close()
    (open_folder / "a.db").chmod(0o600)
    assert run(LOOK, open_folder / "a.db").startswith("StoreError opening ")


def test_read_only_beside_another_users_writer(opened, run, open_folder):
    path = open_folder / "a.db"
    file = opened(path)
    mark(file, 1)
    path.chmod(0o644)
    assert run(LOOK, path).split("\n") == ["[(1,)] read-only ", "refused"]


# Several at once

RACE = """
import time
print("ready", flush=True)
begin = float(sys.stdin.readline())
for number in range(int(arguments[1])):
    while time.time() < begin + number * 0.04:
        pass
    try:
        file = opened(f"{arguments[0]}/{number}.db", fields=(arguments[2],))
    except ConfigurationError:
        print(0)
    else:
        with file.pool.writer() as connection:
            connection.execute("INSERT INTO pending (key) VALUES (?)", (int(arguments[3]),))
        file.close()
        print(1)
"""


def race(start, folder, rounds, *fields):
    """Whether each process, for each round, could open the file that all make at the same moment."""
    processes = [start(RACE, folder, rounds, field, key) for key, field in enumerate(fields)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * len(fields)
    begin = time.time() + 0.1
    answers = []
    for process in processes:
        process.stdin.write(f"{begin}\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers.append([value == "1" for value in out.split()])
    return answers


def test_two_processes_that_make_the_same_file_both_succeed(opened, start, tmp_path):
    assert race(start, tmp_path, 30, "text", "text") == [[True] * 30] * 2
    for number in range(30):
        assert marks(opened(tmp_path / f"{number}.db")) == [0, 1]


def test_two_processes_with_two_sets_of_fields_do_not_mix(opened, start, tmp_path):
    for number, (one, two) in enumerate(zip(*race(start, tmp_path, 15, "one", "two"), strict=True)):
        assert one != two
        assert opened(tmp_path / f"{number}.db").fields == ("one" if one else "two",)


def test_threads_that_make_the_same_file_all_succeed(settings, tmp_path):
    for number in range(5):
        files, barrier = [], threading.Barrier(8)

        def work(path=tmp_path / f"{number}.db", files=files, barrier=barrier):
            barrier.wait()
            files.append(open_file(path, tenant=None, settings=settings()))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(files) == 8
        for key, file in enumerate(files):
            mark(file, key)
        assert marks(files[0]) == list(range(8))
        for file in files:
            file.close()
        assert names(tmp_path)[-1] == f"{number}.db"


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root on Linux, to make a small disk")
def test_a_disk_that_is_too_full_for_a_new_file(opened, run, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k none '{disk}' 2> /dev/null") != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        answer = run(
            """
try:
    opened(arguments[0])
except StoreError as error:
    print(type(error).__name__)
os.system("mount -o remount,size=8m '" + os.path.dirname(arguments[0]) + "'")
print(opened(arguments[0]).fields)
""",
            disk / "a.db",
        )
    finally:
        os.system(f"umount -l '{disk}'")
    assert answer.split("\n") == ["StorageFullError", "('text',)"]


def test_the_settings_of_auto(tmp_path):
    file = open_file(tmp_path / "a.db", tenant=None, settings=StoreSettings())
    assert file.driver.name == "sqlite3"
    file.close()
