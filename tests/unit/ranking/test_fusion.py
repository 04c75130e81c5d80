"""Every fusion: its formula, its golden values, and what it makes of the odd cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold import ConfigurationError
from twofold.ranking import (
    AdditiveBonus,
    Alpha,
    Calibrated,
    DistributionBased,
    Fusion,
    OneLeg,
    OwnFusion,
    ReciprocalRank,
    RelativeScore,
)

EVEN = {"keyword": 1.0, "vector": 1.0}
ENGRAM = {"keyword": 0.3, "vector": 0.7}
HALVES = {"keyword": 0.5, "vector": 0.5}


def at_rank(rank: int) -> list[tuple[int, float]]:
    """A leg in which key 1 has this rank."""
    return [*((1000 + before, 9.0) for before in range(rank - 1)), (1, 1.0)]


# -- by rank ---------------------------------------------------------------------------------------------------------


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
    legs = {"keyword": at_rank(keyword), "vector": [] if vector is None else at_rank(vector)}
    fused = ReciprocalRank(EVEN, 60).fuse(legs)[1]
    assert fused == pytest.approx(score, rel=1e-15)
    assert fused == pytest.approx(golden, rel=1e-15)


@pytest.mark.parametrize(
    ("keyword", "vector", "score", "golden"),
    [(1, 9, 0.7 / 69 + 0.3 / 61, 0.015062960323117129), (None, 1, 0.7 / 61, 0.011475409836065573)],
)
def test_rrf_weighs_legs(keyword: int | None, vector: int, score: float, golden: float) -> None:
    legs = {"keyword": [] if keyword is None else at_rank(keyword), "vector": at_rank(vector)}
    fused = ReciprocalRank(ENGRAM, 60).fuse(legs)[1]
    assert fused == pytest.approx(score, rel=1e-15)
    assert fused == pytest.approx(golden, rel=1e-15)


def test_an_absent_record_gets_no_fallback_rank() -> None:
    """huggingface/sentence-transformers#3883."""
    keys = {name: number for number, name in enumerate("XaYbc")}
    legs = {"vector": [(keys[name], 0.0) for name in "XaY"], "keyword": [(keys[name], 0.0) for name in "bcY"]}
    fused = {name: ReciprocalRank(EVEN).fuse(legs)[key] for name, key in keys.items()}
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
    fusion = ReciprocalRank({"keyword": weights[0], "vector": weights[1]}, rrf_k)
    fused = fusion.fuse({"keyword": [(key, 1.0) for key in keyword], "vector": [(key, 1.0) for key in vector]})
    assert fused.keys() == {*keyword, *vector}
    maximum = fusion.ceiling(("keyword", "vector"))
    assert all(0 <= score <= maximum * (1 + 1e-12) for score in fused.values())
    if keyword and vector and keyword[0] == vector[0]:
        assert fused[keyword[0]] == maximum


# -- by score --------------------------------------------------------------------------------------------------------


def fused_of(fusion: Fusion, keyword: list[float] | None, vector: list[float] | None) -> dict[int, float]:
    """Of legs that found 0, 1, 2 … with these scores, best first."""
    legs = {"keyword": keyword, "vector": vector}
    return fusion.fuse({leg: list(enumerate(scores)) for leg, scores in legs.items() if scores is not None})


@pytest.mark.parametrize(("cosine", "kw", "golden"), [(0.62, 1.0, 0.87), (0.9, 0.6, 1.0)])
def test_additive_bonus(cosine: float, kw: float, golden: float) -> None:
    fusion = AdditiveBonus({"keyword": 0.25, "vector": 1.0})
    legs = {"keyword": [(7, 10.0), (1, 10.0 * kw)], "vector": [(1, cosine)]}
    score = fusion.fuse(legs)[1]
    assert score == pytest.approx(cosine + 0.25 * kw)
    assert fusion.ceiling(legs) == 1.0
    assert min(1.0, score / fusion.ceiling(legs)) == pytest.approx(golden)


def test_additive_bonus_of_keywords_alone_is_scaled_by_the_bonus() -> None:
    fusion = AdditiveBonus({"keyword": 0.25, "vector": 1.0})
    assert fused_of(fusion, [8.0, 2.0], None) == pytest.approx({0: 0.25, 1: 0.25 * 2 / 8})
    assert fusion.ceiling(("keyword",)) == 0.25


def test_alpha() -> None:
    fusion = Alpha(ENGRAM)
    legs = {"keyword": [(7, 6.0), (1, 3.0)], "vector": [(1, 0.8)]}
    assert fusion.fuse(legs)[1] == pytest.approx(0.7 * 0.8 / max(1, 0.8) + 0.3 * 3 / 6)
    assert fusion.fuse(legs)[1] == pytest.approx(0.71)
    assert fusion.fuse(legs)[7] == pytest.approx(0.3)


def test_relative_score_is_min_max_a_leg() -> None:
    fused = fused_of(RelativeScore(HALVES), [9.0, 5.0, 1.0], [0.8, 0.2, 0.5])
    assert fused == pytest.approx(
        {
            0: 0.5 * (9 - 1) / (9 - 1) + 0.5 * (0.8 - 0.2) / (0.8 - 0.2),
            1: 0.5 * (5 - 1) / (9 - 1) + 0.5 * 0,
            2: 0.5 * 0 + 0.5 * (0.5 - 0.2) / (0.8 - 0.2),
        }
    )


def test_dbsf_is_three_deviations_around_the_mean() -> None:
    scores = [9.0, 5.0, 1.0]
    mean = (9 + 5 + 1) / 3
    deviation = math.sqrt(((9 - mean) ** 2 + (5 - mean) ** 2 + (1 - mean) ** 2) / 2)
    fused = fused_of(DistributionBased(HALVES), scores, None)
    assert fused == pytest.approx(
        {key: 0.5 * (score - (mean - 3 * deviation)) / (6 * deviation) for key, score in enumerate(scores)}
    )
    outlier = fused_of(DistributionBased(HALVES), [1e6] + [0.0] * 99, None)
    assert outlier[0] == 0.5 * 1.0  # 9.9 deviations above the mean


def test_calibrated_takes_the_background_off() -> None:
    fusion = Calibrated({"keyword": 0.4, "vector": 0.6}, background=0.75)
    fused = fused_of(fusion, [6.0, 3.0], [0.9, 0.7])
    assert fused == pytest.approx(
        {0: 0.6 * (0.9 - 0.75) / (1 - 0.75) + 0.4 * 6 / 6, 1: 0.6 * max(0, (0.7 - 0.75) / (1 - 0.75)) + 0.4 * 3 / 6}
    )


def test_calibrated_trusts_keywords_as_far_as_the_words_of_the_question_occur() -> None:
    fusion = Calibrated({"keyword": 0.4, "vector": 0.6}, background=0.0, coverage=0.25)
    assert fused_of(fusion, [6.0, 3.0], []) == pytest.approx({0: 0.4 * 0.25 * 6 / 6, 1: 0.4 * 0.25 * 3 / 6})
    assert fusion.ceiling(("keyword", "vector")) == 1.0


FUSIONS = [
    ReciprocalRank(HALVES),
    AdditiveBonus({"keyword": 0.25, "vector": 1.0}),
    Alpha(ENGRAM),
    RelativeScore(HALVES),
    DistributionBased(HALVES),
    Calibrated(HALVES, 0.3),
]
by_name = pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: type(fusion).__name__)
no_spread = [
    (ReciprocalRank(HALVES), 0.5 / 61),
    (AdditiveBonus({"keyword": 0.25, "vector": 1.0}), 0.25),
    (Alpha(ENGRAM), 0.3),
    (RelativeScore(HALVES), 0.5),
    (DistributionBased(HALVES), 0.5 * 0.5),
    (Calibrated(HALVES, 0.3), 0.5),
]


@pytest.mark.parametrize(("fusion", "score"), no_spread, ids=lambda value: type(value).__name__)
def test_one_keyword_match_has_no_spread(fusion: Fusion, score: float) -> None:
    assert fused_of(fusion, [3.7], None) == pytest.approx({0: score})
    if not isinstance(fusion, ReciprocalRank):  # all equal is like one
        assert fused_of(fusion, [3.7, 3.7, 3.7], []) == pytest.approx(dict.fromkeys(range(3), score))


@pytest.mark.parametrize(
    ("fusion", "scores"),
    [
        (AdditiveBonus({"keyword": 0.25, "vector": 1.0}), [0.5, -0.5]),
        (Alpha(ENGRAM), [0.7 * 0.5, 0.7 * -0.5]),
        (RelativeScore(HALVES), [0.5, 0.0]),
        (Calibrated(HALVES, 0.3), [0.5 * 0.2 / 0.7, 0.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_negative_cosine(fusion: Fusion, scores: list[float]) -> None:
    assert list(fused_of(fusion, None, [0.5, -0.5]).values()) == pytest.approx(scores)


def test_a_share_of_zero_adds_nothing() -> None:
    for kind in (Alpha, RelativeScore, DistributionBased, AdditiveBonus, Calibrated, ReciprocalRank):
        fusion: Any = kind({"keyword": 1.0, "vector": 0.0})
        fused = fusion.fuse({"keyword": [(1, 2.0), (2, 1.0)], "vector": [(2, 0.9), (1, 0.8)]})
        assert fused == fusion.fuse({"keyword": [(1, 2.0), (2, 1.0)]})


def test_matches_of_no_weight_at_all() -> None:
    assert fused_of(Alpha(ENGRAM), [0.0, 0.0], [0.5]) == pytest.approx({0: 0.7 * 0.5, 1: 0.0})


scores = st.lists(st.floats(-1, 1), max_size=8).map(lambda found: sorted(found, reverse=True))
bm25 = st.lists(st.floats(0, 1e6), max_size=8).map(lambda found: sorted(found, reverse=True))


@by_name
@given(keyword=bm25, vector=scores, shift=st.integers(0, 8))
def test_a_sum_is_what_its_legs_add_and_stays_below_its_ceiling(
    fusion: Fusion, keyword: list[float], vector: list[float], shift: int
) -> None:
    legs = {
        "keyword": list(enumerate(keyword)),
        "vector": [(key + shift, score) for key, score in enumerate(vector)],
    }
    fused = fusion.fuse(legs)
    assert fused.keys() == {key for found in legs.values() for key, _ in found}
    parts = dict.fromkeys(fused, 0.0)
    for leg, found in legs.items():
        adder = fusion.adder(leg, found)
        assert adder is not None
        for rank, (key, score) in enumerate(found, start=1):
            parts[key] += adder(rank, score)
    assert fused == pytest.approx(parts)
    assert all(math.isfinite(score) for score in fused.values())
    ceiling = fusion.ceiling(tuple(legs))
    if not isinstance(fusion, AdditiveBonus):  # that is cut at its ceiling
        assert all(score <= ceiling * (1 + 1e-12) for score in fused.values())
    for leg, found in legs.items():  # of what one leg alone found, the better there is not the worse here
        alone = [
            fused[key] for key, _ in found if all(key not in dict(other) for name, other in legs.items() if name != leg)
        ]
        assert alone == sorted(alone, reverse=True)


# -- one leg, and one's own ------------------------------------------------------------------------------------------


def test_one_leg_is_its_own_score() -> None:
    fusion = OneLeg("bm25 / best", 4.0)
    assert fusion.fuse({"keyword": [(1, 4.0), (2, 1.0)]}) == {1: 4.0, 2: 1.0}
    assert fusion.ceiling(("keyword",)) == 4.0


def test_a_function_of_ones_own() -> None:
    def borda(legs: Any) -> dict[int, float]:
        points: dict[int, float] = {}
        for found in legs.values():
            for place, (key, _) in enumerate(found):
                points[key] = points.get(key, 0) + len(found) - place
        return points

    fusion = OwnFusion(borda)
    assert fusion.fuse({"keyword": [(1, 9.0), (2, 1.0)], "vector": [(2, 0.5)]}) == {1: 2, 2: 1 + 1}
    assert (fusion.formula, fusion.ceiling(()), fusion.adder("keyword", [])) == ("borda", 1.0, None)


@pytest.mark.parametrize("same", [np.int64, float, bool])
def test_keys_that_a_function_gives_in_another_type_are_the_records(same: Any) -> None:
    fused = OwnFusion(lambda legs: {same(1): np.float32(0.5)}).fuse({"keyword": [(1, 1.0)]})
    assert fused == {1: 0.5}
    assert [type(key) for key in fused] == [int]


@pytest.mark.parametrize(
    "wrong", [None, [1], {3: 1.0}, {1: "high"}, {1: math.nan}, {1: math.inf}, {1: None}, {"1": 1.0}], ids=repr
)
def test_a_function_that_returns_no_scores_is_told_so(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="fusion of your own"):
        OwnFusion(lambda legs: wrong).fuse({"keyword": [(1, 1.0)]})
