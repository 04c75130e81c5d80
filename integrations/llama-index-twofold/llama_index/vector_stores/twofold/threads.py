"""The async twins: the one implementation, run in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from twofold.embedders import calling_loop

__all__ = ["in_thread"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


async def in_thread(method: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """What ``method`` gives, the event loop left free; an embedder that is async runs on that loop, where its
    connections are.

    A task that is cancelled stops waiting; what it has asked for is finished all the same.
    """
    outer = calling_loop.set(asyncio.get_running_loop())
    try:
        return await asyncio.to_thread(method, *args, **kwargs)
    finally:
        calling_loop.reset(outer)
