"""A process killed while it re-embeds loses nothing, changes nothing, and the next one goes on where it ended."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold import EmbeddingSettings, StoreSettings
from twofold.testing import FakeEmbedder

OLD, NEW = FakeEmbedder(16, name="old"), FakeEmbedder(24, name="new")
COUNT = 400

MOVER = """
import sys, twofold
from twofold.testing import FakeEmbedder
settings = twofold.StoreSettings(embedding=twofold.EmbeddingSettings(batch_size=4, fill_in=False))
with twofold.open(sys.argv[1], settings=settings) as store:
    store.reembed(FakeEmbedder(24, name="new"), progress=lambda at: print(at.done, flush=True))
print("done", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_a_killed_mover_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    chance = random.Random(7)
    settings = StoreSettings(embedding=EmbeddingSettings(fill_in=False))
    with twofold.open(path, embedder=OLD, settings=settings) as store:
        store.add_many([{"id": str(n), "text": f"record number {n}"} for n in range(COUNT)])
    committed, rounds, added = 0, 0, 0
    while True:
        rounds += 1
        process = subprocess.Popen([sys.executable, "-c", MOVER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = ""
        for _ in range(chance.randint(10, 30)):
            said = process.stdout.readline()
            if said == "done\n":
                break
        process.kill()
        rest, _ = process.communicate()
        if "done" in said + rest:
            break
        with twofold.open(path, settings=settings) as store:
            if store.info().backend.fingerprint == NEW.fingerprint:
                continue  # it was killed after the last vector: another one removes what is left of the former
        committed += int((rest.split() or [said])[-1])
        with twofold.open(path, embedder=OLD, settings=settings) as store:
            assert store.search("record number 7", mode="vector", k=1).ids == ("7",)
            store.add(f"added in round {rounds}", id=f"round {rounds}")
            added += 1
            report = store.check()
            assert report.ok, report.damage
    assert rounds > 3
    with twofold.open(path, embedder=NEW, settings=settings) as store:
        assert store.stats().vectors == store.count() == COUNT + added
        assert committed <= store.count(), "nothing that was committed is made a second time"
        for record in store.list(limit=20):
            (hit,) = store.search(record.text, mode="vector", k=1)
            assert (hit.id, hit.score) == (record.id, pytest.approx(1.0, abs=1e-6))
        assert store.info().pending == 0
        report = store.check()
        assert report.ok, report.damage
