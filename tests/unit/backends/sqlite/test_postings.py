"""When the keyword leg answers from memory, and that whoever asks never notices."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite import SqliteBackend, keyword, postings, postings_reading
from twofold.backends.sqlite.postings import JOB, PostingsCache
from twofold.config import StoreSettings
from twofold.testing.patience import PATIENT
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Owner

EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
WORDS = ("kettle", "teapot", "broker", "pager")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def opened(path: Path) -> Callable[..., closing[SqliteBackend]]:
    def opened(where: object = path, **settings: Any) -> closing[SqliteBackend]:
        settings = {"keyword_index_from": 1, "stop_words": (), **settings}
        return closing(SqliteBackend.open(str(where), settings=StoreSettings(**settings)))

    return opened


def add(backend: SqliteBackend, count: int, start: int = 0, owner: Owner | None = None) -> None:
    """Records that differ in their words and lengths."""
    with backend.write() as writer:
        for number in range(start, start + count):
            text = " ".join(WORDS[: 1 + number % 4] * (1 + number % 3))
            writer.insert(make_record(f"m{number}", text, owner=owner or Owner.everybody()), None)


def ask(backend: SqliteBackend, text: str = "kettle pager", visible: Visibility = EVERYTHING) -> list[Candidate]:
    """The answer, which is FTS5's."""
    asked = backend.analyzer.query(text)
    with backend.read() as session:
        found = session.keyword(asked, visible, 1000)
        assert found == backend._parts.keyword.search(session._connection, asked, visible, 1000)
    return found


def cache(backend: SqliteBackend) -> PostingsCache:
    return backend._parts.postings


def from_memory(backend: SqliteBackend, text: str = "kettle pager") -> bool:
    """Whether the answer to a query came from memory."""
    given: list[bool] = []
    real = cache(backend).holders

    def spied(*arguments: Any) -> Any:
        holders = real(*arguments)
        given.append(holders is not None)
        return holders

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache(backend), "holders", spied)
        ask(backend, text)
    return given[-1]


def settle(backend: SqliteBackend) -> None:
    assert backend._background.wait(JOB, PATIENT)


def begin(backend: SqliteBackend) -> None:
    """Ask until the postings are read."""
    ask(backend)
    ask(backend)
    settle(backend)
    assert from_memory(backend)


@contextmanager
def held_back(backend: SqliteBackend, at: int = 0, *, between: bool = False) -> Iterator[threading.Event]:
    """Reading the words waits in the session of piece ``at``, or ``between`` it and the next, until the block ends; the
    event says that it does.
    """
    reader = cache(backend)._reader
    name = "give" if between else "words_after"
    reached, go_on, real, pieces = threading.Event(), threading.Event(), getattr(reader, name), []

    def waits(*arguments: Any) -> Any:
        if len(pieces) == at:
            reached.set()
            assert go_on.wait(PATIENT)
        pieces.append(1)
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, name, waits)
        try:
            yield reached
        finally:
            go_on.set()
            settle(backend)


@pytest.mark.parametrize("where", ["file", ":memory:"])
def test_the_second_query_begins_it_and_none_waits(
    opened: Callable[..., closing[SqliteBackend]], path: Path, where: str
) -> None:
    with opened(path if where == "file" else where) as backend:
        add(backend, 20)
        assert not from_memory(backend)
        assert backend.info().details["keyword_index"] == "FTS5"
        assert not backend._background.is_busy(JOB)
        with held_back(backend, between=True) as reached:
            assert not from_memory(backend)
            assert reached.wait(PATIENT)
            assert not from_memory(backend)
        assert from_memory(backend)
        assert backend.info().details["keyword_index"] == "memory"


@pytest.mark.parametrize(("least", "made"), [(20, True), (21, False), (None, False)])
def test_it_is_made_from_so_many_records_on(
    opened: Callable[..., closing[SqliteBackend]], least: int | None, made: bool
) -> None:
    with opened(keyword_index_from=least) as backend:
        add(backend, 20)
        for _ in range(5):
            ask(backend)
            settle(backend)
        assert from_memory(backend) == made


@pytest.mark.parametrize(("weight", "made"), [(0.0, True), (1e-15, True), (1e-16, False)])
def test_weights_too_small_for_its_numbers_are_left_to_fts5(
    opened: Callable[..., closing[SqliteBackend]], weight: float, made: bool
) -> None:
    with opened(tag_weight=weight) as backend:
        add(backend, 20)
        ask(backend)
        ask(backend)
        settle(backend)
        assert from_memory(backend) == made


def test_what_is_written_while_it_is_read_is_found(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_reading, "TOKENS_AT_A_TIME", 1)  # a word at a time
    monkeypatch.setattr(postings_reading, "RECORDS_AT_A_TIME", 7)
    with opened() as backend:
        add(backend, 20)
        with held_back(backend, at=2) as reached:
            ask(backend)
            ask(backend)
            assert reached.wait(PATIENT)
            add(backend, 3, start=20)
            with backend.write() as writer:
                ((key, _),) = writer.find("m3", (), None)
                writer.delete([key])
                ((key, _),) = writer.find("m7", (), None)
                writer.replace(key, make_record("m7", "teapot aardvark"), None)
        for text in ("kettle pager", "teapot", "broker", "aardvark", "pager teapot"):
            assert from_memory(backend, text)


def test_few_changes_are_taken_in_by_the_next_query_and_many_in_the_background(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MAX_AT_ONCE", 5)
    with opened() as backend:
        add(backend, 200)
        begin(backend)
        index = cache(backend)._state.index
        add(backend, 5, start=200)
        assert from_memory(backend)
        add(backend, 6, start=205)
        assert not from_memory(backend)
        settle(backend)
        assert from_memory(backend)
        assert cache(backend)._state.index is index
        add(backend, 100, start=211)
        assert not from_memory(backend)
        settle(backend)
        assert from_memory(backend)


@pytest.mark.parametrize("words", [1, 60])
def test_records_of_another_length_make_its_bounds_wider(
    opened: Callable[..., closing[SqliteBackend]], words: int
) -> None:
    with opened() as backend:
        with backend.write() as writer:
            for number in range(20):
                writer.insert(make_record(f"old{number}", "kettle " * (4 + number % 4) + "pager"), None)
        begin(backend)
        assert cache(backend)._state.drift == 1.0
        with backend.write() as writer:
            for number in range(60):
                writer.insert(make_record(f"new{number}", "teapot " * words + "pager" * (number % 2)), None)
        for text in ("kettle pager", "teapot", "pager teapot kettle"):
            assert from_memory(backend, text)
        mean = (20 * (5.5 + 1) + 60 * (words + 0.5)) / 80
        assert cache(backend)._state.drift == pytest.approx(max(mean / 6.5, 6.5 / mean))


def test_after_many_changes_it_is_made_anew_while_it_goes_on_answering(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MAX_CHANGES", 20)
    with opened() as backend:
        add(backend, 100)
        begin(backend)
        index = cache(backend)._state.index
        add(backend, 10, start=100)
        assert from_memory(backend)
        assert not backend._background.is_busy(JOB)
        with held_back(backend) as reached:
            add(backend, 1, start=110)
            assert from_memory(backend)
            assert reached.wait(PATIENT)
            add(backend, 1, start=111)
            assert from_memory(backend)
            assert cache(backend)._state.index is index
        assert from_memory(backend)
        assert cache(backend)._state.index is not index
        assert not cache(backend)._state.changes.records.keys() - {112}


def test_of_more_changes_than_are_kept_fts5_answers_meanwhile(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MAX_CHANGES", 20)
    with opened() as backend:
        add(backend, 100)
        begin(backend)
        with held_back(backend) as reached:
            add(backend, 21, start=100)
            assert not from_memory(backend)
            assert reached.wait(PATIENT)
            assert not from_memory(backend)
        assert from_memory(backend)


def test_a_session_that_wrote_and_one_that_is_behind_ask_fts5(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        asked = backend.analyzer.query("kettle pager")
        with backend.read() as behind:
            add(backend, 1, start=20)
            assert from_memory(backend)
            assert len(behind.keyword(asked, EVERYTHING, 100)) == 20
            arguments = (behind._connection, behind._head, asked.terms, keyword.match_expression)
            assert cache(backend).holders(*arguments) is None
        state = cache(backend)._state
        with backend.write() as writer:
            writer.insert(make_record("own", "kettle"), None)
            assert len(writer.keyword(asked, EVERYTHING, 100)) == 22
            arguments = (writer._connection, writer._head, asked.terms, keyword.match_expression)
            assert cache(backend).holders(*arguments) is None
            assert cache(backend)._state is state


def test_a_state_that_was_left_behind_meanwhile_is_not_asked(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        before = cache(backend)._state
        add(backend, 1, start=20)
        assert from_memory(backend)
        with backend.read() as session, pytest.MonkeyPatch.context() as patch:
            patch.setattr(cache(backend), "_at", lambda *_: before)
            for text in ("teapot", '"kettle teapot"'):  # not asked for before
                terms = backend.analyzer.query(text).terms
                arguments = (session._connection, session._head, terms, keyword.match_expression)
                assert cache(backend).holders(*arguments) is None


def test_who_is_gone_scores_nothing(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        with backend.write() as writer:
            writer.delete([3])
            writer.replace(4, make_record("m3", "teapot"), None)
        asked = backend.analyzer.query("kettle")
        with backend.read() as session:
            assert session.keyword(asked, EVERYTHING, 1)
            assert session.keyword_scores(asked, [3, 4, 99]) == {}
            assert session.keyword_scores(asked, [2, 3]).keys() == {2}


def test_only_what_is_visible_counts(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 40, owner=Owner.user("u1"))
        add(backend, 3, start=40, owner=Owner.user("u2"))
        with backend.write() as writer:
            writer.insert(make_record("own", "aardvark", owner=Owner.user("u1")), None)
        begin(backend)
        add(backend, 2, start=43, owner=Owner.user("u2"))
        add(backend, 20, start=45, owner=Owner.user("u1"))
        assert from_memory(backend)
        own = Visibility(Access(user="u2"), NEW_YEAR)
        assert len(ask(backend, "kettle", own)) == 5
        assert ask(backend, "aardvark", own) == []
        assert ask(backend, "kettle", Visibility(Access(user="u3"), NEW_YEAR)) == []
        with backend.read() as session:
            asked = backend.analyzer.query("kettle aardvark")
            session.keyword(asked, own, 10)
            assert session.coverage(asked, own) == 1 / 2


_THEIRS = """
from contextlib import closing
from twofold.backends.sqlite import SqliteBackend
from twofold.testing.records import make_record

with closing(SqliteBackend.open(arguments[0])) as backend, backend.write() as writer:
    writer.insert(make_record("theirs", "kettle aardvark"), None)
    ((key, _),) = writer.find("m0", (), None)
    writer.delete([key])
"""


def test_another_process_writes(
    opened: Callable[..., closing[SqliteBackend]], path: Path, run: Callable[..., str]
) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        run(_THEIRS, path)
        assert len(ask(backend, "aardvark")) == 1
        assert len(ask(backend, "kettle")) == 20
        assert from_memory(backend)


def test_another_analyser_ends_the_reading(
    opened: Callable[..., closing[SqliteBackend]], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_reading, "TOKENS_AT_A_TIME", 1)
    with opened() as backend:
        add(backend, 20)
        with held_back(backend, at=1) as reached:
            ask(backend)
            ask(backend)
            assert reached.wait(PATIENT)
            SqliteBackend.open(path, settings=StoreSettings(language="german")).close()
        assert cache(backend)._state is None


def test_after_a_purge_it_is_made_anew(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        index = cache(backend)._state.index
        with backend.write() as writer:
            ((key, _),) = writer.find("m0", (), None)
            writer.delete([key])
        backend.scrub()
        assert len(ask(backend, "kettle")) == 19
        settle(backend)
        assert from_memory(backend)
        assert cache(backend)._state.index is not index


def test_a_purge_while_it_is_read_ends_the_reading(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_reading, "TOKENS_AT_A_TIME", 1)
    with opened() as backend:
        add(backend, 20)
        with held_back(backend, between=True) as reached:
            ask(backend)
            ask(backend)
            assert reached.wait(PATIENT)
            with backend.write() as writer:
                writer.delete([1])
            backend.scrub()
        assert cache(backend)._state is None
        assert len(ask(backend, "kettle")) == 19


def test_an_index_made_anew_is_read_anew(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        backend.reindex()
        assert cache(backend)._state is None
        begin(backend)


def test_all_records_may_go(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        with backend.write() as writer:
            writer.delete(list(range(1, 21)))
        assert ask(backend) == []
        add(backend, 20)
        ask(backend)
        begin(backend)


def test_one_that_contradicts_the_file_is_not_believed(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        with backend._file.pool.writer() as connection:  # gone, but not from the keyword index
            connection.execute("UPDATE counters SET generation = (SELECT generation + 1 FROM state)")
            connection.execute("DELETE FROM records WHERE key = 3")
            connection.execute("INSERT INTO tombstones SELECT generation, 3 FROM state")
        assert not from_memory(backend)
        settle(backend)
        assert from_memory(backend)
        assert len(ask(backend, "kettle")) == 19


def test_a_keyword_index_that_lacks_records_shows_nobody_those_of_others(
    opened: Callable[..., closing[SqliteBackend]],
) -> None:
    with opened() as backend:
        add(backend, 10, owner=Owner.user("u1"))
        add(backend, 10, start=10, owner=Owner.user("u2"))
        with backend._file.pool.writer() as connection:
            for key, tokens in list(backend._parts.keyword.stored_tokens(connection))[10:]:
                backend._parts.keyword.remove(connection, key, tokens)
        begin(backend)
        assert len(ask(backend, "kettle", Visibility(Access(user="u1"), NEW_YEAR))) == 10
        assert ask(backend, "kettle", Visibility(Access(user="u2"), NEW_YEAR)) == []


def test_a_record_that_the_keyword_index_lacks_is_left_to_fts5(opened: Callable[..., closing[SqliteBackend]]) -> None:
    with opened() as backend:
        add(backend, 20)
        begin(backend)
        with backend._file.pool.writer() as connection:
            (lost,) = [each for each in backend._parts.keyword.stored_tokens(connection) if each[0] == 3]
            backend._parts.keyword.remove(connection, *lost)
            connection.execute("UPDATE counters SET generation = (SELECT generation + 1 FROM state)")
            connection.execute("UPDATE records SET generation = (SELECT generation FROM state) WHERE key = 3")
        assert not from_memory(backend)
        assert len(ask(backend, "kettle")) == 19


def test_close_does_not_wait_for_all_words(
    opened: Callable[..., closing[SqliteBackend]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_reading, "TOKENS_AT_A_TIME", 1)
    with opened() as backend:
        add(backend, 20)
        with held_back(backend, at=1) as reached:
            ask(backend)
            ask(backend)
            assert reached.wait(PATIENT)
            closing_ = threading.Thread(target=backend.close)
            closing_.start()
        closing_.join(PATIENT)
        assert not closing_.is_alive()
        assert cache(backend)._state is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_while_it_is_read_leaves_the_file_to_both(
    opened: Callable[..., closing[SqliteBackend]], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_reading, "TOKENS_AT_A_TIME", 1)
    with opened() as backend:
        add(backend, 20)
        reader, begun = cache(backend)._reader, threading.Event()
        real = reader.give

        def give(*arguments: Any) -> None:
            begun.set()
            real(*arguments)

        monkeypatch.setattr(reader, "give", give)
        ask(backend)
        ask(backend)
        assert begun.wait(PATIENT)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                backend.close()
                with opened() as own:
                    begin(own)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        settle(backend)
        assert from_memory(backend)
