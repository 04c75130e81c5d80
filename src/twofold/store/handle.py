"""What every part of the façade stands on: the store's parts, and whose handle it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from twofold.backends.protocol import Backend, Reader, Visibility, Writer
from twofold.config import StoreSettings
from twofold.embedders import Embedder, Guard
from twofold.errors import AccessError, AmbiguousIdError, ConfigurationError, InvalidRecordError
from twofold.filters import Filter, as_filter
from twofold.ingest import Ingest
from twofold.search import Helpers
from twofold.store.backfilling import Backfill
from twofold.store.touching import Touches
from twofold.types import Access, Owner, Record
from twofold.types.access import checked_owner
from twofold.types.arguments import checked_flag, checked_items
from twofold.types.json import is_storable
from twofold.types.record import checked_namespace, checked_time

__all__ = ["FilterLike", "Handle", "Parts"]

FilterLike: TypeAlias = Filter | Mapping[str, Any] | None
"""A filter: an expression of ``F`` and ``A``, or its Mongo-like spelling as a dict."""

_ANYBODY: Final = Access()
"""Who asks where nobody says."""


@dataclass(slots=True)
class Parts:
    """What a store and all its views share."""

    backend: Backend
    guard: Guard | None
    """What the embedder is asked through; None: there is none. A call takes it once, for it may be replaced."""
    settings: StoreSettings
    path: str
    touches: Touches
    """What was of use, and is not written yet."""
    backfill: Backfill
    """What fills in vectors that are missing."""
    helpers: Helpers
    """What helps searches besides the embedder."""

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors; None: nothing."""
        return None if self.guard is None else self.guard.embedder

    def use(self, guard: Guard) -> None:
        """Ask another embedder from now on, if it is another."""
        if self.guard is None or self.guard.embedder is not guard.embedder:
            self.backfill.use(guard)
            self.guard = guard


class Handle:
    """A store as seen by one access, or by whichever each call names."""

    def __init__(self, parts: Parts, bound: Access | None = None) -> None:
        self._parts = parts
        self._bound = bound

    @property
    def _backend(self) -> Backend:
        return self._parts.backend

    def _write(self) -> AbstractContextManager[Writer]:
        """A transaction, which takes along what was touched."""
        return self._parts.touches.writing()

    @property
    def _ingest(self) -> Ingest:
        return Ingest(self._parts.backend, self._parts.guard)

    def _now(self) -> datetime:
        return checked_time(self._parts.settings.clock(), "the clock's time")

    def _access(self, access: Access | None) -> Access:
        """Who asks: the access the handle is bound to, else the call's, else ``Access()``."""
        if access is not None and not isinstance(access, Access):
            raise ConfigurationError(f"access is an Access, not {type(access).__name__}: write Access(user=...)")
        if self._bound is None:
            return _ANYBODY if access is None else access
        if access is not None and access != self._bound:
            raise AccessError("this view is bound to one access; use the store itself to ask as another")
        return self._bound

    def _refuse_views(self, what: str) -> None:
        if self._bound is not None and not self._bound.is_everything:
            raise AccessError(f"{what} looks at the whole file: call it on the store, or a view of Access.everything()")

    def _visible(
        self,
        access: Access,
        where: FilterLike = None,
        *,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Visibility:
        if include_archived is not False:
            checked_flag(include_archived, "include_archived")
        fitting = None if where is None else as_filter(where)
        if as_of is None:
            return Visibility(access, self._now(), fitting, include_archived)
        if include_archived:
            raise ConfigurationError("include_archived=True shows records of all times: give it or as_of, not both")
        return Visibility(access, self._instant(as_of, "as_of"), fitting, as_of=True)

    def _instant(self, value: object, name: str) -> datetime:
        """An instant that was given as an argument, in UTC."""
        try:
            return checked_time(value, name)
        except InvalidRecordError as error:
            raise ConfigurationError(str(error)) from None

    def _located(
        self,
        reader: Reader,
        ids: Iterable[str],
        access: Access,
        namespace: Sequence[str],
        owner: Owner | None,
        *,
        to_write: bool = False,
    ) -> dict[str, int]:
        """The key that each id means to this access; ids that it may not see are left out, like those that are not.

        Raises:
            AccessError: a record is to be written that the access may only see.
            AmbiguousIdError: under ``Access.everything()`` several owners hold an id, and ``owner`` is not given.
        """
        wanted = checked_items(ids, "ids", "ids=['a', 'b']")
        if not all(isinstance(id_, str) for id_ in wanted):
            raise InvalidRecordError("an id is text; give a list of texts")
        path = checked_namespace(namespace)
        owners = _owners_meant(access, owner)
        keys: dict[str, int] = {}
        asked = list(filter(is_storable, dict.fromkeys(wanted)))
        found = reader.find_many(asked, path, owners) if asked else {}
        for id_ in asked:
            holders = found.get(id_, ())
            if owners is None and len(holders) > 1:
                raise AmbiguousIdError(f"{len(holders)} owners hold the id {id_!r}: pass owner=Owner.user(...), say")
            for key, holder in holders[:1]:
                if to_write and not access.can_write(holder):
                    raise AccessError(f"this access may read the record {id_!r} but not change it")
                keys[id_] = key
        return keys

    def _writable(self, reader: Reader, visible: Visibility) -> Sequence[int]:
        """Keys of what is visible and may also be written."""
        keys = reader.scan(visible, (), None, 0)
        owners = {key: identity.owner for key, identity in reader.identities(keys).items()}
        return [key for key in keys if visible.access.can_write(owners[key])]

    def _living(self, record: Record, visible: Visibility) -> bool:
        """Whether the lifecycle of a record that the access may see lets it be seen."""
        if visible.include_archived:
            return True
        return record.was_living(visible.at) if visible.as_of else record.is_living(visible.at)


def _owners_meant(access: Access, owner: Owner | None) -> Sequence[Owner] | None:
    """Whose records an id may mean, the first that is there; None: anybody's."""
    if owner is not None:
        owner = checked_owner(owner)
        return (owner,) if access.can_read(owner) else ()
    return None if access.is_everything else access.readable_owners
