"""The calls by which one record takes the place of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from twofold.backends.protocol import LinkWrite, Reader
from twofold.errors import ConfigurationError, RecordNotFoundError
from twofold.ingest import Draft, draft, embed
from twofold.store.asynchronous import in_thread
from twofold.store.writing import Writing
from twofold.types import Access, Added, LinkKind, NewRecord, Owner, Record, Vectors
from twofold.types.arguments import checked_items
from twofold.types.record import checked_namespace

__all__ = ["Succession"]


class Succession(Writing):
    """Superseding and consolidating."""

    def supersede(
        self,
        old: str,
        new: str,
        *,
        at: datetime | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> bool:
        """Let one record take the place of another, which is not shown any more; both must be there already.

        The old one's ``superseded_by`` is set, and its ``valid_to`` ends no later than ``at``, so that it is still
        shown ``as_of`` an instant before; a link of kind ``supersedes`` leads to it from the new one. A new one that
        was made later than ``at`` is taken as valid from then on, unless it says itself from when it is. To undo it,
        add the old record again.

        Args:
            old: the id of the one that was right so far; found as :meth:`get` does, archived ones too.
            new: the id of the one that is right now, of the same owner and namespace.
            at: since when it is, with a time zone, not in the future. Default: now.
            access: who says so. Default: the handle's, else ``Access()``.
            namespace: where both are. Default: the root.
            owner: whose they are. Default: whose ``old`` is, found as :meth:`get` does.

        Returns:
            Whether it was not so already.

        Raises:
            RecordNotFoundError: there is no such record that the access may see.
            AccessError: the access may see the old one but not change it.
            ConfigurationError: they are one record, the old one has another in its place already, or the new one was
                itself superseded by the old one, at once or through others.
        """
        asker = self._access(access)
        now = self._now()
        instant = now if at is None else self._instant(at, "at")
        if instant > now:
            raise ConfigurationError("at is not in the future: what is right only later has a valid_from")
        with self._write() as writer:
            old_key = self._key_of(writer, old, asker, namespace, owner)
            before = writer.records((old_key,))[old_key]
            new_key = self._key_of(writer, new, asker, namespace, before.belongs_to)
            if old_key == new_key:
                raise ConfigurationError(f"{old!r} and {new!r} are one record: a record does not supersede itself")
            if before.superseded_by == new:
                return False
            if before.superseded_by is not None:
                raise ConfigurationError(
                    f"{old!r} is superseded already, by {before.superseded_by!r}: supersede that one"
                )
            after = writer.records((new_key,))[new_key]
            if old in _successors(writer, after):
                raise ConfigurationError(f"{new!r} was itself superseded by {old!r}: they would hide each other")
            ends = instant if before.valid_to is None else min(before.valid_to, instant)
            writer.replace(old_key, _changed(before, now, superseded_by=new, valid_to=ends), None)
            if after.valid_from is None and after.created_at > instant:
                writer.replace(new_key, _changed(after, now, valid_from=instant), None)
            writer.put_links([LinkWrite(new_key, old_key, LinkKind.SUPERSEDES.value, 1.0)], now)
            return True

    asupersede = in_thread(supersede)

    def consolidate(
        self,
        ids: Iterable[str],
        text: str | None = None,
        *,
        fields: Mapping[str, str | Sequence[str]] | None = None,
        id: str | None = None,
        kind: str | None = None,
        project: str | None = None,
        source: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        strength: float | None = None,
        event_at: datetime | None = None,
        vector: Vectors | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> Added:
        """Make one record of several of one owner: the new one is added, linked to each of them as ``consolidated``,
        and they are archived, all in one transaction. Nothing of them is lost, and ``restore`` brings them back.

        Args:
            ids: two or more of the owner's records that a search would show.
            text: the new text, for a store with one field; else give ``fields``.
            fields: the new text by field name.
            id: the new record's, of no record that is there. Default: a UUIDv7.
            kind: Default: the originals' if they have one in common, else ``semantic``.
            project: Default: the one that they have in common.
            source: Default: the one that they have in common.
            tags: Default: all of theirs, in order.
            metadata: Default: what they have in common.
            importance: 0 to 1. Default: the greatest of theirs.
            strength: above 0. Default: the greatest of theirs.
            event_at: with a time zone. Default: the one that they have in common.
            vector: a ready embedding of the new text.
            access: who consolidates. Default: the handle's, else ``Access()``.
            namespace: where they are, and the new one will be. Default: the root.
            owner: whose they are. Default: each as :meth:`get` finds it.

        Raises:
            RecordNotFoundError: one of them is not there, or not for this access, or is archived or the like.
            AccessError: the access may see one of them but not change it.
            ConfigurationError: they are of several owners, or fewer than two, or ``id`` is taken.
            InvalidRecordError, InvalidVectorError: the new record cannot be stored.
        """
        asker = self._access(access)
        wanted = list(dict.fromkeys(checked_items(ids, "ids", "ids=['a', 'b']")))
        if len(wanted) < 2:
            raise ConfigurationError("consolidate makes one record of several: give two or more ids")
        given = {
            "kind": kind,
            "project": project,
            "source": source,
            "tags": None if tags is None else tuple(checked_items(tags, "tags", "tags=('one', 'two')")),
            "metadata": metadata,
            "importance": importance,
            "strength": strength,
            "event_at": event_at,
        }
        while True:
            with self._backend.read() as reader:
                originals = self._originals(reader, wanted, asker, namespace, owner)
            attributes = {**_in_common(list(originals.values())), **_without_none(given)}
            new = NewRecord(
                text=text, fields=fields, id=id, namespace=checked_namespace(namespace), vector=vector, **attributes
            )
            change = draft(new, asker, self._ingest, next(iter(originals.values())).belongs_to)
            made = embed([change], self._ingest)
            with self._write() as writer:
                current = writer.records(list(originals))
                if current != originals:
                    continue  # somebody else changed one while this was being embedded: look again
                _refuse_taken(writer, change)
                added = self._stored(writer, [change], made, "add")[0]
                ((key, _),) = writer.find(added.id, change.new.namespace, (change.owner,))
                now = self._now()
                links = [LinkWrite(key, original, LinkKind.CONSOLIDATED.value, 1.0) for original in originals]
                writer.put_links(links, now)
                writer.set_archived(list(originals), now)
                return added

    aconsolidate = in_thread(consolidate)

    def _key_of(self, reader: Reader, id_: str, access: Access, namespace: Sequence[str], owner: Owner | None) -> int:
        """The key of a record that must be there, to be changed."""
        key = self._located(reader, [id_], access, namespace, owner, to_write=True).get(id_)
        if key is None:
            raise RecordNotFoundError(f"there is no record {id_!r} here that this access may see")
        return key

    def _originals(
        self, reader: Reader, ids: Sequence[str], access: Access, namespace: Sequence[str], owner: Owner | None
    ) -> dict[int, Record]:
        """What is to be put together, by key in the order of ``ids``."""
        keys = self._located(reader, ids, access, namespace, owner, to_write=True)
        records = reader.records(list(keys.values()))
        visible = self._visible(access)
        for id_ in ids:
            if id_ not in keys or not self._living(records[keys[id_]], visible):
                raise RecordNotFoundError(f"there is no record {id_!r} here that a search of this access would show")
        owners = {record.belongs_to for record in records.values()}
        if len(owners) > 1:
            raise ConfigurationError(
                f"consolidate makes one record of several of one owner; these are of {len(owners)}: say whose with "
                "owner=..."
            )
        return {key: records[key] for key in keys.values()}


def _changed(record: Record, now: datetime, **changes: Any) -> Record:
    return replace(record, updated_at=now, revision=record.revision + 1, **changes)


def _successors(reader: Reader, record: Record) -> set[str]:
    """The ids of what took the record's place, one after the other."""
    found: set[str] = set()
    while record.superseded_by is not None and record.superseded_by not in found:
        found.add(record.superseded_by)
        holders = reader.find(record.superseded_by, record.namespace, (record.belongs_to,))
        if not holders:
            break
        key = holders[0][0]
        record = reader.records((key,))[key]
    return found


def _refuse_taken(reader: Reader, change: Draft) -> None:
    if change.has_own_id and reader.find(change.id, change.new.namespace, (change.owner,)):
        raise ConfigurationError(f"there is a record {change.id!r} already: the new one needs an id of its own")


def _in_common(records: Sequence[Record]) -> dict[str, Any]:
    """What a record that is made of several carries, where the caller does not say."""
    first = records[0]
    shared = {
        name: getattr(first, name)
        for name in ("kind", "project", "source", "event_at")
        if all(getattr(record, name) == getattr(first, name) for record in records)
    }
    metadata = {
        name: value
        for name, value in first.metadata.items()
        if all(name in record.metadata and repr(record.metadata[name]) == repr(value) for record in records)
    }  # repr: True is not 1, and what is stored is JSON
    return {
        **shared,
        "tags": tuple(dict.fromkeys(tag for record in records for tag in record.tags)),
        "metadata": metadata,
        "importance": max(record.importance for record in records),
        "strength": max(record.strength for record in records),
    }


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
