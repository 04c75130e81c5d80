from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from twofold import ConfigurationError, Message
from twofold.context import as_messages

AT = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)


def test_a_message_keeps_its_time_in_utc():
    there = timezone(timedelta(hours=2))
    assert Message("user", "hello", datetime(2026, 3, 2, 10, 1, tzinfo=there)).at == AT
    assert Message("user", "hello", datetime(2026, 3, 2, 10, 1, tzinfo=there)).at.tzinfo is UTC
    assert Message("assistant", "hello").at is None


@pytest.mark.parametrize("role", ["system", "tool", "developer", "human", "", None, ["user"]])
def test_only_what_was_said_is_a_message(role):
    with pytest.raises(ConfigurationError, match="'user' or 'assistant'"):
        Message(role, "hello")


@pytest.mark.parametrize("content", [None, b"hello", 1])
def test_its_content_is_text(content):
    with pytest.raises(ConfigurationError, match="content of a message is text"):
        Message("user", content)


@pytest.mark.parametrize("at", [datetime(2026, 3, 2, 8, 1), "2026-03-02T08:01:00Z", 0])  # noqa: DTZ001 - it is what is refused
def test_a_naive_time_is_refused(at):
    with pytest.raises(ConfigurationError, match="time of a message"):
        Message("user", "hello", at)


def test_a_time_beyond_the_calendar_is_refused():
    with pytest.raises(ConfigurationError, match="years 1 to 9999"):
        Message("user", "hello", datetime.min.replace(tzinfo=timezone(timedelta(hours=14))))


def test_dicts_as_openai_has_them_are_messages():
    given = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi", "refusal": None, "tool_calls": [], "annotations": [], "audio": None},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}, "three"]},
        {"role": "user", "content": "later", "at": "2026-03-02T08:01:00Z"},
        {"role": "user", "content": "later", "at": AT},
        Message("assistant", "as it is"),
    ]
    assert as_messages(iter(given)) == [
        Message("user", "hello"),
        Message("assistant", "hi"),
        Message("user", "one\ntwo\nthree"),
        Message("user", "later", AT),
        Message("user", "later", AT),
        Message("assistant", "as it is"),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, "tool_calls.*leave out calls of tools"),
        ({"role": "tool", "content": "42"}, "'user' or 'assistant'"),
        ({"role": "user"}, "content of a message is text, not NoneType"),
        ({"content": "hello"}, "role of a message"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "part of type 'image_url'"),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, "part of type 'text'"),
        ({"role": "user", "content": "x", "at": "2026-03-02T08:01:00"}, "has a zone"),
        ({"role": "user", "content": "x", "at": "yesterday"}, "ISO 8601"),
        ({"role": "user", "content": "x", "at": 5}, "is a datetime, not int"),
        ("hello", "not str"),
        (("user", "hello"), "not tuple"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(given, said):
    with pytest.raises(ConfigurationError, match=said) as refused:
        as_messages([Message("user", "hello"), given])
    assert str(refused.value).startswith("messages[1]")


@pytest.mark.parametrize("given", ["hello", {"role": "user", "content": "x"}, None])
def test_one_message_is_no_list(given):
    with pytest.raises(ConfigurationError, match="messages is a list"):
        as_messages(given)
