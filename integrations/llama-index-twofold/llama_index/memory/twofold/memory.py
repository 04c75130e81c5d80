"""A ``Memory`` that keeps what is said when it is said."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, TypeVar, Unpack, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.memory.memory import DEFAULT_TOKEN_LIMIT
from llama_index.core.storage.chat_store.sql import MessageStatus, SQLAlchemyChatStore  # type: ignore[attr-defined]  # re-exported
from sqlalchemy.ext.asyncio import AsyncEngine

from llama_index.memory.twofold.block import TwofoldMemoryBlock
from twofold import Access, Filter, HybridStore, SearchParams, StoreSettings

__all__ = ["BlockOptions", "TwofoldMemory", "twofold_memory"]

_T = TypeVar("_T")


class BlockOptions(TypedDict, total=False):
    """What :func:`twofold_memory` takes of a :class:`TwofoldMemoryBlock`, where each is explained."""

    name: str
    description: str
    priority: int
    embed_model: Any
    settings: StoreSettings | None
    room: str | None
    namespace: tuple[str, ...]
    sessions: Any
    k: int
    max_tokens: int | None
    window: int
    roles: tuple[str, ...]
    where: Filter | dict[str, Any] | None
    params: SearchParams | None
    zone: str
    heading: str


class TwofoldMemory(Memory):
    """LlamaIndex's ``Memory``, whose twofold blocks get each message at once, and not only when the history overflows.

    Made like any other, by ``TwofoldMemory.from_defaults(memory_blocks=[...], ...)``, or by :func:`twofold_memory`.

    A task that is cancelled stops waiting; what it has begun to read or to write is ended all the same. (LlamaIndex's
    history in memory would be lost with its connection, which SQLAlchemy drops when it is broken off.)
    """

    @classmethod
    def class_name(cls) -> str:
        """Its name in dumps."""
        return "TwofoldMemory"

    async def aget(self, input: str | ChatMessage | None = None, **block_kwargs: Any) -> list[ChatMessage]:
        """The history with what is recalled; ``input``, a text or the user's message, is asked about too."""
        asked = input
        if isinstance(asked, ChatMessage):  # which LlamaIndex does not give to its blocks
            asked = asked.content if asked.role == MessageRole.USER else None
        return await _to_its_end(super().aget(input=asked, **block_kwargs))

    async def aput(self, message: ChatMessage) -> None:
        """Add a message to the history, and remember it."""

        async def put() -> None:
            await super(TwofoldMemory, self).aput(message)
            await self._capture([message])

        await _to_its_end(put())

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages to the history, and remember them."""
        if not messages:  # LlamaIndex's chat store fails on none
            return

        async def put() -> None:
            await super(TwofoldMemory, self).aput_messages(messages)
            await self._capture(messages)

        await _to_its_end(put())

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Set the history, and remember what is in it; what was remembered before and forgotten stays so."""

        async def put() -> None:
            await super(TwofoldMemory, self).aset(messages)
            await self._capture(messages, again=True)

        await _to_its_end(put())

    async def aget_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """The history as it is kept, without what is recalled."""
        return await _to_its_end(super().aget_all(status))

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Forget the history; what is remembered stays."""
        await _to_its_end(super().areset(status))

    def close(self) -> None:
        """Close the files that its twofold blocks opened; a store that was given is closed by who opened it."""
        for block in self.memory_blocks:
            if isinstance(block, TwofoldMemoryBlock):
                block.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is open; the history as far as it lies in memory."""
        kept = self.sql_store
        if not isinstance(kept, SQLAlchemyChatStore):
            return super().__getstate__()
        told = kept.model_dump()
        engine = kept._async_engine  # noqa: SLF001 - nothing else says which database it is
        if engine is not None and engine.url.database not in (None, "", ":memory:"):
            told["async_database_uri"] = engine.url.render_as_string(hide_password=False)
            told.pop("db_data", None)  # it is in that database
        twin = self.model_copy(update={"sql_store": SQLAlchemyChatStore(**told)})
        return super(TwofoldMemory, twin).__getstate__()

    async def _capture(self, messages: list[ChatMessage], *, again: bool = False) -> None:
        for block in self.memory_blocks:
            if isinstance(block, TwofoldMemoryBlock):
                await block.aput(messages, from_short_term_memory=again, session_id=self.session_id)


async def _to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """What ``work`` gives; if whoever waits for it is cancelled, it goes on."""
    return await asyncio.shield(asyncio.ensure_future(work))


def twofold_memory(
    source: HybridStore | str | PathLike[str],
    *,
    access: Access,
    session_id: str | None = None,
    token_limit: int = DEFAULT_TOKEN_LIMIT,
    tokenizer_fn: Callable[[str], list[Any]] | None = None,
    memory_blocks: Sequence[BaseMemoryBlock[Any]] = (),
    async_engine: AsyncEngine | None = None,
    async_database_uri: str | None = None,
    **block: Unpack[BlockOptions],
) -> TwofoldMemory:
    """A memory for an agent or a chat engine that recalls from a store, and keeps there what is said.

    ``agent.run(user_msg=..., memory=twofold_memory("memory.db", access=Access(user="ann"), session_id="monday"))``

    Args:
        source: an open store; or a path, which :meth:`TwofoldMemory.close` closes.
        access: whose memories these are. Make a memory for each user.
        session_id: the conversation's name. Default: a new one, so that nothing said in others is recalled unless
            ``sessions="all"``.
        token_limit: how many tokens history and memories have at most. Default: LlamaIndex's, 30,000.
        tokenizer_fn: splits a text into tokens. Default: LlamaIndex's own.
        memory_blocks: others, besides the one over ``source``, which is the first.
        async_engine: SQLAlchemy's, of the database that the history is in; LlamaIndex never disposes of one.
            Default: a new one for ``async_database_uri``.
        async_database_uri: where that database is, ``"sqlite+aiosqlite:///chat.db"`` say. The history of each user, and
            of each room, is a table of its own in it, so that nobody reads another's session of the same name.
            Default: in memory, so that the history ends with the process, and what was said in it is recalled only.
        block: options of that one.

    Raises:
        pydantic.ValidationError, ConfigurationError: an argument cannot be used.
    """
    where: dict[str, Any] = {"store": source} if isinstance(source, HybridStore) else {"path": fspath(source)}
    own = TwofoldMemoryBlock(access=access, tokenizer_fn=tokenizer_fn, **where, **block)
    made = TwofoldMemory.from_defaults(
        session_id=session_id,
        token_limit=token_limit,
        tokenizer_fn=tokenizer_fn,
        memory_blocks=[own, *memory_blocks],
        async_engine=async_engine,
        async_database_uri=async_database_uri,
        table_name=_history_of(access, own.room),
    )
    return cast("TwofoldMemory", made)


def _history_of(access: Access, room: str | None) -> str:
    """The table of the history; LlamaIndex tells histories in one table apart by the session's name alone."""
    spelled = json.dumps([access.user, room])
    return f"llama_index_memory_{hashlib.sha256(spelled.encode()).hexdigest()[:32]}"
