"""The calls about what fades and what runs out, and how much there is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from twofold.backends.protocol import Reader, Visibility
from twofold.errors import ConfigurationError
from twofold.filters import A, Filter, as_filter
from twofold.ranking.retention import retention
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike, Handle
from twofold.types import Access, Faded, Owner, PruneReport, Stats
from twofold.types.arguments import checked_flag

__all__ = ["Lifecycle"]

_BINS: Final = 10
"""How many steps the histogram of retention has."""


class Lifecycle(Handle):
    """Pruning, sweeping and counting."""

    def prune(
        self,
        min_retention: float,
        *,
        where: FilterLike = None,
        dry_run: bool = True,
        half_life: float | None = None,
        access: Access | None = None,
    ) -> PruneReport:
        """Archive what has faded: of which less is retained than ``min_retention``. Nothing is ever deleted, and
        ``restore`` brings it back. Say ``dry_run=False`` to have it done; until then it is only listed.

        What is retained is ``exp(-age / (half_life · importance · strength))``, where the age is counted from the last
        use; see :func:`twofold.ranking.retention`.

        Args:
            min_retention: above 0, at most 1.
            where: a filter; only what it fits is looked at. Default: all.
            dry_run: whether nothing is to be changed.
            half_life: seconds, above 0. Default: ``retention_half_life`` of the store's search settings, a day if that
                is not set.
            access: whose records: all that it may write and a search would show it. Default: the handle's, else
                ``Access()``.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        if isinstance(min_retention, bool) or not isinstance(min_retention, (int, float)) or not 0 < min_retention <= 1:
            raise ConfigurationError(f"min_retention is above 0 and at most 1, not {min_retention!r}")
        lasting = self._half_life(half_life)
        visible = self._visible(self._access(access), where)
        self._parts.touches.flush()  # what is not written yet would count as not used
        if checked_flag(dry_run, "dry_run"):
            with self._backend.read() as reader:
                return PruneReport(tuple(self._faded(reader, visible, min_retention, lasting).values()), 0)
        with self._write() as writer:
            faded = self._faded(writer, visible, min_retention, lasting)
            writer.set_archived(list(faded), visible.at)
        return PruneReport(tuple(faded.values()), len(faded))

    aprune = in_thread(prune)

    def sweep(self, *, where: FilterLike = None, archive: bool = False, access: Access | None = None) -> int:
        """Delete what has expired. Nothing shows it any more, swept or not; this makes room.

        Args:
            where: a filter; only what it fits is deleted. Default: all.
            archive: whether it is archived instead.
            access: whose records: all that it may write. Default: the handle's, else ``Access()``.

        Returns:
            How many were deleted, or archived that were not before.
        """
        asker = self._access(access)
        condition: Filter = A.expires_at <= self._now()
        if checked_flag(archive, "archive"):
            condition &= ~A.archived_at.exists()
        given = as_filter(where)
        visible = self._visible(asker, condition if given is None else given & condition, include_archived=True)
        with self._write() as writer:
            keys = self._writable(writer, visible)
            if archive:
                writer.set_archived(keys, visible.at)
            else:
                writer.delete(keys)
        return len(keys)

    asweep = in_thread(sweep)

    def stats(self, *, where: FilterLike = None, half_life: float | None = None, access: Access | None = None) -> Stats:
        """Counts of what the access sees, by kind, scope and owner, and of what its lifecycle hides.

        Args:
            where: a filter; only what it fits is counted. Default: all.
            half_life: of the histogram of what is retained; see :meth:`prune`.
            access: who asks. Default: the handle's, else ``Access()``.
        """
        lasting = self._half_life(half_life)
        visible = self._visible(self._access(access), where)
        with self._backend.read() as reader:
            tally = reader.tally(visible)
            waits = self._parts.guard is not None or reader.fingerprint is not None
            pending = reader.pending(visible) if waits else 0
            retained = self._retained(reader, reader.scan(visible, (), None, 0), visible.at, lasting)
        kinds: Counter[str] = Counter()
        scopes: Counter[str] = Counter()
        owners: Counter[Owner] = Counter()
        for kind, owner, count in tally.groups:
            kinds[kind] += count
            scopes[owner.scope.value] += count
            owners[owner] += count
        bins = Counter(min(int(share * _BINS), _BINS - 1) for share in retained.values())
        return Stats(
            records=kinds.total(),
            by_kind=dict(sorted(kinds.items())),
            by_scope=dict(sorted(scopes.items())),
            by_owner=dict(sorted(owners.items(), key=lambda item: str(item[0]))),
            oldest=tally.oldest,
            newest=tally.newest,
            pending=pending,
            vectors=tally.vectors,
            links=tally.links,
            text_bytes=tally.text_bytes,
            vector_bytes=tally.vector_bytes,
            retention=tuple(bins[step] for step in range(_BINS)),
            archived=tally.archived,
            superseded=tally.superseded,
            expired=tally.expired,
            out_of_date=tally.out_of_date,
            not_yet_valid=tally.not_yet_valid,
        )

    astats = in_thread(stats)

    def _half_life(self, half_life: float | None) -> float:
        if half_life is None:
            return self._parts.settings.search.retention_half_life
        if isinstance(half_life, bool) or not isinstance(half_life, (int, float)) or not 0 < half_life < math.inf:
            raise ConfigurationError(f"half_life is a number of seconds above 0, not {half_life!r}")
        return float(half_life)

    def _faded(self, reader: Reader, visible: Visibility, least: float, half_life: float) -> dict[int, Faded]:
        """What may be written and retains too little, the most faded first, then by id."""
        retained = self._retained(reader, self._writable(reader, visible), visible.at, half_life)
        low = {key: share for key, share in retained.items() if share < least}
        named = reader.identities(list(low))
        order = sorted(low, key=lambda key: (low[key], named[key].order[1:]))
        return {key: Faded(named[key].id, low[key], named[key].namespace, named[key].owner) for key in order}

    def _retained(self, reader: Reader, keys: Sequence[int], at: datetime, half_life: float) -> dict[int, float]:
        """By key, the share that is retained."""
        now = at.timestamp()
        return {
            key: retention(now - each.last_accessed, each.importance, each.strength, half_life)
            for key, each in reader.standings(keys).items()
        }
