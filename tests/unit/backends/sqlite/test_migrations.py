from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from twofold.backends.sqlite import opening
from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.driver import load_driver
from twofold.backends.sqlite.migrations import MIGRATIONS, Migration, create_keyword_index, read_meta, write_meta
from twofold.backends.sqlite.schema import APPLICATION_ID
from twofold.errors import NewerFormatError


def make_colours(connection, creation):
    connection.execute("CREATE TABLE colours (name TEXT)")
    connection.execute("INSERT INTO colours VALUES ('red')")


def make_sizes(connection, creation):
    connection.execute("CREATE TABLE sizes AS SELECT name, 1 AS size FROM colours")


LONGER = (*MIGRATIONS, Migration("0002_colours", make_colours), Migration("0003_sizes", make_sizes))


def rows(pool, sql):
    with pool.reader() as connection:
        return connection.execute(sql).fetchall()


def tables(pool):
    return {name for (name,) in rows(pool, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_new_file_has_every_table_and_says_what_it_is(opened, tmp_path):
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    file = opened(tmp_path / "a.db", fields=("title", "body"), stop_words=("the", "a"), clock=lambda: at)
    assert {"meta", "counters", "records", "vectors", "fts", "fts_terms", "twofold_migrations"} <= tables(file.pool)
    assert rows(file.pool, "PRAGMA application_id") == [(APPLICATION_ID,)]
    applied_at = round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)
    assert rows(file.pool, "SELECT name, applied_at FROM twofold_migrations ORDER BY rowid") == [
        (migration.name, applied_at) for migration in MIGRATIONS
    ]
    with file.pool.reader() as connection:
        meta = read_meta(connection)
    assert json.loads(meta.pop("fields")) == ["title", "body"]
    assert json.loads(meta.pop("stop_words")) == ["the", "a"]
    assert meta == {"language": "english"}


def test_without_fts5_there_is_no_keyword_index_and_the_file_says_so(opened, tmp_path, monkeypatch, driver_name):
    from dataclasses import replace

    weak = replace(load_driver(driver_name), has_fts5=False)
    monkeypatch.setattr(opening, "load_driver", lambda name: weak)
    file = opened(tmp_path / "a.db")
    assert not any(name.startswith("fts") for name in tables(file.pool))
    with file.pool.reader() as connection:
        assert read_meta(connection)["analyzer"] == ""
    with file.pool.writer() as connection:
        create_keyword_index(connection, file.fields)
    assert {"fts", "fts_terms", "fts_postings"} <= tables(file.pool)


def test_an_older_file_is_brought_up_to_date_once(opened, tmp_path):
    file = opened(tmp_path / "a.db")
    with file.pool.writer() as connection:
        connection.execute("INSERT INTO pending (key) VALUES (7)")
    file.close()
    for _ in range(2):
        file = opened(tmp_path / "a.db", migrations=LONGER)
        assert rows(file.pool, "SELECT * FROM sizes") == [("red", 1)]
        assert rows(file.pool, "SELECT key FROM pending") == [(7,)]
        assert rows(file.pool, "SELECT name FROM twofold_migrations ORDER BY rowid") == [
            (migration.name,) for migration in LONGER
        ]
        file.close()


def test_a_step_that_raises_leaves_the_file_before_it(opened, tmp_path):
    def broken(connection, creation):
        make_sizes(connection, creation)
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        opened(tmp_path / "a.db", migrations=(*LONGER[:-1], Migration("0003_sizes", broken)))
    file = opened(tmp_path / "a.db", migrations=LONGER[:-1])
    assert "colours" in tables(file.pool)
    assert "sizes" not in tables(file.pool)
    file.close()
    file = opened(tmp_path / "a.db", migrations=LONGER)
    assert rows(file.pool, "SELECT * FROM sizes") == [("red", 1)]


def test_a_first_step_that_raises_leaves_a_new_file(opened, tmp_path):
    def broken(connection, creation):
        MIGRATIONS[0].apply(connection, creation)
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        opened(tmp_path / "a.db", migrations=(Migration("0001_initial", broken),))
    assert opened(tmp_path / "a.db", fields=("other",)).fields == ("other",)


@pytest.mark.parametrize("killed_in", [0, 1, 2])
def test_who_is_killed_in_a_step_is_taken_over_from(opened, run, tmp_path, killed_in):
    run(
        """
import signal
from twofold.backends.sqlite.migrations import MIGRATIONS, Migration

def make(number):
    def apply(connection, creation):
        if number == 0:
            MIGRATIONS[0].apply(connection, creation)
        else:
            connection.execute(f"CREATE TABLE step_{number} (x)")
        if number == int(arguments[1]):
            os.kill(os.getpid(), signal.SIGKILL)
    return apply

pid = os.fork()
if pid == 0:
    names = ["0001_initial", "0002", "0003"]
    opened(arguments[0], migrations=tuple(Migration(name, make(n)) for n, name in enumerate(names)))
_, status = os.waitpid(pid, 0)
assert os.WTERMSIG(status) == signal.SIGKILL
""",
        tmp_path / "a.db",
        killed_in,
    )

    def make(number):
        return lambda connection, creation: connection.execute(f"CREATE TABLE step_{number} (x)")

    file = opened(
        tmp_path / "a.db", migrations=(*MIGRATIONS[:1], Migration("0002", make(1)), Migration("0003", make(2)))
    )
    assert {"records", "step_1", "step_2"} <= tables(file.pool)
    assert rows(file.pool, "SELECT count(*) FROM twofold_migrations") == [(3,)]
    assert rows(file.pool, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("log", ["moved into the file", "left by a crash"])
def test_a_newer_file_is_refused_and_stays_as_it_is(opened, run, tmp_path, digest, log):
    path = tmp_path / "a.db"
    run(
        """
from twofold.backends.sqlite.migrations import MIGRATIONS, Migration
newer = (*MIGRATIONS, Migration("0009_of_2031", lambda connection, creation: connection.execute("CREATE TABLE z (x)")))
file = opened(arguments[0], migrations=newer)
if arguments[1] == "left by a crash":
    os._exit(0)
file.close()
""",
        path,
        log,
    )
    kept = ["a.db", "a.db-wal"] if log == "left by a crash" else ["a.db"]
    before = [digest(tmp_path / name) for name in kept]
    with pytest.raises(NewerFormatError, match=r"0009_of_2031.*upgrade"):
        opened(path)
    with pytest.raises(NewerFormatError, match="0009_of_2031"):
        opened(path, read_only=True, tenant=None)
    assert [digest(tmp_path / name) for name in kept] == before
    if log == "moved into the file":
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.db"]


def test_meta_values_can_be_set_changed_and_taken_away(opened):
    pool = opened(MEMORY).pool
    for value in ("1", "2", None, None):
        with pool.writer() as connection:
            write_meta(connection, "dimension", value)
            assert read_meta(connection).get("dimension") == value


def test_a_step_runs_inside_a_transaction(opened, tmp_path):
    seen = []

    def look(connection, creation):
        seen.append(connection.in_transaction)

    opened(tmp_path / "a.db", migrations=(*MIGRATIONS, Migration("0002", look)))
    assert seen == [True]
