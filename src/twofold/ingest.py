"""One write, from what the caller gave to what is committed.

:class:`Draft` is a record that has been checked: whose it is, its text by field, its hash. Drafts are embedded
outside of any transaction (:func:`embed`), then written in one (:func:`write`). An embedder that fails never stops a
write: the record is stored and its vector is pending.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from uuid_utils import uuid7

from twofold.backends.protocol import Backend, Reader, VectorWrite, Writer
from twofold.embedders import Guard, degradation_of
from twofold.errors import ConfigurationError, EmbeddingError, InvalidRecordError, InvalidVectorError
from twofold.links import Alike, Meaning, Together
from twofold.types import (
    Access,
    Added,
    Degradation,
    DegradationCode,
    Fields,
    LinkKind,
    NewRecord,
    Outcome,
    Owner,
    Record,
    Vectors,
    content_hash,
)
from twofold.vectors import as_matrix

__all__ = ["Draft", "Duplicates", "Embedded", "Ingest", "batches", "draft", "embed", "write"]

Duplicates: TypeAlias = Literal["add", "skip", "update"]
"""What to do with a record whose text another record of the same owner and namespace has already."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked record, not yet stored."""

    id: str
    has_own_id: bool
    """Whether the caller named the id, so that it may be there already."""
    owner: Owner
    fields: Fields
    content_hash: str
    new: NewRecord
    vectors: Mapping[str, npt.NDArray[np.float32]] | None
    """The caller's own, checked."""
    revives: bool = True
    """Whether it brings an archived record back: adding its id again does, changing it does not."""

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """Field and text of each part that can be embedded, in order."""
        return pieces_of(self.fields)


@dataclass(frozen=True, slots=True)
class Embedded:
    """What became of embedding some drafts."""

    fingerprint: str | None
    """Of the vectors; None if there is no embedder."""
    dimension: int | None
    """The length of the vectors; None if there are none."""
    vectors: tuple[VectorWrite | None, ...]
    """One a draft, in order; None: nothing to embed, unchanged, or failed."""
    degradations: tuple[Degradation, ...]
    """Why some have no vector."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """What a write needs to know of its store."""

    backend: Backend
    guard: Guard | None
    """What the embedder is asked through; None: there is none."""


def pieces_of(fields: Fields) -> list[tuple[str, str]]:
    """Field and text of each part of a record that can be embedded; white space alone cannot."""
    return [
        (name, part)
        for name, text in fields.items()
        for part in ((text,) if isinstance(text, str) else text)
        if part and not part.isspace()
    ]


def batches(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """``values`` in lists of ``size``, the last one shorter; holds one of them at a time."""
    iterator = iter(values)
    while batch := list(islice(iterator, min(size, sys.maxsize))):
        yield batch


def draft(
    value: NewRecord, access: Access, ingest: Ingest, owner: Owner | None = None, *, revives: bool = True
) -> Draft:
    """Check one record against the store and the access.

    Args:
        value: what is to be stored.
        access: who stores it.
        ingest: the store.
        owner: whose it is, where that is known already (a stored record added again). Default: as the access says.
        revives: see :class:`Draft`.

    Raises:
        InvalidRecordError: a field that the store does not have.
        InvalidVectorError: a vector that cannot be stored.
        AccessError: the access may not write there.
    """
    if owner is None:
        owner = access.owner_of_new(value.scope, value.room)
    fields = _named_fields(value, ingest.backend.fields)
    return Draft(
        id=str(uuid7()) if value.id is None else value.id,
        has_own_id=value.id is not None,
        owner=owner,
        fields=fields,
        content_hash=content_hash(fields),
        new=value,
        vectors=None if value.vector is None else _given_vectors(value.vector, ingest),
        revives=revives,
    )


def _named_fields(value: NewRecord, names: tuple[str, ...]) -> Fields:
    if value.fields is None:
        if len(names) != 1:
            raise InvalidRecordError(f"this store has the fields {names}: give fields={{name: text}}, not text")
        return {names[0]: value.text or ""}
    unknown = [name for name in value.fields if name not in names]
    if unknown:
        raise InvalidRecordError(f"this store has the fields {names}, not {', '.join(map(repr, unknown))}")
    return {
        name: text if isinstance(text, str) else tuple(text)
        for name in names
        if (text := value.fields.get(name)) is not None
    }


def _given_vectors(vectors: Vectors, ingest: Ingest) -> Mapping[str, npt.NDArray[np.float32]]:
    guard = ingest.guard
    if guard is None:
        raise ConfigurationError(
            "vector=... needs to know what made the vector: twofold.open(..., embedder=GivenVectors(name, dimension))"
        )
    names = ingest.backend.fields
    if not isinstance(vectors, Mapping):
        if len(names) != 1:
            raise InvalidRecordError(f"this store has the fields {names}: give vector={{name: vector}}")
        vectors = {names[0]: vectors}
    unknown = [name for name in vectors if name not in names]
    if unknown:
        raise InvalidRecordError(f"vector names {', '.join(map(repr, unknown))}; this store has the fields {names}")
    if not vectors:
        raise InvalidRecordError("vector={} holds none: leave vector out, or give vector={name: vector}")
    return {name: as_matrix(value, guard.dimension, f"the vector of {name!r}") for name, value in vectors.items()}


def embed(drafts: Sequence[Draft], ingest: Ingest, *, anew: Collection[int] = ()) -> Embedded:
    """Vectors for those drafts that have none and whose text is not stored with one already.

    Args:
        drafts: in the order that they are written in.
        ingest: the store.
        anew: the places of those whose record, as it is stored now, is gone by the time that they are written.
    """
    guard = ingest.guard
    if guard is None:
        return Embedded(None, None, (None,) * len(drafts), ())
    given = [
        None if each.vectors is None else VectorWrite(each.content_hash, each.vectors, sound=True) for each in drafts
    ]
    wanted: Sequence[int] = [index for index, each in enumerate(drafts) if each.vectors is None and each.pieces]
    if wanted and guard.embeds:
        wanted = _not_embedded_yet(wanted, drafts, guard.fingerprint, ingest.backend, anew)
    if not guard.embeds or not wanted:
        return Embedded(guard.fingerprint, _length(given), tuple(given), ())

    pieces = [(index, name, text) for index in wanted for name, text in drafts[index].pieces]
    made = guard.documents([text for _, _, text in pieces])
    parts: dict[int, dict[str, list[npt.NDArray[np.float32]]]] = {index: {} for index in wanted}
    failed: dict[int, EmbeddingError] = {}
    for (index, name, _), vector in zip(pieces, made, strict=True):
        if isinstance(vector, EmbeddingError):
            failed[index] = vector
        else:
            parts[index].setdefault(name, []).append(vector)
    for index in wanted:
        if index not in failed:
            by_field = {name: np.stack(vectors) for name, vectors in parts[index].items()}
            given[index] = VectorWrite(drafts[index].content_hash, by_field, sound=True)
    return Embedded(guard.fingerprint, _length(given), tuple(given), _each_once(map(degradation_of, failed.values())))


def _not_embedded_yet(
    places: Sequence[int], drafts: Sequence[Draft], fingerprint: str, backend: Backend, anew: Collection[int]
) -> Sequence[int]:
    """Which of the drafts are not stored with the same text and a vector of this embedder: none is embedded twice."""
    if not any(drafts[index].has_own_id for index in places):
        return places
    anew = {*anew, *_after_another_text(drafts)}
    with backend.read() as reader:
        if reader.fingerprint != fingerprint:
            return places
        return [index for index in places if index in anew or not _is_embedded(drafts[index], reader)]


def _after_another_text(drafts: Sequence[Draft]) -> Iterator[int]:
    """The places of drafts whose record an earlier one of them gives another text, and so no vector of this one."""
    texts: dict[Hashable, set[str]] = {}
    for place, each in enumerate(drafts):
        if each.has_own_id:
            before = texts.setdefault(_identity(each), set())
            if before - {each.content_hash}:
                yield place
            before.add(each.content_hash)


def _is_embedded(each: Draft, reader: Reader) -> bool:
    if not each.has_own_id:
        return False
    for key, _ in reader.find(each.id, each.new.namespace, (each.owner,)):
        stored = reader.records((key,)).get(key)
        return stored is not None and stored.content_hash == each.content_hash and key in reader.vectors((key,))
    return False


def _length(vectors: Iterable[VectorWrite | None]) -> int | None:
    lengths = {int(matrix.shape[1]) for each in vectors if each is not None for matrix in each.by_field.values()}
    if len(lengths) > 1:
        raise InvalidVectorError(f"vectors of one store have one length, not {sorted(lengths)}")
    return lengths.pop() if lengths else None


def _each_once(degradations: Iterable[Degradation]) -> tuple[Degradation, ...]:
    by_code: dict[DegradationCode, Degradation] = {}
    for degradation in degradations:
        by_code.setdefault(degradation.code, degradation)
    return tuple(by_code.values())


def write(
    writer: Writer,
    drafts: Sequence[Draft],
    embedded: Embedded,
    duplicates: Duplicates,
    now: datetime,
    *,
    semantic_links: float | None = None,
    together: Together | None = None,
) -> list[Added]:
    """Store drafts in the writer's transaction, in order; of one id given twice the last wins.

    Args:
        writer: the transaction.
        drafts: what is stored.
        embedded: its vectors.
        duplicates: see :data:`Duplicates`.
        now: the time.
        semantic_links: see ``StoreSettings.semantic_links``.
        together: links the records of one call to each other. Default: they are not linked.
    """
    vectors, degradations = _comparable(writer, embedded, drafts)
    embeds = embedded.fingerprint is not None or writer.fingerprint is not None
    alike = None
    if semantic_links is not None:
        meanings = [Meaning(each.owner, each.new.namespace, made) for each, made in zip(drafts, vectors, strict=True)]
        alike = Alike(writer, meanings, semantic_links, now)
    places = _Places(writer, drafts, duplicates, now)
    added = []
    for each, made in zip(drafts, vectors, strict=True):
        outcome, id_, key = places.put(each, made)
        waits = embeds and made is None and outcome is not Outcome.SKIPPED and bool(each.pieces)
        if key is not None and waits:
            waits = key not in writer.vectors((key,))
        if key is not None and alike is not None and outcome is Outcome.UPDATED and (waits or made is not None):
            writer.delete_links(source=key, kinds=(LinkKind.SEMANTIC,))  # its former text's
            writer.delete_links(target=key, kinds=(LinkKind.SEMANTIC,))
        added.append(Added(id_, outcome, waits, (), degradations if waits else ()))
    keys = places.keys()
    if alike is not None:
        written = [
            each.outcome in (Outcome.ADDED, Outcome.UPDATED) or key in places.attached
            for each, key in zip(added, keys, strict=True)
        ]
        writer.put_links(alike.links(keys, written), now)
    if together is not None:
        stored = zip(keys, (each.owner for each in drafts), strict=True)
        writer.put_links(together.links(writer, stored), now)
    return added


def _comparable(
    writer: Writer, embedded: Embedded, drafts: Sequence[Draft]
) -> tuple[tuple[VectorWrite | None, ...], tuple[Degradation, ...]]:
    """The vectors, if those in the file are of the same embedder; the first ones decide whose the file's are."""
    if embedded.fingerprint is None:
        return embedded.vectors, embedded.degradations
    if writer.fingerprint is None and embedded.dimension is not None:
        writer.adopt(embedded.fingerprint, embedded.dimension)
    same = writer.fingerprint == embedded.fingerprint and embedded.dimension in (None, writer.dimension)
    if writer.fingerprint is None or same:
        return embedded.vectors, embedded.degradations
    message = (
        f"the file's vectors are of {writer.fingerprint!r} ({writer.dimension} numbers), these are of "
        f"{embedded.fingerprint!r} ({embedded.dimension}); open the store with the embedder it was made with"
    )
    if any(each.vectors is not None for each in drafts):
        raise ConfigurationError(message)
    mismatch = Degradation(DegradationCode.SPACE_MISMATCH, message)
    return (None,) * len(embedded.vectors), (*embedded.degradations, mismatch)


class _Places:
    """Where each draft of a batch goes: in the place of a record that is there, or among the new ones.

    The new ones are gathered, for a backend writes many at once in half the time.
    """

    def __init__(self, writer: Writer, drafts: Sequence[Draft], duplicates: Duplicates, now: datetime) -> None:
        self._writer = writer
        self._duplicates = duplicates
        self._now = now
        self._found: dict[Hashable, int] = {}
        """By what :meth:`_identity` gives, the keys of records that are there."""
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
            if _identity(each) in self._awaited:
                self._write_new()
            key = self._found.get(_identity(each))
        if key is None and self._duplicates != "add" and each.pieces:  # records without text are no copies
            if _text_of(each) in self._awaited:
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
                self._awaited.add(_identity(each))
            if self._duplicates != "add":
                self._awaited.add(_text_of(each))
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


def _identity(each: Draft) -> Hashable:
    return each.id, each.new.namespace, each.owner


def _text_of(each: Draft) -> Hashable:
    return each.content_hash, each.owner, each.new.namespace


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
