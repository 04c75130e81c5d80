"""``HybridStore``: the store that the user holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from types import TracebackType
from typing import Any, Self, TypeAlias, get_args

from twofold.backends.protocol import CheckReport, Reader, StoreInfo, Visibility
from twofold.config import StoreSettings
from twofold.embedders import EmbedderState
from twofold.errors import ConfigurationError, StoreError
from twofold.filters import as_filter
from twofold.ingest import Draft, embed
from twofold.search import PreparedSearch, answer, answers, prepare
from twofold.store.asynchronous import in_thread
from twofold.store.contextual import Contextual
from twofold.store.handle import FilterLike
from twofold.store.lifecycle import Lifecycle
from twofold.store.linking import Linking
from twofold.store.marks import Marks
from twofold.store.moving import Moving
from twofold.store.operations import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search
from twofold.store.reembedding import Reembedding
from twofold.store.succession import Succession
from twofold.store.together import Together
from twofold.types import Access, EmbedReport, Mode, Owner, Progress, SearchResult
from twofold.types.access import checked_owner
from twofold.types.arguments import checked_count, checked_flag, checked_items
from twofold.types.record import checked_namespace

__all__ = ["HybridStore", "Info"]

_Asked: TypeAlias = Mapping[type, Sequence[tuple[int, Any]]]
"""The operations of a batch by kind, each with its place."""

_Searches: TypeAlias = Mapping[int, PreparedSearch | SearchResult]
"""By their place among the operations of a batch."""


@dataclass(frozen=True, slots=True)
class Info:
    """What a store says of itself, and of what the caller may see."""

    path: str
    """Where it is."""
    mode: Mode
    """How it answers by default: keyword only where there is no embedder."""
    embedder: str | None
    """The fingerprint of the embedder in use."""
    embedder_state: EmbedderState | None
    """How the embedder does; None where there is none, or the caller brings the vectors."""
    records: int
    """How many records the caller may see, archived ones not counted."""
    pending: int
    """How many of them wait for a vector; 0 where there is no embedder that they could wait for."""
    backend: StoreInfo
    """What the file says."""


class HybridStore(Contextual, Together, Succession, Linking, Lifecycle, Reembedding, Moving):
    """Records in one file, found by keyword and by meaning. Made by :func:`twofold.open`.

    May be used from any number of threads, and closed by one while others use it: those get a
    :class:`StoreClosedError`. Every call takes ``access``, who is asking; :meth:`view` gives a handle that has it
    already. Every call has an async twin with an ``a`` in front, e.g. ``asearch``.
    """

    def view(self, access: Access) -> HybridStore:
        """The same store, bound to one access: its calls need none, and take no other.

        Closing a view closes nothing.
        """
        if not isinstance(access, Access):
            raise ConfigurationError(f"access is an Access, not {type(access).__name__}: write Access(user=...)")
        return _View(self._parts, self._access(access))

    @property
    def settings(self) -> StoreSettings:
        """How it was opened; for what changes a part of it, e.g. ``replace(store.settings.search, pool=20)``."""
        return self._parts.settings

    @property
    def marks(self) -> Marks:
        """What a record manager remembers: which keys were written when."""
        return Marks(self._parts, self._bound)

    def batch(self, operations: Iterable[Operation], *, access: Access | None = None) -> Sequence[Any]:
        """Carry out several operations in one transaction: all of them, or none.

        Reads see the state before the batch; writes happen in order; texts are embedded first.

        Args:
            operations: ``Get``, ``Search``, ``ListRecords``, ``ListNamespaces``, ``Add`` and ``Delete`` of
                :mod:`twofold.store`.
            access: who asks. Default: the handle's, else ``Access()``.

        Returns:
            One result an operation, in order; see each one's docstring.

        Raises:
            What the operations raise; nothing was changed then.
        """
        asker = self._access(access)
        asked = _by_kind(checked_items(operations, "operations", "[Add(NewRecord(text='x')), Delete('a')]"))
        adds = [self._draft(index, each.record, asker) for index, each in asked[Add]]
        searches = {index: self._prepared_or_answered(each, asker) for index, each in asked[Search]}
        made = embed(adds, self._ingest, anew=_added_after_deleted(asked, adds))
        writes = sorted((*asked[Add], *asked[Delete]), key=itemgetter(0))
        if not writes:
            with self._backend.read() as reader:
                return self._read_all(reader, asked, searches, asker)
        with self._write() as writer:
            results = self._read_all(writer, asked, searches, asker)
            done = 0
            for adding, run in groupby(writes, lambda write: isinstance(write[1], Add)):
                places = list(run)  # those that follow on each other are written together, in half the time
                if adding:
                    part = slice(done, done := done + len(places))
                    stored = self._stored(writer, adds[part], replace(made, vectors=made.vectors[part]), "add")
                    for (index, _), added in zip(places, stored, strict=True):
                        results[index] = added
                    continue
                for some in _of_different_ids(places):
                    keys = self._keys_of(writer, some, asker, to_write=True)
                    writer.delete(list(keys.values()))
                    for index, _ in some:
                        results[index] = index in keys
            return results

    abatch = in_thread(batch)

    def info(self, *, access: Access | None = None) -> Info:
        """What the store is, and how much of it the caller may see."""
        asker = self._access(access)
        visible = self._visible(asker)
        guard = self._parts.guard
        with self._backend.read() as reader:
            waits = guard is not None or reader.fingerprint is not None
            records, pending = reader.count(visible), reader.pending(visible) if waits else 0
        return Info(
            path=self._parts.path,
            mode=Mode.KEYWORD if guard is None else Mode.HYBRID,
            embedder=None if guard is None else guard.fingerprint,
            embedder_state=guard.state if guard is not None and guard.embeds else None,
            records=records,
            pending=pending,
            backend=_shown_to(asker, self._backend.info()),
        )

    ainfo = in_thread(info)

    def embed_pending(
        self,
        *,
        access: Access | None = None,
        batch_size: int | None = None,
        retry_parked: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedReport:
        """Make the vectors that records still wait for. Happens by itself when an embedder is well again, and when it
        answers for the first time.

        Several threads and processes may do it at once: they share the work, and none does what another is doing. None
        waits for another either: what others are still at work on when this call ends is the report's ``elsewhere``.
        It may be called again at any time, and goes on where it ended. What ends it early, ``close()`` included, leaves
        the rest to the next call.

        Args:
            access: whose records: all that it may see. Default: the handle's, else ``Access()``;
                ``Access.everything()`` for all there are.
            batch_size: records embedded and committed together, at least 1. Default: that of the embedding settings.
            retry_parked: whether records whose text the embedder refused before are tried again.
            progress: called after each batch is committed.

        Raises:
            ConfigurationError: there is no embedder, or not the one that the file's vectors are of.
            StoreError: the store cannot be written, or was closed meanwhile.
        """
        if batch_size is not None:
            checked_count(batch_size, "batch_size", least=1)
        checked_flag(retry_parked, "retry_parked")
        return self._parts.backfill.run(
            self._access(access), batch_size=batch_size, retry_parked=retry_parked, progress=progress
        )

    aembed_pending = in_thread(embed_pending)

    def check(self) -> CheckReport:
        """Compare everything derived with the records it is derived from. Changes nothing.

        Looks at the whole file, so a view must be of ``Access.everything()``.
        """
        self._refuse_views("check")
        return self._backend.check()

    acheck = in_thread(check)

    def reindex(self) -> None:
        """Make the keyword index anew from the records. Repairs what ``check`` says of tokens."""
        self._refuse_views("reindex")
        self._backend.reindex()

    areindex = in_thread(reindex)

    def close(self) -> None:
        """Write what was touched, wait for what is in flight, then close the file. Calling it again does nothing.

        Raises:
            StoreError: another process held the write lock, so that touches are lost; the file is closed all the same.
        """
        self._parts.backfill.close()
        try:
            self._parts.touches.close()
        finally:
            self._backend.close()

    aclose = in_thread(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with nullcontext() if error is None else suppress(StoreError):  # the block's own error is never masked
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with nullcontext() if error is None else suppress(StoreError):
            await self.aclose()

    def __repr__(self) -> str:
        bound = "" if self._bound is None else f", access={self._bound!r}"
        return f"{type(self).__name__}({self._parts.path!r}{bound})"

    def _prepared_or_answered(self, search: Search, access: Access) -> PreparedSearch | SearchResult:
        """A search of a batch: ready to run in its transaction; or answered, where a reranker is asked, which no
        transaction waits for.
        """
        request = self._search_request(
            search.text,
            access,
            search.k,
            search.offset,
            search.where,
            search.mode,
            search.params,
            search.preset,
            search.vector,
            search.as_of,
            search.phrasings,
        )
        prepared = prepare(request, self._backend, self._parts.guard, self._parts.helpers)
        return prepared if prepared.judge is None else answers([prepared], self._backend.read)[0]

    def _read_all(self, reader: Reader, asked: _Asked, searches: _Searches, access: Access) -> list[Any]:
        """The results of the reads among ``asked``, and None for the writes. Records are fetched all together."""
        results: list[Any] = [None] * sum(map(len, asked.values()))
        now = self._visible(access)
        got = self._keys_of(reader, asked[Get], access)
        listed = {
            index: self._listed_keys(
                reader, self._seen_by(now, each.where, each.as_of), each.order, each.limit, each.offset
            )
            for index, each in asked[ListRecords]
        }
        wanted = list(dict.fromkeys(chain(got.values(), *listed.values())))
        records = reader.records(wanted) if wanted else {}
        for index, each in asked[Get]:
            record = records.get(got.get(index, -1))
            if record is not None and self._living(record, self._seen_by(now, None, each.as_of)):
                results[index] = record
        for index, keys in listed.items():
            results[index] = [records[key] for key in keys]
        for index, ready in searches.items():
            results[index] = ready if isinstance(ready, SearchResult) else answer(ready, reader)
        there: dict[datetime | None, Sequence[tuple[str, ...]]] = {}  # at each instant that is asked about
        for index, each in asked[ListNamespaces]:
            visible = self._seen_by(now, None, each.as_of)
            if each.as_of not in there:
                there[each.as_of] = reader.distinct("namespace", visible)
            results[index] = self._namespaces(
                there[each.as_of],
                each.prefix,
                each.suffix,
                max_depth=each.max_depth,
                limit=each.limit,
                offset=each.offset,
            )
        return results

    def _seen_by(self, now: Visibility, where: FilterLike, as_of: datetime | None) -> Visibility:
        """What a read of a batch may see: as things stand at the batch's instant, unless it names another."""
        if as_of is not None:
            return self._visible(now.access, where, as_of=as_of)
        return now if where is None else Visibility(now.access, now.at, as_filter(where))

    def _keys_of(
        self, reader: Reader, named: Iterable[tuple[int, Any]], access: Access, *, to_write: bool = False
    ) -> Mapping[int, int]:
        """By the place of each ``Get`` or ``Delete`` that finds a record, the record's key; looked for namespace by
        namespace.
        """
        places: dict[tuple[tuple[str, ...], Owner | None], list[tuple[int, str]]] = {}
        for index, each in named:
            owner = None if each.owner is None else checked_owner(each.owner)
            places.setdefault((checked_namespace(each.namespace), owner), []).append((index, each.id))
        keys: dict[int, int] = {}
        for (namespace, owner), those in places.items():
            found = self._located(reader, [id_ for _, id_ in those], access, namespace, owner, to_write=to_write)
            keys.update((index, found[id_]) for index, id_ in those if id_ in found)
        return keys


def _by_kind(operations: Sequence[Any]) -> _Asked:
    """The operations of each kind, with their places."""
    kinds: dict[type, list[tuple[int, Any]]] = {kind: [] for kind in get_args(Operation)}
    for index, each in enumerate(operations):
        kind = type(each) if type(each) in kinds else next((kind for kind in kinds if isinstance(each, kind)), None)
        if kind is None:
            raise ConfigurationError(
                f"an operation is a Get, Search, ListRecords, ListNamespaces, Add or Delete, not {each!r}"
            )
        kinds[kind].append((index, each))
    return kinds


def _of_different_ids(deletes: Iterable[tuple[int, Delete]]) -> Iterator[list[tuple[int, Delete]]]:
    """Deletes in a row that no earlier one of them bears upon: an id may be there once more, of another owner."""
    some: list[tuple[int, Delete]] = []
    ids: set[tuple[str, tuple[str, ...]]] = set()
    for index, each in deletes:
        name = str(each.id), checked_namespace(each.namespace)  # an id that is no text is refused by who looks it up
        if name in ids:
            yield some
            some, ids = [], set()
        some.append((index, each))
        ids.add(name)
    yield some


def _added_after_deleted(asked: _Asked, adds: Sequence[Draft]) -> set[int]:
    """The places among ``adds`` of those that come after a ``Delete`` of their id, whosever it removes."""
    deleted: dict[tuple[str, tuple[str, ...]], int] = {}
    for index, each in asked[Delete]:
        if isinstance(each.id, str):
            deleted.setdefault((each.id, checked_namespace(each.namespace)), index)
    if not deleted:
        return set()
    return {
        place
        for place, (draft, (index, _)) in enumerate(zip(adds, asked[Add], strict=True))
        if deleted.get((draft.id, draft.new.namespace), index) < index
    }


def _shown_to(access: Access, info: StoreInfo) -> StoreInfo:
    """``info`` without the file's size where users or rooms ask: it grows with what others write."""
    if access.is_everything or not (access.user or access.rooms):
        return info
    return replace(info, details={name: value for name, value in info.details.items() if name != "file_bytes"})


class _View(HybridStore):
    """A store bound to one access; see :meth:`HybridStore.view`."""

    def close(self) -> None:
        """Nothing: the store that it is a view of is closed by who opened it."""

    async def aclose(self) -> None:
        """Nothing, like :meth:`close`."""
