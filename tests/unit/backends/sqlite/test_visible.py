"""Visibility as SQL: what the contract cannot see from outside."""

from __future__ import annotations

import pytest

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.visible import compile_visibility, permitted
from twofold.filters import F
from twofold.testing.records import NEW_YEAR
from twofold.types import Access


def test_a_condition_is_never_empty() -> None:
    assert compile_visibility(Visibility(Access.everything(), NEW_YEAR, None, include_archived=True)).sql == "TRUE"


@pytest.mark.parametrize("rooms", [0, 1, 32, 33, 50_000])
def test_as_many_values_as_question_marks_however_many_rooms(rooms: int) -> None:
    access = Access(user="u", rooms=tuple(f"r{n}" for n in range(rooms)))
    condition = compile_visibility(Visibility(access, NEW_YEAR, (F("a") == 1) & (F("b") == "?")))
    assert condition.sql.count("?") == len(condition.params) <= 60


def test_no_value_is_written_into_the_text() -> None:
    hostile = "x' OR 1=1 --"
    condition = permitted(Visibility(Access(user=hostile, rooms=(hostile,)), NEW_YEAR, F(hostile) == hostile))
    assert "1=1" not in condition.sql
