"""Many single calls of one tick of an event loop as one batch: one transaction for all of them."""

from __future__ import annotations

import asyncio
import marshal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary, ref

from langgraph.store.base import Op

from langchain_twofold.graph.operations import Asked

__all__ = ["Coalescer"]

Translate: TypeAlias = Callable[[Op], Asked]
Run: TypeAlias = Callable[[Sequence[Asked]], Awaitable[Sequence[Any]]]


class _Waiting:
    """Who waits, and for what, in order. Two lists, since thousands of pairs would keep the garbage collector busy."""

    __slots__ = ("asked", "futures")

    def __init__(self, futures: list[asyncio.Future[Any]], asked: list[Asked]) -> None:
        self.futures = futures
        self.asked = asked

    def __bool__(self) -> bool:
        return bool(self.futures)

    def still(self) -> _Waiting:
        """Those that were not cancelled."""
        if not any(future.done() for future in self.futures):
            return self
        kept = [place for place, future in enumerate(self.futures) if not future.done()]
        return _Waiting([self.futures[place] for place in kept], [self.asked[place] for place in kept])


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
        self._latest: tuple[Callable[[], asyncio.AbstractEventLoop | None], _Queue] = (
            lambda: None,
            _Queue(translate, run),
        )
        """The loop that asked last, if it is still there, and its queue: nearly always the one that asks next."""

    def submit(self, op: Op) -> asyncio.Future[Any]:
        """The result of ``op``, run with whatever else is asked for in this tick; for the running loop.

        Raises:
            ValueError: ``op`` cannot be carried out.
        """
        loop = asyncio.get_running_loop()
        running, queue = self._latest
        if running() is not loop:
            queue = self._queue_of(loop)
        return queue.put(op, loop)

    def _queue_of(self, loop: asyncio.AbstractEventLoop) -> _Queue:
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues.setdefault(loop, _Queue(self._translate, self._run))
        self._latest = ref(loop), queue
        return queue


class _Queue:
    """What waits on one event loop."""

    def __init__(self, translate: Translate, run: Run) -> None:
        self._translate = translate
        self._run = run
        self._translated: dict[bytes, Asked] = {}
        """What was asked for in this tick, by :func:`_spelled`."""
        self._will_flush = False
        self._reads, self._writes = _Waiting([], []), _Waiting([], [])
        self._writer: asyncio.Task[None] | None = None
        self._readers: set[asyncio.Task[None]] = set()

    def put(self, op: Op, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
        spelled = _spelled(op)
        asked = self._translated.get(spelled)
        if asked is None:
            asked = self._translate(op)
            if spelled:
                self._translated[spelled] = asked
        if not self._will_flush:
            self._will_flush = True
            loop.call_soon(self._flush)
        future = loop.create_future()
        waiting = self._reads if asked.written is None else self._writes
        waiting.futures.append(future)
        waiting.asked.append(asked)
        return future

    def _flush(self) -> None:
        self._will_flush = False
        self._translated = {}
        if self._reads:
            reads, self._reads = self._reads, _Waiting([], [])
            reader = asyncio.ensure_future(self._carry_out(reads))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        if self._writes and self._writer is None:
            self._writer = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        try:
            while self._writes:
                writes, self._writes = self._writes, _Waiting([], [])
                await self._carry_out(writes)
        finally:
            self._writer = None  # it knows the loop, which could else not be forgotten

    async def _carry_out(self, batch: _Waiting) -> None:
        wanted = batch.still()
        futures = wanted.futures
        try:
            results = await self._run(wanted.asked)
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is theirs who asked
            if len(futures) > 1:  # nothing of it was done: find out whose it is
                for future, asked in zip(futures, wanted.asked, strict=True):
                    await self._carry_out(_Waiting([future], [asked]))
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        else:
            for future, result in zip(futures, results, strict=True):
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
