"""Other libraries over the same data, each as its own documentation has it used, in a process of its own.

A builder gives a function that answers the question of a number, and one that tells which records are in such an
answer. Vectors are looked up, never computed. Needs numpy, and what the library in question needs: they are in
``requirements-rivals.txt``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from tests.benchmarks.data import Corpus
from tests.benchmarks.rivals import ensemble_retriever

__all__ = ["APPROXIMATE", "BESIDE", "INDEXED_FROM", "PEERS", "Built", "Peer"]

Built: TypeAlias = tuple[Callable[[int], Any], Callable[[Any], list[int]]]
"""Asks the question of a number; and tells the numbers of the records in an answer."""

BESIDE: Final = "hybrid, beside the rivals"
"""The row of twofold's hybrid search in the run with the rivals."""

APPROXIMATE: Final = 'the same, index="faiss-ivf"'
"""The row of the same with an index that may miss a neighbour."""

_HITS: Final = 10
_BATCH: Final = 1000
INDEXED_FROM: Final = 50_000
"""Records from which on LanceDB gets an index over its vectors, as it advises; below it compares with all of them."""


class Peer(NamedTuple):
    """One rival."""

    modules: tuple[str, ...]
    """What is imported; if one of them is not there the rival is left out."""
    build: Callable[[Corpus, Path], Built]
    """From the data and an empty folder."""
    remark: str = ""
    """What makes its figures another thing than the others'."""
    by_vector_alone: bool = False
    """Whether it has no hybrid search of its own, so that its vector search stands for it."""


def _langchain(corpus: Corpus, _: Path) -> Built:
    number_of = {text: number for number, text in enumerate(corpus.texts)}
    return ensemble_retriever(corpus, _HITS), lambda texts: [number_of[text] for text in texts]


def _lancedb(corpus: Corpus, folder: Path) -> Built:
    import lancedb
    from lancedb.rerankers import RRFReranker

    database, table = lancedb.connect(folder), None
    for first, last in _batches(len(corpus.texts)):
        rows = [
            {"id": number, "text": corpus.texts[number], "vector": corpus.vectors[number]}
            for number in range(first, last)
        ]
        if table is None:
            table = database.create_table("records", rows)
        else:
            table.add(rows)
    assert table is not None
    table.create_fts_index("text")
    if len(corpus.texts) >= INDEXED_FROM:
        table.create_index(metric="dot", index_type="IVF_HNSW_SQ", vector_column_name="vector")
    table.optimize()
    reranker = RRFReranker()

    def ask(number: int) -> list[dict[str, Any]]:
        search = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        search = search.vector(corpus.query_vectors[number]).text(corpus.queries[number]).rerank(reranker)
        found: list[dict[str, Any]] = search.limit(_HITS).select(["id", "text"]).to_list()
        return found

    return ask, lambda rows: [row["id"] for row in rows]


def _llama_index(corpus: Corpus, _: Path) -> Built:
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
    from llama_index.core.schema import QueryBundle, TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [
        TextNode(id_=str(number), text=text, embedding=vector.tolist())
        for number, (text, vector) in enumerate(zip(corpus.texts, corpus.vectors, strict=True))
    ]
    embedding = MockEmbedding(embed_dim=corpus.vectors.shape[1])
    index = VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(), embed_model=embedding)
    fusion = QueryFusionRetriever(
        [
            index.as_retriever(similarity_top_k=_HITS),
            BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=_HITS),
        ],
        llm=MockLLM(),
        mode=FUSION_MODES.RECIPROCAL_RANK,
        similarity_top_k=_HITS,
        num_queries=1,
        use_async=False,
    )
    vectors = corpus.query_vectors.tolist()
    return (
        lambda number: fusion.retrieve(QueryBundle(corpus.queries[number], embedding=vectors[number])),
        lambda found: [int(each.node.node_id) for each in found],
    )


def _chroma(corpus: Corpus, folder: Path) -> Built:
    import chromadb

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("records", metadata={"hnsw:space": "ip"}, embedding_function=None)
    for first, last in _batches(len(corpus.texts)):
        collection.add(
            ids=[str(number) for number in range(first, last)],
            embeddings=corpus.vectors[first:last],
            documents=corpus.texts[first:last],
        )
    return (
        lambda number: collection.query(query_embeddings=corpus.query_vectors[number : number + 1], n_results=_HITS),
        lambda found: [int(id_) for id_ in found["ids"][0]],
    )


def _milvus(corpus: Corpus, folder: Path) -> Built:
    from pymilvus import AnnSearchRequest, DataType, Function, FunctionType, MilvusClient, RRFRanker

    client = MilvusClient(str(folder / "records.db"))
    schema = client.create_schema()
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("text", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=int(corpus.vectors.shape[1]))
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(name="bm25", function_type=FunctionType.BM25, input_field_names=["text"], output_field_names=["words"])
    )
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="AUTOINDEX", metric_type="IP")
    indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection("records", schema=schema, index_params=indexes)
    for first, last in _batches(len(corpus.texts)):
        client.insert(
            "records",
            [
                {"id": number, "text": corpus.texts[number], "vector": corpus.vectors[number].tolist()}
                for number in range(first, last)
            ],
        )
    client.flush("records")
    client.load_collection("records")

    def ask(number: int) -> Any:
        requests = [
            AnnSearchRequest([corpus.query_vectors[number].tolist()], "vector", {"metric_type": "IP"}, limit=_HITS),
            AnnSearchRequest([corpus.queries[number]], "words", {"metric_type": "BM25"}, limit=_HITS),
        ]
        return client.hybrid_search("records", requests, RRFRanker(), limit=_HITS, output_fields=["text"])[0]

    return ask, lambda hits: [int(hit["id"]) for hit in hits]


def _qdrant(corpus: Corpus, folder: Path) -> Built:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    size = int(corpus.vectors.shape[1])
    client.create_collection("records", vectors_config=models.VectorParams(size=size, distance=models.Distance.DOT))
    for first, last in _batches(len(corpus.texts)):
        client.upsert(
            "records",
            models.Batch(
                ids=list(range(first, last)),
                vectors=corpus.vectors[first:last].tolist(),
                payloads=[{"text": text} for text in corpus.texts[first:last]],
            ),
        )
    return (
        lambda number: client.query_points("records", query=corpus.query_vectors[number], limit=_HITS).points,
        lambda points: [int(point.id) for point in points],
    )


def _txtai(corpus: Corpus, _: Path) -> Built:
    from txtai import Embeddings

    known = _by_text(corpus)
    embeddings = Embeddings(
        method="external", transform=lambda texts: np.array([known[text] for text in texts]), hybrid=True, content=True
    )
    embeddings.index((number, text, None) for number, text in enumerate(corpus.texts))
    return (
        lambda number: embeddings.search(corpus.queries[number], _HITS),
        lambda found: [int(each["id"]) for each in found],
    )


def _arriadne(corpus: Corpus, folder: Path) -> Built:
    from arriadne.config import AriadneConfig
    from arriadne.storage import AriadneDB

    size = int(corpus.vectors.shape[1])
    database = AriadneDB(AriadneConfig(db_path=folder / "records.db", embedding_dim=size))
    database.open()
    number_of: dict[int, int] = {}
    for first, last in _batches(len(corpus.texts)):
        records = [
            {"content": corpus.texts[number], "embedding": corpus.vectors[number]} for number in range(first, last)
        ]
        added = database.add_memories_bulk(records)
        number_of.update({each["memory_id"]: number for number, each in enumerate(added, first)})
    return (
        lambda number: database.hybrid_search(corpus.queries[number], corpus.query_vectors[number], k=_HITS),
        lambda found: [number_of[each["id"]] for each in found],
    )


def _localmem(corpus: Corpus, folder: Path) -> Built:
    from localmem_mcp.core.store import MemoryStore

    known = {text.strip(): vector.tolist() for text, vector in _by_text(corpus).items()}

    class Prepared:
        name = "benchmark"

        def embed(self, texts: list[str]) -> list[list[float]]:
            return [known[text] for text in texts]

    store = MemoryStore(folder / "records.db", embedder=Prepared())
    number_of = {store.add(text).id: number for number, text in enumerate(corpus.texts)}
    return (
        lambda number: store.search(corpus.queries[number], limit=_HITS),
        lambda found: [number_of[each.memory.id] for each in found],
    )


def _by_text(corpus: Corpus) -> dict[str, Any]:
    return dict(zip([*corpus.texts, *corpus.queries], [*corpus.vectors, *corpus.query_vectors], strict=True))


def _batches(count: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, _BATCH):
        yield first, min(first + _BATCH, count)


PEERS: Final = {
    "LangChain EnsembleRetriever": Peer(("langchain_classic", "langchain_community", "rank_bm25", "faiss"), _langchain),
    "LanceDB hybrid": Peer(("lancedb",), _lancedb),
    "LlamaIndex QueryFusionRetriever": Peer(("llama_index.core", "llama_index.retrievers.bm25"), _llama_index),
    "Milvus Lite hybrid": Peer(("pymilvus", "milvus_lite"), _milvus),
    "txtai hybrid": Peer(("txtai",), _txtai, "words that over a tenth of the records hold find nothing by themselves"),
    "arriadne hybrid": Peer(
        ("arriadne",), _arriadne, "asks for all words first, and for any only if no record has all"
    ),
    "localmem-mcp": Peer(("localmem_mcp",), _localmem, "compares vectors in Python"),
    "Chroma, vectors alone": Peer(("chromadb",), _chroma, "has no hybrid search of its own", by_vector_alone=True),
    "Qdrant local, vectors alone": Peer(
        ("qdrant_client",), _qdrant, "the words would have to be made vectors first", by_vector_alone=True
    ),
}
"""All of them, by name."""
