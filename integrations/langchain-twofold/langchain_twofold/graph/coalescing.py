"""Many single calls of one tick of an event loop as one batch: one transaction for all of them."""

from __future__ import annotations

import asyncio
import marshal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from operator import methodcaller
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary, ref

from langgraph.store.base import Op

from langchain_twofold.graph.operations import Asked

__all__ = ["Coalescer"]

Translate: TypeAlias = Callable[[Op], Asked]
Run: TypeAlias = Callable[[Sequence[Asked]], Awaitable[Sequence[Any]]]

_is_done: Final = methodcaller("done")


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
        if not any(map(_is_done, self.futures)):
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
            _Queue(run),
        )
        """The loop that asked last, if it is still there, and its queue: nearly always the one that asks next."""

    def submit(self, kind: Callable[..., Op], fields: tuple[Any, ...]) -> asyncio.Future[Any]:
        """The result of the operation ``kind(*fields)``, run with whatever else is asked for in this tick; for the
        running loop.

        Raises:
            ValueError: it cannot be carried out.
        """
        loop = asyncio.get_running_loop()
        running, queue = self._latest
        if running() is not loop:
            queue = self._queue_of(loop)
        try:  # ``==`` would not tell 1 from True, nor a text what may spell itself as it likes
            spelled = marshal.dumps(fields)
        except ValueError:  # it holds more than plain values
            asked = self._translate(kind(*fields))
        else:
            of_kind = queue.translated[kind]
            known = of_kind.get(spelled)
            if known is None:
                known = of_kind[spelled] = self._translate(kind(*fields))
            asked = known
        if not queue.will_flush:
            queue.flush_soon(loop)
        waiting = queue.reads if asked.written is None else queue.writes
        waiting.asked.append(asked)
        future = loop.create_future()
        waiting.futures.append(future)
        return future

    def _queue_of(self, loop: asyncio.AbstractEventLoop) -> _Queue:
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues.setdefault(loop, _Queue(self._run))
        self._latest = ref(loop), queue
        return queue


class _Queue:
    """What waits on one event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.translated: defaultdict[Callable[..., Op], dict[bytes, Asked]] = defaultdict(dict)
        """What was asked for in this tick, each once, by its kind and how it is spelled."""
        self.reads, self.writes = _Waiting([], []), _Waiting([], [])
        self.will_flush = False
        """Whether what waits is carried out at the end of this tick."""
        self._writer: asyncio.Task[None] | None = None
        self._readers: set[asyncio.Task[None]] = set()

    def flush_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Carry out what waits at the end of this tick."""
        self.will_flush = True
        loop.call_soon(self._flush)

    def _flush(self) -> None:
        self.will_flush = False
        self.translated.clear()
        if self.reads:
            reads, self.reads = self.reads, _Waiting([], [])
            reader = asyncio.ensure_future(self._carry_out(reads))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        if self.writes and self._writer is None:
            self._writer = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        try:
            while self.writes:
                writes, self.writes = self.writes, _Waiting([], [])
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
            cancelled = any(map(_is_done, futures))  # while the batch was run
            for future, result in zip(futures, results, strict=True):
                if not cancelled or not future.done():
                    future.set_result(result)
