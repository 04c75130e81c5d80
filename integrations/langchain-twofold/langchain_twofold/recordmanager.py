"""What LangChain's ``index()`` remembers, in the same file as the documents it tells of."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.indexing import RecordManager

from langchain_twofold.vectorstores import TwofoldVectorStore

__all__ = ["TwofoldRecordManager"]


class TwofoldRecordManager(RecordManager):
    """Remembers when ``index(...)`` wrote which document, for one vector store and in its file.

    It cannot drift from the store: a key exists only while its document does, so one that was deleted by other means is
    indexed again.

    Args:
        vector_store: what ``index(...)`` writes to. Its access and namespace are the manager's.
        namespace: keeps apart what several sources index into one vector store. Default: ``"index"``.

    Example:
        ``index(loader, TwofoldRecordManager(vector_store), vector_store, cleanup="full", key_encoder="sha256")``
    """

    def __init__(self, vector_store: TwofoldVectorStore, namespace: str = "index") -> None:
        super().__init__("\x1f".join([namespace, *vector_store.namespace]))
        self._store = vector_store.store
        self._access = vector_store.access
        self._path = vector_store.namespace

    def create_schema(self) -> None:
        """Nothing: the file is ready once it is open."""

    async def acreate_schema(self) -> None:
        """Nothing, like :meth:`create_schema`."""

    def get_time(self) -> float:
        """The store's time, in seconds since the epoch."""
        return self._store.marks.now()

    async def aget_time(self) -> float:
        """Async twin of :meth:`get_time`."""
        return await self._store.marks.anow()

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Mark ``keys`` as seen now.

        Args:
            keys: what was seen.
            group_ids: the source of each. Default: none.
            time_at_least: it must not be earlier than this by the store's clock.

        Raises:
            ValueError: the clock was turned back, or the lists are not equally long.
        """
        self._store.marks.set(
            self.namespace,
            keys,
            groups=group_ids,
            time=_not_before(self.get_time(), time_at_least),
            access=self._access,
        )

    async def aupdate(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Async twin of :meth:`update`."""
        now = _not_before(await self.aget_time(), time_at_least)
        await self._store.marks.aset(self.namespace, keys, groups=group_ids, time=now, access=self._access)

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Whether each key is marked and its document is there."""
        marked = self._store.marks.exists(self.namespace, keys, access=self._access)
        found = self._store.get_many(keys, access=self._access, namespace=self._path)
        there = {record.id for record in found}
        return [is_marked and key in there for key, is_marked in zip(keys, marked, strict=True)]

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """Async twin of :meth:`exists`."""
        marked = await self._store.marks.aexists(self.namespace, keys, access=self._access)
        found = await self._store.aget_many(keys, access=self._access, namespace=self._path)
        there = {record.id for record in found}
        return [is_marked and key in there for key, is_marked in zip(keys, marked, strict=True)]

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """The keys marked before and after these times, of these groups, the oldest first."""
        marks = self._store.marks.list(
            self.namespace, before=before, after=after, groups=group_ids, limit=limit, access=self._access
        )
        return [mark.key for mark in marks]

    async def alist_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Async twin of :meth:`list_keys`."""
        marks = await self._store.marks.alist(
            self.namespace, before=before, after=after, groups=group_ids, limit=limit, access=self._access
        )
        return [mark.key for mark in marks]

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Forget keys; the documents stay."""
        self._store.marks.delete(self.namespace, keys, access=self._access)

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """Async twin of :meth:`delete_keys`."""
        await self._store.marks.adelete(self.namespace, keys, access=self._access)


def _not_before(now: float, time_at_least: float | None) -> float:
    if time_at_least is not None and now < time_at_least:
        raise ValueError(f"the store's clock says {now}, which is before {time_at_least}: was it turned back?")
    return now
