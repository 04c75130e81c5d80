"""The store as a LangChain vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from os import PathLike
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import ConfigDict

import twofold
from langchain_twofold.documents import as_document, as_metadata
from langchain_twofold.embedders import as_embedder
from langchain_twofold.mmr import PartsByField, diverse
from langchain_twofold.options import DiverseOptions, SearchOptions, as_where, checked_options, ranked_by
from twofold import (
    Access,
    AddReport,
    ConfigurationError,
    Embedder,
    EmbeddingError,
    Filter,
    HybridStore,
    Mode,
    NewRecord,
    SearchParams,
    SearchResult,
    StoreSettings,
)

__all__ = ["TwofoldVectorStore", "TwofoldVectorStoreRetriever"]

_SEARCH_TYPES: Final = ("similarity", "similarity_score_threshold", "mmr", "hybrid", "keyword", "vector")


class _Asked(TypedDict):
    """The arguments of one search."""

    k: int
    offset: int
    access: Access | None
    where: Filter
    mode: Mode | str
    params: SearchParams
    vector: Sequence[float] | npt.NDArray[np.float32] | None


class TwofoldVectorStore(VectorStore):
    """Documents in one SQLite file, found by meaning and by keyword.

    Adding an id again replaces the document; of one id given twice in a call the last wins. Metadata comes back
    exactly. Scores are 0 to 1, higher is better. Every search takes :class:`~langchain_twofold.SearchOptions` by name
    and refuses what it does not know. A failing embedding model fails no call: documents are stored and keywords
    answer, see :attr:`last_result`. Without an embedding model it is a keyword store.

    May be used from many threads and tasks at once.

    Args:
        store: a file's path, made anew if it is not there; ``":memory:"``; or an open store.
        embedding: what makes vectors: a LangChain embedding model, or whatever ``twofold.open(embedder=...)`` takes.
            Not for an open store, which has its own. Default: none, keywords answer.
        embedding_name: names a LangChain embedding model that does not say which model it is; see :func:`as_embedder`.
        access: who asks and adds, where a call does not say. Default: that of the store if it is a view, else
            ``Access()``, who sees and adds global documents.
        namespace: where the documents are; those of other namespaces, below it too, are neither seen nor changed.
            Default: the root.
        mode: how it searches where a call does not say: ``"hybrid"``, ``"keyword"`` or ``"vector"``. Default: hybrid.
        params: how it ranks where a call does not say. Default: the store's settings.
        encode: turns a metadata value that JSON has no word for, a datetime say, into one that it has. Default: such
            a value is refused.
        settings: of a store that is opened here, the names of ``twofold.StoreSettings``, e.g. ``index="faiss-flat"``.

    Raises:
        ConfigurationError: an argument cannot be used, or is for a store that is not opened here.
        StoreError: the file cannot be opened; the message says what to do.

    Example:
        ``TwofoldVectorStore("notes.db", embedding=OllamaEmbeddings(model="nomic-embed-text"))``
    """

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
        self._opened_here = not isinstance(store, HybridStore)
        if isinstance(store, HybridStore):
            named = {"embedding": embedding, "embedding_name": embedding_name}
            given = [*(name for name, value in named.items() if value is not None), *sorted(settings)]
            if given:
                raise ConfigurationError(
                    f"{', '.join(given)}: the store is open already, with its own; "
                    "give them to twofold.open(...), or a path in place of the store"
                )
            self._store = store
        else:
            self._store = twofold.open(
                store, embedder=_embedder(embedding, embedding_name), settings=_settings(settings)
            )
        self._access = access
        self._params = params
        self._encode = encode
        self._last_result: SearchResult | None = None
        self._last_added: AddReport | None = None

    @property
    def store(self) -> HybridStore:
        """The twofold store underneath: for links, batches, contexts and all else that LangChain has no word for."""
        return self._store

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

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose ids are there. All are checked before any is written.

        Args:
            texts: the texts.
            metadatas: one a text. Default: none.
            ids: one a text; None stands for a new id. Default: new ids, in order of time.
            access: who adds them, and so whose they become. Default: the vector store's own.
            batch_size: how many are embedded and committed together. Default: 500.
            kwargs: none; LangChain's signature has them.

        Returns:
            The ids, one a text, in order.

        Raises:
            ValueError: the lists are not equally long, or a text or its metadata cannot be stored; the message says
                which. Nothing was written.
            TypeError: an unknown argument.
        """
        _refused(kwargs)
        records = self._records(list(texts), metadatas, ids)
        return self._added(self._store.add_many(records, **self._adding(access, batch_size)))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Async twin of :meth:`add_texts`."""
        _refused(kwargs)
        records = self._records(list(texts), metadatas, ids)
        return self._added(await self._store.aadd_many(records, **self._adding(access, batch_size)))

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add documents, or replace those whose ids are there; see :meth:`add_texts`, whose arguments it takes.

        Args:
            documents: the documents; they are not changed, and nothing of them is kept.
            ids: one a document. Default: the documents' own, and new ones for those without.
            kwargs: as for :meth:`add_texts`.
        """
        texts, metadatas, own = _unpacked(documents)
        return self.add_texts(texts, metadatas, ids=own if ids is None else ids, **kwargs)

    async def aadd_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Async twin of :meth:`add_documents`."""
        texts, metadatas, own = _unpacked(documents)
        return await self.aadd_texts(texts, metadatas, ids=own if ids is None else ids, **kwargs)

    def delete(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Filter | dict[str, Any] | None = None,
        access: Access | None = None,
        **kwargs: Any,
    ) -> bool:
        """Remove documents with their tokens and vectors.

        Args:
            ids: which; those that are not there are passed over. Default: all that the access may write, or of these
                those that ``filter`` fits.
            filter: which, in place of ids.
            access: who removes them. Default: the vector store's own.
            kwargs: none; LangChain's signature has them.

        Returns:
            True.

        Raises:
            AccessError: the access may see one but not remove it; nothing was removed.
            ConfigurationError: both ids and a filter are given.
        """
        _refused(kwargs)
        self._store.delete(**self._deleting(ids, filter, access))
        return True

    async def adelete(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Filter | dict[str, Any] | None = None,
        access: Access | None = None,
        **kwargs: Any,
    ) -> bool:
        """Async twin of :meth:`delete`."""
        _refused(kwargs)
        await self._store.adelete(**self._deleting(ids, filter, access))
        return True

    # Looking up

    def get_by_ids(self, ids: Sequence[str], /, *, access: Access | None = None) -> list[Document]:
        """The documents of these ids, in the order asked; those that are not there, or not seen, are left out."""
        found = self._store.get_many(ids, access=self._asker(access), namespace=self._namespace)
        return [as_document(record) for record in found]

    async def aget_by_ids(self, ids: Sequence[str], /, *, access: Access | None = None) -> list[Document]:
        """Async twin of :meth:`get_by_ids`."""
        found = await self._store.aget_many(ids, access=self._asker(access), namespace=self._namespace)
        return [as_document(record) for record in found]

    # Searching

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
        the share of the best keyword match, ``"hybrid"`` how near both rankings come to putting it first.
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

        If the embedding model is down these are the first ``k`` candidates as they are. A candidate that has no vector
        yet comes after those that have.

        Args:
            query: what is asked.
            k: how many at most. Default: 4.
            fetch_k: among how many of the best it chooses, ``k`` at least. Default: 20.
            lambda_mult: 1 is for the most fitting, 0 for the most different. Default: 0.5.
            options: see :class:`~langchain_twofold.DiverseOptions`.

        Raises:
            ConfigurationError: the store has no embedding model that texts could be compared by.
        """
        asked = self._candidates(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions))
        try:
            vector = self._store.embed_queries([query])[0]
        except EmbeddingError:
            return self._documents(self._store.search(query, **asked))[:k]
        asked["vector"] = vector
        result = self._store.search(query, **asked)
        return self._diverse(result, self._vectors(result, asked), vector, k, lambda_mult)

    async def amax_marginal_relevance_search(  # type: ignore[override]
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Unpack[DiverseOptions]
    ) -> list[Document]:
        """Async twin of :meth:`max_marginal_relevance_search`."""
        asked = self._candidates(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions))
        try:
            vector = (await self._store.aembed_queries([query]))[0]
        except EmbeddingError:
            return self._documents(await self._store.asearch(query, **asked))[:k]
        asked["vector"] = vector
        result = await self._store.asearch(query, **asked)
        return self._diverse(result, await self._avectors(result, asked), vector, k, lambda_mult)

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
        asked = self._candidates_by_vector(embedding, k, fetch_k, lambda_mult, options)
        result = self._store.search("", **asked)
        return self._diverse(result, self._vectors(result, asked), embedding, k, lambda_mult)

    async def amax_marginal_relevance_search_by_vector(  # type: ignore[override]
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Unpack[DiverseOptions],
    ) -> list[Document]:
        """Async twin of :meth:`max_marginal_relevance_search_by_vector`."""
        asked = self._candidates_by_vector(embedding, k, fetch_k, lambda_mult, options)
        result = await self._store.asearch("", **asked)
        return self._diverse(result, await self._avectors(result, asked), embedding, k, lambda_mult)

    def search(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Search in one of the ways there are.

        Args:
            query: what is asked.
            search_type: ``"similarity"`` (the vector store's own mode), ``"similarity_score_threshold"``, ``"mmr"``,
                or a mode: ``"hybrid"``, ``"keyword"``, ``"vector"``.
            kwargs: those of the method that this stands for.

        Raises:
            ValueError: there is no such search type.
        """
        if search_type in tuple(Mode):
            return self.similarity_search(query, mode=search_type, **_without_mode(search_type, kwargs))
        if search_type in _SEARCH_TYPES:
            return super().search(query, search_type, **kwargs)
        raise ConfigurationError(f"search_type is one of {', '.join(_SEARCH_TYPES)}, not {search_type!r}")

    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Async twin of :meth:`search`."""
        if search_type in tuple(Mode):
            return await self.asimilarity_search(query, mode=search_type, **_without_mode(search_type, kwargs))
        if search_type in _SEARCH_TYPES:
            return await super().asearch(query, search_type, **kwargs)
        raise ConfigurationError(f"search_type is one of {', '.join(_SEARCH_TYPES)}, not {search_type!r}")

    def as_retriever(self, **kwargs: Any) -> TwofoldVectorStoreRetriever:
        """A retriever over it.

        Args:
            kwargs: ``search_type``, see :meth:`search`; ``search_kwargs``, a dict of what each search is given, ``k``
                or ``filter`` say; ``tags`` and ``metadata`` for tracing. Anything else is refused.
        """
        tags = kwargs.pop("tags", None) or self._get_retriever_tags()
        return TwofoldVectorStoreRetriever(vectorstore=self, tags=tags, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: score

    # Making

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | Embedder | str | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: HybridStore | str | PathLike[str] = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """A vector store with these texts in it.

        Args:
            texts: see :meth:`add_texts`, as for ``metadatas`` and ``ids``.
            embedding: what makes vectors, or None.
            metadatas: one a text.
            ids: one a text.
            store: a path or an open store. Default: in memory.
            kwargs: those of the class.
        """
        made = cls(store, embedding=embedding, **kwargs)
        try:
            made.add_texts(texts, metadatas, ids=ids)
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | Embedder | str | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: HybridStore | str | PathLike[str] = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """Async twin of :meth:`from_texts`."""
        made = cls(store, embedding=embedding, **kwargs)
        try:
            await made.aadd_texts(texts, metadatas, ids=ids)
        except BaseException:
            await made.aclose()
            raise
        return made

    def close(self) -> None:
        """Close the store if it was opened here; one that was given is closed by who opened it."""
        if self._opened_here:
            self._store.close()

    async def aclose(self) -> None:
        """Async twin of :meth:`close`."""
        if self._opened_here:
            await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, namespace={self._namespace!r})"

    def _asker(self, access: Access | None) -> Access | None:
        return self._access if access is None else access

    def _records(
        self, texts: list[str], metadatas: list[dict[str, Any]] | None, ids: Sequence[str | None] | None
    ) -> list[NewRecord]:
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ConfigurationError(f"{len(texts)} texts but {len(given)} {name}: give one a text, or none")
        return [
            NewRecord(
                text=text,
                id=None if ids is None else ids[index],
                metadata={} if metadatas is None else as_metadata(metadatas[index] or {}, self._encode),
                namespace=self._namespace,
            )
            for index, text in enumerate(texts)
        ]

    def _adding(self, access: Access | None, batch_size: int | None) -> dict[str, Any]:
        size = {} if batch_size is None else {"batch_size": batch_size}
        return {"access": self._asker(access), **size}

    def _added(self, report: AddReport) -> list[str]:
        self._last_added = report
        return list(report.ids)

    def _deleting(
        self, ids: Sequence[str] | None, filter: Filter | dict[str, Any] | None, access: Access | None
    ) -> dict[str, Any]:
        if ids is None:
            return {"where": as_where(filter, self._namespace), "access": self._asker(access)}
        if filter is not None:
            raise ConfigurationError("delete takes ids or filter=..., not both")
        return {"ids": ids, "namespace": self._namespace, "access": self._asker(access)}

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

    def _candidates(self, k: int, fetch_k: int, lambda_mult: float, options: SearchOptions) -> _Asked:
        if isinstance(lambda_mult, bool) or not isinstance(lambda_mult, (int, float)) or not 0 <= lambda_mult <= 1:
            raise ConfigurationError(f"lambda_mult is a number from 0 to 1, not {lambda_mult!r}")
        return self._asked(max(k, fetch_k), options)

    def _candidates_by_vector(
        self, embedding: Sequence[float], k: int, fetch_k: int, lambda_mult: float, options: Any
    ) -> _Asked:
        asked = self._candidates(k, fetch_k, lambda_mult, checked_options(options, DiverseOptions, without="mode"))
        asked["vector"], asked["mode"] = embedding, Mode.VECTOR
        return asked

    def _documents(self, result: SearchResult) -> list[Document]:
        return [document for document, _ in self._scored(result)]

    def _scored(self, result: SearchResult) -> list[tuple[Document, float]]:
        self._last_result = result
        return [(as_document(hit), hit.score) for hit in (*result.hits, *result.linked)]

    def _vectors(self, result: SearchResult, asked: _Asked) -> Sequence[PartsByField]:
        return self._store.vectors([hit.record for hit in result], access=asked["access"])

    async def _avectors(self, result: SearchResult, asked: _Asked) -> Sequence[PartsByField]:
        return await self._store.avectors([hit.record for hit in result], access=asked["access"])

    def _diverse(
        self,
        result: SearchResult,
        vectors: Sequence[PartsByField],
        query: Sequence[float] | npt.NDArray[np.float32],
        k: int,
        lambda_mult: float,
    ) -> list[Document]:
        self._last_result = result
        hits = [result.hits[place] for place in diverse(query, vectors, k, lambda_mult)]
        return [as_document(hit) for hit in (*hits, *result.linked)]


class TwofoldVectorStoreRetriever(VectorStoreRetriever):
    """What ``vector_store.as_retriever(...)`` gives.

    ``invoke(query, k=..., filter=..., access=...)`` and its async twin take the arguments of the search for one call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    allowed_search_types: ClassVar[tuple[str, ...]] = _SEARCH_TYPES

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the signature is LangChain's
        **kwargs: Any,
    ) -> list[Document]:
        return self.vectorstore.search(query, self.search_type, **(self.search_kwargs | kwargs))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - the signature is LangChain's
        **kwargs: Any,
    ) -> list[Document]:
        return await self.vectorstore.asearch(query, self.search_type, **(self.search_kwargs | kwargs))


def _embedder(embedding: Embeddings | Embedder | str | None, name: str | None) -> Embedder | str | None:
    if isinstance(embedding, Embeddings):
        return as_embedder(embedding, name=name)
    if name is not None:
        raise ConfigurationError("embedding_name names a LangChain embedding model, embedding=..., and none is given")
    return embedding


def _settings(given: dict[str, Any]) -> StoreSettings:
    known = {each.name for each in fields(StoreSettings)}
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(
            f"unknown arguments: {', '.join(unknown)}; the settings of a store are {', '.join(sorted(known))}"
        )
    return StoreSettings(**given)


def _unpacked(documents: list[Document]) -> tuple[list[str], list[dict[str, Any]], list[str | None]]:
    return (
        [document.page_content for document in documents],
        [document.metadata for document in documents],
        [document.id for document in documents],
    )


def _refused(kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"unknown arguments: {', '.join(sorted(kwargs))}")


def _without_mode(search_type: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    if kwargs.get("mode", search_type) != search_type:
        raise ConfigurationError(f"search_type={search_type!r} and mode={kwargs['mode']!r} contradict each other")
    return {name: value for name, value in kwargs.items() if name != "mode"}
