"""LangGraph's stores: how long thousands of single async operations take, on a file each, in the same run."""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from langgraph.store.base import BaseStore

from langchain_twofold import TwofoldStore

__all__ = ["compare_stores"]

_ROUNDS = 5
_USERS = 20
_Made: TypeAlias = Callable[[Path], AbstractAsyncContextManager[BaseStore]]


def compare_stores(folder: Path, operations: int, *, rivals: bool) -> dict[str, Any]:
    """Figures by name: seconds, the median of five rounds, of each store and each way to use it; and how many times
    faster twofold is. The stores take turns, each round on files of their own and each beginning every other one.

    Args:
        folder: where the files go.
        operations: how many a round, at least 6.
        rivals: whether LangGraph's own store for SQLite is measured too.
    """
    stores: dict[str, _Made] = {"twofold": _twofold}
    if rivals:
        stores["AsyncSqliteStore"] = _sqlite
    figures: dict[str, Any] = {"operations": operations}
    for name, work in (("at once", _at_once), ("of one tick, as upstream's", _mixed), ("one by one", _one_by_one)):
        times: dict[str, list[float]] = {store: [] for store in stores}
        order = list(stores)
        for turn in range(_ROUNDS + 1):
            order.append(order.pop(0))
            for store in order:
                path = folder / f"{name} {store} {turn}.db"
                taken = asyncio.run(_timed(stores[store], path, work, operations))
                if turn:  # the first round only warms up
                    times[store].append(taken)
        medians = {store: statistics.median(taken) for store, taken in times.items()}
        figures |= {f"{name}: {store}, s": taken for store, taken in medians.items()}
        if rivals:
            figures[f"{name}: twofold is faster, times"] = medians["AsyncSqliteStore"] / medians["twofold"]
    return figures


async def _timed(
    make: _Made, path: Path, work: Callable[[BaseStore, int], Coroutine[Any, Any, None]], operations: int
) -> float:
    async with make(path) as store:
        await store.aput(("before",), "all", {})  # connections are made when they are first needed
        await store.aget(("before",), "all")
        gc.collect()
        gc.freeze()  # or a pass of the collector would take as long as there are modules in this process
        try:
            started = perf_counter()
            await work(store, operations)
            return perf_counter() - started
        finally:
            gc.unfreeze()


@asynccontextmanager
async def _twofold(path: Path) -> AsyncIterator[BaseStore]:
    async with TwofoldStore(path) as store:
        yield store


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncIterator[BaseStore]:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    async with AsyncSqliteStore.from_conn_string(str(path)) as store:
        await store.setup()
        yield store


def _place(number: int) -> tuple[str, ...]:
    return ("users", f"u{number % _USERS}", "notes")


def _value(number: int) -> dict[str, Any]:
    return {"text": f"note {number}: the kettle of user {number % _USERS} boils", "number": number}


def _puts(store: BaseStore, count: int) -> Iterator[Coroutine[Any, Any, Any]]:
    return (store.aput(_place(number), f"k{number}", _value(number)) for number in range(count))


def _gets(store: BaseStore, count: int) -> Iterator[Coroutine[Any, Any, Any]]:
    return (store.aget(_place(number), f"k{number}") for number in range(count))


def _searches(store: BaseStore, count: int) -> Iterator[Coroutine[Any, Any, Any]]:
    return (store.asearch(_place(number), filter={"number": number}) for number in range(count))


async def _at_once(store: BaseStore, operations: int) -> None:
    """A third puts, a third gets, a third searches, no two of them alike; those of a kind are asked for together."""
    third = operations // 3
    await asyncio.gather(*_puts(store, third))
    found = await asyncio.gather(*_gets(store, third))
    listed = await asyncio.gather(*_searches(store, third))
    if not all(found) or any([item.key for item in items] != [f"k{number}"] for number, items in enumerate(listed)):
        raise RuntimeError("a store lost something")


async def _one_by_one(store: BaseStore, operations: int) -> None:
    """The same, each awaited before the next one is asked for; a tenth as many."""
    for each in (*_puts(store, operations // 30), *_gets(store, operations // 30), *_searches(store, operations // 30)):
        await each


async def _mixed(store: BaseStore, operations: int) -> None:
    """What LangGraph's own tests call large batches: all kinds mixed, many of them alike, in one tick."""
    rounds = operations // 6
    await asyncio.gather(*(each for number in range(rounds) for each in _mixture(store, number)))


def _mixture(store: BaseStore, number: int) -> Iterator[Coroutine[Any, Any, Any]]:
    batch, key = divmod(number, 100)
    place = ("test", "foo", "bar", "baz", str(batch % 2))
    yield store.aput(place, f"key{key}", {"foo": f"bar{key}"})
    yield store.aget(place, f"key{key}")
    yield store.alist_namespaces(max_depth=batch + 1)
    yield store.asearch(("test",))
    yield store.aput(place, f"key{key}", {"foo": f"bar{key}"})
    yield store.adelete(place, f"key{key}")
