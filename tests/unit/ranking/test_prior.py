"""What a record carries whatever the query: golden values, bounds, and no surprises at their ends."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.config import SearchParams
from twofold.ranking import Prior, Standing, composite, with_factors
from twofold.ranking.prior import confidence_factor, importance_part, project_factor, recency, strength_part
from twofold.ranking.retention import DAY, retention

NOW = 1_800_000_000.0


def standing(**given: Any) -> Standing:
    plain = Standing(0.5, 1.0, NOW, NOW, "semantic", None, None)
    return plain._replace(**given)


def prior(**given: Any) -> Prior:
    plain: dict[str, Any] = {
        "span": 0.1, "importance": 1.0, "strength": 1.0, "recency": 0.0, "retention": 0.0,
        "recency_half_life": 30 * DAY, "retention_half_life": DAY, "confidence": False, "project": None,
        "project_weight": 0.5,
    }  # fmt: skip
    return Prior(**{**plain, **given})


@pytest.mark.parametrize(
    ("bm25", "strength", "importance", "score"), [(4.0, 1.0, 0.5, 6.0), (4.0, 0.25, 1.0, 2.0), (4.0, 0.0, 1.0, 0.0)]
)
def test_composite(bm25: float, strength: float, importance: float, score: float) -> None:
    assert bm25 * composite(strength, importance) == bm25 * strength * (1 + importance) == score


def test_a_strength_beyond_all_measure_does_not_overflow() -> None:
    assert math.isfinite(1e9 * composite(1.7e308, 1.0))


@pytest.mark.parametrize(
    ("age", "importance", "strength", "golden"),
    [(DAY, 0.5, 1.0, 0.1353352832366127), (DAY, 1.0, 1.0, 0.36787944117144233), (DAY, 0.5, 3.375, 0.5528920012788026)],
)
def test_retention(age: float, importance: float, strength: float, golden: float) -> None:
    assert retention(age, importance, strength) == pytest.approx(math.exp(-age / (DAY * importance * strength)))
    assert retention(age, importance, strength) == pytest.approx(golden, rel=1e-15)


def test_the_half_life_of_a_search_is_that_of_the_function() -> None:
    assert SearchParams().retention_half_life == DAY


@pytest.mark.parametrize(
    ("age", "value"), [(0, 1.0), (10, 0.5), (20, 0.25), (-100, 1.0), (math.inf, 0.0), (1e300, 0.0)]
)
def test_recency_halves_and_never_looks_ahead(age: float, value: float) -> None:
    """kannaka-labs/consciousness-core#52."""
    assert recency(age, 10.0) == value
    assert recency(math.nan, 10.0) == 1.0


def test_parts_are_zero_at_the_defaults() -> None:
    assert [importance_part(value) for value in (0.0, 0.5, 1.0)] == [-1.0, 0.0, 1.0]
    assert [strength_part(value) for value in (0.0, 1.0, 3.0)] == [-1.0, 0.0, (3 - 1) / (3 + 1)]
    assert strength_part(1.7e308) == 1.0


@pytest.mark.parametrize(
    ("confidence", "factor"),
    [(1, 1.0), (0.5, 0.75), (0, 0.5), (-3, 0.5), (7, 1.0), (None, 1.0), ("high", 1.0), (True, 1.0), (math.nan, 1.0)],
)
def test_confidence(confidence: Any, factor: float) -> None:
    assert confidence_factor(confidence) == factor


def test_projects() -> None:
    assert project_factor("a", "a", "semantic", 0.5) == 1.0
    assert project_factor("a", "b", "semantic", 0.5) == 0.5
    assert project_factor("a", None, "semantic", 0.5) == 0.5
    assert project_factor("a", "b", "insight", 0.5) == 1.0


def test_the_factor_of_default_attributes_is_one() -> None:
    """Far in the past or the future, too: age counts only where it is asked for."""
    for now in (NOW, NOW + 1e9, NOW - 1e9):
        assert prior().factors(standing(), now) == {}
    assert prior(confidence=True, project="a").factors(standing(project="a"), NOW) == {}


def test_the_bounded_factor() -> None:
    assert prior().factors(standing(importance=1.0), NOW)["prior"] == pytest.approx(1 + 0.1 * (1 + 0) / 2)
    assert prior().factors(standing(importance=0.0, strength=3.0), NOW)["prior"] == pytest.approx(
        1 + 0.1 * (-1 + 0.5) / 2
    )
    only_new = prior(importance=0.0, strength=0.0, recency=2.0)
    assert only_new.factors(standing(created_at=NOW - 30 * DAY), NOW) == {}  # half as new: 2 · 0.5 - 1
    assert only_new.factors(standing(), NOW)["prior"] == pytest.approx(1.1)
    kept = prior(importance=0.0, strength=0.0, retention=1.0)
    aged = standing(last_accessed=NOW - DAY, importance=1.0)
    assert kept.factors(aged, NOW)["prior"] == pytest.approx(1 + 0.1 * (2 * math.exp(-1) - 1))


def test_factors_have_their_names() -> None:
    every = prior(confidence=True, project="a").factors(standing(importance=1.0, confidence=0, project="b"), NOW)
    assert every == pytest.approx({"prior": 1.05, "confidence": 0.5, "project": 0.5})
    assert with_factors(0.8, every) == pytest.approx(0.8 * 1.05 * 0.5 * 0.5)
    assert with_factors(-0.8, every) == pytest.approx(-0.8 / (1.05 * 0.5 * 0.5))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(
    importance=st.floats(0, 1),
    strength=st.floats(0, 1.7e308),
    created=numbers,
    accessed=numbers,
    now=numbers,
    weights=st.tuples(*[st.floats(0, 1000)] * 4),
    span=st.floats(0, 0.5),
    confidence=st.none() | numbers,
)
def test_whatever_a_record_carries_the_factor_keeps_its_bounds(
    importance: float, strength: float, created: float, accessed: float, now: float, weights: Any, span: float,
    confidence: Any,
) -> None:  # fmt: skip
    """kirodotdev/KiroCrew#12154: nothing decays to nothing."""
    names = ("importance", "strength", "recency", "retention")
    asked = prior(span=span, **dict(zip(names, weights, strict=True)), confidence=True, project="a")
    carried = Standing(importance, strength, created, accessed, "semantic", "b", confidence)
    factor = with_factors(1.0, asked.factors(carried, now))
    least, most = asked.bounds
    assert 0.125 * (1 - 1e-12) <= least * (1 - 1e-12) <= factor <= most * (1 + 1e-12) <= 1.5 * (1 + 1e-12)


def test_importance_and_strength_alone_count_unless_something_else_is_asked_for() -> None:
    assert prior().looks_at_standing_alone
    for more in ({"recency": 1.0}, {"retention": 1.0}, {"confidence": True}, {"project": "a"}):
        assert not prior(**more).looks_at_standing_alone
