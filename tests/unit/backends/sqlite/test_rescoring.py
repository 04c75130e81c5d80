"""What ranking asks of records that the legs have found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.protocol import Touch
from twofold.backends.sqlite import SqliteBackend
from twofold.config import StoreSettings
from twofold.testing.contract_rows import seen_by
from twofold.testing.records import NEW_YEAR, make_record
from twofold.text import KeywordQuery, Term

KETTLE = KeywordQuery((Term(("kettl",)),))

CARRIED: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"importance": 0.5, "strength": 1.0}, False),
    ({"importance": 0.25}, True),
    ({"strength": 4.0}, True),
    ({"importance": 1.0, "strength": 0.0}, True),
    ({"project": "p", "metadata": {"confidence": 0.5}}, False),
]


@pytest.mark.parametrize("confidence", [False, True])
def test_uncommon_standings_are_those_not_of_default_importance_and_strength(confidence: bool) -> None:
    backend = SqliteBackend.open(":memory:", settings=StoreSettings())
    try:
        with backend.write() as writer:
            keys = [
                writer.insert(make_record(str(number), "kettle", attributes=carried), None)
                for number, (carried, _) in enumerate(CARRIED)
            ]
        with backend.read() as session:
            every = session.standings(keys, confidence=confidence)
            few = session.standings(keys, confidence=confidence, uncommon=True)
        assert list(every) == keys
        assert few == {key: every[key] for key, (_, uncommon) in zip(keys, CARRIED, strict=True) if uncommon}
    finally:
        backend.close()


@pytest.fixture
def two_at_once(tmp_path: Path) -> Iterator[tuple[SqliteBackend, SqliteBackend]]:
    """A file, twice open, and records 1 to 3 in it that carry nothing uncommon."""
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(closing(SqliteBackend.open(tmp_path / "store.db", settings=StoreSettings())))
            for _ in range(2)
        )
        with one.write() as writer:
            assert writer.insert_many([(make_record(id_, "kettle"), None) for id_ in "abc"]) == [1, 2, 3]
        yield one, other


def uncommon_of(backend: SqliteBackend) -> tuple[list[int], int]:
    """Whose standing is uncommon, after a leg has looked who is visible; and how many statements it took to know."""
    statements: list[str] = []
    with backend.read() as session:
        assert len(session.keyword(KETTLE, seen_by(), 10)) == 3
        session._connection.set_trace_callback(statements.append)
        found = session.standings([1, 2, 3], uncommon=True)
        session._connection.set_trace_callback(None)
    return list(found), len(statements)


def test_nothing_is_read_where_nobody_is_known_to_be_uncommon(two_at_once: tuple[SqliteBackend, ...]) -> None:
    one, other = two_at_once
    for backend in two_at_once:
        assert uncommon_of(backend) == ([], 0)
    with one.write() as writer:
        writer.replace(2, make_record("b", "kettle", attributes={"importance": 0.75}), None)
    for backend in two_at_once:
        assert uncommon_of(backend) == ([2], 1)
    with other.write() as writer:
        writer.replace(2, make_record("b", "kettle"), None)
    for backend in two_at_once:
        assert uncommon_of(backend) == ([], 0)
    with one.read() as session:
        session.keyword(KETTLE, seen_by(), 10)
        assert list(session.standings([3, 99], uncommon=True)) == []
        assert list(session.standings([3, 99])) == [3]


def test_a_strength_that_a_touch_let_grow_is_seen_though_no_generation_counts_it(
    two_at_once: tuple[SqliteBackend, ...],
) -> None:
    one, other = two_at_once
    before = [uncommon_of(backend) for backend in two_at_once]
    assert before == [([], 0)] * 2
    with other.write() as writer:
        writer.touch({3: Touch(1, NEW_YEAR)})
    assert [uncommon_of(backend) for backend in two_at_once] == before
    with other.write() as writer:
        assert len(writer.keyword(KETTLE, seen_by(), 10)) == 3
        writer.touch({3: Touch(1, NEW_YEAR)}, growth=1.5)
        assert list(writer.standings([1, 2, 3], uncommon=True)) == [3]
    for backend in two_at_once:
        assert uncommon_of(backend)[0] == [3]
    with one.write() as writer:
        writer.touch({1: Touch(1, NEW_YEAR, 1.5)})
    for backend in two_at_once:
        assert uncommon_of(backend)[0] == [1, 3]


def test_a_strength_that_did_not_grow_after_all_is_not_taken_for_one_that_did(
    two_at_once: tuple[SqliteBackend, ...],
) -> None:
    one, other = two_at_once
    with one.write() as writer:
        writer.replace(2, make_record("b", "kettle", attributes={"strength": 0.5}), None)
    with suppress(KeyError), one.write() as writer:
        writer.touch({2: Touch(1, NEW_YEAR, 2.0)})  # from a half to the default
        assert len(writer.keyword(KETTLE, seen_by(), 10)) == 3
        assert list(writer.standings([1, 2, 3], uncommon=True)) == []
        raise KeyError("the session is called off")
    assert uncommon_of(one)[0] == uncommon_of(other)[0] == [2]
    with other.write() as writer:
        writer.touch({1: Touch(1, NEW_YEAR, 2.0)})
    assert uncommon_of(one)[0] == uncommon_of(other)[0] == [1, 2]
