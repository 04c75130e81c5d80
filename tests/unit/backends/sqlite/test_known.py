"""What a writer need not read again, and when it must: whoever else has written in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twofold import StoreSettings
from twofold.backends.protocol import Space, Touch, VectorWrite
from twofold.backends.sqlite import SqliteBackend
from twofold.backends.sqlite import known as known_module
from twofold.backends.sqlite.migrations import write_meta
from twofold.testing.contract_rows import seen_by
from twofold.testing.records import NEW_YEAR, make_record


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one each time that a writer reads where the file stands."""
    seen: list[int] = []
    read_head = known_module.read_head

    def counting(connection: Any) -> Any:
        head = read_head(connection)
        seen.append(head.generation)
        return head

    monkeypatch.setattr(known_module, "read_head", counting)
    return seen


@pytest.fixture
def backend(settings: Callable[..., StoreSettings], tmp_path: Path) -> Iterator[SqliteBackend]:
    with closing(SqliteBackend.open(tmp_path / "a.db", settings=settings())) as backend:
        yield backend


def add(backend: SqliteBackend, id: str, vector: list[float] | None = None) -> int:
    record = make_record(id, f"kettle {id}")
    made = None
    if vector is not None:
        made = VectorWrite(record.content_hash, {"text": np.array([vector], dtype=np.float32)})
    with backend.write() as writer:
        return writer.insert(record, made)


def test_a_write_that_follows_on_one_reads_nothing_again(backend: SqliteBackend, readings: list[int]) -> None:
    assert [add(backend, name) for name in "abc"] == [1, 2, 3]
    with backend.read() as reader:  # on a connection of its own, that commits nothing
        assert reader.generation == 3
    add(backend, "d")
    assert readings == [0]
    with backend.read() as reader:
        assert reader.generation == 4
    assert backend.check().ok


def test_what_another_handle_wrote_is_read(
    backend: SqliteBackend, settings: Callable[..., StoreSettings], tmp_path: Path, readings: list[int]
) -> None:
    with closing(SqliteBackend.open(tmp_path / "a.db", settings=settings())) as other:
        keys = [add(each, f"{number}{name}") for number in range(3) for name, each in (("a", backend), ("b", other))]
        assert keys == [1, 2, 3, 4, 5, 6]
        assert readings == [0, 1, 2, 3, 4, 5]
        with other.write() as writer:
            writer.delete([6])
            writer.adopt("mine", 2)
        assert add(backend, "c", [1.0, 0.0]) == 7
        with other.read() as reader:
            assert (reader.generation, reader.fingerprint) == (8, "mine")
            assert list(reader.vectors([7])[7].by_field) == ["text"]
        assert backend.check().ok


def test_what_another_process_wrote_is_read(
    backend: SqliteBackend, run: Callable[..., Any], tmp_path: Path, readings: list[int]
) -> None:
    add(backend, "a")
    run(
        """
from twofold.backends.sqlite import SqliteBackend
from twofold.testing.records import make_record

backend = SqliteBackend.open(arguments[0], settings=settings())
with backend.write() as writer:
    assert writer.insert(make_record("b", "pot"), None) == 2
    writer.delete([1])
backend.close()
""",
        tmp_path / "a.db",
    )
    assert add(backend, "c") == 3
    assert readings == [0, 2]


def test_what_was_written_past_the_writer_is_read(backend: SqliteBackend, readings: list[int]) -> None:
    add(backend, "a")
    with backend._file.pool.writer() as connection:
        write_meta(connection, "fingerprint", "mine")
        write_meta(connection, "dimension", "2")
    with backend.write() as writer:
        assert writer.fingerprint == "mine"
    backend.scrub()
    add(backend, "b")
    with backend.read() as reader:
        assert reader.generation == 3
    assert readings == [0, 1, 2]


def test_what_was_rolled_back_is_forgotten(backend: SqliteBackend, readings: list[int]) -> None:
    add(backend, "a")

    def half() -> None:
        with backend.write() as writer:
            writer.adopt("mine", 2)
            writer.insert(make_record("b", "kettle"), None)
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        half()
    with backend.write() as writer:
        assert (writer.fingerprint, writer.generation) == (None, 1)
        assert writer.insert(make_record("c", "kettle"), None) == 2
    assert readings == [0, 1]


def test_what_a_writer_does_not_count_along_is_read(backend: SqliteBackend, readings: list[int]) -> None:
    key = add(backend, "a")
    with backend.write() as writer:
        writer.touch({key: Touch(1, NEW_YEAR)}, growth=1.5)
    add(backend, "b")
    add(backend, "c")
    assert readings == [0, 1]


def test_a_change_of_a_transaction_is_not_taken_for_the_next_ones(backend: SqliteBackend) -> None:
    """Within a transaction that has changed something nothing is kept for others; in the next one it is again."""
    key = add(backend, "a")
    with backend.write() as writer:
        found = [each.key for each in writer.keyword(backend.analyzer.query("kettle"), seen_by(), 5)]
        assert found == [key]
        assert not writer._head.changed
        writer.set_archived([key], NEW_YEAR)
        assert writer._head.changed
        assert writer.keyword(backend.analyzer.query("kettle"), seen_by(), 5) == []
    with backend.write() as writer:
        assert not writer._head.changed
        assert writer.generation == 2


def test_spaces_are_those_of_the_embedder_in_use(backend: SqliteBackend) -> None:
    with backend.write() as writer:
        writer.adopt("one", 2)
    first = add(backend, "a", [1.0, 0.0])
    for name in ("other", "one"):  # there and back
        with backend.write() as writer:
            writer.begin_space(Space(name, 2))
            for key, record in writer.records([first]).items():
                made = np.array([[0.0, 1.0]], dtype=np.float32)
                assert writer.put_next(key, VectorWrite(record.content_hash, {"text": made}))
            writer.swap_space({})
        added = add(backend, f"after {name}", [1.0, 1.0])
        with backend.read() as reader:
            assert reader.fingerprint == name
            assert set(reader.vectors([first, added])) == {first, added}
    with backend.write() as writer:
        writer.drop_former(100)
    assert backend.check().ok
