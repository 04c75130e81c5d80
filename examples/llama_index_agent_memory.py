"""A LlamaIndex agent that remembers two users apart, over three turns each, with a canned model: no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import MockLLM
from sqlalchemy.ext.asyncio import create_async_engine

import twofold
from llama_index.memory.twofold import twofold_memory
from twofold import Access, HybridStore


class Canned(MockLLM):
    """Stands for your model: says "I see.", and keeps what it was told."""

    told: list[str] = []  # noqa: RUF012 - pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    async def astream_chat_with_tools(self, *_tools: Any, chat_history: list[ChatMessage], **_options: Any) -> Any:
        self.told.append("\n".join(str(message.content) for message in chat_history if message.role == "system"))

        async def stream() -> AsyncIterator[ChatResponse]:
            yield ChatResponse(message=ChatMessage("I see.", role="assistant"), delta="I see.")

        return stream()

    def get_tool_calls_from_response(self, *_response: Any, **_options: Any) -> list[Any]:
        return []


async def talk(store: HybridStore) -> None:
    model = Canned()
    histories = create_async_engine("sqlite+aiosqlite:///talks_history.db")  # LlamaIndex's own, of what was said when
    for user, drink in (("ann", "green tea"), ("ben", "black coffee")):
        for day, said in (
            ("monday", f"I drink {drink}."),
            ("tuesday", "I live by the sea."),
            ("wednesday", "What do I drink?"),
        ):
            memory = twofold_memory(
                store,
                access=Access(user=user),  # whose memories these are; the model has no say in it
                session_id=f"{user}, {day}",
                sessions="all",  # recall what the same user said in other conversations too
                roles=("user",),  # what the agent itself said is not worth remembering here
                async_engine=histories,
            )
            agent = FunctionAgent(llm=model, tools=[], system_prompt="Be brief.")
            await agent.run(user_msg=said, memory=memory)
            history = [message.role.value for message in await memory.aget_all()]
            assert history[-2:] == ["user", "assistant"]
            assert "system" not in history  # what is recalled does not pile up in it
        print(f"What the model was told before {user}'s last question:\n{model.told[-1]}\n")
        assert f"I drink {drink}." in model.told[-1]
    assert "tea" not in model.told[-1]  # nothing of Ann's reaches Ben
    await histories.dispose()


with twofold.open("talks.db", embedder="local") as store:
    asyncio.run(talk(store))
