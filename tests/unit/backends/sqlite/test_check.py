"""Each kind of damage is planted, and found by its name; finding it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.check import _varints
from twofold.config import StoreSettings
from twofold.testing.records import make_record, make_vectors
from twofold.types import Owner

DIMENSION = 3


@pytest.fixture
def open_backend(settings: Callable[..., StoreSettings]) -> Iterator[Callable[..., SqliteBackend]]:
    opened: list[SqliteBackend] = []

    def make(path: str | Path, **more: Any) -> SqliteBackend:
        opened.append(SqliteBackend.open(path, settings=settings(**more)))
        return opened[-1]

    yield make
    for backend in opened:
        backend.close()


@pytest.fixture
def backend(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> SqliteBackend:
    """Records 1 to 4 have vectors, 5 waits for one, 6 has no text."""
    backend = open_backend(tmp_path / "store.db")
    with backend.write() as writer:
        writer.adopt("fake", DIMENSION)
        for n in range(1, 5):
            record = make_record(f"m{n}", f"kettle number{n} boils", attributes={"tags": ("hot",)})
            writer.insert(record, make_vectors(record, (n, 1, 0)))
        writer.insert(make_record("m5", "waits"), None)
        writer.insert(make_record("m6", {}), None)
    assert backend.check().ok
    return backend


def run(backend: SqliteBackend, *statements: Any) -> None:
    with backend._file.pool.writer() as connection:
        for statement in statements:
            sql, params = (statement, ()) if isinstance(statement, str) else statement
            connection.execute(sql, params)


def blob(*numbers: float) -> bytes:
    return np.array(numbers, dtype="<f4").tobytes()


DELETE = "INSERT INTO fts (fts, rowid, f_text, tags) VALUES ('delete', ?, ?, ?)"
INSERT = "INSERT INTO fts (rowid, f_text, tags) VALUES (?, ?, ?)"

ADD_VECTOR = "INSERT INTO vectors (space, key, part, content_hash, vector) VALUES (1, 99, 0, '', ?)"


def new_text(key: int, text: str) -> str:
    return f"""UPDATE records SET fields = '{{"text":"{text}"}}' WHERE key = {key}"""


DAMAGE: list[tuple[str, list[Any], dict[str, int]]] = [
    ("text changed", [new_text(1, "teapot")], {"stale_tokens": 1}),
    ("order changed", [new_text(2, "boils number2 kettle")], {"stale_tokens": 1}),
    ("tags changed", ["UPDATE records SET tags = '[\"cold\"]' WHERE key <= 3"], {"stale_tokens": 3}),
    # What a careless update does: the row is taken out with other tokens, then put in again. FTS5's own check passes.
    (
        "removed with other tokens",
        [new_text(1, "teapot"), (DELETE, (1, "samovar one two", "hot")), (INSERT, (1, "teapot", "hot"))],
        {"stale_tokens": 1},
    ),
    ("not indexed", [(DELETE, (1, "kettl number1 boil", "hot"))], {"missing_tokens": 1}),
    ("no row", [(INSERT, (99, "ghost", ""))], {"orphan_tokens": 1}),
    ("row gone", ["DELETE FROM records WHERE key = 6"], {"orphan_tokens": 1}),
    ("totals", ["UPDATE fts_data SET block = x'06FF7F04' WHERE id = 1"], {"wrong_totals": 1}),
    ("sizes", ["UPDATE fts_docsize SET sz = x'0901' WHERE id = 2"], {"stale_tokens": 1}),
    ("analyser", ["UPDATE meta SET value = 'older' WHERE name = 'analyzer'"], {"stale_analyzer": 6}),
    ("orphan vector", [(ADD_VECTOR, (blob(1, 0, 0),))], {"orphan_vector": 1}),
    ("stale vector", ["UPDATE vectors SET content_hash = 'other' WHERE key IN (1, 2)"], {"stale_vector": 2}),
    ("missing vector", ["DELETE FROM vectors WHERE key IN (1, 2, 3)"], {"missing_vector": 3}),
    ("missing mark", ["DELETE FROM pending"], {"missing_vector": 1}),
    ("mark of one that has its vector", ["INSERT INTO pending (key) VALUES (1)"], {"needless_pending": 1}),
    ("mark of none", ["INSERT INTO pending (key) VALUES (99)"], {"needless_pending": 1}),
    ("mark of one without text", ["INSERT INTO pending (key) VALUES (6)"], {"needless_pending": 1}),
    ("short", [("UPDATE vectors SET vector = ? WHERE key = 1", (blob(1, 0),))], {"unusable_vector": 1}),
    ("text", ["UPDATE vectors SET vector = 'aaaabbbbcccc' WHERE key = 1"], {"unusable_vector": 1}),
    (
        "not finite",
        [("UPDATE vectors SET vector = ? WHERE key < 3", (blob(1, float("nan"), 0),))],
        {"unusable_vector": 2},
    ),
    ("zero", [("UPDATE vectors SET vector = ? WHERE key = 1", (blob(0, 0, 0),))], {"unusable_vector": 1}),
    (
        "other embedder",
        [
            "INSERT INTO spaces (id, fingerprint, field, dimension) VALUES (9, 'x', 'text', 3)",
            "UPDATE vectors SET space = 9 WHERE key = 1",
        ],
        {"foreign_vector": 1, "missing_vector": 1},
    ),
    ("no space", ["UPDATE vectors SET space = 77 WHERE key = 1"], {"foreign_vector": 1, "missing_vector": 1}),
    ("no such field", ["UPDATE spaces SET field = 'nope'"], {"foreign_vector": 4}),
]


@pytest.mark.parametrize(("statements", "expected"), [case[1:] for case in DAMAGE], ids=[case[0] for case in DAMAGE])
def test_damage_is_found(backend: SqliteBackend, statements: list[Any], expected: dict[str, int]) -> None:
    run(backend, *statements)
    report = backend.check()
    assert {found.code: found.count for found in report.damage} == expected
    assert all(found.message for found in report.damage)
    assert backend.check() == report, "looking changed something"


def test_reindex_repairs_all_that_is_wrong_with_tokens(backend: SqliteBackend) -> None:
    for _, statements, expected in DAMAGE:
        if all("token" in code or "totals" in code or "analyzer" in code for code in expected):
            run(backend, *statements)
    assert len(backend.check().damage) >= 1
    backend.reindex()
    assert not [found for found in backend.check().damage if "vector" not in found.code]


def test_a_damaged_vector_does_not_take_the_sound_ones_with_it(backend: SqliteBackend) -> None:
    from twofold.backends.protocol import Visibility
    from twofold.testing.records import NEW_YEAR
    from twofold.types import Access

    run(backend, ("UPDATE vectors SET vector = ? WHERE key = 1", (blob(float("inf"), 0, 0),)))
    run(backend, ("UPDATE vectors SET vector = ? WHERE key = 2", (blob(1),)))
    with backend.read() as reader:
        found = reader.nearest(np.array([1, 0, 0], np.float32), Visibility(Access(), NEW_YEAR), 10)
    assert [candidate.key for candidate in found.candidates] == [4, 3]
    assert found.unembedded == 3


def test_a_damaged_file_is_told(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    backend = open_backend(path)
    with backend.write() as writer:
        for n in range(200):
            writer.insert(make_record(f"m{n}", f"words {n} " * 20), None)
        assert writer.with_equal_text("none", Owner.everybody(), ()) == []  # which makes the index
    with backend._file.pool.reader() as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records_by_content'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    backend.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size + 8 : page * size] = b"\xff" * (size - 8)
    path.write_bytes(data)
    backend = open_backend(path)
    assert "corrupt_file" in {found.code for found in backend.check().damage}


def test_a_read_only_file_can_be_checked(
    backend: SqliteBackend, open_backend: Callable[..., SqliteBackend], tmp_path: Path
) -> None:
    run(backend, "DELETE FROM vectors WHERE key = 1", (DELETE, (1, "kettl number1 boil", "hot")))
    backend.close()
    report = open_backend(tmp_path / "store.db", read_only=True).check()
    assert {found.code for found in report.damage} == {"missing_vector", "missing_tokens"}
    assert ["integrity check" in reason for reason in report.skipped] == [True]


def test_newer_releases_of_sqlite_look_at_the_present_segments(backend: SqliteBackend) -> None:
    # A reading connection that remembers segments which were merged away meanwhile must not report damage.
    with backend.write() as writer:
        for n in range(2_000):
            writer.insert(make_record(f"x{n}", " ".join(f"w{(n * 31 + i * 7) % 9973}" for i in range(30))), None)
    with backend.read() as reader:
        reader.document_frequencies(["w1"])
    for n in range(60):
        with backend.write() as writer:
            writer.insert(make_record(f"y{n}", f"later {n}"), None)
    assert backend.check().ok


def test_variable_length_integers() -> None:
    assert _varints(bytes([0x05])) == [5]
    assert _varints(bytes([0x81, 0x00, 0x7F])) == [1 << 7, 127]
    assert _varints(bytes([0xFF] * 9)) == [2**64 - 1]
