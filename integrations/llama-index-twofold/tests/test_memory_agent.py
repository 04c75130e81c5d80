"""``twofold_memory`` in agents and chat engines."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory, StaticMemoryBlock
from llama_index.core.workflow import Context, JsonPickleSerializer
from sqlalchemy.ext.asyncio import create_async_engine

import twofold
from llama_index.memory.twofold import TwofoldMemory, TwofoldMemoryBlock, twofold_memory
from llama_index.retrievers.twofold import TwofoldRetriever
from twofold import Access, EmbeddingSettings, HybridStore, StoreSettings
from twofold.testing import FailingEmbedder, FakeEmbedder

OpenStore = Callable[..., HybridStore]

ANN, BEN = Access(user="ann"), Access(user="ben")


def user(text: str) -> ChatMessage:
    return ChatMessage(text, role="user")


def texts_of(store: HybridStore, access: Access = ANN) -> set[str]:
    return {record.text for record in store.list(access=access)}


def agent_of(llm: Any, *tools: Any) -> FunctionAgent:
    return FunctionAgent(tools=list(tools), llm=llm, system_prompt="Be brief.")


# What is kept, and when


async def test_a_message_is_remembered_at_once_and_once(open_store: OpenStore) -> None:
    """LlamaIndex's own ``Memory`` gives its blocks nothing before 21,000 tokens have been said."""
    store = open_store(embedder=None)
    plain = Memory.from_defaults(memory_blocks=[TwofoldMemoryBlock(store=store, access=ANN)])
    await plain.aput(user("I like tea."))
    assert store.count(access=ANN) == 0
    memory = twofold_memory(store, access=ANN, session_id="monday")
    await memory.aput(user("I like tea."))
    assert texts_of(store) == {"I like tea."}
    await memory.aput_messages([ChatMessage("Noted.", role="assistant"), user("And milk.")])
    assert texts_of(store) == {"I like tea.", "Noted.", "And milk."}
    await memory.aset([user("I like tea."), user("Begin anew.")])
    assert texts_of(store) == {"I like tea.", "Noted.", "And milk.", "Begin anew."}
    await memory.aput_messages([])
    assert store.count(access=ANN) == 4


async def test_a_history_that_is_set_brings_nothing_back(open_store: OpenStore, canned: Any) -> None:
    store = open_store(embedder=None)
    memory = twofold_memory(store, access=ANN)
    history = [user("I like tea."), ChatMessage("Noted.", role="assistant")]
    for said in ("And milk.", "And sugar."):
        await agent_of(canned).run(user_msg=said, chat_history=history, memory=memory)
        store.delete([record.id for record in store.list(access=ANN) if "tea" in record.text], access=ANN)
    assert texts_of(store) == {"Noted.", "And milk.", "And sugar.", "yes"}


async def test_what_leaves_the_history_is_recalled_and_stays_one_record(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    memory = twofold_memory(store, access=ANN, session_id="monday", token_limit=200)
    await memory.aput(user("My locker code is 4711."))
    await memory.aput(ChatMessage("Noted.", role="assistant"))
    for number in range(30):
        await memory.aput(user(f"Tell me of item {number}."))
        await memory.aput(ChatMessage(f"It is the item of number {number}.", role="assistant"))
    assert store.count(access=ANN) == 2 + 2 * 30
    left = [str(message.content) for message in await memory.aget_all()]
    assert len(left) == 62
    await memory.aput(user("What is my locker code?"))
    system, *history = await memory.aget()
    assert system.role == MessageRole.SYSTEM
    assert "My locker code is 4711." in str(system.content)
    assert all("4711" not in str(message.content) for message in history)


async def test_23180_a_message_may_be_asked_about_as_well_as_a_text(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("green tea", access=ANN)
    memory = twofold_memory(store, access=ANN)
    for asked in ("tea?", user("tea?")):
        (message,) = await memory.aget(input=asked)
        assert "green tea" in str(message.content)
    assert await memory.aget(input=ChatMessage("tea?", role="assistant")) == []
    assert await memory.aget() == []


def test_the_sync_calls_do_the_same(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    memory = twofold_memory(store, access=ANN)
    memory.put(user("I like tea."))
    memory.put_messages([user("I like milk.")])
    assert texts_of(store) == {"I like tea.", "I like milk."}
    assert [message.content for message in memory.get_all()] == ["I like tea.", "I like milk."]
    memory.reset()
    assert "I like tea." in str(memory.get(input="Which tea?")[0].content)


def test_the_factory_hands_its_options_on(open_store: OpenStore, tmp_path: Any) -> None:
    store = open_store(embedder=None)
    other = StaticMemoryBlock(name="static", static_content="Be kind.")
    memory = twofold_memory(
        store, access=ANN, session_id="monday", token_limit=500, tokenizer_fn=list, memory_blocks=[other], k=2, window=3
    )
    assert isinstance(memory, TwofoldMemory)
    assert (memory.session_id, memory.token_limit, memory.tokenizer_fn) == ("monday", 500, list)
    own, second = memory.memory_blocks
    assert isinstance(own, TwofoldMemoryBlock)
    assert (own.opened(), own.k, own.window, own.tokenizer_fn, second) == (store, 2, 3, list, other)
    with pytest.raises(ValueError, match="top_k"):
        twofold_memory(tmp_path / "memory.db", access=ANN, top_k=3)  # type: ignore[call-arg]
    sessions = {twofold_memory(store, access=ANN).session_id for _ in range(2)}
    assert len(sessions) == 2
    assert not (tmp_path / "memory.db").exists()


async def test_the_history_may_be_kept_too(tmp_path: Any) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chat.db'}")
    for turn, said in enumerate(("I like tea.", "And milk.")):
        memory = twofold_memory(
            tmp_path / "memory.db", access=ANN, session_id="monday", async_engine=engine, sessions="all"
        )
        await memory.aput(user(said))
        assert len(await memory.aget_all()) == turn + 1
        twin = pickle.loads(pickle.dumps(memory))
        assert await twin.aget_all() == await memory.aget_all()
        (block,) = memory.memory_blocks
        assert isinstance(block, TwofoldMemoryBlock)
        store = block.opened()
        memory.close()
        with pytest.raises(twofold.StoreClosedError):
            store.count()
    await engine.dispose()


async def test_nobody_reads_anothers_history_of_the_same_session(open_store: OpenStore, tmp_path: Any) -> None:
    """LlamaIndex tells histories in one database apart by the session's name alone."""
    store = open_store(embedder=None)
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chat.db'}")
    ops = Access(user="ann", rooms=("ops", "net"))
    asked: list[dict[str, Any]] = [
        {"access": ANN},
        {"access": BEN},
        {"access": Access()},
        {"access": ops, "room": "ops"},
        {"access": ops, "room": "net"},
    ]
    memories = [twofold_memory(store, session_id="monday", async_engine=engine, **each) for each in asked]
    for place, memory in enumerate(memories):
        await memory.aput(user(f"locker code {place}"))
    for place, memory in enumerate(memories):
        assert [message.content for message in await memory.aget_all()] == [f"locker code {place}"]
    bens = "".join(str(message.content) for message in await memories[1].aget("locker code?"))
    assert [number for number in range(len(memories)) if f"code {number}" in bens] == [1, 2]  # 2 is for everybody
    again = twofold_memory(store, access=ANN, session_id="monday", async_engine=engine)
    assert [message.content for message in await again.aget_all()] == ["locker code 0"]
    await engine.dispose()


def test_a_store_that_was_given_is_not_closed(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    twofold_memory(store, access=ANN).close()
    assert store.count() == 0


# In agents


async def test_an_agent_over_three_turns_and_two_users(open_store: OpenStore, canned: Any) -> None:
    store = open_store(embedder=FakeEmbedder())
    for name, drink in (("ann", "tea"), ("ben", "coffee")):
        for session, said in (
            ("one", f"I drink {drink}."),
            ("two", "I live by the sea."),
            ("three", "What do I drink?"),
        ):
            memory = twofold_memory(store, access=Access(user=name), session_id=f"{name} {session}", sessions="all")
            done = await agent_of(canned).run(user_msg=said, memory=memory)
            assert str(done) == "yes"
        assert f"I drink {drink}." in canned.system
        assert "Be brief." in canned.system
    for access, drink, other in ((ANN, "tea", "coffee"), (BEN, "coffee", "tea")):
        said = texts_of(store, access)
        assert {f"I drink {drink}.", "yes"} <= said
        assert f"I drink {other}." not in said
    assert "tea" not in canned.system


async def test_what_is_recalled_does_not_come_into_the_history(open_store: OpenStore, canned: Any) -> None:
    store = open_store(embedder=None)
    store.add("Ann prefers green tea.", access=ANN)
    memory = twofold_memory(store, access=ANN)
    for _ in range(3):
        await agent_of(canned).run(user_msg="Which tea?", memory=memory)
        assert canned.system.count("Ann prefers green tea.") == 1
    assert not any("green" in str(message.content) for message in await memory.aget_all())


async def test_one_run_with_a_tool_counts_one_use(open_store: OpenStore, canned: Any) -> None:
    """A run asks its memory three times."""
    store = open_store(embedder=None)
    id_ = store.add("Ann prefers green tea.", access=ANN).id
    tool = TwofoldRetriever(store, access=ANN).as_tool(name="notes")
    for times in (1, 2):
        canned.answers = [{"notes": {"query": "tea"}}, "Green tea."]
        await agent_of(canned, tool).run(user_msg="Which tea?", memory=twofold_memory(store, access=ANN))
        record = store.get(id_, access=ANN)
        assert record is not None
        assert record.access_count == times


@pytest.mark.parametrize("trouble", ["refusing", "hanging", "closed"])
async def test_an_agents_run_goes_on(
    open_store: OpenStore, canned: Any, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()

    def hang(texts: Sequence[str]) -> list[list[float]]:
        release.wait(60)
        raise AssertionError("nobody waits for this any more")

    embedder = (
        FailingEmbedder() if trouble == "refusing" else twofold.CallableEmbedder(hang, name="hanging", dimension=2)
    )
    settings = StoreSettings(embedding=EmbeddingSettings(query_deadline=0.01, document_deadline=0.01))
    store = open_store(embedder=embedder, settings=settings)
    try:
        store.add("Ann prefers green tea.", access=ANN)
        memory = twofold_memory(store, access=ANN)
        if trouble == "closed":
            store.close()
        assert str(await agent_of(canned).run(user_msg="Which tea?", memory=memory)) == "yes"
        if trouble == "closed":
            assert "without memories" in caplog.text
            assert "could not remember" in caplog.text
        else:
            assert "Ann prefers green tea." in canned.system
            assert texts_of(store) == {"Ann prefers green tea.", "Which tea?", "yes"}
            assert caplog.text.count("memories") == 0
        assert [message.content for message in await memory.aget_all()] == ["Which tea?", "yes"]
    finally:
        release.set()


@pytest.mark.parametrize("engine", [SimpleChatEngine, ContextChatEngine])
async def test_in_a_chat_engine(open_store: OpenStore, engine: Any) -> None:
    store = open_store(embedder=None)
    store.add("Ann prefers green tea.", access=ANN)
    documents = open_store(embedder=None)
    documents.add("The tea is served at noon.")
    more = {} if engine is SimpleChatEngine else {"retriever": TwofoldRetriever(documents)}
    chat = engine.from_defaults(llm=MockLLM(), memory=twofold_memory(store, access=ANN), **more)
    for answer in (await chat.achat("Which tea?"), chat.chat("Which tea is it?")):
        assert "Ann prefers green tea." in str(answer)  # the mock repeats its prompt
    assert {"Which tea?", "Which tea is it?"} < texts_of(store)


async def test_a_context_keeps_its_memory(tmp_path: Any, canned: Any) -> None:
    """A block that cannot be pickled takes all blocks of its memory with it, with only a warning."""
    memory = twofold_memory(tmp_path / "memory.db", access=ANN, session_id="monday", embed_model=FakeEmbedder())
    agent = agent_of(canned)
    context = Context(agent)
    await agent.run(user_msg="I prefer green tea.", memory=memory, ctx=context)
    stored = context.to_dict(serializer=JsonPickleSerializer())
    restored = await Context.from_dict(agent, stored, serializer=JsonPickleSerializer()).store.get("memory")
    assert isinstance(restored, TwofoldMemory)
    (block,) = restored.memory_blocks
    assert isinstance(block, TwofoldMemoryBlock)
    assert (block.access, restored.session_id) == (ANN, "monday")
    assert restored.sql_store.table_name == memory.sql_store.table_name  # which nobody else has
    content = await block.aget([user("Which tea?")], session_id="tuesday")
    assert content == ""
    said = ["I prefer green tea.", "yes"]
    assert [message.content for message in await restored.aget_all()] == said
    await restored.aput(user("Which tea?"))
    assert [message.content for message in await restored.aget_all()] == [*said, "Which tea?"]
    assert [message.content for message in await memory.aget_all()] == said
    for each in (restored, memory):
        each.close()


# The loop, and others


async def test_21159_the_loop_goes_on_while_the_embedder_hangs(open_store: OpenStore, gated: Any) -> None:
    store = open_store(embedder=gated)
    store.add("green tea", access=ANN)
    memory = twofold_memory(store, access=ANN)
    recall = asyncio.create_task(memory.aget(input="Which tea?"))
    while not gated.entered.is_set():
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
        assert not recall.done()
    gated.gate.set()
    assert "green tea" in str((await recall)[0].content)
    assert gated.in_time == [True]


async def test_21159_the_loop_goes_on_while_a_message_waits_for_its_vector(open_store: OpenStore) -> None:
    entered, gate, in_time = threading.Event(), threading.Event(), []

    class Gated(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Any:
            entered.set()
            in_time.append(gate.wait(60))
            return super().embed(texts, kind)

    store = open_store(embedder=Gated())
    memory = twofold_memory(store, access=ANN)
    put = asyncio.create_task(memory.aput(user("I like tea.")))
    while not entered.is_set():
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
        assert not put.done()
    gate.set()
    await put
    assert (texts_of(store), in_time) == ({"I like tea."}, [True])


async def test_23184_many_use_a_new_file_at_once(tmp_path: Any) -> None:
    blocks = [
        TwofoldMemoryBlock(path=str(tmp_path / "memory.db"), access=Access(user=str(number))) for number in range(4)
    ]
    await asyncio.gather(
        *(block.aput([user(f"tea {turn}")], session_id="monday") for block in blocks for turn in range(3)),
        *(block.aput([], session_id="monday") for block in blocks),
    )
    for number, block in enumerate(blocks):
        assert texts_of(block.opened(), Access(user=str(number))) == {f"tea {turn}" for turn in range(3)}
        block.close()


@pytest.mark.parametrize("how", ["put", "get", "set", "get_all", "reset"])
async def test_a_call_that_is_broken_off_breaks_no_memory(open_store: OpenStore, how: str) -> None:
    """LlamaIndex's own ``Memory`` has no history and no table any more if a call is cancelled while it waits."""
    memory = twofold_memory(open_store(embedder=None), access=ANN, session_id="monday")
    first = user("I like tea.")
    calls: dict[str, Callable[[], Any]] = {
        "put": lambda: memory.aput(user("And milk.")),
        "get": lambda: memory.aget("tea?"),
        "set": lambda: memory.aset([first]),
        "get_all": memory.aget_all,
        "reset": memory.areset,
    }
    for turns in range(8):
        await memory.aput(first)
        task = asyncio.create_task(calls[how]())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert all(message.content in {"I like tea.", "And milk."} for message in await memory.aget_all())
    while under_way := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(under_way)
    await memory.aput(user("Begin anew."))
    assert (await memory.aget_all())[-1].content == "Begin anew."
    assert texts_of(memory.memory_blocks[0].opened()) >= {"I like tea.", "Begin anew."}
