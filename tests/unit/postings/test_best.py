"""The best of several words: the sums in the order of the words, and nothing that belongs to the best left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.postings import Postings, best, best_of_terms


def postings(holders: dict[int, float]) -> Postings:
    slots = sorted(holders)
    return Postings(np.array(slots, dtype=np.int64), np.array([holders[slot] for slot in slots]))


def naive(terms: list[dict[int, float]], among: set[int]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for term in terms:
        for slot, gain in term.items():
            if slot in among:
                scores[slot] = scores.get(slot, 0.0) + gain
    return scores


SIZE = 40
holders = st.dictionaries(st.integers(0, SIZE - 1), st.floats(0, 5), max_size=SIZE)


@pytest.mark.parametrize("prunes_from", [0, 20_000])
@settings(max_examples=300)
@given(
    terms=st.lists(holders, min_size=1, max_size=5),
    order=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    hidden=st.sets(st.integers(0, SIZE - 1)),
    limit=st.integers(1, 15),
)
def test_the_best_are_those_of_plain_python(
    prunes_from: int, terms: list[dict[int, float]], order: list[int], hidden: set[int], limit: int
) -> None:
    made = [postings(term) for term in terms]
    asked = [at % len(terms) for at in order]
    among = None if not hidden else np.array([slot not in hidden for slot in range(SIZE)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best, "PRUNES_FROM", prunes_from)
        slots, scores = best_of_terms([made[at] for at in asked], SIZE, among, limit)
    found: dict[int, float] = dict(zip(slots.tolist(), scores.tolist(), strict=True))
    expected = naive([terms[at] for at in asked], set(range(SIZE)) - hidden)
    assert len(found) == len(slots)
    assert found.items() <= expected.items()  # the very bits: added up in the order of the query
    last = sorted(expected.values(), reverse=True)[:limit][-1] if expected else 0.0
    assert {slot for slot, score in expected.items() if score >= last} <= found.keys()


def test_records_of_common_words_alone_are_left_out(monkeypatch: Any) -> None:
    monkeypatch.setattr(best, "PRUNES_FROM", 0)
    rare = postings({1: 4.0, 2: 3.0})
    common = postings(dict.fromkeys(range(SIZE), 0.5))
    slots, scores = best_of_terms([common, rare], SIZE, None, 2)
    assert slots.tolist() == [1, 2]
    assert scores.tolist() == [0.5 + 4.0, 0.5 + 3.0]


def test_of_gives_nothing_where_the_word_is_not() -> None:
    term = postings({3: 1.5, 7: 2.5})
    assert term.of(np.array([0, 3, 7, 39])).tolist() == [0.0, 1.5, 2.5, 0.0]
    assert postings({}).of(np.array([1, 2])).tolist() == [0.0, 0.0]
