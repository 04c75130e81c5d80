"""Items that expire, and reading that lets them live longer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")


import twofold
from langchain_twofold import TwofoldStore
from twofold.testing import FakeClock


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


def test_what_has_expired_is_not_shown_and_can_be_swept(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock) as store:
        store.put(("a",), "short", {"text": "kettle"}, ttl=1)
        store.put(("a",), "long", {"text": "kettle"}, ttl=None)
        clock.advance(minutes=1, seconds=1)
        assert store.get(("a",), "short") is None
        for query in (None, "kettle"):
            assert keys(store.search(("a",), query=query, limit=1)) == ["long"]
        assert store.get(("a",), "short", refresh_ttl=True) is None  # and nothing brings it back
        assert store.sweep_ttl() == 1
        assert store.sweep_ttl() == 0
        assert store.get(("a",), "long") is not None


async def test_reading_lets_an_item_live_longer(clock: FakeClock) -> None:
    reads: list[Callable[[TwofoldStore], Any]] = [
        lambda store: store.get(("a",), "k"),
        lambda store: store.search(("a",)),
        lambda store: store.search(("a",), query="kettle"),
    ]
    for read in reads:
        with TwofoldStore(clock=clock) as store:
            store.put(("a",), "k", {"text": "kettle"}, ttl=1)
            put_at = clock()
            for _ in range(3):
                clock.advance(minutes=0.75)
                assert read(store)
            clock.advance(minutes=0.75)
            item = await store.aget(("a",), "k")
            assert item is not None
            assert (item.created_at, item.updated_at) == (put_at, put_at)
            clock.advance(minutes=0.75)
            assert await store.asearch(("a",), query="kettle")
            clock.advance(minutes=1.25)
            assert await store.aget(("a",), "k") is None


def test_reading_without_letting_it_live_longer(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock, ttl={"refresh_on_read": False, "default_ttl": 1}) as store:
        store.put(("a",), "k", {"n": 1})
        store.put(("a",), "own", {"n": 1}, ttl=3)
        store.put(("a",), "ever", {"n": 1}, ttl=None)
        clock.advance(minutes=0.75)
        assert store.get(("a",), "k") is not None
        clock.advance(minutes=0.5)
        assert set(keys(store.search(("a",)))) == {"own", "ever"}
        clock.advance(minutes=3)
        assert keys(store.search(("a",))) == ["ever"]
        store.put(("a",), "own", {"n": 2}, ttl=1)
        assert store.get(("a",), "own", refresh_ttl=True) is not None


def test_the_sweeper_sweeps_and_stops(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock, ttl={"sweep_interval_minutes": 0.0005}) as store:  # type: ignore[typeddict-item]
        store.put(("a",), "k", {"n": 1}, ttl=1)
        clock.advance(minutes=2)
        ended = store.start_ttl_sweeper()
        assert store.start_ttl_sweeper() is ended
        waited = threading.Event()
        for _ in range(400):
            if store.store.count(include_archived=True) == 0:
                break
            waited.wait(0.01)
        assert store.store.count(include_archived=True) == 0
        assert store.stop_ttl_sweeper(timeout=60)
        assert ended.done()
        assert store.stop_ttl_sweeper()
        with pytest.raises(ValueError, match="sweep_interval_minutes"):
            store.start_ttl_sweeper(-1)


async def test_who_may_only_read_an_item_reads_it_and_does_not_make_it_live_longer(clock: FakeClock) -> None:
    with twofold.open(":memory:", settings=twofold.StoreSettings(clock=clock)) as shared:
        everybodys = TwofoldStore(shared)
        anns = TwofoldStore(shared, access=twofold.Access(user="ann"))
        everybodys.put(("a",), "k", {"text": "kettle"}, ttl=10)
        clock.advance(minutes=6)
        assert anns.get(("a",), "k") is not None
        assert await anns.aget(("a",), "k") is not None
        for query in (None, "kettle"):
            assert [item.key for item in anns.search(("a",), query=query)] == ["k"]
            assert [item.key for item in await anns.asearch(("a",), query=query)] == ["k"]
        clock.advance(minutes=6)
        assert anns.get(("a",), "k") is everybodys.get(("a",), "k") is None
