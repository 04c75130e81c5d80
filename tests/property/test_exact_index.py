"""The exact index against a list that is searched in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

from twofold.vectors import ExactIndex, exact_cosines

DIMENSION = 3
KEYS = st.integers(1, 12)
# Few distinct numbers, so that ties and equal vectors are common; none so near that only rounding tells them apart.
VECTORS = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), min_size=DIMENSION, max_size=DIMENSION).filter(
    any
)
Entry = tuple[int, tuple[float, ...]]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
    exact = dot / math.sqrt(math.fsum(a * a for a in one) * math.fsum(b * b for b in other))
    return max(-1.0, min(1.0, round(exact, 12)))


def oracle(entries: Sequence[Entry], query: Sequence[float], visible: set[int] | None, limit: int) -> list[Entry]:
    best: dict[int, float] = {}
    for key, vector in entries:
        if visible is None or key in visible:
            best[key] = max(best.get(key, -2.0), cosine(vector, query))
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    if not limit:
        return []
    return [item for item in ranked if len(ranked) <= limit or item[1] >= ranked[limit - 1][1]]  # type: ignore[misc]


def updated(index: ExactIndex, removed: Sequence[int], added: Sequence[Entry]) -> ExactIndex:
    return index.updated(
        np.array(removed, dtype=np.int64),
        np.array([key for key, _ in added], dtype=np.int64),
        np.array([vector for _, vector in added], dtype=np.float32).reshape(len(added), DIMENSION),
    )


class Snapshots(RuleBasedStateMachine):
    """Any snapshot, however old, may be searched and updated at any time."""

    snapshots = Bundle("snapshots")

    @rule(target=snapshots)
    def start(self) -> tuple[ExactIndex, list[Entry]]:
        return ExactIndex.empty(DIMENSION), []

    @rule(
        target=snapshots,
        snapshot=snapshots,
        removed=st.lists(KEYS, max_size=4),
        added=st.lists(st.tuples(KEYS, VECTORS.map(tuple)), max_size=40),
    )
    def update(
        self, snapshot: tuple[ExactIndex, list[Entry]], removed: list[int], added: list[Entry]
    ) -> tuple[ExactIndex, list[Entry]]:
        index, entries = snapshot
        return updated(index, removed, added), [entry for entry in entries if entry[0] not in removed] + added

    @rule(
        snapshot=snapshots,
        queries=st.lists(VECTORS, min_size=1, max_size=4),
        visible=st.none() | st.sets(KEYS | st.integers(10**17, 10**18)),
        limit=st.integers(0, 15),
    )
    def search(
        self, snapshot: tuple[ExactIndex, list[Entry]], queries: list[list[float]], visible: set[int] | None, limit: int
    ) -> None:
        index, entries = snapshot
        seen = None if visible is None else np.array(sorted(visible), dtype=np.int64)
        found = index.search_many([np.array(query, dtype=np.float32) for query in queries], seen, limit)
        for query, (keys, scores) in zip(queries, found, strict=True):
            expected = oracle(entries, query, visible, limit)
            assert keys.tolist() == [key for key, _ in expected]
            assert np.abs(scores - np.array([score for _, score in expected])).max(initial=0.0) <= 1e-12
            one_key, one_score = index.search(np.array(query, dtype=np.float32), seen, limit)
            assert (one_key.tolist(), one_score.tolist()) == (keys.tolist(), scores.tolist())

    @rule(snapshot=snapshots)
    def count(self, snapshot: tuple[ExactIndex, list[Entry]]) -> None:
        index, entries = snapshot
        assert len(index) == len(entries)
        assert index.keys.tolist() == sorted({key for key, _ in entries})


TestSnapshots = Snapshots.TestCase
TestSnapshots.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dimension=st.sampled_from([1, 2, 5, 31, 64, 385]),
    count=st.integers(1, 300),
    copies=st.integers(2, 20),
    limit=st.integers(1, 30),
)
def test_equal_vectors_score_equal_bits_and_stay_together(
    seed: int, dimension: int, count: int, copies: int, limit: int
) -> None:
    rng = np.random.default_rng(seed)
    twin = rng.standard_normal(dimension).astype(np.float32)
    vectors = np.concatenate([rng.standard_normal((count, dimension)).astype(np.float32), np.tile(twin, (copies, 1))])
    order = rng.permutation(count + copies)
    index = ExactIndex.empty(dimension).updated(np.empty(0, dtype=np.int64), order, vectors[order])
    query = rng.standard_normal(dimension).astype(np.float32)
    keys, scores = index.search(query, None, limit)
    twins = np.isin(keys, np.arange(count, count + copies))
    assert twins.sum() in {0, copies}
    assert set(scores[twins].tolist()) <= {float(exact_cosines(twin[np.newaxis], query)[0])}
    everything, all_scores = index.search(query, None, count + copies)
    reach = max(limit, int((all_scores >= all_scores[min(limit, len(all_scores)) - 1]).sum()))
    assert keys.tolist() == everything[:reach].tolist()
    assert scores.tolist() == all_scores[:reach].tolist()
