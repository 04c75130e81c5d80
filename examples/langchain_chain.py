"""A LangChain chain that answers from a store, with a canned chat model: no network, no key."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

import twofold
from langchain_twofold import TwofoldRetriever
from twofold import Access


def as_notes(documents: list[Document]) -> str:
    return "\n".join(f"- {document.page_content}" for document in documents)


with twofold.open("chain.db", embedder="local") as store:
    store.add("The deploy key lives in the vault.")
    store.add("Deployments run every Friday at noon.")
    store.add("Ann keeps a spare key under the mat.", access=Access(user="ann"))

    prompt = ChatPromptTemplate.from_template("Answer from these notes:\n{notes}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=["In the vault."])

    retriever = TwofoldRetriever(store=store.view(Access(user="ben")), k=2)
    notes = retriever | as_notes
    chain = {"notes": notes, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

    question = "where is the deploy key?"
    print("The model is shown:\n" + notes.invoke(question))
    print("and says: " + chain.invoke(question))
    assert "vault" in notes.invoke(question)
    assert "mat" not in notes.invoke("where is the spare key?")  # that is Ann's
