"""Nodes come back whole."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index.embeddings.twofold import NoEmbedding
from llama_index.vector_stores.twofold import TwofoldVectorStore

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def node(id_: str, text: str, *, doc: str | None = None, embedding: Any = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=id_, text=text, metadata=metadata, embedding=embedding)
    if doc is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=doc)
    return made


def ids(nodes: list[BaseNode]) -> list[str]:
    return [each.node_id for each in nodes]


@pytest.fixture(scope="module")
def whole() -> Iterator[TwofoldVectorStore]:
    with TwofoldVectorStore(embed_model=NoEmbedding()) as made:
        yield made


def related(made: Any) -> Any:
    made.relationships = {
        NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc", node_type="4", metadata={"page": 1}, hash="h"),
        NodeRelationship.NEXT: RelatedNodeInfo(node_id="next"),
        NodeRelationship.CHILD: [RelatedNodeInfo(node_id="c1"), RelatedNodeInfo(node_id="c2")],
    }
    return made


WHOLE = [
    TextNode(id_="n", text="plain"),
    related(TextNode(id_="n", text="with relationships", metadata={"b": 1, "a": [True, None, 1.5, {"z": "ü"}]})),
    TextNode(id_="n", text="", metadata={"only": "metadata"}),
    TextNode(id_="n", text="  spaces around \n", metadata={"k": "v"}),
    TextNode(
        id_="n",
        text="templates",
        metadata={"shown": 1, "hidden": 2, "secret": 3},
        excluded_embed_metadata_keys=["hidden"],
        excluded_llm_metadata_keys=["secret", "shown"],
        metadata_template="<{key}|{value}>",
        metadata_separator=" ; ",
        text_template="{content} -- {metadata_str}",
        start_char_idx=3,
        end_char_idx=12,
        mimetype="text/markdown",
    ),
    related(Document(id_="n", text="a document", metadata={"title": "T"})),
    ImageDocument(id_="n", text="an image document", image="aGk=", metadata={"k": 1}),
    ImageNode(id_="n", text="a caption", image="aGk=", image_mimetype="image/png", metadata={"k": 1}),
    ImageNode(id_="n", image_url="https://example.org/cat.png"),
    IndexNode(id_="n", text="a summary", index_id="table-1", metadata={"k": 1}),
    IndexNode(id_="n", text="a summary", index_id="i", obj=related(TextNode(id_="inner", text="the whole"))),
    IndexNode(id_="n", text="a summary", index_id="i", obj=Document(id_="inner", text="the whole", metadata={"k": 1})),
    Node(id_="n", text_resource=MediaResource(text="of several media", mimetype="text/plain"), metadata={"k": 1}),
    Node(id_="n", image_resource=MediaResource(data=b"aGk=", mimetype="image/png")),
]


@pytest.mark.parametrize("given", WHOLE, ids=lambda each: type(each).__name__)
async def test_a_node_comes_back_whole(make_vectors: Make, call: Call, given: BaseNode) -> None:
    """run-llama/llama_index#21611."""
    vectors = make_vectors(embed_model=NoEmbedding())
    await call(vectors, "add", [given])
    (found,) = await call(vectors, "get_nodes", ["n"])
    assert type(found) is type(given)
    assert found == given
    assert found.hash == given.hash
    assert found.ref_doc_id == given.ref_doc_id
    assert list(found.metadata) == list(given.metadata)
    for mode in MetadataMode:
        assert found.get_content(mode) == given.get_content(mode)


WELL_FORMED = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
STORABLE = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        STORABLE,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(STORABLE, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_node_comes_back_whole(whole: TwofoldVectorStore, data: st.DataObject) -> None:
    metadata = data.draw(st.dictionaries(STORABLE, JSON, max_size=5))
    keys = st.lists(st.sampled_from(list(metadata) or ["none"]), max_size=2)
    given_ = TextNode(
        id_=data.draw(STORABLE.filter(bool)),
        text=data.draw(WELL_FORMED),
        metadata=metadata,
        excluded_embed_metadata_keys=data.draw(keys),
        excluded_llm_metadata_keys=data.draw(keys),
        text_template=data.draw(
            st.sampled_from(["{metadata_str}\n\n{content}", "{content} ({metadata_str})", "{content}"])
        ),
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id=data.draw(STORABLE), metadata=metadata),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id=data.draw(WELL_FORMED)),
        },
    )
    whole.clear()
    whole.add([given_])
    (found,) = whole.get_nodes()
    assert found == given_
    assert found.hash == given_.hash
    assert json.dumps(found.metadata) == json.dumps(given_.metadata)  # the order of keys, 1 and 1.0 apart


def test_what_json_has_no_word_for_becomes_what_llama_index_makes_of_it(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([node("a", "x", embedding=[1.0], day=date(2026, 1, 2), pair=(1, 2))])
    (found,) = vectors.get_nodes(["a"])
    assert found.metadata == {"day": "2026-01-02", "pair": [1, 2]}


def test_records_of_other_makers_are_nodes_too(open_store: Any) -> None:
    store = open_store()
    store.add("a memory \ud800", id="m", metadata={"k": 1}, source="talk", payload={"mine": 1})
    (found,) = TwofoldVectorStore(store).get_nodes(["m"])
    assert isinstance(found, TextNode)
    assert (found.get_content(), found.metadata, found.ref_doc_id) == ("a memory \ufffd", {"k": 1}, "talk")


def wrong(payload: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"llama_index": payload["llama_index"] | changes}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: {"llama_index": "else"},
        lambda _: {"llama_index": {}},
        lambda _: {"llama_index": []},
        lambda payload: wrong(payload, node="{"),
        lambda payload: wrong(payload, node="[]"),
        lambda payload: wrong(payload, node=5),
        lambda payload: wrong(payload, type="99"),
        lambda payload: wrong(payload, start="x"),
    ],
)
def test_a_payload_that_says_something_else_hides_no_node(make_vectors: Make, spoil: Any) -> None:
    """Whoever may write a record may write its payload: that must not break the searches of others."""
    vectors = make_vectors()
    vectors.add([node("a", "the text", doc="d", embedding=[1.0], page=3)])
    record = vectors.store.get("a")
    assert record is not None
    vectors.store.update("a", payload=spoil(record.payload))
    (found,) = vectors.query(VectorStoreQuery(query_embedding=[1.0])).nodes or []
    assert (found.node_id, found.ref_doc_id, found.metadata) == ("a", "d", {"page": 3})
    assert found.get_content().endswith("the text")


def test_a_payload_cannot_give_a_node_another_id(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([node("a", "the text", embedding=[1.0])])
    record = vectors.store.get("a")
    assert record is not None
    vectors.store.add(record.text, id="b", payload=record.payload)
    assert ids(vectors.get_nodes(["b"])) == ["b"]


def test_a_text_that_was_changed_since_is_the_nodes(make_vectors: Make) -> None:
    vectors = make_vectors()
    vectors.add([node("a", "the old text", embedding=[1.0], page=3), Document(id_="b", text="old", embedding=[1.0])])
    for id_ in ("a", "b"):
        vectors.store.update(id_, text="the new text", metadata={"page": 4})
    for found in vectors.get_nodes(["a", "b"]):
        assert (found.get_content(), found.metadata) == ("the new text", {"page": 4})
    assert vectors.query(VectorStoreQuery(query_str="new", mode="sparse", similarity_top_k=5)).ids is not None


def test_keywords_are_of_the_text_that_llama_index_embeds(make_vectors: Make) -> None:
    """run-llama/llama_index#13361."""
    vectors = make_vectors()
    given = node("a", "the body", embedding=[1.0], author="Ann", hidden="xyzzy")
    given.excluded_embed_metadata_keys = ["hidden"]
    vectors.add([given])
    for word, found in (("body", ["a"]), ("Ann", ["a"]), ("author", ["a"]), ("xyzzy", []), ("hidden", [])):
        assert vectors.query(VectorStoreQuery(query_str=word, mode="sparse")).ids == found
    assert vectors.store.get("a").text == given.get_content(MetadataMode.EMBED)  # type: ignore[union-attr]
