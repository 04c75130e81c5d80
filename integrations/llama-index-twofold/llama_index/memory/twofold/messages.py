"""What a context looks like as LlamaIndex's messages."""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from twofold import ContextBundle

__all__ = ["as_chat_messages"]


def as_chat_messages(bundle: ContextBundle) -> list[ChatMessage]:
    """The messages of ``bundle``, new ones with each call: for ``llm.chat(...)``, or a chat engine's history.

    Args:
        bundle: what ``store.context(...)`` gave.

    Returns:
        A system message with the memories in it, if there is anything to say in it; what was said; last the current
        message.
    """
    return [
        ChatMessage(role=MessageRole(message["role"]), content=message["content"]) for message in bundle.as_messages()
    ]
