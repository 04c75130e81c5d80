"""A process killed while it puts records together, or one in another's place, has done each of them whole or not."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold import Access, LinkKind
from twofold.testing import FakeEmbedder

WRITER = """
import sys, twofold
from twofold.testing import FakeEmbedder
path, first = sys.argv[1], int(sys.argv[2])
with twofold.open(path, embedder=FakeEmbedder(16)) as store:
    print("go", flush=True)
    for n in range(first, first + 10_000):
        store.add_many([{"id": f"{part}{n}", "text": f"part {part} of number {n}"} for part in "abc"])
        store.consolidate([f"a{n}", f"b{n}"], f"both parts of number {n}", id=f"both{n}")
        store.supersede(f"c{n}", f"both{n}")
        print(n, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_killed_again_and_again(tmp_path: Path) -> None:
    path, chance, first, done = tmp_path / "store.db", random.Random(11), 0, set[int]()
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(first)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        for _ in range(chance.randint(3, 25)):
            done.add(int(process.stdout.readline()))
        process.kill()
        rest, _ = process.communicate()
        done |= {int(line) for line in rest.split()}
        first = max(done) + 10
        with twofold.open(path, embedder=FakeEmbedder(16)) as store:
            report = store.check()
            assert report.ok, report.damage
    with twofold.open(path, embedder=FakeEmbedder(16)) as store:
        everything = store.list(include_archived=True, access=Access.everything())
        by_id = {record.id: record for record in everything}
        begun = {int(id_.strip("abcoth")) for id_ in by_id}
        assert done <= begun
        for n in begun:
            steps = (_is_consolidated(store, by_id, n), _is_superseded(store, by_id, n))
            assert steps in ({(True, True)} if n in done else {(False, False), (True, False), (True, True)}), n


def _is_consolidated(store: twofold.HybridStore, by_id: dict[str, twofold.Record], n: int) -> bool:
    parts = [by_id[f"{part}{n}"] for part in "ab"]
    if f"both{n}" not in by_id:
        assert all(part.archived_at is None for part in parts)
        return False
    links = store.links(f"both{n}", include_archived=True)
    led_to = {link.target for link in links if link.kind == LinkKind.CONSOLIDATED}
    assert led_to == {f"a{n}", f"b{n}"}
    assert all(part.archived_at is not None for part in parts)
    assert len(store.search(f"both parts of number {n}", k=1, mode="vector")) == 1
    return True


def _is_superseded(store: twofold.HybridStore, by_id: dict[str, twofold.Record], n: int) -> bool:
    old = by_id[f"c{n}"]
    if old.superseded_by is None:
        assert old.valid_to is None
        return False
    links = store.links(f"both{n}", include_archived=True)
    assert old.superseded_by == f"both{n}"
    assert old.valid_to is not None
    assert [link.target for link in links if link.kind == LinkKind.SUPERSEDES] == [f"c{n}"]
    return True
