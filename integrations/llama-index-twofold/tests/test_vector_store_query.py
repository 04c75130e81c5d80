"""What the vector store answers in each of LlamaIndex's query modes; sync and async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode, VectorStoreQueryResult

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import SearchParams
from twofold.testing import FlakyEmbedder, TableEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]
Grown = dict[str, tuple[str, list[float]]]

MODES = ("default", "sparse", "text_search", "hybrid", "semantic_hybrid", "mmr")


def asked(
    text: str | None = None, vector: list[float] | None = None, k: int = 5, mode: str = "default", **more: Any
) -> VectorStoreQuery:
    return VectorStoreQuery(
        query_str=text, query_embedding=vector, similarity_top_k=k, mode=VectorStoreQueryMode(mode), **more
    )


def equals(key: str, value: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value)])


def degradations(vectors: TwofoldVectorStore) -> list[str]:
    assert vectors.last_result is not None
    return [each.code.value for each in vectors.last_result.degradations]


# Default


async def test_default_is_by_cosine_alone(orchard: TwofoldVectorStore, call: Call) -> None:
    found: VectorStoreQueryResult = await call(orchard, "query", asked("stone", [2.0, 0.0, 0.0], k=3))
    assert found.ids == ["apple", "pear", *found.ids[2:]]  # type: ignore[misc]
    assert found.similarities == pytest.approx([1.0, 0.8, 1e-9])
    assert [each.node_id for each in found.nodes or []] == found.ids
    assert degradations(orchard) == []


@pytest.mark.parametrize("vector", [None, [], [0.0, 0.0, 0.0], [1.0], [float("nan")] * 3])
@pytest.mark.parametrize("mode", ["default", "mmr", "hybrid", "semantic_hybrid"])
async def test_where_there_is_no_vector_keywords_answer(
    orchard: TwofoldVectorStore, call: Call, vector: Any, mode: str
) -> None:
    found = await call(orchard, "query", asked("plum jam", vector, mode=mode))
    assert found.ids == ["plum"]
    assert found.similarities[0] > 0
    assert degradations(orchard) == (["embedder_bad_output"] if vector == [1.0] else [])


async def test_where_there_is_no_vector_the_stores_own_embedder_makes_it(
    make_vectors: Make, call: Call, grown: Grown
) -> None:
    table = dict(grown.values()) | {"fruit?": [0.9, 0.1, 0.0]}
    vectors = make_vectors(embed_model=TableEmbedder(table))
    vectors.add([TextNode(id_=id_, text=text) for id_, (text, _) in grown.items()])
    for vector in (None, [], [1.0]):
        found = await call(vectors, "query", asked("fruit?", vector, k=2))
        assert found.ids == ["apple", "pear"]
        assert degradations(vectors) == (["embedder_bad_output"] if vector == [1.0] else [])


@pytest.mark.parametrize("mode", ["default", "mmr", "hybrid"])
async def test_an_embedder_that_is_down_leaves_it_to_keywords_and_says_so(
    make_vectors: Make, call: Call, mode: str, grown: Grown
) -> None:
    embedder = FlakyEmbedder()
    vectors = make_vectors(embed_model=embedder)
    vectors.add([TextNode(id_=id_, text=text) for id_, (text, _) in grown.items()])
    embedder.down = True
    found = await call(vectors, "query", asked("plum jam", [], mode=mode))
    assert found.ids == ["plum"]
    assert degradations(vectors) == ["embedder_unreachable"]


async def test_nodes_that_wait_for_a_vector_are_found_by_keyword_meanwhile(
    orchard: TwofoldVectorStore, call: Call, grown: Grown
) -> None:
    orchard.add([TextNode(id_="late", text="late plum", embedding=[])])
    for mode in ("default", "mmr", "hybrid"):
        found = await call(orchard, "query", asked("late plum", [0.0, 1.0, 0.0], k=9, mode=mode))
        assert set(found.ids) == {"late", *grown}
        assert degradations(orchard) == ["vectors_pending"]
    found = await call(orchard, "query", asked("late", [1.0, 0.0, 0.0], k=1, filters=equals("n", 0)))
    assert (found.ids, degradations(orchard)) == (["apple"], [])  # of those that are asked for none waits


async def test_what_waits_scores_on_the_scale_of_cosines(orchard: TwofoldVectorStore, call: Call) -> None:
    """So that a threshold means the same whether something waits or not."""
    before = await call(orchard, "query", asked("plum", [0.6, 0.8, 0.0], k=9))
    orchard.add([TextNode(id_="late", text="a plum that came late", embedding=[])])
    found = await call(orchard, "query", asked("plum", [0.6, 0.8, 0.0], k=9))
    scores = dict(zip(found.ids, found.similarities, strict=True))
    matching = await call(orchard, "query", asked("plum", mode="sparse"))
    share = matching.similarities[matching.ids.index("late")]
    assert scores.pop("late") == pytest.approx(share * before.similarities[0])
    assert scores == dict(zip(before.ids, before.similarities, strict=True))
    assert found.similarities == sorted(found.similarities, reverse=True)
    assert len((await call(orchard, "query", asked("plum", [0.6, 0.8, 0.0], k=2))).ids) == 2
    other = await call(orchard, "query", asked("xyzzy", [0.6, 0.8, 0.0], k=9))
    assert (other.ids, other.similarities) == (before.ids, before.similarities)


async def test_without_any_vector_in_the_file_a_vector_alone_cannot_be_answered(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    vectors.add([TextNode(id_="a", text="words")])
    assert (await call(vectors, "query", asked("words", [1.0]))).ids == ["a"]
    with pytest.raises(twofold.SearchUnavailableError):
        await call(vectors, "query", asked(None, [1.0]))


# Sparse


@pytest.mark.parametrize("mode", ["sparse", "text_search"])
async def test_sparse_is_by_keyword_alone(make_vectors: Make, call: Call, mode: str, grown: Grown) -> None:
    embedder = FlakyEmbedder()
    vectors = make_vectors(embed_model=embedder)
    vectors.add([TextNode(id_=id_, text=text) for id_, (text, _) in grown.items()])
    calls = embedder.calls
    found = await call(vectors, "query", asked("apple pie", [0.0] * 64, mode=mode))
    assert (found.ids, found.similarities[0]) == (["apple", "anti"], 1.0)
    assert 0 < found.similarities[1] < 1
    assert (await call(vectors, "query", asked("apple", k=9, sparse_top_k=1, mode=mode))).ids == ["anti"]
    assert (await call(vectors, "query", asked("apple", k=1, sparse_top_k=9, mode=mode))).ids == ["anti", "apple"]
    assert (await call(vectors, "query", asked("apple", k=9, sparse_top_k=0, mode=mode))).ids == []
    assert embedder.calls == calls


# Hybrid


async def test_hybrid_is_the_stores_own_fusion(orchard: TwofoldVectorStore, call: Call) -> None:
    vector = [0.0, 1.0, 0.2]
    expected = orchard.store.search("grey apple", vector=vector, k=4)
    for mode in ("hybrid", "semantic_hybrid"):
        found = await call(orchard, "query", asked("grey apple", vector, k=4, mode=mode))
        assert found.ids == list(expected.ids)
        assert found.similarities == [hit.score for hit in expected]


async def test_alpha_goes_from_keywords_alone_to_vectors_alone(
    orchard: TwofoldVectorStore, call: Call, grown: Grown
) -> None:
    """run-llama/llama_index#20880, #22642: 0 is meant, sync and async."""
    text, vector = "apple pie", [0.0, 1.0, 0.0]
    keyword = await call(orchard, "query", asked(text, mode="sparse"))
    dense = await call(orchard, "query", asked(text, vector))
    assert await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=0)) == keyword
    assert await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=0.0)) == keyword
    assert await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=1e-9)) == keyword
    assert await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=1)) == dense
    assert await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=np.float32(1.0))) == dense
    found = await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=0.3))
    words = dict(zip(keyword.ids, keyword.similarities, strict=True))
    near = {id_: max(0.0, own[1]) for id_, (_, own) in grown.items()}  # its mean cosine is negative: no background
    fused = {id_: (1 - 0.3) * words.get(id_, 0.0) + 0.3 * near[id_] for id_ in grown}
    assert found.ids == sorted(fused, key=lambda id_: -fused[id_])
    assert found.similarities == pytest.approx([max(1e-9, score) for score in sorted(fused.values(), reverse=True)])


async def test_alpha_weighs_the_ranks_of_rrf(orchard: TwofoldVectorStore, call: Call, grown: Grown) -> None:
    text, vector = "apple pie", [0.0, 1.0, 0.0]
    keyword = await call(orchard, "query", asked(text, mode="sparse"))
    dense = await call(orchard, "query", asked(text, vector))
    found = await call(orchard, "query", asked(text, vector, mode="hybrid", alpha=0.3), preset="rrf")
    fused = {
        id_: sum(
            weight / (60 + 1 + leg.index(id_))
            for weight, leg in ((1 - 0.3, keyword.ids), (0.3, dense.ids))
            if id_ in leg
        )
        / ((1 - 0.3 + 0.3) / (60 + 1))
        for id_ in grown
    }
    assert found.ids == sorted(fused, key=lambda id_: -fused[id_])
    assert found.similarities == pytest.approx(sorted(fused.values(), reverse=True))


@pytest.mark.parametrize("fusion", ["alpha", "relative", "dbsf", "calibrated"])
async def test_alpha_is_that_of_a_fusion_that_has_one(orchard: TwofoldVectorStore, call: Call, fusion: Any) -> None:
    vector = [0.0, 1.0, 0.0]
    expected = orchard.store.search("apple", vector=vector, k=5, params=SearchParams(fusion=fusion, alpha=0.2))
    found = await call(
        orchard,
        "query",
        asked("apple", vector, mode="hybrid", alpha=0.2),
        params=SearchParams(fusion=fusion),
    )
    assert found.ids == list(expected.ids)
    assert found.similarities == pytest.approx([max(hit.score, 1e-9) for hit in expected])


def test_a_fusion_of_ones_own_takes_no_alpha(orchard: TwofoldVectorStore) -> None:
    params = SearchParams(fusion=lambda legs: {key: 1.0 for hits in legs.values() for key, _ in hits})
    query = asked("apple", [0.0, 1.0, 0.0], mode="hybrid")
    assert orchard.query(query, params=params).ids
    query.alpha = 0.5
    with pytest.raises(twofold.ConfigurationError, match="fusion of your own"):
        orchard.query(query, params=params)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, True, "0.5", float("nan")])
async def test_an_alpha_out_of_range_is_refused(orchard: TwofoldVectorStore, call: Call, alpha: Any) -> None:
    with pytest.raises(ValueError, match="alpha is a number from 0 to 1"):
        await call(orchard, "query", asked("apple", [1.0, 0.0, 0.0], mode="hybrid", alpha=alpha))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"k": 1, "sparse_top_k": 1, "hybrid_top_k": 2}, {"stone", "apple"}),  # one of each leg
        ({"k": 1, "sparse_top_k": 1, "hybrid_top_k": 9}, {"stone", "apple"}),
        ({"k": 1, "sparse_top_k": 2, "hybrid_top_k": 9}, {"stone", "apple", "anti"}),
        ({"k": 2, "sparse_top_k": 1, "hybrid_top_k": 9}, {"stone", "apple", "plum"}),
        ({"k": 2, "sparse_top_k": 0, "hybrid_top_k": 9}, {"stone", "plum"}),
        ({"k": 0, "sparse_top_k": 2, "hybrid_top_k": 9}, {"apple", "anti"}),
        ({"k": 0, "sparse_top_k": 0, "hybrid_top_k": 9}, set()),
        ({"k": 5, "hybrid_top_k": 0}, set()),
    ],
)
async def test_each_leg_gives_as_many_as_it_may(
    orchard: TwofoldVectorStore, call: Call, limits: dict[str, int], expected: set[str]
) -> None:
    """As Qdrant's: so many by meaning, so many by keyword, and so many of both."""
    found = await call(orchard, "query", asked("apple pie", [0.0, 0.1, 1.0], mode="hybrid", **limits))
    assert set(found.ids) == expected
    assert len(found.ids) == len(found.similarities) == len(expected)


async def test_hybrid_top_k_is_how_many_come_out(orchard: TwofoldVectorStore, call: Call) -> None:
    vector = [1.0, 0.1, 0.0]
    for k, hybrid, count in ((2, None, 2), (2, 4, 4), (4, 1, 1), (2, 99, 5)):
        found = await call(orchard, "query", asked("apple", vector, k=k, mode="hybrid", hybrid_top_k=hybrid))
        assert len(found.ids) == count
        assert found.ids[0] == "apple"


def test_candidates_are_not_cut_before_they_are_fused(make_vectors: Make) -> None:
    """The third of both legs, 2 / (60 + 3), is better than the first of one, 1 / (60 + 1) + 1 / (60 + 30)."""
    by_keyword = {"a": "key key key", "b": "key of keys", "c": "a key among many other words of all kinds"}
    by_meaning = ["d", "e", "c", *(f"filler{place}" for place in range(26)), "a", "b"]
    vectors = make_vectors()
    for place, id_ in enumerate(by_meaning):
        angle = 0.05 * place
        embedding = [float(np.cos(angle)), float(np.sin(angle))]
        vectors.add([TextNode(id_=id_, text=by_keyword.get(id_, "nothing"), embedding=embedding)])
    query = asked("key", [1.0, 0.0], k=99, mode="sparse")
    assert vectors.query(query).ids == ["a", "b", "c"]
    query.mode = VectorStoreQueryMode.DEFAULT
    assert vectors.query(query).ids == by_meaning
    assert vectors.query(asked("key", [1.0, 0.0], k=1, mode="hybrid")).ids == ["c"]


# What holds in every mode


@pytest.mark.parametrize("mode", ["svm", "logistic_regression", "linear_regression"])
async def test_a_mode_that_it_has_not_is_refused(orchard: TwofoldVectorStore, call: Call, mode: str) -> None:
    with pytest.raises(ValueError, match=rf"no query mode '{mode}'; it has default, sparse"):
        await call(orchard, "query", asked("apple", [1.0, 0.0, 0.0], mode=mode))


@pytest.mark.parametrize("mode", MODES)
async def test_scores_are_above_0_and_in_order(orchard: TwofoldVectorStore, call: Call, mode: str) -> None:
    """run-llama/llama_index#22386, #21771, #23182: never None."""
    for text, vector in (("apple pie", [0.3, 0.2, -0.9]), ("stone", [-1.0, -1.0, 0.0])):
        found = await call(orchard, "query", asked(text, vector, k=9, mode=mode))
        assert found.ids
        assert len(found.nodes) == len(found.ids) == len(found.similarities) == len(set(found.ids))
        assert all(type(score) is float and 0 < score <= 1 for score in found.similarities)
        assert found.similarities == sorted(found.similarities, reverse=True)


@pytest.mark.parametrize("mode", MODES)
async def test_how_many(orchard: TwofoldVectorStore, call: Call, mode: str) -> None:
    for k, most in ((0, 0), (1, 1), (2, 2), (99, 5)):
        found = await call(orchard, "query", asked("apple pear plum stone", [1.0, 1.0, 1.0], k=k, mode=mode))
        assert len(found.ids) == most
    with pytest.raises(ValueError, match="-1"):
        await call(orchard, "query", asked("apple", [1.0, 1.0, 1.0], k=-1, mode=mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({"doc_ids": None, "node_ids": None}, {"apple", "pear", "plum", "stone", "anti"}),
        ({"doc_ids": ["garden"]}, {"apple", "pear", "plum"}),
        ({"doc_ids": []}, set()),
        ({"doc_ids": ["unknown"]}, set()),
        ({"doc_ids": ["None", ""]}, set()),
        ({"node_ids": []}, {"apple", "pear", "plum", "stone", "anti"}),
        ({"node_ids": ["stone", "plum", "unknown"]}, {"stone", "plum"}),
        ({"doc_ids": ["garden"], "node_ids": ["stone", "plum"]}, {"plum"}),
        ({"filters": equals("n", 1)}, {"pear"}),
        ({"filters": MetadataFilters(filters=[])}, {"apple", "pear", "plum", "stone", "anti"}),
        ({"filters": equals("n", 1), "doc_ids": ["garden"], "node_ids": ["pear"]}, {"pear"}),
        ({"filters": equals("n", 1), "node_ids": ["plum"]}, set()),
        ({"filters": equals("n", 7)}, set()),
    ],
)
async def test_documents_nodes_and_filters_narrow_it_down(
    orchard: TwofoldVectorStore, call: Call, mode: str, which: dict[str, Any], expected: set[str]
) -> None:
    """run-llama/llama_index#11602, #14121, #6740, #22966, #9705, #22897: strictly, and nothing found is no error."""
    text = "apple pear plum stone"
    for vector in ([1.0, 1.0, 1.0], None):
        found = await call(orchard, "query", asked(text, vector, k=9, mode=mode, **which))
        assert set(found.ids) == expected


@pytest.mark.parametrize("mode", MODES)
async def test_with_nothing_to_look_for_what_the_filters_leave_comes_back(
    orchard: TwofoldVectorStore, call: Call, mode: str
) -> None:
    many = MetadataFilters(filters=[MetadataFilter(key="n", value=1, operator=FilterOperator.GTE)])
    for text in (None, "", " \n"):
        found = await call(orchard, "query", asked(text, None, k=9, mode=mode, filters=many))
        assert set(found.ids) == {"pear", "plum", "stone", "anti"}
        assert found.similarities == [1.0] * 4
        assert len((await call(orchard, "query", asked(text, None, k=2, mode=mode, filters=many))).ids) == 2
        assert set((await call(orchard, "query", asked(text, [], k=9, mode=mode, doc_ids=["garden"]))).ids) == {
            "apple",
            "pear",
            "plum",
        }
        assert (await call(orchard, "query", asked(text, None, k=9, mode=mode))).ids == []  # never just any
        assert (await call(orchard, "query", asked(text, None, k=9, mode=mode, filters=equals("n", 9)))).ids == []


@pytest.mark.parametrize("text", ["?!", "the", "xyzzy", "C++", "' OR 1=1 --", '"', "\0"])
async def test_a_question_without_an_answer_has_none(orchard: TwofoldVectorStore, call: Call, text: str) -> None:
    for mode in ("sparse", "default", "hybrid"):
        assert (await call(orchard, "query", asked(text, None, mode=mode))).ids == []


async def test_output_fields_make_no_difference_and_an_embedding_field_there_is_not(
    orchard: TwofoldVectorStore, call: Call
) -> None:
    found = await call(orchard, "query", asked("plum", mode="sparse", output_fields=["text"]))
    assert found.nodes[0].metadata == {"n": 2}
    with pytest.raises(ValueError, match="embedding_field"):
        await call(orchard, "query", asked("plum", mode="sparse", embedding_field="title"))
