"""Searching by similarity, and by maximal marginal relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document

from langchain_twofold.documents import as_document
from langchain_twofold.options import DiverseOptions, SearchOptions, as_where, checked_options, ranked_by
from langchain_twofold.vectorstores.base import Base
from twofold import (
    Access,
    ConfigurationError,
    Filter,
    Mode,
    SearchParams,
    SearchResult,
)

__all__ = ["Searching"]


class _Asked(TypedDict):
    """The arguments of one search."""

    k: int
    offset: int
    access: Access | None
    where: Filter
    mode: Mode | str
    params: SearchParams
    vector: Sequence[float] | npt.NDArray[np.float32] | None


class Searching(Base):
    """The calls that search, each with its async twin."""

    def similarity_search(  # type: ignore[override]  # names what LangChain leaves open
        self, query: str, k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[Document]:
        """The documents that answer best, the best first.

        Args:
            query: what is asked, any characters.
            k: how many at most. Default: 4.
            options: see :class:`~langchain_twofold.SearchOptions`.

        Raises:
            SearchUnavailableError: the leg asked for by mode cannot answer.
            TypeError: an unknown option.
            ValueError: an option cannot be used.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    async def asimilarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[Document]:
        """Async twin of :meth:`similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """As :meth:`similarity_search`, each with its score: 0 to 1, higher is better.

        What a score means depends on the mode: ``"vector"`` gives the cosine (0 where it is negative), ``"keyword"``
        the share of the best keyword match, ``"hybrid"``, by default, at most 0.6 for meaning and 0.4 for words.
        """
        return self._scored(self._store.search(query, **self._asked(k, checked_options(options))))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """Async twin of :meth:`similarity_search_with_score`."""
        return self._scored(await self._store.asearch(query, **self._asked(k, checked_options(options))))

    def similarity_search_by_vector(  # type: ignore[override]
        self, embedding: list[float], k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[Document]:
        """The documents whose vectors are nearest to ``embedding``; ``mode`` is no option here."""
        return [document for document, _ in self.similarity_search_by_vector_with_score(embedding, k, **options)]

    async def asimilarity_search_by_vector(  # type: ignore[override]
        self, embedding: list[float], k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[Document]:
        """Async twin of :meth:`similarity_search_by_vector`."""
        found = await self.asimilarity_search_by_vector_with_score(embedding, k, **options)
        return [document for document, _ in found]

    def similarity_search_by_vector_with_score(
        self, embedding: list[float], k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """As :meth:`similarity_search_by_vector`, each with its cosine (0 where it is negative)."""
        return self._scored(self._store.search("", **self._by_vector(k, options, embedding)))

    async def asimilarity_search_by_vector_with_score(
        self, embedding: list[float], k: int = 4, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """Async twin of :meth:`similarity_search_by_vector_with_score`."""
        return self._scored(await self._store.asearch("", **self._by_vector(k, options, embedding)))

    def max_marginal_relevance_search(  # type: ignore[override]
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Unpack[DiverseOptions]
    ) -> list[Document]:
        """Documents that answer well and differ from each other, in the order they were chosen (Carbonell and
        Goldstein, SIGIR 1998): each next one has the highest ``lambda · cos(query) - (1 - lambda) · max cos(chosen)``.

        If the embedding model is down the score by keyword stands for the cosine to the query. A candidate that has no
        vector yet counts as alike as the others are on average.

        Args:
            query: what is asked.
            k: how many at most. Default: 4.
            fetch_k: among how many of the best it chooses, ``k`` at least. Default: 20.
            lambda_mult: 1 is for the most fitting, 0 for the most different. Default: 0.5.
            options: see :class:`~langchain_twofold.DiverseOptions`.

        Raises:
            ConfigurationError: the store has no embedding model that texts could be compared by.
        """
        self._store.embed_queries([])  # refuses a store that has no embedding model
        asked = self._diverse(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions))
        return self._documents(self._store.search(query, **asked))

    async def amax_marginal_relevance_search(  # type: ignore[override]
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Unpack[DiverseOptions]
    ) -> list[Document]:
        """Async twin of :meth:`max_marginal_relevance_search`."""
        await self._store.aembed_queries([])
        asked = self._diverse(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions))
        return self._documents(await self._store.asearch(query, **asked))

    def max_marginal_relevance_search_by_vector(  # type: ignore[override]
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Unpack[DiverseOptions],
    ) -> list[Document]:
        """As :meth:`max_marginal_relevance_search`, among the documents nearest to ``embedding``; ``mode`` is no option
        here.
        """
        asked = self._diverse_by_vector(embedding, k, fetch_k, lambda_mult, options)
        return self._documents(self._store.search("", **asked))

    async def amax_marginal_relevance_search_by_vector(  # type: ignore[override]
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Unpack[DiverseOptions],
    ) -> list[Document]:
        """Async twin of :meth:`max_marginal_relevance_search_by_vector`."""
        asked = self._diverse_by_vector(embedding, k, fetch_k, lambda_mult, options)
        return self._documents(await self._store.asearch("", **asked))

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: score

    def _asked(self, k: int, options: SearchOptions) -> _Asked:
        mode = options.get("mode")
        return _Asked(
            k=k,
            offset=options.get("offset", 0),
            access=self._asker(options.get("access")),
            where=as_where(options.get("filter"), self._namespace),
            mode=self._mode if mode is None else mode,
            params=ranked_by(options, self._store.settings.search if self._params is None else self._params),
            vector=None,
        )

    def _by_vector(self, k: int, options: Any, embedding: Sequence[float]) -> _Asked:
        asked = self._asked(k, checked_options(options, without="mode"))
        asked["vector"], asked["mode"] = embedding, Mode.VECTOR
        return asked

    def _diverse(self, k: int, fetch_k: int, lambda_mult: float, options: SearchOptions) -> _Asked:
        if isinstance(lambda_mult, bool) or not isinstance(lambda_mult, (int, float)) or not 0 <= lambda_mult <= 1:
            raise ConfigurationError(f"lambda_mult is a number from 0 to 1, not {lambda_mult!r}")
        asked = self._asked(k, options)
        among = max(1, fetch_k, asked["offset"] + k)
        asked["params"] = replace(asked["params"], mmr_lambda=lambda_mult, mmr_pool=among, mmr_relevance="cosine")
        return asked

    def _diverse_by_vector(
        self, embedding: Sequence[float], k: int, fetch_k: int, lambda_mult: float, options: Any
    ) -> _Asked:
        asked = self._diverse(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions, without="mode"))
        asked["vector"], asked["mode"] = embedding, Mode.VECTOR
        return asked

    def _documents(self, result: SearchResult) -> list[Document]:
        return [document for document, _ in self._scored(result)]

    def _scored(self, result: SearchResult) -> list[tuple[Document, float]]:
        self._last_result = result
        return [(as_document(hit), hit.score) for hit in (*result.hits, *result.linked)]
