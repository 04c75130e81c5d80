"""The vector store under LlamaIndex's own indices, retrievers, engines and pipelines."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.node_parser import HierarchicalNodeParser, TokenTextSplitter, get_leaf_nodes
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    VectorIndexAutoRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import Document, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import MetadataInfo, VectorStoreInfo, VectorStoreQueryMode

from llama_index.embeddings.twofold import NoEmbedding
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access, SearchParams
from twofold.testing import FakeEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]

MODES = ("default", "sparse", "text_search", "hybrid", "semantic_hybrid", "mmr")
NOTES = {
    "key": "The deploy key lives in the vault.",
    "friday": "Deployments run every Friday at noon.",
    "error": "ERR_CONN_REFUSED_7 means that the proxy is down.",
}


def documents() -> list[Document]:
    return [
        Document(id_=id_, text=text, metadata={"team": "net" if id_ == "error" else "ops"})
        for id_, text in NOTES.items()
    ]


@pytest.fixture
def vectors(make_vectors: Make) -> TwofoldVectorStore:
    return make_vectors()


@pytest.fixture
def index(vectors: TwofoldVectorStore, model: Any) -> VectorStoreIndex:
    """The notes, each one node with a fresh id, embedded by the index."""
    made = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    for document in documents():
        made.insert(document)
    return made


def sources(found: list[NodeWithScore]) -> list[Any]:
    return [each.node.ref_doc_id for each in found]


async def retrieved(call: Call, retriever: Any, question: Any) -> list[Any]:
    return sources(await call(retriever, "retrieve", question))


# Retrievers and engines


@pytest.mark.parametrize("mode", MODES)
async def test_a_retriever_in_each_mode(index: VectorStoreIndex, call: Call, mode: str) -> None:
    retriever = index.as_retriever(similarity_top_k=1, vector_store_query_mode=mode)
    assert await retrieved(call, retriever, "where is the deploy key?") == ["key"]
    assert await retrieved(call, retriever, "ERR_CONN_REFUSED_7") == ["error"]
    narrow = index.as_retriever(
        similarity_top_k=9,
        vector_store_query_mode=mode,
        filters=MetadataFilters(filters=[MetadataFilter(key="team", value="net")]),
    )
    assert set(await retrieved(call, narrow, "proxy deploy key")) == {"error"}
    one = index.as_retriever(similarity_top_k=9, vector_store_query_mode=mode, doc_ids=["friday"])
    assert await retrieved(call, one, "deployments on Friday") == ["friday"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_query_engine_in_each_mode(index: VectorStoreIndex, call: Call, mode: str) -> None:
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=1, vector_store_query_mode=mode)
    answer = await call(engine, "query", "where is the deploy key?")
    assert sources(answer.source_nodes) == ["key"]
    assert "The deploy key lives in the vault." in str(answer)  # the mock repeats its prompt


async def test_alpha_and_limits_reach_the_store(index: VectorStoreIndex, call: Call) -> None:
    def retriever(**options: Any) -> Any:
        return index.as_retriever(similarity_top_k=3, vector_store_query_mode="hybrid", **options)

    assert await retrieved(call, retriever(alpha=0), "proxy") == ["error"]
    assert set(await retrieved(call, retriever(alpha=1), "proxy")) == set(NOTES)
    assert len(await retrieved(call, retriever(hybrid_top_k=2), "deploy key")) == 2
    assert len(await retrieved(call, retriever(alpha=0, sparse_top_k=1), "deploy key")) == 1


async def test_options_go_through_vector_store_kwargs(index: VectorStoreIndex, vectors: Any, call: Call) -> None:
    ann = Access(user="ann")
    vectors.add([TextNode(id_="n", text="Ann's locker code is 4711.", embedding=[])], access=ann)
    for access, expected in ((ann, ["n"]), (Access(user="ben"), [])):
        retriever = index.as_retriever(
            vector_store_query_mode="sparse", vector_store_kwargs={"access": access, "rrf_k": 10}
        )
        assert [each.node_id for each in await call(retriever, "retrieve", "locker code")] == expected
    with pytest.raises(TypeError, match="user_id"):
        await call(index.as_retriever(vector_store_kwargs={"user_id": "ann"}), "retrieve", "locker code")


async def test_a_bundles_own_embedding_and_strings_are_used(index: VectorStoreIndex, model: Any, call: Call) -> None:
    bundle = QueryBundle("proxy", embedding=model.get_text_embedding(NOTES["key"]))
    assert await retrieved(call, index.as_retriever(similarity_top_k=1), bundle) == ["key"]
    hyde = QueryBundle("xyzzy", custom_embedding_strs=[NOTES["friday"]])
    assert await retrieved(call, index.as_retriever(similarity_top_k=1), hyde) == ["friday"]


async def test_an_index_over_an_empty_store(vectors: TwofoldVectorStore, model: Any, call: Call) -> None:
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    for mode in MODES:
        assert await call(index.as_retriever(vector_store_query_mode=mode), "retrieve", "anything") == []


async def test_a_similarity_cutoff_means_a_cosine_in_default_mode(index: VectorStoreIndex, model: Any) -> None:
    """basicmachines-co/basic-memory#577: scores that a threshold can be set on."""
    found = index.as_retriever(similarity_top_k=3).retrieve("deploy key")
    cosine = model.similarity(
        model.get_query_embedding("deploy key"), model.get_text_embedding(f"team: ops\n\n{NOTES['key']}")
    )
    assert found[0].score == pytest.approx(cosine, abs=1e-6)
    cut = SimilarityPostprocessor(similarity_cutoff=(found[0].score + (found[1].score or 0)) / 2)
    assert sources(cut.postprocess_nodes(found)) == ["key"]


# Changing what is there


async def test_documents_come_and_go(index: VectorStoreIndex, vectors: TwofoldVectorStore, call: Call) -> None:
    changed = Document(id_="friday", text="Deployments run every Thursday.")
    await call(index, "update_ref_doc", changed)
    everything = index.as_retriever(similarity_top_k=9, vector_store_query_mode="sparse")
    assert await retrieved(call, everything, "Thursday") == ["friday"]
    assert await retrieved(call, everything, "Friday") == []
    await call(index, "delete_ref_doc", "key", delete_from_docstore=True)
    assert await retrieved(call, everything, "vault") == []
    (left,) = [node for node in vectors.get_nodes() if node.ref_doc_id == "error"]
    await call(index, "delete_nodes", [left.node_id])
    assert [node.ref_doc_id for node in vectors.get_nodes()] == ["friday"]


async def test_nodes_are_inserted_as_they_are(vectors: TwofoldVectorStore, model: Any, call: Call) -> None:
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    nodes = [TextNode(id_="a", text="alpha", metadata={"n": 1}), TextNode(id_="b", text="beta")]
    await call(index, "insert_nodes", nodes)
    await call(index, "insert_nodes", nodes)
    assert vectors.get_nodes(["a", "b"]) == nodes
    assert len(vectors.get_nodes()) == 2
    with pytest.raises(TypeError, match="shards"):
        await call(index, "insert_nodes", nodes, shards=2)


def test_from_documents_and_persisting(tmp_path: Path, model: Any) -> None:
    """run-llama/llama_index#13239: what was there before stays."""
    with TwofoldVectorStore(tmp_path / "notes.db") as vectors:
        for document in documents():
            context = StorageContext.from_defaults(vector_store=vectors)
            VectorStoreIndex.from_documents([document], storage_context=context, embed_model=model)
            context.persist(str(tmp_path / "storage"))
        assert not list((tmp_path / "storage").glob("default__vector_store*"))
    with TwofoldVectorStore(tmp_path / "notes.db") as vectors:
        index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
        assert sources(index.as_retriever(similarity_top_k=1).retrieve("deploy key")) == ["key"]
        assert len(vectors.get_nodes()) == 3


def test_the_store_embeds_where_the_index_does_not(make_vectors: Make, model: Any) -> None:
    vectors = make_vectors(embed_model=model)
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=NoEmbedding())
    for document in documents():
        index.insert(document)
    assert vectors.store.info().pending == 0
    embedded = f"team: ops\n\n{NOTES['key']}"
    assert embedded in model.asked  # as LlamaIndex embeds it
    (found,) = index.as_retriever(similarity_top_k=1).retrieve("deploy key")
    cosine = model.similarity(model.get_query_embedding("deploy key"), model.get_text_embedding(embedded))
    assert found.score == pytest.approx(cosine, abs=1e-6)
    assert found.node.ref_doc_id == "key"


# Pipelines


def pipeline(vectors: TwofoldVectorStore, model: BaseEmbedding, **options: Any) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[TokenTextSplitter(chunk_size=20, chunk_overlap=0), model], vector_store=vectors, **options
    )


LONG = "\n\n".join(
    f"Paragraph {number} tells of {word}." * 3 for number, word in enumerate(("apples", "pears", "plums", "figs"))
)


async def test_all_chunks_of_a_document_are_kept(vectors: TwofoldVectorStore, model: Any, call: Call) -> None:
    """run-llama/llama_index#14931, #22133: an upsert kept the last one only."""
    nodes = await call(pipeline(vectors, model), "run", documents=[Document(id_="d", text=LONG)])
    assert len(nodes) > 2
    assert {node.node_id for node in vectors.get_nodes()} == {node.node_id for node in nodes}
    assert {node.ref_doc_id for node in vectors.get_nodes()} == {"d"}
    retriever = VectorStoreIndex.from_vector_store(vectors, embed_model=model).as_retriever(
        similarity_top_k=1, vector_store_query_mode="hybrid"
    )
    for word in ("apples", "figs"):
        (found,) = await call(retriever, "retrieve", word)
        assert word in found.text


async def test_a_document_that_changed_replaces_all_its_chunks(
    vectors: TwofoldVectorStore, model: Any, call: Call
) -> None:
    """run-llama/llama_index#16833, #8832: with a docstore, one copy, of however many chunks."""
    made = pipeline(vectors, model, docstore=SimpleDocumentStore(), docstore_strategy=DocstoreStrategy.UPSERTS)
    other = Document(id_="other", text="Another document.")
    await call(made, "run", documents=[Document(id_="d", text=LONG), other])
    before = len(vectors.get_nodes())
    await call(made, "run", documents=[Document(id_="d", text=LONG), other])
    assert len(vectors.get_nodes()) == before
    await call(made, "run", documents=[Document(id_="d", text="Short now."), other])
    assert sorted(node.get_content() for node in vectors.get_nodes()) == ["Another document.", "Short now."]


async def test_a_document_that_is_gone_is_removed(vectors: TwofoldVectorStore, model: Any, call: Call) -> None:
    strategy = DocstoreStrategy.UPSERTS_AND_DELETE
    made = pipeline(vectors, model, docstore=SimpleDocumentStore(), docstore_strategy=strategy)
    await call(made, "run", documents=documents())
    await call(made, "run", documents=documents()[:1])
    assert {node.ref_doc_id for node in vectors.get_nodes()} == {"key"}


async def test_without_a_model_a_pipeline_stores_nothing_and_with_no_embedding_all(
    vectors: TwofoldVectorStore, call: Call
) -> None:
    """LlamaIndex hands on only nodes whose embedding is not None."""
    bare = IngestionPipeline(transformations=[TokenTextSplitter()], vector_store=vectors)
    await call(bare, "run", documents=documents())
    assert vectors.get_nodes() == []
    await call(pipeline(vectors, NoEmbedding()), "run", documents=documents())
    assert {node.ref_doc_id for node in vectors.get_nodes()} == set(NOTES)


# Other consumers


def test_parents_are_merged_from_their_children(vectors: TwofoldVectorStore, model: Any) -> None:
    sizes = {"whole": 128, "part": 20}
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=list(sizes),
        node_parser_map={id_: TokenTextSplitter(chunk_size=size, chunk_overlap=0) for id_, size in sizes.items()},
    )
    nodes = parser.get_nodes_from_documents([Document(id_="d", text=LONG)])
    leaves = get_leaf_nodes(nodes)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    context = StorageContext.from_defaults(vector_store=vectors, docstore=docstore)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=model)
    base = index.as_retriever(similarity_top_k=len(leaves), vector_store_query_mode="hybrid")
    merged = AutoMergingRetriever(base, context, simple_ratio_thresh=0.0).retrieve("apples pears plums figs")
    parents = {node.node_id for node in nodes} - {node.node_id for node in leaves}
    assert {each.node_id for each in merged} <= parents
    assert merged
    assert all((each.score or 0) > 0 for each in merged)


@pytest.mark.parametrize("kind", ["node", "retriever"])
async def test_an_index_node_stands_for_its_object(
    vectors: TwofoldVectorStore, make_vectors: Make, model: Any, call: Call, kind: str
) -> None:
    """run-llama/llama_index#11969, #21611."""
    detail = TextNode(id_="detail", text="The deploy key lives in the vault.")
    inner = VectorStoreIndex.from_vector_store(make_vectors(), embed_model=model)
    inner.insert_nodes([detail])
    obj: Any = detail if kind == "node" else inner.as_retriever()
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    index.insert_nodes([TextNode(id_="other", text="Lunch is at noon.")])
    index.insert_nodes([IndexNode(id_="summary", text="Everything on deploying.", index_id="deploying", obj=obj)])
    retriever = VectorIndexRetriever(index, similarity_top_k=2, object_map=index._object_map)
    found = await call(retriever, "retrieve", "deploying")
    assert {each.node_id for each in found} == {"detail", "other"}


async def test_recursive_retriever(vectors: TwofoldVectorStore, make_vectors: Make, model: Any, call: Call) -> None:
    inner = VectorStoreIndex.from_vector_store(make_vectors(), embed_model=model)
    inner.insert_nodes([TextNode(id_="detail", text="The deploy key lives in the vault.")])
    outer = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    outer.insert_nodes([IndexNode(id_="summary", text="Everything on deploying.", index_id="inner")])
    retriever = RecursiveRetriever(
        "outer", retriever_dict={"outer": outer.as_retriever(), "inner": inner.as_retriever()}
    )
    assert [each.node_id for each in await call(retriever, "retrieve", "deploying")] == ["detail"]


def test_after_an_index_node_llama_indexs_own_retriever_sees_only_that(index: VectorStoreIndex) -> None:
    """``as_retriever`` names the index's own index nodes, and nothing tells that from a wish; the page says so."""
    stands_for = TextNode(text="All on deploying.")
    index.insert_nodes([IndexNode(id_="summary", text="Deploying.", index_id="x", obj=stands_for)])
    assert len(index.as_retriever(similarity_top_k=9).retrieve("deploy key")) == 1
    assert len(VectorIndexRetriever(index, similarity_top_k=9).retrieve("deploy key")) == 1 + len(NOTES)


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
async def test_fusion_knows_a_node_from_both_sides(index: VectorStoreIndex, call: Call, mode: Any) -> None:
    """run-llama/llama_index#21771, #12881: scores that it can add, and hashes by which it knows a node."""
    legs: list[Any] = [
        index.as_retriever(similarity_top_k=3, vector_store_query_mode=leg) for leg in ("default", "sparse", "hybrid")
    ]
    fusion = QueryFusionRetriever(legs, llm=MockLLM(), num_queries=1, mode=mode, similarity_top_k=9, use_async=False)  # type: ignore[arg-type]
    found = await call(fusion, "retrieve", "deploy key")
    assert set(sources(found)) == set(NOTES)
    assert len(found) == len(NOTES)


async def test_a_memory_block_of_llama_indexs_own(make_vectors: Make, model: Any) -> None:
    """run-llama/llama_index#23182: it forgets what comes without scores."""
    vectors = make_vectors()
    block = VectorMemoryBlock(
        vector_store=vectors, embed_model=model, query_kwargs={"mode": VectorStoreQueryMode.HYBRID}
    )
    await block.aput([ChatMessage("My locker code is 4711.", role="user")], session_id="s")
    await block.aput([ChatMessage("I like tea.", role="user")], session_id="s")
    asked = [ChatMessage("What is my locker code?", role="user")]
    assert "4711" in await block.aget(asked, session_id="s")


class Translator(MockLLM):
    """Answers every prompt with the same query, of the net team."""

    query: str = ""

    def predict(self, *args: Any, **kwargs: Any) -> str:
        own = {"key": "team", "value": "net", "operator": "=="}
        return json.dumps({"query": self.query, "filters": [own], "top_k": 5})

    async def apredict(self, *args: Any, **kwargs: Any) -> str:
        return self.predict()


@pytest.mark.parametrize("query", ["proxy", ""])
async def test_filters_that_a_model_writes(index: VectorStoreIndex, call: Call, query: str) -> None:
    """Such a query may have no words at all, only filters."""
    translator = Translator()
    translator.query = query
    team = MetadataInfo(name="team", type="str", description="whose it is")
    retriever = VectorIndexAutoRetriever(
        index,
        vector_store_info=VectorStoreInfo(content_info="notes", metadata_info=[team]),
        llm=translator,
        vector_store_query_mode="hybrid",
    )
    assert await retrieved(call, retriever, "what of the net team?") == ["error"]


def test_params_of_the_store_rank_an_index(make_vectors: Make) -> None:
    vectors = make_vectors(embed_model=FakeEmbedder(), params=SearchParams(fusion="additive"))
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=NoEmbedding())
    index.insert(documents()[0])
    index.as_retriever(vector_store_query_mode="hybrid").retrieve("deploy key")
    assert vectors.last_result is not None
    assert vectors.last_result[0].explanation.formula.startswith("cosine + 0.25")


def test_a_mock_embedding_is_a_model_like_others(make_vectors: Make) -> None:
    vectors = make_vectors()
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=MockEmbedding(embed_dim=4))
    index.insert(documents()[0])
    assert vectors.store.info().backend.dimension == 4
