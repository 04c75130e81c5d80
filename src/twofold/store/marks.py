"""Marks: what a record manager remembers, in the same file as the records it tells of.

LangChain's indexing, say, marks each document that it has written with the time and the source it came from, and
later asks which marks are older than the last run.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.backends.protocol import Mark
from twofold.errors import ConfigurationError
from twofold.store.asynchronous import in_thread
from twofold.store.handle import Handle
from twofold.types import Access
from twofold.types.json import checked_text

__all__ = ["Marks"]


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
        if groups is not None and len(groups) != len(keys):
            raise ConfigurationError(f"{len(keys)} keys but {len(groups)} groups: give one a key, or none")
        at = self.now() if time is None else float(time)
        marks = [
            Mark(checked_text(key, "a key"), None if groups is None else groups[index], at)
            for index, key in enumerate(keys)
        ]
        with self._backend.write() as writer:
            writer.put_marks(self._access(access).default_owner, checked_text(namespace, "namespace"), marks)

    aset = in_thread(set)

    def exists(self, namespace: str, keys: Sequence[str], *, access: Access | None = None) -> Sequence[bool]:
        """Whether each of ``keys`` is marked, in their order."""
        owner = self._access(access).default_owner
        with self._backend.read() as reader:
            found = {mark.key for mark in reader.marks(owner, namespace, keys=keys)}
        return [key in found for key in keys]

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
        owner = self._access(access).default_owner
        with self._backend.read() as reader:
            return reader.marks(owner, namespace, before=before, after=after, groups=groups, limit=limit)

    alist = in_thread(list)

    def delete(self, namespace: str, keys: Sequence[str], *, access: Access | None = None) -> None:
        """Forget ``keys``; unknown ones are passed over."""
        with self._backend.write() as writer:
            writer.delete_marks(self._access(access).default_owner, namespace, keys)

    adelete = in_thread(delete)
