"""LlamaIndex embedding models and twofold."""

from llama_index.embeddings.twofold.base import as_embedder

__all__ = ["as_embedder"]
