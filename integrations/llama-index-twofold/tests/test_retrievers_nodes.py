"""What ``TwofoldRetriever`` gives: nodes and their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index.retrievers.twofold import TwofoldRetriever
from twofold import GivenVectors, HybridStore

OpenStore = Callable[..., HybridStore]

NESTED = {"z": [1, None, True, 1.5, {"é": "ü"}], "a": {"b": {"c": []}}, "document_id": "d", "ref_doc_id": 3}


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def texts(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.text for each in found]


def test_a_node_has_the_records_id_text_and_exact_metadata(open_store: OpenStore) -> None:
    store = open_store()
    added = store.add("The deploy key.", metadata=NESTED, source="doc", tags=("ops",))
    (found,) = TwofoldRetriever(store).retrieve("deploy key")
    assert (found.node_id, found.text) == (added.id, "The deploy key.")
    assert type(found.node) is TextNode
    assert found.metadata == NESTED
    assert list(found.metadata) == list(NESTED)
    assert found.metadata["z"][2] is True
    assert found.node.ref_doc_id == "doc"
    assert found.node.hash == TextNode(text="The deploy key.", metadata=NESTED).hash
    assert isinstance(found.score, float)


def test_without_a_source_there_is_no_parent(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    (found,) = TwofoldRetriever(store).retrieve("deploy key")
    assert found.node.ref_doc_id is None
    assert found.node.relationships == {}


def test_changing_a_node_changes_nothing_else(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", metadata={"a": [1]})
    retriever = TwofoldRetriever(store)
    (first,) = retriever.retrieve("deploy key")
    score, first.score = first.score, -1.0
    first.metadata["a"].append(2)
    (again,) = retriever.retrieve("deploy key")
    assert (again.score, again.metadata) == (score, {"a": [1]})


def test_scores_are_floats_above_zero_and_descend(fruit: HybridStore) -> None:
    """run-llama/llama_index#12497: orthogonal and opposite vectors still have a score, which is not taken for none."""
    found = TwofoldRetriever(fruit, similarity_top_k=3, mode="vector").retrieve(
        QueryBundle("", embedding=[1.0, -1.0, 0.0])
    )
    scores = [each.get_score(raise_error=True) for each in found]
    assert ids(found)[0] == "alpha"
    assert scores[0] == pytest.approx(1 / 2**0.5)
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert max(scores[1:]) < 1e-6


def test_the_best_match_survives_a_similarity_cutoff(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    store.add("Lunch is at noon.")
    kept = SimilarityPostprocessor(similarity_cutoff=0.5).postprocess_nodes(TwofoldRetriever(store).retrieve("deploy"))
    assert texts(kept)[0] == "The deploy key."


def test_text_that_pydantic_refuses_does_not_cost_the_answer(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("a deploy \ud800 key\0")
    assert texts(TwofoldRetriever(store).retrieve("deploy")) == ["a deploy \N{REPLACEMENT CHARACTER} key\0"]


def test_a_record_of_empty_text_is_a_node_of_empty_text(open_store: OpenStore) -> None:
    store = open_store()
    store.add("", id="empty", tags=("deploy",))
    (found,) = TwofoldRetriever(store).retrieve("deploy")
    assert (found.node_id, found.text) == ("empty", "")


def test_a_store_of_given_vectors_is_asked_by_the_bundles(open_store: OpenStore) -> None:
    store = open_store(embedder=GivenVectors("mine", 2))
    store.add("one", id="one", vector=[1.0, 0.0])
    store.add("two", id="two", vector=[0.0, 1.0])
    retriever = TwofoldRetriever(store, similarity_top_k=1)
    assert ids(retriever.retrieve(QueryBundle("anything", embedding=[0.1, 1.0]))) == ["two"]
    assert ids(retriever.retrieve(QueryBundle("one", custom_embedding_strs=["two"]))) == ["one"]  # keywords only
