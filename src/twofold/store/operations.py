"""Several calls as data, for ``store.batch``: all of them happen, or none.

Reads see the state before the batch, whatever order they stand in; writes happen in order; what has to be embedded
is embedded first, outside of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from twofold.config import SearchParams
from twofold.store.handle import FilterLike
from twofold.types import Mode, NewRecord, Owner, Record, Vectors

__all__ = ["Add", "Delete", "Get", "ListNamespaces", "ListRecords", "Operation", "Search"]


@dataclass(frozen=True, slots=True)
class Get:
    """Look one record up; its result is a ``Record`` or None."""

    id: str
    """The record's id."""
    namespace: Sequence[str] = ()
    """Where it is. Default: the root."""
    owner: Owner | None = None
    """Whose it is. Default: as ``store.get``."""
    as_of: datetime | None = None
    """The instant at which it must have been visible. Default: now."""


@dataclass(frozen=True, slots=True)
class Search:
    """Search; its result is a ``SearchResult``. What it returns is not touched, whatever ``params`` say. One that asks
    the store's reranker is answered before the batch begins, for no transaction waits for that.
    """

    text: str
    """What is asked."""
    k: int = 10
    """How many hits at most. Default: 10."""
    offset: int = 0
    """How many of the best to leave out. Default: 0."""
    where: FilterLike = None
    """A filter. Default: all."""
    mode: Mode | str = Mode.HYBRID
    """``"hybrid"``, ``"keyword"`` or ``"vector"``. Default: hybrid."""
    params: SearchParams | None = None
    """How to rank. Default: the store's settings."""
    vector: Vectors | None = None
    """The query's embedding. Default: the embedder makes it."""
    as_of: datetime | None = None
    """Search as things stood at this instant. Default: now."""
    preset: str | None = None
    """How to rank, as a name, one of ``twofold.PRESETS``; in place of ``params``. Default: none."""
    phrasings: Sequence[str] = ()
    """Other ways to ask the same, 100 at most. Default: none."""


@dataclass(frozen=True, slots=True)
class ListRecords:
    """List records; its result is a list of ``Record``."""

    where: FilterLike = None
    """A filter. Default: all."""
    order: str | Sequence[str] = ()
    """As ``store.list``."""
    limit: int | None = None
    """How many at most. Default: all."""
    offset: int = 0
    """How many to leave out first. Default: 0."""
    as_of: datetime | None = None
    """List what was visible at this instant. Default: now."""


@dataclass(frozen=True, slots=True)
class ListNamespaces:
    """List the namespaces that hold visible records; its result is what ``store.namespaces`` gives."""

    prefix: Sequence[str] = ()
    """Words they begin with; ``"*"`` is any one word. Default: any."""
    suffix: Sequence[str] = ()
    """Words they end with; ``"*"`` is any one word. Default: any."""
    max_depth: int | None = None
    """Cut them to this many words first. Default: whole."""
    limit: int | None = None
    """How many at most. Default: all."""
    offset: int = 0
    """How many to leave out first. Default: 0."""
    as_of: datetime | None = None
    """Those that held visible records at this instant. Default: now."""


@dataclass(frozen=True, slots=True)
class Add:
    """Store a record; its result is an ``Added``. Of one id added twice the last wins."""

    record: NewRecord | Record | Mapping[str, Any] | str
    """What is stored, in any of the forms that ``store.add_many`` takes."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a record; its result is whether there was one."""

    id: str
    """The record's id."""
    namespace: Sequence[str] = ()
    """Where it is. Default: the root."""
    owner: Owner | None = None
    """Whose it is. Default: as ``store.get``."""


Operation: TypeAlias = Get | Search | ListRecords | ListNamespaces | Add | Delete
"""One of them."""
