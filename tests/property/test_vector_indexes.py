"""Every index in memory against the exact one: any adds, updates, deletes, equal vectors, parts and filters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.vectors import (
    APPROXIMATE,
    CompactIndex,
    ExactIndex,
    approximate,
    compact,
    empty_index,
    faiss_problem,
    flat,
    proposals,
)

pytestmark = pytest.mark.skipif(faiss_problem() is not None, reason="the extra faiss is not installed")

DIMENSION = 4
steps = st.lists(
    st.tuples(
        st.integers(0, 2**32 - 1),  # what is random
        st.integers(0, 400),  # how many are added
        st.floats(0, 1),  # the share that is removed
        st.sampled_from([0.001, 0.02, 0.1, 0.5, 1.0]),  # the share that is visible
        st.integers(0, 60),  # limit
        st.booleans(),  # whether the index is kept, and so prepared
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(autouse=True, scope="module")
def _small_structures() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(approximate, "LEAST_ROWS", 150)
        patch.setattr(approximate, "_TAIL", 16)
        patch.setattr(flat, "LEAST_ROWS", 100)
        patch.setattr(flat, "_LEAST_VISIBLE", 40)
        patch.setattr(proposals, "_LEAST_FETCHED", 4)
        patch.setattr(flat, "_TAIL", 16)
        patch.setattr(compact, "_FOLDED", 64)
        patch.setattr(compact, "_FEW_BYTES", 4 * DIMENSION * 200)
        yield


class Stored:
    """What stands for the file: the vectors of each record."""

    def __init__(self) -> None:
        self.keys = np.empty(0, dtype=np.int64)
        self.vectors = np.empty((0, DIMENSION), dtype=np.float32)

    def change(self, removed: Any, keys: Any, vectors: Any) -> None:
        stay = ~np.isin(self.keys, removed)
        self.keys = np.concatenate([self.keys[stay], keys])
        self.vectors = np.concatenate([self.vectors[stay], vectors])

    def __call__(self, keys: Any) -> Any:
        wanted = np.isin(self.keys, keys)
        return self.keys[wanted], self.vectors[wanted]


CHOICES = ["auto", "faiss-flat", "faiss-hnsw", "faiss-ivf"]


@pytest.mark.parametrize("choice", [*CHOICES, "codes"])
@settings(max_examples=25, deadline=None)
@given(steps=steps)
def test_it_finds_what_the_exact_index_finds(
    choice: str, steps: list[tuple[int, int, float, float, int, bool]]
) -> None:
    index = CompactIndex.empty(DIMENSION) if choice == "codes" else empty_index(choice, DIMENSION)
    stored = Stored()
    exact = ExactIndex.empty(DIMENSION)
    common = wanted = 0
    for seed, count, removed_share, visible_share, limit, kept in steps:
        chance = np.random.default_rng(seed)
        removed = exact.keys[chance.random(len(exact.keys)) < removed_share]
        added = chance.integers(0, 5000, count)  # some known, some several times: parts
        vectors = chance.standard_normal((count, DIMENSION)).astype(np.float32)
        vectors[: count // 4] = np.round(vectors[: count // 4])  # equal ones
        vectors[~vectors.any(axis=1)] = 1
        index = index.updated(removed, added, vectors)
        exact = exact.updated(removed, added, vectors)
        stored.change(removed, added, vectors)
        if kept:
            index = index.prepared()
        assert len(index) == len(exact)
        assert index.keys.tolist() == exact.keys.tolist()
        visible = None
        if visible_share < 1:
            visible = np.flatnonzero(chance.random(5000) < visible_share)
        query, *others = queries = chance.standard_normal((4, DIMENSION)).astype(np.float32)
        found, truth = (each.search(query, visible, limit) for each in (index.reading(stored), exact))
        together = index.reading(stored).search_many(list(queries), visible, limit)
        apart = [found, *(index.reading(stored).search(other, visible, limit) for other in others)]
        assert [[each.tolist() for each in one] for one in together] == [
            [each.tolist() for each in one] for one in apart
        ]
        if choice in APPROXIMATE:
            scores = dict(zip(*(each.tolist() for each in exact.search(query, visible, 10**6)), strict=True))
            assert all(scores[key] == score for key, score in zip(*(each.tolist() for each in found), strict=True))
            assert len(found[0]) >= min(limit, len(truth[0]))
            common += len(set(found[0].tolist()) & set(truth[0].tolist()))
            wanted += len(truth[0])
        else:
            assert [each.tolist() for each in found] == [each.tolist() for each in truth]
    assert common >= 0.9 * wanted - 3
