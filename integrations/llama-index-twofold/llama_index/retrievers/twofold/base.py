"""The store as a LlamaIndex retriever."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Any, NoReturn, Self, TypedDict, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # public, but re-exported unsaid
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores.types import MetadataFilters

import twofold
from llama_index.embeddings.twofold import as_embedder
from llama_index.retrievers.twofold import tools
from llama_index.retrievers.twofold.bridging import at_once, finished, in_thread
from llama_index.retrievers.twofold.events import VectorSource, search_event
from llama_index.retrievers.twofold.nodes import as_node
from llama_index.retrievers.twofold.options import RetrieverOptions, as_where, checked_options, ranked_by
from llama_index.retrievers.twofold.scores import Scores, scored
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import (
    Access,
    ConfigurationError,
    Degradation,
    DegradationCode,
    Embedder,
    EmbeddingError,
    Filter,
    HybridStore,
    InvalidVectorError,
    Mode,
    SearchParams,
    SearchResult,
)
from twofold.embedders import Guard, degradation_of, resolve_embedder

__all__ = ["TwofoldRetriever"]

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
    the latter two by ``embed_model``, or else by the store's own embedder. If that fails, keywords answer, and a
    ``TwofoldSearchEvent`` and :attr:`last_result` say so. The bundle is never written to.

    The attributes of the arguments' names may be changed between retrievals, and :meth:`with_options` gives another
    retriever for one call. Making a retriever costs nothing: for each user make one with their ``access``. May be
    used from many threads and tasks at once. A copy works on the same store, which whoever opened it closes.
    :meth:`over` makes one over a path or a vector store, :meth:`as_tool` makes an agent's tool of it.

    The words that LlamaIndex's ``RetrieverTool`` puts around a question, ``input is ...``, are not searched for.

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
        filters: MetadataFilters | None = None,
        namespace: Sequence[str] | None = None,
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        preset: str | None = None,
        use_bundle_embedding: bool = True,
        include_linked: bool = False,
        scores: Scores = "rank",
        embed_model: BaseEmbedding | Embedder | str | None = None,
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
            filters: LlamaIndex's filters; they hold besides ``where``. Default: none.
            namespace: which namespace is searched, itself and not what is below it; it holds besides the filters.
                Default: all.
            mode: ``"hybrid"``, ``"keyword"`` or ``"vector"``.
            params: how to rank. Default: the store's settings.
            preset: the same as a name, one of ``twofold.PRESETS``; in place of ``params``.
            use_bundle_embedding: whether a bundle's ``embedding`` is taken as one of the store's model. Set it to
                False where another model's retriever gets the same bundle: LlamaIndex's own write theirs into it.
            include_linked: whether the records that links lead to from the hits come too, after them and beyond
                ``similarity_top_k``, their scores below that of the last hit; how many is up to
                ``SearchParams.expand`` of ``params`` or of the store's settings.
            scores: what the nodes' scores say. ``"rank"``: what the record was ranked by, by default at most 0.6 for
                meaning and 0.4 for words, which the best match by words has in full. ``"similarity"``: how near it is
                to the question, the cosine of the two (0 for a negative one), for a ``SimilarityPostprocessor`` say;
                where the store has no cosine (no embedder, one that is down, a vector that is pending) it is the
                record's BM25 divided by the best one found. Which records are found is the same; their order is that of
                their scores. Default: ``"rank"``.
            embed_model: what embeds questions, if the store has no embedder for them: the model that its vectors are
                of, a LlamaIndex embedding model or what ``twofold.open(..., embedder=...)`` takes. It is waited for
                and left alone as the store's own would be. Default: the store's own.
            callback_manager: LlamaIndex's. Default: a new one.
            object_map: by a record's id, the object that it stands for: a node, a retriever or a query engine, which
                then answers in its place.
            objects: the same as index nodes, whose ``index_id`` is the record's id; they take the map's place.
            verbose: whether LlamaIndex prints when it goes on into such an object.

        Raises:
            ConfigurationError: ``store`` is no store, or an argument is out of range.
        """
        if not isinstance(store, HybridStore):
            raise ConfigurationError(f"store is a HybridStore, made by twofold.open(...), not {type(store).__name__}")
        checked_options(
            {
                "similarity_top_k": similarity_top_k,
                "access": access,
                "filters": filters,
                "namespace": namespace,
                "mode": mode,
                "scores": scores,
            }
        )
        self.store = store
        self.similarity_top_k = similarity_top_k
        self.access = access
        self.where = where
        self.filters = filters
        self.namespace = namespace
        self.mode = mode
        self.params = params
        self.preset = preset
        self.use_bundle_embedding = use_bundle_embedding
        self.include_linked = include_linked
        self.scores: Scores = scores
        self._last_result: SearchResult | None = None
        self._guard = _guarded(embed_model, store)
        self._opened: HybridStore | None = None
        super().__init__(
            callback_manager=callback_manager,
            object_map=None if object_map is None else dict(object_map),
            objects=objects,
            verbose=verbose,
        )

    @classmethod
    def over(
        cls,
        source: TwofoldVectorStore | str | PathLike[str],
        *,
        embed_model: BaseEmbedding | Embedder | str | None = None,
        embed_model_name: str | None = None,
        **options: Unpack[RetrieverOptions],
    ) -> Self:
        """A retriever over a vector store or a path.

        Args:
            source: a vector store, whose namespace is searched, and whose access holds unless ``options`` say
                something else; or a path as ``twofold.open`` takes it, which :meth:`close` closes.
            embed_model: for a path, what embeds questions, and records that are added to :attr:`store`; for a vector
                store that has no model of its own, the one that its vectors are of. Default: keywords answer alone,
                unless the vector store has a model.
            embed_model_name: names a LlamaIndex model that does not say which one it is; for a path only.
            options: as :meth:`with_options` takes them.

        Raises:
            TwofoldError: the file cannot be opened, or an argument cannot be used.
        """
        checked = checked_options(options)
        if isinstance(source, TwofoldVectorStore):
            if embed_model_name is not None:
                raise ConfigurationError("the vector store has named its model already: leave embed_model_name out")
            checked.setdefault("access", source.access)
            checked.setdefault("namespace", source.namespace)
            return cls(source.store, embed_model=embed_model, **checked)
        if isinstance(embed_model, BaseEmbedding):
            embed_model = as_embedder(embed_model, name=embed_model_name)
        elif embed_model_name is not None:
            raise ConfigurationError("embed_model_name names a LlamaIndex embedding model, and none was given")
        store = twofold.open(source, embedder=embed_model)
        made = cls(store, **checked)
        made._opened = store
        return made

    def with_options(self, **options: Unpack[RetrieverOptions]) -> Self:
        """A retriever like this one, over the same store, with some options changed: for one call, say.

        ``retriever.with_options(where={"team": "ops"}, access=ann).retrieve(question)``

        Args:
            options: by the names of the class's arguments; one that is left out stays as it is. Of ``params`` and
                ``preset``, one that is given takes the place of both.

        Raises:
            TypeError: there is no such option.
            ConfigurationError: one is out of range.
        """
        twin = copy.copy(self)
        if "params" in options or "preset" in options:
            twin.params = twin.preset = None
        for name, value in checked_options(options).items():
            setattr(twin, name, value)
        return twin

    def as_tool(
        self,
        *,
        name: str = "search_notes",
        description: str = tools.DESCRIPTION,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> FunctionTool:
        """A tool for agents with one parameter, ``query``. Who asks is up to :attr:`access`, and not to the model.

        The model reads the nodes' texts as ``MetadataMode.LLM`` has them, numbered, or that nothing was found; the
        output's ``raw_output`` are the nodes.

        Args:
            name: the tool's.
            description: what the model is told of it.
            node_postprocessors: LlamaIndex's, applied in their order.
        """
        return tools.as_tool(self, name=name, description=description, node_postprocessors=tuple(node_postprocessors))

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r}, similarity_top_k={self.similarity_top_k})"

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the retrieval that ended last, with its degradations, scores and timings; None before the
        first. It is whoever's that retrieval was, so keep a retriever for each user.
        """
        return self._last_result

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embed = self.store.embed_queries if self._guard is None else self._guard.queries
        return at_once(self._found(query_bundle, finished(embed), finished(self.store.search)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embed = self.store.aembed_queries if self._guard is None else in_thread(self._guard.queries)
        return await self._found(query_bundle, embed, self.store.asearch)

    async def _found(
        self,
        query_bundle: QueryBundle,
        embed: Callable[..., Awaitable[Any]],
        search: Callable[..., Awaitable[SearchResult]],
    ) -> list[NodeWithScore]:
        """The one body of both: ``embed`` and ``search`` are sync or async ones."""
        query_str = tools.as_asked(query_bundle.query_str)
        source, vector, trouble = await self._meaning(query_bundle, query_str, embed)
        asked = self._asked()
        try:
            result = await search(query_str, vector=vector, **asked)
        except (InvalidVectorError, ConfigurationError) as error:
            if vector is None:
                raise
            # Another model's embedding, or one that the store has no use for: as if there were none. Whatever else
            # was wrong with the call is raised again.
            source = "store"
            result = await search(query_str, **asked)
            if isinstance(error, InvalidVectorError) and not (result.degradations or _by_meaning(result)):
                trouble = Degradation(DegradationCode.EMBEDDER_BAD_OUTPUT, f"the query's vector was left out: {error}")
        if trouble is not None:
            result = replace(result, degradations=(trouble, *result.degradations))
        self._last_result = result
        _dispatcher.event(search_event(query_str, result, source))
        found = scored(result, self.scores, include_linked=self.include_linked)
        return [as_node(hit, score, followed=self.object_map) for hit, score in found]

    async def _meaning(
        self, query_bundle: QueryBundle, query_str: str, embed: Callable[..., Awaitable[Any]]
    ) -> tuple[VectorSource, Any, Degradation | None]:
        """Where the query's vector comes from, the vector unless it is for the store to make, and what went wrong."""
        if self.mode == Mode.KEYWORD:
            return "store", None, None
        if self.use_bundle_embedding and query_bundle.embedding:
            return "bundle", query_bundle.embedding, None
        source: VectorSource = "custom_strings"
        strings = query_bundle.custom_embedding_strs
        if not strings and self._guard is not None and query_str.strip():
            source, strings = "embed_model", [query_str]
        if not strings:
            return "store", None, None
        try:
            return source, (await embed(strings)).mean(axis=0), None
        except EmbeddingError as error:
            # What is wrong with the store's own embedder the search meets too, and reports.
            return "store", None, None if self._guard is None else degradation_of(error)
        except ConfigurationError:
            return "store", None, None

    def _handle_recursive_retrieval(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        if any(isinstance(each.node, IndexNode) for each in nodes):
            return super()._handle_recursive_retrieval(query_bundle, nodes)
        return _first_of_each_id(nodes)

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if any(isinstance(each.node, IndexNode) for each in nodes):
            return await super()._ahandle_recursive_retrieval(query_bundle, nodes)
        return _first_of_each_id(nodes)

    def _asked(self) -> _Asked:
        params, preset = ranked_by(self.params, self.preset, self.store.settings.search, self.scores)
        return _Asked(
            k=self.similarity_top_k,
            access=self.access,
            where=as_where(self.where, self.filters, self.namespace),
            mode=self.mode,
            params=params,
            preset=preset,
        )

    def __copy__(self) -> Self:
        """A copy over the same store, which has answered nothing yet and closes nothing."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__, _last_result=None, _opened=None)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
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


def _guarded(embed_model: BaseEmbedding | Embedder | str | None, store: HybridStore) -> Guard | None:
    """What asks ``embed_model``, which is nobody else's to ask; its name says nothing here, for nothing is stored."""
    if isinstance(embed_model, BaseEmbedding):
        embed_model = as_embedder(embed_model, name=embed_model.model_name)
    embedder = resolve_embedder(embed_model)
    return None if embedder is None else Guard(embedder, store.settings.embedding)


def _by_meaning(result: SearchResult) -> bool:
    """Whether the vector leg answered too, as far as hits can tell."""
    return any("vector" in hit.explanation.answered for hit in result)


def _first_of_each_id(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """What LlamaIndex keeps; older releases keep one of each text and metadata, whichever records they are of."""
    first: dict[str, NodeWithScore] = {}
    for each in nodes:
        first.setdefault(each.node_id, each)
    return list(first.values())
