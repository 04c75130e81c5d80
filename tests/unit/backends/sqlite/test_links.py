"""Links in SQLite: how much is looked at, what is left behind, and files from before there were any."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.backends.protocol import Identity, LinkWrite, Touch
from twofold.backends.sqlite import SqliteBackend
from twofold.backends.sqlite.links import rank_of
from twofold.backends.sqlite.migrations import MIGRATIONS
from twofold.backends.sqlite.opening import OpenedFile
from twofold.config import StoreSettings
from twofold.testing.contract_rows import seen_by, stored
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Owner

names = st.text(st.characters(exclude_characters="\0\x1f", exclude_categories=["Cs"]), min_size=1, max_size=3)
identities = st.builds(
    Identity,
    created_at=st.sampled_from((NEW_YEAR, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)))
    | st.datetimes(timezones=st.just(UTC)),
    id=names,
    namespace=st.lists(names, max_size=2).map(tuple),
    owner=names.map(Owner.user) | names.map(Owner.room) | st.just(Owner.everybody()),
)


@pytest.fixture
def backend(settings: Callable[..., StoreSettings]):
    backend = SqliteBackend.open(":memory:", settings=settings())
    yield backend
    backend.close()


@given(one=identities, other=identities)
def test_a_rank_compares_as_the_order_of_ties_does(one: Identity, other: Identity) -> None:
    for left, right in ((one, other), (one, one._replace(namespace=other.namespace, owner=other.owner))):
        assert (rank_of(left) < rank_of(right)) == (left.order < right.order)


def hub_of(backend: SqliteBackend, size: int) -> int:
    (hub,) = stored(backend, make_record(f"hub-{size}", "x"))
    keys = stored(backend, *(make_record(f"{size}-{n:06}", "x", owner=Owner.user("u1")) for n in range(size)))
    with backend.write() as writer:
        writer.put_links([LinkWrite(hub, key, "k", 1.0) for key in keys], NEW_YEAR)
    return hub


def steps_of(backend: SqliteBackend, look: Callable[..., object]) -> tuple[int, int]:
    """How many of SQLite's own steps and how many statements ``look(reader)`` takes."""
    steps, statements = [0], [0]

    def step() -> None:
        steps[0] += 1

    def statement(_: str) -> None:
        statements[0] += 1

    with backend.read() as reader:
        connection = reader._connection
        connection.set_progress_handler(step, 1)
        connection.set_trace_callback(statement)
        try:
            look(reader)
        finally:
            connection.set_progress_handler(None, 0)
            connection.set_trace_callback(None)
    return steps[0], statements[0]


def test_a_hub_costs_no_more_than_what_is_wanted_of_it(backend: SqliteBackend) -> None:
    """cajasmota/grafel#5691: a node with thousands of links made every search that met it slow."""
    small, large = hub_of(backend, 50), hub_of(backend, 20_000)
    me = seen_by(Access(user="u1"))

    def look(hub: int) -> tuple[int, int]:
        return steps_of(backend, lambda reader: reader.neighbors([hub], me, limit=10))

    (few, one), (many, other) = look(small), look(large)
    assert many <= few * 1.1
    assert one == other == 2, "one a direction"
    with backend.read() as reader:
        edges = reader.neighbors([large], me, limit=3)[large]
        found = reader.records([edge.key for edge in edges])
    assert [found[edge.key].id for edge in edges] == [f"20000-{n:06}" for n in range(3)], "ties by id"


def test_the_statement_sorts_nothing(backend: SqliteBackend) -> None:
    statements: list[str] = []
    with backend.read() as reader:
        reader._connection.set_trace_callback(statements.append)
        reader.neighbors([1], seen_by(Access(user="u1")), kinds=["k"], limit=3)
        reader._connection.set_trace_callback(None)
        plans = [row[3] for sql in statements for row in reader._connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("links_by_source" in plan for plan in plans)
    assert any("links_by_target" in plan for plan in plans)
    assert not any("TEMP B-TREE" in plan for plan in plans)


def test_check_finds_links_that_lead_nowhere(backend: SqliteBackend) -> None:
    a, b, c = stored(backend, *(make_record(id_, "x") for id_ in "abc"))
    with backend.write() as writer:
        writer.put_links([LinkWrite(a, b, "k", 1.0), LinkWrite(b, c, "k", 1.0), LinkWrite(c, a, "k", 1.0)], NEW_YEAR)
        writer._connection.execute("UPDATE links SET target = 99 WHERE source = ?", (a,))
        writer._connection.execute("UPDATE links SET source = 98 WHERE source = ?", (b,))
    assert [(each.code, each.count) for each in backend.check().damage] == [("orphan_link", 2)]
    with backend.read() as reader:
        assert [link.target for link in reader.links(c, seen_by())] == [a], "they are never followed"


def test_a_deleted_record_is_in_no_table(backend: SqliteBackend) -> None:
    # Synaptic-Labs-AI/PACT-Plugin#1278: a delete left rows in other tables.
    a, b = stored(backend, make_record("a", "kettle", attributes={"tags": ("t",)}), make_record("b", "x"))
    with backend.write() as writer:
        writer.put_links([LinkWrite(a, b, "k", 1.0), LinkWrite(b, a, "k", 1.0)], NEW_YEAR)
        writer.touch({a: Touch(1, NEW_YEAR)})
    with backend.write() as writer:
        writer.delete([a])
        writer.touch({a: Touch(1, NEW_YEAR)})
    with backend.read() as reader:
        counts = {
            table: reader._connection.execute(f"SELECT count(*) FROM {table} WHERE {where}", (a,) * n).fetchone()[0]
            for table, where, n in (
                ("records", "key = ?", 1),
                ("vectors", "key = ?", 1),
                ("pending", "key = ?", 1),
                ("links", "source = ? OR target = ?", 2),
                ("fts_docsize", "id = ?", 1),
            )
        }
    assert set(counts.values()) == {0}, counts


def test_a_file_from_before_links_is_brought_along_with_its_data(
    opened: Callable[..., OpenedFile], settings: Callable[..., StoreSettings], tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    old = opened(path, migrations=MIGRATIONS[:1])
    with old.pool.writer() as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert "links" not in tables
    old.close()
    # A record as the first schema has it, written through today's code but for the table that was not there.
    from twofold.backends.sqlite.rows import COLUMNS, to_row

    record = make_record("a", "old kettle", owner=Owner.user("u1"), attributes={"metadata": {"n": [1, True]}})
    old = opened(path, migrations=MIGRATIONS[:1])
    with old.pool.writer() as connection:
        connection.execute(
            f"INSERT INTO records ({', '.join(COLUMNS)}, generation) VALUES ({', '.join('?' * len(COLUMNS))}, 0)",
            to_row(record),
        )
        connection.execute("UPDATE state SET generation = 7")
        connection.execute("DELETE FROM meta WHERE name = 'analyzer'")
    old.close()
    backend = SqliteBackend.open(path, settings=settings())
    try:
        (key,) = backend_keys(backend)
        with backend.read() as reader:
            assert reader.records([key]) == {key: record}
            assert reader.generation == 7
            (found,) = reader.keyword(backend.analyzer.query("kettle"), seen_by(), 5)
            assert found.key == key
            assert reader.links(key, seen_by()) == []
        (other,) = stored(backend, make_record("b", "new", at=NEW_YEAR + timedelta(days=1)))
        with backend.write() as writer:
            assert writer.put_links([LinkWrite(key, other, "k", 0.5)], NEW_YEAR) == 1
        assert backend.check().ok
    finally:
        backend.close()


def backend_keys(backend: SqliteBackend) -> list[int]:
    with backend.read() as reader:
        return list(reader.scan(seen_by(), (), None, 0))
