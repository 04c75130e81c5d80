"""A context as LangChain's messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, convert_to_openai_messages

import twofold
from langchain_twofold import as_messages
from twofold import Message

AT = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)


def test_each_message_has_its_kind(open_store: Callable[..., twofold.HybridStore]) -> None:
    store = open_store()
    store.add("a red {kettle}")
    said = [Message("user", "hello {x}", AT), Message("assistant", "hi")]
    bundle = store.context("which kettle?", messages=said)
    assert as_messages(bundle) == [
        SystemMessage(bundle.system),
        HumanMessage("[2026-03-02 08:01] hello {x}"),
        AIMessage("hi"),
        HumanMessage("which kettle?"),
    ]
    assert "a red {kettle}" in bundle.system
    assert FakeListChatModel(responses=["the red one"]).invoke(as_messages(bundle)).content == "the red one"


def test_they_are_the_messages_of_the_bundle(open_store: Callable[..., twofold.HybridStore]) -> None:
    bundle = open_store().context("a\ud800", messages=[Message("assistant", "b\udfff")], template="{memories}")
    assert convert_to_openai_messages(as_messages(bundle)) == bundle.as_messages()
    assert [type(message) for message in as_messages(bundle)] == [AIMessage, HumanMessage]


def test_langchains_own_messages_can_be_what_was_said(open_store: Callable[..., twofold.HybridStore]) -> None:
    history = [HumanMessage("hello"), AIMessage("hi")]
    bundle = open_store().context("so?", messages=convert_to_openai_messages(history))
    assert as_messages(bundle)[1:] == [*history, HumanMessage("so?")]
