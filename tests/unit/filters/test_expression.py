"""Building filters: what is made, what is refused, and what counts as the same."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from twofold import filters
from twofold.errors import InvalidFilterError
from twofold.filters import (
    A,
    All,
    And,
    Any,
    Between,
    Contains,
    Eq,
    Exists,
    F,
    Filter,
    Ge,
    Gt,
    In,
    IsEmpty,
    Le,
    Like,
    Lt,
    Ne,
    Not,
    NotIn,
    Or,
    Prefix,
    TextMatch,
    TextMatchInsensitive,
)
from twofold.filters.nodes import MAX_DEPTH, MAX_NODES
from twofold.types import Scope

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_every_operator_makes_its_node():
    x = F("x")
    assert [
        x == 1, x != 1, x < 1, x <= 1, x > 1, x >= 1, x.in_([1]), x.not_in([1]), x.between(1, 2), x.exists(),
        x.exists(False), x.is_empty(), x.contains(1), x.any([1]), x.all([1]), x.prefix("a"), x.like("a%"),
        x.text_match("a"), x.text_match_insensitive("a"),
    ] == [
        Eq(x, 1), Ne(x, 1), Lt(x, 1), Le(x, 1), Gt(x, 1), Ge(x, 1), In(x, (1,)), NotIn(x, (1,)), Between(x, 1, 2),
        Exists(x), Exists(x, False), IsEmpty(x), Contains(x, 1), Any(x, (1,)), All(x, (1,)), Prefix(x, "a"),
        Like(x, "a%"), TextMatch(x, "a"), TextMatchInsensitive(x, "a"),
    ]  # fmt: skip


def test_a_value_on_the_left_turns_the_comparison_round():
    assert (F("year") >= 2020) == Ge(F("year"), 2020)
    assert (7 > F("year")) == Lt(F("year"), 7)  # noqa: SIM300 - this is what is tested


def test_chains_of_one_operator_are_flat_and_mixed_ones_nest():
    a, b, c = F("a") == 1, F("b") == 2, F("c") == 3
    assert (a & b & c) == And(a, b, c)
    assert (a | b | c) == Or(a, b, c)
    assert ((a | b) & ~c) == And(Or(a, b), Not(c))


def test_a_dotted_key_is_a_path_and_a_tuple_is_taken_as_it_is():
    assert F("a.b.c").path == ("a", "b", "c")
    assert F(("a.b", "c")).path == ("a.b", "c")
    assert F("").path == ("",)
    assert repr(F(("a.b",))) == "F(('a.b',))"
    assert repr(F("a.b")) == "F('a.b')"


@pytest.mark.parametrize(("one", "other"), [
    (True, 1), (False, 0), ("1", 1), (None, "null"), (None, False), ([1], [True]), ({"a": 1}, {"a": True}), ([], {}),
    ("a", ["a"]), ((1, 2), (2, 1)),
])  # fmt: skip
def test_filters_of_strictly_different_values_are_different_keys(one, other):
    make = (lambda value: In(F("x"), value)) if isinstance(one, tuple) else (lambda value: Eq(F("x"), value))
    assert make(one) != make(other)
    assert len({make(one): 1, make(other): 2}) == 2


def test_filters_of_equal_values_are_one_key():
    assert len({F("x") == 1, F("x") == 1.0, Eq(F(("x",)), 1)}) == 1
    assert len({F("x") == {"a": 1, "b": [2]}, F("x") == {"b": [2.0], "a": 1}}) == 1
    in_tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    assert len({A.created_at > NOON, A.created_at > in_tokyo}) == 1


def test_an_attribute_is_not_the_metadata_of_its_name():
    assert (A.kind == "x") != (F("kind") == "x")


def test_a_filter_can_be_copied_and_pickled():
    where = (F("a.b") == {"x": [1]}) & A.tags.any(["t"]) | ~(A.event_at < NOON)
    assert copy.deepcopy(where) == where
    assert pickle.loads(pickle.dumps(where)) == where


def test_a_later_change_of_the_operand_does_not_reach_the_filter():
    value = {"a": [1]}
    where = F("x") == value
    value["a"].append(2)
    where.to_dict()["x"]["$eq"]["a"].append(3)
    assert where == Eq(F("x"), {"a": [1]})


@pytest.mark.parametrize("misuse", [
    lambda: F("a") == 1 and F("b") == 2,
    lambda: F("a") == 1 or F("b") == 2,
    lambda: not F("a").exists(),
    lambda: 1 < F("a") < 3,
    lambda: bool(F("a")),
    lambda: "x" in F("a"),
    lambda: F("a") == F("b"),
    lambda: F("a").in_("abc"),
    lambda: F("a").in_(3),
    lambda: (F("a") == 1) & {"b": 2},
    lambda: And({"a": 1}),
    lambda: Eq("a", 1),
    lambda: F(()),
    lambda: F(3),
    lambda: F(("a", 3)),
    lambda: F("a\0"),
    lambda: F("\ud800"),
    lambda: F(["a"] * 101),
    lambda: F("a").exists("yes"),
    lambda: F("a").prefix(3),
    lambda: F("a").text_match(None),
    lambda: F("a").like("50\\"),
])  # fmt: skip
def test_misuse_is_refused_at_once(misuse):
    with pytest.raises(InvalidFilterError):
        misuse()


@pytest.mark.parametrize("value", [
    "a\0b", "\ud800", float("nan"), float("inf"), 2**63, -(2**63) - 1, (1, 2), {1}, NOON, NOON.date(), b"a", object(),
    {"a": "\0"}, {"\0": 1}, {1: 2}, [float("-inf")],
])  # fmt: skip
@pytest.mark.parametrize("make", [
    lambda value: F("x") == value, lambda value: F("x") < value, lambda value: F("x").in_([1, value]),
    lambda value: F("x").between(0, value), lambda value: F("x").contains(value), lambda value: F("x").all([value]),
])  # fmt: skip
def test_what_metadata_cannot_hold_is_refused(make, value):
    with pytest.raises(InvalidFilterError):
        make(value)


def test_an_unknown_attribute_names_the_known_ones():
    with pytest.raises(InvalidFilterError, match=r"no attribute 'nonsense'.*kind.*revision"):
        A.nonsense  # noqa: B018 - looking it up is what fails


def test_attributes_are_those_mentioned_anywhere():
    where = (A.kind == "x") & ~((F("project") == 1) | A.archived_at.exists()) & And()
    assert where.attributes == {"kind", "archived_at"}
    assert (F("kind") == 1).attributes == frozenset()


@pytest.mark.parametrize("build", [
    lambda: A.kind == 3,
    lambda: A.kind == None,  # noqa: E711
    lambda: A.id.in_(["a", None]),
    lambda: A.project < None,
    lambda: A.scope == "everyone",
    lambda: A.scope < "room",
    lambda: A.scope.like("r%"),
    lambda: A.namespace == "users",
    lambda: A.namespace == ("users", ""),
    lambda: A.namespace.prefix("users"),
    lambda: A.namespace < ("a",),
    lambda: A.namespace.contains("a\x1f"),
    lambda: A.tags == "one",
    lambda: A.tags.in_(["one", "two"]),
    lambda: A.tags.contains(1),
    lambda: A.tags.prefix("o"),
    lambda: A.importance == True,  # noqa: E712
    lambda: A.importance > "0.5",
    lambda: A.strength.between(0, float("inf")),
    lambda: A.access_count == 2**63,
    lambda: A.revision.contains(1),
    lambda: A.created_at > "2024-05-01T12:00:00Z",
    lambda: A.created_at > NOON.replace(tzinfo=None),
    lambda: A.created_at > NOON.timestamp(),
    lambda: A.created_at == None,  # noqa: E711
    lambda: A.event_at.text_match("2024"),
])  # fmt: skip
def test_an_attribute_takes_only_operators_and_values_of_its_type(build):
    with pytest.raises(InvalidFilterError):
        build()


LATER = NOON + timedelta(days=1)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (lambda: A(kind="insight"), lambda: A.kind == "insight"),
        (lambda: A(kind=["insight", "episodic"]), lambda: A.kind.in_(["insight", "episodic"])),
        (lambda: A(project="p"), lambda: A.project == "p"),
        (lambda: A(source=("a", "b")), lambda: A.source.in_(["a", "b"])),
        (lambda: A(tags_any=["x", "y"]), lambda: A.tags.any(["x", "y"])),
        (lambda: A(tags_all=["x", "y"]), lambda: A.tags.all(["x", "y"])),
        (lambda: A(importance=(0.5, None)), lambda: A.importance >= 0.5),
        (lambda: A(importance=(None, 0.5)), lambda: A.importance <= 0.5),
        (lambda: A(importance=(0.2, 0.5)), lambda: A.importance.between(0.2, 0.5)),
        (lambda: A(created_at=(NOON, LATER)), lambda: A.created_at.between(NOON, LATER)),
        (lambda: A(event_at=(NOON, None)), lambda: A.event_at >= NOON),
        (
            lambda: A(kind="insight", tags_any=["x"], importance=(0.5, None)) & (F("lang") == "en"),
            lambda: And(A.kind == "insight", A.tags.any(["x"]), A.importance >= 0.5) & (F("lang") == "en"),
        ),
    ],
)
def test_the_usual_conditions_at_once(short, long):
    assert short() == long()
    assert Filter.from_dict(short().to_dict()) == long()


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (A, "names at least one condition"),
        (lambda: A(importance=0.5), r"importance=\(low, None\)"),
        (lambda: A(importance=(None, None)), r"importance=\(low, None\)"),
        (lambda: A(created_at=(NOON.replace(tzinfo=None), None)), "time zone"),
        (lambda: A(tags_any="ops"), "tags|list|values"),
        (lambda: A(kind=5), "kind|list|values"),
    ],
)
def test_what_is_no_such_condition_is_an_error(build, said):
    with pytest.raises(InvalidFilterError, match=said):
        build()
    with pytest.raises(TypeError, match="kinds"):
        A(kinds="insight")


def test_attributes_values_are_kept_in_one_form():
    assert (A.scope == "room").value is Scope.ROOM
    assert (A.namespace == ["a", "b"]).value == ("a", "b")
    assert (A.project == None).value is None  # noqa: E711
    assert (A.created_at == NOON.astimezone(timezone(timedelta(hours=-4)))).value.tzinfo is UTC


def test_nesting_and_size_are_bounded_with_a_hint():
    where: Filter = F("a") == 1
    for _ in range(MAX_DEPTH - 1):
        where = ~where
    with pytest.raises(InvalidFilterError, match=f"at most {MAX_DEPTH} deep"):
        Not(where)
    Or(*[F("a") == n for n in range(MAX_NODES - 1)])
    with pytest.raises(InvalidFilterError, match=r"\.in_\("):
        Or(*[F("a") == n for n in range(MAX_NODES)])


def test_the_public_names():
    assert sorted(filters.__all__) == sorted([
        "A", "F", "Filter", "And", "Or", "Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "In", "NotIn", "Between", "Exists",
        "IsEmpty", "Contains", "Any", "All", "Prefix", "Like", "TextMatch", "TextMatchInsensitive", "as_filter",
        "matches",
    ])  # fmt: skip
