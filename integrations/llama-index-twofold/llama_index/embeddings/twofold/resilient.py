"""An embedding model that may be down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding, mean_agg
from llama_index.core.bridge.pydantic import Field, PrivateAttr, SerializeAsAny

from llama_index.embeddings.twofold.base import as_embedder
from twofold import ConfigurationError, EmbedderState, EmbeddingError, EmbeddingSettings
from twofold.embedders import Guard

__all__ = ["ResilientEmbedding"]


class ResilientEmbedding(BaseEmbedding):
    """An embedding model whose failures stop nothing: where it has no vector to give, the embedding is ``[]``.

    ``IngestionPipeline``, ``VectorStoreIndex`` and its retrievers pass ``[]`` on, and ``TwofoldVectorStore`` takes it
    for "no vector": nodes are stored and found by keyword, and get their vectors later, from
    ``TwofoldVectorStore(..., embed_model=inner)``. Other vector stores cannot do with it.

    The model is waited for no longer than a deadline, also if it hangs, and left alone for a while after it failed.
    What it gives is checked: of the wrong count, empty, zero and non-finite vectors come to ``[]`` too. It is asked in
    threads of its own, by its sync methods, so that async callers never block the event loop.

    Args:
        inner: any LlamaIndex embedding model; its own cache, if it has one, goes on to be used.
        settings: deadlines and pauses. Default: ``EmbeddingSettings()``, which says them.

    Raises:
        ConfigurationError: ``inner`` is no embedding model, or an ``embeddings_cache`` is given: it would keep ``[]``.

    Example:
        ``ResilientEmbedding(OllamaEmbedding("nomic-embed-text"))``
    """

    inner: SerializeAsAny[BaseEmbedding] = Field(description="The embedding model that is asked.")

    _settings: EmbeddingSettings = PrivateAttr()
    _guard: Guard = PrivateAttr()

    def __init__(self, inner: BaseEmbedding, *, settings: EmbeddingSettings | None = None, **options: Any) -> None:
        if not isinstance(inner, BaseEmbedding):
            raise ConfigurationError(f"inner is a LlamaIndex BaseEmbedding, not {type(inner).__name__}")
        if options.get("embeddings_cache") is not None:
            raise ConfigurationError("embeddings_cache would keep what failed: give it to the inner model")
        own: dict[str, Any] = {"model_name": inner.model_name, "embed_batch_size": inner.embed_batch_size, **options}
        super().__init__(inner=inner, **own)  # type: ignore[call-arg]  # a field of this class
        self._settings = EmbeddingSettings() if settings is None else settings
        self._guard = Guard(as_embedder(inner, name=inner.model_name), self._settings)

    @classmethod
    def class_name(cls) -> str:
        """Its name in dumps."""
        return "ResilientEmbedding"

    @property
    def state(self) -> EmbedderState:
        """How the model does: whether it is left alone, until when, and what went wrong last."""
        return self._guard.state

    def _get_query_embedding(self, query: str) -> list[float]:
        try:
            return self._guard.query(query).tolist()  # type: ignore[no-any-return]  # numpy says Any
        except EmbeddingError:
            return []

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[] if isinstance(row, EmbeddingError) else row.tolist() for row in self._guard.documents(texts)]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    def get_agg_embedding_from_queries(
        self, queries: list[str], agg_fn: Callable[..., list[float]] | None = None
    ) -> list[float]:
        """The mean, or what ``agg_fn`` makes of them, of the queries that have a vector; ``[]`` if none has."""
        return _aggregated([self.get_query_embedding(query) for query in queries], agg_fn)

    async def aget_agg_embedding_from_queries(
        self, queries: list[str], agg_fn: Callable[..., list[float]] | None = None
    ) -> list[float]:
        """Async twin of :meth:`get_agg_embedding_from_queries`."""
        return _aggregated([await self.aget_query_embedding(query) for query in queries], agg_fn)

    def __copy__(self) -> Self:
        return type(self)(self.inner, settings=self._settings, **self._own_options())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.inner, self._settings, self._own_options())

    def _own_options(self) -> dict[str, Any]:
        names = ("model_name", "embed_batch_size", "num_workers")
        return {name: getattr(self, name) for name in names}


def _made_again(
    kind: type[ResilientEmbedding], inner: BaseEmbedding, settings: EmbeddingSettings, options: dict[str, Any]
) -> ResilientEmbedding:
    return kind(inner, settings=settings, **options)


def _aggregated(embeddings: list[list[float]], agg_fn: Callable[..., list[float]] | None) -> list[float]:
    there = [embedding for embedding in embeddings if embedding]
    return (mean_agg if agg_fn is None else agg_fn)(there) if there else []
