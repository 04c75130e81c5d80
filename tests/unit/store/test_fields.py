"""Stores of several fields: each is searched by itself, and a hit says which one it was."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, ConfigurationError, GivenVectors, InvalidVectorError, SearchParams, StoreSettings
from twofold.search import fields as module

FIELDS = ("context", "action", "result")
SETTINGS = StoreSettings(fields=FIELDS)


def angle(degrees):
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def cos(degrees):
    return pytest.approx(math.cos(math.radians(degrees)))


@pytest.fixture
def store():
    """By field, vectors at these angles; a query at 0 degrees has their cosines."""
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), settings=SETTINGS) as store:
        for id_, angles in {
            "peak": {"context": 0, "action": 90, "result": 90},
            "even": {"context": 40, "action": 40, "result": 40},
            "lone": {"action": 45},
        }.items():
            store.add(
                fields={name: f"{id_} {name}" for name in angles},
                id=id_,
                vector={name: angle(degrees) for name, degrees in angles.items()},
            )
        yield store


def asked(store, vector, how="best", **more):
    return store.search("", vector=vector, mode="vector", params=SearchParams(field_aggregation=how), **more)


def scores(result):
    return {hit.id: hit.explanation.legs["vector"].raw for hit in result}


def test_the_best_field_wins_and_is_named(store):
    result = asked(store, angle(0))
    assert scores(result) == {"peak": cos(0), "even": cos(40), "lone": cos(45)}
    assert list(result.ids) == ["peak", "even", "lone"]
    peak, even, lone = (hit.explanation.legs["vector"] for hit in result)
    assert peak.field == "context"
    assert peak.fields == ("context", "action", "result")  # the nearest first, equal ones in the store's order
    assert even.fields == FIELDS
    assert lone.fields == ("action",)
    assert "vector rank 1 (cosine 1, in context)" in result[0].why


def test_the_mean_is_of_the_fields_that_a_record_has(store):
    result = asked(store, angle(0), "mean")
    third = pytest.approx((1 + 2 * math.cos(math.radians(90))) / 3)
    assert scores(result) == {"even": cos(40), "lone": cos(45), "peak": third}
    assert list(result.ids) == ["even", "lone", "peak"]


def test_in_the_sum_a_field_that_is_not_there_counts_nothing(store):
    result = asked(store, angle(0), "sum")
    assert scores(result) == {
        "even": cos(40),
        "peak": pytest.approx(1 / 3),
        "lone": pytest.approx(math.cos(math.radians(45)) / 3),
    }
    assert list(result.ids) == ["even", "peak", "lone"]


def test_each_field_may_be_asked_something_else(store):
    result = asked(store, {"action": angle(45)})
    assert scores(result) == {"lone": cos(0), "even": cos(5), "peak": cos(45)}
    assert [hit.explanation.legs["vector"].fields for hit in result] == [("action",)] * 3
    both = asked(store, {"action": angle(90), "context": angle(0)}, "mean")
    assert scores(both) == {
        "peak": cos(0),
        "even": pytest.approx((cos(50).expected + cos(40).expected) / 2),
        "lone": cos(45),
    }
    assert asked(store, {"result": angle(0)}).ids == ("even", "peak")  # the third has no such field


@pytest.mark.parametrize("vector", [{}, {"weather": [1, 0]}, {"action": [1, 0], "weather": [1, 0]}])
def test_a_field_that_there_is_not_cannot_be_asked(store, vector):
    with pytest.raises(ConfigurationError, match="for some of the fields"):
        asked(store, vector)


def test_a_fields_vector_is_checked(store):
    with pytest.raises(InvalidVectorError, match="'action'"):
        asked(store, {"context": [1, 0], "action": [1, 0, 0]})


def test_an_unknown_aggregation_is_refused():
    with pytest.raises(ConfigurationError, match="field_aggregation is one of best, mean, sum"):
        SearchParams(field_aggregation="max")


def test_in_hybrid_both_legs_say_which_field(store):
    hit = store.search("even action", vector=angle(0))[0]
    assert hit.explanation.legs["keyword"].fields == FIELDS  # "even" stands in each
    (only,) = (hit for hit in store.search("result", vector=angle(0), where={"@id": "peak"}))
    assert only.explanation.legs["keyword"].fields == ("result",)
    assert "in result" in only.why


def test_words_of_the_tags_are_of_no_field():
    with twofold.open(":memory:", settings=SETTINGS) as store:
        store.add(fields={"context": "a kettle"}, tags=("red",))
        assert store.search("red")[0].explanation.legs["keyword"].fields == ()
        assert store.search("kettle " * 3 + " ".join(f"word{n}" for n in range(600)))[0].explanation.legs[
            "keyword"
        ].field == ("context")


def test_a_store_of_one_field_names_none():
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add("kettle", vector=[1, 0])
        legs = store.search("kettle", vector={"text": [1, 0]}).hits[0].explanation.legs
        assert [leg.fields for leg in legs.values()] == [(), ()]
        assert legs["vector"].field is None
        assert asked(store, [1, 0], "mean")[0].score == 1


@pytest.mark.parametrize("how", ["best", "mean", "sum"])
def test_rescored_candidates_are_scored_alike(store, how):
    params = SearchParams(fusion="calibrated", rescore=True, vector_pool=1, field_aggregation=how)
    rescored = store.search("context action", vector=angle(0), params=params)
    whole = {hit.id: hit.explanation.legs["vector"].raw for hit in asked(store, angle(0), how)}
    assert {hit.id: hit.explanation.legs["vector"].raw for hit in rescored} == whole


def test_nobody_is_told_of_what_is_not_theirs(store):
    store.add(fields={"context": "x"}, id="secret", vector={"context": angle(0)}, access=Access(user="ann"))
    for vector in (angle(0), {"context": angle(0)}):
        for how in ("best", "mean", "sum"):
            assert "secret" not in asked(store, vector, how, access=Access(user="ben")).ids
            assert "secret" in asked(store, vector, how, access=Access(user="ann")).ids


ANGLES = st.dictionaries(st.sampled_from(FIELDS), st.integers(0, 359), min_size=1)


@pytest.mark.parametrize("index", ["exact", "faiss-flat"])
@settings(max_examples=25, deadline=None)
@given(
    records=st.lists(ANGLES, min_size=1, max_size=40),
    queries=ANGLES,
    how=st.sampled_from(["best", "mean", "sum"]),
    k=st.integers(1, 5),
)
def test_the_nearest_are_those_of_the_plain_formula(index, records, queries, how, k):
    if index == "faiss-flat":
        pytest.importorskip("faiss")
    with twofold.open(
        ":memory:",
        embedder=GivenVectors("v", 2),
        settings=StoreSettings(fields=FIELDS, index=index, search=SearchParams(field_aggregation=how, pool=k)),
    ) as store:
        for place, angles in enumerate(records):
            vector = {name: angle(degrees) for name, degrees in angles.items()}
            store.add(fields={}, id=f"{place:02}", vector=vector)
        result = store.search(
            "", vector={name: angle(degrees) for name, degrees in queries.items()}, mode="vector", k=k
        )
        expected = []
        for angles in records:
            cosines = [
                float(np.dot(np.float32(angle(angles[name])), np.float32(angle(queries[name]))))
                for name in queries
                if name in angles
            ]
            if cosines:
                total = {"best": max(cosines), "mean": sum(cosines) / len(cosines), "sum": sum(cosines) / len(queries)}
                expected.append(total[how])
        found = [hit.explanation.legs["vector"].raw for hit in result]
        assert found == pytest.approx(sorted(expected, reverse=True)[:k], abs=1e-6)


def test_the_search_widens_no_further_than_it_may(monkeypatch, store):
    monkeypatch.setattr(module, "MOST_LOOKED_AT", 2)
    narrow = store.search(
        "", vector=angle(0), mode="vector", k=1, params=SearchParams(pool=1, field_aggregation="mean")
    )
    assert narrow.ids == ("even",)  # peak and even were looked at
