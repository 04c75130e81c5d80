"""LlamaIndex embedding models and twofold."""

from llama_index.embeddings.twofold.base import as_embedder
from llama_index.embeddings.twofold.none import NoEmbedding
from llama_index.embeddings.twofold.resilient import ResilientEmbedding

__all__ = ["NoEmbedding", "ResilientEmbedding", "as_embedder"]
