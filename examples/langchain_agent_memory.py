"""A LangChain agent that remembers two users apart, over three turns each, with a canned chat model: no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AnyMessage, HumanMessage

import twofold
from langchain_twofold import TwofoldMemoryMiddleware
from twofold import Access


@dataclass
class Context:
    user: str


def what_the_user_said(messages: Sequence[AnyMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, HumanMessage)][-1:]


with twofold.open("agent.db", embedder="local") as store:
    memory = TwofoldMemoryMiddleware(
        store, access=lambda runtime: Access(user=runtime.context.user), remember=what_the_user_said
    )
    agent = create_agent(FakeListChatModel(responses=["I see."]), middleware=[memory], context_schema=Context)

    for user, drink in (("ann", "green tea"), ("ben", "black coffee")):
        history: list[AnyMessage] = []
        for said in (f"I drink {drink}.", "I live by the sea.", "What do I drink?"):
            history = agent.invoke({"messages": [*history, HumanMessage(said)]}, context=Context(user))["messages"]
        assert [message.type for message in history] == ["human", "ai"] * 3  # nothing recalled piles up in it

    for user, drink in (("ann", "green tea"), ("ben", "black coffee")):
        known = store.search("what do I drink?", access=Access(user=user), k=10)
        print(f"{user}: {[hit.text for hit in known]}")
        assert f"I drink {drink}." in [hit.text for hit in known]
        assert len(known) == 3  # and nothing of the other user's
