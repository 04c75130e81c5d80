"""Faults that others have reported of systems like this one, by their public issue, through the public names."""

from __future__ import annotations

import importlib.metadata
import math
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import twofold
from twofold import Access, EmbeddingSettings, F, GivenVectors, Outcome, SearchParams, StoreSettings
from twofold.testing import FakeEmbedder, TableEmbedder

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


# Ranking by keywords


def test_fusion_keeps_the_order_of_the_keyword_leg() -> None:
    """Soul-Brews-Studio/arra-oracle-v3#2886: 1 / (1 + |bm25|) gave the best match the smallest score."""
    with twofold.open(":memory:", embedder=FakeEmbedder()) as store:
        store.add("backup backup plan", id="m1")
        store.add("a long note that mentions backup once among many other words", id="m2")
        store.add("the backup of the backup of the plan, and some more words", id="m3")
        store.add_many([f"unrelated {number}" for number in range(17)])
        by_keyword = store.search("backup", mode="keyword")
        raw = [hit.explanation.legs["keyword"].raw for hit in by_keyword]
        assert len(raw) == 3
        assert raw == sorted(raw, reverse=True), "higher is better from here on"
        assert all(score > 0 and math.isfinite(score) for score in raw)
        fused = store.search("backup", params=SearchParams(vector_weight=0))
        assert fused.ids == by_keyword.ids
        assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)


# What is not living


def test_no_leg_finds_what_is_archived() -> None:
    """codecoradev/uteke#749: the vector path did not look at the status."""
    with twofold.open(":memory:", embedder=GivenVectors("given", 2)) as store:
        store.add("kettle", id="m1", vector=[0.8, 0.6])
        store.add("kettle kettle", id="a1", vector=[1, 0])
        store.archive("a1")
        for mode in ("vector", "hybrid", "keyword"):
            vector = None if mode == "keyword" else [1, 0]
            assert store.search("kettle", mode=mode, vector=vector).ids == ("m1",)
        store.restore("a1")
        assert store.search("kettle", mode="vector", vector=[1, 0]).ids == ("a1", "m1")


# Time


ZONES = """
import sys, twofold
from datetime import UTC, datetime, timedelta, timezone
from twofold import A

noon = datetime(2026, 3, 8, 12, tzinfo=UTC)  # the night before, New York's clocks went forward
with twofold.open(":memory:") as store:
    for id_, at in (
        ("utc", noon),
        ("tokyo", (noon + timedelta(minutes=1)).astimezone(timezone(timedelta(hours=9)))),
    ):
        store.add("kettle", id=id_, created_at=at)
    for wrong in (datetime(2026, 3, 8, 12), "2026-03-08T12:00:00Z", noon.timestamp()):
        try:
            store.add("kettle", created_at=wrong)
        except twofold.InvalidRecordError as error:
            print("refused")
    for at in (noon, noon + timedelta(seconds=30), noon + timedelta(minutes=2)):
        print(sorted(store.search("kettle", where=A.created_at < at).ids))
    print(store.get("tokyo").created_at.isoformat())
"""


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_the_time_zone_of_the_machine_changes_nothing(zone: str) -> None:
    """doobidoo/mcp-memory-service#167: a local time was read as UTC. One without a zone is refused here."""
    said = subprocess.run(
        [sys.executable, "-c", ZONES],
        env={**os.environ, "TZ": zone}, capture_output=True, text=True, timeout=120, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert said == ["refused"] * 3 + ["[]", "['utc']", "['tokyo', 'utc']", "2026-03-08T12:01:00+00:00"]


@pytest.mark.parametrize(
    "age",
    [
        timedelta(hours=-100),  # kannaka-labs/consciousness-core#52: exp(-0.01 · -100) = 2.718, a time to come grew
        timedelta(days=242),  # kirodotdev/KiroCrew#12154: exp(-0.03 · 242) = 7.0e-4, below every threshold
        timedelta(days=3650),
    ],
)
def test_age_neither_lifts_a_score_above_one_nor_makes_it_nothing(age: timedelta) -> None:
    settings = StoreSettings(clock=lambda: NEW_YEAR)
    with twofold.open(":memory:", embedder=FakeEmbedder(), settings=settings) as store:
        store.add("The deploy key lies in the vault.", id="m1", created_at=NEW_YEAR - age)
        store.add_many([f"another thing {number}" for number in range(20)])
        for mode in ("hybrid", "keyword", "vector"):
            result = store.search("The deploy key lies in the vault.", mode=mode)
            assert result.ids[0] == "m1"
            assert result[0].score == pytest.approx(1.0, abs=1e-6)
            assert result[0].score <= 1.0


# Copies

DATES = {
    "review is on October 15th": [1.0, 0.0],
    "review is on October 16th": [0.991, (1 - 0.991**2) ** 0.5],
    "port 8080": [0.0, 1.0],
    "port 8081": [(1 - 0.991**2) ** 0.5, 0.991],
    "node-1 is up": [-1.0, 0.0],
    "node-2 is up": [-0.991, (1 - 0.991**2) ** 0.5],
}


@pytest.mark.parametrize(("duplicates", "outcome"), [("skip", Outcome.SKIPPED), ("update", Outcome.UNCHANGED)])
def test_only_an_equal_text_is_a_copy(duplicates: Any, outcome: Outcome) -> None:
    """buildingjoshbetter/TrueMemory#687: of two dates with a cosine of 0.991 one was dropped."""
    with twofold.open(":memory:", embedder=TableEmbedder(DATES)) as store:
        for text in DATES:
            assert store.add(text, duplicates=duplicates).outcome is Outcome.ADDED
        assert store.add(next(iter(DATES)), duplicates=duplicates).outcome is outcome
        assert store.count() == len(DATES)


@pytest.mark.parametrize("duplicates", ["skip", "update"])
def test_many_words_in_common_make_no_copy(duplicates: Any) -> None:
    """AVIDS2/memorix#94: a raw BM25 of some hundred passed each threshold from 0 to 1."""
    shared = "server cache index query table column lock page file commit"
    with twofold.open(":memory:") as store:
        store.add(" ".join([shared] * 40), id="m1", duplicates=duplicates)
        assert store.add(f"{shared} and the tea", id="m2", duplicates=duplicates).outcome is Outcome.ADDED
        assert store.count() == 2


# The file


def test_the_log_has_an_end(tmp_path: Path) -> None:
    """BYK/loreai#1221: beside a reader that had long finished, the log grew without limit."""
    path, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    with twofold.open(path) as store:
        store.add("kettle")
        other = subprocess.Popen(
            [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "read 1\n"
        largest = 0
        for number in range(10_000):
            store.add(f"note {number}")
            if number % 100 == 0:
                assert store.count() == number + 2
                largest = max(largest, log.stat().st_size)
        assert 0 < largest < 64 * 2**20
        pool = store._backend._file.pool  # type: ignore[attr-defined]
        assert not any(connection.in_transaction for connection in (*pool._idle, pool._main))
        said, _ = other.communicate("\n", timeout=120)
        assert said == "read 10001\n"
    assert not log.exists()


READER = """
import sys, twofold
store = twofold.open(sys.argv[1])
print("read", store.count(), flush=True)
sys.stdin.readline()
print("read", store.count(), flush=True)
"""


FORKING = """
import os, sys, twofold
path = sys.argv[1]
store = twofold.open(path)
store.add("first")
pid = os.fork()
if pid == 0:
    try:
        store.add("with what was inherited")
    except twofold.ForkedStoreError:
        pass
    else:
        os._exit(1)
    with twofold.open(path) as mine:
        for number in range(20):
            mine.add(f"child {number}", id=f"c{number}")
    os._exit(0)
for number in range(20):
    store.add(f"parent {number}", id=f"p{number}")
assert os.waitpid(pid, 0)[1] == 0
assert store.count() == 1 + 20 + 20, store.count()
report = store.check()
assert report.ok, report.damage
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_parent_and_child_write_by_connections_of_their_own(tmp_path: Path) -> None:
    """rails/solid_queue#324: connections carried over a fork corrupted the file."""
    subprocess.run([sys.executable, "-c", FORKING, str(tmp_path / "memory.db")], check=True, timeout=300)


def test_fifty_thousand_ids_in_one_call() -> None:
    """benseverndev-oss/goldenmatch#687: more than SQLite has variables for."""
    ids = [f"r{number}" for number in range(50_000)]
    with twofold.open(":memory:") as store:
        store.add_many({"id": id_, "text": f"kettle {id_}", "metadata": {"n": n}} for n, id_ in enumerate(ids[:300]))
        backwards = ids[::-1]
        assert [record.id for record in store.get_many(backwards)] == ids[:300][::-1]
        among = F("n").in_(range(50_000)) & twofold.A.id.in_(ids)
        assert store.count(where=among) == 300
        assert len(store.search("kettle", where=among, k=300)) == 300
        assert store.delete(backwards) == 300
        assert store.count() == 0


# Libraries


def test_sqlite_vec_is_of_the_release_that_was_tried() -> None:
    """paperless-ngx/paperless-ngx#12990: later ones are built for CPUs with AVX2, and kill the process on others."""
    (wanted,) = {
        each.split(";")[0].strip()
        for each in importlib.metadata.requires("twofold") or ()
        if re.match(r"sqlite-vec\b", each)
    }
    assert set(wanted.removeprefix("sqlite-vec").split(",")) == {">=0.1.9", "<0.1.10"}


def test_another_release_of_sqlite_vec_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from twofold.backends.sqlite import vec0

    pytest.importorskip("sqlite_vec", reason="the extra 'sqlite-vec' is not installed")
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1.10a4" if name == "sqlite-vec" else real(name))
    monkeypatch.setattr(vec0, "load_extension", None)  # calling it would fail
    vec0.extension_problem.cache_clear()
    try:
        settings = StoreSettings(index="sqlite-vec", embedding=EmbeddingSettings(fill_in=False))
        with twofold.open(tmp_path / "memory.db", embedder=FakeEmbedder(), settings=settings) as store:
            store.add("The deploy key.", id="m1")
            result = store.search("deploy key", access=Access())
            assert (result.ids, [each.code for each in result.degradations]) == (("m1",), ["exact_fallback"])
            assert "0.1.10a4" in str(result.degradations[0])
    finally:
        vec0.extension_problem.cache_clear()
