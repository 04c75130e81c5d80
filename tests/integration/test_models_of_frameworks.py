"""A language model of LangChain or LlamaIndex writes for HyDE as it is."""

from __future__ import annotations

from typing import Any

import pytest

import twofold
from twofold import SearchParams
from twofold.testing import TableEmbedder

TABLE = {
    "why late?": [1.0, 0.0],
    "snow on the rails": [0.0, 1.0],
    "a train that is late": [1.0, 0.1],
    "the rails lie under snow": [0.1, 1.0],
}


def langchain_chat_model(answer: str) -> Any:
    models = pytest.importorskip("langchain_core.language_models", reason="langchain-core is not installed")
    return models.FakeListChatModel(responses=[answer] * 9)


def langchain_llm(answer: str) -> Any:
    models = pytest.importorskip("langchain_core.language_models", reason="langchain-core is not installed")
    return models.FakeListLLM(responses=[answer] * 9)


def llama_index_llm(answer: str) -> Any:
    llms = pytest.importorskip("llama_index.core.llms", reason="llama-index-core is not installed")

    class Answering(llms.CustomLLM):  # type: ignore[misc, name-defined]
        @property
        def metadata(self) -> Any:
            return llms.LLMMetadata()

        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            assert "why late?" in prompt
            return llms.CompletionResponse(text=answer)

        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Answering()


@pytest.mark.parametrize("make", [langchain_chat_model, langchain_llm, llama_index_llm])
async def test_what_it_writes_is_looked_for(make: Any) -> None:
    params = SearchParams(hyde_vector="replace")
    for answer, first in (("snow on the rails", "snow"), ("why late?", "late")):
        with twofold.open(":memory:", embedder=TableEmbedder(TABLE), hyde=make(answer)) as store:
            store.add("a train that is late", id="late")
            store.add("the rails lie under snow", id="snow")
            found = store.search("why late?", mode="vector", params=params)
            assert not found.degraded
            assert found[0].id == first
            assert (await store.asearch("why late?", mode="vector", params=params)).ids == found.ids
