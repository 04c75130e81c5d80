"""What was said in a conversation, and the forms in which it may be given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from twofold.errors import ConfigurationError
from twofold.types.arguments import checked_items

__all__ = ["ASSISTANT", "USER", "Message", "MessageLike", "as_messages"]

USER: Final = "user"
ASSISTANT: Final = "assistant"

_NAMES: Final = ("role", "content", "at")


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that was said.

    Raises:
        ConfigurationError: the role is another, the content is no text, or the time has no zone.
    """

    role: str
    """Who said it: ``"user"`` or ``"assistant"``."""
    content: str
    """What was said; any characters."""
    at: datetime | None = None
    """When, with a time zone; kept in UTC. Default: unknown, and then none is shown."""

    def __post_init__(self) -> None:
        if self.role not in (USER, ASSISTANT):
            raise ConfigurationError(
                f"the role of a message is {USER!r} or {ASSISTANT!r}, not {self.role!r}: the system text is the "
                "template's, and what tools were asked and answered is left out"
            )
        if not isinstance(self.content, str):
            raise ConfigurationError(f"the content of a message is text, not {type(self.content).__name__}")
        if self.at is not None:
            object.__setattr__(self, "at", _in_utc(self.at))


MessageLike: TypeAlias = Message | Mapping[str, Any]
"""A message, or a dict as OpenAI's chat interface has it, with ``role`` and ``content``; ``at`` may be added: a
datetime with a zone, or ISO 8601 text with one."""


def as_messages(values: Iterable[MessageLike]) -> list[Message]:
    """The messages that ``values`` stand for, in their order.

    In a dict, names without a value (None, or nothing in it) are passed over, as OpenAI's library writes them;
    content made of several parts of text is joined.

    Raises:
        ConfigurationError: one cannot be used; the message says which.
    """
    return [
        value if isinstance(value, Message) else _from_dict(value, f"messages[{index}]")
        for index, value in enumerate(checked_items(values, "messages", "messages=[Message('user', 'Hello')]"))
    ]


def _from_dict(value: object, place: str) -> Message:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{place} is a Message, or a dict with role and content, not {type(value).__name__}")
    unknown = [str(name) for name, given in value.items() if name not in _NAMES and given not in (None, "", [], {})]
    if unknown:
        raise ConfigurationError(
            f"{place} has {', '.join(unknown)}; a message has role, content and at: leave out calls of tools"
        )
    try:
        return Message(value.get("role", ""), _content(value.get("content")), _time(value.get("at")))
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}") from error


def _content(content: object) -> str:
    """The text of ``content``, which may be made of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "\n".join(map(_part, content))
    raise ConfigurationError(f"the content of a message is text, not {type(content).__name__}")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    text = part.get("text") if isinstance(part, Mapping) else None
    if kind in ("text", "input_text", "output_text") and isinstance(text, str):
        return text
    raise ConfigurationError(f"the content of a message is text; a part of type {kind!r} is not: leave it out")


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return value  # type: ignore[return-value]  # Message refuses what is no datetime
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ConfigurationError(
            f"the time of a message is ISO 8601, e.g. 2026-03-02T08:01:00Z, not {value!r}"
        ) from None


def _in_utc(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise ConfigurationError(f"the time of a message is a datetime, not {type(value).__name__}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ConfigurationError(
            f"the time of a message has a zone: write datetime(..., tzinfo=UTC) or 2026-03-02T08:01:00Z, not {value}"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ConfigurationError("the time of a message is outside of the years 1 to 9999 in UTC") from None
