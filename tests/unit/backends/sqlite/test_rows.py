"""Records to rows and back, on any value."""

from __future__ import annotations

import math
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.backends.sqlite import rows
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.testing.records import make_record
from twofold.types import Owner, Scope

TIMES = st.datetimes(timezones=st.just(UTC))
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\x1f"), min_size=1, max_size=4)
SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(TIMES)
def test_times_keep_their_microseconds(time: datetime) -> None:
    assert rows.load_time(rows.store_time(time)) == time


def test_a_time_is_whole_microseconds_since_1970() -> None:
    assert rows.store_time(EPOCH + timedelta(days=1, microseconds=7)) == 86_400 * 10**6 + 7
    assert rows.store_time(EPOCH - timedelta(microseconds=1)) == -1


@given(st.lists(WORDS, max_size=4), st.lists(WORDS, max_size=4))
def test_below_a_namespace_lies_a_range(first: list[str], second: list[str]) -> None:
    one, two = rows.store_namespace(first), rows.store_namespace(second)
    assert rows.load_namespace(one) == tuple(first)
    if first:
        below = one <= two < one[:-1] + "\x20"
        assert below == (second[: len(first)] == first)


@pytest.mark.parametrize("owner", [Owner.everybody(), Owner.user("u"), Owner.room("u")])
def test_owners(owner: Owner) -> None:
    assert rows.load_owner(*rows.store_owner(owner)) == owner


def test_scopes_have_the_order_of_their_names() -> None:
    owners = [Owner(scope, None if scope is Scope.GLOBAL else "x") for scope in Scope]
    assert sorted(owners) == sorted(owners, key=rows.store_owner)


@given(st.dictionaries(WORDS, st.one_of(TEXT, st.lists(TEXT, max_size=3).map(tuple)), max_size=3))
def test_any_text_comes_back(fields: dict[str, str | tuple[str, ...]]) -> None:
    stored = rows.store_fields(fields)
    if isinstance(stored, str):
        stored.encode()  # what SQLite can hold as text
    assert rows.load_fields(stored) == fields


def test_two_halves_of_a_surrogate_pair_stay_two() -> None:
    text = {"text": "\ud83d\ude00"}
    assert isinstance(rows.store_fields(text), bytes)
    assert rows.load_fields(rows.store_fields(text)) == text


@pytest.mark.parametrize(
    ("fields", "parts"),
    [({}, 0), ({"a": ""}, 0), ({"a": " \n\t\u3000"}, 0), ({"a": "x"}, 1), ({"a": ("x", " ", "y"), "b": "z"}, 3)],
)
def test_parts_are_pieces_with_more_than_white_space(fields: dict[str, str | tuple[str, ...]], parts: int) -> None:
    assert rows.count_parts(fields) == parts


@given(TIMES, st.floats(0, 1), st.dictionaries(WORDS, SCALARS, max_size=4))
def test_a_record_comes_back(time: datetime, importance: float, metadata: dict[str, object]) -> None:
    record = make_record(
        "a", "x", at=time, attributes={"importance": importance, "metadata": metadata, "event_at": time}
    )
    found = rows.from_row(rows.to_row(record))
    assert found == record
    assert list(found.metadata) == list(metadata)
    assert [type(value) for value in found.metadata.values()] == [type(value) for value in metadata.values()]
    assert all(
        math.copysign(1, found.metadata[key]) == math.copysign(1, value)
        for key, value in metadata.items()
        if isinstance(value, float)
    )


def test_the_index_of_equal_text_is_made_when_it_is_first_asked_for(tmp_path: Path) -> None:
    """Most stores never ask, and a single add would write one or two more pages for it."""

    def indexes() -> set[str]:
        with backend._file.pool.reader() as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}

    with closing(SqliteBackend.open(tmp_path / "s.db")) as backend:
        record = make_record("a", "same")
        with backend.write() as writer:
            key = writer.insert(record, None)
        assert "records_by_content" not in indexes()
        asked = (record.content_hash, record.belongs_to, ())
        with backend.read() as reader:
            assert reader.with_equal_text(*asked) == [key]
        with backend.write() as writer:
            assert [writer.with_equal_text(*asked) for _ in range(2)] == [[key], [key]]
            plan = writer._connection.execute("EXPLAIN QUERY PLAN SELECT key FROM records WHERE content_hash = 'x'")
            assert "records_by_content" in str(plan.fetchall())
        assert "records_by_content" in indexes()
        assert backend.check().ok
