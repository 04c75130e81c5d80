"""Where drafts go: in the place of records that are there, or among the new ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from twofold.backends.protocol import Reader, VectorWrite, Writer
from twofold.ingest.drafts import Draft
from twofold.types import NewRecord, Outcome, Owner, Record

__all__ = ["Duplicates", "Places"]

Duplicates: TypeAlias = Literal["add", "skip", "update"]
"""What to do with a record whose text another record of the same owner and namespace has already."""


class Places:
    """Where each draft of a batch goes: in the place of a record that is there, or among the new ones.

    The new ones are gathered, for a backend writes many at once in half the time.
    """

    def __init__(self, writer: Writer, drafts: Sequence[Draft], duplicates: Duplicates, now: datetime) -> None:
        self._writer = writer
        self._duplicates = duplicates
        self._now = now
        self._found: dict[Hashable, int] = {}
        """By identity, the keys of records that are there."""
        places: dict[tuple[tuple[str, ...], Owner], list[str]] = {}
        for each in drafts:
            if each.has_own_id:
                places.setdefault((each.new.namespace, each.owner), []).append(each.id)
        for (namespace, owner), ids in places.items():
            for id_, holders in writer.find_many(ids, namespace, (owner,)).items():
                self._found[id_, namespace, owner] = holders[0][0]
        self.attached: set[int] = set()
        """The records that waited for their vectors and got them, and are else unchanged."""
        self._keys: list[int | None] = []
        """One a draft so far; None: still among the new ones."""
        self._new: list[tuple[Record, VectorWrite | None]] = []
        self._awaited: set[Hashable] = set()
        """What later drafts could find among the new ones: their identities, and their texts."""

    def put(self, each: Draft, vectors: VectorWrite | None) -> tuple[Outcome, str, int | None]:
        """What became of the next draft, the id it is stored under, and its key if it has one yet."""
        key = None
        if each.has_own_id:
            if each.identity in self._awaited:
                self._write_new()
            key = self._found.get(each.identity)
        if key is None and self._duplicates != "add" and each.pieces:  # records without text are no copies
            if each.text in self._awaited:
                self._write_new()
            twins = self._writer.with_equal_text(each.content_hash, each.owner, each.new.namespace)
            if twins:
                key = twins[0]
                twin = self._writer.records(twins[:1])[key]
                if self._duplicates == "skip":
                    self._keys.append(key)
                    return Outcome.SKIPPED, twin.id, key
                each = replace(each, id=twin.id)
        self._keys.append(key)
        if key is None:
            self._new.append((_new_record(each, self._now), vectors))
            if each.has_own_id:
                self._awaited.add(each.identity)
            if self._duplicates != "add":
                self._awaited.add(each.text)
            return Outcome.ADDED, each.id, None
        return self._put_in_place(key, each, vectors), each.id, key

    def keys(self) -> list[int]:
        """One a draft, in order, once all are put."""
        self._write_new()
        return [key for key in self._keys if key is not None]

    def _put_in_place(self, key: int, each: Draft, vectors: VectorWrite | None) -> Outcome:
        writer = self._writer
        old = writer.records((key,))[key]
        record = _successor(old, each)
        if record is old:
            if vectors is None or _has_vectors(writer, key, vectors):
                return Outcome.UNCHANGED
            if writer.attach(key, vectors):
                self.attached.add(key)
                return Outcome.UNCHANGED
        writer.replace(key, replace(record, updated_at=self._now, revision=old.revision + 1), vectors)
        return Outcome.UPDATED

    def _write_new(self) -> None:
        if not self._new:
            return
        keys = self._writer.insert_many(self._new)
        places = [place for place, key in enumerate(self._keys) if key is None]
        for place, key, (record, _) in zip(places, keys, self._new, strict=True):
            self._keys[place] = key
            self._found[record.id, record.namespace, record.belongs_to] = key
        self._new = []
        self._awaited = set()


def _has_vectors(reader: Reader, key: int, vectors: VectorWrite) -> bool:
    stored = reader.vectors((key,)).get(key)
    return (
        stored is not None
        and stored.by_field.keys() == vectors.by_field.keys()
        and all(np.array_equal(stored.by_field[name], matrix) for name, matrix in vectors.by_field.items())
    )


def _new_record(each: Draft, now: datetime) -> Record:
    new = each.new
    created_at = now if new.created_at is None else new.created_at
    return Record(
        id=each.id,
        scope=each.owner.scope,
        owner=each.owner.name,
        fields=each.fields,
        content_hash=each.content_hash,
        kind=new.kind,
        namespace=new.namespace,
        project=new.project,
        source=new.source,
        tags=new.tags,
        metadata=new.metadata,
        payload=new.payload,
        importance=new.importance,
        strength=new.strength,
        access_count=0,
        created_at=created_at,
        updated_at=now,
        last_accessed=created_at,
        event_at=new.event_at,
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        expires_at=new.expires_at,
        archived_at=None,
        superseded_by=None,
        revision=1,
    )


def _successor(old: Record, each: Draft) -> Record:
    """``old`` with what is given again; ``old`` itself if nothing differs, so that nothing is written."""
    record = replace(
        old,
        fields=each.fields,
        content_hash=each.content_hash,
        archived_at=None if each.revives else old.archived_at,
        superseded_by=None if each.revives else old.superseded_by,
        **_attributes(each.new),
    )
    return old if _same(old, record) else record


def _same(one: Record, other: Record) -> bool:
    """Equality that, unlike ``==``, tells True from 1 and the order of keys: metadata comes back exactly as given."""
    return one == other and repr((one.metadata, one.payload)) == repr((other.metadata, other.payload))


def _attributes(new: NewRecord) -> dict[str, Any]:
    names = (
        "kind", "namespace", "project", "source", "tags", "metadata", "payload", "importance", "strength", "event_at",
        "valid_from", "valid_to", "expires_at",
    )  # fmt: skip
    return {name: getattr(new, name) for name in names}
