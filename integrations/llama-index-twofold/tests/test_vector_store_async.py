"""The async twins: the loop runs on whatever the embedder does, and many tasks and threads share one store."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import CallableEmbedder, EmbeddingSettings
from twofold.testing import FakeEmbedder

Make = Callable[..., TwofoldVectorStore]


class Held(FakeEmbedder):
    """Waits in every call until the test opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()

    def embed(self, texts: Any, kind: Any) -> Any:
        self.entered.set()
        if not self.gate.wait(60):
            raise TimeoutError("the test never opened the gate")
        return super().embed(texts, kind)


async def beats_until(entered: threading.Event, more: int = 50) -> int:
    """Turns of the loop, until ``entered`` and so many after it."""
    beats = left = 0
    while left < more:
        await asyncio.sleep(0)
        beats += 1
        left += entered.is_set()
    return beats


async def test_the_heart_goes_on_beating_while_the_embedder_is_waited_for(make_vectors: Make) -> None:
    """run-llama/llama_index#21159, #21934: only a loop that runs can open the gate."""
    held = Held()
    vectors = make_vectors(embed_model=held)
    nodes = [TextNode(id_=f"n{place}", text=f"note number {place}") for place in range(1000)]
    adding = asyncio.create_task(vectors.async_add(nodes))
    assert await beats_until(held.entered) >= 50
    assert not adding.done()
    held.gate.set()
    assert await adding == [node.node_id for node in nodes]
    assert vectors.last_added is not None
    assert vectors.last_added.pending == 0

    for mode in ("default", "hybrid", "mmr"):
        held.entered.clear()
        held.gate.clear()
        asked = VectorStoreQuery(query_str=f"number 7 {mode}", query_embedding=[], mode=mode, similarity_top_k=3)  # type: ignore[arg-type]
        asking = asyncio.create_task(vectors.aquery(asked))
        assert await beats_until(held.entered) >= 50
        assert not asking.done()
        held.gate.set()
        assert len((await asking).ids or []) == 3


async def test_an_embedder_that_hangs_holds_up_nothing_for_good(make_vectors: Make) -> None:
    held = Held()
    impatient = EmbeddingSettings(query_deadline=0.01, warm_up=0, document_deadline=0.01, fill_in=False)
    vectors = make_vectors(embed_model=held, embedding=impatient)
    assert await vectors.async_add([TextNode(id_="a", text="a note")]) == ["a"]
    assert vectors.last_added is not None
    assert [each.code for each in vectors.last_added.degradations] == ["embedder_timeout"]
    for mode in ("default", "hybrid"):
        found = await vectors.aquery(VectorStoreQuery(query_str="note", mode=mode))  # type: ignore[arg-type]
        assert found.ids == ["a"]
        assert vectors.last_result is not None
        assert vectors.last_result.degraded
    held.gate.set()


async def test_an_async_embedder_runs_on_the_callers_loop(make_vectors: Make) -> None:
    """That is where its clients and connections are."""
    loops: list[asyncio.AbstractEventLoop] = []
    fake = FakeEmbedder()

    async def embed(texts: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return fake.embed(texts, "document")

    vectors = make_vectors(embed_model=CallableEmbedder(embed, name="async", dimension=fake.dimension))
    await vectors.async_add([TextNode(id_="a", text="a note")])
    found = await vectors.aquery(VectorStoreQuery(query_str="note"))
    assert found.ids == ["a"]
    assert vectors.last_result is not None
    assert not vectors.last_result.degraded
    assert loops == [asyncio.get_running_loop()] * 2


def test_every_async_method_is_overridden() -> None:
    """The inherited ones do the work on the loop, and lose arguments."""
    for name, method in inspect.getmembers(BasePydanticVectorStore, inspect.iscoroutinefunction):
        own = getattr(TwofoldVectorStore, name)
        assert own is not method
        sync = getattr(TwofoldVectorStore, {"async_add": "add"}.get(name, name[1:]))
        ours, theirs = inspect.signature(own), inspect.signature(sync)
        assert list(ours.parameters.values()) == list(theirs.parameters.values())


async def test_no_async_method_does_its_work_on_the_loop(make_vectors: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = make_vectors()
    where: dict[str, threading.Thread] = {}
    for name in ("add_many", "list", "get_many", "delete", "search"):
        method = getattr(vectors.store, name)

        def noted(*args: Any, name: str = name, method: Any = method, **kwargs: Any) -> Any:
            where[name] = threading.current_thread()
            return method(*args, **kwargs)

        monkeypatch.setattr(vectors.store, name, noted)
    node = TextNode(id_="a", text="x", embedding=[1.0])
    calls: list[tuple[set[str], Callable[[], Awaitable[Any]]]] = [
        ({"add_many"}, lambda: vectors.async_add([node])),
        ({"get_many"}, lambda: vectors.aget_nodes(["a"])),
        ({"list"}, vectors.aget_nodes),
        ({"search"}, lambda: vectors.aquery(VectorStoreQuery(query_str="x"))),
        ({"delete"}, lambda: vectors.adelete("d")),
        ({"delete"}, lambda: vectors.adelete_nodes(["a"])),
        ({"delete"}, vectors.aclear),
    ]
    for expected, ask in calls:
        where.clear()
        await ask()
        assert set(where) == expected
        assert threading.main_thread() not in where.values()


async def test_many_tasks_at_once(tmp_path: Path, make_vectors: Make) -> None:
    """mem0ai/mem0#7196: no "database is locked"; run-llama/llama_index#23184: no "no such table"."""
    vectors = make_vectors(tmp_path / "notes.db", embed_model=FakeEmbedder())

    async def one(place: int) -> list[str]:
        await vectors.async_add([TextNode(id_=f"n{place}", text=f"note{place}")])
        found = await vectors.aquery(VectorStoreQuery(query_str=f"note{place}", mode="sparse"))  # type: ignore[arg-type]
        if place % 2:
            await vectors.adelete_nodes([f"n{place}"])
        return found.ids or []

    assert await asyncio.gather(*map(one, range(30))) == [[f"n{place}"] for place in range(30)]
    assert {node.node_id for node in await vectors.aget_nodes()} == {f"n{place}" for place in range(0, 30, 2)}


def test_two_handles_and_many_threads(tmp_path: Path, make_vectors: Make) -> None:
    handles = [make_vectors(tmp_path / "notes.db") for _ in range(2)]

    def one(place: int) -> list[str]:
        mine, other = handles[place % 2], handles[1 - place % 2]
        mine.add([TextNode(id_=f"n{place}", text=f"note{place}", embedding=[1.0, place])])
        return other.query(VectorStoreQuery(query_str=f"note{place}", mode="sparse")).ids or []  # type: ignore[arg-type]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(40))) == [[f"n{place}"] for place in range(40)]
    assert len(handles[0].get_nodes()) == 40


async def test_a_task_that_is_called_off_leaves_a_store_that_works(make_vectors: Make) -> None:
    held = Held()
    vectors = make_vectors(embed_model=held)
    adding = asyncio.create_task(vectors.async_add([TextNode(id_="a", text="a note")]))
    await beats_until(held.entered, 1)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    held.gate.set()
    await vectors.async_add([TextNode(id_="b", text="another note")])
    found = await vectors.aquery(VectorStoreQuery(query_str="another", similarity_top_k=1))
    assert found.ids == ["b"]
