"""``TwofoldStore``: LangGraph's ``BaseStore`` over a twofold store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Final, Literal, Self, get_args

from langgraph.store.base import GetOp, IndexConfig, ListNamespacesOp, Op, PutOp, Result, SearchOp, TTLConfig

import twofold
from langchain_twofold.graph.coalescing import Coalescer
from langchain_twofold.graph.index import TextsOfItems, embedder_of
from langchain_twofold.graph.operations import Asked, Translation, minutes_to_live
from langchain_twofold.graph.plan import Plan
from langchain_twofold.graph.single import SingleOperations
from langchain_twofold.graph.sweeping import Sweeper
from langchain_twofold.opening import Holding, Path, held, settings_of
from twofold import (
    Access,
    AccessError,
    ConfigurationError,
    HybridStore,
    Record,
    RecordNotFoundError,
    SearchParams,
    SearchResult,
)

__all__ = ["SearchMode", "TwofoldStore"]

SearchMode = Literal["hybrid", "vector", "keyword"]

_DEFAULT_INTERVAL: Final = 5.0
"""Minutes between two sweeps, where the configuration does not say."""


_NOT_REFRESHED: Final = (RecordNotFoundError, AccessError)
"""Why what was read does not live longer: it was deleted meanwhile, or whoever reads it may not change it."""


class TwofoldStore(Holding, SingleOperations):
    """LangGraph's long-term memory in one SQLite file, found by meaning and by keyword, sync and async in one object.

    A namespace is a boundary: what lies beside it is never reached, whatever characters it holds. All operations of a
    batch happen, or none; its reads see the state before it. A failing embedding model fails no ``put``, and no search
    unless ``search_mode="vector"``; see :attr:`last_result`. Single async operations of one tick of an event loop run
    as one transaction.

    Args:
        store: a file's path, made anew if it is not there; ``":memory:"``; or an open store. Not the file of a
            checkpointer.
        index: LangGraph's: ``embed``, a LangChain model, a function, sync or async, or ``"provider:model"``; ``dims``;
            ``fields``, the paths of a value that are searched, the whole value by default. Default: none, keywords find
            whatever text is in a value.
        ttl: LangGraph's: ``default_ttl`` in minutes, ``refresh_on_read``, ``sweep_interval_minutes``. What has expired
            is never shown, swept or not.
        search_mode: ``"hybrid"``, ``"keyword"``, or ``"vector"``, whose scores are raw cosines, -1 to 1. Default:
            hybrid.
        embedding_name: names the model, whose name is stored with its vectors; those of two names are never compared.
            Default: what the model says, else the name of its class or function.
        access: whose the items are. Default: that of the store if it is a view, else ``Access()``: everybody's.
        params: how searches rank. Default: the store's settings.
        settings: of a store that is opened here, the names of ``twofold.StoreSettings``.

    Raises:
        ConfigurationError: an argument cannot be used.
        StoreError: the file cannot be opened; the message says what to do.
    """

    supports_ttl = True

    def __init__(
        self,
        store: HybridStore | str | PathLike[str] = ":memory:",
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        search_mode: SearchMode = "hybrid",
        embedding_name: str | None = None,
        access: Access | None = None,
        params: SearchParams | None = None,
        **settings: Any,
    ) -> None:
        if search_mode not in get_args(SearchMode):
            raise ConfigurationError(f"search_mode is one of {', '.join(get_args(SearchMode))}, not {search_mode!r}")
        texts = TextsOfItems(index)
        self._mode: SearchMode = search_mode
        given = [*(("index['embed']",) if index and index.get("embed") else ()), *sorted(settings)]
        if embedding_name is not None:
            given.append("embedding_name")

        def opened(path: Path) -> HybridStore:
            embedder = embedder_of(index, embedding_name)
            if embedder is None and search_mode == "vector":
                raise ConfigurationError("search_mode='vector' needs a model: index={'embed': ..., 'dims': ...}")
            return twofold.open(path, embedder=embedder, settings=settings_of(settings, without=["fields"]))

        self._store, self._opened_here = held(store, given, opened)
        self.ttl_config = ttl
        self._access = access
        self._translated = Translation(
            texts,
            field=(self._store.settings.fields or ("text",))[0],
            mode=search_mode,
            params=params,
            clock=self._store.settings.clock,
        )
        self._submit = Coalescer(self._translated, self._arun).submit
        self._sweeper: Sweeper | None = None
        self._last_result: SearchResult | None = None

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        search_mode: SearchMode = "hybrid",
        **options: Any,
    ) -> Self:
        """A store over a file, for ``with`` and ``async with``; arguments as for the class."""
        return cls(conn_string, index=index, ttl=ttl, search_mode=search_mode, **options)

    @property
    def last_result(self) -> SearchResult | None:
        """The answer of the search that ended last, whosever it was, with degradations, scores and timings."""
        return self._last_result

    def setup(self) -> _Nothing:
        """Nothing: the file is ready once it is open. It may be awaited."""
        return _Nothing()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one transaction: all of them, or none; reads see the state before it.

        Returns:
            One result an operation, in order; None of a put.

        Raises:
            ValueError: an operation cannot be carried out; nothing was changed.
            SearchUnavailableError: vectors alone were asked for, and the model is down.
        """
        plan = Plan([self._translated(op) for op in ops])
        found = self._store.batch(plan.operations, access=self._access)
        for record in plan.to_refresh(found):
            try:
                self._store.update(**self._refreshing(record))
            except _NOT_REFRESHED:
                continue
        return self._results(plan, found)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of :meth:`batch`. A single operation shares its transaction with those of the same tick."""
        asked = list(ops)
        if len(asked) == 1 and isinstance(op := asked[0], GetOp | ListNamespacesOp | PutOp | SearchOp):
            return [await self._submit(type(op), tuple(op))]
        return await self._arun([self._translated(op) for op in asked])

    def sweep_ttl(self) -> int:
        """Delete what has expired; how many there were."""
        return self._store.sweep(access=self._access)

    async def asweep_ttl(self) -> int:
        """Async twin of :meth:`sweep_ttl`."""
        return await self._store.asweep(access=self._access)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        """Sweep now and then, in a thread, until :meth:`stop_ttl_sweeper` or :meth:`close`.

        Args:
            sweep_interval_minutes: above 0. Default: that of ``ttl``, else 5.

        Returns:
            A ``concurrent.futures.Future`` that is done when it has stopped. One that runs already goes on.
        """
        if sweep_interval_minutes is None:
            sweep_interval_minutes = (self.ttl_config or {}).get("sweep_interval_minutes") or _DEFAULT_INTERVAL
        if not sweep_interval_minutes > 0:
            raise ConfigurationError(f"sweep_interval_minutes is above 0, not {sweep_interval_minutes!r}")
        if self._sweeper is None:
            self._sweeper = Sweeper(self.sweep_ttl, sweep_interval_minutes * 60)
        return self._sweeper.ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeping; whether it has ended within ``timeout`` seconds."""
        sweeper, self._sweeper = self._sweeper, None
        return sweeper is None or sweeper.stop(timeout)

    def close(self) -> None:
        """End the sweeping, and close the store if it was opened here."""
        self.stop_ttl_sweeper()
        super().close()

    async def aclose(self) -> None:
        """Async twin of :meth:`close`."""
        self.stop_ttl_sweeper()
        await super().aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, search_mode={self._mode!r})"

    async def _arun(self, asked: Sequence[Asked]) -> list[Result]:
        plan = Plan(asked)
        found = await self._store.abatch(plan.operations, access=self._access)
        for record in plan.to_refresh(found):
            try:
                await self._store.aupdate(**self._refreshing(record))
            except _NOT_REFRESHED:
                continue
        return self._results(plan, found)

    def _refreshing(self, record: Record) -> dict[str, Any]:
        return {
            "id": record.id,
            "namespace": record.namespace,
            "owner": record.belongs_to,
            "ttl": minutes_to_live(record),
            "access": self._access,
        }

    def _results(self, plan: Plan, found: Sequence[Any]) -> list[Result]:
        for answer in found:
            if isinstance(answer, SearchResult):
                self._last_result = answer
        return plan.results(found, cosines=self._mode == "vector")


class _Nothing:
    """What there is to wait for where everything is done."""

    def __await__(self) -> Iterator[None]:
        return iter(())
