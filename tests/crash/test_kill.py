"""A process killed in the middle of writing loses nothing that it acknowledged; two processes lose nothing either."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import twofold
from twofold.testing import FakeEmbedder

WRITER = """
import sys, twofold
from twofold.testing import FakeEmbedder
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with twofold.open(path, embedder=FakeEmbedder(32)) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        if number % 5 == 4:  # some of them replaced, some added by the batch
            texts = {f"{name}-{number}-{part}": f"{name} batch {number} {part} kettle" for part in range(3)}
            store.add_many([{"id": id_, "text": text} for id_, text in texts.items()])
            store.add(f"{name} changed {number} teapot", id=f"{name}-{number - 1}")
        else:
            store.add(f"{name} single {number} kettle", id=f"{name}-{number}")
        print(number, flush=True)
"""


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def expected(name: str, number: int) -> dict[str, str]:
    """What the writer had stored once it had said ``number``."""
    texts: dict[str, str] = {}
    for each in range(number + 1):
        if each % 5 == 4:
            texts |= {f"{name}-{each}-{part}": f"{name} batch {each} {part} kettle" for part in range(3)}
            texts[f"{name}-{each - 1}"] = f"{name} changed {each} teapot"
        else:
            texts[f"{name}-{each}"] = f"{name} single {each} kettle"
    return texts


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    chance = random.Random(20)
    for round_ in range(20):
        name = f"w{round_}"
        process = start(path, name, 100_000)
        go(process)
        assert process.stdout is not None
        acknowledged = -1
        for _ in range(chance.randint(1, 40)):
            acknowledged = int(process.stdout.readline())
        process.kill()
        said, _ = process.communicate()
        acknowledged = max(
            [acknowledged, *(int(line) for line in said.splitlines(keepends=True) if line.endswith("\n"))]
        )

        embedder = FakeEmbedder(32)
        with twofold.open(path, embedder=embedder) as store:
            for id_, text in expected(name, acknowledged).items():
                record = store.get(id_)
                assert record is not None, f"{id_} was acknowledged"
                if record.text != text:  # only what was being replaced when the process died may be newer
                    assert record.text == f"{name} changed {acknowledged + 1} teapot"
                best = store.search(record.text, mode="vector", where=twofold.A.id == id_)
                assert best[0].score == pytest.approx(1.0, abs=1e-6)
                assert store.search(record.text, mode="keyword", where=twofold.A.id == id_).ids == (id_,)
            assert store.info().pending == 0
            report = store.check()
            assert report.ok, report.damage


TOUCHER = """
import sys, twofold
settings = twofold.StoreSettings(touch_flush_seconds=float(sys.argv[2]))
store = twofold.open(sys.argv[1], settings=settings)
for number in range(100_000):
    store.search("kettle", params=twofold.SearchParams(touch=True))
    print(number + 1, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
@pytest.mark.parametrize("flushed_every", [0.05, 80_000.0])
def test_a_killed_reader_loses_at_most_the_touches_that_were_not_flushed(tmp_path: Path, flushed_every: float) -> None:
    path = tmp_path / "store.db"
    with twofold.open(path) as store:
        store.add("kettle", id="a")
    process = subprocess.Popen(
        [sys.executable, "-c", TOUCHER, str(path), str(flushed_every)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    started = time.monotonic()
    done = 0
    with twofold.open(path) as store:

        def flushed() -> bool:
            record = store.get("a")
            return record is not None and record.access_count > 0

        while done < 200 or (time.monotonic() < started + 20 * 0.05 if flushed_every > 1 else not flushed()):
            done = int(process.stdout.readline())
    process.kill()
    said, _ = process.communicate()
    done = max([done, *(int(line) for line in said.splitlines(keepends=True) if line.endswith("\n"))])
    with twofold.open(path) as store:
        record = store.get("a")
        assert record is not None
        if flushed_every < 1:
            assert 0 < record.access_count <= done + 1, "one may have been counted and not said"
        else:
            assert record.access_count == 0
        assert store.check().ok


def test_two_processes_adding_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with twofold.open(path, embedder=FakeEmbedder(32)) as store:
        processes = [start(path, name, 1_000) for name in ("one", "two")]
        for process in processes:
            go(process)
        for process in processes:
            said, errors = process.communicate(timeout=300)
            assert (process.returncode, errors) == (0, "")
            assert said.splitlines()[-1] == "999"
        texts = expected("one", 999) | expected("two", 999)
        assert {record.id: record.text for record in store.list()} == texts
        assert store.search("single 17", mode="keyword", k=2).ids in (("one-17", "two-17"), ("two-17", "one-17"))
        assert store.search("two single 17 kettle", mode="vector", k=1).ids == ("two-17",)
        report = store.check()
        assert report.ok, report.damage


def test_each_process_sees_the_others_writes_at_its_next_query(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with twofold.open(path, embedder=FakeEmbedder(32)) as store:
        other = start(path, "other", 1)
        assert store.search("other single 0 kettle").ids == ()
        go(other)
        other.communicate(timeout=60)
        assert other.returncode == 0
        for mode in ("hybrid", "keyword", "vector"):
            assert store.search("other single 0 kettle", mode=mode).ids == ("other-0",)
        store.add("mine", id="mine")
        seen = subprocess.run(
            [sys.executable, "-c", "import sys, twofold; print(twofold.open(sys.argv[1]).get('mine').text)", str(path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert seen.stdout == "mine\n"
