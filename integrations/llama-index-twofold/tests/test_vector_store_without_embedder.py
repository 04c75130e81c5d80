"""The embedding model refuses, hangs, or is not there: everything goes on, nothing is lost, vectors come later."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index.embeddings.twofold import NoEmbedding, ResilientEmbedding
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import EmbeddingSettings

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]

MODES = ("default", "sparse", "text_search", "hybrid", "semantic_hybrid", "mmr")
DOCUMENTS = {
    "key": "The deploy key lives in the vault.",
    "friday": "Deployments run every Friday at noon.",
    "error": "ERR_CONN_REFUSED_7 means that the proxy is down.",
}
THE_ERROR = {mode: ["error"] for mode in MODES}
STEADFAST = EmbeddingSettings(failures_to_open=10_000, fill_in=False)
"""The model is asked every time, and nothing is filled in behind the test's back."""
IMPATIENT = EmbeddingSettings(query_deadline=0.01, warm_up=0, document_deadline=0.01, fill_in=False)
"""For a model that never answers."""


@pytest.fixture(params=["refuses", "hangs"])
def trouble(request: pytest.FixtureRequest, model: Any) -> str:
    """What the model does until the test sets it right."""
    if request.param == "refuses":
        model.down = True
    else:
        model.gate.clear()
    return str(request.param)


@pytest.fixture(params=["resilient", "none"])
def embed_with(request: pytest.FixtureRequest, model: Any) -> Callable[[EmbeddingSettings], BaseEmbedding]:
    """What makes the model that the index has; either way the store has the real one itself."""
    if request.param == "none":
        return lambda _settings: NoEmbedding()
    return lambda settings: ResilientEmbedding(model, settings=settings)


async def found_in_each_mode(call: Call, index: VectorStoreIndex) -> dict[str, list[Any]]:
    found = {}
    for mode in MODES:
        engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=1, vector_store_query_mode=mode)
        answer = await call(engine, "query", "ERR_CONN_REFUSED_7")
        found[mode] = [each.node.ref_doc_id for each in answer.source_nodes]
    return found


async def legs(call: Call, vectors: TwofoldVectorStore, index: VectorStoreIndex) -> tuple[set[str], bool]:
    """Which legs answer a hybrid query, and whether anything was missing."""
    retriever = index.as_retriever(similarity_top_k=3, vector_store_query_mode="hybrid")
    await call(retriever, "retrieve", "where is the deploy key?")
    result = vectors.last_result
    assert result is not None
    return {leg for hit in result for leg in hit.explanation.legs}, result.degraded


@pytest.mark.parametrize("way", ["insert", "pipeline"])
async def test_nothing_is_lost_and_all_is_hybrid_when_the_model_is_back(
    tmp_path: Path,
    make_vectors: Make,
    call: Call,
    model: Any,
    trouble: str,
    embed_with: Callable[[EmbeddingSettings], BaseEmbedding],
    way: str,
) -> None:
    settings = STEADFAST if trouble == "refuses" else IMPATIENT
    vectors = make_vectors(tmp_path / "notes.db", embed_model=model, embedding=settings)
    of_the_index = embed_with(settings)
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=of_the_index)
    documents = [Document(id_=id_, text=text) for id_, text in DOCUMENTS.items()]
    if way == "insert":
        for document in documents:
            await call(index, "insert", document)
    else:
        pipeline = IngestionPipeline(transformations=[TokenTextSplitter(), of_the_index], vector_store=vectors)
        await call(pipeline, "run", documents=documents)
    assert {node.ref_doc_id for node in vectors.get_nodes()} == set(DOCUMENTS)
    assert vectors.store.info().pending == len(DOCUMENTS)
    assert await found_in_each_mode(call, index) == THE_ERROR
    assert await legs(call, vectors, index) == ({"keyword"}, True)

    model.down = False
    model.gate.set()
    if trouble == "hangs":  # so short a deadline is no good for a model that is well: as in a new process
        vectors = make_vectors(tmp_path / "notes.db", embed_model=model, embedding=STEADFAST)
        index = VectorStoreIndex.from_vector_store(vectors, embed_model=embed_with(STEADFAST))
    assert vectors.store.embed_pending().remaining == 0
    assert await found_in_each_mode(call, index) == THE_ERROR
    assert await legs(call, vectors, index) == ({"keyword", "vector"}, False)


async def test_a_model_that_hangs_leaves_the_loop_free(make_vectors: Make, model: Any) -> None:
    """The whole way, from the index down; only a loop that runs can open the gate."""
    vectors = make_vectors(embed_model=model)
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=ResilientEmbedding(model))
    for work in (
        lambda: index.ainsert(Document(id_="key", text=DOCUMENTS["key"])),
        lambda: index.as_retriever(vector_store_query_mode="hybrid").aretrieve("where is the key?"),
        lambda: index.as_query_engine(llm=MockLLM()).aquery("where is that key?"),
    ):
        model.entered.clear()
        model.gate.clear()
        task = asyncio.ensure_future(work())
        while not model.entered.is_set():
            await asyncio.sleep(0)
        assert not task.done()
        model.gate.set()
        await task
    assert {node.ref_doc_id for node in vectors.get_nodes()} == {"key"}


@pytest.mark.parametrize("stores_model", [None, NoEmbedding()])
async def test_without_any_model_it_is_a_keyword_store(make_vectors: Make, call: Call, stores_model: Any) -> None:
    vectors = make_vectors(embed_model=stores_model)
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=NoEmbedding())
    for id_, text in DOCUMENTS.items():
        await call(index, "insert", Document(id_=id_, text=text))
    assert await found_in_each_mode(call, index) == THE_ERROR
    assert await legs(call, vectors, index) == ({"keyword"}, False)


def test_vectors_that_the_index_lost_are_made_by_the_store_at_once_if_it_can(make_vectors: Make, model: Any) -> None:
    model.down = True
    of_the_index = ResilientEmbedding(model)
    embedding = of_the_index.get_text_embedding("text")
    assert embedding == []
    model.down = False
    vectors = make_vectors(embed_model=of_the_index)  # of which the store takes the model itself
    assert vectors.store.info().embedder == f"llama-index:SwitchedModel:{model.model_name}"
    VectorStoreIndex.from_vector_store(vectors, embed_model=NoEmbedding()).insert(Document(text="text"))
    assert vectors.last_added is not None
    assert vectors.last_added.pending == 0


def test_what_a_pipelines_cache_remembers_of_a_bad_day_takes_no_vector_away(make_vectors: Make, model: Any) -> None:
    vectors = make_vectors(embed_model=model, embedding=STEADFAST)
    resilient = ResilientEmbedding(model, settings=STEADFAST)
    pipeline = IngestionPipeline(transformations=[TokenTextSplitter(), resilient], vector_store=vectors)
    documents = [Document(id_=id_, text=text) for id_, text in DOCUMENTS.items()]
    model.down = True
    (first, *_) = pipeline.run(documents=documents)
    assert first.embedding == []
    model.down = False
    for _ in range(2):
        (again, *_) = pipeline.run(documents=documents)
        assert again.embedding == []  # out of the cache, as if the model were still down
        assert len(vectors.get_nodes()) == len(documents)
        assert vectors.store.info().pending == 0


def test_a_node_that_is_added_again_without_its_vector_keeps_it(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([TextNode(id_="a", text="same", embedding=[1.0, 2.0])])
    vectors.add([TextNode(id_="a", text="same", embedding=[])])
    asked = VectorStoreQuery(query_embedding=[1.0, 2.0])
    assert vectors.query(asked).similarities == pytest.approx([1.0])
    vectors.add([TextNode(id_="a", text="changed", embedding=[])])
    assert vectors.query(asked).ids == []
    assert vectors.store.info().pending == 1


WITHOUT_OPENAI = """
import os, socket, sys
for name in list(os.environ):
    if name.endswith("_API_KEY"):
        del os.environ[name]
def refused(*args, **kwargs):
    raise AssertionError("the network was used")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.embeddings.twofold import NoEmbedding, ResilientEmbedding
from llama_index.vector_stores.twofold import TwofoldVectorStore
vectors = TwofoldVectorStore()
IngestionPipeline(transformations=[NoEmbedding()], vector_store=vectors).run(documents=[Document(text="a deploy key")])
index = VectorStoreIndex.from_vector_store(vectors, embed_model=NoEmbedding())
index.insert(Document(text="another key"))
for mode in ("default", "sparse", "hybrid", "mmr"):
    print([node.get_content() for node in index.as_retriever(vector_store_query_mode=mode).retrieve("deploy")])
print(sorted(name for name in sys.modules if name.split(".")[0] == "openai"
             or name.startswith(("llama_index.llms.openai", "llama_index.embeddings.openai"))))
"""


def test_neither_openai_nor_a_key_nor_the_network_is_asked_for() -> None:
    """run-llama/llama_index#20917, #13793: a silent fall-back to OpenAI."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_OPENAI], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['a deploy key']"] * 4 + ["[]"]


class GrowingModel(BaseEmbedding):
    """Its vectors have as many numbers as ``length`` says."""

    model_name: str = "growing"
    length: int = 3

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(len(text)), *[1.0] * (self.length - 1)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


async def test_a_model_whose_vectors_change_their_length_leaves_it_to_keywords(make_vectors: Make, call: Call) -> None:
    model = GrowingModel()
    vectors = make_vectors(embed_model=model)
    vectors.add([TextNode(id_="before", text="The proxy is up.")])
    model.length = 5
    for index_model in (NoEmbedding(), ResilientEmbedding(model)):
        index = VectorStoreIndex.from_vector_store(vectors, embed_model=index_model)
        await index.ainsert_nodes([TextNode(id_="after", text="The proxy is down.")])
        for mode in MODES:
            for alpha in (None, 1.0):
                retriever = index.as_retriever(vector_store_query_mode=mode, alpha=alpha, similarity_top_k=5)
                assert {each.node_id for each in await call(retriever, "retrieve", "proxy")} == {"before", "after"}
                told = {each.code.value for each in vectors.last_result.degradations}
                assert bool(told) == (mode not in ("sparse", "text_search"))
    model.length = 3
    vectors.store.embed_pending()
    assert vectors.store.info().pending == 0
    assert {each.node_id for each in await call(index.as_retriever(), "retrieve", "a proxy")} == {"before", "after"}
    assert vectors.last_result.degradations == ()
