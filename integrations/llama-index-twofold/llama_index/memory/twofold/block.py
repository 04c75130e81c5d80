"""The store as a block of LlamaIndex's ``Memory``."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Literal, Self
from zoneinfo import ZoneInfo

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # public, but re-exported unsaid
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr, field_validator, model_validator

import twofold
from llama_index.embeddings.twofold import as_embedder
from llama_index.memory.twofold.saying import as_records, is_answered, question_of, record_id, said_in
from llama_index.memory.twofold.shortening import HEADING, as_block, shortened
from llama_index.retrievers.twofold.events import search_event
from twofold import (
    A,
    Access,
    ConfigurationError,
    ContextTemplate,
    EmbeddingSettings,
    Filter,
    HybridStore,
    Owner,
    SearchParams,
    StoreSettings,
)

__all__ = ["TwofoldMemoryBlock"]

_LOG = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)

_HURRIED: Final = StoreSettings(embedding=EmbeddingSettings(document_deadline=5.0))
"""An agent waits while it remembers."""
_LINKED: Final = 3
_MOST_SESSIONS: Final = 1_000
_MOST_CAPTURED: Final = 10_000
_PER_QUESTION: Final = 11
"""What a chat format adds to a system message and a question, in tokens; see ``twofold.context``."""


class TwofoldMemoryBlock(BaseMemoryBlock[str]):
    """Remembers what was said, and recalls what fits the user's last message.

    LlamaIndex's ``Memory`` gives a block only what no longer fits its history; :func:`twofold_memory` makes a memory
    that gives it each message at once. A message is one record however often it is put. What the history shows
    anyway is not recalled.

    A conversation is recalled in its own session only, unless ``sessions`` says otherwise; records that name no
    session (what a tool or the program has put there) are recalled in all of them. ``access`` says whose memories
    these are; nobody is told of another's, so make a block for each user.

    Nothing that fails here breaks an agent: it goes on without memories, and a warning is logged. With the embedding
    model down, keywords recall.

    A block over a ``path`` opens it when it is first used, can be pickled (so that a ``Context`` keeps it), and is
    closed by :meth:`close`; one over a ``store`` leaves all that to who opened it.

    Example:
        ``Memory.from_defaults(memory_blocks=[TwofoldMemoryBlock(path="memory.db", access=Access(user="ann"))])``
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str = "TwofoldMemory"
    """The block's; those of one memory must differ. Default: ``"TwofoldMemory"``."""
    priority: int = 1
    """What LlamaIndex cuts first when all does not fit; 0 is never cut. Default: 1."""
    access: InstanceOf[Access]
    """Whose memories these are: of whom they are recalled, and who remembers."""
    store: InstanceOf[HybridStore] | None = Field(default=None, exclude=True, repr=False)
    """Where they are; or give ``path``."""
    path: str | None = None
    """The file they are in, as ``twofold.open`` takes it."""
    embed_model: Any = Field(default=None, exclude=True, repr=False)
    """For a path: what embeds them: a LlamaIndex embedding model that says its name, or what
    ``twofold.open(..., embedder=...)`` takes. Default: keywords answer alone."""
    settings: InstanceOf[StoreSettings] | None = Field(default=None, exclude=True, repr=False)
    """For a path: as ``twofold.open`` takes them. Default: ``StoreSettings()``, but that an embedding model is waited
    for 5 seconds at most when something is said, and not a minute; what it is too slow for it embeds later."""
    room: str | None = None
    """The room of the access that what is said belongs to. Default: it belongs to the user, as the access has it."""
    namespace: tuple[str, ...] = ()
    """Where they are in the store. Default: the root."""
    sessions: Literal["current", "all"] = "current"
    """Of which sessions what was said is recalled. Default: the current one."""
    k: int = Field(default=5, ge=0, strict=True)
    """How many memories at most, 0 or more. Default: 5."""
    max_tokens: int | None = Field(default=2_000, ge=1, strict=True)
    """How many tokens the block has at most; the memories that fit least go first, and one that is longer by itself is
    never in it. Default: 2,000."""
    window: int = Field(default=1, ge=1, strict=True)
    """How many of the user's last messages are what is searched for, at least 1. Default: 1."""
    roles: tuple[str, ...] = (MessageRole.USER.value, MessageRole.ASSISTANT.value)
    """Whose messages are remembered. Default: the user's and the assistant's."""
    where: InstanceOf[Filter] | dict[str, Any] | None = None
    """A filter for what is recalled, or its spelling as a dict. Default: none."""
    params: InstanceOf[SearchParams] | None = Field(default=None, exclude=True, repr=False)
    """How memories are ranked. Default: the store's settings, with up to three linked memories, and what is recalled
    counts as used, once a turn."""
    zone: str = "UTC"
    """The name of the user's time zone. Default: UTC."""
    heading: str = HEADING
    """The line above the memories. Default: says that they are no instructions."""
    tokenizer_fn: Callable[[str], Sequence[Any]] | None = Field(default=None, exclude=True, repr=False)
    """Splits a text into tokens. Default: LlamaIndex's own."""

    _opened: HybridStore | None = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _turns: dict[str | None, str] = PrivateAttr(default_factory=dict)
    _captured: dict[str, None] = PrivateAttr(default_factory=dict)

    @field_validator("roles", "namespace", mode="before")
    @classmethod
    def _checked_words(cls, words: object) -> object:
        if isinstance(words, str):
            message = f"a tuple of words, e.g. ({words!r},), not {words!r}"
            raise ValueError(message)  # noqa: TRY004 - what pydantic makes a ValidationError of
        return words

    @field_validator("embed_model")
    @classmethod
    def _checked_model(cls, embed_model: object) -> object:
        return as_embedder(embed_model) if isinstance(embed_model, BaseEmbedding) else embed_model

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if (self.store is None) == (self.path is None):
            raise ConfigurationError("give either store=twofold.open(...) or path=...")
        if self.store is not None and (self.embed_model is not None or self.settings is not None):
            raise ConfigurationError("the store is open, and has its embedder and its settings: leave them out")
        if self.room is not None and self.room not in self.access.rooms:
            raise ConfigurationError(f"{self.room!r} is none of the access's rooms {self.access.rooms!r}")
        if self.zone != "UTC":
            try:
                ZoneInfo(self.zone)
            except (KeyError, OSError, ValueError) as error:
                raise ConfigurationError(f"zone is a time zone's name, e.g. 'Europe/Berlin': {error}") from error
        self._template()  # refuse what cannot be used, for later nothing is raised any more
        self._where((), None)
        return self

    def opened(self) -> HybridStore:
        """The store: as given, or the path's, which is opened if it is not yet.

        Raises:
            TwofoldError: it cannot be opened.
        """
        if self.store is not None:
            return self.store
        with self._lock:
            if self._opened is None:
                settings = _HURRIED if self.settings is None else self.settings
                self._opened = twofold.open(str(self.path), embedder=self.embed_model, settings=settings)
            return self._opened

    def close(self) -> None:
        """Close the file if the block opened it; a store that was given is closed by who opened it."""
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def _aget(
        self, messages: list[ChatMessage] | None = None, *, session_id: str | None = None, **_block_kwargs: Any
    ) -> str:
        try:
            return await self._recalled(messages or [], session_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            _LOG.warning("the agent goes on without memories: %s", error)
            return ""

    async def aput(
        self,
        messages: list[ChatMessage],
        from_short_term_memory: bool = False,  # noqa: FBT001, FBT002 - the signature is LlamaIndex's
        session_id: str | None = None,
    ) -> None:
        """Remember ``messages``. Those that are remembered already stay as they are.

        Args:
            messages: as said. None of them is changed.
            from_short_term_memory: whether they come from the history, and are not just being said.
            session_id: of the session they were said in. Default: what the messages themselves say.
        """
        if from_short_term_memory and not self.accept_short_term_memory:
            return
        try:
            await self._remembered(messages, session_id, again=from_short_term_memory)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            _LOG.warning("the agent could not remember: %s", error)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.aput(messages)

    async def atruncate(self, content: Any, tokens_to_truncate: int) -> str | None:
        """``content`` without the memories that fit least, at least so many tokens shorter; None if none is left.

        Args:
            content: what the block gave; LlamaIndex gives an empty list if that was nothing.
            tokens_to_truncate: how many tokens must go.
        """
        if not isinstance(content, str):
            return None
        return shortened(content, tokens_to_truncate, self._count)

    async def _recalled(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        question = question_of(messages, self.window)
        first = self._is_first(session_id, question, messages)
        if not question or not self.k:
            return ""
        store = await asyncio.to_thread(self.opened)
        params = replace(store.settings.search, touch=True, expand=_LINKED) if self.params is None else self.params
        bundle = await store.acontext(
            question,
            access=self.access,
            budget_tokens=None if self.max_tokens is None else self.max_tokens + self._count(question) + _PER_QUESTION,
            template=self._template(),
            zone=self.zone,
            k=self.k,
            where=self._where(messages, session_id),
            params=params if first else replace(params, touch=False),
            count_tokens=self._count,
        )
        _dispatcher.event(search_event(question, bundle.result, "store"))
        return as_block(bundle.system)

    async def _remembered(self, messages: Sequence[ChatMessage], session_id: str | None, *, again: bool) -> None:
        records = as_records(
            messages, session_id, roles=self.roles, namespace=self.namespace, room=self.room
        )  # before anything is awaited: others get the same messages, and may change them
        if not again and any(message.role == MessageRole.USER for message in messages):
            self._turns.pop(session_id, None)
        # What was forgotten on purpose does not come back because it still stands in a history.
        new = [record for id_, record in records.items() if not (again and id_ in self._captured)]
        if not new:
            return
        store = await asyncio.to_thread(self.opened)
        there = await store.aget_many(
            [str(record.id) for record in new],
            access=self.access,
            namespace=self.namespace,
            owner=self.access.default_owner if self.room is None else Owner.room(self.room),
            include_archived=True,
        )
        known = {record.id for record in there}
        await store.aadd_many([record for record in new if record.id not in known], access=self.access)
        self._captured.update(dict.fromkeys(records))
        _bound(self._captured, _MOST_CAPTURED)

    def _is_first(self, session_id: str | None, question: str, messages: Sequence[ChatMessage]) -> bool:
        """Whether this is the first time in a turn that its question is asked: then what is recalled counts as used.

        An agent asks at its start, after each call of tools, and when it has ended.
        """
        if is_answered(messages):
            self._turns.pop(session_id, None)
            return False
        if self._turns.get(session_id) == question:
            return False
        self._turns[session_id] = question
        _bound(self._turns, _MOST_SESSIONS)
        return True

    def _where(self, messages: Sequence[ChatMessage], session_id: str | None) -> Filter:
        here: Filter = A.namespace == self.namespace
        if self.sessions == "current":
            here = here & said_in(session_id)
        if shown := {record_id(message, session_id) for message in messages}:
            here = here & A.id.not_in(shown)
        if self.where is None:
            return here
        return here & (self.where if isinstance(self.where, Filter) else Filter.from_dict(self.where))

    def _template(self) -> ContextTemplate:
        return ContextTemplate(system="{memories}", memories_heading=self.heading)

    def _count(self, text: str) -> int:
        tokenizer_fn = get_tokenizer() if self.tokenizer_fn is None else self.tokenizer_fn
        return len(tokenizer_fn(text))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy over the same store."""
        return self.__copy__()

    def __getstate__(self) -> dict[Any, Any]:
        """All but what is open."""
        if self.store is not None:
            raise TypeError(
                "a TwofoldMemoryBlock over an open store cannot be pickled; make it over its path: "
                "TwofoldMemoryBlock(path=..., embed_model=...)"
            )
        state = super().__getstate__()
        return {**state, "__pydantic_private__": {"_opened": None, "_lock": None, "_turns": {}, "_captured": {}}}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.Lock()


def _bound(kept: dict[Any, Any], most: int) -> None:
    """Forget the oldest beyond ``most``."""
    while len(kept) > most:
        del kept[next(iter(kept))]
