"""Functions as embedders, sync and async, with and without a running loop."""

from __future__ import annotations

import asyncio
import functools
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from twofold.cancellation import Cancellation, current_cancellation
from twofold.embedders import CallableEmbedder, Embedder, calling_loop, embed_checked
from twofold.errors import ConfigurationError, EmbedderUnreachableError


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    with warnings.catch_warnings():  # a coroutine that is never awaited
        warnings.simplefilter("error")
        yield


def plain(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


async def later(texts: Sequence[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return plain(texts)


def handing_on(texts: Sequence[str]) -> Any:
    return later(texts)


class Model:
    async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return await later(texts)

    def method(self, texts: Sequence[str]) -> list[list[float]]:
        return plain(texts)


class Refused:
    def __call__(self) -> None: ...


FUNCTIONS = [plain, later, Model(), Model().method, functools.partial(later), handing_on]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_sync_and_async_alike_in_synchronous_code(function: Any) -> None:
    embedder = CallableEmbedder(function, "m")
    assert isinstance(embedder, Embedder)
    assert embed_checked(embedder, ["a", "bb"], "query").tolist() == [[1, 1], [2, 1]]


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_sync_and_async_alike_under_an_async_method(function: Any) -> None:
    embedder = CallableEmbedder(function, "m")
    calling_loop.set(asyncio.get_running_loop())  # as the async twins do, before they go to a thread
    got = await asyncio.wait_for(asyncio.to_thread(embed_checked, embedder, ["a", "bb"], "query"), 10)
    assert got.tolist() == [[1, 1], [2, 1]]


# run-llama/llama_index#9978: asyncio.run() inside a running loop
@pytest.mark.parametrize("function", [later, Model(), handing_on])
async def test_async_in_a_running_loop_says_what_to_do(function: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"asearch") as caught:
        embed_checked(CallableEmbedder(function, "m"), ["a"], "query")
    assert "asyncio.run" not in str(caught.value)


async def test_sync_in_a_running_loop_works() -> None:
    assert embed_checked(CallableEmbedder(plain, "m"), ["a"], "query").tolist() == [[1, 1]]


async def test_it_runs_on_the_callers_loop() -> None:
    where: list[Any] = []

    async def function(texts: Sequence[str]) -> list[list[float]]:
        where.append((asyncio.get_running_loop(), threading.current_thread()))
        return plain(texts)

    calling_loop.set(asyncio.get_running_loop())
    await asyncio.to_thread(CallableEmbedder(function, "m").embed, ["a"], "query")
    assert where == [(asyncio.get_running_loop(), threading.current_thread())]


@pytest.mark.parametrize("bridged", [True, False])
async def test_calling_off_cancels_what_is_awaited(*, bridged: bool) -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def function(texts: Sequence[str]) -> list[list[float]]:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return plain(texts)

    cancellation = Cancellation()
    current_cancellation.set(cancellation)
    calling_loop.set(asyncio.get_running_loop() if bridged else None)
    work = asyncio.create_task(asyncio.to_thread(embed_checked, CallableEmbedder(function, "m"), ["a"], "query"))
    assert await asyncio.to_thread(started.wait, 10)
    cancellation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 10)
    assert await asyncio.to_thread(cancelled.wait, 10)


async def test_a_call_that_was_off_before_it_began() -> None:
    asked: list[Any] = []

    async def function(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return plain(texts)

    cancellation = Cancellation()
    cancellation.cancel()
    current_cancellation.set(cancellation)
    calling_loop.set(asyncio.get_running_loop())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.to_thread(embed_checked, CallableEmbedder(function, "m"), ["a"], "query"), 10)
    assert asked == []


def test_a_closed_loop_is_a_failure_of_the_embedder() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    token = calling_loop.set(loop)
    try:
        with pytest.raises(EmbedderUnreachableError, match="closed"):
            embed_checked(CallableEmbedder(later, "m"), ["a"], "query")
    finally:
        calling_loop.reset(token)


async def test_a_coroutine_cancelled_by_others_is_a_failure_of_the_embedder() -> None:
    async def function(texts: Sequence[str]) -> list[list[float]]:
        raise asyncio.CancelledError

    calling_loop.set(asyncio.get_running_loop())
    with pytest.raises(EmbedderUnreachableError):
        await asyncio.to_thread(embed_checked, CallableEmbedder(function, "m"), ["a"], "query")


def test_kind_is_told_to_who_takes_it() -> None:
    told: list[Any] = []

    def takes(texts: Sequence[str], *, kind: str) -> list[list[float]]:
        told.append((texts, kind))
        return plain(texts)

    def optional(texts: Sequence[str], kind: str = "document") -> list[list[float]]:
        told.append((texts, kind))
        return plain(texts)

    for function in (takes, optional):
        CallableEmbedder(function, "m").embed(("a",), "query")
    assert told == [(["a"], "query")] * 2


def test_nothing_happens_at_construction() -> None:
    calls: list[Any] = []
    embedder = CallableEmbedder(calls.append, "m", dimension=3)
    assert (embedder.fingerprint, embedder.dimension, calls) == ("callable:m", 3, [])


def test_stating_the_dimension_later_keeps_the_fingerprint() -> None:
    assert CallableEmbedder(plain, "m", dimension=2).fingerprint == CallableEmbedder(plain, "m").fingerprint
    assert CallableEmbedder(plain, "m").dimension is None
    assert CallableEmbedder(plain, "m").fingerprint != CallableEmbedder(plain, "n").fingerprint


@pytest.mark.parametrize("function", [7, "f", None, lambda: None, lambda texts, model: None, Refused()])
def test_a_function_that_cannot_be_called_so_is_refused(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="function must"):
        CallableEmbedder(function, "m")


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_a_name_is_needed(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="name must be a text that names the model"):
        CallableEmbedder(plain, name)


@pytest.mark.parametrize("dimension", [0, -1, 2.0, True, "2"])
def test_a_dimension_is_a_whole_number(dimension: Any) -> None:
    with pytest.raises(ConfigurationError, match="dimension must be a whole number"):
        CallableEmbedder(plain, "m", dimension=dimension)
