"""What every part of the façade stands on: the store's parts, and whose handle it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from twofold.backends.protocol import Backend, Reader, Visibility
from twofold.config import StoreSettings
from twofold.embedders import Embedder
from twofold.errors import AccessError, AmbiguousIdError, ConfigurationError, InvalidRecordError
from twofold.filters import Filter, as_filter
from twofold.ingest import Ingest
from twofold.types import Access, Owner, Record
from twofold.types.record import checked_namespace, checked_time

__all__ = ["FilterLike", "Handle", "Parts"]

FilterLike: TypeAlias = Filter | Mapping[str, Any] | None
"""A filter: an expression of ``F`` and ``A``, or its Mongo-like spelling as a dict."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a store and all its views share."""

    backend: Backend
    embedder: Embedder | None
    settings: StoreSettings
    path: str


class Handle:
    """A store as seen by one access, or by whichever each call names."""

    def __init__(self, parts: Parts, bound: Access | None = None) -> None:
        self._parts = parts
        self._bound = bound

    @property
    def _backend(self) -> Backend:
        return self._parts.backend

    @property
    def _ingest(self) -> Ingest:
        return Ingest(self._parts.backend, self._parts.embedder)

    def _now(self) -> datetime:
        return checked_time(self._parts.settings.clock(), "the clock's time")

    def _access(self, access: Access | None) -> Access:
        """Who asks: the access the handle is bound to, else the call's, else ``Access()``."""
        if access is not None and not isinstance(access, Access):
            raise ConfigurationError(f"access is an Access, not {type(access).__name__}: write Access(user=...)")
        if self._bound is None:
            return Access() if access is None else access
        if access is not None and access != self._bound:
            raise AccessError("this view is bound to one access; use the store itself to ask as another")
        return self._bound

    def _visible(
        self,
        access: Access,
        where: FilterLike = None,
        *,
        include_archived: bool = False,
    ) -> Visibility:
        return Visibility(access, self._now(), as_filter(where), include_archived)

    def _holders(
        self, reader: Reader, id: str, access: Access, namespace: Sequence[str], owner: Owner | None
    ) -> list[tuple[int, Owner]]:
        """Keys that hold ``id`` for this access, the one that is meant first; none if it may see none."""
        if not isinstance(id, str):
            raise InvalidRecordError(f"an id is text, not {type(id).__name__}")
        path = checked_namespace(namespace)
        if owner is not None:
            return reader.find(id, path, (owner,)) if access.can_read(owner) else []
        if not access.is_everything:
            return reader.find(id, path, access.readable_owners)
        holders = reader.find(id, path, None)
        if len(holders) > 1:
            raise AmbiguousIdError(f"{len(holders)} owners hold the id {id!r}: pass owner=Owner.user(...), say")
        return holders

    def _located(
        self,
        reader: Reader,
        ids: Sequence[str],
        access: Access,
        namespace: Sequence[str],
        owner: Owner | None,
        *,
        to_write: bool = False,
    ) -> dict[str, int]:
        """The key that each id means to this access; ids that it may not see are left out, like those that are not.

        Raises:
            AccessError: a record is to be written that the access may only see.
        """
        keys: dict[str, int] = {}
        for id_ in dict.fromkeys(ids):
            for key, holder in self._holders(reader, id_, access, namespace, owner)[:1]:
                if to_write and not access.can_write(holder):
                    raise AccessError(f"this access may read the record {id_!r} but not change it")
                keys[id_] = key
        return keys

    def _living(self, record: Record, *, include_archived: bool) -> bool:
        return include_archived or record.is_living(self._now())
