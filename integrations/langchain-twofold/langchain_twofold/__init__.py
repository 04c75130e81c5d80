"""twofold for LangChain.

::

    store = twofold.open("memory.db", embedder=as_embedder(OllamaEmbeddings(model="nomic-embed-text")))
    retriever = TwofoldRetriever(store=store, k=4)
    retriever.invoke("where is the deploy key?", access=twofold.Access(user="u1"))
"""

from langchain_twofold.documents import SCORES_KEY
from langchain_twofold.embedders import as_embedder
from langchain_twofold.messages import as_messages
from langchain_twofold.options import DiverseOptions, SearchOptions
from langchain_twofold.retrievers import DEGRADED_EVENT, TwofoldRetriever
from langchain_twofold.vectorstores import TwofoldVectorStore, TwofoldVectorStoreRetriever

__all__ = [
    "DEGRADED_EVENT",
    "SCORES_KEY",
    "DiverseOptions",
    "SearchOptions",
    "TwofoldRetriever",
    "TwofoldVectorStore",
    "TwofoldVectorStoreRetriever",
    "as_embedder",
    "as_messages",
]
