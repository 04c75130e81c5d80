"""Touches: counted once a search, written with the next write, by age and at close, and never in a reader's way."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest

import twofold
from twofold import Access, SearchParams, StoreSettings
from twofold.errors import StoreBusyError
from twofold.store import Search
from twofold.testing import FakeEmbedder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOUCH = SearchParams(touch=True)
NEVER = 80_000.0
"""Seconds: longer than any test."""


def opened(path: Path | str = ":memory:", **more) -> twofold.HybridStore:
    return twofold.open(path, settings=StoreSettings(**{"touch_flush_seconds": NEVER} | more))


def counts(store: twofold.HybridStore) -> dict[str, int]:
    return {record.id: record.access_count for record in store.list(access=Access.everything())}


def flush(store: twofold.HybridStore) -> None:
    """As the next write does."""
    store._parts.touches.flush()


def test_each_returned_record_is_counted_once_a_search():
    """Signet-AI/signetai#971: counts were inflated by candidates, hops and look-ups."""
    with opened() as store:
        for id_ in ("a", "b", "c"):
            store.add(f"kettle {id_}", id=id_)
        store.add("another", id="linked")
        store.add("behind", id="behind")
        store.link("a", "linked")
        store.link("a", "b")
        store.link("linked", "behind")
        result = store.search("kettle", k=2, params=SearchParams(touch=True, expand=1, hops=2))
        returned = {hit.id for hit in (*result.hits, *result.linked)}
        assert len(returned) == 3
        store.get("a"), store.get_many(["a", "b"]), store.list(), store.count(), store.links("a"), store.neighbors("a")
        store.search("kettle")
        store.batch([Search("kettle", params=TOUCH)])
        store.add("kettle c", duplicates="skip")
        assert counts(store) == {id_: int(id_ in returned) for id_ in ("a", "b", "c", "linked", "behind")}
        store.search("kettle", k=1, params=TOUCH)
        flush(store)
        assert sum(counts(store).values()) == 3 + 1


def test_the_next_write_takes_the_touches_along_and_time_moves_on():
    at = [NOW]
    with opened(clock=lambda: at[0]) as store:
        store.add("kettle", id="a")
        at[0] = NOW + timedelta(hours=1)
        store.search("kettle", params=TOUCH)
        at[0] = NOW + timedelta(hours=2)
        store.search("kettle", params=TOUCH)
        assert store.get("a").access_count == 0
        store.add("another", id="b")
        record = store.get("a")
        assert (record.access_count, record.last_accessed) == (2, NOW + timedelta(hours=2))
        assert (record.revision, record.updated_at, record.strength) == (1, NOW, 1.0)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.update("a", importance=0.9),
        lambda store: store.add("kettle changed", id="a"),
        lambda store: store.archive("b"),
        lambda store: store.link("a", "b"),
        lambda store: store.batch([twofold.store.Add("x")]),
        lambda store: store.marks.set("ns", ["key"]),
        lambda store: store.delete("b"),
    ],
)
def test_any_write_does_and_loses_nothing_by_it(write):
    with opened() as store:
        store.add("kettle", id="a")
        store.add("teapot", id="b")
        store.search("kettle", params=TOUCH)
        write(store)
        assert store.get("a").access_count == 1


def test_a_write_that_fails_leaves_the_touches_for_the_next():
    with opened() as store:
        store.add("kettle", id="a")
        store.search("kettle", params=TOUCH)
        with pytest.raises(twofold.ConfigurationError):
            store.link("a", "a")
        assert store.get("a").access_count == 0
        flush(store)
        assert store.get("a").access_count == 1


def test_touches_of_a_deleted_record_are_dropped():
    with opened() as store:
        store.add("kettle", id="a")
        store.search("kettle", params=TOUCH)
        store.delete("a")
        store.add("kettle", id="a")
        flush(store)
        assert store.get("a").access_count == 0, "it is another record"


def test_touches_strengthen_where_that_is_set():
    with opened(touch_growth=1.5) as store:
        store.add("kettle", id="a")
        for _ in range(3):
            store.search("kettle", params=TOUCH)
        flush(store)
        assert store.get("a").strength == pytest.approx(1.5**3)
        for _ in range(300):
            store.search("kettle", params=TOUCH)
        flush(store)
        assert store.get("a").strength == 100.0


def test_nothing_is_lost_by_closing(tmp_path):
    with opened(tmp_path / "a.db") as store:
        store.add("kettle", id="a")
        store.view(Access()).search("kettle", params=TOUCH)
    store.close()
    with opened(tmp_path / "a.db") as store:
        assert store.get("a").access_count == 1


async def test_nor_by_closing_as_a_twin(tmp_path):
    async with opened(tmp_path / "a.db") as store:
        await store.aadd("kettle", id="a")
        await store.asearch("kettle", params=TOUCH)
    with opened(tmp_path / "a.db") as store:
        assert store.get("a").access_count == 1


def test_touches_are_written_by_age(tmp_path):
    with opened(tmp_path / "a.db", touch_flush_seconds=0.05) as store:
        store.add("kettle", id="a")
        for total in (1, 2):
            store.search("kettle", params=TOUCH)
            assert wait_for(lambda total=total: store.get("a").access_count == total)
    assert not [thread for thread in threading.enumerate() if thread.name == "twofold-touches"]


def wait_for(done: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = monotonic() + seconds
    while not done():
        if monotonic() > end:
            return False
        sleep(0.01)
    return True


def test_a_store_that_touches_nothing_starts_no_thread():
    with opened() as store:
        store.add("kettle", id="a")
        before = set(threading.enumerate())
        store.search("kettle")
        assert set(threading.enumerate()) <= before  # those of other tests may end meanwhile


def test_a_search_does_not_need_the_thread(monkeypatch):
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with opened() as store:
        store.add("kettle", id="a")
        monkeypatch.setattr(threading.Thread, "start", start)
        assert store.search("kettle", params=TOUCH).ids == ("a",)
        store.add("another")
        assert store.get("a").access_count == 1


def test_a_timer_does_not_keep_the_interpreter_alive(tmp_path):
    code = """
import sys, twofold
store = twofold.open(sys.argv[1])
store.add("kettle", id="a")
store.search("kettle", params=twofold.SearchParams(touch=True))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.db")], check=True, timeout=60)


@contextmanager
def lock_held(path: Path):
    """Another process that is writing."""
    code = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.communicate("\n", timeout=30)


def test_a_locked_file_delays_no_search_and_loses_no_touch(tmp_path):
    """mem0ai/mem0#7196: counters that searches wrote failed them with "database is locked"."""
    path = tmp_path / "a.db"
    with opened(path, busy_timeout=0.2, touch_flush_seconds=0.05) as store:
        store.add("kettle", id="a")
        with lock_held(path):
            for _ in range(10):
                assert store.search("kettle", params=TOUCH).ids == ("a",)
                sleep(0.05)
            sleep(0.5)  # the flushes fail, the last one too
            with pytest.raises(StoreBusyError):
                store.add("x")
            assert store.get("a").access_count == 0
        assert wait_for(lambda: store.get("a").access_count == 10)


def test_closing_under_a_lock_says_what_is_lost_and_closes(tmp_path):
    path = tmp_path / "a.db"
    store = opened(path, busy_timeout=0.1)
    store.add("kettle", id="a")
    store.search("kettle", params=TOUCH)
    with lock_held(path):
        with pytest.raises(StoreBusyError):
            store.close()
        store.close()
    with pytest.raises(twofold.StoreClosedError):
        store.get("a")


def test_closing_never_masks_the_block_s_own_error(tmp_path):
    path = tmp_path / "a.db"

    def work() -> None:
        with ExitStack() as held, opened(path, busy_timeout=0.1) as store:
            store.add("kettle", id="a")
            store.search("kettle", params=TOUCH)
            held.enter_context(lock_held(path))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_of_a_store_that_is_read_only_nothing_is_kept(tmp_path):
    with opened(tmp_path / "a.db") as store:
        store.add("kettle", id="a")
    with opened(tmp_path / "a.db", read_only=True) as store:
        assert store.search("kettle", params=TOUCH).ids == ("a",)
        assert not store._parts.touches._waiting
    with opened(tmp_path / "a.db") as store:
        assert store.get("a").access_count == 0


def test_touches_leave_the_keyword_index_alone(tmp_path):
    """diegosouzapw/OmniRoute#13326: each count rewrote the record's entry in the keyword index."""
    with opened(tmp_path / "a.db") as store:
        for number in range(50):
            store.add(f"kettle number {number}", id=f"m{number}")

        def shadow() -> list[tuple[object, ...]]:
            with store._parts.backend.read() as reader:
                tables = ("fts_data", "fts_idx", "fts_docsize", "fts_config")
                return [row for table in tables for row in reader._connection.execute(f"SELECT * FROM {table}")]

        before = shadow()
        for _ in range(200):
            store.search("kettle", k=10, params=TOUCH)
            flush(store)
        assert sum(counts(store).values()) == 200 * 10
        assert shadow() == before
        assert store.check().ok


def test_many_threads_lose_no_touch(tmp_path):
    with opened(tmp_path / "a.db", touch_flush_seconds=0.01) as store:
        store.add("kettle", id="a")

        def work(thread: int) -> None:
            for number in range(50):
                assert len(store.search("kettle", k=1, params=TOUCH)) == 1
                if number % 10 == 0:
                    store.add(f"teapot {thread} {number}")

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, thread) for thread in range(8)]:
                done.result(timeout=120)
    with opened(tmp_path / "a.db") as store:
        assert store.get("a").access_count == 8 * 50


def test_much_that_waits_is_written_at_once(tmp_path, monkeypatch):
    from twofold.store import touching

    monkeypatch.setattr(touching, "_MOST_WAITING", 20)
    with opened(tmp_path / "a.db") as store:
        store.add("kettle", id="a")
        for _ in range(20):
            store.search("kettle", params=TOUCH)
        assert wait_for(lambda: store.get("a").access_count == 20)


def test_filters_and_orders_see_what_was_touched():
    from twofold import A

    settings = StoreSettings(touch_flush_seconds=NEVER, touch_growth=2.0)
    with twofold.open(":memory:", embedder=FakeEmbedder(8), settings=settings) as store:
        store.add("kettle", id="a")
        store.add("teapot", id="b")
        for where in (A.access_count >= 1, A.strength > 1):
            assert store.search("kettle", where=where).ids == ()
        store.search("kettle", k=1, mode="keyword", params=TOUCH)
        flush(store)
        for where in (A.access_count >= 1, A.strength > 1):
            for mode in ("keyword", "vector"):
                assert store.search("kettle", where=where, mode=mode).ids == ("a",)
        assert [record.id for record in store.list(order="-access_count")] == ["a", "b"]
