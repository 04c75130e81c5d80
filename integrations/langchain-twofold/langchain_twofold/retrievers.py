"""The store as a LangChain retriever."""

from __future__ import annotations

from os import PathLike, fspath
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypedDict

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr, field_validator

from langchain_twofold.documents import as_document
from langchain_twofold.options import as_where
from langchain_twofold.vectorstores import TwofoldVectorStore
from twofold import Access, ConfigurationError, Embedder, Filter, HybridStore, Mode, SearchParams, SearchResult

__all__ = ["DEGRADED_EVENT", "TwofoldRetriever"]

DEGRADED_EVENT: Final = "twofold_degraded"
"""The name of the custom event that callbacks and ``astream_events`` get when an answer is less than a full one.
Its data: ``{"degradations": [{"code": ..., "message": ...}, ...]}``."""


class _Asked(TypedDict):
    """The arguments of one search."""

    k: int
    offset: int
    access: Access | None
    where: Filter | dict[str, Any] | None
    mode: Mode | str
    params: SearchParams | None
    preset: str | None


class TwofoldRetriever(BaseRetriever):
    """Finds a store's records by keyword and by meaning.

    ``k``, ``access``, ``where``, ``mode``, ``params`` and ``preset`` are defaults: ``invoke(query, k=..., access=...)``
    and its async twin take them for one call, in place of the retriever's own, and ``offset``, how many of the best to
    leave out. One left out, or None, leaves the retriever's own in force. Unknown arguments are refused.

    A failing embedder does not fail a call: keywords answer, and :data:`DEGRADED_EVENT` says so. May be used from
    many threads and tasks at once. A copy works on the same store, which whoever opened it closes.

    :meth:`over` makes one over a :class:`TwofoldVectorStore` or a path.

    Example:
        ``TwofoldRetriever(store=twofold.open("memory.db"), k=4).invoke("where is the deploy key?")``
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    store: HybridStore
    """What is searched; may be a view bound to one access."""
    k: int = Field(default=4, ge=0, strict=True)
    """How many documents at most, 0 or more. Default: 4, as LangChain's vector stores have it."""
    access: InstanceOf[Access] | None = None
    """Who asks. Default: the store's own access if it is a view, else ``Access()``, who sees global records only."""
    where: InstanceOf[Filter] | dict[str, Any] | None = None
    """A filter, or its spelling as a dict; one given to a call takes its place. Default: none."""
    namespace: tuple[str, ...] | None = None
    """Which namespace is searched, itself and not what is below it; it holds besides any ``where``. Default: all."""
    mode: Mode = Mode.HYBRID
    """``"hybrid"``, ``"keyword"`` or ``"vector"``. Default: hybrid."""
    params: InstanceOf[SearchParams] | None = None
    """How to rank. Default: the store's settings."""
    preset: str | None = None
    """The same as a name, one of ``twofold.PRESETS``; in place of ``params``. A call's own ``params`` or ``preset``
    takes the place of both. Default: none."""
    include_linked: bool = False
    """Whether the records that links lead to from the hits come too, after them and beyond ``k``; how many is up to
    ``SearchParams.expand`` of ``params`` or of the store's settings. Default: False."""
    with_scores: bool = False
    """Whether each document's metadata says under ``SCORES_KEY`` how well and why it fits. Default: False, the
    metadata is exactly the record's."""

    _last_result: SearchResult | None = PrivateAttr(default=None)
    _opened: TwofoldVectorStore | None = PrivateAttr(default=None)

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the call that ended last, with its degradations, scores and timings; None before the first.

        It is whoever's that call was: where several users share one retriever, listen to :data:`DEGRADED_EVENT`.
        """
        return self._last_result

    @field_validator("store", mode="before")
    @classmethod
    def _checked_store(cls, store: object) -> object:
        if isinstance(store, (str, PathLike)):
            message = (
                f"store is an open store: TwofoldRetriever(store=twofold.open({fspath(store)!r})), "
                f"or TwofoldRetriever.over({fspath(store)!r})"
            )
            raise ValueError(message)  # noqa: TRY004 - what pydantic makes a ValidationError of
        if isinstance(store, TwofoldVectorStore):
            message = "store is a twofold store; over a vector store: TwofoldRetriever.over(vector_store)"
            raise ValueError(message)  # noqa: TRY004
        return store

    @classmethod
    def over(
        cls,
        source: TwofoldVectorStore | str | PathLike[str],
        *,
        embedding: Embeddings | Embedder | str | None = None,
        embedding_name: str | None = None,
        **fields: Any,
    ) -> Self:
        """A retriever over a vector store or a path.

        Args:
            source: a vector store, whose namespace is searched, and whose access, mode and params hold unless
                ``fields`` say something else; or the path of a file, which :meth:`close` closes.
            embedding: for a path: as :class:`TwofoldVectorStore` takes it. Default: keywords answer alone.
            embedding_name: for a path: names the model.
            fields: those of the class, ``k=2`` say.

        Raises:
            ConfigurationError: an embedding model is given for a vector store, which has its own.
        """
        if not isinstance(source, TwofoldVectorStore):
            opened = TwofoldVectorStore(source, embedding=embedding, embedding_name=embedding_name)
            try:
                made = cls(store=opened.store, **fields)
            except BaseException:
                opened.close()
                raise
            made._opened = opened
            return made
        if embedding is not None or embedding_name is not None:
            raise ConfigurationError("the vector store has an embedding model of its own: leave embedding out")
        own = {"access": source.access, "mode": source.mode, "params": source.params, "namespace": source.namespace}
        return cls(store=source.store, **{**own, **fields})

    def close(self) -> None:
        """Close the file if :meth:`over` opened it; a store that was given is closed by who opened it."""
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        offset: int = 0,
        access: Access | None = None,
        where: Filter | dict[str, Any] | None = None,
        mode: Mode | str | None = None,
        params: SearchParams | None = None,
        preset: str | None = None,
    ) -> list[Document]:
        result = self.store.search(query, **self._asked(k, offset, access, where, mode, params, preset))
        if result.degraded:
            child = run_manager.get_child()
            dispatch_custom_event(DEGRADED_EVENT, _degraded(result), config={"callbacks": child})
        return self._documents(result)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        offset: int = 0,
        access: Access | None = None,
        where: Filter | dict[str, Any] | None = None,
        mode: Mode | str | None = None,
        params: SearchParams | None = None,
        preset: str | None = None,
    ) -> list[Document]:
        result = await self.store.asearch(query, **self._asked(k, offset, access, where, mode, params, preset))
        if result.degraded:
            child = run_manager.get_child()
            await adispatch_custom_event(DEGRADED_EVENT, _degraded(result), config={"callbacks": child})
        return self._documents(result)

    def _asked(
        self,
        k: int | None,
        offset: int,
        access: Access | None,
        where: Filter | dict[str, Any] | None,
        mode: Mode | str | None,
        params: SearchParams | None,
        preset: str | None,
    ) -> _Asked:
        return _Asked(
            k=self.k if k is None else k,
            offset=offset,
            access=self.access if access is None else access,
            where=self._where(self.where if where is None else where),
            mode=self.mode if mode is None else mode,
            params=self.params if params is None and preset is None else params,
            preset=self.preset if params is None and preset is None else preset,
        )

    def _where(self, where: Filter | dict[str, Any] | None) -> Filter | dict[str, Any] | None:
        return where if self.namespace is None else as_where(where, self.namespace)

    def _documents(self, result: SearchResult) -> list[Document]:
        self._last_result = result
        linked = result.linked if self.include_linked else ()
        return [as_document(hit, with_scores=self.with_scores) for hit in (*result.hits, *linked)]

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        """What LangSmith shows of each run."""
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = "twofold"
        return params

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> TwofoldRetriever:
        """A copy over the same store."""
        shared = (self.store, self.access, self.where, self.params, self._last_result, self._opened)
        known = {} if memo is None else memo
        known.update({id(part): part for part in shared if not isinstance(part, dict)})
        return super().__deepcopy__(known)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a TwofoldRetriever holds an open store and cannot be pickled; "
            "make one there, over its own twofold.open(path)"
        )


def _degraded(result: SearchResult) -> dict[str, Any]:
    return {"degradations": [{"code": each.code.value, "message": each.message} for each in result.degradations]}
