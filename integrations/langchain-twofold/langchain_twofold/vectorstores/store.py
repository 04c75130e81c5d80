"""``TwofoldVectorStore``, and the retriever over it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Final, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict

from langchain_twofold.vectorstores.searching import Searching
from langchain_twofold.vectorstores.writing import Writing
from twofold import (
    ConfigurationError,
    Embedder,
    HybridStore,
    Mode,
)

__all__ = ["TwofoldVectorStore", "TwofoldVectorStoreRetriever"]


_SEARCH_TYPES: Final = ("similarity", "similarity_score_threshold", "mmr", "hybrid", "keyword", "vector")


class TwofoldVectorStore(Writing, Searching):
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


def _without_mode(search_type: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    if kwargs.get("mode", search_type) != search_type:
        raise ConfigurationError(f"search_type={search_type!r} and mode={kwargs['mode']!r} contradict each other")
    return {name: value for name, value in kwargs.items() if name != "mode"}
