"""Whom a caller may see, as a list of keys that is kept while nothing changes it.

One statement lists them; after that a search on an unchanged file costs no SQL for it, and one on a changed file only
looks at what changed. Both legs use the same lists.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.pragmas import reading_through
from twofold.backends.sqlite.rescoring import UNCOMMON
from twofold.backends.sqlite.rows import store_time
from twofold.backends.sqlite.touches import TOUCHED_COLUMNS
from twofold.backends.sqlite.visible import Condition, alive_at, permitted

__all__ = ["Keys", "Seen", "VisibleKeys", "changed_since", "places_in"]

Keys: TypeAlias = npt.NDArray[np.int64]
"""Integer keys of records."""

MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
"""How much the kept lists may take."""

_ALWAYS: Final = (-sys.maxsize - 1, sys.maxsize)
_ROW: Final = np.dtype([("key", np.int64), ("has_text", np.bool_), ("created_at", np.int64), ("uncommon", np.bool_)])


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Seen:
    """Which records a caller may see, at one generation and within a span of time."""

    generation: int
    """The generation that the list belongs to."""
    span: tuple[int, int]
    """From the first instant (microseconds) to the second, excluded, no record becomes visible or ceases to be."""
    strengthened: int | None
    """:attr:`Head.strengthened` when it was listed; None: it is not known whose strength is still the same."""
    keys: Keys
    """Ascending."""
    has_text: npt.NDArray[np.bool_]
    """By key, whether the record has text that could be embedded."""
    instants: Keys
    """By key, when the record was created, in microseconds."""
    uncommon: npt.NDArray[np.bool_]
    """By key, whether the record's importance or strength was not the default when it was listed."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return 1024 + self.keys.nbytes + self.has_text.nbytes + self.instants.nbytes + self.uncommon.nbytes

    def created_at(self, keys: Keys) -> Keys:
        """When these were created, in microseconds; all of them are visible."""
        return self.instants.take(places_in(self.keys, keys))

    def newest_first(self, keys: Sequence[int]) -> Sequence[int] | None:
        """``keys`` with those first that were created last; None if that is not known of all, or is no order."""
        asked = np.array(keys, dtype=np.int64)
        if np.count_nonzero(self.among(asked)) < len(asked):
            return None
        created = self.created_at(asked)
        order = created.argsort()[::-1]
        created = created[order]
        return None if np.count_nonzero(created[1:] == created[:-1]) else asked[order].tolist()

    def maybe_uncommon(self, keys: Sequence[int], strengthened: int | None) -> Sequence[int]:
        """Those of ``keys`` whose importance or strength may not be the default, in a session of this generation.

        Args:
            keys: of any records.
            strengthened: of the session's head.
        """
        if strengthened is None or strengthened != self.strengthened or not len(self.keys):
            return keys
        asked = np.array(keys, dtype=np.int64)
        places = places_in(self.keys, asked)
        maybe = self.keys.take(places, mode="clip") != asked
        maybe |= self.uncommon.take(places, mode="clip")
        return asked[maybe].tolist() if np.count_nonzero(maybe) else ()

    def among(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Which of ``keys`` are visible."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.bool_)
        found: npt.NDArray[np.bool_] = self.keys.take(places_in(self.keys, keys), mode="clip") == keys
        return found


class _Asked(NamedTuple):
    """A visibility, compiled."""

    cache_key: tuple[Any, ...]
    permitted: Condition
    """What no clock decides."""
    at: int
    timeless: bool
    """Whether that is all."""
    as_of: bool
    """Whether things are seen as they stood at ``at``."""
    lasting: bool
    """Whether the list may be kept: it is of a snapshot that others have too, and changes only by counted writes."""

    @property
    def condition(self) -> Condition:
        """All of it."""
        return self.permitted if self.timeless else self.permitted & alive_at(self.at, as_of=self.as_of)


class VisibleKeys:
    """The lists of one backend, for all its threads; the least used are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], Seen] = OrderedDict()  # the last used last
        self._bytes = 0

    def of(self, connection: Connection, head: Head, visible: Visibility) -> Seen:
        """Which records the caller may see in the session's snapshot."""
        asked = _compiled(head, visible)
        return self._kept_for(connection, head, asked) or self._listed(connection, head, asked, visible)

    def at_hand(self, connection: Connection, head: Head, visible: Visibility) -> Seen | None:
        """The same, if it is kept, or if no filter makes the listing dear; else None."""
        asked = _compiled(head, visible)
        seen = self._kept_for(connection, head, asked)
        if seen is None and visible.where is None and asked.lasting:
            seen = self._listed(connection, head, asked, visible)
        return seen

    def _kept_for(self, connection: Connection, head: Head, asked: _Asked) -> Seen | None:
        with self._lock:
            known = self._kept.get(asked.cache_key)
            if known is not None:
                self._kept.move_to_end(asked.cache_key)
        if known is None or not head.pruned <= known.generation <= head.generation:
            return None
        if not known.span[0] <= asked.at < known.span[1]:
            return None
        if known.generation == head.generation:
            return known
        since = Condition("r.generation > ?", (known.generation,))
        # Left to itself SQLite may choose another index, and look at all there is in a namespace.
        come = _listing(connection, asked.condition & since, "records r INDEXED BY records_by_generation")
        stayed = np.isin(known.keys, changed_since(connection, known.generation), assume_unique=True, invert=True)
        keys = known.keys[stayed]
        places = np.searchsorted(keys, come["key"])
        span = _span(connection, asked, known.generation)
        seen = Seen(
            head.generation,
            (max(span[0], known.span[0]), min(span[1], known.span[1])),
            known.strengthened if known.strengthened == head.strengthened else None,
            np.insert(keys, places, come["key"]),
            np.insert(known.has_text[stayed], places, come["has_text"]),
            np.insert(known.instants[stayed], places, come["created_at"]),
            np.insert(known.uncommon[stayed], places, come["uncommon"]),
        )
        self._keep(asked, seen)
        return seen

    def _listed(self, connection: Connection, head: Head, asked: _Asked, visible: Visibility) -> Seen:
        # With a filter another is likely to follow, and to read the same again.
        with reading_through(connection) if visible.where is None else nullcontext():
            rows, span = _listing(connection, asked.condition), _span(connection, asked, None)
        columns = (np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ())
        seen = Seen(head.generation, span, head.strengthened, *columns)
        self._keep(asked, seen)
        return seen

    def _keep(self, asked: _Asked, seen: Seen) -> None:
        if not asked.lasting:
            return
        with self._lock:
            before = self._kept.pop(asked.cache_key, None)
            if before is not None:
                self._bytes -= before.nbytes
                if before.generation > seen.generation:
                    seen = before
            self._kept[asked.cache_key] = seen
            self._bytes += seen.nbytes
            while self._bytes > MAX_CACHED_BYTES:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.nbytes


def places_in(keys: npt.NDArray[np.integer], sought: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """Where each of ``sought`` is among ``keys``, which ascend; of one that is not there, any number."""
    if len(keys):
        first = int(keys[0])
        if int(keys[-1]) - first == len(keys) - 1:  # none was ever deleted: nothing need be looked for
            return sought - np.intp(first)
    return keys.searchsorted(sought)


def changed_since(connection: Connection, generation: int) -> Keys:
    """The records that were written or deleted since."""
    rows = connection.execute(
        "SELECT key FROM records WHERE generation > ? UNION SELECT key FROM tombstones WHERE generation > ?",
        (generation, generation),
    )
    return np.fromiter((key for (key,) in rows), dtype=np.int64)


def _compiled(head: Head, visible: Visibility) -> _Asked:
    condition = permitted(visible)
    at = store_time(visible.at)
    # 1, 1.0 and True are equal and have one hash, but a filter tells them apart: their types belong to the key.
    # So does what tells whether a backup was copied into the file: keys of writes that are gone are given again.
    mode = "all" if visible.include_archived else "as of" if visible.as_of else "living"
    cache_key = (condition.sql, mode, head.schema, *zip(map(type, condition.params), condition.params, strict=True))
    # Touches do not count as writes, so what depends on them cannot be kept.
    lasting = not head.changed and not _looks_at_touches(condition.sql)
    return _Asked(cache_key, condition, at, visible.include_archived, visible.as_of, lasting)


@lru_cache(maxsize=1024)
def _looks_at_touches(sql: str) -> bool:
    return any(column in sql for column in TOUCHED_COLUMNS)


def _listing(connection: Connection, condition: Condition, source: str = "records r") -> npt.NDArray[np.void]:
    """The columns of :class:`Seen`, of each record that the condition lets through, by key."""
    sql = (
        f"SELECT r.key, r.parts > 0, r.created_at, {UNCOMMON} FROM {source}"
        f" WHERE {condition.sql or 'TRUE'} ORDER BY r.key"
    )
    return np.fromiter(connection.execute(sql, condition.params), dtype=_ROW)


def _span(connection: Connection, asked: _Asked, since: int | None) -> tuple[int, int]:
    """The span around the instant in which no record begins or ceases to be valid, of those written after ``since``.

    All records are looked at, also those that the caller cannot see: that only makes the span shorter.
    """
    if asked.timeless:
        return _ALWAYS
    if asked.as_of:  # every record begins at some instant: the list is good for this one alone
        return asked.at, asked.at + 1
    timed = "(valid_from IS NOT NULL OR valid_to IS NOT NULL OR expires_at IS NOT NULL)"
    where = timed if since is None else f"generation > {since:d} AND {timed}"
    start, end = _ALWAYS
    rows: Sequence[tuple[int | None, ...]] = connection.execute(
        f"SELECT valid_from, valid_to, expires_at FROM records WHERE {where}"
    ).fetchall()
    for row in rows:
        for instant in row:
            if instant is not None:
                if instant <= asked.at:
                    start = max(start, instant)
                else:
                    end = min(end, instant)
    return start, end
