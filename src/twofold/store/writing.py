"""The calls that change records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, get_args

from twofold.backends.protocol import Writer
from twofold.errors import AccessError, ConfigurationError, InvalidRecordError, RecordNotFoundError
from twofold.filters import A
from twofold.ingest import Draft, Duplicates, Embedded, batches, draft, embed, write
from twofold.links import Together
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike, Handle
from twofold.store.nearness import near_duplicates
from twofold.types import (
    UNSET,
    Access,
    Added,
    AddReport,
    Degradation,
    NearDuplicate,
    NewRecord,
    Outcome,
    Owner,
    Progress,
    Record,
    Scope,
    Unset,
    Vectors,
)
from twofold.types.access import checked_owner
from twofold.types.arguments import checked_count, checked_flag, checked_items
from twofold.types.record import checked_namespace, expires_after

__all__ = ["Writing"]

_DUPLICATES: Final = get_args(Duplicates)

RecordLike = NewRecord | Record | Mapping[str, Any] | str
"""What ``add_many`` takes as one record."""


class Writing(Handle):
    """Adding, changing and removing."""

    def add(
        self,
        text: str | None = None,
        *,
        access: Access | None = None,
        fields: Mapping[str, str | Sequence[str]] | None = None,
        id: str | None = None,
        kind: str | None = None,
        scope: Scope | str | None = None,
        room: str | None = None,
        namespace: Sequence[str] = (),
        project: str | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        payload: Any = None,
        importance: float | None = None,
        strength: float | None = None,
        created_at: datetime | None = None,
        event_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | float | None = None,
        vector: Vectors | None = None,
        duplicates: Duplicates = "add",
    ) -> Added:
        """Store one record. If the embedder fails it is stored all the same, its vector pending.

        Args are those of :class:`NewRecord`, which has their ranges and defaults, and besides them:

        Args:
            text: the text, for a store with one field; else give ``fields``.
            access: who adds it, and so whose it becomes. Default: the handle's, else ``Access()``.
            duplicates: what to do if another record of the same owner and namespace has the same text: ``"add"``
                it all the same, ``"skip"`` it, or ``"update"`` the other with what is given.

        Raises:
            InvalidRecordError, InvalidVectorError: it cannot be stored; nothing was written.
            AccessError: the access may not write there.
        """
        given = {
            "kind": kind,
            "metadata": metadata,
            "importance": importance,
            "strength": strength,
        }
        new = NewRecord(
            text=text,
            fields=fields,
            id=id,
            scope=scope,
            room=room,
            namespace=checked_namespace(namespace),
            project=project,
            source=source,
            tags=tuple(checked_items(tags, "tags", "tags=('one', 'two')")),
            payload=payload,
            created_at=created_at,
            event_at=event_at,
            valid_from=valid_from,
            valid_to=valid_to,
            expires_at=expires_at,
            ttl=ttl,
            vector=vector,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )
        asker = self._access(access)
        return self._add_one(draft(self._timed(new), asker, self._ingest), duplicates, asker)

    aadd = in_thread(add)

    def add_many(
        self,
        records: Iterable[RecordLike],
        *,
        access: Access | None = None,
        duplicates: Duplicates = "add",
        extracted_together: bool = False,
        batch_size: int = 500,
        progress: Callable[[Progress], None] | None = None,
    ) -> AddReport:
        """Store many records, a batch at a time, each batch in one transaction.

        A list is checked as a whole before anything is written. A generator is streamed: an error in it leaves the
        batches before it stored. To resume, add the same ids again: what is there already is neither embedded nor
        written again.

        Args:
            records: texts, dicts with the names of :class:`NewRecord`, :class:`NewRecord` or :class:`Record`.
            access: who adds them. Default: the handle's, else ``Access()``.
            duplicates: see :meth:`add`.
            extracted_together: whether they come from one text, and so are linked to each other as ``co_extracted``:
                each to the nine after it in the call, which of up to ten links every one to every other. Records of
                different owners are not linked.
            batch_size: records embedded and committed together, at least 1. Default: 500.
            progress: called after each batch is committed.

        Raises:
            InvalidRecordError, InvalidVectorError: a record cannot be stored; the message says which.
            AccessError: the access may not write there.
        """
        asker = self._access(access)
        if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
            raise ConfigurationError("add_many takes a list of records; for one use add(...)")
        _check_duplicates(duplicates)
        if progress is not None and not callable(progress):
            raise ConfigurationError(f"progress is a function that takes a Progress, not {type(progress).__name__}")
        checked_count(batch_size, "batch_size", least=1)
        total = len(records) if isinstance(records, Sequence) else None
        report = _Report()
        together = Together() if checked_flag(extracted_together, "extracted_together") else None
        drafts: Iterable[Draft] = (self._draft(index, value, asker) for index, value in enumerate(records))
        if total is not None:
            drafts = list(drafts)
        for batch in batches(drafts, batch_size):
            report.include(self._add_batch(batch, duplicates, together))
            if progress is not None:
                progress(Progress(len(report.ids), total))
        return report.finished()

    aadd_many = in_thread(add_many)

    def update(
        self,
        id: str,
        *,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
        text: str | Unset = UNSET,
        fields: Mapping[str, str | Sequence[str]] | Unset = UNSET,
        kind: str | Unset = UNSET,
        project: str | Unset | None = UNSET,
        source: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
        payload: Any = UNSET,
        importance: float | Unset = UNSET,
        strength: float | Unset = UNSET,
        event_at: datetime | Unset | None = UNSET,
        valid_from: datetime | Unset | None = UNSET,
        valid_to: datetime | Unset | None = UNSET,
        expires_at: datetime | Unset | None = UNSET,
        ttl: timedelta | float | Unset = UNSET,
        vector: Vectors | None = None,
    ) -> Added:
        """Change what is given of one record and leave the rest; text that does not change is not embedded again.

        Args:
            id: which record; found as :meth:`get` does, archived ones too.
            access: who changes it. Default: the handle's, else ``Access()``.
            namespace: where it is. Default: the root.
            owner: whose it is. Default: as :meth:`get`.
            text: the whole new text, for a store with one field.
            fields: the new text of the fields named; the others stay.
            vector: a ready embedding of the new text.

        The others are those of :class:`NewRecord`; None clears what may be empty.

        Raises:
            RecordNotFoundError: there is no such record that the access may see.
            AccessError: the access may see it but not change it.
        """
        asker = self._access(access)
        changes: dict[str, Any] = {
            name: value
            for name, value in {
                "kind": kind,
                "project": project,
                "source": source,
                "tags": tags,
                "metadata": metadata,
                "payload": payload,
                "importance": importance,
                "strength": strength,
                "event_at": event_at,
                "valid_from": valid_from,
                "valid_to": valid_to,
                "expires_at": expires_at,
            }.items()
            if value is not UNSET
        }
        if fields is not UNSET and not isinstance(fields, Mapping):
            raise InvalidRecordError(f"fields is a dict, not {type(fields).__name__}")
        if tags is not UNSET:
            changes["tags"] = tuple(checked_items(tags, "tags", "tags=('one', 'two')"))
        if ttl is not UNSET:
            if expires_at is not UNSET:
                raise InvalidRecordError("give either expires_at=... or ttl=...")
            changes["expires_at"] = expires_after(ttl, self._now())
        if text is not UNSET and fields is not UNSET:
            raise InvalidRecordError("give either text=... or fields={name: text, ...}")
        while True:
            with self._backend.read() as reader:
                key = self._located(reader, [id], asker, namespace, owner, to_write=True).get(id)
                stored = None if key is None else reader.records((key,)).get(key)
            if key is None or stored is None:
                raise RecordNotFoundError(f"there is no record {id!r} here that this access may see")
            change = self._changed(stored, text, fields, changes, vector, asker)
            made = embed([change], self._ingest)
            with self._write() as writer:
                current = writer.records((key,)).get(key)
                if current is not None and current.revision == stored.revision:
                    return self._stored(writer, [change], made, "add")[0]
            # Somebody else changed or deleted it while this was being embedded: look again.

    aupdate = in_thread(update)

    def archive(
        self,
        ids: str | Iterable[str],
        *,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> int:
        """Hide records from every call that does not ask for archived ones; nothing of them is lost.

        Returns:
            How many there were; unknown ids are passed over.

        Raises:
            AccessError: the access may see a record but not change it; nothing was changed.
        """
        return self._set_archived(ids, self._now(), access, namespace, owner)

    aarchive = in_thread(archive)

    def restore(
        self,
        ids: str | Iterable[str],
        *,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> int:
        """Undo :meth:`archive`."""
        return self._set_archived(ids, None, access, namespace, owner)

    arestore = in_thread(restore)

    def delete(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        where: FilterLike = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> int:
        """Remove records, with their tokens and vectors: those of ``ids``, or all that ``where`` fits.

        Args:
            ids: one id or several; unknown ones are passed over. Found as :meth:`get` does, archived ones too.
            where: a filter instead of ids; of what it fits, all that the access may write is removed.
            access: who removes them. Default: the handle's, else ``Access()``.
            namespace: where the ids are. Default: the root.
            owner: whose the ids are. Default: as :meth:`get`.

        Returns:
            How many were removed.

        Raises:
            AccessError: the access may see the record of an id but not remove it; nothing was removed.
            ConfigurationError: neither or both of ``ids`` and ``where`` are given; to remove all use :meth:`clear`.
        """
        asker = self._access(access)
        if (ids is None) == (where is None):
            raise ConfigurationError("delete takes either ids or where=...; to remove everything use clear()")
        if isinstance(where, Mapping) and not where:
            raise ConfigurationError("an empty filter fits everything; to remove everything use clear()")
        with self._write() as writer:
            if ids is None:
                keys = self._writable(writer, self._visible(asker, where, include_archived=True))
            else:
                wanted = (ids,) if isinstance(ids, str) else ids
                keys = list(self._located(writer, wanted, asker, namespace, owner, to_write=True).values())
            writer.delete(keys)
        return len(keys)

    adelete = in_thread(delete)

    def clear(self, *, access: Access | None = None, namespace: Sequence[str] = ()) -> int:
        """Remove every record that the access may write, in a namespace and below it.

        Args:
            access: who removes them. Default: the handle's, else ``Access()``.
            namespace: where. Default: everywhere.

        Returns:
            How many were removed.
        """
        asker = self._access(access)
        path = checked_namespace(namespace)
        where = A.namespace.prefix(path) if path else None
        with self._write() as writer:
            keys = self._writable(writer, self._visible(asker, where, include_archived=True))
            writer.delete(keys)
        return len(keys)

    aclear = in_thread(clear)

    def _timed(self, new: NewRecord) -> NewRecord:
        """``new`` with the instant that its ``ttl`` comes to."""
        if new.ttl is None:
            return new
        return replace(new, ttl=None, expires_at=expires_after(new.ttl, self._now()))

    def _draft(self, index: int, value: RecordLike, access: Access) -> Draft:
        try:
            new = self._timed(NewRecord.from_value(value))
            owner = checked_owner(value.belongs_to) if isinstance(value, Record) else None
            if owner is not None and not access.can_write(owner):
                raise AccessError(f"this access may not add records for {owner}")
            return draft(new, access, self._ingest, owner)
        except (InvalidRecordError, AccessError, ConfigurationError) as error:
            error.add_note(f"This is record {index} of those given, counted from 0.")
            raise

    def _changed(
        self,
        stored: Record,
        text: str | Unset,
        fields: Mapping[str, str | Sequence[str]] | Unset,
        changes: Mapping[str, Any],
        vector: Vectors | None,
        access: Access,
    ) -> Draft:
        """``stored`` with some of it changed, to be written in its place."""
        words: dict[str, Any] = {}
        if text is not UNSET:
            words = {"text": text, "fields": None}
        elif fields is not UNSET:
            words = {"fields": {**stored.fields, **fields}}
        new = replace(NewRecord.from_value(stored), **words, **changes, vector=vector)
        return draft(new, access, self._ingest, stored.belongs_to, revives=False)

    def _add_one(self, each: Draft, duplicates: Duplicates, access: Access) -> Added:
        """Store a record, and say what it is much like."""
        _check_duplicates(duplicates)
        made = embed([each], self._ingest)
        threshold = self._parts.settings.near_duplicates
        near: tuple[NearDuplicate, ...] = ()
        if threshold is not None:
            near = near_duplicates(self._backend, each, made, threshold, access, self._now())
        with self._write() as writer:
            (added,) = self._stored(writer, [each], made, duplicates)
        if not near:
            return added
        others = tuple(other for other in near if (other.id, other.owner) != (added.id, each.owner))
        return replace(added, near_duplicates=others)

    def _add_batch(
        self, drafts: Sequence[Draft], duplicates: Duplicates, together: Together | None = None
    ) -> Sequence[Added]:
        _check_duplicates(duplicates)
        made = embed(drafts, self._ingest)
        with self._write() as writer:
            return self._stored(writer, drafts, made, duplicates, together)

    def _stored(
        self,
        writer: Writer,
        drafts: Sequence[Draft],
        made: Embedded,
        duplicates: Duplicates,
        together: Together | None = None,
    ) -> Sequence[Added]:
        """Write drafts in a transaction, with the links that the settings ask for."""
        semantic_links = self._parts.settings.semantic_links
        return write(writer, drafts, made, duplicates, self._now(), semantic_links=semantic_links, together=together)

    def _set_archived(
        self,
        ids: str | Iterable[str],
        at: datetime | None,
        access: Access | None,
        namespace: Sequence[str],
        owner: Owner | None,
    ) -> int:
        wanted = (ids,) if isinstance(ids, str) else ids
        with self._write() as writer:
            keys = self._located(writer, wanted, self._access(access), namespace, owner, to_write=True)
            writer.set_archived(list(keys.values()), at)
        return len(keys)


def _check_duplicates(duplicates: object) -> None:
    if duplicates not in _DUPLICATES:
        raise ConfigurationError(f"duplicates is one of {', '.join(_DUPLICATES)}, not {duplicates!r}")


class _Report:
    """Adds up an :class:`AddReport`."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._counts = dict.fromkeys(Outcome, 0)
        self._pending = 0
        self._degradations: dict[str, Degradation] = {}

    def include(self, added: Iterable[Added]) -> None:
        for each in added:
            self.ids.append(each.id)
            self._counts[each.outcome] += 1
            self._pending += each.pending
            for degradation in each.degradations:
                self._degradations.setdefault(degradation.code, degradation)

    def finished(self) -> AddReport:
        return AddReport(
            ids=tuple(self.ids),
            added=self._counts[Outcome.ADDED],
            updated=self._counts[Outcome.UPDATED],
            unchanged=self._counts[Outcome.UNCHANGED],
            skipped=self._counts[Outcome.SKIPPED],
            pending=self._pending,
            degradations=tuple(self._degradations.values()),
        )
