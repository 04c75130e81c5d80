"""Maximal marginal relevance in a search: which hits there are, in which order, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import twofold
from twofold import (
    Access,
    EmbeddingSettings,
    F,
    GivenVectors,
    HybridStore,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Search
from twofold.testing import FakeClock, FlakyEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
EAST = [1.0, 0.0, 0.0]
VECTORS = {
    "first": [1.0, 0.2, 0.2],
    "copy 1": [1.0, 0.25, 0.2],
    "copy 2": [1.0, 0.3, 0.2],
    "copy 3": [1.0, 0.35, 0.2],
    "other": [0.6, 0.8, -0.1],
    "third": [0.5, 0.0, 0.86],
}


@pytest.fixture
def store() -> Iterator[HybridStore]:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=GivenVectors("v", 3), settings=StoreSettings(clock=clock)) as store:
        for id_, vector in VECTORS.items():
            store.add(f"kettle {id_}", id=id_, vector=vector, metadata={"copy": id_.startswith("copy")})
            clock.advance(seconds=1)
        yield store


def by_vector(store: HybridStore, k: int, balance: float | None, *, offset: int = 0, **params: object) -> SearchResult:
    chosen = SearchParams(prior="none", mmr_lambda=balance, **params)  # type: ignore[arg-type]
    return store.search("", vector=EAST, mode="vector", k=k, offset=offset, params=chosen)


def units() -> dict[str, np.ndarray]:
    return {name: np.array(each) / np.linalg.norm(each) for name, each in VECTORS.items()}


def expected(k: int, balance: float) -> tuple[str, ...]:
    """The definition over all there are, relevance being the cosine, which is the score of ``mode="vector"``."""
    unit, chosen = units(), list[str]()
    while len(chosen) < k:
        worth = {
            name: balance * unit[name] @ np.array(EAST)
            - (1 - balance) * max((unit[name] @ unit[each] for each in chosen), default=0.0)
            for name in unit
            if name not in chosen
        }
        chosen.append(max(worth, key=worth.__getitem__))
    return tuple(chosen)


@pytest.mark.parametrize("balance", [0.0, 0.3, 0.4, 0.8, 1.0])
def test_the_set_changes_and_not_only_the_order(store: HybridStore, balance: float) -> None:
    assert by_vector(store, 3, None).ids == ("first", "copy 1", "copy 2")
    assert by_vector(store, 3, balance).ids == expected(3, balance)
    assert expected(3, 0.4) == ("first", "other", "third")
    assert expected(3, 1.0) == ("first", "copy 1", "copy 2")


def test_scores_stay_what_they_are(store: HybridStore) -> None:
    plain = {hit.id: hit.score for hit in by_vector(store, 6, None)}
    assert {hit.id: hit.score for hit in by_vector(store, 6, 0.5)} == plain


def test_pages_neither_overlap_nor_skip(store: HybridStore) -> None:
    whole = by_vector(store, 6, 0.4).ids
    assert whole == expected(6, 0.4)
    assert [by_vector(store, 2, 0.4, offset=start).ids for start in (0, 2, 4, 6)] == [
        whole[:2], whole[2:4], whole[4:], ()
    ]  # fmt: skip
    assert by_vector(store, 0, 0.4).ids == ()


def test_past_the_pools_the_order_is_that_of_the_legs(store: HybridStore) -> None:
    assert by_vector(store, 6, 0.0, pool=3).ids == ("first", "copy 2", "copy 1", "copy 3", "other", "third")
    assert by_vector(store, 6, 0.0).ids[:3] == ("first", "third", "other")


def test_a_thousand_at_most_are_chosen_and_pages_agree_beyond_them() -> None:
    params = SearchParams(prior="none", mmr_lambda=0.3, pool=1100)
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add_many([{"id": str(n), "text": "x", "vector": [np.cos(n / 999), np.sin(n / 999)]} for n in range(1100)])

        def page(offset: int, k: int) -> SearchResult:
            return store.search("", vector=[1.0, 0.0], mode="vector", k=k, offset=offset, params=params)

        whole = page(0, 1100)
        assert len(set(whole.ids)) == 1100
        assert [hit.explanation.diversity is not None for hit in whole] == [True] * 1000 + [False] * 100
        rest = [hit.score for hit in whole[1000:]]
        assert rest == sorted(rest, reverse=True)
        assert page(990, 20).ids == whole.ids[990:1010]
        traced = store.search(
            "", vector=[1.0, 0.0], mode="vector", k=20, offset=990, params=replace(params, trace=True)
        ).trace
        mmr = next(stage for stage in traced or () if stage.name == "mmr")
        assert mmr.output == whole.ids[990:1010]
        assert {each.id for each in mmr.dropped} == {*whole.ids} - {*mmr.output}


def test_it_chooses_among_the_pool_that_is_asked_for(store: HybridStore) -> None:
    assert by_vector(store, 2, 0.0, mmr_pool=2).ids == ("first", "copy 1")
    assert by_vector(store, 2, 0.0, mmr_pool=5).ids == ("first", "other")
    assert by_vector(store, 2, 0.0, mmr_pool=6).ids == ("first", "third")


def test_what_scores_too_low_is_not_chosen(store: HybridStore) -> None:
    assert by_vector(store, 2, 0.0, min_score=0.55).ids == ("first", "other")
    assert by_vector(store, 2, 0.0, min_score=0.9).ids == ("first", "copy 3")
    assert by_vector(store, 10, 0.0, min_score=0.9).ids == ("first", "copy 3", "copy 1", "copy 2")


def test_in_a_hybrid_search_relevance_is_the_fused_score_or_the_cosine(store: HybridStore) -> None:
    def found(**params: object) -> tuple[str, ...]:
        ranked = SearchParams(prior="none", adjacency=0, **params)  # type: ignore[arg-type]
        return store.search("third copy", vector=EAST, k=2, params=ranked).ids

    plain = found()
    assert found(mmr_lambda=1.0) == plain
    assert found(mmr_lambda=1.0, mmr_relevance="cosine") == ("first", "copy 1") != plain


def test_with_the_cosine_and_no_vector_of_the_query_it_is_the_score(store: HybridStore) -> None:
    ranked = {"mmr_lambda": 0.9, "mmr_relevance": "cosine"}
    found = store.search("third kettle", k=3, params=SearchParams(**ranked)).ids  # type: ignore[arg-type]
    assert found[0] == "third"


def test_a_hit_says_that_it_was_chosen(store: HybridStore) -> None:
    first, other, third = by_vector(store, 3, 0.4)
    unit = units()
    assert first.explanation.diversity is not None
    assert third.explanation.diversity is not None
    assert (first.explanation.diversity.rank, first.explanation.diversity.similarity) == (1, None)
    assert third.explanation.diversity.rank == 6
    nearest = max(unit["first"] @ unit["third"], unit["other"] @ unit["third"])
    assert third.explanation.diversity.similarity == pytest.approx(nearest)
    assert first.why.endswith("; chosen by mmr(lambda=0.4) from rank 1")
    assert third.why.endswith(f"; chosen by mmr(lambda=0.4) from rank 6, cosine {nearest:.3g} to the nearest before it")
    assert other.why.endswith(f"from rank 5, cosine {unit['first'] @ unit['other']:.3g} to the nearest before it")
    assert "mmr" not in by_vector(store, 1, None)[0].why


def test_the_trace_tells_what_it_passed_over(store: HybridStore) -> None:
    result = by_vector(store, 2, 0.4, offset=1, trace=True)
    assert result.trace is not None
    fuse, mmr = (next(stage for stage in result.trace if stage.name == name) for name in ("fuse", "mmr"))
    assert set(fuse.output) == set(VECTORS)
    assert fuse.dropped == ()
    assert mmr.output == result.ids == ("other", "third")
    assert mmr.detail == {"among": 6, "without_vector": 0}
    assert {each.id: each.reason for each in mmr.dropped} == {
        "first": "on an earlier page: offset is 1",
        "copy 1": "more like the chosen ones than its relevance makes up for",
        "copy 2": "more like the chosen ones than its relevance makes up for",
        "copy 3": "behind the page",
    }
    assert "mmr" in result.timings
    assert "mmr" not in by_vector(store, 2, None).timings


def test_filters_and_access_hold(store: HybridStore) -> None:
    """BUG-FRM-04: filter ignored in MMR."""
    store.add("kettle of hers", id="hers", vector=[0.0, 0.0, 1.0], access=Access(user="ann"))
    chosen = SearchParams(mmr_lambda=0.1, trace=True)
    only = store.search("kettle", vector=EAST, k=9, where=F("copy") == True, params=chosen)  # noqa: E712
    assert set(only.ids) == {"copy 1", "copy 2", "copy 3"}
    seen = store.search("kettle", vector=EAST, k=9, params=chosen)
    told = {id_ for stage in seen.trace or () for id_ in (*stage.output, *(each.id for each in stage.dropped))}
    assert "hers" not in {*seen.ids, *told}
    assert "hers" in store.search("kettle", vector=EAST, k=3, params=chosen, access=Access(user="ann")).ids


def test_records_that_wait_for_a_vector_are_found_too() -> None:
    embedder = FlakyEmbedder()
    settings = StoreSettings(embedding=EmbeddingSettings(fill_in=False, first_pause=0.001))
    with twofold.open(":memory:", embedder=embedder, settings=settings) as store:
        store.add_many([{"id": "a", "text": "a red kettle"}, {"id": "b", "text": "a red kettle again"}])
        embedder.down = True
        store.add("a red kettle that waits", id="waits")
        embedder.down = False
        result = store.search("red kettle", k=3, params=SearchParams(mmr_lambda=0.5))
        assert set(result.ids) == {"a", "b", "waits"}
        waits = next(hit for hit in result if hit.id == "waits")
        assert waits.explanation.diversity is not None
        assert waits.explanation.diversity.similarity is None


def test_without_an_embedder_the_order_stays() -> None:
    with twofold.open(":memory:") as store:
        store.add_many([{"id": "a", "text": "red kettle"}, {"id": "b", "text": "red"}])
        assert store.search("red kettle", params=SearchParams(mmr_lambda=0.2)).ids == ("a", "b")
        assert store.search("nothing", params=SearchParams(mmr_lambda=0.2)).ids == ()


async def test_every_way_to_search_chooses_alike(store: HybridStore) -> None:
    params = SearchParams(mmr_lambda=0.4)
    ids = store.search("kettle", vector=EAST, k=3, params=params).ids
    assert (await store.asearch("kettle", vector=EAST, k=3, params=params)).ids == ids
    assert store.search_many(["kettle"], vectors=[EAST], k=3, params=params)[0].ids == ids
    assert store.batch([Search("kettle", vector=EAST, k=3, params=params)])[0].ids == ids
