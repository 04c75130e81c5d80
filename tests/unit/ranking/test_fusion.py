"""Reciprocal rank fusion: the formula, its golden values, and the orders that follow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.ranking import adjacency_factor, in_total_order, reciprocal_rank_fusion, reciprocal_rank_maximum

EVEN = {"keyword": 1.0, "vector": 1.0}


def ranked(key: int, rank: int) -> list[int]:
    """A leg in which ``key`` has this rank."""
    return [*range(1000, 1000 + rank - 1), key]


@pytest.mark.parametrize(
    ("keyword", "vector", "score", "golden"),
    [
        (1, 1, 1 / 61 + 1 / 61, 0.03278688524590164),
        (1, 10, 1 / 61 + 1 / 70, 0.030679156908665108),
        (1, None, 1 / 61, 0.01639344262295082),
        (1, 3, 1 / 61 + 1 / 63, 0.032266458495966696),
        (5, 1, 1 / 65 + 1 / 61, 0.03177805800756621),
        (2, 8, 1 / 62 + 1 / 68, 0.030834914611005692),
    ],
)
def test_rrf_sums_reciprocal_ranks(keyword: int, vector: int | None, score: float, golden: float) -> None:
    legs = {"keyword": ranked(1, keyword), "vector": [] if vector is None else ranked(1, vector)}
    fused = reciprocal_rank_fusion(legs, EVEN, 60)[1]
    assert fused == pytest.approx(score, rel=1e-15)
    assert fused == pytest.approx(golden, rel=1e-15)


@pytest.mark.parametrize(
    ("keyword", "vector", "score", "golden"),
    [(1, 9, 0.7 / 69 + 0.3 / 61, 0.015062960323117129), (None, 1, 0.7 / 61, 0.011475409836065573)],
)
def test_rrf_weighs_legs(keyword: int | None, vector: int, score: float, golden: float) -> None:
    legs = {"keyword": [] if keyword is None else ranked(1, keyword), "vector": ranked(1, vector)}
    fused = reciprocal_rank_fusion(legs, {"keyword": 0.3, "vector": 0.7}, 60)[1]
    assert fused == pytest.approx(score, rel=1e-15)
    assert fused == pytest.approx(golden, rel=1e-15)


def test_an_absent_record_gets_no_fallback_rank() -> None:
    """huggingface/sentence-transformers#3883."""
    dense, sparse = ["X", "a", "Y"], ["b", "c", "Y"]
    keys = {name: number for number, name in enumerate("XaYbc")}
    legs = {"vector": [keys[name] for name in dense], "keyword": [keys[name] for name in sparse]}
    fused = {name: reciprocal_rank_fusion(legs, EVEN, 60)[key] for name, key in keys.items()}
    assert fused["Y"] == pytest.approx(2 / 63)
    assert fused["X"] == fused["b"] == pytest.approx(1 / 61)
    assert fused["a"] == fused["c"] == pytest.approx(1 / 62)
    assert max(fused, key=fused.__getitem__) == "Y"


@given(
    keyword=st.lists(st.integers(0, 30), unique=True),
    vector=st.lists(st.integers(0, 30), unique=True),
    rrf_k=st.floats(0, 1000),
    weights=st.tuples(st.floats(0, 10), st.floats(0.001, 10)),
)
def test_rrf_stays_within_its_maximum(
    keyword: list[int], vector: list[int], rrf_k: float, weights: tuple[float, float]
) -> None:
    by_leg = {"keyword": weights[0], "vector": weights[1]}
    fused = reciprocal_rank_fusion({"keyword": keyword, "vector": vector}, by_leg, rrf_k)
    assert fused.keys() == {*keyword, *vector}
    maximum = reciprocal_rank_maximum(by_leg, rrf_k)
    assert all(0 <= score <= maximum * (1 + 1e-12) for score in fused.values())
    if keyword and vector and keyword[0] == vector[0]:
        assert fused[keyword[0]] == maximum


@given(st.dictionaries(st.integers(0, 50), st.sampled_from((0.0, 0.25, 0.5, 1.0))), st.none() | st.integers(0, 60))
def test_order_is_total_as_far_as_asked_and_looks_at_ties_only(scores: dict[int, float], first: int | None) -> None:
    asked: list[int] = []

    def tie_breakers(keys: Sequence[int]) -> dict[int, int]:
        asked.extend(keys)
        return {key: -key for key in keys}

    ordered = in_total_order(scores, tie_breakers, first)
    expected = sorted(scores, key=lambda key: (-scores[key], -key))
    assert ordered[:first] == expected[:first]
    assert sorted(ordered) == sorted(scores)
    assert [scores[key] for key in ordered] == sorted(scores.values(), reverse=True)
    values = list(scores.values())
    assert all(values.count(scores[key]) > 1 for key in asked)


def test_adjacency_is_a_bounded_factor() -> None:
    assert adjacency_factor(0, 4, 0.2) == 1.0
    assert adjacency_factor(1, 4, 0.2) == 1.0 + 0.2 * 1 / 4
    assert adjacency_factor(4, 4, 0.2) == 1.2
    assert adjacency_factor(0, 0, 0.2) == 1.0
