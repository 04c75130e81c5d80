from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.ranking.retention import DAY, retention


@pytest.mark.parametrize(
    ("age", "importance", "strength", "formula", "value"),
    [
        (DAY, 0.5, 1.0, math.exp(-1 / 0.5), 0.1353352832366127),
        (DAY, 1.0, 1.0, math.exp(-1), 0.36787944117144233),
        (DAY, 0.5, 1.5**3, math.exp(-1 / (0.5 * 3.375)), 0.5528920012788026),
        (0.0, 0.5, 1.0, 1.0, 1.0),
        (DAY, 0.0, 1.0, 0.0, 0.0),
        (DAY, 0.5, 0.0, 0.0, 0.0),
        (0.0, 0.0, 1.0, 0.0, 0.0),
    ],
)
def test_golden_values(age, importance, strength, formula, value):
    assert retention(age, importance, strength) == pytest.approx(formula, rel=1e-15)
    assert retention(age, importance, strength) == pytest.approx(value, rel=1e-12)


def test_the_half_life_stretches_the_curve():
    assert retention(7 * DAY, 1.0, 1.0, half_life=7 * DAY) == math.exp(-1)


def test_a_clock_that_was_set_back_strengthens_nothing():
    # kannaka-labs/consciousness-core#52: exp(-λ·age) of a negative age is above 1.
    assert retention(-100 * 3600.0, 0.8, 1.0) == 1.0


wild = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from((0.0, -0.0, 5e-324, 1.8e308, math.nan))


@given(age=wild, importance=wild, strength=wild, half_life=wild)
def test_it_is_a_share_whatever_goes_in(age, importance, strength, half_life):
    assert 0.0 <= retention(age, importance, strength, half_life) <= 1.0


@given(
    ages=st.tuples(*[st.floats(0, 1e9)] * 2).map(sorted),
    importance=st.floats(0, 1),
    strength=st.floats(1e-3, 100),
)
def test_it_falls_with_age_and_rises_with_importance_and_strength(ages, importance, strength):
    younger, older = ages
    assert retention(older, importance, strength) <= retention(younger, importance, strength)
    assert retention(older, importance, strength) <= retention(older, 1.0, strength)
    assert retention(older, importance, strength) <= retention(older, importance, 2 * strength)
