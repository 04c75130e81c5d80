"""A vector store and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

import twofold
from langchain_twofold.embedders import as_embedder
from langchain_twofold.opening import Holding, held, settings_of
from langchain_twofold.options import as_where
from twofold import (
    Access,
    AddReport,
    ConfigurationError,
    Embedder,
    HybridStore,
    Mode,
    SearchParams,
    SearchResult,
)

__all__ = ["Base"]


class Base(Holding, VectorStore):
    """What writing and searching stand on; see :class:`~langchain_twofold.TwofoldVectorStore` for the arguments."""

    def __init__(
        self,
        store: HybridStore | str | PathLike[str] = ":memory:",
        *,
        embedding: Embeddings | Embedder | str | None = None,
        embedding_name: str | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        encode: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(namespace, str):
            raise ConfigurationError(f"namespace is a tuple of words, e.g. ({namespace!r},), not {namespace!r}")
        self._namespace = tuple(namespace)
        as_where(None, self._namespace)  # refuses what is no namespace
        try:
            self._mode = Mode(mode)
        except ValueError:
            raise ConfigurationError(f"mode is one of {', '.join(Mode)}, not {mode!r}") from None
        self._embeddings = embedding if isinstance(embedding, Embeddings) else None
        named = {"embedding": embedding, "embedding_name": embedding_name}
        given = [*(name for name, value in named.items() if value is not None), *sorted(settings)]
        self._store, self._opened_here = held(
            store,
            given,
            lambda path: twofold.open(
                path, embedder=_embedder(embedding, embedding_name), settings=settings_of(settings)
            ),
        )
        self._access = access
        self._params = params
        self._encode = encode
        self._last_result: SearchResult | None = None
        self._last_added: AddReport | None = None

    @property
    def namespace(self) -> tuple[str, ...]:
        """Where the documents are."""
        return self._namespace

    @property
    def access(self) -> Access | None:
        """Who asks where a call does not say; None: whom the store is bound to, else ``Access()``."""
        return self._access

    @property
    def mode(self) -> Mode:
        """How it searches where a call does not say."""
        return self._mode

    @property
    def params(self) -> SearchParams | None:
        """How it ranks where a call does not say; None: as the store's settings."""
        return self._params

    @property
    def embeddings(self) -> Embeddings | None:
        """The LangChain embedding model that was given, if one was."""
        return self._embeddings

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the search that ended last, whosever it was, with degradations, scores and timings."""
        return self._last_result

    @property
    def last_added(self) -> AddReport | None:
        """What became of the documents that were added last, whosever they were: how many wait for vectors, and why."""
        return self._last_added

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, namespace={self._namespace!r})"

    def _asker(self, access: Access | None) -> Access | None:
        return self._access if access is None else access


def _embedder(embedding: Embeddings | Embedder | str | None, name: str | None) -> Embedder | str | None:
    if isinstance(embedding, Embeddings):
        return as_embedder(embedding, name=name)
    if name is not None:
        raise ConfigurationError("embedding_name names a LangChain embedding model, embedding=..., and none is given")
    return embedding
