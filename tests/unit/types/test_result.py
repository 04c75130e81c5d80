"""A hit explains itself when it is asked, and is in all else like one that was explained from the first."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import pytest

from twofold import Explanation, Hit, LegScore
from twofold.testing.records import make_record
from twofold.types.result import unexplained_hit

RECORD = make_record("r", "kettle")
WHY = Explanation(
    legs={"keyword": LegScore(rank=1, raw=2.0, adjacency=1.0, prior=1.0, contribution=0.4)},
    answered=("keyword", "vector"),
    fused=0.4,
    factors={},
    best_possible=1.0,
    formula="0.6 · cosine + 0.4 · bm25 / best",
)


@pytest.fixture
def asked() -> list[str]:
    """How often an explanation was asked for."""
    return []


@pytest.fixture
def later(asked: list[str]) -> Hit:
    def explain() -> Explanation:
        asked.append("why")
        return replace(WHY)

    return unexplained_hit(RECORD, 0.4, explain)


def test_nothing_is_explained_before_somebody_asks_and_then_once(later: Hit, asked: list[str]) -> None:
    assert (later.record, later.score, later.id, later.text) == (RECORD, 0.4, "r", "kettle")
    assert asked == []
    assert later.explanation is later.explanation
    assert later.why == str(WHY)
    assert asked == ["why"]


@pytest.mark.parametrize(
    "look",
    [repr, asdict, copy.copy, copy.deepcopy, lambda hit: pickle.loads(pickle.dumps(hit)), partial(replace, score=1.0)],
    ids=["repr", "asdict", "copy", "deepcopy", "pickle", "replace"],
)
def test_it_is_like_one_that_was_explained_from_the_first(later: Hit, look: Callable[[Hit], Any]) -> None:
    assert look(later) == look(Hit(RECORD, 0.4, WHY))


def test_two_are_equal_if_their_explanations_are(later: Hit) -> None:
    assert later == Hit(RECORD, 0.4, WHY)
    assert later != Hit(RECORD, 0.4, replace(WHY, fused=0.3))


def test_it_has_the_attributes_of_a_hit_and_no_others(later: Hit) -> None:
    assert [each.name for each in fields(Hit)] == ["record", "score", "explanation"]
    with pytest.raises(AttributeError, match="'Hit' object has no attribute 'reason'"):
        _ = later.reason  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        later.score = 1.0  # type: ignore[misc]
    assert not hasattr(later, "__dict__")
