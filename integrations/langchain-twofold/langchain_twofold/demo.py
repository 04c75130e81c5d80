"""What ``twofold demo`` shows of LangChain: a chain over the store, without a model or a network."""

from __future__ import annotations

import re
from textwrap import shorten
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from langchain_twofold.retrievers import TwofoldRetriever
from twofold import HybridStore

__all__ = ["run"]

_PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from these notes:\n{notes}"), ("human", "{question}")])
_QUOTED = 160  # characters: the beginning of a note says enough
_NOTE = re.compile(r"^\[\d+\] (.+)$", re.MULTILINE)


class _QuotingChatModel(BaseChatModel):
    """Stands for a chat model: quotes the first note of the prompt that it is given."""

    @property
    def _llm_type(self) -> str:
        return "quoting"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - one line is too short to be stopped
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - nothing is streamed
        **kwargs: Any,  # noqa: ARG002 - the signature is LangChain's
    ) -> ChatResult:
        notes = _NOTE.findall(str(messages[0].content))
        answer = "The notes say nothing of this."
        if notes:
            answer = f'According to note 1 of {len(notes)}: "{shorten(notes[0], _QUOTED, placeholder=" …")}"'
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def run(store: HybridStore, question: str) -> str:
    """Answer ``question`` by a LangChain chain: retriever, prompt, a stand-in for a chat model, parser.

    Args:
        store: what is searched.
        question: what is asked.
    """
    retriever = TwofoldRetriever(store=store, k=3)
    notes = retriever | RunnableLambda(_numbered)
    chain: Runnable[str, str] = (
        {"notes": notes, "question": RunnablePassthrough()} | _PROMPT | _QuotingChatModel() | StrOutputParser()
    )
    return chain.invoke(question)


def _numbered(documents: list[Document]) -> str:
    return "\n".join(f"[{place}] {' '.join(each.page_content.split())}" for place, each in enumerate(documents, 1))
