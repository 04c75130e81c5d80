"""``TwofoldStore``: LangGraph's ``BaseStore`` over a twofold store."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self, get_args

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

import twofold
from langchain_twofold.graph.coalescing import Coalescer
from langchain_twofold.graph.filters import as_filter
from langchain_twofold.graph.index import TextsOfItems, embedder_of
from langchain_twofold.graph.namespaces import checked_namespaces, matching
from langchain_twofold.graph.sweeping import Sweeper
from twofold import (
    A,
    Access,
    ConfigurationError,
    Filter,
    Hit,
    HybridStore,
    NewRecord,
    Record,
    RecordNotFoundError,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search

__all__ = ["SearchMode", "TwofoldStore"]

SearchMode = Literal["hybrid", "vector", "keyword"]

_TTL: Final = "ttl"
_DEFAULT_INTERVAL: Final = 5.0
"""Minutes between two sweeps, where the configuration does not say."""


class TwofoldStore(BaseStore):
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
        self._texts = TextsOfItems(index)
        self._mode: SearchMode = search_mode
        self._opened_here = not isinstance(store, HybridStore)
        if isinstance(store, HybridStore):
            given = [*(("index['embed']",) if index and index.get("embed") else ()), *sorted(settings)]
            if embedding_name is not None:
                given.append("embedding_name")
            if given:
                raise ConfigurationError(
                    f"{', '.join(given)}: the store is open already, with its own; give them to twofold.open(...), "
                    "or a path in place of the store"
                )
            self._store = store
        else:
            embedder = embedder_of(index, embedding_name)
            if embedder is None and search_mode == "vector":
                raise ConfigurationError("search_mode='vector' needs a model: index={'embed': ..., 'dims': ...}")
            self._store = twofold.open(store, embedder=embedder, settings=_settings(settings))
        self.ttl_config = ttl
        self._access = access
        self._params = params
        self._coalescer = Coalescer(self._arun)
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
    def store(self) -> HybridStore:
        """The twofold store underneath."""
        return self._store

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
        plan = self._planned(ops)
        found = self._store.batch(plan.operations, access=self._access)
        for record in plan.to_refresh(found):
            try:
                self._store.update(**self._refreshing(record))
            except RecordNotFoundError:  # deleted meanwhile
                continue
        return self._results(plan, found)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of :meth:`batch`. A single operation shares its transaction with those of the same tick."""
        asked = list(ops)
        if len(asked) != 1:
            return await self._arun(asked)
        self._planned(asked)  # what cannot be done is refused before it joins others
        return [await self._coalescer.submit(asked[0])]

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
        if self._opened_here:
            self._store.close()

    async def aclose(self) -> None:
        """Async twin of :meth:`close`."""
        self.stop_ttl_sweeper()
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
        return f"{type(self).__name__}({self._store!r}, search_mode={self._mode!r})"

    async def _arun(self, ops: Iterable[Op]) -> list[Result]:
        plan = self._planned(ops)
        found = await self._store.abatch(plan.operations, access=self._access)
        for record in plan.to_refresh(found):
            try:
                await self._store.aupdate(**self._refreshing(record))
            except RecordNotFoundError:
                continue
        return self._results(plan, found)

    def _planned(self, ops: Iterable[Op]) -> _Plan:
        """The operations of twofold that ``ops`` come to; of several puts of one key the last counts."""
        asked = list(ops)
        for op in asked:
            checked_namespaces(op)
        puts = {(tuple(op.namespace), str(op.key)): op for op in asked if isinstance(op, PutOp)}
        reads = [(place, op) for place, op in enumerate(asked) if not isinstance(op, PutOp)]
        operations: list[Operation] = [self._read(op) for _, op in reads]
        operations += [self._write(namespace, key, op) for (namespace, key), op in puts.items()]
        return _Plan(asked, tuple(place for place, _ in reads), operations)

    def _read(self, op: Op) -> Operation:
        if isinstance(op, GetOp):
            return Get(str(op.key), tuple(op.namespace))
        if isinstance(op, SearchOp):
            prefix = tuple(op.namespace_prefix)
            where = _both(A.namespace.prefix(prefix) if prefix else None, as_filter(op.filter))
            if not op.query:
                return ListRecords(where, "-event_at", op.limit, op.offset)
            return Search(op.query, op.limit, op.offset, where, self._mode, self._params)
        if isinstance(op, ListNamespacesOp):
            begins, ends = _only(op, "prefix"), _only(op, "suffix")
            if begins is None or ends is None:  # several of a kind: looked at afterwards
                return ListNamespaces()
            return ListNamespaces(begins, ends, op.max_depth, op.limit, op.offset)
        raise ConfigurationError(f"an operation is a GetOp, SearchOp, PutOp or ListNamespacesOp, not {op!r}")

    def _write(self, namespace: tuple[str, ...], key: str, op: PutOp) -> Operation:
        if op.value is None:
            return Delete(key, namespace)
        if not isinstance(op.value, Mapping):
            raise ConfigurationError(f"a value is a dict, not {type(op.value).__name__}")
        value = _as_json(op.value)
        texts = self._texts(value, op.index)
        now = self._store.settings.clock()
        return Add(
            NewRecord(
                fields={self._field: texts} if texts else {},
                id=key,
                namespace=namespace,
                metadata=value,
                payload=None if op.ttl is None else {_TTL: op.ttl},
                ttl=None if op.ttl is None else timedelta(minutes=op.ttl),
                created_at=now,
                event_at=now,  # when it was put: a read that makes it live longer changes updated_at, and not this
            )
        )

    @property
    def _field(self) -> str:
        return (self._store.settings.fields or ("text",))[0]

    def _refreshing(self, record: Record) -> dict[str, Any]:
        return {
            "id": record.id,
            "namespace": record.namespace,
            "owner": record.belongs_to,
            "ttl": timedelta(minutes=record.payload[_TTL]),
            "access": self._access,
        }

    def _results(self, plan: _Plan, found: Sequence[Any]) -> list[Result]:
        results: list[Result] = [None] * len(plan.ops)
        for place, answer in zip(plan.reads, found, strict=False):  # what follows is of writes
            op = plan.ops[place]
            if isinstance(op, GetOp):
                results[place] = None if answer is None else _item(answer)
            elif isinstance(op, ListNamespacesOp):
                results[place] = matching(op, answer)
            elif isinstance(answer, SearchResult):
                self._last_result = answer
                results[place] = [self._found(hit) for hit in answer]
            else:
                results[place] = [_search_item(record, None) for record in answer]
        return results

    def _found(self, hit: Hit) -> SearchItem:
        vector = hit.explanation.legs.get("vector")
        raw = self._mode == "vector" and vector is not None
        return _search_item(hit.record, vector.raw if raw and vector is not None else hit.score)


class _Plan(NamedTuple):
    """What a batch comes to."""

    ops: Sequence[Op]
    reads: tuple[int, ...]
    """The places of the reads, whose results come first."""
    operations: Sequence[Operation]

    def to_refresh(self, found: Sequence[Any]) -> Iterator[Record]:
        """The records that were read and live longer for it, each once."""
        seen = set()
        for place, answer in zip(self.reads, found, strict=False):
            op = self.ops[place]
            if answer is None or not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl:
                continue
            records = [answer] if isinstance(op, GetOp) else [getattr(each, "record", each) for each in answer]
            for record in records:
                name = (record.belongs_to, record.namespace, record.id)
                if name not in seen and isinstance(record.payload, dict) and record.payload.get(_TTL) is not None:
                    seen.add(name)
                    yield record


class _Nothing:
    """What there is to wait for where everything is done."""

    def __await__(self) -> Iterator[None]:
        return iter(())


def _settings(given: dict[str, Any]) -> StoreSettings:
    known = {each.name for each in fields(StoreSettings)} - {"fields"}
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(
            f"unknown arguments: {', '.join(unknown)}; the settings of a store are {', '.join(sorted(known))}"
        )
    return StoreSettings(**given)


def _both(first: Filter | None, second: Filter | None) -> Filter | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _only(op: ListNamespacesOp, kind: str) -> tuple[str, ...] | None:
    """The one condition of a kind, () if there is none, None if there are several."""
    paths = [tuple(each.path) for each in op.match_conditions or () if each.match_type == kind]
    return paths[0] if len(paths) == 1 else (None if paths else ())


def _as_json(value: Any) -> Any:
    """A mapping as a dict and a tuple as a list, all the way down; the store refuses what else is no JSON."""
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    return value


def _item(record: Record) -> Item:
    return Item(
        value=copy.deepcopy(dict(record.metadata)),
        key=record.id,
        namespace=record.namespace,
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
    )


def _search_item(record: Record, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=record.namespace,
        key=record.id,
        value=copy.deepcopy(dict(record.metadata)),
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
        score=score,
    )
