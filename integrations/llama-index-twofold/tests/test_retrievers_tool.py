"""``TwofoldRetriever`` as a tool of an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import RetrieverTool

from llama_index.retrievers.twofold import TwofoldRetriever, TwofoldSearchEvent
from twofold import Access, HybridStore
from twofold.testing import FailingEmbedder

OpenStore = Callable[..., HybridStore]


@pytest.fixture
def notes(open_store: OpenStore) -> HybridStore:
    store = open_store(embedder=None)
    store.add("The terminal has a dark mode.", id="dark", metadata={"team": "ops"})
    store.add("What is the input of the tool?", id="words")
    return store


async def test_the_model_gives_a_query_and_reads_texts(notes: HybridStore, recorder: Any) -> None:
    tool = TwofoldRetriever(notes).as_tool(name="notes", description="Notes.")
    assert (tool.metadata.name, tool.metadata.description) == ("notes", "Notes.")
    schema = tool.metadata.get_parameters_dict()
    assert list(schema["properties"]) == schema["required"] == ["query"]
    for output in (tool.call(query="dark mode"), await tool.acall(query="dark mode")):
        assert output.content == "[1] team: ops\n\nThe terminal has a dark mode."
        assert [each.node_id for each in output.raw_output] == ["dark"]
        assert output.tool_name == "notes"
    assert [event.query_str for event in recorder.of(TwofoldSearchEvent)] == ["dark mode"] * 2


async def test_nothing_found_is_said_in_words(notes: HybridStore) -> None:
    tool = TwofoldRetriever(notes).as_tool()
    assert tool.call(query="xylophone").content == (await tool.acall(query="?")).content == "Nothing was found."


async def test_postprocessors_come_before_the_model(notes: HybridStore) -> None:
    notes.add("A dark night.", id="night")
    retriever = TwofoldRetriever(notes, scores="similarity")
    tool = retriever.as_tool(node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.9)])
    for output in (tool.call(query="dark mode"), await tool.acall(query="dark mode")):
        assert [each.node_id for each in output.raw_output] == ["dark"]


async def test_the_stock_tools_wrapping_is_no_part_of_the_question(notes: HybridStore, recorder: Any) -> None:
    r"""``RetrieverTool.call(input=...)`` asks for ``"\ninput is dark mode\n"``, which "words" would answer too."""
    tool = RetrieverTool.from_defaults(TwofoldRetriever(notes))
    for output in (tool.call(input="dark mode"), await tool.acall(input="dark mode")):
        assert [each.node_id for each in output.raw_output] == ["dark"]
    for output in (tool.call("dark mode"), await tool.acall("dark mode")):
        assert [each.node_id for each in output.raw_output] == ["dark"]
    asked = [event.query_str for event in recorder.of(TwofoldSearchEvent)]
    assert asked[:2] == ["dark mode"] * 2


@pytest.mark.parametrize("asked", ["input is dark mode", "\ninput is dark mode", "what input is\n"])
def test_words_of_the_users_own_are_kept(notes: HybridStore, asked: str, recorder: Any) -> None:
    found = TwofoldRetriever(notes).retrieve(QueryBundle(asked))
    assert "words" in [each.node_id for each in found]
    assert [event.query_str for event in recorder.of(TwofoldSearchEvent)] == [asked]


async def test_an_agent_calls_it_with_the_embedder_down(open_store: OpenStore, canned: Any) -> None:
    store = open_store(embedder=FailingEmbedder())
    store.add("The deploy key lives in the vault.", access=Access(user="ann"))
    store.add("The deploy key of ben is lost.", access=Access(user="ben"))
    canned.answers = [{"search_notes": {"query": "deploy key"}}, "In the vault."]
    tool = TwofoldRetriever(store, access=Access(user="ann")).as_tool()
    done = await FunctionAgent(tools=[tool], llm=canned).run(user_msg="Where is the deploy key?")
    assert str(done) == "In the vault."
    assert [each.content for each in canned.shown[-1] if each.role == "tool"] == [
        "[1] The deploy key lives in the vault."
    ]
