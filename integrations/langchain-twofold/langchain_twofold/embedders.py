"""A LangChain embedding model as the embedder of a store."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings

from twofold import ConfigurationError, Embedder
from twofold.embedders import EmbeddingKind

__all__ = ["as_embedder"]

_MODEL_ATTRIBUTES = ("model", "model_name", "model_id")
"""Where LangChain's embedding models keep the name of their model, the more usual first."""


def as_embedder(embeddings: Embeddings, *, name: str | None = None, dimension: int | None = None) -> Embedder:
    """An embedder for ``twofold.open(..., embedder=...)``. Queries go to ``embed_query``, texts to ``embed_documents``.

    Args:
        embeddings: any LangChain embedding model. Nothing is called here.
        name: names the model, and whatever else changes its vectors (a prefix, say). It is stored with them, and
            vectors of two names are never compared. Default: the class and its ``model``, ``model_name`` or
            ``model_id``, with ``dimensions`` if it has those.
        dimension: how many numbers a vector has. Default: the model's ``dimensions``, else learnt from its answers.

    Raises:
        ConfigurationError: it is no embedding model; it does not say which model it is and no ``name`` is given; or
            ``dimension`` is not a whole number of at least 1.
    """
    if not isinstance(embeddings, Embeddings):
        raise ConfigurationError(
            f"embeddings is an object of a class derived from langchain_core.embeddings.Embeddings, not {embeddings!r}"
        )
    stated = getattr(embeddings, "dimensions", None)
    stated = stated if isinstance(stated, int) and stated > 0 else None
    if dimension is not None and (isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1):
        raise ConfigurationError(f"dimension must be a whole number of at least 1, not {dimension!r}")
    if name is None:
        name = _own_name(embeddings, stated)
    elif not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"name must be a text that names the model, not {name!r}")
    return _LangChainEmbedder(embeddings, f"langchain:{name}", stated if dimension is None else dimension)


def _own_name(embeddings: Embeddings, dimensions: int | None) -> str:
    kind = type(embeddings).__name__
    for attribute in _MODEL_ATTRIBUTES:
        model = getattr(embeddings, attribute, None)
        if isinstance(model, str) and model:
            return f"{kind}:{model}" if dimensions is None else f"{kind}:{model}:{dimensions}"
    raise ConfigurationError(
        f"{kind} does not say which model it is, and vectors of two models must never be compared; "
        "name it: as_embedder(embeddings, name='the model')"
    )


class _LangChainEmbedder:
    """See :func:`as_embedder`."""

    def __init__(self, embeddings: Embeddings, fingerprint: str, dimension: int | None) -> None:
        self._embeddings = embeddings
        self._fingerprint = fingerprint
        self._dimension = dimension

    def __repr__(self) -> str:
        return f"as_embedder({self._fingerprint!r})"  # not the model, which may show a key

    @property
    def fingerprint(self) -> str:
        """``langchain:`` and the name."""
        return self._fingerprint

    @property
    def dimension(self) -> int | None:
        """As given or stated; else None."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Sequence[Sequence[float]]:
        """One vector a text; raises what the model raises."""
        if kind == "query":
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(list(texts))
