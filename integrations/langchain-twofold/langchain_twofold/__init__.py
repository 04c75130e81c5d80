"""twofold for LangChain.

::

    store = twofold.open("memory.db", embedder=as_embedder(OllamaEmbeddings(model="nomic-embed-text")))
    retriever = TwofoldRetriever(store=store, k=4)
    retriever.invoke("where is the deploy key?", access=twofold.Access(user="u1"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_twofold.documents import SCORES_KEY
from langchain_twofold.embedders import as_embedder
from langchain_twofold.messages import as_messages
from langchain_twofold.options import DiverseOptions, SearchOptions
from langchain_twofold.recordmanager import TwofoldRecordManager
from langchain_twofold.retrievers import DEGRADED_EVENT, TwofoldRetriever
from langchain_twofold.tools import create_memory_save_tool, create_memory_search_tool
from langchain_twofold.translator import TwofoldTranslator
from langchain_twofold.vectorstores import TwofoldVectorStore, TwofoldVectorStoreRetriever

if TYPE_CHECKING:
    from langchain_twofold.agents import TwofoldMemoryMiddleware
    from langchain_twofold.graph import TwofoldStore

__all__ = [
    "DEGRADED_EVENT",
    "SCORES_KEY",
    "DiverseOptions",
    "SearchOptions",
    "TwofoldMemoryMiddleware",
    "TwofoldRecordManager",
    "TwofoldRetriever",
    "TwofoldStore",
    "TwofoldTranslator",
    "TwofoldVectorStore",
    "TwofoldVectorStoreRetriever",
    "as_embedder",
    "as_messages",
    "create_memory_save_tool",
    "create_memory_search_tool",
]


_EXTRAS = {
    "TwofoldMemoryMiddleware": ("langchain_twofold.agents", "agents", ("langchain", "langgraph")),
    "TwofoldStore": ("langchain_twofold.graph", "langgraph", ("langgraph",)),
}
"""By name, its module, the extra that it needs, and the packages that this brings."""


def __getattr__(name: str) -> Any:
    """What needs an extra: loaded when it is asked for."""
    if name not in _EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra, packages = _EXTRAS[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise ImportError(f"{name} needs an extra: pip install 'langchain-twofold[{extra}]'") from error
