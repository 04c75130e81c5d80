"""``TwofoldRetriever`` of LlamaIndex."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever, RouterRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool, ToolMetadata

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever, TwofoldSearchEvent
from twofold import Access, GivenVectors, HybridStore, SearchParams
from twofold.testing import FlakyEmbedder, TableEmbedder

OpenStore = Callable[..., HybridStore]

needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss-cpu is not installed")

NESTED = {"z": [1, None, True, 1.5, {"é": "ü"}], "a": {"b": {"c": []}}, "document_id": "d", "ref_doc_id": 3}

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


class Recorder(BaseEventHandler):
    """Notes what it is told."""

    seen: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.seen.append(event)

    def of(self, *kinds: type[Any]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kinds)]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    handler, root = Recorder(), get_dispatcher()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


@pytest.fixture
def fruit(open_store: OpenStore) -> HybridStore:
    store = open_store(embedder=FlakyEmbedder(TableEmbedder(TABLE)))
    store.add_many([{"text": text, "id": text.split()[0]} for text in TABLE if text.split()[0] in FRUIT])
    return store


FRUIT = ("alpha", "beta", "gamma")


def embedder_of(store: HybridStore) -> FlakyEmbedder:
    embedder = store._parts.embedder
    assert isinstance(embedder, FlakyEmbedder)
    return embedder


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def texts(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.text for each in found]


# What comes back


def test_a_node_has_the_records_id_text_and_exact_metadata(open_store: OpenStore) -> None:
    store = open_store()
    added = store.add("The deploy key.", metadata=NESTED, source="doc", tags=("ops",))
    (found,) = TwofoldRetriever(store).retrieve("deploy key")
    assert (found.node_id, found.text) == (added.id, "The deploy key.")
    assert type(found.node) is TextNode
    assert found.metadata == NESTED
    assert list(found.metadata) == list(NESTED)
    assert found.metadata["z"][2] is True
    assert found.node.ref_doc_id == "doc"
    assert found.node.hash == TextNode(text="The deploy key.", metadata=NESTED).hash
    assert isinstance(found.score, float)


def test_without_a_source_there_is_no_parent(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    (found,) = TwofoldRetriever(store).retrieve("deploy key")
    assert found.node.ref_doc_id is None
    assert found.node.relationships == {}


def test_changing_a_node_changes_nothing_else(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", metadata={"a": [1]})
    retriever = TwofoldRetriever(store)
    (first,) = retriever.retrieve("deploy key")
    score, first.score = first.score, -1.0
    first.metadata["a"].append(2)
    (again,) = retriever.retrieve("deploy key")
    assert (again.score, again.metadata) == (score, {"a": [1]})


def test_scores_are_floats_above_zero_and_descend(fruit: HybridStore) -> None:
    """run-llama/llama_index#12497: orthogonal and opposite vectors still have a score, which is not taken for none."""
    found = TwofoldRetriever(fruit, similarity_top_k=3, mode="vector").retrieve(
        QueryBundle("", embedding=[1.0, -1.0, 0.0])
    )
    scores = [each.get_score(raise_error=True) for each in found]
    assert ids(found)[0] == "alpha"
    assert scores[0] == pytest.approx(1 / 2**0.5)
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert max(scores[1:]) < 1e-6


def test_the_best_match_survives_a_similarity_cutoff(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    store.add("Lunch is at noon.")
    kept = SimilarityPostprocessor(similarity_cutoff=0.5).postprocess_nodes(TwofoldRetriever(store).retrieve("deploy"))
    assert texts(kept)[0] == "The deploy key."


def test_text_that_pydantic_refuses_does_not_cost_the_answer(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("a deploy \ud800 key\0")
    assert texts(TwofoldRetriever(store).retrieve("deploy")) == ["a deploy \N{REPLACEMENT CHARACTER} key\0"]


def test_a_record_of_empty_text_is_a_node_of_empty_text(open_store: OpenStore) -> None:
    store = open_store()
    store.add("", id="empty", tags=("deploy",))
    (found,) = TwofoldRetriever(store).retrieve("deploy")
    assert (found.node_id, found.text) == ("empty", "")


def test_a_store_of_given_vectors_is_asked_by_the_bundles(open_store: OpenStore) -> None:
    store = open_store(embedder=GivenVectors("mine", 2))
    store.add("one", id="one", vector=[1.0, 0.0])
    store.add("two", id="two", vector=[0.0, 1.0])
    retriever = TwofoldRetriever(store, similarity_top_k=1)
    assert ids(retriever.retrieve(QueryBundle("anything", embedding=[0.1, 1.0]))) == ["two"]
    assert ids(retriever.retrieve(QueryBundle("one", custom_embedding_strs=["two"]))) == ["one"]  # keywords only


# What is asked


async def test_the_bundles_embedding_is_used_and_nothing_is_embedded(fruit: HybridStore) -> None:
    embedder = embedder_of(fruit)
    calls = embedder.calls
    bundle = QueryBundle("banana", embedding=[0.0, 0.0, 1.0])
    retriever = TwofoldRetriever(fruit, similarity_top_k=3)
    found = retriever.retrieve(bundle)
    assert ids(found) == ids(await retriever.aretrieve(bundle))
    assert set(ids(found)[:2]) == {"beta", "gamma"}  # by keyword and by vector
    assert embedder.calls == calls
    assert bundle == QueryBundle("banana", embedding=[0.0, 0.0, 1.0])


async def test_custom_strings_give_the_meaning_and_the_query_the_keywords(
    fruit: HybridStore, recorder: Recorder
) -> None:
    """HyDE: the mean of the strings is (0, 0.1, 1), so gamma is nearest and beta next; the keyword is alpha's."""
    embedder = embedder_of(fruit)
    bundle = QueryBundle("apple", custom_embedding_strs=["answer one", "answer two"])
    before = copy.deepcopy(bundle)
    retriever = TwofoldRetriever(fruit, similarity_top_k=3)
    for found in (retriever.retrieve(bundle), await retriever.aretrieve(bundle)):
        assert retriever.last_result is not None
        legs = {hit.id: {leg: each.rank for leg, each in hit.explanation.legs.items()} for hit in retriever.last_result}
        assert legs == {"alpha": {"keyword": 1, "vector": 3}, "gamma": {"vector": 1}, "beta": {"vector": 2}}
        by_id = {hit.id: hit for hit in retriever.last_result}
        assert by_id["gamma"].explanation.legs["vector"].raw == pytest.approx(1 / (1 + 0.1**2) ** 0.5)
        assert set(ids(found)) == set(legs)
    assert "apple" not in embedder.texts
    assert bundle == before
    assert [event.vector_source for event in recorder.of(TwofoldSearchEvent)] == ["custom_strings"] * 2


async def test_custom_strings_when_the_embedder_is_down(fruit: HybridStore) -> None:
    embedder_of(fruit).down = True
    bundle = QueryBundle("apple", custom_embedding_strs=["answer one"])
    retriever = TwofoldRetriever(fruit)
    assert ids(retriever.retrieve(bundle)) == ids(await retriever.aretrieve(bundle)) == ["alpha"]
    assert retriever.last_result is not None
    assert retriever.last_result.has("embedder_unreachable")


def test_custom_strings_that_cancel_out_are_as_if_there_were_none(fruit: HybridStore) -> None:
    bundle = QueryBundle("question", custom_embedding_strs=["minus", "plus"])
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1).retrieve(bundle)) == ["beta"]  # 0.8 against alpha's 0.6


@pytest.mark.parametrize("embedding", [[], None, [1.0], [1.0] * 384, [0.0, 0.0, 0.0], [float("nan"), 1.0, 1.0]])
async def test_an_embedding_that_is_not_the_stores_is_as_if_there_were_none(
    fruit: HybridStore, embedding: list[float] | None
) -> None:
    """LlamaIndex's own retriever writes its model's embedding into a bundle that others get too."""
    retriever = TwofoldRetriever(fruit, similarity_top_k=1)
    bundle = QueryBundle("question", embedding=embedding)
    assert ids(retriever.retrieve(bundle)) == ids(await retriever.aretrieve(bundle)) == ["beta"]


def test_an_embedding_is_no_harm_where_there_is_no_embedder(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    assert texts(retriever.retrieve(QueryBundle("deploy", embedding=[1.0]))) == ["The deploy key."]
    assert texts(retriever.retrieve(QueryBundle("deploy", custom_embedding_strs=["x"]))) == ["The deploy key."]
    with pytest.raises(twofold.SearchUnavailableError):
        TwofoldRetriever(store, mode="vector").retrieve(QueryBundle("deploy", embedding=[1.0]))


def test_a_bundles_embedding_may_be_left_out_of_account(fruit: HybridStore) -> None:
    bundle = QueryBundle("question", embedding=[0.0, 0.0, 1.0])
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1).retrieve(bundle)) == ["gamma"]
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1, use_bundle_embedding=False).retrieve(bundle)) == ["beta"]


def test_keyword_mode_embeds_nothing(fruit: HybridStore) -> None:
    embedder = embedder_of(fruit)
    calls = embedder.calls
    bundle = QueryBundle("apple", embedding=[0.0, 0.0, 1.0], custom_embedding_strs=["answer one"])
    assert ids(TwofoldRetriever(fruit, mode="keyword").retrieve(bundle)) == ["alpha"]
    assert ids(TwofoldRetriever(fruit, mode="keyword", use_bundle_embedding=False).retrieve(bundle)) == ["alpha"]
    assert embedder.calls == calls


def test_how_many(fruit: HybridStore) -> None:
    assert TwofoldRetriever(fruit).similarity_top_k == DEFAULT_SIMILARITY_TOP_K
    assert len(TwofoldRetriever(fruit).retrieve("question")) == DEFAULT_SIMILARITY_TOP_K
    assert len(TwofoldRetriever(fruit, similarity_top_k=10).retrieve("question")) == 3
    assert TwofoldRetriever(fruit, similarity_top_k=0).retrieve("question") == []
    retriever = TwofoldRetriever(fruit)
    retriever.similarity_top_k = 1
    assert len(retriever.retrieve("question")) == 1


@pytest.mark.parametrize("embedder", ["fake", None])
async def test_an_empty_store_and_an_empty_question(open_store: OpenStore, embedder: Any) -> None:
    """deepset-ai/haystack#11598, run-llama/llama_index#11005."""
    store = open_store(embedder=embedder)
    retriever = TwofoldRetriever(store)
    assert retriever.retrieve("anything") == await retriever.aretrieve("anything") == []
    store.add("The deploy key.")
    assert retriever.retrieve("") == await retriever.aretrieve("?!") == []


def test_access_where_mode_and_params_hold(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key of all.", metadata={"team": "ops"})
    store.add("Lunch is at noon.")
    store.add("The deploy key of u1.", access=Access(user="u1"))
    everyone, own = TwofoldRetriever(store, similarity_top_k=9), Access(user="u1")
    assert set(texts(everyone.retrieve("deploy"))) == {"The deploy key of all.", "Lunch is at noon."}
    assert len(TwofoldRetriever(store, similarity_top_k=9, access=own).retrieve("deploy")) == 3
    assert len(TwofoldRetriever(store.view(own), similarity_top_k=9).retrieve("deploy")) == 3
    assert texts(TwofoldRetriever(store, where={"team": "ops"}).retrieve("deploy")) == ["The deploy key of all."]
    assert texts(TwofoldRetriever(store, mode="keyword").retrieve("deploy")) == ["The deploy key of all."]
    strict = SearchParams(min_score=0.9)
    assert texts(TwofoldRetriever(store, params=strict).retrieve("deploy")) == ["The deploy key of all."]
    assert len(everyone.retrieve("deploy")) == 2


@pytest.mark.parametrize(
    "wrong",
    [{"store": "memory.db"}, {"similarity_top_k": -1}, {"similarity_top_k": True}, {"mode": "both"}],
)
def test_what_it_cannot_use_is_refused_at_construction(open_store: OpenStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(twofold.ConfigurationError, match=next(iter(wrong))):
        TwofoldRetriever(**{"store": open_store(), **wrong})


@pytest.mark.parametrize("name", ["filter", "top_k", "k"])
def test_an_unknown_argument_is_refused(open_store: OpenStore, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        TwofoldRetriever(open_store(), **{name: 1})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"access": "u1"}, twofold.ConfigurationError),
        ({"params": {"pool": 3}}, twofold.ConfigurationError),
        ({"where": {"a": {"$near": 1}}}, twofold.UnsupportedFilterError),
    ],
)
async def test_what_the_store_refuses_is_raised(fruit: HybridStore, wrong: dict[str, Any], error: Any) -> None:
    for bundle in (QueryBundle("apple"), QueryBundle("apple", embedding=[1.0, 0.0, 0.0])):
        with pytest.raises(error):
            TwofoldRetriever(fruit, **wrong).retrieve(bundle)
        with pytest.raises(error):
            await TwofoldRetriever(fruit, **wrong).aretrieve(bundle)


# Inside LlamaIndex


def test_events_are_seen_once(open_store: OpenStore, recorder: Recorder) -> None:
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


async def test_degradations_are_told(open_store: OpenStore, recorder: Recorder) -> None:
    store = open_store(embedder=FlakyEmbedder(down=True))
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    assert texts(retriever.retrieve("deploy")) == texts(await retriever.aretrieve("deploy")) == ["The deploy key."]
    told = recorder.of(TwofoldSearchEvent)
    assert [set(event.degradations) for event in told] == [{"embedder_unreachable"}] * 2
    assert retriever.last_result is not None
    assert retriever.last_result.has("embedder_unreachable")


async def test_records_that_wait_for_a_vector_are_told_of(open_store: OpenStore, recorder: Recorder) -> None:
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


# Threads, tasks and the object itself


async def test_async_leaves_the_loop_free(open_store: OpenStore, gated: Any) -> None:
    """run-llama/llama_index#21159: only a loop that runs can open the gate that the embedder waits at."""
    store = open_store(embedder=gated)
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    for bundle in (QueryBundle("deploy key"), QueryBundle("deploy key", custom_embedding_strs=["the key"])):
        gated.entered.clear()
        gated.gate.clear()
        call = asyncio.create_task(retriever.aretrieve(bundle))
        while not gated.entered.is_set():
            await asyncio.sleep(0)
        gated.gate.set()
        assert texts(await call) == ["The deploy key."]
    assert gated.in_time == [True, True]


async def test_an_async_embedder_runs_on_the_callers_loop(open_store: OpenStore) -> None:
    loops = []

    async def embed(given: list[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        return [[1.0, 0.0] for _ in given]

    store = open_store(embedder=twofold.CallableEmbedder(embed, name="async"))
    await store.aadd("The deploy key.")
    bundle = QueryBundle("deploy", custom_embedding_strs=["key"])
    assert texts(await TwofoldRetriever(store).aretrieve(bundle)) == ["The deploy key."]
    assert loops == [asyncio.get_running_loop()] * 2


async def test_the_sync_call_works_inside_a_running_loop(open_store: OpenStore) -> None:
    """run-llama/llama_index#9978."""
    store = open_store()
    store.add("The deploy key.")
    assert texts(TwofoldRetriever(store).retrieve("deploy")) == ["The deploy key."]


def test_threads_share_a_retriever(open_store: OpenStore, tmp_path: Any) -> None:
    store = open_store(tmp_path / "memory.db")
    notes = [f"The deploy note of team {name}." for name in ("red", "green", "blue", "white", "black")]
    store.add_many(notes)
    retriever = TwofoldRetriever(store, similarity_top_k=1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(retriever.retrieve, notes * 10))
    assert [texts(each) for each in found] == [[note] for note in notes * 10]


def test_copies_share_the_store(open_store: OpenStore, tmp_path: Any) -> None:
    """run-llama/llama_index#14570."""
    store = open_store(tmp_path / "memory.db")
    store.add("The deploy key.", metadata={"a": 1})
    retriever = TwofoldRetriever(store, where={"a": 1}, object_map={"none": TextNode(text="")})
    retriever.retrieve("deploy")
    for twin in (copy.copy(retriever), copy.deepcopy(retriever), copy.deepcopy([retriever])[0]):
        assert twin is not retriever
        assert twin.store is store
        assert texts(twin.retrieve("deploy")) == ["The deploy key."]
    deep = copy.deepcopy(retriever)
    assert deep.where is not retriever.where
    deep.similarity_top_k = 1
    assert retriever.similarity_top_k == DEFAULT_SIMILARITY_TOP_K


def test_pickling_says_what_to_do_instead(open_store: OpenStore) -> None:
    with pytest.raises(TypeError, match=r"twofold\.open\(path\)"):
        pickle.dumps(TwofoldRetriever(open_store()))


def test_the_repr_is_short_and_tells_no_record(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The secret deploy key.")
    retriever = TwofoldRetriever(store)
    assert retriever.last_result is None
    retriever.retrieve("deploy")
    assert repr(retriever) == "TwofoldRetriever(HybridStore(':memory:'), similarity_top_k=2)"


# Linked records


async def test_linked_records_follow_the_hits_if_asked_for(open_store: OpenStore) -> None:
    store = open_store()
    for id_, text in (("hit", "a red kettle"), ("near", "a pear"), ("far", "a fig")):
        store.add(text, id=id_)
    store.link("hit", "near")
    store.link("near", "far")
    params = SearchParams(expand=2, hops=2)
    retriever = TwofoldRetriever(store, similarity_top_k=1, params=params, mode="keyword", include_linked=True)
    for nodes in (retriever.retrieve("kettle"), await retriever.aretrieve("kettle")):
        assert [node.node.id_ for node in nodes] == ["hit", "near", "far"]
        scores = [node.score for node in nodes if node.score is not None]
        assert scores[0] > scores[1] > scores[2] > 0
    assert copy.copy(retriever).include_linked
    plain = TwofoldRetriever(store, similarity_top_k=1, params=params, mode="keyword")
    assert [node.node.id_ for node in plain.retrieve("kettle")] == ["hit"]
