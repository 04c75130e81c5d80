"""The store as a LangChain vector store."""

from langchain_twofold.vectorstores.store import TwofoldVectorStore, TwofoldVectorStoreRetriever

__all__ = ["TwofoldVectorStore", "TwofoldVectorStoreRetriever"]
