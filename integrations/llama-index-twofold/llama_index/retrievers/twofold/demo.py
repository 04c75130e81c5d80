"""What ``twofold demo`` shows of LlamaIndex: a query engine over the store, without a model or a network."""

from __future__ import annotations

import re
from textwrap import shorten
from typing import Any

from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.retrievers.twofold.base import TwofoldRetriever
from twofold import HybridStore

__all__ = ["run"]

_PROMPT = PromptTemplate("Answer from these notes:\n{context_str}\n\nQuestion: {query_str}\n")
_QUOTED = 160  # characters: the beginning of a note says enough
_NOTE = re.compile(r"^\[\d+\] (.+)$", re.MULTILINE)


class _Numbered(BaseNodePostprocessor):
    """Makes of each node one numbered line of text, without metadata."""

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002 - the same whatever was asked
    ) -> list[NodeWithScore]:
        for place, found in enumerate(nodes, start=1):
            found.node.excluded_llm_metadata_keys = list(found.metadata)
            found.node.set_content(f"[{place}] {' '.join(found.text.split())}")
        return nodes


class _QuotingLLM(CustomLLM):
    """Stands for a model: quotes the first note of the prompt that it is given."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="quoting")

    def complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002, FBT001, FBT002 - the signature is LlamaIndex's
        **kwargs: Any,  # noqa: ARG002 - likewise
    ) -> CompletionResponse:
        notes = _NOTE.findall(prompt)
        answer = "The notes say nothing of this."
        if notes:
            answer = f'According to note 1 of {len(notes)}: "{shorten(notes[0], _QUOTED, placeholder=" …")}"'
        return CompletionResponse(text=answer)

    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: FBT001, FBT002 - the signature is LlamaIndex's
        **kwargs: Any,
    ) -> CompletionResponseGen:
        yield self.complete(prompt, formatted=formatted, **kwargs)


def run(store: HybridStore, question: str) -> str:
    """Answer ``question`` by a LlamaIndex query engine with a stand-in for a model.

    Args:
        store: what is searched.
        question: what is asked.
    """
    engine = RetrieverQueryEngine.from_args(
        TwofoldRetriever(store, similarity_top_k=3),
        llm=_QuotingLLM(),
        text_qa_template=_PROMPT,
        node_postprocessors=[_Numbered()],
    )
    return str(engine.query(question))
