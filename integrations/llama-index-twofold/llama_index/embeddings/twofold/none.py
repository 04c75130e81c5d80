"""No embedding model at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

__all__ = ["NoEmbedding"]


class NoEmbedding(BaseEmbedding):
    """Goes where LlamaIndex insists on an embedding model and there is none, or where the store has its own.

    Every embedding is ``[]``, which ``IngestionPipeline``, ``VectorStoreIndex`` and its retrievers pass on and which
    ``TwofoldVectorStore`` takes for "no vector". Other vector stores cannot do with it.

    Example:
        ``VectorStoreIndex.from_vector_store(TwofoldVectorStore("notes.db"), embed_model=NoEmbedding())``
    """

    model_name: str = "none"

    @classmethod
    def class_name(cls) -> str:
        """Its name in dumps."""
        return "NoEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:  # noqa: ARG002 - whatever was asked
        return []

    async def _aget_query_embedding(self, query: str) -> list[float]:  # noqa: ARG002 - likewise
        return []

    def _get_text_embedding(self, text: str) -> list[float]:  # noqa: ARG002 - likewise
        return []

    async def _aget_text_embedding(self, text: str) -> list[float]:  # noqa: ARG002 - likewise
        return []

    def get_agg_embedding_from_queries(
        self,
        queries: list[str],  # noqa: ARG002 - likewise
        agg_fn: Callable[..., Any] | None = None,  # noqa: ARG002 - there is nothing to aggregate
    ) -> list[float]:
        """``[]``."""
        return []

    async def aget_agg_embedding_from_queries(
        self,
        queries: list[str],  # noqa: ARG002 - likewise
        agg_fn: Callable[..., Any] | None = None,  # noqa: ARG002 - likewise
    ) -> list[float]:
        """``[]``."""
        return []
