"""A file that was damaged, or taken away, under an open store: a named error or degradation, and what repairs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import twofold
from twofold import (
    ConfigurationError,
    CorruptStoreError,
    DegradationCode,
    HybridStore,
    SearchUnavailableError,
    StoreError,
    StoreSettings,
)
from twofold.testing import FakeEmbedder

LONG = " ".join(f"word{number}" for number in range(600)) + " hello"
"""A query of more tokens than are searched."""


@pytest.fixture
def store() -> Iterator[HybridStore]:
    with twofold.open(":memory:", embedder=FakeEmbedder(16)) as store:
        store.add("hello world", id="a")
        store.add("hello moon", id="b")
        yield store


def damage(store: HybridStore, *statements: str) -> None:
    """Change the file behind the store's back."""
    with store._backend._file.pool.writer() as connection:  # type: ignore[attr-defined]
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("table", ["fts", "fts_terms"])
def test_a_long_query_is_answered_by_meaning_if_the_index_is_gone(store: HybridStore, table: str) -> None:
    damage(store, f"DROP TABLE {table}")
    result = store.search(LONG)
    assert set(result.ids) == {"a", "b"}
    assert result.has(DegradationCode.KEYWORD_UNAVAILABLE)
    with pytest.raises(SearchUnavailableError):
        store.search(LONG, mode="keyword")


@pytest.mark.parametrize("table", ["fts", "fts_terms"])
def test_the_next_write_makes_a_missing_index_anew(store: HybridStore, table: str) -> None:
    damage(store, f"DROP TABLE {table}")
    assert [each.code for each in store.check().damage] == ["damaged_keyword_index"]
    store.add("hello sun", id="c")
    store.delete("b")
    assert set(store.search("hello", mode="keyword").ids) == {"a", "c"}
    assert store.check().ok


@pytest.mark.parametrize(
    "statement", ["UPDATE fts_data SET block = x'00' WHERE id > 1", "UPDATE fts_data SET block = x'ff' WHERE id = 10"]
)
def test_an_index_that_cannot_be_written_names_its_repair(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "memory.db"
    with twofold.open(path) as store:
        store.add("hello world", id="a")
        damage(store, statement)
    with twofold.open(path) as store:
        with pytest.raises(CorruptStoreError, match=r"reindex\(\)"):
            store.add("hello sun", id="c")
        assert store.count() == 1
        store.reindex()
        store.add("hello sun", id="c")
        assert set(store.search("hello").ids) == {"a", "c"}
        assert store.check().ok


@pytest.mark.parametrize(
    ("statement", "code", "advice"),
    [
        ("DELETE FROM vectors WHERE key = 1", "missing_vector", ("add",)),
        ("UPDATE vectors SET content_hash = 'other' WHERE key = 1", "stale_vector", ("delete", "add")),
        ("UPDATE vectors SET vector = zeroblob(64) WHERE key = 1", "unusable_vector", ("delete", "add")),
        ("INSERT INTO pending (key) VALUES (1)", "needless_pending", ("embed_pending",)),
    ],
)
def test_what_check_advises_mends_the_vectors(
    store: HybridStore, statement: str, code: str, advice: tuple[str, ...]
) -> None:
    damage(store, statement)
    (found,) = store.check().damage
    assert found.code == code
    steps = {
        "add": lambda: store.add("hello world", id="a"),
        "delete": lambda: store.delete("a"),
        "embed_pending": store.embed_pending,
    }
    assert {step for step in steps if f"{step}()" in found.message} == set(advice)
    for step in advice:
        steps[step]()
    assert store.check().ok


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE records",
        "DROP VIEW state",
        "DROP TABLE counters",
        "DROP TABLE meta",
        "DELETE FROM counters",
        "UPDATE meta SET value = 'x' WHERE name = 'dimension'",
        "UPDATE records SET fields = 'x'",
        "UPDATE records SET metadata = '{'",
        "UPDATE records SET scope = 9",
        "UPDATE records SET created_at = 9223372036854775807",
    ],
)
def test_a_damaged_database_is_called_so(store: HybridStore, statement: str) -> None:
    damage(store, statement)
    with pytest.raises(CorruptStoreError, match="twofold check"):
        store.search("hello", access=twofold.Access.everything())


@pytest.mark.parametrize("name", ["fields", "stop_words"])
def test_a_file_that_says_nonsense_of_itself(tmp_path: Path, name: str) -> None:
    path = tmp_path / "memory.db"
    with twofold.open(path) as store:
        damage(store, f"INSERT INTO meta VALUES ('{name}', 'x') ON CONFLICT (name) DO UPDATE SET value = 'x'")
    with pytest.raises(CorruptStoreError, match="twofold check"):
        twofold.open(path)


@pytest.mark.parametrize(
    "settings",
    [
        {"language": "klingon"},
        {"language": "\ud800"},
        {"language": "german", "field_weights": {"nothing": 2.0}},
        {"language": "german", "tag_weight": 1e9},
    ],
)
def test_settings_that_are_refused_are_not_kept(tmp_path: Path, settings: dict[str, object]) -> None:
    path = tmp_path / "memory.db"
    for _ in ("new", "there already"):
        with pytest.raises(ConfigurationError):
            twofold.open(path, settings=StoreSettings(**settings))  # type: ignore[arg-type]
        with twofold.open(path) as store:
            assert store.info().backend.details["language"] == "english"


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_was_taken_away(tmp_path: Path, *, replaced: bool) -> None:
    path = tmp_path / "memory.db"
    with twofold.open(path) as store:
        store.add("kept", id="a")
        if replaced:
            (tmp_path / "new.db").write_bytes(b"")
            (tmp_path / "new.db").replace(path)
        else:
            path.unlink()
        with pytest.raises(StoreError, match="was deleted, moved or replaced"):
            store.add("lost", id="b")
        with pytest.raises(StoreError, match="was deleted, moved or replaced"):
            store.get("a")
