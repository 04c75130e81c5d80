"""The store as a LlamaIndex vector store."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index.vector_stores.twofold.adding import added
from llama_index.vector_stores.twofold.asking import answer
from llama_index.vector_stores.twofold.filters import as_filter, narrowed
from llama_index.vector_stores.twofold.nodes import node_of
from llama_index.vector_stores.twofold.opening import opened
from llama_index.vector_stores.twofold.options import checked_namespace, checked_options, of_kind, refused
from llama_index.vector_stores.twofold.threads import in_thread
from twofold import Access, AddReport, ConfigurationError, Embedder, HybridStore, SearchParams, SearchResult

__all__ = ["TwofoldVectorStore"]

_LEAST_SCORE = 1e-9
"""LlamaIndex reads a score of 0 as "no score" and puts 1 in its place."""


class TwofoldVectorStore(BasePydanticVectorStore):
    """Nodes in one SQLite file, found by meaning and by keyword.

    Nodes come back whole, ``node.hash`` unchanged; adding an id again replaces the node. An embedding that is None,
    empty or of the wrong length is no vector, and no error: the node is stored, found by keyword, and gets its vector
    from the store's own embedding model, later if need be. Keywords are those of the text that LlamaIndex embeds, the
    metadata that is not excluded from it included.

    Query modes: ``default`` (by meaning, see :meth:`query`), ``sparse`` and ``text_search`` (by keyword), ``hybrid``
    and ``semantic_hybrid`` (both), ``mmr``. Scores are above 0 and at most 1, the best first.

    May be used from many threads and tasks at once; every method's async twin leaves the event loop free. It can be
    pickled if it was made from a path. A copy works on the same store, which whoever opened it closes.

    Args:
        store: a file's path, made anew if it is not there; ``":memory:"``; or an open store.
        embed_model: the model that the vectors are of: a LlamaIndex embedding model, or whatever
            ``twofold.open(embedder=...)`` takes. With it the store can embed by itself what comes without a vector, and
            the index may have ``NoEmbedding()``. ``NoEmbedding()`` here makes a keyword store. Not for an open store,
            which has its own. Default: none; the vectors are those that the index brings.
        embed_model_name: names the model, where it does not say itself which it is, or where there is no
            ``embed_model``. It is stored with the vectors, and those of two names are never compared.
        access: who asks and adds, where a call does not say. Default: that of the store if it is a view, else
            ``Access()``, who sees and adds global nodes.
        namespace: where the nodes are; those of other namespaces, below it too, are neither seen nor changed.
            Default: the root.
        params: how it ranks where a query does not say. Default: the store's settings, without links and touches.
        tenant: see ``twofold.open``; ``store`` is a folder then.
        settings: of a store that is opened here, the names of ``twofold.StoreSettings``, e.g. ``index="faiss-flat"``.

    Raises:
        ConfigurationError: an argument cannot be used, or is for a store that is not opened here.
        StoreError: the file cannot be opened; the message says what to do.

    Example:
        ``TwofoldVectorStore("notes.db", embed_model=OllamaEmbedding("nomic-embed-text"))``
    """

    stores_text: bool = True
    flat_metadata: bool = False

    _store: HybridStore = PrivateAttr()
    _access: Access | None = PrivateAttr(default=None)
    _namespace: tuple[str, ...] = PrivateAttr(default=())
    _params: SearchParams | None = PrivateAttr(default=None)
    _recipe: dict[str, Any] | None = PrivateAttr(default=None)
    """What opens the store again elsewhere; None if only whoever opened it knows."""
    _opened_here: bool = PrivateAttr(default=False)
    _last_result: SearchResult | None = PrivateAttr(default=None)
    _last_added: AddReport | None = PrivateAttr(default=None)

    def __init__(
        self,
        store: HybridStore | str | PathLike[str] = ":memory:",
        *,
        embed_model: BaseEmbedding | Embedder | str | None = None,
        embed_model_name: str | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        params: SearchParams | None = None,
        tenant: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(stores_text=True)
        self._namespace = checked_namespace(namespace)
        self._access = of_kind("access", access, Access)
        self._params = of_kind("params", params, SearchParams)
        self._store, self._opened_here, self._recipe = opened(
            store, embed_model=embed_model, embed_model_name=embed_model_name, tenant=tenant, settings=settings
        )

    @classmethod
    def class_name(cls) -> str:
        """Its name in dumps."""
        return "TwofoldVectorStore"

    @property
    def client(self) -> HybridStore:
        """The same as :attr:`store`, by LlamaIndex's name for it."""
        return self._store

    @property
    def store(self) -> HybridStore:
        """The twofold store underneath: ``vector_store.store.embed_pending()`` makes the vectors that are missing."""
        return self._store

    @property
    def namespace(self) -> tuple[str, ...]:
        """Where the nodes are."""
        return self._namespace

    @property
    def access(self) -> Access | None:
        """Who asks where a call does not say; None: whom the store is bound to, else ``Access()``."""
        return self._access

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the query that ended last, whosever it was, with degradations, scores and timings."""
        return self._last_result

    @property
    def last_added(self) -> AddReport | None:
        """What became of the nodes that were added last, whosever they were: how many wait for vectors, and why."""
        return self._last_added

    # Writing

    def add(
        self,
        nodes: Sequence[BaseNode],
        *,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add nodes, or replace those whose ids are there; of one id given twice the last wins.

        All are checked before any is written.

        Args:
            nodes: the nodes; they are not changed, and nothing of them is kept.
            access: who adds them, and so whose they become. Default: the vector store's own.
            batch_size: how many are committed together. Default: 500.
            kwargs: none; LlamaIndex's signature has them.

        Returns:
            The ids, one a node, in order.

        Raises:
            InvalidRecordError: a node cannot be stored; the message says which. Nothing was written.
            ConfigurationError: the nodes come with vectors, and the store takes none, or those of another model.
            TypeError: an unknown argument.
        """
        refused(kwargs)
        report = added(self._store, nodes, namespace=self._namespace, access=self._asker(access), batch_size=batch_size)
        self._last_added = report
        return list(report.ids)

    async def async_add(
        self,
        nodes: Sequence[BaseNode],
        *,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Async twin of :meth:`add`."""
        return await in_thread(self.add, nodes, access=access, batch_size=batch_size, **kwargs)

    def delete(self, ref_doc_id: str, *, access: Access | None = None, **delete_kwargs: Any) -> None:
        """Remove all nodes of a document, with their tokens and vectors; of an unknown or empty id nothing.

        Args:
            ref_doc_id: the document's id.
            access: who removes them: those that it may write. Default: the vector store's own.
            delete_kwargs: none; LlamaIndex's signature has them.
        """
        refused(delete_kwargs)
        if ref_doc_id:
            where = narrowed(self._namespace, doc_ids=[ref_doc_id])
            self._store.delete(where=where, access=self._asker(access))

    async def adelete(self, ref_doc_id: str, *, access: Access | None = None, **delete_kwargs: Any) -> None:
        """Async twin of :meth:`delete`."""
        await in_thread(self.delete, ref_doc_id, access=access, **delete_kwargs)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        access: Access | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Remove nodes, with their tokens and vectors.

        Args:
            node_ids: which; those that are not there are passed over, and of an empty list nothing is removed.
            filters: which, alone or of those ids.
            access: who removes them. Default: the vector store's own.
            delete_kwargs: none; LlamaIndex's signature has them.

        Raises:
            AccessError: the access may see a node of ``node_ids`` but not remove it; nothing was removed. What only
                ``filters`` name is passed over then.
            ConfigurationError: neither says which; for all there are use :meth:`clear`.
        """
        refused(delete_kwargs)
        asker = self._asker(access)
        if as_filter(filters) is not None:
            self._store.delete(where=narrowed(self._namespace, filters=filters, node_ids=node_ids), access=asker)
        elif node_ids is not None:
            self._store.delete(node_ids, namespace=self._namespace, access=asker)
        else:
            raise ConfigurationError("delete_nodes takes node_ids or filters; to remove all nodes use clear()")

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        access: Access | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Async twin of :meth:`delete_nodes`."""
        await in_thread(self.delete_nodes, node_ids, filters, access=access, **delete_kwargs)

    def clear(self, *, access: Access | None = None) -> None:
        """Remove every node of the namespace that the access may write; those of other namespaces stay."""
        self._store.delete(where=narrowed(self._namespace), access=self._asker(access))

    async def aclear(self, *, access: Access | None = None) -> None:
        """Async twin of :meth:`clear`."""
        await in_thread(self.clear, access=access)

    # Looking up

    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        access: Access | None = None,
    ) -> list[BaseNode]:
        """Nodes by id, by filter, or both; what is not there, or not seen, is left out.

        Args:
            node_ids: which, in the order asked. Default: all; an empty list: none.
            filters: which, alone or of those ids.
            access: who asks. Default: the vector store's own.

        Returns:
            The nodes; where no ids are given, the oldest first.
        """
        asker = self._asker(access)
        if node_ids is not None and as_filter(filters) is None:
            records = self._store.get_many(node_ids, namespace=self._namespace, access=asker)
            return [node_of(record) for record in records]
        where = narrowed(self._namespace, filters=filters, node_ids=node_ids)
        nodes = [node_of(record) for record in self._store.list(where=where, order="created_at", access=asker)]
        if node_ids is not None:
            place = {id_: index for index, id_ in reversed(list(enumerate(node_ids)))}
            nodes.sort(key=lambda node: place[node.node_id])
        return nodes

    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        access: Access | None = None,
    ) -> list[BaseNode]:
        """Async twin of :meth:`get_nodes`."""
        return await in_thread(self.get_nodes, node_ids, filters, access=access)

    # Searching

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that answer best, the best first.

        ``default`` and ``mmr`` go by the query's embedding. If it has none that can be one, the store's own embedding
        model makes it; with neither, keywords answer. Nodes that still wait for their vectors are found by keyword
        besides; such a one scores the best cosine times its share of the best keyword match.

        ``hybrid`` fuses both: ``alpha`` is the vectors' share, 0 for keywords alone, 1 for vectors alone, by default as
        ``params`` say. ``hybrid_top_k`` is how many come out, by default ``similarity_top_k``. With ``sparse_top_k``,
        only the best ``sparse_top_k`` by keyword and the best ``similarity_top_k`` by meaning take part.

        ``doc_ids`` None is any document, ``[]`` none; ``node_ids`` None and ``[]`` are any node; they and ``filters``
        must all hold. With no text and no vector, the newest nodes that they leave come back, all with a score of 1.

        Args:
            query: what is asked. Its ``output_fields`` make no difference: nodes come back whole.
            kwargs: see :class:`~llama_index.vector_stores.twofold.QueryOptions`.

        Returns:
            ``nodes``, ``similarities`` and ``ids``, of one length; empty lists if nothing was found.

        Raises:
            ConfigurationError: a mode that it has not, or an option that cannot be used.
            UnsupportedFilterError: see :func:`~llama_index.vector_stores.twofold.as_filter`.
            SearchUnavailableError: neither vectors nor keywords can answer.
            TypeError: an unknown option.
        """
        result = answer(
            query,
            checked_options(kwargs),
            self._store,
            access=self._access,
            namespace=self._namespace,
            params=self._params,
        )
        self._last_result = result
        hits = [*result.hits, *result.linked]
        return VectorStoreQueryResult(
            nodes=[node_of(hit.record) for hit in hits],
            similarities=[max(hit.score, _LEAST_SCORE) for hit in hits],
            ids=[hit.id for hit in hits],
        )

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Async twin of :meth:`query`."""
        return await in_thread(self.query, query, **kwargs)

    # The end, and copies

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Nothing: what is added is in the file already."""

    def close(self) -> None:
        """Close the store, if it was opened here. Calling it again does nothing."""
        if self._opened_here:
            self._store.close()

    async def aclose(self) -> None:
        """Async twin of :meth:`close`."""
        await in_thread(self.close)

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

    __str__ = __repr__

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin._opened_here = False  # noqa: SLF001 - of its own class
        return twin

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise TypeError(
                "only a TwofoldVectorStore made from a path can be pickled; "
                "make this one there, over its own twofold.open(path)"
            )
        arguments = {**self._recipe, "access": self._access, "namespace": self._namespace, "params": self._params}
        return _made_again, (type(self), arguments)

    def _asker(self, access: Access | None) -> Access | None:
        return self._access if access is None else access


def _made_again(kind: type[TwofoldVectorStore], arguments: dict[str, Any]) -> TwofoldVectorStore:
    return kind(**arguments)
