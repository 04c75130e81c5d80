"""A record that has been checked and is not yet stored: whose it is, its text by field, its hash."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from uuid_utils import uuid7

from twofold.backends.protocol import Backend
from twofold.embedders import Guard
from twofold.errors import ConfigurationError, InvalidRecordError
from twofold.types import Access, Fields, NewRecord, Owner, Vectors, content_hash
from twofold.vectors import as_matrix

__all__ = ["Draft", "Ingest", "batches", "draft", "pieces_of"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Ingest:
    """What a write needs to know of its store."""

    backend: Backend
    guard: Guard | None
    """What the embedder is asked through; None: there is none."""


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

    @property
    def identity(self) -> Hashable:
        """What a record has to itself: its id, within a namespace and an owner's."""
        return self.id, self.new.namespace, self.owner

    @property
    def text(self) -> Hashable:
        """What copies have in common: their text, within a namespace and an owner's."""
        return self.content_hash, self.owner, self.new.namespace


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
