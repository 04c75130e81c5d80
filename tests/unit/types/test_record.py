"""What may be stored, and what is refused before anything is written."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold import InvalidRecordError, NewRecord
from twofold.types import content_hash
from twofold.types.json import MAX_DEPTH, checked_json, dump_json

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the point


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": None},
        {"text": "a", "fields": {"text": "a"}},
        {"text": 7},
        {"text": "a", "id": ""},
        {"text": "a", "id": "a\0b"},
        {"text": "a", "id": "\ud800"},
        {"text": "a", "id": 7},
        {"text": "a", "kind": ""},
        {"text": "a", "namespace": "users"},
        {"text": "a", "namespace": ("users", "")},
        {"text": "a", "namespace": ("a\x1fb",)},
        {"text": "a", "tags": "urgent"},
        {"text": "a", "tags": (7,)},
        {"text": "a", "importance": 1.5},
        {"text": "a", "importance": -0.1},
        {"text": "a", "importance": math.nan},
        {"text": "a", "importance": True},
        {"text": "a", "strength": 0},
        {"text": "a", "strength": math.inf},
        {"text": "a", "created_at": NAIVE},
        {"text": "a", "event_at": "2026-01-01"},
        {"text": "a", "metadata": {"x": math.nan}},
        {"text": "a", "metadata": {"x": math.inf}},
        {"text": "a", "metadata": {"x": 2**63}},
        {"text": "a", "metadata": {"x": -(2**63) - 1}},
        {"text": "a", "metadata": {"x": "a\0b"}},
        {"text": "a", "metadata": {"x\0": 1}},
        {"text": "a", "metadata": {"x": "\udfff"}},
        {"text": "a", "metadata": {7: "x"}},
        {"text": "a", "metadata": {"x": (1, 2)}},
        {"text": "a", "metadata": {"x": {1, 2}}},
        {"text": "a", "metadata": {"x": datetime(2026, 1, 1, tzinfo=UTC)}},
        {"text": "a", "metadata": ["x"]},
        {"text": "a", "metadata": {"x": nested(MAX_DEPTH)}},
        {"text": "a", "payload": {"x": b"bytes"}},
        {"fields": {"text": ["a", 7]}},
        {"fields": {"text": 7}},
    ],
    ids=repr,
)
def test_what_cannot_be_stored_as_it_is_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecordError):
        NewRecord(**wrong)


def test_text_may_hold_anything() -> None:
    assert NewRecord(text="a\0b\ud800\U0001f534").text == "a\0b\ud800\U0001f534"
    assert NewRecord(text="").text == ""


def test_metadata_is_copied_not_aliased() -> None:
    metadata = {"list": [1, {"deep": True}], "n": None, "one": 1, "float": 1.0}
    record = NewRecord(text="a", metadata=metadata)
    assert record.metadata == metadata
    assert list(record.metadata) == list(metadata)
    metadata["list"][1]["deep"] = "changed"  # type: ignore[index]
    assert record.metadata["list"][1]["deep"] is True


def test_times_become_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    record = NewRecord(text="a", created_at=datetime(2026, 1, 1, 9, tzinfo=tokyo))
    assert record.created_at == datetime(2026, 1, 1, 0, tzinfo=UTC)
    assert record.created_at.tzinfo is UTC
    with pytest.raises(InvalidRecordError, match="years 1 to 9999"):
        NewRecord(text="a", event_at=datetime(1, 1, 1, tzinfo=tokyo))


def test_a_dict_with_an_unknown_name_is_refused_and_the_name_told() -> None:
    with pytest.raises(InvalidRecordError, match="importence"):
        NewRecord.from_value({"text": "a", "importence": 0.7})
    with pytest.raises(InvalidRecordError, match="not int"):
        NewRecord.from_value(7)  # type: ignore[arg-type]


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_only_equal_text_has_an_equal_hash(one: list[str], other: list[str]) -> None:
    same = content_hash({"text": tuple(one)}) == content_hash({"text": tuple(other)})
    assert same == (one == other)
    assert content_hash({"a": one[0]}) != content_hash({"b": one[0]})
    assert content_hash({"a": one[0]}) != content_hash({"a": (one[0],)})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(json_values)
def test_json_comes_back_exactly(value: Any) -> None:
    import json

    checked = checked_json(value, "it")
    back = json.loads(dump_json(checked))
    assert repr(back) == repr(value)
