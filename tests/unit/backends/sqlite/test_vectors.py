"""The vector leg follows the file: by generation, for snapshots before and behind, and without asking SQL twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite import vector_indexes, visible_keys
from twofold.backends.sqlite import writer as writer_module
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.config import StoreSettings
from twofold.filters import A, F
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access, Owner

EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
SHARED = Visibility(Access(), NEW_YEAR)
EAST = np.array([1, 0], dtype=np.float32)


@pytest.fixture
def open_backend(settings: Callable[..., StoreSettings]) -> Iterator[Callable[..., SqliteBackend]]:
    opened: list[SqliteBackend] = []

    def make(path: str | Path = ":memory:", **more: Any) -> SqliteBackend:
        opened.append(SqliteBackend.open(path, settings=settings(**more)))
        return opened[-1]

    yield make
    for backend in opened:
        backend.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the vector leg has SQL do for whole lists of keys and for vectors."""
    asked: list[str] = []
    for module, name in ((visible_keys, "_listing"), (visible_keys, "_span"), (vector_indexes, "_with_vectors")):
        original = getattr(module, name)

        def spy(*args: Any, original: Any = original, name: str = name) -> Any:
            asked.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, spy)
    return asked


def add(backend: SqliteBackend, *ids: str, **more: Any) -> list[int]:
    with backend.write() as writer:
        writer.adopt("fake", 2)
        records = [make_record(id_, id_, **more) for id_ in ids]
        return [writer.insert(record, make_vectors(record, (1, 0))) for record in records]


def near(backend: SqliteBackend, visible: Visibility = EVERYTHING) -> set[int]:
    with backend.read() as reader:
        return {candidate.key for candidate in reader.nearest(EAST, visible, 1_000).candidates}


def test_an_unchanged_file_costs_no_sql(open_backend: Callable[..., SqliteBackend], statements: list[str]) -> None:
    backend = open_backend()
    keys = add(backend, "a", "b")
    where = Visibility(Access(), NEW_YEAR, F("n") == 1)
    assert near(backend, SHARED) == set(keys)
    assert near(backend, where) == set()
    statements.clear()
    for later in range(3):
        assert near(backend, Visibility(Access(), NEW_YEAR + timedelta(days=later))) == set(keys)
        assert near(backend, where) == set()
    assert statements == []


def test_what_changed_is_all_that_is_read(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    backend = open_backend(tmp_path / "store.db")
    keys = add(backend, *(f"m{n}" for n in range(100)))
    assert near(backend, SHARED) == set(keys)
    (index,) = backend._parts.vectors.indexes._indexes.values()
    with backend.write() as writer:
        writer.delete(keys[:1])
        writer.set_archived(keys[1:2], NEW_YEAR)
        new = make_record("m2", "other words")
        writer.replace(keys[2], new, None)
        writer.replace(keys[3], make_record("m3", "m3", owner=Owner.user("u")), None)
    (added,) = add(backend, "late")
    assert near(backend, SHARED) == {*keys[4:], added}
    assert near(backend) == {*keys[3:], added}
    assert len(index.keys) == 100, "snapshots never change"


def test_a_filter_on_touched_attributes_is_asked_again(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend()
    (key,) = add(backend, "a")
    for where in (A.access_count > 0, A.last_accessed > NEW_YEAR, F("x").exists() | (A.access_count > 0)):
        visible = Visibility(Access(), NEW_YEAR, where)
        assert near(backend, visible) == set()
        with backend._file.pool.writer() as connection:  # a touch: no write, no generation
            connection.execute("UPDATE records SET access_count = 1, last_accessed = last_accessed + 1")
        assert near(backend, visible) == {key}
        with backend._file.pool.writer() as connection:
            connection.execute("UPDATE records SET access_count = 0, last_accessed = last_accessed - 1")


def test_a_metadata_key_of_that_name_is_no_touch(
    open_backend: Callable[..., SqliteBackend], statements: list[str]
) -> None:
    backend = open_backend()
    add(backend, "a")
    visible = Visibility(Access(), NEW_YEAR, F("access_count") == 1)
    near(backend, visible)
    statements.clear()
    near(backend, visible)
    assert statements == []


def test_a_snapshot_behind_the_index_gets_its_own(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    backend = open_backend(tmp_path / "store.db")
    keys = add(backend, "a", "b")
    with backend.read() as before_anything_is_kept:
        (third,) = add(backend, "c")
        assert near(backend) == {*keys, third}
        for n in range(2 * vector_indexes.KEPT_INDEXES):
            add(backend, f"later{n}")
            near(backend)
        assert len(backend._parts.vectors.indexes._indexes) == vector_indexes.KEPT_INDEXES
        found = before_anything_is_kept.nearest(EAST, EVERYTHING, 100)
    assert {candidate.key for candidate in found.candidates} == set(keys)
    assert near(backend) >= {*keys, third}


def test_rolled_back_vectors_are_never_seen(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend()
    keys = add(backend, "a")
    near(backend)

    def write() -> None:
        with backend.write() as writer:
            record = make_record("gone", "gone")
            writer.insert(record, make_vectors(record, (1, 0)))
            assert len(writer.nearest(EAST, EVERYTHING, 10).candidates) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    # The next write has the same generation as the one that was undone.
    keys += add(backend, "b")
    assert near(backend) == set(keys)


def test_forgotten_deletes_make_the_index_anew(
    open_backend: Callable[..., SqliteBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "KEPT_TOMBSTONES", 3)
    monkeypatch.setattr(writer_module, "_PRUNE_EVERY", 4)
    backend = open_backend()
    keys = add(backend, *(f"m{n}" for n in range(40)))
    assert near(backend, SHARED) == set(keys)
    for key in keys[:20]:
        with backend.write() as writer:
            writer.delete([key])
    with backend.write() as writer:
        writer.delete(keys[20:30])
    with backend._file.pool.reader() as connection:
        (tombstones,) = connection.execute("SELECT count(*) FROM tombstones").fetchone()
    assert tombstones < 30
    assert near(backend, SHARED) == set(keys[30:])


def test_the_kept_lists_are_bounded(
    open_backend: Callable[..., SqliteBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible_keys, "MAX_CACHED_BYTES", 10_000)
    backend = open_backend()
    add(backend, *(f"m{n}" for n in range(10)))
    for n in range(50):
        near(backend, Visibility(Access(user=f"u{n}"), NEW_YEAR))
    lists = backend._parts.visible_keys
    assert 0 < lists._bytes <= 10_000
    assert lists._bytes == sum(seen.nbytes for seen in lists._kept.values())


def test_vectors_are_stored_as_given(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend(fields=("title", "body"))
    record = make_record("a", {"title": "x", "body": ("y", "z")})
    given = {"title": [[3.0, 4.0]], "body": [[0.1, 0.0], [1e-30, -2.0]]}
    with backend.write() as writer:
        writer.adopt("fake", 2)
        key = writer.insert(record, make_vectors(record, given))
    with backend.read() as reader:
        found = reader.vectors([key])[key]
    assert {field: parts.tolist() for field, parts in found.by_field.items()} == {
        field: np.float32(parts).tolist() for field, parts in given.items()
    }
    with backend._file.pool.reader() as connection:
        (stored,) = connection.execute("SELECT vector FROM vectors WHERE part = 0 AND space = 1").fetchone()
    assert stored == np.array([3, 4], dtype="<f4").tobytes()


def test_delete_leaves_no_row_of_it_anywhere(open_backend: Callable[..., SqliteBackend]) -> None:
    # Synaptic-Labs-AI/PACT-Plugin#1278: only the main row was removed.
    backend = open_backend()
    (key,) = add(backend, "m1")
    with backend.write() as writer:
        writer.delete([key])
    with backend._file.pool.reader() as connection:
        for table in ("records", "vectors", "pending", "fts_docsize"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert connection.execute("SELECT * FROM tombstones").fetchall() == [(2, key)]


def test_thousands_of_keys_at_once(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend()
    keys = add(backend, *(f"m{n}" for n in range(2_500)))
    with backend.read() as reader:
        assert len(reader.records(keys)) == len(reader.identities(keys)) == len(reader.vectors(keys)) == 2_500
    with backend.write() as writer:
        writer.set_archived(keys, NEW_YEAR)
        writer.delete(keys[1:])
    assert near(backend, Visibility(Access(), NEW_YEAR, None, include_archived=True)) == set(keys[:1])
