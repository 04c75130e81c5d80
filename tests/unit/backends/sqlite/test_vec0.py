"""sqlite-vec in the file: in the rows' transaction, never silently wrong, and replaced by the exact scan where it is
not to be had."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twofold.backends.protocol import Nearest, Visibility
from twofold.backends.sqlite import vec0 as vec0_module
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.driver import Connection, load_driver
from twofold.backends.sqlite.vec0 import extension_problem, read_state
from twofold.config import StoreSettings
from twofold.errors import DriverConflictError
from twofold.filters import F
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access

needs_sqlite_vec = pytest.mark.skipif(
    importlib.util.find_spec("sqlite_vec") is None or importlib.util.find_spec("pysqlite3") is None,
    reason="the extra sqlite-vec is not installed",
)
EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
COUNT = 700


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opened(path: Path | str, **more: Any) -> closing[SqliteBackend]:
    return closing(SqliteBackend.open(path, settings=StoreSettings(**{"index": "sqlite-vec", **more})))


def add(backend: SqliteBackend, *numbers: int) -> None:
    with backend.write() as writer:
        writer.adopt("fake", 2)
        for number in numbers:
            record = make_record(f"m{number}", f"t{number}", attributes={"metadata": {"n": number}})
            writer.insert(record, make_vectors(record, (1, number / 100)))


def nearest(backend: SqliteBackend, *numbers: float, limit: int = 3, visible: Visibility = EVERYTHING) -> Nearest:
    with backend.read() as reader:
        return reader.nearest(np.array(numbers, dtype=np.float32), visible, limit)


def ids(backend: SqliteBackend, found: Nearest) -> list[str]:
    with backend.read() as reader:
        records = reader.records([each.key for each in found.candidates])
        return [records[each.key].id for each in found.candidates]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Callable[[SqliteBackend], list[str]]:
    """All SQL from now on."""

    def watch(backend: SqliteBackend) -> list[str]:
        seen: list[str] = []
        real = backend._file.pool._connect

        def connect() -> Connection:
            connection = real()
            connection.set_trace_callback(seen.append)
            return connection

        monkeypatch.setattr(backend._file.pool, "_connect", connect)
        backend._file.pool._close_idle()  # those that are there are not watched
        return seen

    return watch


@needs_sqlite_vec
class TestTheTable:
    def test_it_answers(self, path: Path, statements: Callable[[SqliteBackend], list[str]]) -> None:
        with opened(path) as backend:
            seen = statements(backend)
            add(backend, *range(COUNT))
            found = nearest(backend, 1, 0.035)
            assert found.fell_back is None
            assert sorted(ids(backend, found)[:2]) == ["m3", "m4"]
            half = Visibility(Access.everything(), NEW_YEAR, F("n") >= COUNT // 2)
            assert ids(backend, nearest(backend, 1, 0, visible=half)) == ["m350", "m351", "m352"]
            asked = [each for each in seen if "MATCH" in each and "FROM vec " in each]
            assert len(asked) == 2
            # asg017/sqlite-vec#116: LIMIT in place of k is refused by older releases of SQLite.
            assert all("k = " in each and "LIMIT" not in each for each in asked)
            # asg017/sqlite-vec#152: a filter behind the search left nothing.
            assert "rowid IN" in asked[1]

    def test_it_is_written_with_the_rows(self, path: Path) -> None:
        with opened(path) as backend:
            add(backend, *range(COUNT))

            def write_and_fail() -> None:
                with backend.write() as writer:
                    writer.delete([1, 2, 3])
                    assert ids_in(writer) == ["m3", "m4", "m5"]
                    raise _BoomError

            def ids_in(writer: Any) -> list[str]:
                keys = [
                    each.key for each in writer.nearest(np.array([1, 0], dtype=np.float32), EVERYTHING, 3).candidates
                ]
                return [writer.records([key])[key].id for key in keys]

            with pytest.raises(_BoomError):
                write_and_fail()
            assert ids(backend, nearest(backend, 1, 0)) == ["m0", "m1", "m2"]
            with backend.write() as writer:
                record = make_record("m0", "another")
                writer.replace(1, record, make_vectors(record, (-1, 0)))
                writer.delete([2])
                assert ids_in(writer) == ["m2", "m3", "m4"]
                writer.delete([3])
                assert ids_in(writer) == ["m3", "m4", "m5"]
            assert ids(backend, nearest(backend, 1, 0)) == ["m3", "m4", "m5"]
            assert ids(backend, nearest(backend, -1, 0, limit=1)) == ["m0"]
            assert backend.check().ok
            with backend._file.pool.reader() as connection:
                assert connection.execute("SELECT count(*) FROM vec").fetchone() == (COUNT - 2,)

    def test_a_tie_wider_than_k_is_whole(self, path: Path) -> None:
        with opened(path) as backend:
            with backend.write() as writer:
                writer.adopt("fake", 2)
                for number in range(COUNT):
                    record = make_record(f"m{number:03}", f"t{number}")
                    writer.insert(record, make_vectors(record, (2, 2)))
            assert ids(backend, nearest(backend, 1, 1)) == ["m000", "m001", "m002"]

    @pytest.mark.parametrize("parts", [1, 3])
    def test_it_finds_what_the_exact_scan_finds(self, path: Path, parts: int) -> None:
        chance = np.random.default_rng(parts)
        with opened(path) as backend:
            with backend.write() as writer:
                writer.adopt("fake", 24)
                for number in range(COUNT):
                    record = make_record(f"m{number}", f"t{number}", attributes={"metadata": {"n": number % 3}})
                    vectors = chance.standard_normal((parts, 24))
                    writer.insert(record, make_vectors(record, {"text": vectors}))
            queries = chance.standard_normal((12, 24)).astype(np.float32)
            views = [EVERYTHING, Visibility(Access.everything(), NEW_YEAR, F("n") == 1)]
            found = [nearest(backend, *query, limit=20, visible=view) for query in queries for view in views]
        with opened(path, index="exact", driver="pysqlite3") as backend:
            assert found == [nearest(backend, *query, limit=20, visible=view) for query in queries for view in views]


@needs_sqlite_vec
class TestOthersWrites:
    def test_a_table_that_was_passed_over_is_not_used_until_it_is_brought_up(self, path: Path) -> None:
        with opened(path) as backend:
            add(backend, *range(COUNT))
            with closing(SqliteBackend.open(path)) as without:
                add(without, COUNT)
                with without.write() as writer:
                    writer.delete([1])
                assert without.check().ok
                assert any("vec0" in each for each in without.check().skipped)
            found = nearest(backend, 1, 0)
            assert ids(backend, found) == ["m1", "m2", "m3"]
            assert "behind" in str(found.fell_back)
            assert backend.info().details["vector_index"] == "exact"
            assert any("behind" in each for each in backend.check().skipped)
            add(backend, COUNT + 1)
            found = nearest(backend, 1, 0)
            assert (ids(backend, found), found.fell_back) == (["m1", "m2", "m3"], None)
            assert (backend.check().ok, backend.check().skipped) == (True, ())

    def test_a_file_that_has_none_gets_one_when_it_is_opened(self, path: Path) -> None:
        with closing(SqliteBackend.open(path, settings=StoreSettings(driver="pysqlite3"))) as without:
            add(without, *range(COUNT))
        with opened(path, read_only=True) as backend:
            found = nearest(backend, 1, 0)
            assert ids(backend, found) == ["m0", "m1", "m2"]
            assert "index='sqlite-vec'" in str(found.fell_back)
        with opened(path) as backend:
            assert nearest(backend, 1, 0).fell_back is None
            assert backend.check().ok

    def test_a_handle_without_it_works_on(self, path: Path, run: Callable[..., str], driver_name: str) -> None:
        with opened(path) as backend:
            add(backend, *range(10))
        code = """
from twofold.backends.sqlite.backend import SqliteBackend
backend = SqliteBackend.open(arguments[0], settings=settings())
with backend.write() as writer:
    writer.delete([1])
assert backend.check().ok, backend.check()
backend.close()
"""
        run(code, path)
        with opened(path) as backend:
            assert ids(backend, nearest(backend, 1, 0)) == ["m1", "m2", "m3"]
            assert backend.check().ok

    @pytest.mark.parametrize("stamp", ["", "{}", "[1]", '["x", "y", 2]', '[1, "other", 2]', '[1, "fake", 3]'])
    def test_a_stamp_that_does_not_fit_makes_it_anew(self, path: Path, stamp: str) -> None:
        with opened(path) as backend:
            add(backend, *range(10))
            with backend._file.pool.writer() as connection:
                connection.execute("UPDATE meta SET value = ? WHERE name = 'vec0'", (stamp,))
            assert nearest(backend, 1, 0).fell_back is not None
        with opened(path) as backend:
            assert nearest(backend, 1, 0).fell_back is None
            assert backend.check().ok


@needs_sqlite_vec
class TestDamage:
    def test_what_differs_is_found_and_mended(self, path: Path) -> None:
        with opened(path) as backend:
            add(backend, *range(10))
            with backend._file.pool.writer() as connection:
                connection.execute("DELETE FROM vec WHERE rowid = 3")
                connection.execute("UPDATE vec_members SET key = 9 WHERE id = 4")
                connection.execute("INSERT INTO vec (rowid, vector) VALUES (99, ?)", (np.ones(2, "<f4").tobytes(),))
            assert [(each.code, each.count) for each in backend.check().damage] == [("stale_vec0", 3)]
            backend.reindex()
            assert backend.check().ok

    def test_a_table_that_cannot_be_read_falls_back_and_fails_no_write(self, path: Path) -> None:
        with opened(path) as backend:
            add(backend, *range(COUNT))
            with backend._file.pool.writer() as connection:
                connection.execute("DROP TABLE vec_vector_chunks00")
            found = nearest(backend, 1, 0)
            assert ids(backend, found) == ["m0", "m1", "m2"]
            assert "reindex()" in str(found.fell_back)
            assert [each.code for each in backend.check().damage] == ["damaged_vec0"]
            add(backend, COUNT)
            assert ids(backend, nearest(backend, 1, 0)) == ["m0", "m1", "m2"]
            backend.reindex()
            assert nearest(backend, 1, 0).fell_back is None
            assert backend.check().ok


class TestWhereItIsNotToBeHad:
    def test_a_library_that_loads_no_extension(self, path: Path) -> None:
        # asg017/sqlite-vec#83: many builds of Python have no enable_load_extension.
        if load_driver("sqlite3").can_load_extensions:
            pytest.skip("this Python's sqlite3 can load extensions")
        with opened(path, driver="sqlite3") as backend:
            add(backend, *range(10))
            found = nearest(backend, 1, 0)
            assert ids(backend, found) == ["m0", "m1", "m2"]
            assert "twofold[sqlite-vec]" in str(found.fell_back)
            details = backend.info().details
            assert (details["driver"], details["vector_index"]) == ("sqlite3", "exact")
            assert details["vector_index_problem"] == found.fell_back

    @pytest.mark.parametrize("missing", ["sqlite_vec", "pysqlite3"])
    def test_a_missing_library(self, path: Path, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if load_driver("sqlite3").can_load_extensions:
            pytest.skip("this Python's sqlite3 can load extensions")
        monkeypatch.setitem(__import__("sys").modules, missing, None)
        load_driver.cache_clear()
        extension_problem.cache_clear()
        try:
            with opened(path) as backend:
                add(backend, *range(10))
                assert "twofold[sqlite-vec]" in str(nearest(backend, 1, 0).fell_back)
                assert backend.info().details["driver"] == "sqlite3"
        finally:
            load_driver.cache_clear()
            extension_problem.cache_clear()

    @needs_sqlite_vec
    def test_the_driver_is_chosen_for_it(self, path: Path) -> None:
        with opened(path) as backend:
            assert load_driver(backend.info().details["driver"]).can_load_extensions
            with closing(SqliteBackend.open(path)) as second:
                assert second.info().details["driver"] == backend.info().details["driver"]

    @needs_sqlite_vec
    def test_a_file_that_is_open_otherwise_keeps_its_driver(self, path: Path) -> None:
        if load_driver("sqlite3").can_load_extensions:
            pytest.skip("this Python's sqlite3 can load extensions")
        with closing(SqliteBackend.open(path, settings=StoreSettings(driver="sqlite3"))) as first:
            add(first, *range(10))
            with opened(path) as backend:
                assert "not open otherwise" in str(nearest(backend, 1, 0).fell_back)
            with pytest.raises(DriverConflictError):
                opened(path, driver="pysqlite3")

    @needs_sqlite_vec
    def test_sql_cannot_load_extensions(self, path: Path) -> None:
        refused = pytest.raises(load_driver("pysqlite3").module.OperationalError, match="not authorized")
        with opened(path) as backend, backend._file.pool.reader() as connection, refused:
            connection.execute("SELECT load_extension(?)", (vec0_module.extension_path(),))


@needs_sqlite_vec
def test_in_memory() -> None:
    with opened(":memory:") as backend:
        add(backend, *range(COUNT))
        assert (ids(backend, nearest(backend, 1, 0)), nearest(backend, 1, 0).fell_back) == (["m0", "m1", "m2"], None)
        with backend._file.pool.reader() as connection:
            state = read_state(connection)
            assert state is not None
            assert state[1:] == ("fake", 2)


class _BoomError(Exception):
    pass


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    extension_problem.cache_clear()
