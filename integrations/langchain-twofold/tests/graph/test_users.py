"""Opening and closing, and those who use a store: graphs, langmem, backends of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")


from langgraph.store.base import PutOp

import twofold
from langchain_twofold import TwofoldStore


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


async def test_from_conn_string(tmp_path: Path, index: Callable[..., Any]) -> None:
    path = str(tmp_path / "s.db")
    with TwofoldStore.from_conn_string(path, index=index(fields=["text"]), ttl={"default_ttl": 5}) as store:
        store.setup()
        store.put(("a",), "k", {"text": "kettle"})
    async with TwofoldStore.from_conn_string(path, search_mode="keyword") as store:
        await store.setup()
        assert keys(await store.asearch(("a",), query="kettle")) == ["k"]
    with pytest.raises(twofold.StoreClosedError):
        store.get(("a",), "k")
    with pytest.raises(twofold.StoreClosedError):
        await store.aget(("a",), "k")


def test_a_store_of_yours_stays_open(index: Callable[..., Any]) -> None:
    with twofold.open(":memory:") as own:
        with TwofoldStore(own, index={"fields": ["text"]}) as store:  # type: ignore[typeddict-item]
            store.put(("a",), "k", {"text": "kettle", "secret": "swordfish"})
            assert store.search(("a",), query="swordfish") == []
        assert own.search("kettle").ids == ("k",)
        with pytest.raises(ValueError, match="open already"):
            TwofoldStore(own, index=index())


async def test_a_graph_remembers(store: TwofoldStore) -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime
    from typing_extensions import TypedDict

    class State(TypedDict):
        said: str
        known: int

    def remember(state: State, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        known = runtime.store.search(("said",), query=state["said"])
        runtime.store.put(("said",), state["said"], {"text": state["said"]})
        return {"known": len(known)}

    builder = StateGraph(State)
    builder.add_node("remember", remember)  # type: ignore[arg-type]
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    graph = builder.compile(store=store)
    assert graph.invoke({"said": "a red kettle", "known": 0})["known"] == 0
    assert (await graph.ainvoke({"said": "which kettle", "known": 0}))["known"] == 1


def test_a_graph_with_a_checkpointer_has_two_files(tmp_path: Path) -> None:
    """As the how-to has it: the thread in one file, what outlives it in another."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.runtime import Runtime

    def remember(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        known = len(runtime.store.search(("said",)))
        runtime.store.put(("said",), str(known), {"text": state["messages"][-1].text})
        return {"messages": [("ai", str(known))]}

    builder = StateGraph(MessagesState)
    builder.add_node("remember", remember)  # type: ignore[arg-type]
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    threads = tmp_path / "threads.db"
    for turn in range(4):
        thread = str(turn % 2)
        with (
            sqlite.SqliteSaver.from_conn_string(str(threads)) as checkpointer,
            TwofoldStore(tmp_path / "memory.db") as store,
        ):
            graph = builder.compile(checkpointer=checkpointer, store=store)
            state = graph.invoke({"messages": [("user", f"turn {turn}")]}, {"configurable": {"thread_id": thread}})
            assert len(state["messages"]) == 2 * (turn // 2 + 1)  # its own thread's
            assert state["messages"][-1].text == str(turn)  # and everything that is remembered
            assert store.store.check().ok


async def test_langmems_tools_run_on_it(store: TwofoldStore) -> None:
    langmem = pytest.importorskip(
        "langmem", reason="langmem is not installed, or not for this langchain", exc_type=ImportError
    )
    namespace = ("memories", "{langgraph_user_id}")
    config = {"configurable": {"langgraph_user_id": "ann"}}
    manage = langmem.create_manage_memory_tool(namespace, store=store)
    search = langmem.create_search_memory_tool(namespace, store=store)
    manage.invoke({"content": "Ann prefers green tea.", "action": "create"}, config)
    (item,) = store.search(("memories", "ann"))
    assert item.value == {"content": "Ann prefers green tea."}
    assert "green tea" in str(await search.ainvoke({"query": "which tea"}, config))
    assert "green tea" not in str(
        await search.ainvoke({"query": "which tea"}, {"configurable": {"langgraph_user_id": "b"}})
    )
    await manage.ainvoke({"content": "Ann prefers black tea.", "action": "update", "id": item.key}, config)
    assert [each.value["content"] for each in store.search(("memories", "ann"))] == ["Ann prefers black tea."]
    manage.invoke({"action": "delete", "id": item.key}, config)
    assert store.search(("memories",)) == []


def test_a_backend_of_files(store: TwofoldStore) -> None:
    """As deepagents does it: pages of a hundred to the end, files of lines that are written, read, edited, removed."""
    namespace = ("ann", "filesystem")
    store.batch([PutOp(namespace, f"/f{n}.md", {"content": ["x"], "created_at": str(n)}) for n in range(250)])
    store.put(("ben", "filesystem"), "/f0.md", {"content": ["Ben's"]})
    seen: list[str] = []
    while page := store.search(namespace, query=None, filter=None, limit=100, offset=len(seen)):
        seen += keys(page)
    assert sorted(seen) == sorted(f"/f{n}.md" for n in range(250))  # each once

    item = store.get(namespace, "/f7.md")
    assert item is not None
    item.value["content"].append("the kettle whistles")
    store.put(namespace, "/f7.md", item.value)
    edited = store.get(namespace, "/f7.md")
    assert edited is not None
    assert edited.value == {"content": ["x", "the kettle whistles"], "created_at": "7"}
    assert keys(store.search(namespace, query="kettle")) == ["/f7.md"]
    assert keys(store.search(namespace, filter={"created_at": "7"})) == ["/f7.md"]

    store.batch([PutOp(namespace, key, None) for key in seen])
    assert store.search(namespace) == []
    assert keys(store.search(("ben", "filesystem"))) == ["/f0.md"]
