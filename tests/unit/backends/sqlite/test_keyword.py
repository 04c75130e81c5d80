"""The keyword index of a file: when it is made anew, what a write costs it, what FTS5 is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.keyword import match_expression
from twofold.backends.sqlite.known import LastWrite
from twofold.config import StoreSettings
from twofold.errors import ConfigurationError, SearchUnavailableError
from twofold.testing.records import NEW_YEAR, make_record
from twofold.text import Term
from twofold.types import Access

SEEN = Visibility(Access.everything(), NEW_YEAR)


@pytest.fixture
def open_backend(settings: Callable[..., StoreSettings]) -> Iterator[Callable[..., SqliteBackend]]:
    opened: list[SqliteBackend] = []

    def make(path: str | Path = ":memory:", **more: Any) -> SqliteBackend:
        opened.append(SqliteBackend.open(path, settings=settings(**more)))
        return opened[-1]

    yield make
    for backend in opened:
        backend.close()


def add(backend: SqliteBackend, *records: Any) -> list[int]:
    with backend.write() as writer:
        return [writer.insert(record, None) for record in records]


def ask(backend: SqliteBackend, text: str) -> list[str]:
    with backend.read() as reader:
        found = reader.keyword(backend.analyzer.query(text), SEEN, 100)
        records = reader.records([candidate.key for candidate in found])
    return [records[candidate.key].id for candidate in found]


def run(backend: SqliteBackend, *statements: str) -> None:
    """Do something to the file behind the backend's back, through its own driver."""
    with backend._file.pool.writer() as connection:
        for statement in statements:
            connection.execute(statement)


def shadow(backend: SqliteBackend) -> tuple[int, int]:
    with backend._file.pool.reader() as connection:
        sql = "SELECT (SELECT count(*) FROM fts_docsize), (SELECT sum(length(block)) FROM fts_data)"
        return connection.execute(sql).fetchone()


def without_fts5(backend: SqliteBackend) -> SqliteBackend:
    """The same file as a Python sees it whose SQLite has no FTS5."""
    backend._parts = dataclasses.replace(backend._parts, has_fts5=False)
    backend._last_write = LastWrite()
    return backend


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Term(("a",)), '"a"'),
        (Term(("a", "b")), '"a b"'),
        (Term(("a",), weight=2), '"a" OR "a"'),
        (Term(("a",), prefix=True), '"a"*'),
        (Term(('say "hi"',)), '"say ""hi"""'),
    ],
)
def test_terms_in_the_words_of_fts5(term: Term, expected: str) -> None:
    assert match_expression([term]) == expected
    assert match_expression([term, Term(("z",))]) == f'{expected} OR "z"'


def test_unchanged_text_costs_the_index_nothing(open_backend: Callable[..., SqliteBackend]) -> None:
    # simonw/sqlite-utils#149, diegosouzapw/OmniRoute#13326: each update rewrote the index, and its tables grew.
    backend = open_backend()
    records = [make_record(f"m{n}", f"memory number {n}") for n in range(10)]
    keys = add(backend, *records)
    before, order = shadow(backend), ask(backend, "memory number")
    for n in range(30):
        for key, record in zip(keys, records, strict=True):
            with backend.write() as writer:
                changed = dataclasses.replace(record, metadata={"n": n}, access_count=n, importance=n / 30)
                writer.replace(key, changed, None)
    with backend.write() as writer:
        writer.set_archived(keys, NEW_YEAR)
        writer.set_archived(keys, None)
    assert shadow(backend) == before
    assert ask(backend, "memory number") == order


def test_changed_text_leaves_one_row_a_record(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend()
    (key,) = add(backend, make_record("m1", "word zero"))
    for n in range(50):
        with backend.write() as writer:
            writer.replace(key, make_record("m1", f"word {n}"), None)
    assert shadow(backend)[0] == 1
    assert (ask(backend, "48"), ask(backend, "49")) == ([], ["m1"])
    assert backend.check().ok


def test_another_language_indexes_the_text_anew(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    # openclaw/openclaw#114316: a new tokenizer was never applied to an existing file.
    backend = open_backend(tmp_path / "store.db", language="none")
    add(backend, make_record("m1", "running late"))
    assert ask(backend, "run") == []
    backend.close()
    backend = open_backend(tmp_path / "store.db", language="english")
    assert ask(backend, "run") == ["m1"]
    assert backend.check().ok


def test_a_stale_index_is_renewed_before_the_first_write(
    open_backend: Callable[..., SqliteBackend], tmp_path: Path
) -> None:
    backend = open_backend(tmp_path / "store.db")
    (key, _) = add(backend, make_record("a", "kettle"), make_record("b", "teapot"))
    # As if another process, with another release of Unicode, had made it meanwhile.
    run(
        backend,
        "UPDATE meta SET value = 'another' WHERE name = 'analyzer'",
        "INSERT INTO fts (fts) VALUES ('delete-all')",
    )
    with pytest.raises(SearchUnavailableError, match="another text analyser"):
        ask(backend, "kettle")
    assert backend.info().keyword_problem
    assert [found.code for found in backend.check().damage] == ["stale_analyzer"]
    with backend.write() as writer:
        writer.insert(make_record("c", "kettle again"), None)
        assert len(writer.keyword(backend.analyzer.query("kettle"), SEEN, 10)) == 2
        writer.delete([key])
    assert ask(backend, "kettle teapot") == ["c", "b"] or ask(backend, "kettle teapot") == ["b", "c"]
    assert backend.check().ok


def test_a_writer_without_fts5_marks_the_index(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    # shisa-ai/shisad#57: a Python without FTS5 could not even open the store.
    backend = open_backend(tmp_path / "store.db")
    (key,) = add(backend, make_record("a", "kettle"))
    without_fts5(backend)
    with pytest.raises(SearchUnavailableError, match="no FTS5"):
        ask(backend, "kettle")
    with backend.write() as writer:
        writer.replace(key, make_record("a", "kettle", attributes={"kind": "insight"}), None)
    assert backend.info().analyzer == backend.analyzer.version, "no token changed"
    with backend.write() as writer:
        writer.replace(key, make_record("a", "teapot"), None)
    assert backend.info().analyzer == ""
    assert "no FTS5" in str(backend.info().keyword_problem)
    assert not backend.check().damage
    assert backend.check().skipped
    with pytest.raises(SearchUnavailableError):
        backend.reindex()
    backend.close()
    backend = open_backend(tmp_path / "store.db")
    assert (ask(backend, "kettle"), ask(backend, "teapot")) == ([], ["a"])
    assert backend.check().ok


def test_a_read_only_store_does_not_renew(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    backend = open_backend(tmp_path / "store.db")
    add(backend, make_record("a", "kettle"))
    run(backend, "UPDATE meta SET value = '' WHERE name = 'analyzer'")
    backend.close()
    backend = open_backend(tmp_path / "store.db", read_only=True)
    with pytest.raises(SearchUnavailableError, match="out of date"):
        ask(backend, "kettle")


def test_reindex_repairs(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    # cq27-dev/rag-rat#51: clearing an index that was out of step damaged it.
    backend = open_backend(tmp_path / "store.db")
    add(backend, make_record("a", "kettle"), make_record("b", "teapot"))
    run(backend, "DELETE FROM records WHERE id = 'a'", """UPDATE records SET fields = '{"text":"samovar"}'""")
    assert {found.code for found in backend.check().damage} >= {"orphan_tokens", "stale_tokens"}
    for _ in range(2):
        backend.reindex()
        assert (ask(backend, "kettle"), ask(backend, "teapot"), ask(backend, "samovar")) == ([], [], ["b"])
        assert backend.check().ok


@pytest.mark.parametrize(
    "damage",
    [
        ["DELETE FROM fts_data WHERE id > 10"],
        ["UPDATE fts_data SET block = x'0000000005' WHERE id = 10"],
    ],
    ids=["no segments", "no structure"],
)
def test_a_damaged_index_is_a_missing_leg_until_reindexed(
    open_backend: Callable[..., SqliteBackend], tmp_path: Path, damage: list[str]
) -> None:
    backend = open_backend(tmp_path / "store.db")
    add(backend, *(make_record(f"m{n}", f"kettle {n}") for n in range(50)))
    run(backend, *damage)
    backend.close()
    backend = open_backend(tmp_path / "store.db")
    with pytest.raises(SearchUnavailableError, match="damaged"):
        ask(backend, "kettle")
    assert "damaged_keyword_index" in {found.code for found in backend.check().damage}
    backend.reindex()
    assert len(ask(backend, "kettle")) == 50
    assert backend.check().ok


def test_missing_tables_are_made_anew_at_open(open_backend: Callable[..., SqliteBackend], tmp_path: Path) -> None:
    backend = open_backend(tmp_path / "store.db")
    add(backend, make_record("a", "kettle"))
    run(backend, "DROP TABLE fts_postings", "DROP TABLE fts")
    with pytest.raises(SearchUnavailableError, match="damaged"):
        ask(backend, "kettle")
    backend.close()
    backend = open_backend(tmp_path / "store.db")
    assert ask(backend, "kettle") == ["a"]
    assert backend.check().ok


def test_weights_by_field(open_backend: Callable[..., SqliteBackend]) -> None:
    def order(**weights: Any) -> list[str]:
        backend = open_backend(fields=("title", "body"), **weights)
        add(
            backend,
            make_record("t", {"title": "kettle", "body": "one two"}),
            make_record("b", {"title": "one two", "body": "kettle"}),
            make_record("g", {"title": "one two", "body": "three"}, attributes={"tags": ("kettle",)}),
            *(make_record(f"x{n}", {"title": "other", "body": "words"}) for n in range(9)),
        )
        return ask(backend, "kettle")

    assert order(field_weights={"title": 3.0}, tag_weight=2.0) == ["t", "g", "b"]
    assert order(field_weights={"body": 3.0}, tag_weight=0.0) == ["b", "t", "g"]


@pytest.mark.parametrize("weights", [{"nope": 1.0}, {"text": 1e300}])
def test_weights_that_cannot_be_used(open_backend: Callable[..., SqliteBackend], weights: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        open_backend(field_weights=weights)


def test_words_of_two_parts_are_not_next_to_each_other(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend(fields=("title", "body"))
    keys = add(backend, make_record("a", {"title": "red", "body": "fox"}), make_record("b", {"title": "red fox"}))
    with backend.read() as reader:
        assert reader.adjacent([("red", "fox")], keys) == {keys[1]: 1}


def test_twenty_thousand_tokens(open_backend: Callable[..., SqliteBackend]) -> None:
    backend = open_backend()
    add(backend, *(make_record(f"m{n}", f"kettle w{n}") for n in range(100)))
    with backend.read() as reader:
        found = reader.document_frequencies([f"w{n}" for n in range(20_000)] + ["kettl"])
    assert found == {**{f"w{n}": 1 for n in range(100)}, "kettl": 100}
