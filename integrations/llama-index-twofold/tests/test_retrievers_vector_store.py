"""``TwofoldRetriever`` over the nodes of a ``TwofoldVectorStore``, with LlamaIndex's filters and its own model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever, TwofoldSearchEvent
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access, EmbeddingSettings, F, GivenVectors, HybridStore, StoreSettings
from twofold.testing import FakeEmbedder, FlakyEmbedder, TableEmbedder

OpenStore = Callable[..., HybridStore]


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def only(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


class Axes(MockEmbedding):
    """Knows three words; ``down`` makes it fail."""

    down: bool = False
    asked: list[str] = []  # noqa: RUF012 - pydantic copies it

    def __init__(self) -> None:
        super().__init__(embed_dim=3)

    def _vector(self, text: str) -> list[float]:
        self.asked.append(text)
        if self.down:
            raise ConnectionError("nobody is there")
        return [float(word in text) + 0.01 for word in ("apple", "banana", "grape")]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)


@pytest.fixture
def vector_store() -> Iterator[TwofoldVectorStore]:
    with TwofoldVectorStore(":memory:") as opened:
        yield opened


# Nodes of an index


async def test_13361_nodes_come_back_whole_and_are_found_by_what_is_embedded(vector_store: TwofoldVectorStore) -> None:
    node = TextNode(
        id_="n",
        text="The deploy key.",
        metadata={"team": "ops", "page": 3},
        excluded_embed_metadata_keys=["page"],
        excluded_llm_metadata_keys=["team"],
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc"),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id="m"),
        },
    )
    VectorStoreIndex.from_vector_store(vector_store, embed_model=Axes()).insert_nodes([node])
    retriever = TwofoldRetriever.over(vector_store)
    for found in (retriever.retrieve("deploy"), await retriever.aretrieve("ops")):
        assert found[0].node == node
        assert found[0].node.hash == node.hash
    assert retriever.retrieve("page 3") == []  # the metadata that is not embedded is not searched


def test_21611_index_nodes_lead_on(vector_store: TwofoldVectorStore) -> None:
    """run-llama/llama_index#21611, #11969: the object of a node is stored with it; others are named by the map."""
    page = TextNode(id_="page", text="The whole page.")
    vector_store.add(
        [
            IndexNode(id_="i", index_id="one", text="summary of apples", obj=page),
            IndexNode(id_="j", index_id="two", text="summary of pears"),
        ]
    )
    assert [each.text for each in TwofoldRetriever.over(vector_store).retrieve("apples")] == ["The whole page."]
    assert [type(each.node) for each in TwofoldRetriever.over(vector_store).retrieve("pears")] == [IndexNode]
    mapped = TwofoldRetriever(vector_store.store, object_map={"two": page, "j": page})
    assert [each.text for each in mapped.retrieve("pears")] == ["The whole page."]


def test_over_a_vector_store_its_namespace_and_its_access_hold(open_store: OpenStore) -> None:
    store, ann = open_store(embedder=None), Access(user="ann")
    for namespace in (("one",), ("two",)):
        TwofoldVectorStore(store, access=ann, namespace=namespace).add([TextNode(id_="/".join(namespace), text="tea")])
    retriever = TwofoldRetriever.over(TwofoldVectorStore(store, access=ann, namespace=("one",)), similarity_top_k=9)
    assert ids(retriever.retrieve("tea")) == ["one"]
    assert sorted(ids(retriever.with_options(namespace=None).retrieve("tea"))) == ["one", "two"]
    assert ids(retriever.with_options(access=Access(user="ben")).retrieve("tea")) == []
    assert ids(TwofoldRetriever.over(TwofoldVectorStore(store), namespace=("one",), access=ann).retrieve("tea")) == [
        "one"
    ]
    retriever.close()
    assert store.count(access=ann) == 2  # who opened it closes it


# Filters of LlamaIndex


async def test_14959_filters_of_llama_index_hold_for_one_call_or_for_all(open_store: OpenStore) -> None:
    """run-llama/llama_index#14959."""
    store = open_store()
    for number in range(6):
        store.add(f"apple {number}", id=str(number), metadata={"number": number, "even": "no" if number % 2 else "yes"})
    retriever = TwofoldRetriever(store, similarity_top_k=9, filters=only("even", "yes"))
    assert sorted(ids(retriever.retrieve("apple"))) == ["0", "2", "4"]
    large = retriever.with_options(filters=only("number", 3, FilterOperator.GTE))
    assert sorted(ids(await large.aretrieve("apple"))) == ["3", "4", "5"]
    both = large.with_options(where=F("even") == "no", similarity_top_k=1)
    assert len(both.retrieve("apple")) == 1
    assert sorted(ids(both.with_options(similarity_top_k=9).retrieve("apple"))) == ["3", "5"]
    nested = MetadataFilters(
        filters=[only("number", 0), MetadataFilters(filters=[only("even", "yes")], condition=FilterCondition.NOT)],
        condition=FilterCondition.OR,
    )
    assert sorted(ids(retriever.with_options(filters=nested).retrieve("apple"))) == ["0", "1", "3", "5"]
    assert len(retriever.with_options(filters=MetadataFilters(filters=[])).retrieve("apple")) == 6
    assert retriever.with_options(filters=only("none", 1)).retrieve("apple") == []


@pytest.mark.parametrize(
    "wrong",
    [{"filters": {"a": 1}}, {"filters": only("a", "text", FilterOperator.IN)}, {"filters": F("a") == 1}],
)
def test_what_is_no_filter_of_llama_index_is_refused(open_store: OpenStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(twofold.TwofoldError):
        TwofoldRetriever(open_store(), **wrong)
    with pytest.raises(twofold.TwofoldError):
        TwofoldRetriever(open_store()).with_options(**wrong)


# A model of the retriever's own


@pytest.fixture
def brought(open_store: OpenStore) -> HybridStore:
    """A store whose vectors are brought, so that it has no model to ask."""
    store = open_store(embedder=GivenVectors("axes", 3))
    for text, vector in (("red fruit", [1.0, 0, 0]), ("yellow fruit", [0, 1.0, 0]), ("blue fruit", [0, 0, 1.0])):
        store.add(text, id=text.split()[0], vector=vector)
    return store


async def test_its_own_model_embeds_questions_where_the_store_has_none(brought: HybridStore, recorder: Any) -> None:
    model = Axes()
    retriever = TwofoldRetriever(brought, similarity_top_k=1, embed_model=model)
    assert ids(retriever.retrieve("grape")) == ids(await retriever.aretrieve("grape")) == ["blue"]
    assert ids(retriever.retrieve(QueryBundle("none", custom_embedding_strs=["banana", "a banana"]))) == ["yellow"]
    asked = len(model.asked)
    assert ids(retriever.retrieve(QueryBundle("none", embedding=[1.0, 0.0, 0.0]))) == ["red"]
    assert ids(retriever.with_options(mode="keyword").retrieve("yellow grape")) == ["yellow"]
    assert retriever.retrieve("") == []
    assert len(model.asked) == asked
    sources = [event.vector_source for event in recorder.of(TwofoldSearchEvent)]
    assert sources == ["embed_model", "embed_model", "custom_strings", "bundle", "store", "store"]
    assert ids(TwofoldRetriever(brought).retrieve("grape")) == []  # without one it is keywords only


async def test_its_own_model_may_be_down(brought: HybridStore, recorder: Any) -> None:
    model = Axes()
    model.down = True
    retriever = TwofoldRetriever(brought, embed_model=model)
    for found in (
        retriever.retrieve("yellow grape"),
        await retriever.aretrieve("yellow grape"),
        retriever.retrieve(QueryBundle("yellow", custom_embedding_strs=["grape"])),
    ):
        assert ids(found) == ["yellow"]
        assert retriever.last_result is not None
        assert retriever.last_result.has("embedder_unreachable")
    assert [set(event.degradations) for event in recorder.of(TwofoldSearchEvent)] == [{"embedder_unreachable"}] * 3


async def test_its_own_model_may_give_vectors_of_another_length(brought: HybridStore) -> None:
    class Longer(Axes):
        def _vector(self, text: str) -> list[float]:
            return [*super()._vector(text), 1.0]

    retriever = TwofoldRetriever(brought, embed_model=Longer())
    for found in (
        retriever.retrieve("yellow grape"),
        await retriever.aretrieve("yellow grape"),
        retriever.retrieve(QueryBundle("yellow", custom_embedding_strs=["grape"])),
        retriever.retrieve(QueryBundle("yellow", embedding=[1.0])),
    ):
        assert ids(found) == ["yellow"]
        assert retriever.last_result is not None
        assert [each.code.value for each in retriever.last_result.degradations] == ["embedder_bad_output"]


async def test_its_own_model_may_hang(open_store: OpenStore) -> None:
    release = threading.Event()

    class Hanging(Axes):
        def _vector(self, text: str) -> list[float]:
            release.wait(60)
            raise AssertionError("nobody waits for this any more")

    settings = StoreSettings(embedding=EmbeddingSettings(query_deadline=0.01, warm_up=0.01))
    store = open_store(embedder=GivenVectors("axes", 3), settings=settings)
    store.add("yellow fruit", id="yellow", vector=[0, 1.0, 0])
    try:
        retriever = TwofoldRetriever(store, embed_model=Hanging())
        assert ids(retriever.retrieve("yellow")) == ids(await retriever.aretrieve("yellow")) == ["yellow"]
        assert retriever.last_result is not None
        assert retriever.last_result.degraded
    finally:
        release.set()


async def test_its_own_model_leaves_the_loop_free(brought: HybridStore) -> None:
    entered, gate, in_time = threading.Event(), threading.Event(), []

    class Gated(Axes):
        def _vector(self, text: str) -> list[float]:
            entered.set()
            in_time.append(gate.wait(60))
            return super()._vector(text)

    call = asyncio.create_task(TwofoldRetriever(brought, similarity_top_k=1, embed_model=Gated()).aretrieve("grape"))
    while not entered.is_set():
        await asyncio.sleep(0)
    gate.set()
    assert ids(await call) == ["blue"]
    assert in_time == [True]


def test_an_embedder_of_twofold_will_do_too(open_store: OpenStore) -> None:
    embedder = TableEmbedder({"apple": [1.0, 0.0, 0.0], "fruit": [0.0, 1.0, 0.0]})
    store = open_store(embedder=GivenVectors("axes", 3))
    store.add("red", id="red", vector=[1.0, 0, 0])
    assert ids(TwofoldRetriever(store, embed_model=embedder).retrieve("apple")) == ["red"]
    with pytest.raises(twofold.ConfigurationError):
        TwofoldRetriever(store, embed_model="none such")
    with pytest.raises(twofold.ConfigurationError):
        TwofoldRetriever(store, embed_model=3)  # type: ignore[arg-type]


def test_an_index_brings_the_vectors_and_the_retriever_the_question(vector_store: TwofoldVectorStore) -> None:
    model = Axes()
    index = VectorStoreIndex.from_vector_store(vector_store, embed_model=model)
    index.insert_nodes([TextNode(id_=word, text=word) for word in ("apple", "banana", "grape")])
    for retriever in (TwofoldRetriever.over(vector_store, embed_model=model, similarity_top_k=1),):
        assert ids(retriever.retrieve("one banana please")) == ["banana"]
        engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        assert ids(engine.query("one banana please").source_nodes) == ["banana"]
        assert retriever.last_result is not None
        assert list(retriever.last_result[0].explanation.legs) == ["keyword", "vector"]
    with pytest.raises(twofold.ConfigurationError, match="embed_model_name"):
        TwofoldRetriever.over(vector_store, embed_model=model, embed_model_name="mine")


def test_a_vector_store_with_a_model_needs_none(tmp_path: Any) -> None:
    embedder = FlakyEmbedder(FakeEmbedder())
    with TwofoldVectorStore(tmp_path / "notes.db", embed_model=embedder) as vector_store:
        vector_store.add([TextNode(id_="n", text="The deploy key.")])
        retriever = TwofoldRetriever.over(vector_store, mode="vector")
        assert ids(retriever.retrieve("deploying keys")) == ["n"]
