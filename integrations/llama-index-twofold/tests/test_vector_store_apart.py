"""Nobody sees, changes or removes what is another's, whatever a query asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

import twofold
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import A, Access, F, SearchParams
from twofold.filters import And, Not, Or
from twofold.testing import FakeEmbedder

Call = Callable[..., Awaitable[Any]]

ANN, BEN = Access(user="ann", rooms=("ops",)), Access(user="ben", rooms=("ops",))
MODES = ("default", "sparse", "text_search", "hybrid", "semantic_hybrid", "mmr")
EVERYTHING = MetadataFilters(
    filters=[
        MetadataFilter(key="of", value="ann"),
        MetadataFilters(filters=[MetadataFilter(key="of", value="ann")], condition=FilterCondition.NOT),
        MetadataFilter(key="none such", value=1, operator=FilterOperator.NE),
    ],
    condition=FilterCondition.OR,
)


class Shared(NamedTuple):
    """Two users' vector stores over one store; some of their nodes and documents have the same ids."""

    store: twofold.HybridStore
    ann: TwofoldVectorStore
    ben: TwofoldVectorStore


def node(id_: str, of: str) -> TextNode:
    made = TextNode(id_=id_, text=f"zebra of {of}", metadata={"of": of})
    made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="document")
    return made


def texts(nodes: Any) -> list[str]:
    return sorted(each.get_content() for each in nodes)


@pytest.fixture
def shared(open_store: Callable[..., twofold.HybridStore]) -> Shared:
    store = open_store(embedder=FakeEmbedder())
    ann, ben = (TwofoldVectorStore(store, access=access) for access in (ANN, BEN))
    ann.add([node("same", "ann"), node("only", "ann")])
    ben.add([node("same", "ben")])
    store.link("only", "same", access=ANN)
    return Shared(store, ann, ben)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "asked",
    [
        {"node_ids": ["same", "only"]},
        {"doc_ids": ["document"]},
        {"filters": EVERYTHING},
        {"query_embedding": FakeEmbedder().embed(["zebra of ann"], "query")[0].tolist()},
        {"query_str": "", "filters": EVERYTHING},
        {"node_ids": ["only"]},
    ],
)
async def test_no_query_reaches_further_than_its_access(
    shared: Shared, call: Call, mode: str, asked: dict[str, Any]
) -> None:
    given = {"query_str": "zebra of ann", "similarity_top_k": 10, **asked}
    query = VectorStoreQuery(mode=VectorStoreQueryMode(mode), **given)
    seen = [] if asked.get("node_ids") == ["only"] else ["zebra of ben"]
    for options in (
        {},
        {"expand": 9},
        {"params": SearchParams(expand=9)},
        {"where": Or(And(), Not(Or()), A.scope == "personal", F("of") == "ann")},
        {"where": {"$or": [{}, {"of": "ann"}]}},
    ):
        assert texts((await call(shared.ben, "query", query, **options)).nodes) == seen
        assert texts((await call(TwofoldVectorStore(shared.store), "query", query, **options)).nodes) == []
        elsewhere = TwofoldVectorStore(shared.store, access=BEN, namespace=("elsewhere",))
        assert texts((await call(elsewhere, "query", query, **options)).nodes) == []


async def test_nothing_of_anothers_is_looked_up_or_removed(shared: Shared, call: Call) -> None:
    ben = shared.ben
    assert texts(await call(ben, "get_nodes")) == ["zebra of ben"]
    assert texts(await call(ben, "get_nodes", ["same", "only"])) == ["zebra of ben"]
    assert texts(await call(ben, "get_nodes", None, EVERYTHING)) == ["zebra of ben"]
    everybody = TwofoldVectorStore(shared.store)
    for other in (ben, everybody):
        await call(other, "delete_nodes", ["only"])
        await call(other, "delete_nodes", ["only", "same"], EVERYTHING)
        await call(other, "delete_nodes", None, EVERYTHING)
        await call(other, "delete", "document")
        await call(other, "clear")
    assert texts(ben.get_nodes()) == []
    assert texts(shared.ann.get_nodes()) == ["zebra of ann"] * 2


async def test_a_node_of_the_same_id_leaves_anothers_as_it_is(shared: Shared, call: Call) -> None:
    await call(shared.ben, "add", [node("only", "ben")])
    assert texts(shared.ann.get_nodes()) == ["zebra of ann"] * 2
    assert texts(shared.ben.get_nodes()) == ["zebra of ben"] * 2


async def test_a_room_is_for_who_is_in_it(shared: Shared, call: Call) -> None:
    shared.store.add("zebra of the room", id="room", scope="room", room="ops", access=ANN)
    query = VectorStoreQuery(query_str="zebra", similarity_top_k=10, mode=VectorStoreQueryMode.HYBRID)
    assert texts((await call(shared.ben, "query", query)).nodes) == ["zebra of ben", "zebra of the room"]
    outside = Access(user="ben")
    assert texts((await call(shared.ben, "query", query, access=outside)).nodes) == ["zebra of ben"]
    assert texts(await call(shared.ben, "get_nodes", access=outside)) == ["zebra of ben"]


def test_documents_are_each_users_own(shared: Shared) -> None:
    anns, bens = TwofoldDocumentStore(shared.ann), TwofoldDocumentStore(shared.ben)
    anns.set_document_hash("document", "ann's")
    assert bens.get_document_hash("document") != "ann's"
    assert texts(bens.docs.values()) == ["zebra of ben"]
    assert bens.get_document("only", raise_error=False) is None
    bens.delete_document("only", raise_error=False)
    bens.delete_ref_doc("document")
    assert anns.get_document_hash("document") == "ann's"
    assert texts(anns.docs.values()) == ["zebra of ann"] * 2
    for turn in (True, False):
        for vectors, documents in ((shared.ann, anns), (shared.ben, bens)):
            storage = StorageContext.from_defaults(vector_store=vectors, docstore=documents)
            index = VectorStoreIndex(nodes=[], storage_context=storage, embed_model=NoEmbedding())
            assert index.refresh_ref_docs([Document(id_="letter", text="the same letter")]) == [turn]


async def test_a_retriever_over_it_reaches_no_further(shared: Shared, call: Call) -> None:
    retriever = TwofoldRetriever.over(
        shared.ben, similarity_top_k=10, include_linked=True, params=SearchParams(expand=9), filters=EVERYTHING
    )
    found = await call(retriever, "retrieve", "zebra of ann")
    assert [each.node.get_content() for each in found] == ["zebra of ben"]
