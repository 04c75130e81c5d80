"""Maximal marginal relevance against its definition, written out in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.ranking import diverse

_Parts: TypeAlias = Sequence[Sequence[float]]


def by_definition(
    candidates: Sequence[tuple[int, float]],
    vectors: Mapping[int, _Parts],
    limit: int,
    balance: float,
) -> list[int]:
    """Each next one is the argmax of ``balance · relevance - (1 - balance) · max cosine to the chosen``."""

    def cosine(one: Sequence[float], other: Sequence[float]) -> float:
        return math.fsum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))

    def similarity(key: int, chosen: Sequence[int]) -> float | None:
        both = [
            cosine(one, other) for one in vectors.get(key, ()) for each in chosen for other in vectors.get(each, ())
        ]
        return round(max(both), 9) if both else None

    chosen: list[int] = []
    relevance = dict(candidates)
    while len(chosen) < min(limit, len(candidates)):
        left = [key for key, _ in candidates if key not in chosen]
        alike = {key: similarity(key, chosen) for key in left}
        known = [value for value in alike.values() if value is not None]
        usual = math.fsum(known) / len(known) if known else 0.0
        worth = {
            key: balance * relevance[key] - (1 - balance) * (usual if alike[key] is None else alike[key])  # type: ignore[operator]
            for key in left
        }
        chosen.append(max(left, key=lambda key: round(worth[key], 9)))
    return chosen


def keys(*arguments: Any) -> list[int]:
    return [key for key, _ in diverse(*arguments)]


def matrix(*rows: Sequence[float]) -> np.ndarray:
    return np.array(rows, np.float32)


EAST, ALMOST, NORTH = matrix([1, 0]), matrix([0.96, 0.28]), matrix([0, 2])
THREE = {1: EAST, 2: ALMOST, 3: NORTH}


def test_one_that_is_less_relevant_but_different_comes_before_the_like_of_the_first() -> None:
    candidates = [(1, 0.9), (2, 0.8), (3, 0.3)]
    assert 0.5 * 0.8 - 0.5 * 0.96 < 0.5 * 0.3 - 0.5 * 0
    found = diverse(candidates, THREE, 3, 0.5)
    assert [key for key, _ in found] == [1, 3, 2]
    assert [similarity for _, similarity in found] == [None, pytest.approx(0), pytest.approx(0.96)]
    assert keys(candidates, THREE, 2, 0.5) == [1, 3]


def test_the_ends_of_the_scale() -> None:
    candidates = [(1, 0.9), (2, 0.8), (3, 0.3)]
    assert keys(candidates, THREE, 3, 1.0) == [1, 2, 3]
    assert keys(candidates, THREE, 3, 0.0) == [1, 3, 2]
    assert keys([(2, 5.0), (1, 5.0), (3, 5.0)], THREE, 3, 1.0) == [2, 1, 3]  # equal ones stay as they come


def test_one_without_a_vector_counts_as_alike_as_the_others_are_on_average() -> None:
    """After the first: 0.96 and 0 to it, so 0.48 for the one that has none."""
    candidates = [(1, 1.0), (2, 0.9), (4, 0.8), (3, 0.5)]
    worth = {2: 0.9 - 0.96, 4: 0.8 - 0.48, 3: 0.5 - 0}
    assert sorted(worth, key=worth.__getitem__, reverse=True) == [3, 4, 2]
    found = diverse(candidates, THREE, 2, 0.5)
    assert [key for key, _ in found] == [1, 3]
    assert keys([*candidates[:2], (4, 0.99), candidates[3]], THREE, 2, 0.5) == [1, 4]
    assert found[0].similarity is None


def test_with_no_vectors_the_order_stays() -> None:
    candidates = [(7, 0.9), (5, 0.9), (6, 0.1)]
    found = diverse(candidates, {}, 3, 0.3)
    assert found == [(7, None), (5, None), (6, None)]
    assert diverse([], THREE, 3, 0.5) == []
    assert diverse(candidates, {}, 0, 0.5) == []


def test_several_parts_are_as_alike_as_the_nearest_two() -> None:
    parts = {1: matrix([1, 0], [0, 1]), 2: matrix([0, 3]), 3: matrix([-1, 0])}
    found = diverse([(1, 1.0), (2, 0.9), (3, 0.8)], parts, 3, 0.5)
    assert [(key, similarity) for key, similarity in found] == [(1, None), (3, 0.0), (2, 1.0)]


def test_damaged_rows_are_no_vectors() -> None:
    broken = {1: EAST, 2: matrix([np.nan, 1]), 3: matrix([0, 0], [0, 1])}
    found = diverse([(1, 1.0), (2, 0.9), (3, 0.8)], broken, 3, 0.5)
    assert dict(found) == {1: None, 2: None, 3: 0.0}


numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])
rows = st.lists(numbers, min_size=3, max_size=3).filter(any)


@given(
    st.lists(st.tuples(numbers, st.lists(rows, max_size=3)), max_size=8),
    st.integers(0, 9),
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
)
def test_it_is_the_definition(records: list[tuple[float, list[list[float]]]], limit: int, balance: float) -> None:
    candidates = sorted(((key, worth) for key, (worth, _) in enumerate(records)), key=lambda each: -each[1])
    vectors = {key: parts for key, (_, parts) in enumerate(records) if parts}
    given_ = {key: np.array(parts, np.float32) for key, parts in vectors.items()}
    found = keys(candidates, given_, limit, balance)
    assert found == by_definition(candidates, vectors, limit, balance)
    assert found == keys(candidates, given_, len(records), balance)[:limit]
