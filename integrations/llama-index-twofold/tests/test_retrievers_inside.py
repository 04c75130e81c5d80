"""``TwofoldRetriever`` inside of LlamaIndex: engines, fusion, postprocessors, instrumentation."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from llama_index.core.query_engine import RetrieverQueryEngine, TransformQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever, RouterRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool, ToolMetadata

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever, TwofoldSearchEvent
from twofold import Access, HybridStore, SearchParams
from twofold.testing import FlakyEmbedder

OpenStore = Callable[..., HybridStore]

needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss-cpu is not installed")


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def texts(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.text for each in found]


def test_events_are_seen_once(open_store: OpenStore, recorder: Any) -> None:
    """run-llama/llama_index#9114."""
    store = open_store()
    store.add("The deploy key.", id="x")
    store.add("Lunch is at noon.", id="y")
    TwofoldRetriever(store).retrieve("deploy")
    started, told, ended = recorder.of(RetrievalStartEvent, TwofoldSearchEvent, RetrievalEndEvent)
    assert started.str_or_query_bundle == ended.str_or_query_bundle == told.query_str == "deploy"
    assert told.ids == ids(ended.nodes) == ["x", "y"]
    assert told.legs == {"keyword": 1, "vector": 2}
    assert (told.degradations, told.vector_source) == ({}, "store")
    assert {"embed", "keyword", "vector", "fuse", "hydrate"} <= set(told.timings)
    assert told.class_name() == "TwofoldSearchEvent"
    assert told.model_dump()["ids"] == ["x", "y"]


async def test_degradations_are_told(open_store: OpenStore, recorder: Any) -> None:
    store = open_store(embedder=FlakyEmbedder(down=True))
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    assert texts(retriever.retrieve("deploy")) == texts(await retriever.aretrieve("deploy")) == ["The deploy key."]
    told = recorder.of(TwofoldSearchEvent)
    assert [set(event.degradations) for event in told] == [{"embedder_unreachable"}] * 2
    assert retriever.last_result is not None
    assert retriever.last_result.has("embedder_unreachable")


async def test_records_that_wait_for_a_vector_are_told_of(open_store: OpenStore, recorder: Any) -> None:
    settings = twofold.StoreSettings(embedding=twofold.EmbeddingSettings(fill_in=False))
    embedder = FlakyEmbedder()
    store = open_store(embedder=embedder, settings=settings)
    store.add("The deploy key.", id="x")
    embedder.down = True
    store.add("The deploy note.", id="y")
    embedder.down = False
    retriever = TwofoldRetriever(store)
    for found in (retriever.retrieve("deploy note"), await retriever.aretrieve("deploy note")):
        assert set(ids(found)) == {"x", "y"}
    store.embed_pending()
    assert len(retriever.retrieve("deploy note")) == 2
    told = [set(event.degradations) for event in recorder.of(TwofoldSearchEvent)]
    assert told == [{"vectors_pending"}, {"vectors_pending"}, set()]


@needs_faiss
async def test_another_index_answers_the_same(open_store: OpenStore) -> None:
    stores = [open_store(settings=twofold.StoreSettings(index=index)) for index in ("exact", "faiss-flat")]
    for store in stores:
        for name in ("red", "green", "blue"):
            store.add(f"The deploy note of team {name}.", id=name)
        store.add("The deploy note of u1.", id="u1", access=Access(user="u1"))
    for access in (Access(), Access(user="u1")):
        exact, faiss = (TwofoldRetriever(store, access=access, mode="vector") for store in stores)
        found = faiss.retrieve("deploy note of u1")
        expected = [(each.node_id, each.score) for each in exact.retrieve("deploy note of u1")]
        assert [(each.node_id, each.score) for each in found] == expected
        assert ids(await faiss.aretrieve("deploy note of u1")) == ids(found)
        assert (ids(found)[0] == "u1") == (access.user == "u1")
        assert faiss.last_result is not None
        assert not faiss.last_result.degraded
    assert stores[1].info().backend.details["vector_index"] == "faiss-flat"


async def test_each_retrieval_touches_its_hits_once_if_asked_to(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", id="x")
    store.add("Lunch is at noon.", id="y")
    retriever = TwofoldRetriever(store, mode="keyword", params=SearchParams(touch=True))
    bundle = QueryBundle("deploy", custom_embedding_strs=["deploying"])
    for times, asked in ((1, "deploy"), (2, bundle)):
        assert ids(retriever.retrieve(asked)) == ["x"]
        assert counts_of_use(store) == {"x": times, "y": 0}
    assert ids(await retriever.aretrieve("deploy")) == ["x"]
    assert ids(TwofoldRetriever(store, mode="keyword").retrieve("deploy")) == ["x"]
    assert counts_of_use(store) == {"x": 3, "y": 0}


def counts_of_use(store: HybridStore) -> dict[str, int]:
    """What has been touched is written together with the next write."""
    store.add("the next write", id="z")
    return {record.id: record.access_count for record in store.get_many(["x", "y"])}


async def test_inside_a_query_engine(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key lives in the vault.", id="x", metadata={"team": "ops"})
    engine = RetrieverQueryEngine.from_args(TwofoldRetriever(store), llm=MockLLM())
    for response in (engine.query("deploy key"), await engine.aquery("deploy key")):
        assert ids(response.source_nodes) == ["x"]
        assert "The deploy key lives in the vault." in str(response)  # the mock repeats its prompt


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
async def test_inside_fusion(open_store: OpenStore, mode: Any) -> None:
    """run-llama/llama_index#21771: scores that fusion can add, hashes by which it knows a node from both sides."""
    store = open_store()
    store.add("The deploy key.", id="x", metadata={"b": 1, "a": [2]})
    store.add("The deploy note.", id="y")

    class Other(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            node = TextNode(id_="x", text="The deploy key.", metadata={"b": 1, "a": [2]})
            return [NodeWithScore(node=node, score=0.5)]

    fusion = QueryFusionRetriever(
        [TwofoldRetriever(store), Other()],
        llm=MockLLM(),
        num_queries=1,
        mode=mode,
        similarity_top_k=5,
        use_async=False,
    )
    assert sorted(ids(fusion.retrieve("deploy key"))) == ["x", "y"]
    assert sorted(ids(await fusion.aretrieve("deploy key"))) == ["x", "y"]


def test_inside_a_router(open_store: OpenStore) -> None:
    class First(BaseSelector):
        def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
            return SelectorResult(selections=[SingleSelection(index=0, reason="the only one")])

        async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
            return self._select(choices, query)

        def _get_prompts(self) -> dict[str, Any]:
            return {}

        def _update_prompts(self, prompts: dict[str, Any]) -> None:
            """There are none."""

    store = open_store()
    store.add("The deploy key.", id="x")
    tool = RetrieverTool(TwofoldRetriever(store), ToolMetadata(name="notes", description="Notes of the team."))
    assert ids(RouterRetriever(selector=First(), retriever_tools=[tool], llm=MockLLM()).retrieve("deploy")) == ["x"]


async def test_a_record_may_stand_for_another_object(open_store: OpenStore) -> None:
    store = open_store()
    store.add("Everything on deploying.", id="summary")
    details = open_store()
    details.add("The deploy key lives in the vault.", id="detail")
    inner = TwofoldRetriever(details)
    node = IndexNode(text="", index_id="summary", obj=inner)
    for retriever in (
        TwofoldRetriever(store, object_map={"summary": inner, "unknown": inner}),
        TwofoldRetriever(store, objects=[node]),
    ):
        assert ids(retriever.retrieve("deploying")) == ids(await retriever.aretrieve("deploying")) == ["detail"]


@pytest.mark.parametrize("engine", [ContextChatEngine, CondensePlusContextChatEngine])
async def test_inside_a_chat_engine(open_store: OpenStore, engine: Any) -> None:
    store = open_store(embedder=FlakyEmbedder(down=True))
    store.add("The deploy key lives in the vault.", id="x", metadata={"team": "ops"})
    chat = engine.from_defaults(retriever=TwofoldRetriever(store), llm=MockLLM(), memory=Memory.from_defaults())
    for response in (chat.chat("Where is the deploy key?"), await chat.achat("And the deploy key of ops?")):
        assert ids(response.source_nodes) == ["x"]
    streamed = chat.stream_chat("Where is the deploy key?")
    assert "".join(streamed.response_gen)
    assert ids(streamed.source_nodes) == ["x"]


async def test_hyde_and_generated_questions_reach_it(fruit: HybridStore) -> None:
    """What a transformation makes of a question comes in the bundle; what fusion asks besides comes as questions."""

    class Writer(MockLLM):
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            return CompletionResponse(text="answer two")

        async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            return self.complete(prompt)

    engine = TransformQueryEngine(
        RetrieverQueryEngine.from_args(TwofoldRetriever(fruit, similarity_top_k=1), llm=MockLLM()),
        HyDEQueryTransform(llm=Writer(), include_original=False),
    )
    assert ids(engine.query("question").source_nodes) == ["gamma"]  # by its own meaning it is beta
    fusion = QueryFusionRetriever(
        [TwofoldRetriever(fruit, similarity_top_k=1)], llm=Writer(), num_queries=2, mode="reciprocal_rerank"
    )
    assert set(ids(await fusion.aretrieve("question"))) == {"beta", "gamma"}
    assert set(ids(fusion.retrieve("question"))) == {"beta", "gamma"}


async def test_linked_records_are_told_apart_in_the_event(open_store: OpenStore, recorder: Any) -> None:
    store = open_store(embedder=None)
    store.add("a red kettle", id="hit")
    store.add("a pear", id="near")
    store.link("hit", "near")
    TwofoldRetriever(store, params=SearchParams(expand=1)).retrieve("kettle")
    (event,) = recorder.of(TwofoldSearchEvent)
    assert (event.ids, event.linked, event.legs) == (["hit"], ["near"], {"keyword": 1})
    assert TwofoldSearchEvent.model_validate(event.model_dump()).linked == ["near"]
