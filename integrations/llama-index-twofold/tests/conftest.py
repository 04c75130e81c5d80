"""Stores for the tests of llama-index-twofold."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold.testing import FakeEmbedder, FlakyEmbedder, TableEmbedder
from twofold.testing.patience import patient_embedders

TABLE = {
    "alpha apple": [1.0, 0.0, 0.0],
    "beta banana": [0.0, 1.0, 0.0],
    "gamma grape": [0.0, 0.0, 1.0],
    "question": [0.6, 0.8, 0.0],
    "answer one": [0.0, 0.2, 1.0],
    "answer two": [0.0, 0.0, 1.0],
    "minus": [-1.0, 0.0, 0.0],
    "plus": [1.0, 0.0, 0.0],
}
"""What the embedder of ``fruit`` knows."""
FRUIT = ("alpha apple", "beta banana", "gamma grape")


@pytest.fixture(scope="session", autouse=True)
def _patient_embedders() -> Iterator[None]:
    with patient_embedders():
        yield


class GatedEmbedder(FakeEmbedder):
    """Waits in every query until the test opens the gate; ``in_time`` says whether it did within a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.in_time: list[bool] = []

    def embed(self, texts: Any, kind: Any) -> Any:
        if kind == "query":
            self.entered.set()
            self.in_time.append(self.gate.wait(60))
        return super().embed(texts, kind)


@pytest.fixture
def gated() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.set()


@pytest.fixture
def open_store() -> Iterator[Callable[..., twofold.HybridStore]]:
    """``twofold.open`` that is closed after the test; in memory, with the fake embedder, unless told otherwise."""
    opened: list[twofold.HybridStore] = []

    def make(path: Any = ":memory:", embedder: Any = "fake", **options: Any) -> twofold.HybridStore:
        store = twofold.open(path, embedder=FakeEmbedder() if embedder == "fake" else embedder, **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def fruit(open_store: Callable[..., twofold.HybridStore]) -> twofold.HybridStore:
    """Three records, whose vectors are the axes, with their first words as ids."""
    store = open_store(embedder=FlakyEmbedder(TableEmbedder(TABLE)))
    store.add_many([{"text": text, "id": text.split()[0]} for text in FRUIT])
    return store


class Recorder(BaseEventHandler):
    """Notes what it is told."""

    seen: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.seen.append(event)

    def of(self, *kinds: type[Any]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kinds)]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """What LlamaIndex's instrumentation is told during the test."""
    handler, root = Recorder(), get_dispatcher()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


class CannedLLM(MockLLM):
    """Answers what it was given, one a call, and then "yes"; an answer that is a dict calls the tool of that name.

    ``shown`` are the messages that it was called with.
    """

    answers: list[Any] = []  # noqa: RUF012 - pydantic copies it
    shown: list[list[ChatMessage]] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    async def astream_chat_with_tools(
        self, tools: Sequence[Any], chat_history: list[ChatMessage], **kwargs: Any
    ) -> AsyncIterator[ChatResponse]:
        self.shown.append([message.model_copy(deep=True) for message in chat_history])
        answer = self.answers.pop(0) if self.answers else "yes"
        content = "" if isinstance(answer, dict) else answer
        message = ChatMessage(role="assistant", content=content, additional_kwargs={"calls": answer})

        async def stream() -> AsyncIterator[ChatResponse]:
            yield ChatResponse(message=message, delta=content)

        return stream()

    def get_tool_calls_from_response(self, response: ChatResponse, **kwargs: Any) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("calls")
        if not isinstance(calls, dict):
            return []
        return [ToolSelection(tool_id=name, tool_name=name, tool_kwargs=arguments) for name, arguments in calls.items()]

    @property
    def system(self) -> str:
        """What the system messages of the last call said."""
        return "\n".join(str(each.content) for each in self.shown[-1] if each.role == "system")


@pytest.fixture
def canned() -> CannedLLM:
    return CannedLLM()


class SwitchedModel(BaseEmbedding):
    """An embedding model with switches: ``down`` has it raise, and with the gate closed it waits until that opens."""

    model_name: str = "switched"
    down: bool = Field(default=False, exclude=True)  # not of the model, as a pipeline's cache sees it
    asked: list[str] = Field(default_factory=list, exclude=True)
    _fake: FakeEmbedder = PrivateAttr(default_factory=FakeEmbedder)
    _gate: threading.Event = PrivateAttr(default_factory=threading.Event)
    _entered: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def gate(self) -> threading.Event:
        return self._gate

    @property
    def entered(self) -> threading.Event:
        return self._entered

    def _embedded(self, text: str) -> list[float]:
        self.asked.append(text)
        self._entered.set()
        if not self._gate.wait(60):
            raise TimeoutError("the test never opened the gate")
        if self.down:
            raise ConnectionError("switched off by the test")
        return self._fake.embed([text], "document")[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embedded(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embedded(query)  # as many do: on the loop

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embedded(text)


@pytest.fixture
def model() -> Iterator[SwitchedModel]:
    """A LlamaIndex embedding model that is well, its gate open."""
    switched = SwitchedModel()
    switched.gate.set()
    yield switched
    switched.gate.set()


@pytest.fixture
def make_vectors() -> Iterator[Callable[..., TwofoldVectorStore]]:
    """``TwofoldVectorStore`` that is closed after the test; in memory unless told otherwise."""
    made: list[TwofoldVectorStore] = []

    def make(store: Any = ":memory:", **options: Any) -> TwofoldVectorStore:
        made.append(TwofoldVectorStore(store, **options))
        return made[-1]

    yield make
    for vector_store in made:
        vector_store.close()


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Awaitable[Any]]:
    """``await call(object, "add", ...)``: the method, or its async twin."""

    async def sync(on: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(on, name)(*args, **kwargs)

    async def twin(on: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return await getattr(on, "async_add" if name == "add" else f"a{name}")(*args, **kwargs)

    return sync if request.param == "sync" else twin


ORCHARD: dict[str, tuple[str, list[float]]] = {
    "apple": ("red apple pie", [1.0, 0.0, 0.0]),
    "pear": ("green pear", [0.8, 0.6, 0.0]),
    "plum": ("blue plum jam", [0.0, 1.0, 0.0]),
    "stone": ("grey stone", [0.0, 0.0, 1.0]),
    "anti": ("white apple", [-1.0, 0.0, 0.0]),
}
"""By id, text and vector; ``pear`` lies between ``apple`` and ``plum``."""


@pytest.fixture
def orchard(make_vectors: Callable[..., TwofoldVectorStore]) -> TwofoldVectorStore:
    """Five nodes with vectors that the index brings; of document ``garden``, but the stone and the white apple."""
    vectors = make_vectors()
    nodes = []
    for place, (id_, (text, embedding)) in enumerate(ORCHARD.items()):
        made = TextNode(id_=id_, text=text, embedding=embedding)
        made.metadata = {"n": place}
        made.excluded_embed_metadata_keys = ["n"]
        if place < 3:
            made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="garden")
        nodes.append(made)
    vectors.add(nodes)
    return vectors


@pytest.fixture
def grown() -> dict[str, tuple[str, list[float]]]:
    """What the nodes of ``orchard`` are: by id, text and vector."""
    return dict(ORCHARD)
