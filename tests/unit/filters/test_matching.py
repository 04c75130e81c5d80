"""What filters mean, case by case, for the oracle and for SQL on both drivers alike."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from twofold.backends.sqlite.filter_sql import FUNCTIONS, compile_filter
from twofold.backends.sqlite.schema import SCOPE_CODES
from twofold.errors import InvalidFilterError, UnsupportedFilterError
from twofold.filters import A, And, F, Filter, Not, Or, matches
from twofold.filters.nodes import MAX_DEPTH, MAX_NODES
from twofold.types import Record, Scope
from twofold.types.json import dump_json

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def record(metadata: dict | None = None, **attributes) -> Record:
    defaults = {
        "id": "id-1", "fields": {}, "kind": "semantic", "scope": Scope.GLOBAL, "owner": None, "namespace": (),
        "project": None, "source": None, "tags": (), "metadata": metadata or {}, "payload": None, "importance": 0.5,
        "strength": 1.0, "access_count": 0, "created_at": NOON, "updated_at": NOON, "last_accessed": NOON,
        "event_at": None, "valid_from": None, "valid_to": None, "expires_at": None, "archived_at": None,
        "superseded_by": None, "content_hash": "", "revision": 1,
    }  # fmt: skip
    return Record(**(defaults | attributes))


@pytest.fixture(params=["sqlite3", "pysqlite3"])
def connection(request):
    driver = pytest.importorskip(request.param, reason="the optional second SQLite is not installed")
    connection = driver.connect(":memory:")
    for name, nargs, function in FUNCTIONS:
        connection.create_function(name, nargs, function, deterministic=True)
    yield connection
    connection.close()


@pytest.fixture
def holds(connection):
    """Whether a filter holds of a record: by the oracle and by SQL, which must say the same."""

    def verdict(filter: Filter, row: Record) -> bool:
        columns = {
            "metadata": dump_json(row.metadata), "tags": dump_json(list(row.tags)), "scope": SCOPE_CODES[row.scope],
            "owner": row.owner or "", "namespace": "".join(f"{word}\x1f" for word in row.namespace),
            **{name: getattr(row, name) for name in ("id", "kind", "project", "source", "importance", "strength",
                                                     "access_count", "superseded_by", "revision")},
        }  # fmt: skip
        for name in ("created_at", "updated_at", "last_accessed", "event_at", "valid_from", "valid_to", "expires_at",
                     "archived_at"):  # fmt: skip
            at = getattr(row, name)
            columns[name] = None if at is None else (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        table = ", ".join(f"? AS {name}" for name in columns)
        sql, values = compile_filter(filter)
        (answer,) = connection.execute(
            f"SELECT {sql} FROM (SELECT {table}) AS r", [*values, *columns.values()]
        ).fetchone()
        assert answer == int(matches(filter, row))
        return bool(answer)

    return verdict


def test_langgraph_8786_nested_values_lists_and_missing_keys(holds):
    """langchain-ai/langgraph#8786: one answer for every store."""
    rows = {"a": record({"tags": ["x"], "meta": {"p": 1}}), "b": record({"n": 2})}
    for spelled, right in [
        ({"tags": {"$eq": ["x"]}}, {"a"}),
        ({"tags": ["x"]}, {"a"}),
        ({"meta": {"p": 1}}, {"a"}),
        ({"missing": {"$ne": 1}}, {"a", "b"}),
        ({"n": {"$gt": 1}}, {"b"}),
        ({"n": {"$gt": "1"}}, set()),
        ({"$and": [{"n": 2}, {"n": {"$lt": 3}}]}, {"b"}),
    ]:
        where = Filter.from_dict(spelled)
        assert {name for name, row in rows.items() if holds(where, row)} == right, spelled


@pytest.mark.parametrize(("where", "value", "right"), [
    (F("x") == True, 1, False), (F("x") == 1, True, False), (F("x") == True, True, True),  # noqa: E712
    (F("x") == 1, "1", False), (F("x") == "1", 1, False), (F("x") == 1, 1.0, True), (F("x") == 1.0, 1, True),
    (F("x") == 0, False, False), (F("x") == 0.0, -0.0, True), (F("x") == "null", None, False),
    (F("x") == None, None, True), (F("x") != None, None, False),  # noqa: E711
    (F("x") == 2**53, 2**53 + 1, False), (F("x") == 2.0**53, 2**53 + 1, False), (F("x") < 2**53 + 1, 2.0**53, True),
    (F("x") < 2.0**63, 2**63 - 1, True), (F("x") == -(2.0**63), -(2**63), True),
    (F("x").in_([2.0**53]), 2**53 + 1, False), (F("x").in_([2**53 + 1, "a"]), 2**53 + 1, True),
    (F("x") == -2.3259961333148373e-188, -2.325996133314837e-188, False),
    (F("x") == -2.325996133314837e-188, -2.325996133314837e-188, True),
    (F("x") < -2.325996133314837e-188, -2.325996133314837e-188, False),
    (F("x").in_([-2.325996133314837e-188, 1.5]), -2.325996133314837e-188, True),
    (F("x").contains(-2.325996133314837e-188), [-2.325996133314837e-188], True),
    (F("x") == ["a"], '["a"]', False), (F("x") == '["a"]', ["a"], False), (F("x") == [1, 2], [2, 1], False),
    (F("x") == [1.0, {"b": 1, "a": 2}], [1, {"a": 2, "b": 1.0}], True), (F("x") == [True], [1], False),
    (F("x") == {}, {}, True), (F("x") == {}, [], False), (F("x") == {"a": 1}, {"a": 1, "b": 2}, False),
    (F("x") < 1, True, False), (F("x") < True, 0, False), (F("x") < None, 0, False), (F("x") < [2], [1], False),
    (F("x") > "B", "a", True), (F("x") > "a", "B", False), (F("x") > "\uffff", "😀", True), (F("x") > "1", 2, False),
    (F("x").between(1, 2), 1, True), (F("x").between(1, 2), 2.0, True), (F("x").between(1, 2), 2.5, False),
    (F("x").between("a", 2), "a", False), (F("x").between(2, 1), 1.5, False),
    (F("x").in_([]), 1, False), (F("x").not_in([]), 1, True), (F("x").in_([True, "a", None]), None, True),
    (F("x").in_([True]), 1, False), (F("x").in_([[1], {"a": 1}]), {"a": 1.0}, True),
    (F("x").contains("b"), "abc", True), (F("x").contains("b"), ["abc"], False), (F("x").contains("b"), ["b"], True),
    (F("x").contains(1), [True], False), (F("x").contains(1), [1.0], True), (F("x").contains(1), "1", False),
    (F("x").contains([1]), [[1]], True), (F("x").contains("a"), {"a": 1}, False), (F("x").contains(1), 1, False),
    (F("x").any(["z", "b"]), "abc", True), (F("x").any([1, 2]), [2], True), (F("x").any([]), ["a"], False),
    (F("x").all(["a", "b"]), "abc", True), (F("x").all(["a", 1]), "a1", False), (F("x").all(["a", 1]), [1, "a"], True),
    (F("x").all([]), [], True), (F("x").all([]), "", True), (F("x").all([]), 5, False),
    (F("x").is_empty(), None, True), (F("x").is_empty(), "", True), (F("x").is_empty(), [], True),
    (F("x").is_empty(), {}, True), (F("x").is_empty(), 0, False), (F("x").is_empty(), False, False),
    (F("x").is_empty(), [None], False),
    (F("x").prefix("ab"), "abc", True), (F("x").prefix("AB"), "abc", False), (F("x").prefix(""), "", True),
    (F("x").prefix("a"), ["a"], False), (F("x").prefix("😀"), "😀a", True),
    (F("x").like("a%c"), "abbc", True), (F("x").like("a_c"), "a😀c", True), (F("x").like("a_c"), "ac", False),
    (F("x").like("A%"), "abc", False), (F("x").like("b"), "abc", False), (F("x").like(r"50\%"), "50%", True),
    (F("x").like(r"50\%"), "500", False), (F("x").like("a%c"), "a\nc", True), (F("x").like("[a]*?"), "[a]*?", True),
    (F("x").like("%"), "", True), (F("x").like(""), "", True), (F("x").like("%1%"), 1, False),
    (F("x").text_match("Bc"), "aBcd", True), (F("x").text_match("bc"), "aBcd", False),
    (F("x").text_match("1"), 1, False),
    (F("x").text_match_insensitive("STRASSE"), "die Straße", True), (F("x").text_match_insensitive("É"), "été", True),
    (F("x").text_match_insensitive("é"), "ete", False),
])  # fmt: skip
def test_one_value(holds, where, value, right):
    assert holds(where, record({"x": value})) is right
    assert holds(~where, record({"x": value})) is not right


@pytest.mark.parametrize("where", [
    F("x") == None, F("x") == 1, F("x") < 1, F("x").in_([None, 1]), F("x").between(0, 1), F("x").exists(),  # noqa: E711
    F("x").contains(1), F("x").any([1]), F("x").all([]), F("x").prefix(""), F("x").like("%"), F("x").text_match(""),
    F("x").text_match_insensitive(""),
])  # fmt: skip
@pytest.mark.parametrize("metadata", [{}, {"y": {"x": 1}}])
def test_a_missing_key_compares_false_and_its_contrary_true(holds, where, metadata):
    assert not holds(where, record(metadata))
    assert holds(~where, record(metadata))


def test_of_a_missing_key_ne_not_in_and_is_empty_are_true(holds):
    for where in (F("x") != 1, F("x") != None, F("x").not_in([1, None]), F("x").is_empty(), F("x").exists(False)):  # noqa: E711
        assert holds(where, record())


def test_null_exists(holds):
    assert holds(F("x").exists(), record({"x": None}))


@pytest.mark.parametrize("key", [
    '"', '""', "\\", '\\"', 'a"b', "\n", "\x01", "\t", "", ".", "a.b", "$", "$.a", "@kind", "#", "[0]", "'", "?", "é",
    "' OR '1'='1' --", "😀", "\u2028", "\x7f", "0", "-1", " ",
])  # fmt: skip
def test_any_key_is_found_and_only_that_key(holds, key):
    row = record({key: 1.5, "other": 2, "outer": {key: {"inner": ["x"]}}})
    assert holds(F((key,)) == 1.5, row)
    assert not holds(F((key,)) == 2, row)
    assert not holds(F((key + "x",)).exists(), row)
    assert holds(F(("outer", key, "inner")).contains("x"), row)
    assert not holds(F(("outer", key, "inner", "0")).exists(), row)


def test_run_llama_22475_a_key_is_no_sql(holds):
    """run-llama/llama_index#22475: SQL in a key."""
    assert not holds(F(("author' = 'alice' OR '1'='1' --",)) == "x", record({"author": "alice"}))


def test_dotted_paths_go_through_objects_only(holds):
    row = record({"a": [{"b": 1}], "c": {"0": 2}, "d.e": 3, "d": {"e": 4}})
    assert not holds(F("a.0.b").exists(), row)
    assert not holds(F("a.b").exists(), row)
    assert holds(F("c.0") == 2, row)
    assert holds(F("d.e") == 4, row)
    assert holds(F(("d.e",)) == 3, row)


def test_empty_connectives(holds):
    assert holds(And(), record())
    assert not holds(Or(), record())
    assert not holds(Not(And()), record())


ROW = record(
    id="doc-1", kind="insight", scope=Scope.ROOM, owner="r1", namespace=("users", "u1", "notes"), project="p",
    source="a.md", tags=("red", "50%"), importance=0.1, strength=2.0, access_count=3, event_at=NOON,
    archived_at=NOON + timedelta(microseconds=1), superseded_by="doc-2", revision=2,
)  # fmt: skip


@pytest.mark.parametrize(("where", "right"), [
    (A.id == "doc-1", True), (A.id.in_(["x", "doc-1"]), True), (A.id.prefix("doc"), True), (A.id.like("d_c-%"), True),
    (A.kind != "insight", False), (A.kind.text_match_insensitive("SIGHT"), True), (A.kind > "insigh", True),
    (A.scope == "room", True), (A.scope.in_(["global", "personal"]), False), (A.scope.is_empty(), False),
    (A.owner == "r1", True), (A.owner == None, False), (A.owner.exists(), True),  # noqa: E711
    (A.namespace == ("users", "u1", "notes"), True), (A.namespace == ("users", "u1"), False),
    (A.namespace.prefix(("users", "u1")), True), (A.namespace.prefix(("users", "u")), False),
    (A.namespace.prefix(()), True), (A.namespace.contains("u1"), True), (A.namespace.contains("u"), False),
    (A.namespace.all(["notes", "users"]), True), (A.namespace.any(["x", "y"]), False), (A.namespace.is_empty(), False),
    (A.namespace.in_([(), ("users", "u1", "notes")]), True),
    (A.project == "p", True), (A.project.in_(["q", None]), False), (A.source.prefix("a."), True),
    (A.tags.contains("red"), True), (A.tags.contains("re"), False), (A.tags.any(["x", "50%"]), True),
    (A.tags.all(["red", "x"]), False), (A.tags == ("red", "50%"), True), (A.tags.in_([["50%", "red"]]), False),
    (A.tags.is_empty(), False), (A.tags.exists(), True),
    (A.importance == 0.1, True), (A.importance.in_([0.1, 5]), True), (A.importance.between(0, 0.1), True),
    (A.strength == 2, True), (A.access_count == 3.0, True), (A.access_count > 2.5, True), (A.revision >= 2, True),
    (A.event_at == NOON, True), (A.event_at <= NOON, True), (A.archived_at > NOON, True),
    (A.archived_at.between(NOON, NOON), False), (A.event_at.in_([NOON, None]), True), (A.valid_to == None, True),  # noqa: E711
    (A.valid_to < NOON, False), (A.valid_to != NOON, True), (A.valid_to.exists(), False), (A.valid_to.is_empty(), True),
    (A.valid_to.in_([None, NOON]), True), (A.valid_to.not_in([NOON]), True), (A.superseded_by.contains("2"), True),
])  # fmt: skip
def test_attributes(holds, where, right):
    assert holds(where, ROW) is right
    assert holds(~where, ROW) is not right


@pytest.mark.parametrize(("wanted", "stored"), [
    (0, -0.0), (0.0, 0), (-0.0, 0), (1, 1.0), (1.0, 1), (-7, -7.0), (0.1, 0.1), (1e-7, 1e-7), (5e-324, 5e-324),
    (10**15, 1e15), (1e15, 10**15), (999_999_999_999_999, 999_999_999_999_999.0), (1e16, 10**16), (2**62, 2.0**62),
    (1e22, 1e22), ("", ""), ('a"\\\n\x7f\u2028é\U0001f600', 'a"\\\n\x7f\u2028é\U0001f600'), (True, True),
    (None, None), (False, False), ([], []), ([1, "a"], [1.0, "a"]), ({"a": 1}, {"a": 1.0}),
    ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
])  # fmt: skip
@pytest.mark.parametrize("path", [("n",), ("é",), ('a"\\b\n', "n.m"), ("n", 'say "n"')])
def test_equal_values_are_found_however_they_are_spelled(holds, path, wanted, stored):
    metadata = {"n0": 1, "other": wanted}
    nested = stored
    for key in reversed(path):
        nested = {"before": [2], key: nested}
    assert holds(F(path) == wanted, record(metadata | nested))
    assert not holds(F(path) != wanted, record(metadata | nested))
    assert not holds(F(path) == wanted, record(metadata))


@pytest.mark.parametrize(("wanted", "stored"), [
    (1, 12), (1, 1.5), (1, True), (1, "1"), (1, [1]), ("a", "ab"), ("a", ["a"]), (True, "true"), (None, "null"),
    ([1], [1, 2]), ({}, {"a": 1}), (2**53, 2**53 + 1),
])  # fmt: skip
def test_what_only_begins_alike_is_not_equal(holds, wanted, stored):
    assert not holds(F("n") == wanted, record({"n": stored, "m": {"n": wanted}}))


@pytest.mark.parametrize("where", [
    A.project == "p", A.project.like("%"), A.project.text_match_insensitive(""), A.project.contains(""),
    A.project.any([""]), A.project.all([]), A.project.prefix(""), A.project.in_(["p"]), A.owner.exists(),
    A.event_at > NOON, A.project < "z",
])  # fmt: skip
def test_an_attribute_that_is_not_set_compares_false(holds, where):
    assert not holds(where, record())
    assert holds(~where, record())


def test_fifty_thousand_values_are_one_parameter(connection):
    connection.execute("CREATE TABLE records (id TEXT, metadata TEXT)")
    connection.executemany("INSERT INTO records VALUES (?, ?)", [(f"id-{n}", f'{{"n": {n}}}') for n in range(100)])
    for where in (
        A.id.in_([f"id-{n}" for n in range(50, 50_050)]),
        F("n").in_(list(range(50, 50_050))),
        F("n").in_([n + 0.0 for n in range(50, 50_050)]),
    ):
        sql, values = compile_filter(where)
        assert len(values) < 10
        assert connection.execute(f"SELECT count(*) FROM records r WHERE {sql}", values).fetchone() == (50,)


def test_a_column_of_floats_does_not_round_the_integers_it_is_compared_with(connection):
    connection.execute("CREATE TABLE records (strength REAL)")
    connection.execute("INSERT INTO records VALUES (?)", (2.0**53,))
    for where, right in [
        (A.strength.in_([2**53 + 1, 5]), 0),
        (A.strength.in_([2**53 + 1, 5.5]), 0),
        (A.strength == 2**53 + 1, 0),
        (A.strength < 2**53 + 1, 1),
        (A.strength.in_([2**53, 5]), 1),
    ]:
        sql, values = compile_filter(where)
        assert connection.execute(f"SELECT {sql} FROM records AS r", values).fetchone() == (right,)


def shapes() -> dict[str, Filter]:
    """The largest and deepest filters there may be, leaning every way that could exhaust SQLite's parser."""
    leaf = F('"').in_([1, 2.5, "a", "b", None, True, [1], {}])
    straight, leaning, doubled = leaf, leaf, [leaf]
    for depth in range(1, MAX_DEPTH):
        connective = (And, Or)[depth % 2]
        straight = connective(straight, leaf) if straight.size < MAX_NODES - 2 else straight
        doubled.append((Not if depth % 3 else And)(doubled[-1]))
    for depth in range(1, MAX_DEPTH):
        beside = doubled[depth - 1] if leaning.size + doubled[depth - 1].size < MAX_NODES - 2 else leaf
        leaning = (And, Or)[depth % 2](beside, leaning) if leaning.size < MAX_NODES - 3 else leaning
    bushy = leaf
    for depth in range(1, 9):
        bushy = (And, Or)[depth % 2](bushy, bushy)
    for _ in range(MAX_DEPTH - 9):
        bushy = Not(bushy)
    return {
        "negated": doubled[-1],
        "straight": straight,
        "leaning": leaning,
        "bushy": bushy,
        "wide": And(*[F("n") != n for n in range(MAX_NODES - 1)]),
        "wide and heavy": Or(*[leaf] * (MAX_NODES - 1)),
    }


@pytest.mark.parametrize("name", ["negated", "straight", "leaning", "bushy", "wide", "wide and heavy"])
def test_the_largest_filters_fit_into_a_statement(holds, connection, name):
    where = shapes()[name]
    for row in (record({'"': 2.5}), record({'"': 7})):
        holds(where, row)
    connection.execute("CREATE TABLE records (key INTEGER, metadata TEXT)")
    connection.execute("INSERT INTO records VALUES (3, ?)", (dump_json({'"': 2.5}),))
    sql, values = compile_filter(where)
    found = connection.execute(
        "WITH visible AS (SELECT key FROM (SELECT r.key FROM records AS r WHERE r.key IN (SELECT key FROM records"
        f" WHERE key > 0 AND (key < 5 OR key > 9)) AND {sql})) SELECT * FROM visible",
        values,
    ).fetchall()
    assert [key for (key,) in found] == ([3] if matches(where, record({'"': 2.5})) else [])


def test_a_pattern_full_of_wildcards_takes_no_time():
    started = time.process_time()
    assert not matches(F("x").like("%a" * 50 + "b"), record({"x": "a" * 5000}))
    assert time.process_time() - started < 20, "one that backtracks takes years"


def test_a_foreign_node_is_refused_by_all():
    class Odd(Filter):
        pass

    for use in (lambda: matches(Odd(), record()), lambda: compile_filter(Odd()), lambda: Odd().to_dict()):
        with pytest.raises(UnsupportedFilterError):
            use()


def test_key_and_value_never_stand_in_the_text_of_the_statement():
    where = (F(("k1'x", 'k2"x')) == "v1") & F("k3").in_(["v2", 7777]) & (A.kind == "v3") & F("k4").like("v4%")
    sql, values = compile_filter(where, alias="row")
    assert not any(word in sql for word in ("k1", "k2", "k3", "k4", "v1", "v2", "v3", "v4", "7777"))
    assert sql.count("?") == len(values)
    assert "row.metadata" in sql


def test_invalid_is_a_value_error():
    with pytest.raises(ValueError, match="NUL"):
        F("x") == "\0"  # noqa: B015 - building it is what fails
    assert issubclass(UnsupportedFilterError, InvalidFilterError)
