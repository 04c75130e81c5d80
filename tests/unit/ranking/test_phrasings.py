"""Several phrasings: the mean of what each scores alone."""

from __future__ import annotations

import pytest

from twofold.ranking import (
    AdditiveBonus,
    MeanOfPhrasings,
    OneLeg,
    OwnFusion,
    Phrasing,
    ReciprocalRank,
    leg_name,
    plain_leg,
)

RRF = ReciprocalRank({"keyword": 1.0, "vector": 1.0}, 60)
FIRST = {"keyword": [(1, 5.0), (2, 3.0)], "vector": [(2, 0.9)]}
SECOND = {"keyword[2]": [(3, 1.0), (2, 0.5)]}


def test_legs_of_further_phrasings_are_numbered() -> None:
    assert [leg_name("keyword", number) for number in (1, 2, 11)] == ["keyword", "keyword[2]", "keyword[11]"]
    assert [plain_leg(name) for name in ("keyword", "vector[2]")] == ["keyword", "vector"]


def test_it_is_the_mean_of_what_each_gives_over_its_ceiling() -> None:
    both, keyword = 1 / 61 + 1 / 61, 1 / 61
    fusion = MeanOfPhrasings([Phrasing(RRF, both), Phrasing(RRF, keyword)])
    assert fusion.fuse({**FIRST, **SECOND}) == pytest.approx(
        {
            1: (1 / 61) / both / 2,
            2: ((1 / 62 + 1 / 61) / both + (1 / 62) / keyword) / 2,
            3: (1 / 61) / keyword / 2,
        }
    )
    assert fusion.ceiling(["keyword", "vector", "keyword[2]"]) == 1.0
    assert fusion.formula == "mean of 2 phrasings by rrf(k=60)"


def test_what_the_legs_add_is_the_score() -> None:
    legs = {**FIRST, **SECOND}
    for one in (RRF, AdditiveBonus({"keyword": 0.25, "vector": 1.0})):
        fusion = MeanOfPhrasings([Phrasing(one, 2.0), Phrasing(one, 0.5)])
        added = dict.fromkeys((1, 2, 3), 0.0)
        for name, found in legs.items():
            adder = fusion.adder(name, found)
            assert adder is not None
            for rank, (key, score) in enumerate(found, start=1):
                added[key] += adder(rank, score)
        assert fusion.fuse(legs) == pytest.approx(added)


def test_one_that_found_nothing_counts_as_nothing() -> None:
    alone = MeanOfPhrasings([Phrasing(RRF, 1 / 61)]).fuse({"keyword": [(1, 2.0)]})
    with_other = MeanOfPhrasings([Phrasing(RRF, 1 / 61), Phrasing(RRF, 1 / 61)]).fuse({"keyword": [(1, 2.0)]})
    assert alone == {1: pytest.approx(1.0)}
    assert with_other == {1: pytest.approx(0.5)}


def test_a_ceiling_of_nothing_adds_nothing() -> None:
    fusion = MeanOfPhrasings([Phrasing(OneLeg("bm25 / best", 4.0), 4.0), Phrasing(OneLeg("bm25 / best", 0.0), 0.0)])
    assert fusion.fuse({"keyword": [(1, 2.0)], "keyword[2]": [(2, 0.0)]}) == {1: 2.0 / 4.0 / 2, 2: 0.0}


def test_a_fusion_of_the_users_own_is_given_one_phrasing_at_a_time() -> None:
    asked: list[dict[str, object]] = []

    def own(legs):
        asked.append(dict(legs))
        return {key: 1.0 for found in legs.values() for key, _ in found}

    fusion = MeanOfPhrasings([Phrasing(OwnFusion(own), 1.0), Phrasing(OwnFusion(own), 1.0)])
    assert fusion.fuse({**FIRST, **SECOND}) == {1: 0.5, 2: 1.0, 3: 0.5}
    assert asked == [
        {"keyword": ((1, 5.0), (2, 3.0)), "vector": ((2, 0.9),)},
        {"keyword": ((3, 1.0), (2, 0.5))},
    ]
    assert fusion.adder("keyword[2]", SECOND["keyword[2]"]) is None
