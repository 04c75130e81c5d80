"""Filters as dicts, there and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from twofold.errors import InvalidFilterError, UnsupportedFilterError
from twofold.filters import A, And, Eq, Exists, F, Filter, IsEmpty, Not, Or, as_filter
from twofold.filters.nodes import MAX_DEPTH

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("spelled", "meant"), [
    ({}, And()),
    ({"lang": "en"}, F("lang") == "en"),
    ({"a.b": None}, F(("a", "b")) == None),  # noqa: E711
    ({"lang": "en", "year": {"$gte": 2020, "$lt": 2024}}, And(F("lang") == "en", F("year") >= 2020, F("year") < 2024)),
    ({"x": ["a"]}, F("x") == ["a"]),
    ({"x": {"p": 1}}, F("x") == {"p": 1}),
    ({"x": {}}, F("x") == {}),
    ({"x": {"$eq": {"$p": 1}}}, F("x") == {"$p": 1}),
    ({"x": {"$ne": 1}}, F("x") != 1),
    ({"x": {"$lte": 1}}, F("x") <= 1),
    ({"x": {"$gt": 1}}, F("x") > 1),
    ({"x": {"$in": [1, "a"]}}, F("x").in_([1, "a"])),
    ({"x": {"$nin": ()}}, F("x").not_in([])),
    ({"x": {"$between": [1, 2]}}, F("x").between(1, 2)),
    ({"x": {"$exists": False}}, Exists(F("x"), False)),
    ({"x": {"$empty": True}}, IsEmpty(F("x"))),
    ({"x": {"$empty": False}}, Not(IsEmpty(F("x")))),
    ({"x": {"$contains": "a"}}, F("x").contains("a")),
    ({"x": {"$any": ["a"]}}, F("x").any(["a"])),
    ({"x": {"$all": ["a"]}}, F("x").all(["a"])),
    ({"x": {"$prefix": "a"}}, F("x").prefix("a")),
    ({"x": {"$like": "a%"}}, F("x").like("a%")),
    ({"x": {"$text_match": "a"}}, F("x").text_match("a")),
    ({"x": {"$text_match_insensitive": "a"}}, F("x").text_match_insensitive("a")),
    ({"x": {"$not": {"$gt": 1}}}, Not(F("x") > 1)),
    ({"x": {"$not": {"$gt": 1, "$lt": 5}}}, Not(And(F("x") > 1, F("x") < 5))),
    ({"$and": [{"a": 1}, {"b": 2}]}, And(F("a") == 1, F("b") == 2)),
    ({"$and": []}, And()),
    ({"$or": [{"a": 1, "b": 2}, {"c": 3}]}, Or(And(F("a") == 1, F("b") == 2), F("c") == 3)),
    ({"$or": []}, Or()),
    ({"$nor": [{"a": 1}]}, Not(Or(F("a") == 1))),
    ({"$not": {"a": 1}, "b": 2}, And(Not(F("a") == 1), F("b") == 2)),
    ({"@kind": "insight"}, A.kind == "insight"),
    ({"@scope": {"$in": ["room", "global"]}}, A.scope.in_(["room", "global"])),
    ({"@namespace": {"$prefix": ["users", "u1"]}}, A.namespace.prefix(("users", "u1"))),
    ({"@created_at": {"$gte": "2024-05-01T12:00:00Z"}}, A.created_at >= NOON),
    ({"@event_at": {"$between": ["2024-05-01T21:00:00+09:00", NOON]}}, A.event_at.between(NOON, NOON)),
    ({"created_at": "2024-05-01T12:00:00Z"}, F("created_at") == "2024-05-01T12:00:00Z"),
    ({"$path": ["a.b", "$c"], "$gt": 1}, F(("a.b", "$c")) > 1),
    ({"$path": ["@kind"], "$gt": 1, "$lt": 3}, And(F("@kind") > 1, F("@kind") < 3)),
])  # fmt: skip
def test_what_a_dict_means(spelled, meant):
    assert Filter.from_dict(spelled) == meant
    assert Filter.from_dict(meant.to_dict()) == meant


@pytest.mark.parametrize("spelled", [
    {"n": {"$foo": 1}}, {"n": {"$gt": 1, "$foo": 1}}, {"$foo": []}, {"$eq": 1}, {"$where": "1"}, {"n": {"$and": []}},
    {"n": {"$": 1}}, {"$path": ["n"], "$foo": 1}, {"$path": ["n"], "x": 1}, {"n": {"$not": {"$foo": 1}}},
])  # fmt: skip
def test_an_unknown_operator_is_never_ignored(spelled):
    with pytest.raises(UnsupportedFilterError):
        Filter.from_dict(spelled)


@pytest.mark.parametrize("spelled", [
    [], "lang", {1: 2}, {"n": {"$gt": 1, "p": 2}}, {"$and": {"a": 1}}, {"$or": [1]}, {"$not": [{"a": 1}]},
    {"n": {"$in": "abc"}}, {"n": {"$between": [1]}}, {"n": {"$between": 1}}, {"n": {"$exists": 1}},
    {"n": {"$empty": "no"}}, {"n": {"$not": 3}}, {"n": {"$not": {}}}, {"$path": "n", "$eq": 1}, {"$path": ["n"]},
    {"$path": [], "$eq": 1}, {"@nonsense": 1}, {"@": 1}, {"@created_at": {"$gt": "yesterday"}},
    {"@created_at": {"$gt": "2024-05-01T12:00:00"}}, {"n": {1, 2}}, {"n": float("nan")}, {"n\0": 1},
])  # fmt: skip
def test_a_malformed_dict_is_refused(spelled):
    with pytest.raises(InvalidFilterError):
        Filter.from_dict(spelled)


@pytest.mark.parametrize("step", [lambda inner: {"$not": inner}, lambda inner: {"$or": [inner]},
                                  lambda inner: {"x": {"$not": inner["x"]}}])  # fmt: skip
def test_a_dict_nested_too_deep_is_refused_without_overflow(step):
    spelled: dict = {"x": {"$gt": 1}}
    for _ in range(MAX_DEPTH - 1):
        spelled = step(spelled)
    Filter.from_dict(spelled)
    for _ in range(5000):
        spelled = step(spelled)
    with pytest.raises(InvalidFilterError, match="deep"):
        Filter.from_dict(spelled)


@pytest.mark.parametrize(("where", "spelled"), [
    (F("lang") == "en", {"lang": "en"}),
    (F("a.b") > 1, {"a.b": {"$gt": 1}}),
    (F(("a.b",)) > 1, {"$path": ["a.b"], "$gt": 1}),
    (F("$x") == 1, {"$path": ["$x"], "$eq": 1}),
    (F("@x") == {"p": 1}, {"$path": ["@x"], "$eq": {"p": 1}}),
    (F("x") == {"p": 1}, {"x": {"$eq": {"p": 1}}}),
    (A.created_at == NOON, {"@created_at": "2024-05-01T12:00:00+00:00"}),
    (A.namespace == ("a", "b"), {"@namespace": ["a", "b"]}),
    (A.scope != "room", {"@scope": {"$ne": "room"}}),
    (~(F("a") == 1) & Or(), {"$and": [{"$not": {"a": 1}}, {"$or": []}]}),
])  # fmt: skip
def test_how_a_filter_is_spelled(where, spelled):
    assert where.to_dict() == spelled
    assert Filter.from_dict(spelled) == where


def test_as_filter_takes_what_a_caller_may_give():
    where = F("a") == 1
    assert as_filter(None) is None
    assert as_filter(where) is where
    assert as_filter({"a": 1}) == Eq(F("a"), 1)
    for other in ("a", 1, [where], F("a")):
        with pytest.raises(InvalidFilterError):
            as_filter(other)
