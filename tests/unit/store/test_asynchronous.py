"""The async twins: the same answers, off the loop; and the store under many threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import twofold
from twofold import Access, CallableEmbedder, HybridStore, StoreClosedError
from twofold.store import Add, Get, Marks
from twofold.testing import FakeEmbedder


def public_methods(kind: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("kind", [HybridStore, Marks])
def test_every_call_has_an_async_twin_of_the_same_signature(kind: type) -> None:
    methods = public_methods(kind)
    sync = {name: method for name, method in methods.items() if not inspect.iscoroutinefunction(method)}
    assert sync
    for name, method in sync.items():
        if name == "view":  # makes a handle and does nothing that could wait
            continue
        twin = methods[f"a{name}"]
        assert inspect.iscoroutinefunction(twin)
        assert inspect.signature(twin) == inspect.signature(method)
        assert twin.__name__ == f"a{name}"


async def test_twins_do_what_their_methods_do() -> None:
    async with twofold.open(":memory:", embedder=FakeEmbedder(8)) as store:
        added = await store.aadd("kettle", id="m1", access=Access(user="u1"))
        assert added.id == "m1"
        me = store.view(Access(user="u1"))
        assert (await me.asearch("kettle")).ids == ("m1",)
        assert (await store.asearch("kettle")).ids == ()
        assert (await me.abatch([Add(twofold.NewRecord(text="teapot", id="m2")), Get("m1")]))[1].id == "m1"
        assert await me.acount() == 2
        assert [record.id for record in await me.alist(order="id")] == ["m1", "m2"]
        await me.marks.aset("index", ["a"])
        assert await me.marks.aexists("index", ["a"]) == [True]
        with pytest.raises(twofold.AccessError):
            await store.adelete(["m1"], access=Access(user="u1", rooms=("r",)), owner=twofold.Owner.everybody()) or (
                await me.asearch("x", access=Access(user="u2"))
            )
    with pytest.raises(StoreClosedError):
        await store.asearch("kettle")


async def test_the_loop_goes_on_while_the_embedder_blocks() -> None:
    """doobidoo/mcp-memory-service#433."""
    release, entered = threading.Event(), threading.Event()

    def embed(texts: list[str]) -> list[list[float]]:
        entered.set()
        assert release.wait(30)
        return [[1.0] for _ in texts]

    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="slow")) as store:
        adding = asyncio.create_task(store.aadd("kettle"))
        await asyncio.to_thread(entered.wait, 30)
        ticks = 0
        while ticks < 100:
            await asyncio.sleep(0)
            ticks += 1
        assert not adding.done()
        assert await store.acount() == 0  # nothing is locked meanwhile either
        release.set()
        assert (await adding).pending is False


async def test_an_async_embedder_runs_on_the_callers_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return [[float(len(text)), 1.0] for text in texts]

    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="async")) as store:
        await store.aadd("kettle", id="m1")
        result = await store.asearch("kettle", mode="vector")
        assert (result.ids, result.degraded) == (("m1",), False)
        assert set(loops) == {asyncio.get_running_loop()}
        with pytest.raises(twofold.ConfigurationError, match="asearch"):
            store.search("teapot", mode="vector")


def test_an_async_embedder_serves_plain_code_too() -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.5] for _ in texts]

    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="async")) as store:
        store.add("kettle", id="m1")
        assert store.search("zz", mode="vector").ids == ("m1",)


async def test_a_cancelled_search_leaves_the_store_usable() -> None:
    entered, called_off = asyncio.Event(), asyncio.Event()

    async def embed(texts: list[str]) -> list[list[float]]:
        if texts == ["wait"]:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                called_off.set()
                raise
        return [[1.0, 0.5] for _ in texts]

    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="async")) as store:
        await store.aadd("kettle", id="m1")
        searching = asyncio.create_task(store.asearch("wait"))
        await entered.wait()
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        await asyncio.wait_for(called_off.wait(), 30)
        assert (await store.asearch("kettle")).ids == ("m1",)


async def test_many_callers_at_once_get_their_own_answers(tmp_path: Any) -> None:
    with twofold.open(tmp_path / "s.db", embedder=FakeEmbedder(16)) as store:
        store.add_many([{"text": f"kettle number{n}", "id": f"m{n}"} for n in range(50)])
        searches = [store.asearch(f"number{n}", k=1, mode="keyword") for n in range(50)]
        adds = [store.aadd(f"teapot more{n}", id=f"t{n}") for n in range(50)]
        answers = await asyncio.gather(*searches, *adds)
        assert [answer.ids for answer in answers[:50]] == [(f"m{n}",) for n in range(50)]
        assert store.count() == 100


@pytest.mark.parametrize("where", [":memory:", "file"])
def test_threads_share_a_store(where: str, tmp_path: Any) -> None:
    """asg017/sqlite-vec … mem0ai/mem0#3184: used from other threads than the one that opened it."""
    path = tmp_path / "s.db" if where == "file" else where
    with twofold.open(path, embedder=FakeEmbedder(16)) as store:

        def work(thread: int) -> None:
            for n in range(20):
                store.add(f"kettle thread{thread} item{n}", id=f"{thread}-{n}")
                found = store.search(f"thread{thread} item{n}", k=50)
                assert f"{thread}-{n}" in found.ids
                assert len(set(found.ids)) == len(found.ids)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert store.count() == 8 * 20
        assert store.check().ok


def test_closing_while_others_work_ends_them_cleanly(tmp_path: Any) -> None:
    store = twofold.open(tmp_path / "s.db")
    store.add_many([f"kettle {n}" for n in range(200)])
    started = threading.Barrier(5)

    def work(_: int) -> str:
        started.wait()
        try:
            while True:
                store.search("kettle", k=100)
        except StoreClosedError:
            return "closed"

    with ThreadPoolExecutor(4) as pool:
        ends = [pool.submit(work, n) for n in range(4)]
        started.wait()
        store.close()
        assert [end.result(30) for end in ends] == ["closed"] * 4
    store.close()
    for call in (store.search, store.add, store.get):
        with pytest.raises(StoreClosedError):
            call("kettle")
