"""What a context looks like as LangChain's messages."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from twofold import ContextBundle

__all__ = ["as_messages"]


def as_messages(bundle: ContextBundle) -> list[BaseMessage]:
    """The messages of ``bundle``, new ones with each call: for ``model.invoke(...)``, or a chain that takes messages.

    Args:
        bundle: what ``store.context(...)`` gave.

    Returns:
        A ``SystemMessage`` with the memories in it, if there is anything to say in it; what was said, as
        ``HumanMessage`` and ``AIMessage``; last the current message, a ``HumanMessage``.
    """
    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message["role"]](message["content"]) for message in bundle.as_messages()]
