"""Many single calls of one tick of an event loop as one batch: one transaction for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from langgraph.store.base import Op, PutOp

__all__ = ["Coalescer"]

Run: TypeAlias = Callable[[Sequence[Op]], Awaitable[Sequence[Any]]]


class _Waiting(NamedTuple):
    op: Op
    future: asyncio.Future[Any]


class Coalescer:
    """Gathers single operations and runs them together.

    Writes go one batch after the other, in the order they were asked for. Reads wait for no write. An operation that
    fails fails alone. Whoever is cancelled while waiting is left out.

    Args:
        run: carries out a batch, all of it or nothing.
    """

    def __init__(self, run: Run) -> None:
        self._run: Final = run
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def submit(self, op: Op) -> Any:
        """The result of ``op``, run with whatever else is asked for in this tick."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues.setdefault(loop, _Queue(self._run))
        return await queue.put(op)


class _Queue:
    """What waits on one event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._asked: list[_Waiting] = []
        self._writes: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._readers: set[asyncio.Task[None]] = set()

    def put(self, op: Op) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._flush)
        waiting = _Waiting(op, loop.create_future())
        self._asked.append(waiting)
        return waiting.future

    def _flush(self) -> None:
        asked, self._asked = self._asked, []
        reads = [each for each in asked if not isinstance(each.op, PutOp)]
        self._writes += [each for each in asked if isinstance(each.op, PutOp)]
        if reads:
            reader = asyncio.ensure_future(self._carry_out(reads))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        if self._writes and (self._writer is None or self._writer.done()):
            self._writer = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._writes:
            writes, self._writes = self._writes, []
            await self._carry_out(writes)

    async def _carry_out(self, batch: list[_Waiting]) -> None:
        wanted = [each for each in batch if not each.future.done()]
        try:
            results = await self._run([each.op for each in wanted])
        except asyncio.CancelledError:
            for each in wanted:
                each.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is theirs who asked
            if len(wanted) > 1:  # nothing of it was done: find out whose it is
                for each in wanted:
                    await self._carry_out([each])
            elif wanted and not wanted[0].future.done():
                wanted[0].future.set_exception(error)
        else:
            for each, result in zip(wanted, results, strict=True):
                if not each.future.done():
                    each.future.set_result(result)
