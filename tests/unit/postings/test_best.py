"""The best of several words: the sums in the order of the words, and nothing that belongs to the best left out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.postings import (
    Among,
    Postings,
    Weighted,
    best,
    best_of_terms,
    contributions,
    holds_any,
    scores_of,
)

SIZE = 20
HALF = SIZE // 2
EVERYBODY = Among(None, SIZE)


def norms(slots: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """That of odd slots is two; gains are made for it."""
    return 1.0 + slots % 2


def gain(times: float, slot: int) -> float:
    return float(contributions(np.array([times]), norms(np.array([slot], dtype=np.uint32)), 1.0)[0])


def stretch(holders: dict[int, float], blur: float = 1.0, *, scored: bool = False) -> Postings:
    """Those who hold a word so often, or gain so much by it; what is known quickly of that is off by ``blur``."""
    slots = np.array(sorted(holders), dtype=np.uint32)
    values = np.array([holders[slot] for slot in slots.tolist()])
    exact = values if scored else contributions(values, norms(slots), 1.0)
    gains = (exact * blur).astype(np.float32)
    return Postings(slots, gains, float(gains.max()), lambda places: values.take(places, mode="clip"))


def weighted(holders: dict[int, float], blur: float = 1.0, *, scored: bool = False, weight: float = 1.0) -> Weighted:
    """A term in up to two stretches."""
    low = {slot: times for slot, times in holders.items() if slot < HALF}
    high = {slot: times for slot, times in holders.items() if slot >= HALF}
    stretches = [stretch(own, by, scored=scored) for own, by in ((low, blur), (high, 1 / blur)) if own]
    return Weighted(stretches, 1.0 if scored else weight, scored)


def naive(terms: list[dict[int, float]], among: set[int]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for term in terms:
        for slot, gain in term.items():
            if slot in among:
                scores[slot] = scores.get(slot, 0.0) + gain
    return scores


def among(hidden: set[int]) -> Among:
    return Among(np.array([slot not in hidden for slot in range(SIZE)]), SIZE - len(hidden)) if hidden else EVERYBODY


# What can gain is not so little that float32 does not know it.
often = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.floats(1e-30, 5))
holders = st.dictionaries(st.integers(0, SIZE - 1), often, max_size=SIZE)


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("look_ups", [1, 8, 1000])
@settings(max_examples=500)
@given(
    terms=st.lists(
        st.tuples(holders, st.booleans(), st.one_of(st.sampled_from([1e-6, 1.0, 2.0, 9.0]), st.floats(1e-6, 14))),
        min_size=1,
        max_size=5,
    ),
    order=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    hidden=st.sets(st.integers(0, SIZE - 1)),
    limit=st.integers(1, 15),
    blur=st.sampled_from([1.0, 1.01, 2.0]),
    also=st.lists(st.integers(0, SIZE - 1), max_size=6),
)
def test_the_best_are_those_of_plain_python(
    look_ups: int,
    few: int,
    terms: list[tuple[dict[int, float], bool, float]],
    order: list[int],
    hidden: set[int],
    limit: int,
    blur: float,
    also: list[int],
) -> None:
    made = [weighted(holders, blur, scored=scored, weight=weight) for holders, scored, weight in terms]
    plain = [
        {slot: times if scored else weight * gain(times, slot) for slot, times in holders.items()}
        for holders, scored, weight in terms
    ]
    asked = [at % len(terms) for at in order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best, "_LOOK_UPS", look_ups)
        patch.setattr(best, "_FEW", few)
        slots, scores, besides = best_of_terms(
            [made[at] for at in asked], norms, SIZE, among(hidden), limit, blur, np.array(also, dtype=np.uint32)
        )
    found: dict[int, float] = dict(zip(slots.tolist(), scores.tolist(), strict=True))
    expected = naive([plain[at] for at in asked], set(range(SIZE)) - hidden)
    assert len(found) == len(slots)
    assert found.items() <= expected.items()  # the very bits: added up in the order of the query
    everybody = naive([plain[at] for at in asked], set(range(SIZE)))
    assert besides.tolist() == [everybody.get(slot, 0.0) for slot in also]
    last = sorted(expected.values(), reverse=True)[:limit][-1] if expected else 0.0
    assert {slot for slot, score in expected.items() if score >= last} <= found.keys()


def test_records_of_common_words_alone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "_FEW", 0)
    rare = weighted({1: 4.0, 2: 3.0}, scored=True)
    common = weighted(dict.fromkeys(range(SIZE), 0.5), scored=True)
    slots, scores, _ = best_of_terms([common, rare], norms, SIZE, EVERYBODY, 2)
    assert slots.tolist() == [1, 2]
    assert scores.tolist() == [0.5 + 4.0, 0.5 + 3.0]


def test_what_float32_cannot_tell_apart_is_told_apart() -> None:
    half = 2.0**-24  # of the last place of 1.0 in float32
    first = weighted({1: 1.5 + 1.2 * half, 2: 1.0 + 0.99 * half}, scored=True)  # rounded up, and down
    second = weighted({2: 0.5 + 0.99 * half / 2}, scored=True)
    slots, scores, _ = best_of_terms([first, second], norms, SIZE, EVERYBODY, 1)
    found = dict(zip(slots.tolist(), scores.tolist(), strict=True))
    assert found[2] == (1.0 + 0.99 * half) + (0.5 + 0.99 * half / 2) > 1.5 + 1.2 * half


def test_of_few_that_may_be_found_each_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "_LOOK_UPS", 1)
    common = weighted({slot: slot / SIZE for slot in range(SIZE) if slot != 7}, scored=True)
    slots, scores, _ = best_of_terms([common], norms, SIZE, among(set(range(SIZE)) - {3, 7, 15}), 1)
    assert slots.tolist() == [3, 15]
    assert scores.tolist() == [3 / SIZE, 15 / SIZE]


def test_who_holds_nothing_scores_nothing() -> None:
    term = weighted({3: 1.5, 7: 2.5, 19: 0.0}, weight=2.0)
    scores = scores_of([term], norms, np.array([0, 3, 7, 19], dtype=np.uint32))
    assert scores.tolist() == [0.0, 2 * gain(1.5, 3), 2 * gain(2.5, 7), 0.0]
    scores = scores_of([weighted({})], norms, np.array([1, 2], dtype=np.uint32))
    assert scores.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("holder", [0, 5_000, 9_999])
def test_whether_anybody_holds_it(holder: int) -> None:
    term = Weighted([stretch({0: 1.0}), stretch(dict.fromkeys(range(10_000), 1.0))], 1.0)
    mask = np.zeros(10_000, dtype=np.bool_)
    assert not holds_any(term, mask)
    assert holds_any(term, None)
    mask[holder] = True
    assert holds_any(term, mask)
    assert not holds_any(Weighted([], 1.0), None)
