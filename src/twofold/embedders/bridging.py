"""Running an async embedder from the synchronous core.

The async twins of the store run the synchronous core in a worker thread. They say here which event loop the caller
is on, so that an async embedder runs on that loop, where its clients and connections live.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from twofold.cancellation import current_cancellation
from twofold.errors import ConfigurationError

__all__ = ["blocks_a_loop", "calling_loop", "run_apart", "run_awaitable", "runs_a_loop"]

T = TypeVar("T")

calling_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("twofold_calling_loop", default=None)
"""The caller's running event loop, set in the worker thread that its call runs in; None in a synchronous call."""

blocks_a_loop: ContextVar[bool] = ContextVar("twofold_blocks_a_loop", default=False)
"""Set in a worker thread whose result is waited for on a thread that runs an event loop, so that the loop stands."""

_CALLED_OFF = "called off while the embedder was asked"


def run_awaitable(make: Callable[[], Awaitable[T]], what: str) -> T:
    """Wait, in synchronous code, for what ``make()`` gives.

    On the caller's loop if :data:`calling_loop` names it; else, if this thread runs no loop, on a new one. The
    current :class:`~twofold.cancellation.Cancellation` cancels it.

    Args:
        make: makes the awaitable; called on the thread of the loop that it then runs on.
        what: what it is, as the error calls it.

    Raises:
        ConfigurationError: this thread, or one that waits for it, runs a loop, which waiting here would block.
        asyncio.CancelledError: the call was called off, before or while it waited.
    """

    async def awaited() -> T:
        return await make()

    if runs_a_loop() or blocks_a_loop.get():
        raise ConfigurationError(
            f"{what} is async and this thread runs an event loop, which waiting here would block; "
            "call the async method instead, e.g. `await store.asearch(...)` for `store.search(...)`"
        )
    cancellation = current_cancellation.get()
    if cancellation is not None and cancellation.cancelled:
        raise asyncio.CancelledError(_CALLED_OFF)
    loop = calling_loop.get()
    work = awaited()
    if loop is None:
        return asyncio.run(_cancellable(work))
    try:
        future = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError:  # the caller's loop was closed meanwhile
        work.close()
        raise
    return _wait(future)


def run_apart(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Wait, in synchronous code, for what ``make()`` gives on a loop of its own, also where this thread runs one.

    For what keeps nothing from one call to the next, and so has no need of the caller's loop. The current
    :class:`~twofold.cancellation.Cancellation` cancels it.

    Raises:
        asyncio.CancelledError: the call was called off while it waited.
    """
    if not runs_a_loop():
        return asyncio.run(_cancellable(make()))
    with concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="twofold-embedder") as threads:
        return threads.submit(copy_context().run, lambda: asyncio.run(_cancellable(make()))).result()


def _wait(future: concurrent.futures.Future[T]) -> T:
    """The result of what runs on another thread's loop."""
    cancellation = current_cancellation.get()
    with nullcontext() if cancellation is None else cancellation.calling(_canceller(future)):
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if cancellation is not None and cancellation.cancelled:
                raise asyncio.CancelledError(_CALLED_OFF) from None
            raise
        except BaseException:
            future.cancel()  # interrupted while waiting: nobody is left to take the answer
            raise


def _canceller(future: concurrent.futures.Future[Any]) -> Callable[[], None]:
    def cancel() -> None:
        future.cancel()

    return cancel


async def _cancellable(work: Coroutine[Any, Any, T]) -> T:
    """``work`` in a task of this loop, cancelled by whichever thread calls the current work off."""
    cancellation = current_cancellation.get()
    if cancellation is None:
        return await work
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with cancellation.calling(cancel):
        return await task


def runs_a_loop() -> bool:
    """Whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
