"""What a chat's messages are to the memory: questions, and records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from twofold import F, Filter, NewRecord

__all__ = ["EPISODIC", "ROLE", "SESSION", "as_records", "is_answered", "question_of", "record_id", "said_in"]

SESSION: Final = "session_id"
"""The key of a record's metadata that names the session it was said in."""
ROLE: Final = "role"
"""The key that says who said it."""
EPISODIC: Final = "episodic"
"""The kind of such a record."""


def question_of(messages: Sequence[ChatMessage], window: int) -> str:
    """What the user said last, the last ``window`` messages of theirs, each once, oldest first; empty if nothing."""
    said: list[str] = []
    for message in reversed(messages):
        text = _text(message)
        if message.role == MessageRole.USER and text and text not in said:
            said.append(text)
            if len(said) == window:
                break
    return "\n".join(reversed(said))


def is_answered(messages: Sequence[ChatMessage]) -> bool:
    """Whether the last message is an answer, and no call of tools."""
    if not messages or messages[-1].role != MessageRole.ASSISTANT:
        return False
    last = messages[-1]
    calls = last.additional_kwargs.get("tool_calls") or any(
        getattr(block, "block_type", None) == "tool_call" for block in last.blocks
    )
    return bool(_text(last)) and not calls


def record_id(message: ChatMessage, session_id: str | None) -> str:
    """The id of the record that ``message`` becomes: the same words by the same role in one session are one record."""
    session = _session(message, session_id)
    spelled = json.dumps([session, message.role.value, _text(message)])  # ASCII, also of a lone surrogate
    return f"message-{hashlib.sha256(spelled.encode()).hexdigest()[:32]}"


def as_records(
    messages: Iterable[ChatMessage],
    session_id: str | None,
    *,
    roles: Collection[str],
    namespace: tuple[str, ...],
    room: str | None,
) -> dict[str, NewRecord]:
    """By id, the records that ``messages`` become; those of other roles, and those without text, become none.

    Args:
        messages: as said, oldest first. None of them is changed.
        session_id: of the session they were said in. Default: what a message itself says, as LlamaIndex notes it.
        roles: whose are kept.
        namespace: where they go.
        room: whose they become, if they are not the access's own.
    """
    made = {}
    for message in messages:
        if message.role.value not in roles or not _text(message).strip():
            continue
        session = _session(message, session_id)
        metadata = {} if session is None else {SESSION: session}
        id_ = record_id(message, session_id)
        made[id_] = NewRecord(
            text=_text(message),
            id=id_,
            kind=EPISODIC,
            scope=None if room is None else "room",
            room=room,
            namespace=namespace,
            tags=(message.role.value,),
            metadata={**metadata, ROLE: message.role.value},
        )
    return made


def said_in(session_id: str | None) -> Filter:
    """What was said in this session, or belongs to none."""
    anywhere = F(SESSION).exists(yes=False)
    return anywhere if session_id is None else anywhere | (F(SESSION) == session_id)


def _session(message: ChatMessage, session_id: str | None) -> Any:
    """As said by the caller, else as LlamaIndex has noted it in the message."""
    return session_id if session_id is not None else message.additional_kwargs.get(SESSION)


def _text(message: ChatMessage) -> str:
    return message.content or ""
