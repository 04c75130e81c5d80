"""Faults that users of other vector stores have reported, each as a test of this one.

Those that belong to one subject are beside it: see ``test_vector_store*.py`` for their numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access
from twofold.testing import FakeEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def asked(text: str | None, vector: Any = None, k: int = 5, mode: Any = "hybrid", **more: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_str=text, query_embedding=vector, similarity_top_k=k, mode=mode, **more)


def test_21444_a_weight_scales_its_legs_share_and_none_leaves_it_out(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add(
        [
            TextNode(id_="word", text="kettle", embedding=[1.0, 0.0]),
            TextNode(id_="near", text="x", embedding=[0.0, 1.0]),
        ]
    )
    for alpha in (0.0, 0.25, 0.75, 0.9):
        found = vectors.query(asked("kettle", [0.0, 1.0], alpha=alpha))
        expected = {"word": 1 - alpha, "near": alpha} if alpha else {"word": 1.0}
        assert dict(zip(found.ids or [], found.similarities or [], strict=True)) == pytest.approx(expected)
        found = vectors.query(asked("kettle", [0.0, 1.0], alpha=alpha), preset="rrf")
        best = 1 / (60 + 1)
        word, near = (1 - alpha) / (60 + 1) + alpha / (60 + 2), alpha / (60 + 1)
        expected = {"word": word / best, "near": near / best} if alpha else {"word": 1.0}
        assert dict(zip(found.ids or [], found.similarities or [], strict=True)) == pytest.approx(expected)
    assert vectors.query(asked("kettle", [0.0, 1.0], alpha=1.0)).similarities == pytest.approx([1.0, 1e-9])


def test_15172_equal_text_with_other_metadata_stays_apart(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([TextNode(id_=id_, text="same", metadata={"page": id_}, embedding=[1.0]) for id_ in "ab"])
    assert set(vectors.query(asked("same", [1.0])).ids or []) == {"a", "b"}


def test_14383_equal_text_of_other_documents_stays_apart(make_vectors: Make) -> None:
    vectors = make_vectors()
    for id_ in "ab":
        node = TextNode(id_=id_, text="same", metadata={"k": 1}, embedding=[1.0])
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc {id_}")
        vectors.add([node])
    assert {node.ref_doc_id for node in vectors.query(asked("same", [1.0])).nodes or []} == {"doc a", "doc b"}
    vectors.delete("doc a")
    assert [node.node_id for node in vectors.get_nodes()] == ["b"]


async def test_12881_keywords_count_where_there_is_no_vector(make_vectors: Make, model: Any, call: Call) -> None:
    vectors = make_vectors(embed_model=model)
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    index.insert(Document(id_="seen", text="something else"))
    vectors.add([TextNode(id_="unseen", text="ERR_CONN_REFUSED_7", embedding=[])])
    legs: list[Any] = [index.as_retriever(vector_store_query_mode=mode) for mode in ("default", "sparse")]
    fusion = QueryFusionRetriever(legs, llm=MockLLM(), num_queries=1, mode="reciprocal_rerank", use_async=False)  # type: ignore[arg-type]
    assert (await call(fusion, "retrieve", "ERR_CONN_REFUSED_7"))[0].node_id == "unseen"


async def test_14959_filters_are_those_of_each_retriever(make_vectors: Make, model: Any, call: Call) -> None:
    index = VectorStoreIndex.from_vector_store(make_vectors(), embed_model=model)
    index.insert_nodes([TextNode(id_=id_, text="deploy", metadata={"team": id_}) for id_ in ("ops", "net")])
    for team in ("ops", "net"):
        only = MetadataFilters(filters=[MetadataFilter(key="team", value=team)])
        retriever = index.as_retriever(filters=only, vector_store_query_mode="hybrid")
        assert [each.node_id for each in await call(retriever, "retrieve", "deploy")] == [team]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("A journey through Italy and its cities.", "Italy"),  # 14960: stemmed one way and asked for another
        ("A journey through Italy and its cities.", "cities of italy"),
        ("running shoes", "runs"),
        ("北京是中国的首都。", "首都"),  # 13866, 17461
        ("東京タワーに登りました", "東京タワー"),
        ("ภาษาไทยไม่มีช่องว่าง", "ภาษาไทย"),
        ("Café au lait, s'il vous plaît", "cafe"),  # 16333
        ("Ёлка стоит", "елка"),
        ("C++ and .NET", "C++"),
        ("atomic_write_json fails", "atomic_write_json"),
        ("see v1.2.3", "v1.2.3"),
    ],
)
def test_14960_13866_what_is_stored_is_found_by_its_own_words(make_vectors: Make, text: str, question: str) -> None:
    vectors = make_vectors()
    vectors.add([TextNode(id_="it", text=text), TextNode(id_="other", text="nothing of the kind")])
    for mode in ("sparse", "hybrid", "default"):
        assert vectors.query(asked(question, mode=mode)).ids == ["it"]


async def test_16833_a_document_that_is_updated_leaves_one_copy(make_vectors: Make, model: Any, call: Call) -> None:
    vectors = make_vectors()
    index = VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    for text in ("first words", "second words", "third words"):
        await call(index, "update_ref_doc", Document(id_="d", text=text))
    assert [node.get_content() for node in vectors.get_nodes()] == ["third words"]


@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
async def test_6250_15233_17154_a_faiss_index_that_deletes_filters_and_updates(
    tmp_path: Path, make_vectors: Make, call: Call
) -> None:
    vectors = make_vectors(tmp_path / "notes.db", index="faiss-flat")
    nodes = [TextNode(id_=f"n{n}", text=f"note {n}", metadata={"n": n}, embedding=[1.0, n / 10]) for n in range(20)]
    await call(vectors, "add", nodes)
    query = asked(None, [1.0, 0.0], k=3, mode="default")
    first = await call(vectors, "query", query)
    assert first.ids == ["n0", "n1", "n2"]
    assert first.similarities == pytest.approx([1 / (1 + (n / 10) ** 2) ** 0.5 for n in range(3)])  # 14400: a cosine
    await call(vectors, "delete_nodes", ["n0"])
    await call(vectors, "add", [TextNode(id_="n1", text="note 1", metadata={"n": 1}, embedding=[0.0, 1.0])])
    assert (await call(vectors, "query", query)).ids == ["n2", "n3", "n4"]
    query.filters = MetadataFilters(filters=[MetadataFilter(key="n", value=[1, 19], operator="in")])  # type: ignore[arg-type]
    assert (await call(vectors, "query", query)).ids == ["n19", "n1"]
    assert vectors.store.info().backend.details["vector_index"] == "faiss-flat"


async def test_16588_nothing_leaks_from_outside(make_vectors: Make, call: Call) -> None:
    """Into neither leg: other namespaces, other users, other documents."""
    vectors = make_vectors(namespace=("mine",), embed_model=FakeEmbedder())
    await call(vectors, "add", [TextNode(id_="in", text="secret word")])
    TwofoldVectorStore(vectors.store, namespace=("theirs",)).add([TextNode(id_="out", text="secret word")])
    await call(vectors, "add", [TextNode(id_="private", text="secret word")], access=Access(user="ann"))
    for mode in ("default", "sparse", "hybrid", "mmr"):
        assert (await call(vectors, "query", asked("secret word", mode=mode))).ids == ["in"]


def test_23199_what_links_add_leaves_the_others_scores_alone(make_vectors: Make) -> None:
    vectors = make_vectors(embed_model=FakeEmbedder())
    vectors.add([TextNode(id_="hit", text="a red kettle"), TextNode(id_="next", text="a pear")])
    vectors.store.link("hit", "next", kind="related")
    plain = vectors.query(asked("red kettle", k=1))
    more = vectors.query(asked("red kettle", k=1), expand=2)
    assert (plain.ids, more.ids) == (["hit"], ["hit", "next"])
    assert more.similarities is not None
    assert plain.similarities == more.similarities[:1]
    assert 0 < more.similarities[1] < more.similarities[0]


async def test_23183_a_write_that_is_refused_leaves_the_old_node(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    await call(vectors, "add", [TextNode(id_="a", text="old", embedding=[1.0])])
    bad = TextNode(id_="b", text="x", metadata={"k": float("inf")})
    with pytest.raises(twofold.InvalidRecordError):
        await call(vectors, "add", [TextNode(id_="a", text="new", embedding=[1.0]), bad])
    assert [node.get_content() for node in await call(vectors, "get_nodes")] == ["old"]


async def test_20035_two_questions_at_once_get_their_own_answers(make_vectors: Make) -> None:
    vectors = make_vectors(embed_model=FakeEmbedder())
    vectors.add([TextNode(id_=f"n{n}", text=f"word{n}") for n in range(20)])
    found = await asyncio.gather(*(vectors.aquery(asked(f"word{n}", k=1)) for n in range(20)))
    assert [each.ids for each in found] == [[f"n{n}"] for n in range(20)]
