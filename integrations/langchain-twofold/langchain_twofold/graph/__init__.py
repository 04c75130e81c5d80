"""The store as LangGraph's long-term memory. Needs the extra ``langgraph``.

::

    with TwofoldStore("memory.db", index={"embed": OllamaEmbeddings(model="nomic-embed-text"), "dims": 768}) as store:
        graph = builder.compile(store=store)
"""

from langchain_twofold.graph.store import SearchMode, TwofoldStore

__all__ = ["SearchMode", "TwofoldStore"]
