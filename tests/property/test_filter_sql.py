"""The SQL compiler against the plain-Python oracle, and the dict spelling there and back, on random input."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twofold.backends.sqlite.filter_sql import FUNCTIONS, compile_filter
from twofold.backends.sqlite.schema import INITIAL, SCOPE_CODES
from twofold.errors import InvalidFilterError, InvalidRecordError
from twofold.filters import (
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
    matches,
)
from twofold.filters.expression import Attribute
from twofold.filters.matching import like
from twofold.filters.values import ATTRIBUTE_TYPES, ValueType
from twofold.types import NewRecord, Record, Scope
from twofold.types.json import dump_json

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# --- values: few, close to each other, and from the edges, so that filters often hit ---------------------------------

KEYS = st.sampled_from(
    ["a", "b", "", "a.b", "0", "$x", "@kind", '"', "\\", 'q"\\u0041', "\t",
     "\n\x01", "é", "ß", "😀", "#-1", "a'b", "[0]", " ", "\x7f", "~", "a]"]
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "b", "1", "1.0", "true", "null", "[]", '["a"]', "{}", "%", "_", "\\", "ß",
                     "SS", "é", "e\u0301", "É", "İ", "\ue000", "\uffff", "\ufffd", "😀", "a\nb", "\x1f", '"', "2020"]),
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=4),
    st.text("aAbß%_\\", max_size=5),
)  # fmt: skip
INTEGERS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 2**53, 2**53 + 1, 2**53 - 1, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, 10**17]),
    st.integers(-(2**63), 2**63 - 1),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.1, 0.30000000000000004, 2.0**53, 2.0**63, -(2.0**63), 1e308, 5e-324, 1e17, 1.5]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1).map(lambda x: math.nextafter(x, 2)),
)
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, INTEGERS, FLOATS)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)
WORDS = st.sampled_from(["a", "ab", "b", "A", "ß", "😀", " ", "!", "\x1e", "~", "a%"])
NAMESPACES = st.lists(WORDS, max_size=3).map(tuple)
TAGS = st.lists(TEXTS, max_size=3, unique=True).map(tuple)
TIMES = st.one_of(
    st.sampled_from([EPOCH, EPOCH - timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC),
                     datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]),
    st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0)),
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> Record:
    scope = draw(st.sampled_from(Scope))
    optional_text = st.one_of(st.none(), TEXTS)
    optional_time = st.one_of(st.none(), TIMES)
    return Record(
        id=draw(TEXTS),
        fields={},
        kind=draw(TEXTS),
        scope=scope,
        owner=None if scope is Scope.GLOBAL else draw(WORDS),
        namespace=draw(NAMESPACES),
        project=draw(optional_text),
        source=draw(optional_text),
        tags=draw(TAGS),
        metadata=draw(st.dictionaries(KEYS, JSON, max_size=4)),
        payload=None,
        importance=draw(st.floats(0, 1)),
        strength=draw(st.floats(math.ulp(0.0), allow_infinity=False) | st.sampled_from([1.0, 2.0**53, 2.0**63])),
        access_count=draw(st.integers(0, 2**63 - 1) | st.integers(0, 3)),
        created_at=draw(TIMES),
        updated_at=draw(TIMES),
        last_accessed=draw(TIMES),
        event_at=draw(optional_time),
        valid_from=draw(optional_time),
        valid_to=draw(optional_time),
        expires_at=draw(optional_time),
        archived_at=draw(optional_time),
        superseded_by=draw(optional_text),
        content_hash="",
        revision=draw(st.integers(1, 3)),
    )


def paths_and_values(value: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], object]]:
    found = [(path, value)] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths_and_values(item, (*path, key))
    return found


def near(value: object) -> st.SearchStrategy:
    """Values that equal ``value``, nearly equal it, or only look like it."""
    close = [value]
    if isinstance(value, bool):
        close += [int(value), str(value).lower(), not value]
    elif isinstance(value, int):
        close += [float(value), str(value), bool(value), value + 1 if value < 2**63 - 1 else value - 1]
    elif isinstance(value, float):
        close += [math.nextafter(value, 0), repr(value), -value]
        close += [int(value)] if value.is_integer() and abs(value) < 2**63 else []
    elif isinstance(value, str):
        close += [value[:1], value[1:], value.swapcase(), value + "a", [value]]
    elif isinstance(value, list):
        close += [value[:1], value[::-1], dump_json(value), [*value, None]]
        close += [*value, [float(one) if type(one) is int else one for one in value]]
    elif isinstance(value, dict):
        close += [dict(reversed(value.items())), dump_json(value), {**value, "a": 1}]
    return st.one_of(st.sampled_from(close), JSON)


OPERATORS = [Eq, Ne, Lt, Le, Gt, Ge, In, NotIn, Between, Exists, IsEmpty, Contains, Any, All, Prefix, Like, TextMatch,
             TextMatchInsensitive]  # fmt: skip


def on_text(text: object) -> st.SearchStrategy[str]:
    """Substrings of the text, and patterns that may fit it."""
    if not isinstance(text, str) or not text:
        return TEXTS
    ends = st.integers(0, len(text))
    part = st.tuples(ends, ends).map(lambda pair: text[min(pair) : max(pair)])
    pattern = st.lists(st.one_of(st.sampled_from([*text]), st.sampled_from("%_%")), max_size=6).map("".join)
    return st.one_of(part, part.map(str.swapcase), part.map(lambda one: f"%{one}%"), pattern, TEXTS)


@st.composite
def conditions(draw: st.DrawFn, record: Record) -> Filter:  # noqa: C901 - a list of cases
    """One condition, mostly on what the record holds; the kind of operand is chosen without asking the code."""
    if draw(st.booleans()):
        inside = paths_and_values(record.metadata)
        path, value = draw(
            st.one_of(st.sampled_from(inside), st.tuples(st.lists(KEYS, min_size=1, max_size=3), JSON))
            if inside
            else st.tuples(st.lists(KEYS, min_size=1, max_size=3), JSON)
        )
        reference: F | Attribute = F(tuple(path))
        equal = order = near(value)
        element = st.one_of(st.sampled_from(value), near(value)) if isinstance(value, list) and value else near(value)
        operators, prefix = OPERATORS, on_text(value)
        if isinstance(value, str):
            element = element | on_text(value)
    else:
        name = draw(st.sampled_from(list(ATTRIBUTE_TYPES)))
        reference, value = Attribute(name), getattr(record, name)
        type_, nullable = ATTRIBUTE_TYPES[name]
        always = [Eq, Ne, In, NotIn, Exists, IsEmpty]
        order_ones = [Lt, Le, Gt, Ge, Between]
        extra, pool = {
            ValueType.TEXT: (OPERATORS, TEXTS),
            ValueType.SCOPE: ([], st.sampled_from(Scope)),
            ValueType.NAMESPACE: ([Contains, Any, All, Prefix], NAMESPACES),
            ValueType.TAGS: ([Contains, Any, All], TAGS),
            ValueType.NUMBER: (order_ones, st.one_of(INTEGERS, FLOATS)),
            ValueType.TIME: (order_ones, TIMES),
        }[type_]
        operators = always + extra
        order = pool if value is None else st.just(value) | pool
        equal = order | st.none() if nullable else order
        element = {ValueType.NAMESPACE: WORDS, ValueType.TAGS: TEXTS}.get(type_, on_text(value))
        prefix = on_text(value)
        if type_ is ValueType.NAMESPACE:
            prefix = st.integers(0, 3).map(lambda length: value[:length]) | NAMESPACES
    operator = draw(st.sampled_from(operators))
    if operator in (Lt, Le, Gt, Ge):
        return operator(reference, draw(order))
    if operator is Between:
        return Between(reference, draw(order), draw(order))
    if operator in (Eq, Ne):
        return operator(reference, draw(equal))
    if operator in (In, NotIn):
        return operator(reference, draw(st.lists(equal, max_size=4)))
    if operator is Contains:
        return Contains(reference, draw(element))
    if operator in (Any, All):
        return operator(reference, draw(st.lists(element, max_size=3)))
    if operator is Exists:
        return Exists(reference, draw(st.booleans()))
    if operator is IsEmpty:
        return IsEmpty(reference)
    if operator is Prefix:
        return Prefix(reference, draw(prefix))
    text = draw(on_text(value))
    if operator is Like and (len(text) - len(text.rstrip("\\"))) % 2:
        text += "\\"
    return operator(reference, text)


def trees(record: Record) -> st.SearchStrategy[Filter]:
    return st.recursive(
        conditions(record),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda parts: And(*parts)),
            st.lists(inner, max_size=3).map(lambda parts: Or(*parts)),
            inner.map(Not),
        ),
        max_leaves=4,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Record], list[Filter]]:
    identity = attrgetter("id", "namespace", "scope", "owner")
    rows = draw(st.lists(records(), min_size=2, max_size=6, unique_by=identity))
    filters = [draw(st.sampled_from(rows).flatmap(trees)) for _ in range(draw(st.integers(4, 10)))]
    return rows, filters


# --- the two drivers --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite3", "pysqlite3"], scope="module")
def connection(request: pytest.FixtureRequest):
    driver = pytest.importorskip(request.param, reason="the optional second SQLite is not installed")
    connection = driver.connect(":memory:", isolation_level=None)
    for name, nargs, function in FUNCTIONS:
        connection.create_function(name, nargs, function, deterministic=True)
    for statement in INITIAL:
        if "records" in statement.split("(")[0]:
            connection.execute(statement)
    yield connection
    connection.close()


def insert(connection, rows: list[Record]) -> None:
    def micros(time: datetime | None) -> int | None:
        return None if time is None else (time - EPOCH) // timedelta(microseconds=1)

    for key, row in enumerate(rows, start=1):
        columns = {
            "key": key,
            "id": row.id,
            "scope": SCOPE_CODES[row.scope],
            "owner": row.owner or "",
            "namespace": "".join(f"{word}\x1f" for word in row.namespace),
            "fields": "{}",
            "parts": 0,
            "tags": dump_json(list(row.tags)),
            "metadata": dump_json(row.metadata),
            "content_hash": "",
            "generation": 1,
            **{name: getattr(row, name) for name in ("kind", "project", "source", "importance", "strength",
                                                     "access_count", "superseded_by", "revision")},
            **{name: micros(getattr(row, name)) for name in ("created_at", "updated_at", "last_accessed", "event_at",
                                                             "valid_from", "valid_to", "expires_at", "archived_at")},
        }  # fmt: skip
        marks = ", ".join("?" * len(columns))
        connection.execute(f"INSERT INTO records ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))


def answers(connection, filter: Filter) -> list[object]:
    sql, values = compile_filter(filter, "r")
    selected = [verdict for (verdict,) in connection.execute(f"SELECT {sql} FROM records AS r ORDER BY key", values)]
    kept = {key for (key,) in connection.execute(f"SELECT key FROM records AS r WHERE {sql}", values)}
    assert kept == {key for key, verdict in enumerate(selected, start=1) if verdict}
    return selected


@given(case=cases())
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_sql_and_python_agree(connection, case):
    rows, filters = case
    connection.execute("SAVEPOINT example")
    try:
        insert(connection, rows)
        for where in filters:
            expected = [int(matches(where, row)) for row in rows]
            assert answers(connection, where) == expected, (where, [row.metadata for row in rows])
    finally:
        connection.execute("ROLLBACK TO example")
        connection.execute("RELEASE example")


@given(filter=records().flatmap(trees))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_tree_survives_its_dict_spelling(filter):
    spelled = json.loads(json.dumps(filter.to_dict()))
    again = Filter.from_dict(spelled)
    assert again == filter
    assert hash(again) == hash(filter)
    assert repr(again) == repr(filter)  # 1 and 1.0 are equal, but neither becomes the other
    assert compile_filter(again) == compile_filter(filter)


@given(
    value=st.recursive(
        st.one_of(SCALARS, st.integers(), st.floats(), st.text(), st.binary(max_size=2), st.dates()),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(), inner)),
        max_leaves=4,
    )
)
@settings(max_examples=300, deadline=None)
def test_a_value_is_refused_exactly_where_metadata_refuses_it(value):
    try:
        stored = NewRecord(text="", metadata={"a": value})
    except InvalidRecordError:
        with pytest.raises(InvalidFilterError):
            Eq(F("a"), value)
    else:
        assert Eq(F("a"), value).value == stored.metadata["a"]


@given(st.text("ab%_\\", max_size=12), st.text("ab%_\\", max_size=12))
@settings(max_examples=500)
def test_like_is_what_a_naive_matcher_says(text, pattern):
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        pattern += "\\"

    def naive(text: str, pattern: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "%":
            return any(naive(text[start:], pattern[1:]) for start in range(len(text) + 1))
        literal = pattern[1] if pattern[0] == "\\" else pattern[0]
        fits = bool(text) and ((pattern[0] == "_") or text[0] == literal)
        return fits and naive(text[1:], pattern[2:] if pattern[0] == "\\" else pattern[1:])

    assert like(text, pattern) == naive(text, pattern)
