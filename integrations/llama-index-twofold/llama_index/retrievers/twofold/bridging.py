"""One body for a sync method and its async twin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

__all__ = ["at_once", "finished", "in_thread"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def finished(method: Callable[_P, _R]) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """``method`` with the shape of its async twin; awaiting it never waits."""

    async def twin(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return method(*args, **kwargs)

    return twin


def in_thread(method: Callable[_P, _R]) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """The async twin of ``method``, which runs in a thread and leaves the event loop free."""

    async def twin(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await asyncio.to_thread(method, *args, **kwargs)

    return twin


def at_once(work: Coroutine[Any, Any, _R]) -> _R:
    """The result of a coroutine that never waits; needs no event loop and disturbs none."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _R = end.value
        return result
    work.close()
    raise RuntimeError("this coroutine waits for something")
