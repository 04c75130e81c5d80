"""The embedding model: down, slow, async, of the wrong size, another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")


import twofold
from langchain_twofold import TwofoldStore


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


async def test_a_model_that_is_down_costs_no_item(model: Any) -> None:
    patient = twofold.EmbeddingSettings(failures_to_open=100)
    with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}, embedding=patient) as store:
        model.down = True
        store.put(("a",), "k", {"text": "a kettle"})
        assert keys(store.search(("a",), query="kettle")) == keys(await store.asearch(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.degraded
        model.down = False
        store.store.embed_pending()
        assert store.store.info().pending == 0
    with TwofoldStore(index={"dims": 27, "embed": model}, search_mode="vector") as store:
        model.down = True
        with pytest.raises(twofold.SearchUnavailableError):
            store.search(("a",), query="kettle")


def test_nobody_waits_for_a_model_that_thinks(model: Any) -> None:
    """langgraph's SQLite store embeds while it holds its lock."""
    with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}) as store:
        store.put(("a",), "there", {"text": "x"})
        model.entered.clear()
        model.gate.clear()
        putting = threading.Thread(target=store.put, args=(("a",), "slow", {"text": "y"}))
        putting.start()
        assert model.entered.wait(60)
        assert store.get(("a",), "there") is not None
        store.put(("a",), "quick", {"n": 1}, index=False)
        assert store.get(("a",), "slow") is None
        model.gate.set()
        putting.join(60)
        assert store.get(("a",), "slow") is not None


async def test_the_loop_and_other_reads_go_on_meanwhile(model: Any) -> None:
    async with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}) as store:
        await store.aput(("a",), "there", {"text": "x"})
        model.entered.clear()
        model.gate.clear()
        putting = asyncio.ensure_future(store.aput(("a",), "slow", {"text": "y"}))
        ticks = 0
        while not (model.entered.is_set() and ticks >= 20):
            ticks += 1
            await asyncio.sleep(0.001)
        assert await store.aget(("a",), "there") is not None
        assert not putting.done()
        model.gate.set()
        await putting
        assert await store.aget(("a",), "slow") is not None


async def test_an_async_function_is_a_model(letters: Callable[[Sequence[str]], list[list[float]]]) -> None:
    loops = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        return letters(texts)

    async with TwofoldStore(index={"dims": 27, "embed": embed, "fields": ["text"]}, search_mode="vector") as store:
        await store.aput(("a",), "k", {"text": "kettle"})
        assert keys(await store.asearch(("a",), query="kettle")) == ["k"]
        assert set(loops) == {asyncio.get_running_loop()}
        await asyncio.to_thread(store.put, ("a",), "k2", {"text": "kettles"})
        assert len(await store.asearch(("a",), query="kettle")) == 2


def test_dimensions_that_are_wrong_are_told(letters: Callable[[Sequence[str]], list[list[float]]]) -> None:
    with TwofoldStore(index={"dims": 3, "embed": letters, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "kettle"})
        assert keys(store.search(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.has(twofold.DegradationCode.EMBEDDER_BAD_OUTPUT)


def test_vectors_of_two_models_are_not_compared(tmp_path: Path, index: Callable[..., Any]) -> None:
    with TwofoldStore(tmp_path / "s.db", index=index(fields=["text"])) as store:
        store.put(("a",), "k", {"text": "kettle"})
    with TwofoldStore(tmp_path / "s.db", index=index(fields=["text"]), embedding_name="other") as store:
        assert keys(store.search(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.has(twofold.DegradationCode.SPACE_MISMATCH)


def threes(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, 2.0, 3.0] for _ in texts]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"search_mode": "both"}, "search_mode"),
        ({"search_mode": "vector"}, "model"),
        ({"index": {"dims": 3}}, "embed"),
        ({"index": {"dims": 3, "embed": threes, "distance": "l2"}}, "distance"),
        ({"index": {"dims": 0, "embed": threes}}, "dimension"),
        ({"index": {"dims": 3, "embed": threes, "fields": "text"}}, "fields"),
        ({"embedding_name": "m"}, "no index"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_arguments_that_cannot_be_used_say_why(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TwofoldStore(**arguments)
