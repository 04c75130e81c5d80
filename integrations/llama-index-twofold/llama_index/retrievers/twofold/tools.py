"""The retriever as a tool of an agent, and what other tools make of a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from llama_index.retrievers.twofold.base import TwofoldRetriever

__all__ = ["DESCRIPTION", "as_asked", "as_tool"]

DESCRIPTION = "Search the notes that are kept. Gives those that fit the query, the most fitting first."
"""What a model is told of the tool unless it is told something else."""

_WRAPPED = re.compile(r"\ninput is (.*)\n", re.DOTALL)
"""What LlamaIndex's ``RetrieverTool`` makes of the question of a model."""


class _Query(BaseModel):
    query: str = Field(description="What to look for, in words.")


def as_asked(query_str: str) -> str:
    """``query_str`` without the words that LlamaIndex's ``RetrieverTool`` puts around it, which are no part of it."""
    wrapped = _WRAPPED.fullmatch(query_str)
    return query_str if wrapped is None else wrapped[1]


def as_tool(
    retriever: TwofoldRetriever,
    *,
    name: str,
    description: str,
    node_postprocessors: Sequence[BaseNodePostprocessor],
) -> FunctionTool:
    """See :meth:`TwofoldRetriever.as_tool`."""

    def search(query: str) -> list[NodeWithScore]:
        found = retriever.retrieve(query)
        for each in node_postprocessors:
            found = each.postprocess_nodes(found, query_str=query)
        return found

    async def asearch(query: str) -> list[NodeWithScore]:
        found = await retriever.aretrieve(query)
        for each in node_postprocessors:
            found = await each.apostprocess_nodes(found, query_str=query)
        return found

    async def ashown(found: list[NodeWithScore]) -> str:
        return _shown(found)

    return FunctionTool.from_defaults(
        fn=search,
        async_fn=asearch,
        name=name,
        description=description,
        fn_schema=_Query,
        callback=_shown,
        async_callback=ashown,
    )


def _shown(found: list[NodeWithScore]) -> str:
    """What the model reads."""
    if not found:
        return "Nothing was found."
    texts = (each.node.get_content(metadata_mode=MetadataMode.LLM) for each in found)
    return "\n\n".join(f"[{place}] {text}" for place, text in enumerate(texts, start=1))
