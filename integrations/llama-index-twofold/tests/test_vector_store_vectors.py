"""The vectors that nodes bring, and what is none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import (
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import VectorStoreQuery

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold.testing import FakeEmbedder, FlakyEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def node(id_: str, text: str, *, doc: str | None = None, embedding: Any = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=id_, text=text, metadata=metadata, embedding=embedding)
    if doc is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=doc)
    return made


def all_ids(vectors: TwofoldVectorStore) -> set[str]:
    return {record.id for record in vectors.store.list()}


@pytest.mark.parametrize(
    "embedding", [None, [], [0.0, 0.0, 0.0], [1.0, 2.0], [1.0, float("nan"), 0.0], [1e300, 0.0, 1.0]]
)
async def test_what_is_no_vector_leaves_the_node_to_keywords(make_vectors: Make, call: Call, embedding: Any) -> None:
    vectors = make_vectors()
    await call(vectors, "add", [node("sound", "sound", embedding=[1.0, 0.0, 0.0])])
    await call(
        vectors, "add", [node("odd", "odd", embedding=embedding), node("fine", "fine", embedding=[0.0, 1.0, 0.0])]
    )
    assert vectors.last_added is not None
    assert vectors.last_added.pending == 1
    assert vectors.query(VectorStoreQuery(query_str="odd", mode="sparse")).ids == ["odd"]
    nearest = await call(vectors, "query", VectorStoreQuery(query_embedding=[0.0, 1.0, 0.0], similarity_top_k=9))
    assert nearest.ids == ["fine", "sound"]


def test_in_a_new_file_the_first_vector_says_how_long_they_are(
    make_vectors: Make, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = make_vectors()
    nodes = [
        node("a", "a", embedding=[1.0, 2.0]),
        node("b", "b", embedding=[1.0]),
        node("c", "c", embedding=[2.0, 1.0]),
    ]
    assert vectors.add(nodes) == ["a", "b", "c"]
    assert vectors.last_added is not None
    assert [each.code for each in vectors.last_added.degradations][:1] == ["embedder_bad_output"]
    assert "1 nodes came with vectors that are not as long as the store's" in caplog.text
    assert vectors.last_added.pending == 1
    assert vectors.query(VectorStoreQuery(query_embedding=[1.0, 2.0], similarity_top_k=9)).ids == ["a", "c"]


def test_with_an_embedder_of_its_own_the_store_makes_up_for_what_is_no_vector(make_vectors: Make) -> None:
    embedder = FakeEmbedder(8)
    vectors = make_vectors(embed_model=embedder)
    own = embedder.embed(["given"], "document")[0].tolist()
    vectors.add([node("a", "given", embedding=own), node("b", "missing"), node("c", "short", embedding=[1.0])])
    assert vectors.last_added is not None
    assert vectors.last_added.pending == 0
    asked = VectorStoreQuery(query_str="missing", similarity_top_k=1)
    assert vectors.query(asked).ids == ["b"]


async def test_a_store_that_keeps_no_vectors_says_so(open_store: Any, call: Call) -> None:
    vectors = TwofoldVectorStore(open_store(embedder=None))
    with pytest.raises(twofold.ConfigurationError, match="GivenVectors"):
        await call(vectors, "add", [node("a", "x", embedding=[1.0, 2.0])])
    assert all_ids(vectors) == set()
    await call(vectors, "add", [node("a", "x", embedding=[])])
    found = await call(vectors, "query", VectorStoreQuery(query_embedding=[1.0, 2.0], query_str="x"))
    assert found.ids == ["a"]


def test_vectors_of_another_model_are_refused_and_never_compared(tmp_path: Path, make_vectors: Make) -> None:
    path = tmp_path / "notes.db"
    with TwofoldVectorStore(path, embed_model_name="one") as vectors:
        vectors.add([node("a", "x", embedding=[1.0, 2.0])])
    other = make_vectors(path, embed_model_name="two")
    with pytest.raises(twofold.ConfigurationError, match="given:one"):
        other.add([node("b", "y", embedding=[1.0, 2.0])])
    assert all_ids(other) == {"a"}
    found = other.query(VectorStoreQuery(query_embedding=[1.0, 2.0], query_str="x"))
    assert found.ids == ["a"]
    assert other.last_result is not None
    assert other.last_result.has("space_mismatch")


def test_a_failing_embedder_stops_no_write(make_vectors: Make) -> None:
    vectors = make_vectors(embed_model=FlakyEmbedder(down=True))
    assert vectors.add([node("a", "x")]) == ["a"]
    assert vectors.last_added is not None
    assert [each.code for each in vectors.last_added.degradations] == ["embedder_unreachable"]
