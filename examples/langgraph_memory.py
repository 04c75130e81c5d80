"""A LangGraph agent that remembers two users apart, over three turns each: no model, no network, no key."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

import twofold
from langchain_twofold import TwofoldStore
from twofold import Access


class Turn(TypedDict):
    said: str
    recalled: list[str]


def recall(turn: Turn, runtime: Runtime) -> dict[str, list[str]]:
    assert runtime.store is not None
    found = runtime.store.search(("said",), query=turn["said"], limit=3)
    return {"recalled": [item.value["text"] for item in found]}


def remember(turn: Turn, runtime: Runtime) -> None:
    assert runtime.store is not None
    runtime.store.put(("said",), turn["said"], {"text": turn["said"]})


builder = StateGraph(Turn)
builder.add_sequence([recall, remember])
builder.add_edge(START, "recall")
builder.add_edge("remember", END)

# Not the file of a checkpointer: that one has a file of its own.
with twofold.open("memory.db", embedder="local") as shared:
    for user, drink in (("ann", "green tea"), ("ben", "black coffee")):
        graph = builder.compile(store=TwofoldStore(shared, access=Access(user=user)))
        for said in (f"I drink {drink}.", "I live by the sea.", "What do I drink?"):
            turn = graph.invoke({"said": said, "recalled": []})
            print(f"{user}: {said} (recalled: {turn['recalled']})")
        assert turn["recalled"][0] == f"I drink {drink}."
        assert len(turn["recalled"]) == 2  # and nothing of the other user's
