"""Orders in which no two records share a place."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from twofold.ranking import adjacency_factor, in_total_order


@given(
    st.dictionaries(st.integers(0, 50), st.sampled_from((0.0, 0.25, 0.5, 1.0))),
    st.none() | st.integers(0, 60),
    st.booleans(),
)
def test_order_is_total_as_far_as_asked_and_looks_at_ties_only(
    scores: dict[int, float], first: int | None, sorted_before: bool
) -> None:
    asked: list[int] = []

    def tie_breakers(keys: Sequence[int]) -> dict[int, int]:
        asked.extend(keys)
        return {key: -key for key in keys}

    by_score = sorted(scores, key=scores.__getitem__, reverse=True) if sorted_before else None
    ordered = in_total_order(scores, tie_breakers, first, by_score)
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
