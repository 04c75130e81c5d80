"""The words of a file saved beside it: a cache, used if the file vouches for it, and else as if it were not there."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite import SqliteBackend, postings, postings_reading
from twofold.backends.sqlite import sidecar as sidecar_module
from twofold.backends.sqlite import writer as writer_module
from twofold.backends.sqlite.postings import JOB
from twofold.backends.sqlite.sidecar import sidecar_files
from twofold.config import StoreSettings
from twofold.testing.patience import PATIENT
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access

EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
WORDS = ("kettle", "teapot", "broker", "pager")


@pytest.fixture(autouse=True)
def save_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "SAVED_FROM", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def sidecar(path: Path) -> Path:
    return path.with_name("store.db.keyword")


@pytest.fixture
def opened(path: Path) -> Callable[..., closing[SqliteBackend]]:
    def opened(**settings: Any) -> closing[SqliteBackend]:
        settings = {"keyword_index_from": 1, **settings}
        return closing(SqliteBackend.open(path, settings=StoreSettings(**settings)))

    return opened


@pytest.fixture
def words_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each time that words were read out of the file."""
    times: list[int] = []
    real = postings_reading.PostingsReader.give

    def give(self: Any, *arguments: Any) -> None:
        times.append(1)
        real(self, *arguments)

    monkeypatch.setattr(postings_reading.PostingsReader, "give", give)
    return times


def add(backend: SqliteBackend, *numbers: int, text: str = "") -> None:
    with backend.write() as writer:
        for number in numbers:
            words = " ".join(WORDS[: 1 + number % 4] * (1 + number % 3))
            writer.insert(make_record(f"m{number}", f"{words} {text}"), None)


def delete(backend: SqliteBackend, *numbers: int) -> None:
    with backend.write() as writer:
        for number in numbers:
            ((key, _),) = writer.find(f"m{number}", (), None)
            writer.delete([key])


def ask(backend: SqliteBackend, text: str = "kettle pager") -> list[Candidate]:
    """The answer, which is FTS5's."""
    asked = backend.analyzer.query(text)
    with backend.read() as session:
        found = session.keyword(asked, EVERYTHING, 1000)
        assert found == backend._parts.keyword.search(session._connection, asked, EVERYTHING, 1000)
    return found


def in_memory(backend: SqliteBackend) -> bool:
    """Ask until there is an index, if there will be one; whether there is."""
    for _ in range(3):
        for word in (*WORDS, " ".join(WORDS)):
            ask(backend, word)
        assert backend._background.wait(JOB, PATIENT)
    return backend._parts.postings._state is not None


def filled(opened: Callable[..., closing[SqliteBackend]], count: int = 100) -> None:
    with opened() as backend:
        add(backend, *range(count))
        assert in_memory(backend)


def test_it_is_saved_when_it_is_made_and_used_by_the_first_query_after_opening(
    opened: Callable[..., closing[SqliteBackend]], path: Path, sidecar: Path, words_read: list[int]
) -> None:
    filled(opened)
    assert sidecar_files(str(path)) == [sidecar]
    assert sidecar.stat().st_mode == path.stat().st_mode
    words_read.clear()
    with opened() as backend:
        ask(backend)
        assert backend._background.wait(JOB, PATIENT)
        assert backend._parts.postings._state is not None
        assert in_memory(backend)
    assert words_read == []


@pytest.mark.parametrize(("least", "saved"), [(1, True), (10**9, False)])
def test_what_is_read_quickly_is_not_saved(
    opened: Callable[..., closing[SqliteBackend]],
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    least: int,
    saved: bool,
) -> None:
    monkeypatch.setattr(postings, "SAVED_FROM", least)
    filled(opened)
    assert bool(sidecar_files(str(path))) == saved


def test_one_that_is_behind_is_brought_up(
    opened: Callable[..., closing[SqliteBackend]], path: Path, words_read: list[int]
) -> None:
    filled(opened)
    with closing(SqliteBackend.open(path)) as other:
        add(other, 100, 101, text="aardvark")
        delete(other, 3)
    words_read.clear()
    with opened() as backend:
        assert in_memory(backend)
        assert len(ask(backend, "aardvark")) == 2
        assert len(ask(backend, "kettle")) == 101
    assert words_read == []


def test_more_than_a_query_takes_in_is_taken_in_in_the_background(
    opened: Callable[..., closing[SqliteBackend]], path: Path, words_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(opened)
    with closing(SqliteBackend.open(path)) as other:
        add(other, 100, 101, text="aardvark")
    words_read.clear()
    monkeypatch.setattr(postings, "MAX_AT_ONCE", 1)
    with opened() as backend:
        assert len(ask(backend, "aardvark")) == 2
        assert backend._background.wait(JOB, PATIENT)
        assert backend._parts.postings.is_ready
        assert len(ask(backend, "aardvark")) == 2
    assert words_read == []


def test_one_that_is_far_behind_serves_until_there_is_another(
    opened: Callable[..., closing[SqliteBackend]], path: Path, sidecar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MAX_CHANGES", 100)
    filled(opened)
    before = sidecar.stat().st_ino
    with closing(SqliteBackend.open(path)) as other:
        add(other, *range(100, 160))
    with opened() as backend:
        cache = backend._parts.postings
        real, reached, go_on = cache._reader.words_after, threading.Event(), threading.Event()

        def words_after(*arguments: Any) -> Any:
            reached.set()
            assert go_on.wait(PATIENT)
            return real(*arguments)

        monkeypatch.setattr(cache._reader, "words_after", words_after)
        ask(backend)
        assert reached.wait(PATIENT)
        assert cache._state is not None
        assert len(ask(backend, "kettle")) == 160
        go_on.set()
        assert backend._background.wait(JOB, PATIENT)
        assert not cache._state.changes.records
        assert in_memory(backend)
    assert sidecar.stat().st_ino != before


@pytest.mark.parametrize("gap", ["changes", "tombstones"])
def test_one_that_cannot_be_brought_up_is_made_anew(
    opened: Callable[..., closing[SqliteBackend]],
    path: Path,
    words_read: list[int],
    monkeypatch: pytest.MonkeyPatch,
    gap: str,
) -> None:
    filled(opened)
    if gap == "changes":
        monkeypatch.setattr(postings, "MAX_CHANGES", 2)
    else:
        monkeypatch.setattr(writer_module, "KEPT_TOMBSTONES", 1)
        monkeypatch.setattr(writer_module, "_PRUNE_EVERY", 1)
    with closing(SqliteBackend.open(path)) as other:
        for number in range(4):
            delete(other, number)
    words_read.clear()
    with opened() as backend:
        assert in_memory(backend)
        assert len(ask(backend, "kettle")) == 96
    assert words_read


@pytest.mark.parametrize("damage", ["torn", "changed", "empty", "gone", "folder"])
def test_a_damaged_one_is_not_read(
    opened: Callable[..., closing[SqliteBackend]], sidecar: Path, damage: str, words_read: list[int]
) -> None:
    filled(opened)
    data = sidecar.read_bytes()
    if damage == "torn":
        sidecar.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        sidecar.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif damage == "empty":
        sidecar.write_bytes(b"")
    else:
        sidecar.unlink()
        if damage == "folder":
            sidecar.mkdir()
    words_read.clear()
    with opened() as backend:
        assert in_memory(backend)
        assert backend.check().ok
    assert words_read


def test_one_of_another_past_of_the_file_is_not_used(
    opened: Callable[..., closing[SqliteBackend]],
    path: Path,
    words_read: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled(opened)
    shutil.copy(path, path.with_name("backup.db"))
    with opened() as backend, monkeypatch.context() as patch:
        patch.setattr(postings, "MAX_CHANGES", 20)
        delete(backend, *range(50))
        add(backend, *range(200, 260), text="aardvark")
        words_read.clear()
        assert in_memory(backend)
        assert words_read  # so many changes that it is made anew, and saved
    shutil.copy(path.with_name("backup.db"), path)
    with opened() as backend:
        for number in range(50):
            delete(backend, number)
        add(backend, *range(300, 310))
    words_read.clear()
    with opened() as backend:
        assert in_memory(backend)
        assert ask(backend, "aardvark") == []
    assert words_read


@pytest.mark.parametrize(
    "changed",
    [{"tag_weight": 2.0}, {"field_weights": {"text": 3.0}}, {"language": "german"}],
    ids=lambda changed: next(iter(changed)),
)
def test_one_of_other_weights_or_another_analyser_is_not_used(
    opened: Callable[..., closing[SqliteBackend]], words_read: list[int], changed: dict[str, Any]
) -> None:
    filled(opened)
    words_read.clear()
    with opened(**changed) as backend:
        assert in_memory(backend)
    assert words_read


def test_an_index_made_anew_in_the_file_makes_it_useless(
    opened: Callable[..., closing[SqliteBackend]], words_read: list[int]
) -> None:
    filled(opened)
    with opened() as backend:
        backend.reindex()
    words_read.clear()
    with opened() as backend:
        assert in_memory(backend)
    assert words_read


@pytest.mark.parametrize("fails", ["write", "fsync", "meta", "replace"])
def test_a_save_that_fails_does_no_harm(
    opened: Callable[..., closing[SqliteBackend]], path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("the disk is gone")

    targets: dict[str, Any] = {
        "write": (sidecar_module, "_write"),
        "fsync": (os, "fsync"),
        "meta": (sidecar_module, "write_meta"),
        "replace": (Path, "replace"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*targets[fails], fail)
        filled(opened)
    assert sidecar_files(str(path)) == []
    with opened() as backend:
        assert in_memory(backend)
        assert backend.check().ok
    assert len(sidecar_files(str(path))) == 1


_KILLED = """
import signal
from twofold.backends.sqlite import SqliteBackend, postings, sidecar
from twofold.backends.sqlite.postings import JOB

def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

postings.SAVED_FROM = 1
setattr(*{"write": (sidecar.hashlib, "file_digest"), "place": (sidecar.Path, "replace")}[arguments[1]], killed)
backend = SqliteBackend.open(arguments[0], settings=StoreSettings(keyword_index_from=1))
backend._background.start(JOB, backend._parts.postings._make)
backend._background.wait(JOB)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("at", ["write", "place"])
def test_a_process_killed_while_it_saves_does_no_harm(
    opened: Callable[..., closing[SqliteBackend]],
    path: Path,
    sidecar: Path,
    start: Callable[..., Any],
    words_read: list[int],
    at: str,
) -> None:
    with opened() as backend:
        add(backend, *range(100))
    process = start(_KILLED, path, at)
    process.communicate(timeout=PATIENT)
    assert process.returncode == -9
    (leftover,) = sidecar_files(str(path))
    assert leftover.name.startswith("store.db.keyword.") and leftover.suffix == ".tmp"  # noqa: PT018
    with opened() as backend:
        assert in_memory(backend)
        assert backend.check().ok
    assert words_read
    assert sidecar_files(str(path)) == [sidecar]


def test_a_purge_leaves_no_word_of_it(opened: Callable[..., closing[SqliteBackend]], path: Path, sidecar: Path) -> None:
    with opened() as backend:
        add(backend, *range(100))
        add(backend, 100, text="zyzzyva")
        assert in_memory(backend)
        assert b"zyzzyva" in sidecar.read_bytes()
        delete(backend, 100)
        backend.scrub()
        assert sidecar_files(str(path)) == []
        assert in_memory(backend)
    assert b"zyzzyva" not in sidecar.read_bytes()


@pytest.mark.parametrize("by", ["purge", "reindex"])
def test_what_is_purged_or_made_anew_while_it_is_saved_is_not_put_in_its_place(
    opened: Callable[..., closing[SqliteBackend]], path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    real, reached, go_on = sidecar_module._write, threading.Event(), threading.Event()

    def write(*arguments: Any) -> None:
        real(*arguments)
        reached.set()
        assert go_on.wait(PATIENT)

    monkeypatch.setattr(sidecar_module, "_write", write)
    with opened() as backend:
        add(backend, *range(100))
        ask(backend)
        ask(backend)
        assert reached.wait(PATIENT)
        (temporary,) = sidecar_files(str(path))
        delete(backend, 1)  # the write lock is free
        if by == "purge":
            backend.scrub()
            assert sidecar_files(str(path)) == []
        else:
            backend.reindex()
            assert sidecar_files(str(path)) == [temporary]
        go_on.set()
        assert backend._background.wait(JOB, PATIENT)
        assert sidecar_files(str(path)) == []


def test_reading_only_saves_nothing_but_uses_what_is_there(
    opened: Callable[..., closing[SqliteBackend]], path: Path, words_read: list[int]
) -> None:
    with opened() as backend:
        add(backend, *range(100))
    with opened(read_only=True) as backend:
        assert in_memory(backend)
    assert sidecar_files(str(path)) == []
    filled_again = opened()
    with filled_again as backend:
        assert in_memory(backend)
    words_read.clear()
    with opened(read_only=True) as backend:
        assert in_memory(backend)
    assert words_read == []


def test_nothing_is_saved_of_a_store_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(SqliteBackend.open(":memory:", settings=StoreSettings(keyword_index_from=1))) as backend:
        add(backend, *range(100))
        assert in_memory(backend)
    assert list(tmp_path.iterdir()) == []


def test_only_what_belongs_to_it_is_taken_for_it(path: Path) -> None:
    mine = [path.with_name(f"store.db.{name}") for name in ("faiss-flat", "keyword", "keyword.01.tmp")]
    others = [path.with_name(name) for name in ("store.db.keyword-notes", "store.db.keywords", "other.db.keyword")]
    for file in (*mine, *others):
        file.write_bytes(b"")
    assert sidecar_files(str(path)) == sorted(mine)
