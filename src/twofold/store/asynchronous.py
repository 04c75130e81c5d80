"""The async twins: one implementation, run in a worker thread.

A twin leaves the event loop free, lets an ``async def`` embedder run on the caller's loop, and when it is cancelled
interrupts the query that runs for it; a write that has begun is finished.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from twofold.cancellation import Cancellation, current_cancellation
from twofold.embedders.bridging import calling_loop

__all__ = ["in_thread"]

_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def in_thread(
    method: Callable[Concatenate[_Self, _P], _R],
) -> Callable[Concatenate[_Self, _P], Coroutine[Any, Any, _R]]:
    """The async twin of ``method``: same arguments, result and errors."""

    @functools.wraps(method)
    async def twin(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        cancellation = Cancellation()
        outer_loop, outer_cancellation = (
            calling_loop.set(asyncio.get_running_loop()),
            current_cancellation.set(cancellation),
        )
        try:
            work = asyncio.to_thread(method, self, *args, **kwargs)  # copies the context as it is now
            return await work
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        finally:
            calling_loop.reset(outer_loop)
            current_cancellation.reset(outer_cancellation)

    twin.__name__ = f"a{method.__name__}"
    twin.__qualname__ = twin.__qualname__.replace(method.__name__, twin.__name__)
    twin.__doc__ = f"Async twin of :meth:`{method.__name__}`."
    return twin
