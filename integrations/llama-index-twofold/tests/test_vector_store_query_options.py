"""Maximal marginal relevance, and what a query of the vector store takes besides what LlamaIndex's has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

import twofold
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import A, F, SearchParams
from twofold.testing import FakeEmbedder

Make = Callable[..., TwofoldVectorStore]
Call = Callable[..., Awaitable[Any]]


def asked(
    text: str | None = None, vector: list[float] | None = None, k: int = 5, mode: str = "default", **more: Any
) -> VectorStoreQuery:
    return VectorStoreQuery(
        query_str=text, query_embedding=vector, similarity_top_k=k, mode=VectorStoreQueryMode(mode), **more
    )


# Maximal marginal relevance


def chosen_by_definition(query: Any, rows: dict[str, Any], k: int, threshold: float) -> list[str]:
    """Carbonell and Goldstein's, over all there are; LlamaIndex's own compares with the last one chosen only."""
    unit = {id_: row / np.linalg.norm(row) for id_, row in rows.items()}
    chosen: list[str] = []
    while len(chosen) < k:
        chosen.append(
            max(
                (id_ for id_ in unit if id_ not in chosen),
                key=lambda id_: (
                    threshold * unit[id_] @ (query / np.linalg.norm(query))
                    - (1 - threshold) * max((unit[id_] @ unit[other] for other in chosen), default=0.0)
                ),
            )
        )
    return chosen


def test_mmr_is_what_its_definition_says(make_vectors: Make) -> None:
    random = np.random.default_rng(7)
    for _ in range(10):
        rows = {f"n{place}": random.normal(size=5) for place in range(12)}
        query = random.normal(size=5)
        vectors = make_vectors()
        vectors.add([TextNode(id_=id_, text="x", embedding=row.tolist()) for id_, row in rows.items()])
        for threshold in (0.1, 0.3, 0.5, 0.9, 1.0):
            found = vectors.query(asked(None, query.tolist(), k=6, mode="mmr", mmr_threshold=threshold))
            assert found.ids == chosen_by_definition(query, rows, 6, threshold)
            assert found.similarities == sorted(found.similarities or [], reverse=True)
            assert min(found.similarities or []) > 0
            _, first_two = get_top_k_mmr_embeddings(
                query.tolist(),
                [row.tolist() for row in rows.values()],
                similarity_top_k=2,
                embedding_ids=list(rows),
                mmr_threshold=threshold,
            )
            assert (found.ids or [])[:2] == first_two


async def test_mmr_takes_its_threshold_from_the_call_or_the_query(make_vectors: Make, call: Call) -> None:
    vectors = make_vectors()
    rows = {"best": [1.0, 0.0], "twin": [0.99, 0.05], "other": [0.5, 0.8]}
    vectors.add([TextNode(id_=id_, text="x", embedding=row) for id_, row in rows.items()])
    near, different = ["best", "twin"], ["best", "other"]
    query = asked(None, [1.0, 0.0], k=2, mode="mmr")
    assert (await call(vectors, "query", query, mmr_threshold=1)).ids == near
    assert (await call(vectors, "query", query, mmr_threshold=0)).ids == different
    assert (await call(vectors, "query", query)).ids == (await call(vectors, "query", query, mmr_threshold=0.5)).ids
    assert (await call(vectors, "query", query, mmr_threshold=0.1, mmr_prefetch_k=2)).ids == near
    assert (await call(vectors, "query", query, mmr_threshold=0.1, mmr_prefetch_factor=1.0)).ids == near
    assert (await call(vectors, "query", query, mmr_threshold=0.1, mmr_prefetch_factor=1.5)).ids == different
    query.mmr_threshold = 0
    assert (await call(vectors, "query", query)).ids == different
    assert (await call(vectors, "query", query, mmr_threshold=1)).ids == near
    assert (await call(vectors, "query", asked(None, [1.0, 0.0], k=0, mode="mmr"))).ids == []


# The options of a query


async def test_each_option_counts_for_its_query(orchard: TwofoldVectorStore, call: Call) -> None:
    def formula() -> str:
        assert orchard.last_result is not None
        return orchard.last_result[0].explanation.formula

    query = asked("apple", [0.0, 1.0, 0.0], mode="hybrid")
    await call(orchard, "query", query)
    plain = formula()
    for options, told in (
        ({"rrf_k": 7}, "rrf(k=7)"),
        ({"params": SearchParams(alpha=0.3), "rrf_k": 7}, "rrf(k=7)"),
        ({"params": SearchParams.preset("rrf", rrf_k=9)}, "rrf(k=9)"),
        ({"params": SearchParams.preset("rrf", rrf_k=9), "rrf_k": 8}, "rrf(k=8)"),
        ({"preset": "localmem"}, "cosine + 0.25"),
    ):
        await call(orchard, "query", query, **options)
        assert told in formula()
    by_rank = await call(orchard, "query", query, rrf_k=7)
    expected = await call(orchard, "query", query, params=SearchParams.preset("rrf", rrf_k=7))
    assert (by_rank.ids, by_rank.similarities) == (expected.ids, expected.similarities)
    await call(orchard, "query", query)
    assert formula() == plain
    assert set((await call(orchard, "query", query, where=F("n") > 1)).ids) == {"plum", "stone", "anti"}
    assert set((await call(orchard, "query", query, where={"n": {"$lt": 2}})).ids) == {"apple", "pear"}
    assert set((await call(orchard, "query", query, where=A.source == "garden")).ids) == {"apple", "pear", "plum"}


async def test_linked_nodes_follow_those_found_if_asked_for(orchard: TwofoldVectorStore, call: Call) -> None:
    orchard.store.link("plum", "stone", kind="related")
    query = asked("plum", k=1, mode="sparse")
    assert (await call(orchard, "query", query)).ids == ["plum"]
    for options in ({"expand": 3}, {"params": SearchParams(expand=3)}):
        found = await call(orchard, "query", query, **options)
        assert found.ids == ["plum", "stone"]
        assert found.similarities[0] > found.similarities[1] > 0


async def test_parameters_of_its_own_hold_where_a_query_does_not_say(open_store: Any, call: Call) -> None:
    settings = twofold.StoreSettings(search=SearchParams(expand=3, touch=True, fusion="rrf", rrf_k=11))
    store = open_store(settings=settings)
    store.add_many([{"text": "plum jam", "id": "plum"}, {"text": "grey stone", "id": "stone"}])
    store.link("plum", "stone", kind="related")
    query = asked("plum", k=1, mode="hybrid")
    plain = TwofoldVectorStore(store)
    assert (await call(plain, "query", query)).ids == ["plum"]  # the store's links and touches are for memories
    assert plain.last_result is not None
    assert "k=11" in plain.last_result[0].explanation.formula
    own = TwofoldVectorStore(store, params=SearchParams(expand=1, fusion="rrf", rrf_k=12))
    assert (await call(own, "query", query)).ids == ["plum", "stone"]
    assert own.last_result is not None
    assert "k=12" in own.last_result[0].explanation.formula
    store.add("the next write", id="z")  # takes along what was touched
    assert store.get("plum").access_count == 0


@pytest.mark.parametrize(
    ("mode", "options", "error"),
    [
        ("default", {"user_id": "ann"}, TypeError),
        ("default", {"access": "ann"}, ValueError),
        ("default", {"params": {"rrf_k": 1}}, ValueError),
        ("default", {"params": SearchParams(), "preset": "rrf"}, ValueError),
        ("default", {"preset": "none such"}, ValueError),
        ("default", {"where": "n = 1"}, ValueError),
        ("default", {"where": {"n": {"$near": 1}}}, ValueError),
        ("default", {"expand": -1}, ValueError),
        ("hybrid", {"rrf_k": -1}, ValueError),
        ("mmr", {"mmr_threshold": 1.5}, ValueError),
        ("mmr", {"mmr_threshold": True}, ValueError),
        ("mmr", {"mmr_prefetch_k": 0}, ValueError),
        ("mmr", {"mmr_prefetch_factor": 0.5}, ValueError),
        ("mmr", {"mmr_prefetch_k": 3, "mmr_prefetch_factor": 2.0}, ValueError),
    ],
)
async def test_what_is_not_understood_is_refused(
    orchard: TwofoldVectorStore, call: Call, mode: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await call(orchard, "query", asked("apple", [1.0, 0.0, 0.0], mode=mode), **options)


def test_queries_do_not_leak_into_each_other(make_vectors: Make) -> None:
    vectors = make_vectors(embed_model=FakeEmbedder())
    vectors.add([TextNode(id_="a", text="alpha"), TextNode(id_="b", text="beta")])
    assert vectors.query(asked("alpha", k=1, node_ids=["b"])).ids == ["b"]
    assert vectors.query(asked("alpha", k=1)).ids == ["a"]
    assert vectors.query(asked("beta", k=9, mode="sparse")).ids == ["b"]
