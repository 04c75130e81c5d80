"""A LlamaIndex embedding model as the embedder of a store."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding

from twofold import ConfigurationError, Embedder
from twofold.embedders import EmbeddingKind

__all__ = ["as_embedder"]

_NAMELESS = "unknown"
"""What LlamaIndex calls a model that was given no name."""


def as_embedder(embed_model: BaseEmbedding, *, name: str | None = None, dimension: int | None = None) -> Embedder:
    """An embedder for ``twofold.open(..., embedder=...)``; queries and texts each go where the model has them go.

    Args:
        embed_model: any LlamaIndex embedding model. Nothing is called here.
        name: names the model, and whatever else changes its vectors (an instruction, say). It is stored with them,
            and vectors of two names are never compared. Default: the class and its ``model_name``, with
            ``dimensions`` if it has those.
        dimension: how many numbers a vector has. Default: the model's ``dimensions``, else learnt from its answers.

    Raises:
        ConfigurationError: it is no embedding model; it does not say which model it is and no ``name`` is given; or
            ``dimension`` is not a whole number of at least 1.
    """
    if not isinstance(embed_model, BaseEmbedding):
        raise ConfigurationError(f"embed_model is a LlamaIndex BaseEmbedding, not {type(embed_model).__name__}")
    stated = getattr(embed_model, "dimensions", None)
    stated = stated if isinstance(stated, int) and stated > 0 else None
    if dimension is not None and (isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1):
        raise ConfigurationError(f"dimension must be a whole number of at least 1, not {dimension!r}")
    if name is None:
        name = _own_name(embed_model, stated)
    elif not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"name must be a text that names the model, not {name!r}")
    return _LlamaIndexEmbedder(embed_model, f"llama-index:{name}", stated if dimension is None else dimension)


def _own_name(embed_model: BaseEmbedding, dimensions: int | None) -> str:
    kind, model = type(embed_model).__name__, embed_model.model_name
    if not model or model == _NAMELESS:
        raise ConfigurationError(
            f"{kind} does not say which model it is, and vectors of two models must never be compared; "
            "name it: as_embedder(embed_model, name='the model'), or embed_model_name='the model' beside embed_model"
        )
    return f"{kind}:{model}" if dimensions is None else f"{kind}:{model}:{dimensions}"


class _LlamaIndexEmbedder:
    """See :func:`as_embedder`."""

    def __init__(self, embed_model: BaseEmbedding, fingerprint: str, dimension: int | None) -> None:
        self._embed_model = embed_model
        self._fingerprint = fingerprint
        self._dimension = dimension

    def __repr__(self) -> str:
        return f"as_embedder({self._fingerprint!r})"  # not the model, which may show a key

    @property
    def fingerprint(self) -> str:
        """``llama-index:`` and the name."""
        return self._fingerprint

    @property
    def dimension(self) -> int | None:
        """As given or stated; else None."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Sequence[Sequence[float]]:
        """One vector a text; raises what the model raises."""
        if kind == "query":
            return [self._embed_model.get_query_embedding(text) for text in texts]
        return self._embed_model.get_text_embedding_batch(list(texts))
