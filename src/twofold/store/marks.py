"""Marks: what a record manager remembers, in the same file as the records it tells of.

LangChain's indexing, say, marks each document that it has written with the time and the source it came from, and
later asks which marks are older than the last run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from twofold.backends.protocol import Mark
from twofold.errors import ConfigurationError
from twofold.store.asynchronous import in_thread
from twofold.store.handle import Handle
from twofold.types import Access
from twofold.types.arguments import checked_count, checked_items
from twofold.types.json import checked_text

__all__ = ["Marks"]

_LATEST: Final = 1e15
"""Seconds; some 30 million years. Larger numbers are another unit, or a mistake."""


class Marks(Handle):
    """Reached as ``store.marks``. Marks belong to the default owner of the access that sets them."""

    def now(self) -> float:
        """The store's time, in seconds since the epoch."""
        return self._now().timestamp()

    anow = in_thread(now)

    def set(
        self,
        namespace: str,
        keys: Sequence[str],
        *,
        groups: Sequence[str | None] | None = None,
        time: float | None = None,
        access: Access | None = None,
    ) -> None:
        """Mark ``keys`` as seen; one that is marked already is marked anew.

        Args:
            namespace: keeps the marks of several users of this table apart.
            keys: what was seen.
            groups: what each belongs to, one a key. Default: nothing.
            time: when, in seconds since the epoch. Default: now.
            access: whose marks. Default: the handle's, else ``Access()``.
        """
        seen = _keys(keys)
        belong = [None] * len(seen) if groups is None else _groups(groups)
        if len(belong) != len(seen):
            raise ConfigurationError(f"{len(seen)} keys but {len(belong)} groups: give one a key, or none")
        at = self.now() if time is None else _time(time, "time")
        marks = [Mark(key, group, at) for key, group in zip(seen, belong, strict=True)]
        owner, whose = self._access(access).default_owner, checked_text(namespace, "namespace")
        with self._write() as writer:
            writer.put_marks(owner, whose, marks)

    aset = in_thread(set)

    def exists(self, namespace: str, keys: Sequence[str], *, access: Access | None = None) -> Sequence[bool]:
        """Whether each of ``keys`` is marked, in their order."""
        owner, whose, asked = self._access(access).default_owner, checked_text(namespace, "namespace"), _keys(keys)
        with self._backend.read() as reader:
            found = {mark.key for mark in reader.marks(owner, whose, keys=asked)}
        return [key in found for key in asked]

    aexists = in_thread(exists)

    def list(
        self,
        namespace: str,
        *,
        before: float | None = None,
        after: float | None = None,
        groups: Sequence[str | None] | None = None,
        limit: int | None = None,
        access: Access | None = None,
    ) -> Sequence[Mark]:
        """Marks by time, then by key.

        Args:
            namespace: whose marks.
            before: only those set before this time, in seconds since the epoch. Default: any.
            after: only those set after this time. Default: any.
            groups: only those of these groups. Default: any.
            limit: how many at most. Default: all.
            access: whose marks. Default: the handle's, else ``Access()``.
        """
        owner, whose = self._access(access).default_owner, checked_text(namespace, "namespace")
        earlier = None if before is None else _time(before, "before")
        later = None if after is None else _time(after, "after")
        among = None if groups is None else _groups(groups)
        most = None if limit is None else checked_count(limit, "limit")
        with self._backend.read() as reader:
            return reader.marks(owner, whose, before=earlier, after=later, groups=among, limit=most)

    alist = in_thread(list)

    def delete(self, namespace: str, keys: Sequence[str], *, access: Access | None = None) -> None:
        """Forget ``keys``; unknown ones are passed over."""
        owner, whose, gone = self._access(access).default_owner, checked_text(namespace, "namespace"), _keys(keys)
        with self._write() as writer:
            writer.delete_marks(owner, whose, gone)

    adelete = in_thread(delete)


def _keys(keys: Iterable[str]) -> Sequence[str]:
    return [checked_text(key, "a key") for key in checked_items(keys, "keys", "keys=['a', 'b']")]


def _groups(groups: Iterable[str | None]) -> Sequence[str | None]:
    given = checked_items(groups, "groups", "groups=['source-1']")
    return [None if group is None else checked_text(group, "a group") for group in given]


def _time(value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LATEST:
        raise ConfigurationError(f"{what} is a number of seconds since the epoch, not {value!r}")
    return float(value)
