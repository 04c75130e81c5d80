"""A backup is a sound store of one moment, whoever writes meanwhile, and replaces nothing that it should not."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold import A, Access, AccessError, ConfigurationError, SearchParams, StoreClosedError, StoreSettings
from twofold.testing import FakeEmbedder

EVERYTHING = Access.everything()

WRITER = """
import sys, twofold
from twofold.testing import FakeEmbedder
with twofold.open(sys.argv[1], embedder=FakeEmbedder(32)) as store:
    number = 0
    while True:
        store.add_many([{"id": f"{number}-{part}", "text": f"kettle {number} {part}"} for part in range(20)])
        print(number, flush=True)
        number += 1
"""


def test_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with twofold.open(path, embedder=FakeEmbedder(32)) as store:
        store.add_many([f"some text {number}" for number in range(2_000)])
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            try:
                assert writer.stdout is not None
                done = -1
                for round_ in range(5):
                    done = int(writer.stdout.readline())
                    copy = store.backup(tmp_path / f"copy{round_}.db")
                    with twofold.open(copy, embedder=FakeEmbedder(32)) as backup:
                        report = backup.check()
                        assert report.ok, report.damage
                        written = backup.count()
                        assert (written - 2_000) % 20 == 0, "whole transactions only"
                        assert backup.get(f"{done}-19") is not None, "what was acknowledged before is in it"
                        last = f"{done}-19"
                        assert backup.search("kettle", where=A.id == last).ids == (last,)
                assert int(writer.stdout.readline()) > done, "the writer was not stopped by it"
            finally:
                writer.kill()


def test_what_is_in_the_log_and_what_was_touched_is_in_it(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with twofold.open(tmp_path / "store.db") as store:
        store.add("kettle", id="a")
        store.search("kettle", params=SearchParams(touch=True))
        copy = store.backup(tmp_path / "copy.db", progress=lambda done, total: told.append((done, total)))
        assert copy == (tmp_path / "copy.db").resolve()
        store.add("teapot", id="b")
    assert told[-1][0] == told[-1][1] > 0
    with twofold.open(copy) as backup:
        record = backup.get("a")
        assert record is not None
        assert record.access_count == 1
        assert backup.count() == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "store.db"]


def test_a_tenants_copy_goes_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "stores").mkdir()
    (tmp_path / "copies").mkdir()
    with twofold.open(tmp_path / "stores", tenant="Acme & Sons") as store:
        store.add("kettle", id="a")
        store.backup(tmp_path / "copies")
    with twofold.open(tmp_path / "copies", tenant="Acme & Sons") as backup:
        assert backup.get("a") is not None


def test_in_memory_and_read_only(tmp_path: Path) -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder(4)) as store:
        store.add("kettle", id="a")
        store.backup(tmp_path / "store.db")
        with pytest.raises(ConfigurationError, match="is a folder"):
            store.backup(tmp_path)
    with twofold.open(tmp_path / "store.db", settings=StoreSettings(read_only=True)) as store:
        store.backup(tmp_path / "copy.db")
    with twofold.open(tmp_path / "copy.db", embedder=FakeEmbedder(4)) as store:
        assert store.search("kettle").ids == ("a",)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_who_may_read_the_store_may_read_the_copy(tmp_path: Path) -> None:
    with twofold.open(tmp_path / "store.db") as store:
        (tmp_path / "store.db").chmod(0o600)
        copy = store.backup(tmp_path / "copy.db")
        store.export_jsonl(tmp_path / "export.jsonl")
    for file in (copy, tmp_path / "export.jsonl"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_nothing_is_replaced_that_should_not_be(tmp_path: Path) -> None:
    path, other = tmp_path / "store.db", tmp_path / "other.db"
    with twofold.open(path) as store:
        store.add("kettle", id="a")
        with pytest.raises(ConfigurationError, match="is there already"):
            store.backup(path)
        with pytest.raises(ConfigurationError, match="the store itself"):
            store.backup(path, overwrite=True)
        link = tmp_path / "link.db"
        link.symlink_to(path)
        with pytest.raises(ConfigurationError, match="the store itself"):
            store.backup(link, overwrite=True)
        with twofold.open(other) as in_use:
            in_use.add("teapot", id="b")
            with pytest.raises(ConfigurationError, match="in use"):
                store.backup(other, overwrite=True)
            assert in_use.get("b") is not None
        store.backup(other, overwrite=True)
        for wrong in (":memory:", "", "no\0name", tmp_path / "missing" / "copy.db"):
            with pytest.raises(ConfigurationError):
                store.backup(wrong)
        with pytest.raises(ConfigurationError):
            store.backup(5)  # type: ignore[arg-type]
        assert store.check().ok
    with twofold.open(other) as replaced:
        assert [record.id for record in replaced.list()] == ["a"]


def test_a_log_that_belongs_to_another_file_is_not_taken_for_the_copys(tmp_path: Path) -> None:
    (tmp_path / "copy.db-wal").write_bytes(b"left by somebody")
    with twofold.open(tmp_path / "store.db") as store, pytest.raises(ConfigurationError, match="was not closed"):
        store.backup(tmp_path / "copy.db")


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    class Stop(Exception):  # noqa: N818 - no error of anybody's
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    (tmp_path / "copies").mkdir()
    with twofold.open(tmp_path / "store.db") as store:
        with pytest.raises(Stop):
            store.backup(tmp_path / "copies", progress=stop)
        assert list((tmp_path / "copies").iterdir()) == []
        store.backup(tmp_path / "copies")


def test_it_is_of_the_whole_file(tmp_path: Path) -> None:
    with twofold.open(tmp_path / "store.db") as store:
        with pytest.raises(AccessError, match="the whole file"):
            store.view(Access(user="u")).backup(tmp_path / "copy.db")
        store.view(EVERYTHING).backup(tmp_path / "copy.db")
    with pytest.raises(StoreClosedError):
        store.backup(tmp_path / "copy2.db")
    assert not (tmp_path / "copy2.db").exists()


async def _copied(path: Path) -> Path:
    async with twofold.open(path) as store:
        return await store.abackup(path.with_name("copy.db"))


async def test_the_async_twin(tmp_path: Path) -> None:
    assert (await _copied(tmp_path / "store.db")).exists()
