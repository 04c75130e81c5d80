"""What is added to the vector store, removed from it and looked up; for whom and where; sync and async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def node(id_: str, text: str, *, doc: str | None = None, embedding: Any = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=id_, text=text, metadata=metadata, embedding=embedding)
    if doc is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=doc)
    return made


def nested(depth: int) -> dict[str, Any]:
    outermost: dict[str, Any] = {}
    inner = outermost
    for _ in range(depth):
        inner["in"] = inner = {}
    return outermost


def equals(key: str, value: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value)])


def ids(nodes: list[BaseNode]) -> list[str]:
    return [each.node_id for each in nodes]


def all_ids(vectors: TwofoldVectorStore) -> set[str]:
    return {record.id for record in vectors.store.list()}


async def test_ids_come_back_in_order_and_nodes_by_id(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    nodes = [node(id_, f"text {id_}", embedding=[1.0, float(place)]) for place, id_ in enumerate("zab")]
    assert await call(vectors, "add", nodes) == ["z", "a", "b"]
    assert ids(await call(vectors, "get_nodes", ["b", "none", "z"])) == ["b", "z"]
    assert await call(vectors, "get_nodes", []) == []
    assert {each.node_id for each in await call(vectors, "get_nodes")} == {"z", "a", "b"}


async def test_nothing_added_is_nothing_done(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    assert await call(vectors, "add", []) == []
    assert await call(vectors, "get_nodes") == []
    found = await call(vectors, "query", VectorStoreQuery(query_embedding=[1.0], query_str="x", similarity_top_k=3))
    assert (found.nodes, found.similarities, found.ids) == ([], [], [])


async def test_adding_an_id_again_replaces_the_node(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    await call(
        vectors, "add", [node("a", "old words", embedding=[1.0, 0.0], k=1), node("b", "other", embedding=[0.0, 1.0])]
    )
    await call(vectors, "add", [node("a", "new words", embedding=[0.0, 2.0], z=2)])
    (found,) = await call(vectors, "get_nodes", ["a"])
    assert (found.get_content(), found.metadata) == ("new words", {"z": 2})
    assert all_ids(vectors) == {"a", "b"}
    for gone in ("old", "k"):
        assert vectors.query(VectorStoreQuery(query_str=gone, mode="sparse")).ids == []
    nearest = vectors.query(VectorStoreQuery(query_embedding=[0.0, 1.0], similarity_top_k=2))
    assert nearest.similarities == [1.0, 1.0]


async def test_of_an_id_given_twice_the_last_wins(make_vectors: Make, call: Call) -> None:
    """run-llama/llama_index#14711, #11594."""
    vectors = make_vectors()
    twice = [node("a", "first", embedding=[1.0]), node("a", "second", embedding=[1.0])]
    assert await call(vectors, "add", twice) == ["a", "a"]
    assert [each.get_content() for each in await call(vectors, "get_nodes")] == ["second"]


def test_many_nodes_in_batches(make_vectors: Make) -> None:
    vectors = make_vectors()
    nodes = [node(f"n{place}", f"text {place}", embedding=[1.0, place]) for place in range(7)]
    assert vectors.add(nodes, batch_size=3) == [f"n{place}" for place in range(7)]
    assert vectors.last_added is not None
    assert (vectors.last_added.added, vectors.last_added.pending) == (7, 0)


def test_the_nodes_that_are_given_are_left_as_they_are(make_vectors: Make) -> None:
    given = node("a", "text", doc="d", embedding=[1.0, 2.0], k=[1])
    before = given.model_copy(deep=True)
    vectors = make_vectors()
    vectors.add([given])
    (found,) = vectors.get_nodes(["a"])
    found.metadata["k"].append(2)
    assert given == before
    assert vectors.get_nodes(["a"])[0].metadata == {"k": [1]}


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (node("", "no id"), ValueError, "id is not empty"),
        ("a text", ValueError, "str is none of them"),
        (node("a", "x", bad=float("nan")), ValueError, "node 'a' .*nan"),
        (node("a", "x", bad=2**70), ValueError, "node 'a' .*64 bits"),
        (node("a", "x", bad="\0"), ValueError, "node 'a' .*NUL"),
        (node("a", "x", bad="\ud800"), ValueError, "node 'a' .*surrogate"),
        (node("a", "x", bad=nested(10_000)), ValueError, "node 'a' cannot be stored as JSON"),
        (node("a", "x", bad=object()), ValueError, "node 'a' cannot be stored as JSON"),
    ],
)
async def test_what_cannot_be_stored_stops_everything_before_anything_is_written(
    make_vectors: Make, call: Call, wrong: TextNode, error: type[Exception], words: str
) -> None:
    vectors = make_vectors()
    with pytest.raises(error, match=words):
        await call(vectors, "add", [node("good", "good", embedding=[1.0]), wrong])
    assert all_ids(vectors) == set()


async def test_unknown_arguments_are_refused(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    for name, arguments in (("add", ([],)), ("delete", ("d",)), ("delete_nodes", (["a"],))):
        with pytest.raises(TypeError, match="shards"):
            await call(vectors, name, *arguments, shards=3)
    with pytest.raises(TypeError, match=r"shards.*mmr_threshold"):
        await call(vectors, "query", VectorStoreQuery(query_str="x"), shards=3)


# Removing


@pytest.fixture
def chunks(make_vectors: Make) -> TwofoldVectorStore:
    """Two chunks of document d1, one of d2, two of none; of which one is a document itself."""
    vectors = make_vectors()
    vectors.add(
        [
            node("a", "alpha one", doc="d1", embedding=[1.0, 0.0], n=1),
            node("b", "alpha two", doc="d1", embedding=[1.0, 1.0], n=2),
            node("c", "beta", doc="d2", embedding=[0.0, 1.0], n=3),
            node("loose", "gamma", embedding=[1.0, 2.0], n=4),
            Document(id_="d3", text="whole", embedding=[2.0, 1.0], metadata={"n": 5}),
        ]
    )
    return vectors


async def test_a_document_is_removed_with_all_its_nodes(chunks: TwofoldVectorStore, call: Call) -> None:
    """run-llama/llama_index#13537, #6714."""
    await call(chunks, "delete", "d1")
    assert all_ids(chunks) == {"c", "loose", "d3"}
    assert chunks.query(VectorStoreQuery(query_str="alpha", mode="sparse")).ids == []
    assert chunks.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=9)).ids == ["d3", "loose", "c"]


@pytest.mark.parametrize("nobody", [None, "", "None", "a", "unknown", "d"])
async def test_removing_no_document_removes_nothing(chunks: TwofoldVectorStore, call: Call, nobody: Any) -> None:
    """RyanCodrai/turbovec#302: ``delete(None)`` wiped every node without a document."""
    before = all_ids(chunks)
    await call(chunks, "delete", nobody)
    assert all_ids(chunks) == before


@pytest.mark.parametrize(
    ("node_ids", "filters", "left"),
    [
        (["a", "none"], None, {"b", "c", "loose", "d3"}),
        ([], None, {"a", "b", "c", "loose", "d3"}),
        ([], equals("n", 1), {"a", "b", "c", "loose", "d3"}),
        (None, equals("n", 3), {"a", "b", "loose", "d3"}),
        (["a", "b"], equals("n", 2), {"a", "c", "loose", "d3"}),
        (["a", "b"], equals("n", 3), {"a", "b", "c", "loose", "d3"}),
    ],
)
async def test_nodes_are_removed_by_id_and_by_filter(
    chunks: TwofoldVectorStore, call: Call, node_ids: Any, filters: Any, left: set[str]
) -> None:
    """run-llama/llama_index#19277, #15818."""
    await call(chunks, "delete_nodes", node_ids, filters)
    assert all_ids(chunks) == left


@pytest.mark.parametrize(
    "filters", [None, MetadataFilters(filters=[]), MetadataFilters(filters=[MetadataFilters(filters=[])])]
)
async def test_removing_without_saying_what_is_refused(chunks: TwofoldVectorStore, call: Call, filters: Any) -> None:
    """RyanCodrai/turbovec#504."""
    before = all_ids(chunks)
    with pytest.raises(ValueError, match=r"clear\(\)"):
        await call(chunks, "delete_nodes", filters=filters)
    assert all_ids(chunks) == before


async def test_clear_leaves_nothing_and_can_be_added_to_again(chunks: TwofoldVectorStore, call: Call) -> None:
    await call(chunks, "clear")
    assert await call(chunks, "get_nodes") == []
    await call(chunks, "add", [node("a", "again", embedding=[1.0, 0.0])])
    assert chunks.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=9)).ids == ["a"]


@pytest.mark.parametrize(
    ("node_ids", "filters", "found"),
    [
        (None, equals("n", 2), ["b"]),
        (
            ["c", "b", "a"],
            MetadataFilters(filters=[MetadataFilter(key="n", value=3, operator=FilterOperator.LT)]),
            ["b", "a"],
        ),
        (["c", "b", "c"], None, ["c", "b"]),
        (["c"], equals("n", 1), []),
        (["c"], MetadataFilters(filters=[]), ["c"]),
    ],
)
async def test_nodes_are_found_by_id_and_by_filter(
    chunks: TwofoldVectorStore, call: Call, node_ids: Any, filters: Any, found: list[str]
) -> None:
    assert ids(await call(chunks, "get_nodes", node_ids, filters)) == found


# Whose and where


async def test_namespaces_keep_apart(make_vectors: Make, call: Call) -> None:
    one = make_vectors(namespace=("books",))
    two = TwofoldVectorStore(one.store, namespace=("books", "old"))
    root = TwofoldVectorStore(one.store)
    for vectors, text in ((one, "first"), (two, "second"), (root, "third")):
        await call(vectors, "add", [node("same", f"{text} words", embedding=[1.0], k=1)])
    asked = VectorStoreQuery(query_embedding=[1.0], query_str="words", similarity_top_k=9)
    for vectors, text in ((one, "first words"), (two, "second words"), (root, "third words")):
        found = await call(vectors, "query", asked)
        assert [each.get_content() for each in found.nodes] == [text]
        assert [each.get_content() for each in await call(vectors, "get_nodes", ["same"])] == [text]
        assert [each.get_content() for each in await call(vectors, "get_nodes", filters=equals("k", 1))] == [text]
    await call(one, "clear")
    await call(root, "delete_nodes", ["same"])
    assert (await call(one, "get_nodes"), await call(root, "get_nodes")) == ([], [])
    assert ids(await call(two, "get_nodes")) == ["same"]


async def test_access_says_what_is_seen_and_changed(make_vectors: Make, call: Call) -> None:
    ann, ben = Access(user="ann"), Access(user="ben")
    vectors = make_vectors()
    await call(vectors, "add", [node("public", "a public note", doc="p", embedding=[1.0, 0.0])])
    await call(vectors, "add", [node("private", "a private note", doc="q", embedding=[1.0, 0.1])], access=ann)
    asked = VectorStoreQuery(query_embedding=[1.0, 0.1], query_str="note", similarity_top_k=9)
    for mode in ("default", "sparse", "hybrid", "mmr"):
        asked.mode = mode  # type: ignore[assignment]
        for access, expected in ((ann, {"public", "private"}), (ben, {"public"}), (None, {"public"})):
            assert set((await call(vectors, "query", asked, access=access)).ids) == expected
    assert ids(await call(vectors, "get_nodes", ["private"], access=ben)) == []
    await call(vectors, "delete", "q", access=ben)
    await call(vectors, "delete_nodes", ["private"], access=ben)
    await call(vectors, "clear", access=ben)
    with pytest.raises(twofold.AccessError):
        await call(vectors, "delete_nodes", ["public"], access=ann)
    assert set(ids(await call(vectors, "get_nodes", access=ann))) == {"public", "private"}
    await call(vectors, "delete", "q", access=ann)
    assert ids(await call(vectors, "get_nodes", access=ann)) == ["public"]


async def test_its_own_access_and_that_of_a_view_hold_where_a_call_does_not_say(open_store: Any, call: Call) -> None:
    store, ann = open_store(), Access(user="ann")
    for vectors in (TwofoldVectorStore(store, access=ann), TwofoldVectorStore(store.view(ann))):
        await call(vectors, "add", [node("mine", "my note")])
        assert ids(await call(vectors, "get_nodes")) == ["mine"]
        assert (await call(vectors, "query", VectorStoreQuery(query_str="note"))).ids == ["mine"]
        assert TwofoldVectorStore(store).get_nodes() == []
        await call(vectors, "clear")
        assert store.count(access=ann) == 0
