"""What a store embeds with, given whatever LlamaIndex or twofold calls a model."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding

from llama_index.embeddings.twofold.base import as_embedder
from llama_index.embeddings.twofold.none import NoEmbedding
from llama_index.embeddings.twofold.resilient import ResilientEmbedding
from twofold import ConfigurationError, Embedder

__all__ = ["store_embedder"]


def store_embedder(
    embed_model: BaseEmbedding | Embedder | str | None, name: str | None = None
) -> Embedder | str | None:
    """The ``embedder`` of ``twofold.open(...)`` that ``embed_model`` stands for.

    Args:
        embed_model: a LlamaIndex embedding model, or whatever ``twofold.open`` takes itself. ``NoEmbedding()`` stands
            for none, and ``ResilientEmbedding`` for its inner model: a store waits for it, and leaves it alone, by
            rules of its own.
        name: names a LlamaIndex embedding model that does not say which it is. Default: its own name.

    Raises:
        ConfigurationError: see :func:`as_embedder`; or a ``name`` is given for what has one, or for none.
    """
    if isinstance(embed_model, ResilientEmbedding):
        embed_model = embed_model.inner
    if isinstance(embed_model, BaseEmbedding) and not isinstance(embed_model, NoEmbedding):
        return as_embedder(embed_model, name=name)
    if name is not None:
        raise ConfigurationError("embed_model_name names a LlamaIndex embedding model; this one has its own name")
    return None if isinstance(embed_model, NoEmbedding) else embed_model
