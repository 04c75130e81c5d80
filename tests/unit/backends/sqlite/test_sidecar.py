"""An index saved beside the file is a cache: used if the file vouches for it, and else as if it were not there."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite import sidecar as sidecar_module
from twofold.backends.sqlite import vector_indexes as vectors_module
from twofold.backends.sqlite import writer as writer_module
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.sidecar import Sidecar, sidecar_files
from twofold.config import StoreSettings
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access
from twofold.vectors import approximate

pytest.importorskip("faiss", reason="the extra faiss is not installed")

EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
DIMENSION = 8
KINDS = ["faiss-flat", "faiss-hnsw", "faiss-ivf"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(approximate, "LEAST_ROWS", 200)
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def blobs_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors were added to an index from the BLOBs, each time some were."""
    counts: list[int] = []
    real = vectors_module._with_vectors

    def counted(index: Any, *arguments: Any) -> Any:
        made = real(index, *arguments)
        counts.append(len(made) - len(index))
        return made

    monkeypatch.setattr(vectors_module, "_with_vectors", counted)
    return counts


@pytest.fixture
def opened(path: Path, kind: str) -> Callable[..., closing[SqliteBackend]]:
    return lambda **more: closing(SqliteBackend.open(path, settings=StoreSettings(index=kind, **more)))  # type: ignore[arg-type]


def vector_of(number: int) -> list[float]:
    return np.random.default_rng(number).standard_normal(DIMENSION).astype(np.float32).tolist()


def add(backend: SqliteBackend, *numbers: int) -> None:
    with backend.write() as writer:
        writer.adopt("fake", DIMENSION)
        for number in numbers:
            record = make_record(f"m{number}", f"t{number}")
            writer.insert(record, make_vectors(record, vector_of(number)))


def best(backend: SqliteBackend, number: int) -> str:
    with backend.read() as reader:
        found = reader.nearest(np.array(vector_of(number), dtype=np.float32), EVERYTHING, 1)
        assert found.fell_back is None
        return reader.records([found.candidates[0].key])[found.candidates[0].key].id


def filled(opened: Callable[..., closing[SqliteBackend]], count: int = 400) -> None:
    with opened() as backend:
        add(backend, *range(count))
        assert best(backend, 2) == "m2"


def test_it_is_saved_at_close_and_used_at_open(
    opened: Callable[..., closing[SqliteBackend]], path: Path, kind: str, blobs_read: list[int]
) -> None:
    filled(opened)
    assert sidecar_files(str(path)) == [path.with_name(f"store.db.{kind}")]
    assert path.with_name(f"store.db.{kind}").stat().st_mode == path.stat().st_mode
    blobs_read.clear()
    with opened() as backend:
        assert [best(backend, number) for number in (0, 3, 399)] == ["m0", "m3", "m399"]
        assert blobs_read == [0], "nothing was read anew"


def test_what_took_long_to_build_is_saved_at_once(
    opened: Callable[..., closing[SqliteBackend]], path: Path, kind: str
) -> None:
    with opened() as backend:
        add(backend, *range(300))
        assert best(backend, 3) == "m3"
        assert bool(sidecar_files(str(path))) == (kind != "faiss-flat")


def test_one_that_is_behind_is_brought_up(
    opened: Callable[..., closing[SqliteBackend]], path: Path, blobs_read: list[int]
) -> None:
    filled(opened)
    with closing(SqliteBackend.open(path)) as other:
        add(other, 400, 401)
        with other.write() as writer:
            ((key, _),) = writer.find("m3", (), None)
            writer.delete([key])
    blobs_read.clear()
    with opened() as backend:
        assert best(backend, 400) == "m400"
        assert best(backend, 3) != "m3"
        assert blobs_read == [2 - 1]


def test_past_the_tombstones_it_is_made_anew(
    opened: Callable[..., closing[SqliteBackend]],
    path: Path,
    blobs_read: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled(opened)
    monkeypatch.setattr(writer_module, "KEPT_TOMBSTONES", 1)
    monkeypatch.setattr(writer_module, "_PRUNE_EVERY", 1)
    with closing(SqliteBackend.open(path)) as other:
        for number in range(4):
            with other.write() as writer:
                writer.delete([number + 1])
    blobs_read.clear()
    with opened() as backend:
        assert best(backend, 5) == "m5"
        assert blobs_read == [400 - 4]


@pytest.mark.parametrize("damage", ["torn", "changed", "empty", "pickle", "gone", "folder"])
def test_a_damaged_or_foreign_one_is_not_read(
    opened: Callable[..., closing[SqliteBackend]], path: Path, kind: str, damage: str, blobs_read: list[int]
) -> None:
    # langchain-ai/langchain-community#92: a pickle beside the data was loaded, and ran code.
    filled(opened)
    sidecar, marker = path.with_name(f"store.db.{kind}"), path.with_name("marker")
    data = sidecar.read_bytes()
    if damage == "torn":
        sidecar.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        sidecar.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif damage == "empty":
        sidecar.write_bytes(b"")
    elif damage == "pickle":
        sidecar.write_bytes(pickle.dumps(_Opens(str(marker))))
    else:
        sidecar.unlink()
        if damage == "folder":
            sidecar.mkdir()
    blobs_read.clear()
    with opened() as backend:
        assert best(backend, 3) == "m3"
        assert blobs_read == [400]
        assert backend.check().ok
    assert not marker.exists()


class _Opens:
    """A pickle of it makes a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.path, "w"))


def test_one_of_another_past_of_the_file_is_not_used(
    opened: Callable[..., closing[SqliteBackend]], path: Path, blobs_read: list[int]
) -> None:
    with opened() as backend:
        add(backend, *range(300))
    shutil.copy(path, path.with_name("backup.db"))
    with opened() as backend:
        add(backend, *range(300, 400))
        assert best(backend, 399) == "m399"
    shutil.copy(path.with_name("backup.db"), path)
    with opened() as backend:
        add(backend, *range(1000, 1100))  # as many generations as the saved index has, and others
    blobs_read.clear()
    with opened() as backend:
        assert best(backend, 1000) == "m1000"
        assert best(backend, 399) != "m399"
        assert blobs_read == [400]


@pytest.mark.parametrize("fails", ["write", "fsync", "meta", "replace"])
def test_a_save_that_fails_does_no_harm(
    opened: Callable[..., closing[SqliteBackend]], path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NorthlandPositronics/Cogtrix#187: a crash between two files left them out of step.
    filled(opened, 3)
    with opened() as backend:
        add(backend, 3)
        assert best(backend, 3) == "m3"
        with monkeypatch.context() as patch:

            def fail(*arguments: Any) -> None:
                raise OSError("the disk is gone")

            target = {
                "write": (sidecar_module, "_write"),
                "fsync": (os, "fsync"),
                "meta": (sidecar_module, "write_meta"),
                "replace": (Path, "replace"),
            }[fails]
            patch.setattr(*target, fail)
            backend.close()
    assert not [file for file in sidecar_files(str(path)) if file.suffix == ".tmp"]
    with opened() as backend:
        assert [best(backend, number) for number in range(4)] == ["m0", "m1", "m2", "m3"]
        assert backend.check().ok


def test_what_a_killed_process_left_is_cleared_away(
    opened: Callable[..., closing[SqliteBackend]], path: Path, kind: str
) -> None:
    leftover = path.with_name(f"store.db.{kind}.0123.tmp")
    leftover.write_bytes(b"half")
    assert sidecar_files(str(path)) == [leftover]
    filled(opened)
    assert sidecar_files(str(path)) == [path.with_name(f"store.db.{kind}")]


def test_nearly_the_same_is_not_saved_again(
    opened: Callable[..., closing[SqliteBackend]], path: Path, kind: str
) -> None:
    filled(opened)
    sidecar = path.with_name(f"store.db.{kind}")
    before = sidecar.stat().st_mtime_ns, sidecar.stat().st_ino
    with opened() as backend:
        add(backend, 400)
        assert best(backend, 400) == "m400"
    assert (sidecar.stat().st_mtime_ns, sidecar.stat().st_ino) == before
    with opened() as backend:
        add(backend, *range(401, 420))
        assert best(backend, 419) == "m419"
    assert sidecar.stat().st_ino != before[1]


def test_reading_only_saves_nothing_but_uses_what_is_there(
    opened: Callable[..., closing[SqliteBackend]], path: Path, blobs_read: list[int]
) -> None:
    with opened() as backend:
        add(backend, *range(300))
    with opened(read_only=True) as backend:
        assert best(backend, 3) == "m3"
    assert sidecar_files(str(path)) == []
    with opened() as backend:
        assert best(backend, 3) == "m3"
    blobs_read.clear()
    with opened(read_only=True) as backend:
        assert best(backend, 3) == "m3"
    assert blobs_read == [0]


def test_a_busy_file_does_not_delay_the_close(opened: Callable[..., closing[SqliteBackend]], path: Path) -> None:
    with opened() as backend, closing(SqliteBackend.open(path)) as other:
        add(backend, *range(300))
        assert best(backend, 3) == "m3"
        for leftover in sidecar_files(str(path)):
            leftover.unlink()
        with other.write():
            backend.close()
    assert sidecar_files(str(path)) == []


def test_nothing_is_saved_of_a_store_in_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(SqliteBackend.open(":memory:", settings=StoreSettings(index=kind))) as backend:  # type: ignore[arg-type]
        add(backend, *range(300))
        assert best(backend, 3) == "m3"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stamp", ["", "{}", "[1]", json.dumps(["x", "y", "z"]), json.dumps([1, 2, 3, 4])])
def test_a_stamp_that_cannot_be_read_is_none(path: Path, stamp: str) -> None:
    with closing(SqliteBackend.open(path)) as backend, backend._file.pool.writer() as connection:
        connection.execute("INSERT INTO meta VALUES ('sidecar:faiss-flat', ?)", (stamp,))
        head = sidecar_module.Head(5, "fake", 2, "", 0)
        assert (
            Sidecar(str(path), "faiss-flat").load(connection, head, vectors_module.empty_index("exact", 2).restored)
            is None
        )


@pytest.fixture(autouse=True)
def _no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    real = np.load

    def load(*arguments: Any, **options: Any) -> Any:
        assert not options.get("allow_pickle")
        return real(*arguments, **options)

    monkeypatch.setattr(np, "load", load)
