"""What an add does not write down, because its row tells it: the number of the write, and the highest key."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import twofold
from twofold import A, GivenVectors, StoreSettings
from twofold.backends.protocol import LinkWrite, Visibility
from twofold.backends.sqlite import SqliteBackend
from twofold.backends.sqlite import writer as writer_module
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.visible import compile_visibility
from twofold.errors import ReadOnlyStoreError
from twofold.filters import Filter
from twofold.testing.contract_rows import seen_by, stored
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access

FORMER = Path(__file__).with_name("written_before_lean_adds.db.gz")
"""Written by the release before: 5 records of which the last two were deleted, a link, the seventh write the last."""


@pytest.fixture
def former(tmp_path: Path) -> Path:
    path = tmp_path / "former.db"
    path.write_bytes(gzip.decompress(FORMER.read_bytes()))
    return path


@pytest.fixture
def reopened(settings: Callable[..., StoreSettings], tmp_path: Path) -> Iterator[Callable[[], SqliteBackend]]:
    """Opens the same file anew each time, and closes it before."""
    last: list[SqliteBackend] = []

    def again() -> SqliteBackend:
        for each in last:
            each.close()
        last[:] = [SqliteBackend.open(tmp_path / "a.db", settings=settings())]
        return last[0]

    yield again
    for each in last:
        each.close()


def generation(backend: SqliteBackend) -> int:
    with backend.read() as reader:
        return reader.generation


def reserved(backend: SqliteBackend) -> int:
    with backend._file.pool.reader() as connection:
        ((seq,),) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchall()
    return int(seq)


def test_a_key_is_never_given_twice(reopened: Callable[[], SqliteBackend]) -> None:
    backend = reopened()
    given = stored(backend, *[make_record(f"a{number}", "kettle") for number in range(3)])
    for after in ("a delete", "an opening", "a scrub"):
        with backend.write() as writer:
            writer.delete(given[-2:])
        if after == "an opening":
            backend = reopened()
        if after == "a scrub":
            backend.scrub()
        given += stored(backend, *[make_record(f"{after}{number}", "kettle") for number in range(2)])
        assert given == sorted(set(given))
    with backend.write() as writer:  # added and deleted in one transaction
        gone = [writer.insert(make_record("gone", "kettle"), None)]
        writer.delete(gone)
        assert writer.insert(make_record("next", "kettle"), None) > gone[0]
    assert backend.check().ok


def test_a_key_of_a_write_that_was_rolled_back_was_never_given(reopened: Callable[[], SqliteBackend]) -> None:
    backend = reopened()
    (first,) = stored(backend, make_record("a", "kettle"))

    def half() -> None:
        with backend.write() as writer:
            writer.delete([writer.insert(make_record("b", "kettle"), None)])
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        half()
    assert stored(backend, make_record("c", "kettle")) == [first + 1]


def test_sqlite_is_told_of_keys_ahead(reopened: Callable[[], SqliteBackend], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_RESERVED", 4)
    backend = reopened()
    seen = []
    for number in range(7):
        (key,) = stored(backend, make_record(f"a{number}", "kettle"))
        seen.append((key, reserved(backend)))
    assert seen == [(1, 1 + 4), (2, 5), (3, 5), (4, 5), (5, 5), (6, 6 + 4), (7, 10)]
    with backend.write() as writer:
        many = writer.insert_many([(make_record(f"b{number}", "kettle"), None) for number in range(20)])
    assert many == list(range(8, 28))
    assert reserved(backend) == 27 + 4


def test_every_write_has_a_number_of_its_own(reopened: Callable[[], SqliteBackend]) -> None:
    backend = reopened()
    a, b = stored(backend, make_record("a", "kettle"), make_record("b", "pot"))
    numbers = [generation(backend)]

    def written(write: Callable[[writer_module.SqliteWriter], object]) -> None:
        nonlocal backend
        with backend.write() as writer:
            write(writer)
        numbers.append(generation(backend))
        backend = reopened()
        assert generation(backend) == numbers[-1]

    written(lambda writer: writer.replace(a, make_record("a", "teapot"), None))
    written(lambda writer: writer.set_archived([a], NEW_YEAR))
    written(lambda writer: writer.put_links([LinkWrite(a, b, "near", 0.5)], NEW_YEAR))
    written(lambda writer: writer.delete_links(source=a))
    written(lambda writer: writer.adopt("mine", 2))
    written(lambda writer: writer.delete([b]))
    written(lambda writer: writer.delete([a]))  # nothing is left but tombstones
    written(lambda writer: writer.insert(make_record("c", "kettle"), None))
    assert numbers == list(range(1, 1 + len(numbers)))
    with backend.write() as writer:  # nothing to write
        assert writer.insert_many([]) == []
        writer.delete([99])
        writer.set_archived([99], NEW_YEAR)
    assert generation(backend) == numbers[-1]
    backend.scrub()
    assert generation(backend) == numbers[-1] + 1


def test_a_write_that_failed_but_was_committed_is_counted(reopened: Callable[[], SqliteBackend]) -> None:
    """What followed the file by its number must not take the next write for the one it has seen."""
    backend = reopened()
    stored(backend, make_record("a", "kettle"))
    with backend.write() as writer, pytest.raises(driver_errors(), match="UNIQUE"):
        writer.insert(make_record("a", "kettle"), None)
    assert generation(backend) == 2


def test_a_file_of_the_former_release_is_brought_along(former: Path) -> None:
    with twofold.open(former, embedder=GivenVectors("given", 2)) as store:
        assert store.check().ok
        with store._backend.read() as reader:
            assert reader.generation == 7
        assert {record.id for record in store.list()} == {"a", "b", "c"}
        assert [hit.record.id for hit in store.search("kettle", vector=[1.0, 0.0], k=1)] == ["a"]
        assert [record.id for record in store.list(where=A.namespace.prefix(("notes",)))] == ["b"]
        store.add("a new kettle", id="f", vector=[0.5, 1.0])
        with store._backend.read() as reader:
            assert reader.generation == 8
            assert reader.find("f", (), None)[0][0] == 6  # not 4: there were five
        assert store.check().ok


def test_a_file_of_the_former_release_is_not_read_without_writing_to_it(former: Path) -> None:
    before = former.read_bytes()
    with pytest.raises(ReadOnlyStoreError, match="older release"):
        twofold.open(former, settings=StoreSettings(read_only=True))
    assert former.read_bytes() == before


def test_a_former_release_that_has_the_file_open_reads_on_and_cannot_write(former: Path) -> None:
    with twofold.open(former) as store:
        store.add("a new kettle", id="f")
        with store._parts.backend._file.pool.reader() as connection:  # type: ignore[attr-defined]
            assert connection.execute("SELECT generation FROM state").fetchall() == [(8,)]
        with (
            pytest.raises(driver_errors(), match="cannot modify state"),
            store._parts.backend._file.pool.writer() as connection,  # type: ignore[attr-defined]
        ):
            connection.execute("UPDATE state SET generation = 9")


@pytest.mark.parametrize(
    "where",
    [
        A.namespace.prefix(("notes", "kitchen")),
        A.namespace == ("notes", "kitchen"),
        A.namespace.prefix(("notes",)) & (A.kind == "semantic"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("access", [Access(), Access(user="u1", rooms=("r1",))], ids=repr)
def test_what_is_asked_of_a_namespace_is_found_by_its_index(
    settings: Callable[..., StoreSettings], where: Filter, access: Access
) -> None:
    condition = compile_visibility(Visibility(access, NEW_YEAR, where))
    with (
        closing(SqliteBackend.open(":memory:", settings=settings())) as backend,
        backend._file.pool.reader() as connection,
    ):
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN SELECT r.key FROM records r WHERE {condition.sql}", condition.params
        ).fetchall()
    assert "USING INDEX records_by_namespace" in plan[0][3]


def test_what_is_asked_of_everything_is_read_in_the_order_of_the_file(settings: Callable[..., StoreSettings]) -> None:
    condition = compile_visibility(Visibility(Access(), NEW_YEAR))
    with closing(SqliteBackend.open(":memory:", settings=settings())) as backend:
        stored(backend, make_record("a", "kettle", at=NEW_YEAR - timedelta(days=1)))
        with backend._file.pool.reader() as connection:
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN SELECT r.key FROM records r WHERE {condition.sql}"
                " ORDER BY r.created_at DESC, r.id, r.namespace, r.scope, r.owner",
                condition.params,
            ).fetchall()
        assert plan[0][3] == "SCAN r"
        with backend.read() as reader:
            assert len(reader.scan(seen_by(Access()), (), None, 0)) == 1
