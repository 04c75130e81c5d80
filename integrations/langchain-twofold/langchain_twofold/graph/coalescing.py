"""Many single calls of one tick of an event loop as one batch: one transaction for all of them."""

from __future__ import annotations

import asyncio
import marshal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from langgraph.store.base import Op

from langchain_twofold.graph.operations import Asked

__all__ = ["Coalescer"]

Translate: TypeAlias = Callable[[Op], Asked]
Run: TypeAlias = Callable[[Sequence[Asked]], Awaitable[Sequence[Any]]]
Waiting: TypeAlias = dict[asyncio.Future[Any], Asked]
"""Who waits, and for what, in order."""


class Coalescer:
    """Gathers single operations and runs them together.

    Writes go one batch after the other, in the order they were asked for. Reads wait for no write. An operation that
    fails fails alone. Whoever is cancelled while waiting is left out.

    Args:
        translate: says what an operation comes to, or refuses it.
        run: carries out a batch, all of it or nothing.
    """

    def __init__(self, translate: Translate, run: Run) -> None:
        self._translate: Final = translate
        self._run: Final = run
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    def submit(self, op: Op) -> asyncio.Future[Any]:
        """The result of ``op``, run with whatever else is asked for in this tick; for the running loop.

        Raises:
            ValueError: ``op`` cannot be carried out.
        """
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues.setdefault(loop, _Queue(self._translate, self._run))
        return queue.put(op, loop)


class _Queue:
    """What waits on one event loop."""

    def __init__(self, translate: Translate, run: Run) -> None:
        self._translate = translate
        self._run = run
        self._asked: Waiting = {}
        self._translated: dict[bytes, Asked] = {}
        """What was asked for in this tick, by :func:`_spelled`."""
        self._writes: Waiting = {}
        self._writer: asyncio.Task[None] | None = None
        self._readers: set[asyncio.Task[None]] = set()

    def put(self, op: Op, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
        spelled = _spelled(op)
        asked = self._translated.get(spelled)
        if asked is None:
            asked = self._translate(op)
            if spelled:
                self._translated[spelled] = asked
        if not self._asked:
            loop.call_soon(self._flush)
        future = loop.create_future()
        self._asked[future] = asked
        return future

    def _flush(self) -> None:
        reads: Waiting = {}
        for future, asked in self._asked.items():
            (reads if asked.written is None else self._writes)[future] = asked
        self._asked, self._translated = {}, {}
        if reads:
            reader = asyncio.ensure_future(self._carry_out(reads))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        if self._writes and (self._writer is None or self._writer.done()):
            self._writer = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._writes:
            writes, self._writes = self._writes, {}
            await self._carry_out(writes)

    async def _carry_out(self, batch: Waiting) -> None:
        wanted = {future: asked for future, asked in batch.items() if not future.done()}
        try:
            results = await self._run(list(wanted.values()))
        except asyncio.CancelledError:
            for future in wanted:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is theirs who asked
            if len(wanted) > 1:  # nothing of it was done: find out whose it is
                for future, asked in wanted.items():
                    await self._carry_out({future: asked})
            for future in wanted:
                if not future.done():
                    future.set_exception(error)
        else:
            for future, result in zip(wanted, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _spelled(op: Op) -> bytes:
    """The same for operations that ask for the same; empty for one that holds more than plain values.

    ``==`` would not do, for to it 1 is True, nor a text, which an object may make as it likes.
    """
    try:
        return marshal.dumps((type(op).__name__, *op))
    except ValueError:
        return b""
