"""The vector store as an object: what it is made of, copied, pickled, closed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access
from twofold.testing import FakeEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def node(id_: str, text: str, *, doc: str | None = None, embedding: Any = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=id_, text=text, metadata=metadata, embedding=embedding)
    if doc is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=doc)
    return made


def ids(nodes: list[BaseNode]) -> list[str]:
    return [each.node_id for each in nodes]


def all_ids(vectors: TwofoldVectorStore) -> set[str]:
    return {record.id for record in vectors.store.list()}


def test_the_base_class_and_what_it_says_of_itself(make_vectors: Make) -> None:
    vectors = make_vectors()
    assert BasePydanticVectorStore in type(vectors).__mro__
    assert (vectors.stores_text, vectors.is_embedding_query, vectors.flat_metadata) == (True, True, False)
    assert vectors.class_name() == "TwofoldVectorStore"
    assert vectors.client is vectors.store
    assert vectors.to_dict()["class_name"] == "TwofoldVectorStore"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespace": "books"}, "tuple of words"),
        ({"namespace": ("a", "")}, "namespace"),
        ({"indexx": "exact"}, "indexx"),
        ({"access": "ann"}, "pass a Access"),
        ({"embedder": "local"}, "called embed_model"),
        ({"params": {"rrf_k": 3}}, "pass a SearchParams"),
        ({"embed_model": FakeEmbedder(), "embed_model_name": "x"}, "embed_model_name"),
        ({"embed_model": MockEmbedding(embed_dim=2)}, "does not say which model it is"),
        ({"embed_model": 5}, "embedder"),
    ],
)
def test_what_it_cannot_use_is_refused_at_construction(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TwofoldVectorStore(tmp_path / "notes.db", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"embed_model": FakeEmbedder()}, {"tenant": "acme"}, {"index": "exact"}])
def test_an_open_store_has_its_own_settings(open_store: Any, options: dict[str, Any]) -> None:
    with pytest.raises(twofold.ConfigurationError, match=rf"{next(iter(options))}.*open already"):
        TwofoldVectorStore(open_store(), **options)


def test_it_is_pickled_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = MockEmbedding(embed_dim=2)
    with TwofoldVectorStore(
        "notes.db",
        embed_model=model,
        embed_model_name="mine",
        access=Access(user="ann"),
        namespace=("a",),
        index="exact",
    ) as vectors:
        vectors.add([node("a", "a note")])
        data = pickle.dumps(vectors)
    monkeypatch.chdir("/")
    with pickle.loads(data) as again:
        assert again.query(VectorStoreQuery(query_str="note")).ids == ["a"]
        assert (again.access, again.namespace) == (Access(user="ann"), ("a",))
        assert again.store.info().embedder == "llama-index:mine"
        assert again.store.settings.index == "exact"


def test_what_has_no_path_of_its_own_cannot_be_pickled(open_store: Any, make_vectors: Make) -> None:
    for vectors in (TwofoldVectorStore(open_store()), make_vectors()):
        with pytest.raises(TypeError, match="made from a path"):
            pickle.dumps(vectors)


def test_a_copy_works_on_the_same_store_and_closes_nothing(make_vectors: Make) -> None:
    vectors = make_vectors(namespace=("n",))
    for twin in (copy.copy(vectors), copy.deepcopy(vectors), vectors.model_copy(deep=True)):
        twin.add([node("a", "text", embedding=[1.0])])
        assert twin.namespace == ("n",)
        twin.close()
    assert ids(vectors.get_nodes()) == ["a"]


async def test_only_a_store_that_was_opened_here_is_closed(tmp_path: Path, open_store: Any, call: Call) -> None:
    store = open_store()
    given, own = TwofoldVectorStore(store), TwofoldVectorStore(tmp_path / "notes.db")
    for vectors in (given, own):
        await call(vectors, "close")
        await call(vectors, "close")
    assert store.count() == 0
    with pytest.raises(twofold.StoreClosedError):
        own.get_nodes()
    async with TwofoldVectorStore(tmp_path / "notes.db") as third:
        assert third.get_nodes() == []
    with pytest.raises(twofold.StoreClosedError):
        third.get_nodes()


def test_persisting_writes_nothing_anywhere(tmp_path: Path, make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([node("a", "x", embedding=[1.0])])
    vectors.persist(str(tmp_path / "default__vector_store.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_opened_again_answers_the_same(tmp_path: Path) -> None:
    """run-llama/llama_index#19656, #14933, #17202."""
    asked = VectorStoreQuery(query_embedding=[1.0, 0.5], query_str="alpha", similarity_top_k=3, mode="hybrid")  # type: ignore[arg-type]
    with TwofoldVectorStore(tmp_path / "notes.db") as vectors:
        vectors.add([node(f"n{place}", f"alpha {place}", embedding=[1.0, place]) for place in range(5)])
        first = vectors.query(asked)
    with TwofoldVectorStore(tmp_path / "notes.db") as vectors:
        assert vectors.query(asked) == first


def test_a_tenant_has_a_file_of_its_own(tmp_path: Path) -> None:
    for tenant in ("acme", "initech"):
        with TwofoldVectorStore(tmp_path, tenant=tenant) as vectors:
            vectors.add([node(tenant, "x", embedding=[1.0])])
    with TwofoldVectorStore(tmp_path, tenant="acme") as vectors:
        assert all_ids(vectors) == {"acme"}
        again = pickle.loads(pickle.dumps(vectors))
        assert all_ids(again) == {"acme"}
        again.close()
