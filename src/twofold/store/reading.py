"""The calls that change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Order, Reader, Visibility
from twofold.config import SearchParams
from twofold.errors import ConfigurationError
from twofold.search import SearchRequest, answer, answers, prepare
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike, Handle
from twofold.types import Access, Mode, Owner, Record, SearchResult, Vectors
from twofold.types.arguments import checked_count, checked_items
from twofold.types.record import checked_namespace

__all__ = ["Reading", "Records"]

Records: TypeAlias = list[Record]
"""Named here because inside of :class:`Reading` the word ``list`` is a method."""

_MODES: Final = {mode.value: mode for mode in Mode}

FieldVectors: TypeAlias = Mapping[str, npt.NDArray[np.float32]]
"""One record's vectors by field, shape (parts, dimension)."""


class Reading(Handle):
    """Searching, looking up, listing and counting."""

    def search(
        self,
        text: str,
        *,
        access: Access | None = None,
        k: int = 10,
        offset: int = 0,
        where: FilterLike = None,
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        preset: str | None = None,
        vector: Vectors | None = None,
        as_of: datetime | None = None,
        phrasings: Iterable[str] = (),
    ) -> SearchResult:
        """The ``k`` records that answer ``text`` best, by keyword and by meaning.

        Args:
            text: what is asked, any characters. With nothing to search for in it, and no vector: no hits.
            access: who asks. Default: the handle's, else ``Access()``.
            k: how many hits at most, 0 or more.
            offset: how many of the best to leave out; pages of one unchanged store neither overlap nor skip.
            where: a filter; applied inside both legs, so it never costs hits.
            mode: ``"hybrid"``, ``"keyword"`` or ``"vector"``.
            params: how to rank. Default: the store's settings.
            preset: the same as a name, one of ``twofold.PRESETS``, e.g. ``"muninn"``; in place of ``params``.
            vector: the query's embedding, used instead of asking the embedder.
            as_of: search as things stood at this instant, which has a time zone: what was archived, superseded or
                expired since is found, what began later is not; see :meth:`Record.was_living`. Default: now.
            phrasings: other ways to ask the same. A record's score is the mean of what it scores by ``text`` and by
                each of these, 0 by one that does not find it; ``vector`` is that of ``text`` alone. One that repeats
                another, or has nothing to search for in it, does not count. 100 at most. Default: none.

        Returns:
            A sequence of hits, best first, that says in ``degradations`` what was missing.

        Raises:
            SearchUnavailableError: the leg asked for by mode, or every leg, cannot answer.
            ConfigurationError: an argument cannot be used.
        """
        request = self._search_request(text, access, k, offset, where, mode, params, preset, vector, as_of, phrasings)
        parts = self._parts
        prepared = prepare(request, parts.backend, parts.guard, parts.helpers)
        if prepared.judge is not None:
            return answers([prepared], parts.backend.read, parts.touches.add)[0]
        with parts.backend.read() as reader:
            return answer(prepared, reader, parts.touches.add)

    asearch = in_thread(search)

    def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """What the store's embedder makes of ``texts``, as queries; for the ``vector`` of :meth:`search`.

        Returns:
            Shape (texts, dimension), finite, no row all zero.

        Raises:
            ConfigurationError: the store has no embedder, or takes its vectors from the caller.
            EmbeddingError: the embedder gave no usable vectors.
        """
        guard = self._parts.guard
        if guard is None:
            raise ConfigurationError("this store has no embedder: twofold.open(..., embedder=...)")
        asked = checked_items(texts, "texts", "embed_queries([text])")
        if not all(isinstance(text, str) for text in asked):
            raise ConfigurationError("texts is a list of texts")
        return guard.queries(asked)

    aembed_queries = in_thread(embed_queries)

    def get(
        self,
        id: str,
        *,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Record | None:
        """The record of this id, or None if there is none that the access may see.

        Args:
            id: the record's id.
            access: who asks. Default: the handle's, else ``Access()``.
            namespace: where it is. Default: the root.
            owner: whose it is. Default: the access's own, else its rooms' in their order, else everybody's.
            include_archived: whether an archived, superseded, expired or not yet valid record counts.
            as_of: the instant, with a time zone, at which it must have been visible. Default: now.

        Raises:
            AmbiguousIdError: under ``Access.everything()`` several owners hold the id and ``owner`` is not given.
        """
        found = self.get_many(
            [id], access=access, namespace=namespace, owner=owner, include_archived=include_archived, as_of=as_of
        )
        return found[0] if found else None

    aget = in_thread(get)

    def get_many(
        self,
        ids: Iterable[str],
        *,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Records:
        """The records of these ids in the order asked, each once; unknown ones are left out. See :meth:`get`."""
        asker = self._access(access)
        visible = self._visible(asker, include_archived=include_archived, as_of=as_of)
        with self._backend.read() as reader:
            keys = self._located(reader, ids, asker, namespace, owner)
            records = reader.records(list(keys.values()))
        return [
            record
            for key in keys.values()
            if (record := records.get(key)) is not None and self._living(record, visible)
        ]

    aget_many = in_thread(get_many)

    def vectors(self, records: Iterable[Record], *, access: Access | None = None) -> Sequence[FieldVectors]:
        """The stored vectors of records, of the embedder in use: to compare the records with each other, say.

        Args:
            records: as ``get``, ``list`` or a search gave them.
            access: who asks. Default: the handle's, else ``Access()``.

        Returns:
            One a record, in order: by field, shape (parts, dimension). Empty for a record that is gone, that the access
            may not see, or that has no vector yet.
        """
        asker = self._access(access)
        asked = checked_items(records, "records", "vectors([hit.record for hit in result])")
        if not all(isinstance(record, Record) for record in asked):
            raise ConfigurationError("records is a list of records: write vectors([hit.record for hit in result])")
        with self._backend.read() as reader:
            keys = [
                self._located(reader, [record.id], asker, record.namespace, record.belongs_to).get(record.id)
                for record in asked
            ]
            found = reader.vectors([key for key in keys if key is not None])
        return [found[key].by_field if key is not None and key in found else {} for key in keys]

    avectors = in_thread(vectors)

    def list(
        self,
        *,
        access: Access | None = None,
        where: FilterLike = None,
        order: str | Sequence[str] = (),
        limit: int | None = None,
        offset: int = 0,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Records:
        """Records by attribute, not by relevance.

        Args:
            access: who asks. Default: the handle's, else ``Access()``.
            where: a filter. Default: all.
            order: names of attributes, with ``-`` in front for descending, e.g. ``"-importance"``; equal ones, and
                all by default, come newest first, then by id.
            limit: how many at most. Default: all.
            offset: how many to leave out first.
            include_archived: whether archived, superseded, expired and not yet valid records are listed too.
            as_of: list what was visible at this instant, which has a time zone. Default: now.
        """
        visible = self._visible(self._access(access), where, include_archived=include_archived, as_of=as_of)
        with self._backend.read() as reader:
            return self._listed(reader, visible, order, limit, offset)

    alist = in_thread(list)

    def count(
        self,
        *,
        access: Access | None = None,
        where: FilterLike = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> int:
        """How many records :meth:`list` would give."""
        visible = self._visible(self._access(access), where, include_archived=include_archived, as_of=as_of)
        with self._backend.read() as reader:
            return reader.count(visible)

    acount = in_thread(count)

    def distinct(
        self,
        attribute: str,
        *,
        access: Access | None = None,
        where: FilterLike = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[Any]:
        """The values, in order and none twice, that an attribute has among the records; of ``"tags"``, each tag.

        Args:
            attribute: e.g. ``"kind"``, ``"project"``, ``"source"``, ``"namespace"``, ``"tags"``.
            access: who asks. Default: the handle's, else ``Access()``.
            where: a filter. Default: all.
            include_archived: whether archived, superseded, expired and not yet valid records count.
            as_of: count what was visible at this instant, which has a time zone. Default: now.
        """
        if not isinstance(attribute, str):
            raise ConfigurationError(f"attribute is the name of one, e.g. 'kind', not {attribute!r}")
        visible = self._visible(self._access(access), where, include_archived=include_archived, as_of=as_of)
        with self._backend.read() as reader:
            return reader.distinct(attribute, visible)

    adistinct = in_thread(distinct)

    def namespaces(
        self,
        *,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        max_depth: int | None = None,
        limit: int | None = None,
        offset: int = 0,
        access: Access | None = None,
        as_of: datetime | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """The namespaces that hold visible records, in order and none twice.

        Args:
            prefix: words they begin with; ``"*"`` is any one word.
            suffix: words they end with; ``"*"`` is any one word.
            max_depth: cut them to this many words first. Default: whole.
            limit: how many at most. Default: all.
            offset: how many to leave out first.
            access: who asks. Default: the handle's, else ``Access()``.
            as_of: those that held visible records at this instant, which has a time zone. Default: now.
        """
        visible = self._visible(self._access(access), as_of=as_of)
        with self._backend.read() as reader:
            there = reader.distinct("namespace", visible)
        return self._namespaces(there, prefix, suffix, max_depth=max_depth, limit=limit, offset=offset)

    anamespaces = in_thread(namespaces)

    def _listed(
        self, reader: Reader, visible: Visibility, order: str | Sequence[str], limit: int | None, offset: int
    ) -> Records:
        """The records of a listing, within a session."""
        keys = self._listed_keys(reader, visible, order, limit, offset)
        records = reader.records(keys)
        return [records[key] for key in keys]

    def _listed_keys(
        self, reader: Reader, visible: Visibility, order: str | Sequence[str], limit: int | None, offset: int
    ) -> Sequence[int]:
        """Their keys."""
        names = [order] if isinstance(order, str) else checked_items(order, "order", "order='-created_at'")
        if not all(isinstance(name, str) for name in names):
            raise ConfigurationError("order is a list of names of attributes: write order=('kind', '-created_at')")
        if limit is not None:
            checked_count(limit, "limit")
        orders = [Order(name.removeprefix("-"), name.startswith("-")) for name in names]
        return reader.scan(visible, orders, limit, checked_count(offset, "offset"))

    def _namespaces(
        self,
        there: Sequence[tuple[str, ...]],
        prefix: Sequence[str],
        suffix: Sequence[str],
        *,
        max_depth: int | None,
        limit: int | None,
        offset: int,
    ) -> Sequence[tuple[str, ...]]:
        """Those of the namespaces ``there`` that :meth:`namespaces` gives."""
        begins, ends = checked_namespace(prefix), checked_namespace(suffix)
        checked_count(offset, "offset")
        for name, value in (("max_depth", max_depth), ("limit", limit)):
            if value is not None:
                checked_count(value, name)
        cut = {path[:max_depth] for path in there if _path_matches(path, begins, ends)}
        stop = None if limit is None else offset + limit
        return sorted(cut)[offset:stop]

    def _search_request(
        self,
        text: str,
        access: Access | None,
        k: int,
        offset: int,
        where: FilterLike,
        mode: Mode | str,
        params: SearchParams | None,
        preset: str | None,
        vector: Vectors | None,
        as_of: datetime | None = None,
        phrasings: Iterable[str] = (),
    ) -> SearchRequest:
        asker = self._access(access)
        known = _MODES.get(mode) if isinstance(mode, str) else None
        if known is None:
            raise ConfigurationError(f"mode is one of {', '.join(Mode)}, not {mode!r}")
        visible = self._visible(asker, where, as_of=as_of)
        return SearchRequest(
            text=text,
            seen=visible,
            at=self._now() if visible.as_of else visible.at,
            k=k,
            offset=offset,
            mode=known,
            params=self._ranked_by(params, preset),
            vector=vector,
            phrasings=()
            if phrasings == ()
            else tuple(checked_items(phrasings, "phrasings", "phrasings=['the same in other words']")),
        )

    def _ranked_by(self, params: SearchParams | None, preset: str | None) -> SearchParams:
        """How a call wants to be ranked that says so by value, by name, or not at all."""
        if params is not None and not isinstance(params, SearchParams):
            raise ConfigurationError(f"params is a SearchParams, not {type(params).__name__}")
        if preset is None:
            return self._parts.settings.search if params is None else params
        if params is not None:
            raise ConfigurationError(
                "preset and params both say how to rank: give one, "
                f"or params=SearchParams.preset({preset!r}, ...) with what is to differ"
            )
        return SearchParams.preset(preset)


def _path_matches(path: tuple[str, ...], prefix: tuple[str, ...], suffix: tuple[str, ...]) -> bool:
    """Whether ``path`` begins and ends with these words; ``*`` stands for exactly one."""

    def equal(words: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
        return len(words) == len(pattern) and all(
            wanted in ("*", word) for word, wanted in zip(words, pattern, strict=True)
        )

    tail = path[len(path) - len(suffix) :] if len(suffix) <= len(path) else ()
    return equal(path[: len(prefix)], prefix) and equal(tail, suffix)
