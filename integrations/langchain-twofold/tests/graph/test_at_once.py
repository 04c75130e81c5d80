"""Many operations at once: of one tick, of several loops, of threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")


import twofold
from langchain_twofold import TwofoldStore


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


async def test_thousands_of_operations_at_once(tmp_path: Path) -> None:
    async with TwofoldStore.from_conn_string(tmp_path / "s.db") as store:
        await store.setup()
        count = 600
        await asyncio.gather(*(store.aput(("a", str(n % 7)), str(n), {"n": n}) for n in range(count)))
        found = await asyncio.gather(*(store.aget(("a", str(n % 7)), str(n)) for n in range(count)))
        assert [item.value["n"] for item in found if item is not None] == list(range(count))
        await asyncio.gather(*(store.adelete(("a", str(n % 7)), str(n)) for n in range(0, count, 2)))
        assert len(await store.asearch(("a",), limit=count)) == count // 2


async def test_the_last_put_of_a_tick_counts(store: TwofoldStore) -> None:
    await asyncio.gather(*(store.aput(("a",), "k", {"n": n}) for n in range(20)))
    assert (await store.aget(("a",), "k")).value == {"n": 19}  # type: ignore[union-attr]


async def test_writes_of_a_tick_happen_in_order(store: TwofoldStore) -> None:
    await asyncio.gather(
        store.aput(("a",), "k", {"n": 1}), store.adelete(("a",), "k"), store.aput(("a",), "k", {"n": 1})
    )
    assert (await store.aget(("a",), "k")).value == {"n": 1}  # type: ignore[union-attr]
    await asyncio.gather(store.aput(("a",), "k", {"n": 2}), store.adelete(("a",), "k"))
    assert await store.aget(("a",), "k") is None


async def test_what_only_compares_equal_is_told_apart(store: TwofoldStore) -> None:
    await asyncio.gather(store.aput(("a",), "k", {"n": True}), store.aput(("a",), "k", {"n": 1}))
    trues, ones = await asyncio.gather(
        store.asearch(("a",), filter={"n": True}), store.asearch(("a",), filter={"n": 1})
    )
    assert (keys(trues), keys(ones)) == ([], ["k"])


async def test_what_only_looks_the_same_is_told_apart(store: TwofoldStore) -> None:
    class Secret(dict[str, Any]):
        def __repr__(self) -> str:
            return "Secret(***)"

    await asyncio.gather(*(store.aput(("a",), "k", Secret(n=n)) for n in range(3)))
    assert (await store.aget(("a",), "k")).value == {"n": 2}  # type: ignore[union-attr]


async def test_the_same_asked_twice_in_a_tick_is_answered_twice(store: TwofoldStore) -> None:
    await store.aput(("a",), "k", {"list": [1]})
    first, second = await asyncio.gather(store.asearch(("a",)), store.asearch(("a",)))
    first[0].value["list"].append(2)
    first.clear()
    assert [item.value for item in second] == [{"list": [1]}]
    one, other = await asyncio.gather(store.aget(("a",), "k"), store.aget(("a",), "k"))
    one.value["list"].append(2)  # type: ignore[union-attr]
    assert other.value == {"list": [1]}  # type: ignore[union-attr]


async def test_a_value_is_put_as_it_was_when_it_was_asked_for(store: TwofoldStore) -> None:
    value = {"list": [1]}
    putting = asyncio.ensure_future(store.aput(("a",), "k", value))
    await asyncio.sleep(0)
    value["list"].append(2)
    again = asyncio.ensure_future(store.aput(("a",), "k2", value))
    await asyncio.gather(putting, again)
    found = [await store.aget(("a",), key) for key in ("k", "k2")]
    assert [item.value for item in found if item is not None] == [{"list": [1]}, {"list": [1, 2]}]


async def test_one_that_fails_fails_alone(store: TwofoldStore) -> None:
    good, bad, also = await asyncio.gather(
        store.aput(("a",), "1", {"n": 1}),
        store.aput(("a",), "2", {"n": {1, 2}}),
        store.aput(("a",), "3", {"n": 3}),
        return_exceptions=True,
    )
    assert good is also is None
    assert isinstance(bad, ValueError)
    assert set(keys(await store.asearch(("a",)))) == {"1", "3"}


async def test_what_fails_on_its_way_fails_alone(model: Any) -> None:
    """What only shows while a batch runs: in vector mode with the model down, searches fail and nothing else."""
    async with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}, search_mode="vector") as store:
        await store.aput(("a",), "k", {"text": "x"})
        model.down = True
        searched, got = await asyncio.gather(
            store.asearch(("a",), query="x"), store.aget(("a",), "k"), return_exceptions=True
        )
        assert isinstance(searched, twofold.SearchUnavailableError)
        assert got.key == "k"  # type: ignore[union-attr]


async def test_whoever_is_cancelled_takes_nobody_along(store: TwofoldStore) -> None:
    tasks = [asyncio.ensure_future(store.aput(("a",), str(n), {"n": n})) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    await store.aput(("a",), "after", {"n": 9})
    assert {"0", "2", "after"} <= set(keys(await store.asearch(("a",))))


async def test_one_method_asks_for_what_its_sync_twin_asks_for(store: TwofoldStore) -> None:
    """Our async methods make operations of their own, since thousands of them shall cost little."""
    made: list[Any] = []

    class Recorded(TwofoldStore):
        def batch(self, ops: Any) -> list[Any]:
            made.extend(ops)
            return super().batch(made[-1:])

    path = ("a", "b")
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("put", (path, "k", {"n": 1}), {}),
        ("put", (path, 1, {"n": 1}), {"ttl": None}),
        ("put", (path, "k", {"n": 1}, ["n"]), {"ttl": 3}),
        ("get", (path, "k"), {}),
        ("get", (path, 1), {"refresh_ttl": False}),
        ("search", ((),), {}),
        ("search", (path,), {"query": "x", "filter": {"n": 1}, "limit": 3, "offset": 1, "refresh_ttl": True}),
        ("list_namespaces", (), {}),
        ("list_namespaces", (), {"prefix": ("a", "*"), "suffix": ("b",), "max_depth": 2, "limit": 3, "offset": 1}),
        ("delete", (path, 1), {}),
    ]
    for ttl in (None, {}, {"default_ttl": 5}, {"refresh_on_read": False}, {"default_ttl": None}):
        with Recorded(store.store, ttl=ttl) as recorded:  # type: ignore[arg-type]
            submit = recorded._submit

            def recording(kind: Any, fields: Any, submit: Any = submit) -> Any:
                made.append(kind(*fields))
                return submit(kind, fields)

            recorded._submit = recording
            for name, positional, named in calls:
                getattr(recorded, name)(*positional, **named)
                await getattr(recorded, f"a{name}")(*positional, **named)
                *_, synchronous, asynchronous = made
                assert asynchronous == synchronous, name
    assert len(made) == 5 * 2 * len(calls)


@pytest.mark.parametrize("namespace", [(), ("langgraph", "x"), ("a.b",), ("",), ("a\0",), (1,), "a"])
async def test_one_method_refuses_what_its_sync_twin_refuses(store: TwofoldStore, namespace: Any) -> None:
    for name, more in (("put", ("k", {"n": 1})), ("get", ("k",)), ("search", ()), ("delete", ("k",))):
        refused = [await _refusal(getattr(store, each), namespace, *more) for each in (name, f"a{name}")]
        assert refused[0] == refused[1], name


async def _refusal(method: Any, *arguments: Any) -> type[BaseException] | None:
    try:
        result = method(*arguments)
        if asyncio.iscoroutine(result):
            await result
    except ValueError as error:
        return type(error)
    return None


def test_a_loop_that_has_ended_is_forgotten(store: TwofoldStore) -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def work() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await store.aput(("a",), "k", {"n": 1})
        await store.aget(("a",), "k")

    asyncio.run(work())
    gc.collect()
    assert loops[0]() is None


async def test_an_item_may_be_changed_and_nobody_else_sees_it(store: TwofoldStore) -> None:
    await store.aput(("a",), "k", {"text": "kettle", "list": [1]})
    got, listed, searched = await asyncio.gather(
        store.aget(("a",), "k"), store.asearch(("a",)), store.asearch(("a",), query="kettle")
    )
    for item in (got, listed[0], searched[0]):  # type: ignore[index]
        assert item.value["list"] == [1]  # type: ignore[union-attr]
        item.value["list"].append(2)  # type: ignore[union-attr]
    assert store.last_result is not None
    assert store.last_result[0].record.metadata["list"] == [1]


def test_one_object_serves_several_loops_and_threads(tmp_path: Path) -> None:
    """langchain-ai/langgraph#7857."""
    with TwofoldStore(tmp_path / "s.db") as store:

        async def work(name: str) -> None:
            await asyncio.gather(*(store.aput((name,), str(n), {"n": n}) for n in range(20)))
            store.put((name,), "sync", {"n": 1})  # in a running loop too

        threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(store.search((), limit=1000)) == 3 * 21
