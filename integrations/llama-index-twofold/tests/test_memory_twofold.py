"""A context as LlamaIndex's messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.llms import MockLLM

import twofold
from llama_index.memory.twofold import as_chat_messages
from twofold import Message

AT = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)


def test_each_message_has_its_role(open_store: Callable[..., twofold.HybridStore]) -> None:
    store = open_store()
    store.add("a red {kettle}")
    bundle = store.context("which kettle?", messages=[Message("user", "hello", AT), Message("assistant", "hi")])
    messages = as_chat_messages(bundle)
    assert [(message.role, message.content) for message in messages] == [
        (MessageRole.SYSTEM, bundle.system),
        (MessageRole.USER, "[2026-03-02 08:01] hello"),
        (MessageRole.ASSISTANT, "hi"),
        (MessageRole.USER, "which kettle?"),
    ]
    assert "a red {kettle}" in bundle.system
    assert "which kettle?" in str(MockLLM().chat(messages).message.content)


def test_they_are_the_messages_of_the_bundle(open_store: Callable[..., twofold.HybridStore]) -> None:
    bundle = open_store().context("a\ud800", messages=[Message("assistant", "b\udfff")], template="{memories}")
    assert [{"role": each.role.value, "content": each.content} for each in as_chat_messages(bundle)] == (
        bundle.as_messages()
    )
