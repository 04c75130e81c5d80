"""An import that is killed keeps what it acknowledged, and importing again completes it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold import Access
from twofold.testing import FakeEmbedder

EVERYTHING = Access.everything()

IMPORT = """
import sys, twofold
with twofold.open(sys.argv[1]) as store:
    store.import_jsonl(
        sys.argv[2],
        access=twofold.Access.everything(),
        batch_size=7,
        progress=lambda step: print(step.done, flush=True),
    )
"""
COPY = """
import sys, time, twofold
with twofold.open(sys.argv[1]) as store:
    store.backup(sys.argv[2], progress=lambda *_: (print("x", flush=True), time.sleep(60)))
"""

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    with twofold.open(":memory:", embedder=FakeEmbedder(8)) as store:
        store.add_many([{"id": f"{number:03}", "text": f"kettle {number}"} for number in range(400)])
        for number in range(0, 399, 3):
            store.link(f"{number:03}", f"{number + 1:03}")
        store.export_jsonl(tmp_path / "export.jsonl", access=EVERYTHING, vectors=True)
    return tmp_path / "export.jsonl"


def test_killed_again_and_again(tmp_path: Path, export: Path) -> None:
    path = tmp_path / "store.db"
    chance = random.Random(7)
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", IMPORT, str(path), str(export)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(chance.randint(1, 50))]
        process.kill()
        rest, _ = process.communicate()
        said += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        done = max(int(line) for line in said)
        with twofold.open(path) as store:
            records = store.list()
            assert len(records) >= done
            assert {record.id for record in records} >= {f"{number:03}" for number in range(done)}
            checked = store.check()
            assert checked.ok, checked.damage
    with twofold.open(path) as store:
        there = store.count()
        report = store.import_jsonl(export, access=EVERYTHING)
        assert (report.added, report.unchanged, report.updated) == (400 - there, there, 0)
        assert (report.links, report.failed) == (133, 0)
        store.export_jsonl(tmp_path / "again.jsonl", access=EVERYTHING, vectors=True)
        assert store.check().ok
    whole, again = (file.read_bytes().splitlines()[1:] for file in (export, tmp_path / "again.jsonl"))
    assert again == whole


def test_a_killed_backup_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    with twofold.open(tmp_path / "store.db") as store:
        store.add("kettle", id="a")
    (tmp_path / "copies").mkdir()
    target = tmp_path / "copies" / "copy.db"
    process = subprocess.Popen(
        [sys.executable, "-c", COPY, str(tmp_path / "store.db"), str(target)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert not target.exists()
    assert [file.suffix for file in target.parent.iterdir()] == [".part"]
    with twofold.open(tmp_path / "store.db") as store:
        store.backup(target)
        assert store.check().ok
