"""A record as a row, and back: how times, namespaces, owners and text are written in SQLite."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from twofold.backends.sqlite.faults import DAMAGED_ADVICE
from twofold.backends.sqlite.schema import SCOPE_CODES
from twofold.errors import CorruptStoreError
from twofold.types import Fields, Owner, Record
from twofold.types.json import dump_json, dump_texts, load_json
from twofold.types.record import stored_record

__all__ = [
    "COLUMNS",
    "TIMES",
    "from_row",
    "load_fields",
    "load_namespace",
    "load_owner",
    "load_time",
    "row_limit",
    "store_fields",
    "store_namespace",
    "store_owner",
    "store_time",
    "to_row",
]

Row: TypeAlias = "Sequence[Any]"

COLUMNS: Final = (
    "id",
    "scope",
    "owner",
    "namespace",
    "kind",
    "project",
    "source",
    "fields",
    "parts",
    "tags",
    "metadata",
    "payload",
    "importance",
    "strength",
    "access_count",
    "created_at",
    "updated_at",
    "last_accessed",
    "event_at",
    "valid_from",
    "valid_to",
    "expires_at",
    "archived_at",
    "superseded_by",
    "content_hash",
    "revision",
)
"""The columns of a record, as :func:`to_row` gives and :func:`from_row` takes them."""

TIMES: Final = frozenset(
    {
        "created_at",
        "updated_at",
        "last_accessed",
        "event_at",
        "valid_from",
        "valid_to",
        "expires_at",
        "archived_at",
    }
)
"""The columns that hold times."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAMAGED: Final = f"the database is damaged: {DAMAGED_ADVICE}"
_SCOPES: Final = {code: scope for scope, code in SCOPE_CODES.items()}


def row_limit(limit: int | None) -> int:
    """``limit`` as SQLite's LIMIT and OFFSET take it: 64 bits, and -1 for None, which is all."""
    return -1 if limit is None else min(max(0, limit), sys.maxsize)


def store_time(time: datetime) -> int:
    """Whole microseconds since 1970 in UTC; negative before."""
    return (time - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=1024)  # a record has the same instant several times, and so have those added with it
def load_time(microseconds: int) -> datetime:
    """The inverse of :func:`store_time`.

    Raises:
        CorruptStoreError: it lies outside of the years that there are.
    """
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except (OverflowError, TypeError) as error:
        raise CorruptStoreError(f"a record's time cannot be read: {_DAMAGED}") from error


def store_namespace(namespace: Sequence[str]) -> str:
    """Its words, each followed by U+001F: what lies below a namespace is a range of the index."""
    return "".join([f"{word}\x1f" for word in namespace])


@lru_cache(maxsize=1024)
def load_namespace(stored: str) -> tuple[str, ...]:
    """The inverse of :func:`store_namespace`."""
    return tuple(stored.split("\x1f")[:-1])


def store_owner(owner: Owner) -> tuple[int, str]:
    """The code of the scope, and the owner's name, empty for everybody."""
    return SCOPE_CODES[owner.scope], owner.name or ""


def load_owner(scope: int, name: str) -> Owner:
    """The inverse of :func:`store_owner`."""
    if scope not in _SCOPES:
        raise CorruptStoreError(f"a record's scope cannot be read: {_DAMAGED}")
    return Owner(_SCOPES[scope], name or None)


def store_fields(fields: Fields) -> str | bytes:
    """JSON: text, or bytes where the text holds a lone surrogate, which SQLite's UTF-8 has no place for."""
    stored = dump_texts(fields)
    if not stored.isascii():
        try:
            stored.encode()
        except UnicodeEncodeError:
            return stored.encode("utf-8", "surrogatepass")
    return stored


def load_fields(stored: str | bytes) -> dict[str, str | tuple[str, ...]]:
    """The inverse of :func:`store_fields`."""
    try:
        if isinstance(stored, bytes):
            stored = stored.decode("utf-8", "surrogatepass")
        fields: dict[str, Any] = load_json(stored)
        for name, text in fields.items():
            if not isinstance(text, str):
                fields[name] = tuple(text)
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"a record's text cannot be read: {_DAMAGED}") from error
    return fields


def count_parts(fields: Fields) -> int:
    """How many pieces of the text hold more than white space, and so can be embedded."""
    count = 0
    for text in fields.values():
        for piece in (text,) if isinstance(text, str) else text:
            count += bool(piece) and not piece.isspace()
    return count


def to_row(record: Record) -> tuple[Any, ...]:
    """The values of :data:`COLUMNS`."""
    created_at = store_time(record.created_at)
    return (
        record.id,
        SCOPE_CODES[record.scope],
        record.owner or "",
        store_namespace(record.namespace),
        record.kind,
        record.project,
        record.source,
        store_fields(record.fields),
        count_parts(record.fields),
        dump_json(list(record.tags)) if record.tags else "[]",
        dump_json(record.metadata) if record.metadata else "{}",
        None if record.payload is None else dump_json(record.payload),
        record.importance,
        record.strength,
        record.access_count,
        created_at,
        created_at if record.updated_at is record.created_at else store_time(record.updated_at),
        created_at if record.last_accessed is record.created_at else store_time(record.last_accessed),
        created_at if record.event_at is record.created_at else _store_optional(record.event_at),
        None if record.valid_from is None else store_time(record.valid_from),
        None if record.valid_to is None else store_time(record.valid_to),
        None if record.expires_at is None else store_time(record.expires_at),
        None if record.archived_at is None else store_time(record.archived_at),
        record.superseded_by,
        record.content_hash,
        record.revision,
    )


def from_row(row: Row) -> Record:
    """The record of a row of :data:`COLUMNS`.

    Raises:
        CorruptStoreError: a value in it is none that :func:`to_row` gives.
    """
    (
        id_,
        scope,
        owner,
        namespace,
        kind,
        project,
        source,
        fields,
        _,
        tags,
        metadata,
        payload,
        importance,
        strength,
        access_count,
        created_at,
        updated_at,
        last_accessed,
        event_at,
        valid_from,
        valid_to,
        expires_at,
        archived_at,
        superseded_by,
        content_hash,
        revision,
    ) = row
    try:
        return stored_record(
            (
                id_,
                load_fields(fields),
                kind,
                _SCOPES[scope],
                owner or None,
                load_namespace(namespace),
                project,
                source,
                () if tags == "[]" else tuple(load_json(tags)),
                {} if metadata == "{}" else load_json(metadata),
                None if payload is None else load_json(payload),
                importance,
                strength,
                access_count,
                load_time(created_at),
                load_time(updated_at),
                load_time(last_accessed),
                None if event_at is None else load_time(event_at),
                None if valid_from is None else load_time(valid_from),
                None if valid_to is None else load_time(valid_to),
                None if expires_at is None else load_time(expires_at),
                None if archived_at is None else load_time(archived_at),
                superseded_by,
                content_hash,
                revision,
            )
        )
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise CorruptStoreError(f"a record's row cannot be read: {_DAMAGED}") from error


def _store_optional(time: datetime | None) -> int | None:
    return None if time is None else store_time(time)
