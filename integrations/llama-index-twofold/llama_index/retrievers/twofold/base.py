"""The store as a LlamaIndex retriever."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn, ParamSpec, TypedDict, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # public, but re-exported unsaid
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle

from llama_index.retrievers.twofold.events import VectorSource, search_event
from llama_index.retrievers.twofold.nodes import as_node
from twofold import (
    Access,
    ConfigurationError,
    EmbeddingError,
    Filter,
    HybridStore,
    InvalidVectorError,
    Mode,
    SearchParams,
    SearchResult,
)

__all__ = ["TwofoldRetriever"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_dispatcher = get_dispatcher(__name__)


class _Asked(TypedDict):
    """The arguments of one search, but for its vector."""

    k: int
    access: Access | None
    where: Filter | dict[str, Any] | None
    mode: Mode | str
    params: SearchParams | None
    preset: str | None


class TwofoldRetriever(BaseRetriever):
    """Finds a store's records by keyword and by meaning.

    Keywords are always those of ``query_str``. The meaning is that of the bundle's ``embedding`` if it has one that
    the store can use, else of its ``custom_embedding_strs`` (their mean, as HyDE wants it), else of ``query_str``,
    the latter two by the store's own embedder. If that fails, keywords answer, and a ``TwofoldSearchEvent`` and
    :attr:`last_result` say so. The bundle is never written to.

    The attributes of the arguments' names may be changed between retrievals. Making a retriever costs nothing: for
    each user make one with their ``access``. May be used from many threads and tasks at once. A copy works on the
    same store, which whoever opened it closes.

    LlamaIndex keeps one node for each id: of two records with one id (a user's and a room's, say) the better is kept.

    Example:
        ``TwofoldRetriever(twofold.open("memory.db"), similarity_top_k=4).retrieve("where is the deploy key?")``
    """

    def __init__(
        self,
        store: HybridStore,
        *,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        access: Access | None = None,
        where: Filter | dict[str, Any] | None = None,
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        preset: str | None = None,
        use_bundle_embedding: bool = True,
        include_linked: bool = False,
        callback_manager: CallbackManager | None = None,
        object_map: Mapping[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        """Nothing is searched here.

        Args:
            store: what is searched; may be a view bound to one access.
            similarity_top_k: how many nodes at most, 0 or more. Default: LlamaIndex's, 2.
            access: who asks. Default: the store's own access if it is a view, else ``Access()``, who sees global
                records only.
            where: a filter, or its spelling as a dict. Default: none.
            mode: ``"hybrid"``, ``"keyword"`` or ``"vector"``.
            params: how to rank. Default: the store's settings.
            preset: the same as a name, one of ``twofold.PRESETS``; in place of ``params``.
            use_bundle_embedding: whether a bundle's ``embedding`` is taken as one of the store's model. Set it to
                False where another model's retriever gets the same bundle: LlamaIndex's own write theirs into it.
            include_linked: whether the records that links lead to from the hits come too, after them and beyond
                ``similarity_top_k``, their scores below that of the last hit; how many is up to
                ``SearchParams.expand`` of ``params`` or of the store's settings.
            callback_manager: LlamaIndex's. Default: a new one.
            object_map: by a record's id, the object that it stands for: a node, a retriever or a query engine, which
                then answers in its place.
            objects: the same as index nodes, whose ``index_id`` is the record's id; they take the map's place.
            verbose: whether LlamaIndex prints when it goes on into such an object.

        Raises:
            ConfigurationError: ``store`` is no store, or ``similarity_top_k`` or ``mode`` is out of range.
        """
        if not isinstance(store, HybridStore):
            raise ConfigurationError(f"store is a HybridStore, made by twofold.open(...), not {type(store).__name__}")
        if isinstance(similarity_top_k, bool) or not isinstance(similarity_top_k, int) or similarity_top_k < 0:
            raise ConfigurationError(f"similarity_top_k is a whole number of at least 0, not {similarity_top_k!r}")
        if mode not in tuple(Mode):
            raise ConfigurationError(f"mode is one of {', '.join(Mode)}, not {mode!r}")
        self.store = store
        self.similarity_top_k = similarity_top_k
        self.access = access
        self.where = where
        self.mode = mode
        self.params = params
        self.preset = preset
        self.use_bundle_embedding = use_bundle_embedding
        self.include_linked = include_linked
        self._last_result: SearchResult | None = None
        super().__init__(
            callback_manager=callback_manager,
            object_map=None if object_map is None else dict(object_map),
            objects=objects,
            verbose=verbose,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r}, similarity_top_k={self.similarity_top_k})"

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the retrieval that ended last, with its degradations, scores and timings; None before the
        first. It is whoever's that retrieval was, so keep a retriever for each user.
        """
        return self._last_result

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _at_once(self._found(query_bundle, _finished(self.store.embed_queries), _finished(self.store.search)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._found(query_bundle, self.store.aembed_queries, self.store.asearch)

    async def _found(
        self,
        query_bundle: QueryBundle,
        embed: Callable[..., Awaitable[Any]],
        search: Callable[..., Awaitable[SearchResult]],
    ) -> list[NodeWithScore]:
        """The one body of both: ``embed`` and ``search`` are the store's, sync or async."""
        source: VectorSource = "store"
        vector: Any = None
        strings = query_bundle.custom_embedding_strs
        if self.mode == Mode.KEYWORD:
            pass
        elif self.use_bundle_embedding and query_bundle.embedding:
            source, vector = "bundle", query_bundle.embedding
        elif strings:
            try:
                source, vector = "custom_strings", (await embed(strings)).mean(axis=0)
            except (EmbeddingError, ConfigurationError):
                source = "store"  # the search below meets the same trouble, and reports it
        asked = self._asked()
        try:
            result = await search(query_bundle.query_str, vector=vector, **asked)
        except (InvalidVectorError, ConfigurationError):
            if vector is None:
                raise
            # Another model's embedding, or one that the store has no use for: as if there were none. Whatever else
            # was wrong with the call is raised again.
            source = "store"
            result = await search(query_bundle.query_str, **asked)
        self._last_result = result
        _dispatcher.event(search_event(query_bundle.query_str, result, source))
        linked = result.linked if self.include_linked else ()
        return [as_node(hit, followed=self.object_map) for hit in (*result.hits, *linked)]

    def _asked(self) -> _Asked:
        return _Asked(
            k=self.similarity_top_k,
            access=self.access,
            where=self.where,
            mode=self.mode,
            params=self.params,
            preset=self.preset,
        )

    def __copy__(self) -> TwofoldRetriever:
        """A copy over the same store."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> TwofoldRetriever:
        """A copy over the same store and callbacks, and the same objects."""
        twin = copy.copy(self)
        memo[id(self)] = twin
        twin.object_map = dict(self.object_map)
        twin.where = copy.deepcopy(self.where, memo) if isinstance(self.where, dict) else self.where
        return twin

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a TwofoldRetriever holds an open store and cannot be pickled; "
            "make one there, over its own twofold.open(path)"
        )


def _finished(method: Callable[_P, _R]) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """``method`` with the shape of its async twin; awaiting it never waits."""

    async def twin(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return method(*args, **kwargs)

    return twin


def _at_once(work: Coroutine[Any, Any, _R]) -> _R:
    """The result of a coroutine that never waits; needs no event loop and disturbs none."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _R = end.value
        return result
    work.close()
    raise RuntimeError("this coroutine waits for something")
