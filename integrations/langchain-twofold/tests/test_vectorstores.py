"""``TwofoldVectorStore`` of LangChain."""

from __future__ import annotations

import asyncio
import copy
import math
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from pydantic import ValidationError

import twofold
from langchain_twofold import TwofoldVectorStore
from twofold import Access, F, HybridStore, SearchParams
from twofold.testing import FakeEmbedder, FlakyEmbedder

NESTED = {"z": [1, None, True, 1.5, {"é": "ü"}], "a": {"b": {"c": []}}, "id": 1, "one": 1.0, "yes": True}

AXES = {"east": [1.0, 0.0], "north": [0.0, 1.0], "northeast": [0.8, 0.6], "almost east": [0.99, 0.141]}


class Axes(Embeddings):
    """Vectors in a plane, by text."""

    model = "axes"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [AXES[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return AXES[text]


@pytest.fixture
def vectors(open_store: Callable[..., HybridStore]) -> TwofoldVectorStore:
    return TwofoldVectorStore(open_store())


@pytest.fixture
def axes() -> Iterator[TwofoldVectorStore]:
    with TwofoldVectorStore(embedding=Axes()) as store:
        store.add_texts(list(AXES), [{"n": number} for number in range(len(AXES))], ids=list(AXES))
        yield store


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


# Writing


def test_an_id_again_replaces_text_metadata_and_vector(axes: TwofoldVectorStore) -> None:
    axes.add_texts(["north"], [{"n": 9}], ids=["east"])
    assert axes.get_by_ids(["east"]) == [Document(id="east", page_content="north", metadata={"n": 9})]
    assert set(ids(axes.similarity_search_by_vector([0.0, 1.0], k=2))) == {"north", "east"}
    assert "east" not in ids(axes.similarity_search_by_vector([1.0, 0.0], k=2))


def test_of_an_id_twice_in_a_call_the_last_wins(vectors: TwofoldVectorStore) -> None:
    """langchain-ai/langchain#9019."""
    assert vectors.add_texts(["the first", "the second"], ids=["x", "x"]) == ["x", "x"]
    assert [document.page_content for document in vectors.similarity_search("the", k=5)] == ["the second"]


def test_new_ids_are_given_where_there_are_none(vectors: TwofoldVectorStore) -> None:
    documents = [Document("a kettle", id="mine"), Document("a pot")]
    mine, given = vectors.add_documents(documents)
    assert mine == "mine"
    assert documents[1].id is None
    assert ids(vectors.get_by_ids([given, "mine"])) == [given, "mine"]


def test_ids_given_to_the_call_win_over_the_documents(vectors: TwofoldVectorStore) -> None:
    assert vectors.add_documents([Document("a", id="its own")], ids=["given"]) == ["given"]
    assert vectors.add_documents([Document("a", id="its own")], ids=None) == ["its own"]


@pytest.mark.parametrize("short", ["metadatas", "ids"])
def test_lists_of_unequal_length_are_refused(vectors: TwofoldVectorStore, short: str) -> None:
    """langchain-ai/langchain#36745: nothing is dropped without a word."""
    given: dict[str, Any] = {"metadatas": [{}, {}], "ids": ["1", "2"]}
    given[short] = given[short][:1]
    with pytest.raises(ValueError, match=f"2 texts but 1 {short}"):
        vectors.add_texts(["a", "b"], **given)
    assert vectors.store.count() == 0


def test_one_bad_document_leaves_all_unwritten(vectors: TwofoldVectorStore) -> None:
    with pytest.raises(ValueError, match="datetime"):
        vectors.add_documents([Document("a"), Document("b", metadata={"at": datetime(2026, 1, 1, tzinfo=UTC)})])
    assert vectors.store.count() == 0


@pytest.mark.parametrize("value", [math.nan, {1: "x"}, {"x"}, (1, 2), 2**63])
def test_metadata_that_would_not_come_back_is_refused(vectors: TwofoldVectorStore, value: object) -> None:
    """langchain-ai/langchain#8556."""
    with pytest.raises(ValueError, match="metadata"):
        vectors.add_texts(["a"], [{"k": value}])


def test_metadata_is_encoded_by_choice(open_store: Callable[..., HybridStore]) -> None:
    store = TwofoldVectorStore(open_store(), encode=lambda value: value.isoformat())
    metadata = {"at": datetime(2026, 1, 1, tzinfo=UTC), "list": [datetime(2026, 1, 2, tzinfo=UTC), 3]}
    store.add_texts(["a"], [metadata], ids=["1"])
    assert store.get_by_ids(["1"])[0].metadata == {
        "at": "2026-01-01T00:00:00+00:00",
        "list": ["2026-01-02T00:00:00+00:00", 3],
    }
    assert isinstance(metadata["at"], datetime)


def test_metadata_comes_back_exactly_and_is_nobodys_but_the_callers(vectors: TwofoldVectorStore) -> None:
    given = copy.deepcopy(NESTED)
    document = Document("a kettle", metadata=given, id="1")
    vectors.add_documents([document])
    assert document == Document("a kettle", metadata=NESTED, id="1")
    given["a"]["b"]["c"].append("changed")  # type: ignore[index]
    for read in (vectors.get_by_ids(["1"])[0], vectors.similarity_search("kettle")[0]):
        assert read.metadata == NESTED
        assert list(read.metadata) == list(NESTED)
        assert [type(read.metadata[key]) for key in ("id", "one", "yes")] == [int, float, bool]
        read.metadata["a"].clear()
    assert vectors.get_by_ids(["1"])[0].metadata == NESTED


def test_deleting(vectors: TwofoldVectorStore) -> None:
    vectors.add_texts(
        ["one kettle", "two kettles", "three kettles"], [{"n": n} for n in (1, 2, 3)], ids=["1", "2", "3"]
    )
    assert vectors.delete(["1", "unknown"]) is True
    assert vectors.delete([]) is True
    assert set(ids(vectors.similarity_search("kettle"))) == {"2", "3"}
    assert vectors.delete(filter={"n": 2}) is True
    assert ids(vectors.similarity_search("kettle")) == ["3"]
    with pytest.raises(ValueError, match="not both"):
        vectors.delete(["3"], filter={"n": 3})
    assert vectors.delete() is True
    assert vectors.similarity_search("kettle") == []


def test_adding_and_deleting_in_turn_never_mixes_documents_up(vectors: TwofoldVectorStore) -> None:
    """The faults of FAISS's docstore, langchain-ai/langchain#8135."""
    for turn in range(5):
        vectors.add_texts([f"note {turn}.{n}" for n in range(4)], ids=[f"{turn}.{n}" for n in range(4)])
        vectors.delete([f"{turn}.{n}" for n in (0, 2)])
    left = {f"{turn}.{n}" for turn in range(5) for n in (1, 3)}
    for mode in ("hybrid", "keyword", "vector"):
        found = vectors.similarity_search("note", k=100, mode=mode)
        assert {document.page_content.split()[1] for document in found} == set(ids(found)) == left


# Searching


def test_both_legs_find(axes: TwofoldVectorStore) -> None:
    assert ids(axes.similarity_search("east", k=1)) == ["east"]
    assert ids(axes.similarity_search("north", k=2)) == ["north", "northeast"]


def test_scores_are_similarities_from_0_to_1(axes: TwofoldVectorStore) -> None:
    """langchain-ai/langchain#12535, #11587: none is outside, none is inverted."""
    scores = {document.id: score for document, score in axes.similarity_search_with_score("east", mode="vector")}
    assert scores == pytest.approx(
        {"east": 1.0, "almost east": 0.99 / math.hypot(0.99, 0.141), "northeast": 0.8, "north": 0.0}, abs=1e-6
    )
    for mode in ("hybrid", "keyword", "vector"):
        for search in (axes.similarity_search_with_score, axes.similarity_search_with_relevance_scores):
            found = [score for _, score in search("north", mode=mode)]
            assert found == sorted(found, reverse=True)
            assert all(0 <= score <= 1 for score in found)


def test_a_threshold_cuts_at_the_score(axes: TwofoldVectorStore) -> None:
    retriever = axes.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9, "mode": "vector"}
    )
    assert ids(retriever.invoke("east")) == ["east", "almost east"]


def test_by_vector(axes: TwofoldVectorStore) -> None:
    assert ids(axes.similarity_search_by_vector([0.0, 2.0], k=2)) == ["north", "northeast"]
    ((_, score),) = axes.similarity_search_by_vector_with_score([3.0, 4.0], k=1)
    assert score == pytest.approx((0.8 * 3 + 0.6 * 4) / 5)
    with pytest.raises(TypeError, match="mode"):
        axes.similarity_search_by_vector([0.0, 2.0], mode="keyword")
    with pytest.raises(ValueError, match="vector"):
        axes.similarity_search_by_vector([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": 1}, {"1"}),
        ({"n": {"$ne": 1}}, {"2", "3", "true", "none"}),
        ({"n": {"$gt": 1}}, {"2", "3"}),
        ({"n": {"$gte": 2, "$lt": 3}}, {"2"}),
        ({"n": {"$lte": 1}}, {"1"}),
        ({"n": {"$in": [1, 3]}}, {"1", "3"}),
        ({"n": {"$in": [True]}}, {"true"}),
        ({"word": {"$in": ["a", "b"]}}, {"1", "2"}),
        ({"n": {"$nin": [1, 3]}}, {"2", "true", "none"}),
        ({"n": {"$between": [2, 3]}}, {"2", "3"}),
        ({"n": {"$exists": False}}, {"none"}),
        ({"tags": {"$contains": "x"}}, {"1"}),
        ({"word": {"$like": "a%"}}, {"1"}),
        ({"$and": [{"n": {"$gte": 1}}, {"word": "b"}]}, {"2"}),
        ({"$or": [{"n": 1}, {"word": "b"}]}, {"1", "2"}),
        ({"$not": {"n": {"$exists": True}}}, {"none"}),
        ({"n": 1, "word": "a"}, {"1"}),
        ({"n": 1, "word": "b"}, set()),
        ({"deep.er": 1}, {"3"}),
        (F("n") == 1, {"1"}),
        ({}, {"1", "2", "3", "true", "none"}),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_filters(vectors: TwofoldVectorStore, filter: Any, expected: set[str], mode: str) -> None:
    """langchain-ai/langchain#28469, langchain-ai/langchainjs#7536: several keys must all hold, ``$in`` finds."""
    metadatas: dict[str, dict[str, Any]] = {
        "1": {"n": 1, "word": "a", "tags": ["x", "y"]},
        "2": {"n": 2, "word": "b"},
        "3": {"n": 3, "deep": {"er": 1}},
        "true": {"n": True},
        "none": {},
    }
    vectors.add_texts(["kettle"] * 5, list(metadatas.values()), ids=list(metadatas))
    assert set(ids(vectors.similarity_search("kettle", k=9, mode=mode, filter=filter))) == expected


def test_a_filter_never_costs_hits(vectors: TwofoldVectorStore) -> None:
    """mem0ai/mem0#7416: nearer documents of others do not use up the places."""
    vectors.add_texts(["a red kettle"] * 30, [{"whose": "theirs"}] * 30)
    vectors.add_texts(["kettle, somewhat red, of another make altogether"] * 10, [{"whose": "mine"}] * 10)
    found = vectors.similarity_search("a red kettle", k=5, filter={"whose": "mine"}, fetch_k=5)
    assert [document.metadata["whose"] for document in found] == ["mine"] * 5


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"where": {}}, TypeError),
        ({"lambda_mult": 0.5}, TypeError),
        ({"filter": {"n": {"$near": 1}}}, ValueError),
        ({"filter": "n = 1"}, ValueError),
        ({"mode": "both"}, ValueError),
        ({"weights": 3}, ValueError),
        ({"weights": (0, 0)}, ValueError),
        ({"weights": (1, 2, 3)}, ValueError),
        ({"rrf_k": -1}, ValueError),
        ({"fetch_k": 0}, ValueError),
        ({"expand": -1}, ValueError),
        ({"params": {"rrf_k": 1}}, ValueError),
    ],
)
async def test_what_is_not_understood_is_refused(
    vectors: TwofoldVectorStore, options: dict[str, Any], error: type[Exception]
) -> None:
    for search in (vectors.similarity_search, vectors.similarity_search_with_score):
        with pytest.raises(error):
            search("x", **options)
    for asearch in (vectors.asimilarity_search, vectors.asimilarity_search_with_score):
        with pytest.raises(error):
            await asearch("x", **options)


def test_each_option_of_a_call_counts_for_that_call(vectors: TwofoldVectorStore) -> None:
    vectors.add_texts(["a red kettle", "a blue kettle", "the red door"], ids=["red", "blue", "door"])
    vectors.store.link("blue", "door", kind="related")

    def formula() -> str:
        assert vectors.last_result is not None
        return vectors.last_result[0].explanation.formula

    vectors.similarity_search("red kettle")
    plain = formula()
    assert plain.startswith("0.6 · (cosine - ")
    for base in (None, SearchParams(alpha=0.3), SearchParams.preset("rrf", rrf_k=5)):
        found = vectors.similarity_search_with_score("red kettle", params=base, rrf_k=7)
        assert formula() == "rrf(k=7)"
        expected = vectors.store.search("red kettle", k=4, params=SearchParams.preset("rrf", rrf_k=7))
        assert [(document.id, score) for document, score in found] == [(hit.id, hit.score) for hit in expected]
    vectors.similarity_search("red kettle", weights=(0, 1))
    assert vectors.last_result is not None
    assert all(set(hit.explanation.legs) == {"vector"} for hit in vectors.last_result)
    vectors.similarity_search("red kettle", mode="keyword")
    assert all(set(hit.explanation.legs) == {"keyword"} for hit in vectors.last_result)
    assert ids(vectors.similarity_search("blue", k=1, expand=3)) == ["blue", "door"]
    assert ids(vectors.similarity_search("blue", k=1, params=SearchParams(expand=3))) == ["blue", "door"]
    assert ids(vectors.similarity_search("blue", k=1)) == ["blue"]
    first, second = vectors.similarity_search("red kettle", k=2)
    assert ids(vectors.similarity_search("red kettle", k=1, offset=1)) == [second.id]
    vectors.similarity_search("red kettle")
    assert formula() == plain
    assert first.id == "red"


def test_questions_do_not_leak_into_each_other(vectors: TwofoldVectorStore) -> None:
    """langchain-ai/langchain-postgres#337: nothing of a call is kept for the next."""
    vectors.add_texts(["alpha", "beta"], ids=["a", "b"])
    assert ids(vectors.similarity_search("alpha", k=1, filter={"x": {"$exists": False}}, mode="keyword")) == ["a"]
    assert ids(vectors.similarity_search("beta", k=1)) == ["b"]
    assert set(ids(vectors.similarity_search("beta", k=4))) == {"a", "b"}


# Maximal marginal relevance


def mmr(query: str, k: int, lambda_mult: float) -> list[str]:
    """The definition, over all there are."""
    unit = {name: np.array(vector) / np.linalg.norm(vector) for name, vector in AXES.items()}
    chosen: list[str] = []
    while len(chosen) < k:
        chosen.append(
            max(
                (name for name in unit if name not in chosen),
                key=lambda name: (
                    lambda_mult * unit[name] @ unit[query]
                    - (1 - lambda_mult) * max((unit[name] @ unit[other] for other in chosen), default=0.0)
                ),
            )
        )
    return chosen


@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 1.0])
async def test_mmr_chooses_and_orders_by_its_definition(axes: TwofoldVectorStore, lambda_mult: float) -> None:
    """langchain-ai/langchain#11295, #4861, #15256: lambda counts, the order is kept, sync and async are alike."""
    expected = mmr("east", 3, lambda_mult)
    vector = AXES["east"]
    assert ids(axes.max_marginal_relevance_search("east", 3, 20, lambda_mult)) == expected
    assert ids(await axes.amax_marginal_relevance_search("east", 3, 20, lambda_mult)) == expected
    assert ids(axes.max_marginal_relevance_search_by_vector(vector, 3, 20, lambda_mult)) == expected
    assert ids(await axes.amax_marginal_relevance_search_by_vector(vector, 3, 20, lambda_mult)) == expected
    retriever = axes.as_retriever(search_type="mmr", search_kwargs={"k": 3, "lambda_mult": lambda_mult})
    assert ids(retriever.invoke("east")) == ids(await retriever.ainvoke("east")) == expected


def test_mmr_honours_filter_fetch_k_and_k(axes: TwofoldVectorStore) -> None:
    assert set(ids(axes.max_marginal_relevance_search("east", filter={"n": {"$in": [1, 2]}}))) == {"north", "northeast"}
    found = axes.max_marginal_relevance_search_by_vector(AXES["east"], k=2, fetch_k=2, lambda_mult=0.0)
    assert ids(found) == ["east", "almost east"]
    assert axes.max_marginal_relevance_search("east", k=0) == []
    for wrong in (-0.1, 1.1, "half"):
        with pytest.raises(ValueError, match="lambda_mult"):
            axes.max_marginal_relevance_search("east", lambda_mult=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="where"):
        axes.max_marginal_relevance_search("east", where={})  # type: ignore[call-arg]


async def test_mmr_without_the_embedding_model(open_store: Callable[..., HybridStore]) -> None:
    embedder = FlakyEmbedder()
    store = TwofoldVectorStore(open_store(embedder=embedder))
    store.add_texts(["a red kettle", "a kettle"], ids=["red", "plain"])
    embedder.down = True
    assert ids(store.max_marginal_relevance_search("red kettle", k=1)) == ["red"]
    assert ids(await store.amax_marginal_relevance_search("red kettle", k=2)) == ["red", "plain"]
    assert store.last_result is not None
    assert store.last_result.degraded
    with pytest.raises(ValueError, match="embedder"):
        TwofoldVectorStore(open_store(embedder=None)).max_marginal_relevance_search("x")


def test_mmr_of_documents_whose_vectors_are_still_to_be_made(open_store: Callable[..., HybridStore]) -> None:
    embedder = FlakyEmbedder()
    store = TwofoldVectorStore(open_store(embedder=embedder))
    embedder.down = True
    store.add_texts(["a waiting kettle"], ids=["waits"])
    embedder.down = False
    store.add_texts(["a kettle"], ids=["there"])
    found = ids(store.max_marginal_relevance_search("kettle", k=2))
    assert set(found) == {"waits", "there"}


# Who sees what


def test_each_asker_sees_their_own(vectors: TwofoldVectorStore) -> None:
    ann, ben = Access(user="ann"), Access(user="ben")
    vectors.add_texts(["ann's kettle"], ids=["doc"], access=ann)
    vectors.add_texts(["ben's kettle"], ids=["doc"], access=ben)
    for asker, whose in ((ann, "ann's kettle"), (ben, "ben's kettle")):
        for mode in ("hybrid", "keyword", "vector"):
            assert [d.page_content for d in vectors.similarity_search("kettle", access=asker, mode=mode)] == [whose]
        assert [d.page_content for d in vectors.get_by_ids(["doc"], access=asker)] == [whose]
        assert [d.page_content for d in vectors.max_marginal_relevance_search("kettle", access=asker)] == [whose]
        assert [d.page_content for d in vectors.as_retriever().invoke("kettle", access=asker)] == [whose]
    assert vectors.similarity_search("kettle") == []
    assert vectors.get_by_ids(["doc"]) == []
    vectors.delete(access=ann)
    assert vectors.get_by_ids(["doc"], access=ann) == []
    assert len(vectors.get_by_ids(["doc"], access=ben)) == 1


def test_an_access_of_its_own_and_a_view(open_store: Callable[..., HybridStore]) -> None:
    store = open_store()
    anns = TwofoldVectorStore(store, access=Access(user="ann"))
    anns.add_texts(["a kettle"], ids=["1"])
    assert ids(anns.similarity_search("kettle")) == ["1"]
    assert TwofoldVectorStore(store).similarity_search("kettle") == []
    bound = TwofoldVectorStore(store.view(Access(user="ben")))
    assert bound.similarity_search("kettle") == []
    with pytest.raises(twofold.AccessError):
        bound.similarity_search("kettle", access=Access(user="ann"))


def test_stored_vectors_are_shown_to_who_sees_the_record(vectors: TwofoldVectorStore) -> None:
    vectors.add_texts(["ann's kettle"], ids=["doc"], access=Access(user="ann"))
    record = vectors.store.get("doc", access=Access(user="ann"))
    assert record is not None
    assert [dict(each) for each in vectors.store.vectors([record], access=Access(user="ben"))] == [{}]
    ((mine),) = vectors.store.vectors([record], access=Access(user="ann"))
    assert mine["text"].shape == (1, FakeEmbedder().dimension)


def test_a_namespace_is_a_world_of_its_own(open_store: Callable[..., HybridStore]) -> None:
    store = open_store()
    stores = [TwofoldVectorStore(store, namespace=path) for path in ((), ("a",), ("a", "b"), ("ab",))]
    for each in stores:
        each.add_texts([f"a kettle in {each.namespace}"], ids=["1"])
    for each in stores:
        expected = [f"a kettle in {each.namespace}"]
        for mode in ("hybrid", "keyword", "vector"):
            assert [d.page_content for d in each.similarity_search("kettle", mode=mode)] == expected
        assert [d.page_content for d in each.get_by_ids(["1"])] == expected
    stores[1].delete()
    assert [len(each.get_by_ids(["1"])) for each in stores] == [1, 0, 1, 1]


# As a retriever


async def test_a_retriever_takes_each_calls_options(vectors: TwofoldVectorStore) -> None:
    """langchain-ai/langchain#21492, #19885: none is ignored."""
    vectors.add_texts([f"kettle {n}" for n in range(6)], [{"n": n} for n in range(6)])
    retriever = vectors.as_retriever(search_kwargs={"k": 3})
    assert len(retriever.invoke("kettle")) == 3
    assert len(retriever.invoke("kettle", k=1)) == len(await retriever.ainvoke("kettle", k=1)) == 1
    assert [d.metadata["n"] for d in retriever.invoke("kettle", filter={"n": 4})] == [4]
    for wrong in ({"k": 1}, {"filter": {}}, {"search_type": "fuzzy"}):
        with pytest.raises(ValidationError):
            vectors.as_retriever(**wrong)
    with pytest.raises(TypeError):
        retriever.invoke("kettle", where={})
    assert retriever.tags == ["TwofoldVectorStore"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
async def test_a_mode_is_a_search_type(axes: TwofoldVectorStore, mode: str) -> None:
    expected = ids(axes.similarity_search("east", mode=mode))
    assert ids(axes.search("east", mode)) == ids(await axes.asearch("east", mode)) == expected
    retriever = axes.as_retriever(search_type=mode)
    assert ids(retriever.invoke("east")) == ids(await retriever.ainvoke("east")) == expected
    with pytest.raises(ValueError, match="contradict"):
        axes.search("east", mode, mode="keyword" if mode != "keyword" else "vector")
    with pytest.raises(ValueError, match="search_type"):
        axes.search("east", "fuzzy")
    with pytest.raises(ValueError, match="search_type"):
        await axes.asearch("east", "fuzzy")


def test_tags_tell_the_embedding_model() -> None:
    with TwofoldVectorStore(embedding=Axes()) as store:
        assert store.embeddings is not None
        assert store.as_retriever().tags == ["TwofoldVectorStore", "Axes"]
        assert store.as_retriever(tags=["mine"]).tags == ["mine"]


# Keywords only, and the model down


def test_without_embeddings_it_is_a_keyword_store(tmp_path: Path) -> None:
    with TwofoldVectorStore(tmp_path / "k.db") as store:
        store.add_texts(["ERR_CONN_REFUSED_7 at noon", "all is well"], ids=["error", "well"])
        assert store.embeddings is None
        assert ids(store.similarity_search("err_conn_refused_7")) == ["error"]
        assert store.similarity_search("zzzz") == []
        assert store.similarity_search("") == []
        with pytest.raises(twofold.SearchUnavailableError):
            store.similarity_search("x", mode="vector")
    with TwofoldVectorStore(tmp_path / "k.db") as store:
        assert ids(store.similarity_search("noon")) == ["error"]


@pytest.mark.parametrize("question", [chr(code) for code in range(33, 127) if not chr(code).isalnum()] + ['"', "a AND"])
def test_any_characters_may_be_asked(question: str) -> None:
    with TwofoldVectorStore() as store:
        store.add_texts(["ubuntu 20.04 multi-agent GB/s"])
        store.similarity_search(question)
        assert len(store.similarity_search(f"multi-agent {question}")) == 1


async def test_a_model_that_is_down_costs_no_document(open_store: Callable[..., HybridStore]) -> None:
    embedder = FlakyEmbedder()
    store = TwofoldVectorStore(open_store(embedder=embedder))
    embedder.down = True
    store.add_texts(["a red kettle"], ids=["1"])
    assert store.last_added is not None
    assert store.last_added.pending == 1
    assert ids(store.similarity_search("kettle")) == ids(await store.asimilarity_search("kettle")) == ["1"]
    assert store.last_result is not None
    assert [each.code.value for each in store.last_result.degradations] == ["embedder_unreachable"]
    with pytest.raises(twofold.SearchUnavailableError):
        store.similarity_search("kettle", mode="vector")


def test_a_model_that_gives_too_few_vectors_costs_no_document() -> None:
    """langchain-ai/langchain#36745."""

    class Short(Axes):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts)[:-1]

    with TwofoldVectorStore(embedding=Short()) as store:
        store.add_texts(["east", "north"], ids=["e", "n"])
        assert store.last_added is not None
        assert store.last_added.pending > 0
        assert ids(store.similarity_search("north", k=1)) == ["n"]


# Sync and async


async def test_every_twin_does_what_its_method_does(open_store: Callable[..., HybridStore]) -> None:
    store = TwofoldVectorStore(open_store())
    documents = [Document("a red kettle", id="1", metadata={"n": 1}), Document("a door", id="2")]
    assert await store.aadd_documents(documents) == ["1", "2"]
    assert await store.aadd_texts(["a pot"], ids=["3"]) == ["3"]
    assert await store.aget_by_ids(["2", "1"]) == store.get_by_ids(["2", "1"]) == documents[::-1]
    vector = FakeEmbedder().embed(["a door"], "query")[0]
    pairs: list[tuple[Any, Any, tuple[Any, ...]]] = [
        (store.similarity_search, store.asimilarity_search, ("kettle",)),
        (store.similarity_search_with_score, store.asimilarity_search_with_score, ("kettle", 2)),
        (store.similarity_search_with_relevance_scores, store.asimilarity_search_with_relevance_scores, ("kettle",)),
        (store.similarity_search_by_vector, store.asimilarity_search_by_vector, (list(vector),)),
        (store.similarity_search_by_vector_with_score, store.asimilarity_search_by_vector_with_score, (list(vector),)),
        (store.max_marginal_relevance_search, store.amax_marginal_relevance_search, ("kettle",)),
    ]
    for sync, twin, arguments in pairs:
        found = sync(*arguments)
        assert found
        assert await twin(*arguments) == found
    assert await store.adelete(["1"]) is True
    assert store.get_by_ids(["1"]) == []


async def test_many_at_once(tmp_path: Path) -> None:
    """langchain-ai/langchain#992."""
    embedding = DeterministicFakeEmbedding(size=8)
    async with TwofoldVectorStore(tmp_path / "d.db", embedding=embedding, embedding_name="fake") as store:
        added, found = [], []

        async def add(n: int) -> None:
            added.extend(await store.aadd_documents([Document(f"kettle number {n}", id=str(n))]))

        async def look(n: int) -> None:
            found.append(await store.asimilarity_search(f"kettle number {n}", k=3))

        await asyncio.gather(*(work(n) for n in range(50) for work in (add, look)))
        assert sorted(added) == sorted(map(str, range(50)))
        assert len(found) == 50
        assert store.store.count() == 50
        assert len(await store.asimilarity_search("kettle", k=100)) == 50


async def test_the_loop_goes_on_while_the_model_thinks() -> None:
    gate, entered = threading.Event(), threading.Event()

    class Slow(Axes):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            entered.set()
            gate.wait(60)
            return super().embed_documents(texts)

    async with TwofoldVectorStore(embedding=Slow()) as store:
        ticks = 0
        adding = asyncio.ensure_future(store.aadd_texts(["east"]))
        while not (entered.is_set() and ticks >= 20):
            ticks += 1
            await asyncio.sleep(0.001)
        assert not adding.done()
        gate.set()
        assert len(await adding) == 1


# Making and closing


async def test_from_texts_and_documents(tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    with TwofoldVectorStore.from_texts(["east"], Axes(), [{"n": 1}], ids=["e"], store=path) as made:
        assert made.get_by_ids(["e"]) == [Document(id="e", page_content="east", metadata={"n": 1})]
    with TwofoldVectorStore.from_documents([Document("north", id="n")], Axes(), store=path) as made:
        assert set(ids(made.similarity_search("north"))) == {"e", "n"}
    async with await TwofoldVectorStore.afrom_texts(["east"], Axes(), ids=["x"], namespace=("a",)) as amade:
        assert ids(await amade.asimilarity_search("east")) == ["x"]
    async with await TwofoldVectorStore.afrom_documents([Document("east", id="y")], Axes()) as amade:
        assert ids(await amade.asimilarity_search("east")) == ["y"]
    with TwofoldVectorStore.from_texts(["a kettle"], None) as made:
        assert len(made.similarity_search("kettle")) == 1
    with pytest.raises(ValueError, match="ids"):
        TwofoldVectorStore.from_texts(["a", "b"], None, ids=["1"])


async def test_who_opened_it_closes_it(tmp_path: Path) -> None:
    store = twofold.open(tmp_path / "a.db")
    with TwofoldVectorStore(store):
        pass
    async with TwofoldVectorStore(store):
        pass
    assert store.count() == 0
    store.close()
    own = TwofoldVectorStore(tmp_path / "a.db")
    await own.aclose()
    own.close()
    with pytest.raises(twofold.StoreClosedError):
        own.similarity_search("x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"index": "fuzzy"}, "index"),
        ({"colour": "red"}, "unknown arguments: colour"),
        ({"embedding": DeterministicFakeEmbedding(size=3)}, "name"),
        ({"embedding_name": "mine"}, "embedding_name"),
        ({"namespace": "notes"}, "namespace"),
        ({"mode": "both"}, "mode"),
    ],
)
def test_arguments_that_cannot_be_used_say_why(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TwofoldVectorStore(**arguments)


def test_settings_go_with_a_path_only(open_store: Callable[..., HybridStore]) -> None:
    with pytest.raises(ValueError, match=r"embedding, index: the store is open already"):
        TwofoldVectorStore(open_store(), embedding=Axes(), index="exact")
    with TwofoldVectorStore(language="german") as store:
        assert store.store.settings.language == "german"


def test_another_model_is_never_compared(tmp_path: Path) -> None:
    class Other(Axes):
        model = "other"

    with TwofoldVectorStore(tmp_path / "d.db", embedding=Axes()) as store:
        store.add_texts(["east"], ids=["e"])
    with TwofoldVectorStore(tmp_path / "d.db", embedding=Other()) as store:
        assert ids(store.similarity_search("east")) == ["e"]
        assert store.last_result is not None
        assert store.last_result.has(twofold.DegradationCode.SPACE_MISMATCH)
