"""Adding, removing and looking up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_twofold.documents import as_document, as_metadata
from langchain_twofold.options import as_where
from langchain_twofold.vectorstores.base import Base
from twofold import (
    Access,
    AddReport,
    ConfigurationError,
    Filter,
    NewRecord,
)

__all__ = ["Writing"]


class Writing(Base):
    """The calls that add, replace and remove documents, or get them by their ids."""

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose ids are there. All are checked before any is written.

        Args:
            texts: the texts.
            metadatas: one a text. Default: none.
            ids: one a text; None stands for a new id. Default: new ids, in order of time.
            access: who adds them, and so whose they become. Default: the vector store's own.
            batch_size: how many are embedded and committed together. Default: 500.
            kwargs: none; LangChain's signature has them.

        Returns:
            The ids, one a text, in order.

        Raises:
            ValueError: the lists are not equally long, or a text or its metadata cannot be stored; the message says
                which. Nothing was written.
            TypeError: an unknown argument.
        """
        _refused(kwargs)
        records = self._records(list(texts), metadatas, ids)
        return self._added(self._store.add_many(records, **self._adding(access, batch_size)))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        access: Access | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Async twin of :meth:`add_texts`."""
        _refused(kwargs)
        records = self._records(list(texts), metadatas, ids)
        return self._added(await self._store.aadd_many(records, **self._adding(access, batch_size)))

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add documents, or replace those whose ids are there; see :meth:`add_texts`, whose arguments it takes.

        Args:
            documents: the documents; they are not changed, and nothing of them is kept.
            ids: one a document. Default: the documents' own, and new ones for those without.
            kwargs: as for :meth:`add_texts`.
        """
        texts, metadatas, own = _unpacked(documents)
        return self.add_texts(texts, metadatas, ids=own if ids is None else ids, **kwargs)

    async def aadd_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Async twin of :meth:`add_documents`."""
        texts, metadatas, own = _unpacked(documents)
        return await self.aadd_texts(texts, metadatas, ids=own if ids is None else ids, **kwargs)

    def delete(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Filter | dict[str, Any] | None = None,
        access: Access | None = None,
        **kwargs: Any,
    ) -> bool:
        """Remove documents with their tokens and vectors.

        Args:
            ids: which; those that are not there are passed over. Default: all that the access may write, or of these
                those that ``filter`` fits.
            filter: which, in place of ids.
            access: who removes them. Default: the vector store's own.
            kwargs: none; LangChain's signature has them.

        Returns:
            True.

        Raises:
            AccessError: the access may see one but not remove it; nothing was removed.
            ConfigurationError: both ids and a filter are given.
        """
        _refused(kwargs)
        self._store.delete(**self._deleting(ids, filter, access))
        return True

    async def adelete(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Filter | dict[str, Any] | None = None,
        access: Access | None = None,
        **kwargs: Any,
    ) -> bool:
        """Async twin of :meth:`delete`."""
        _refused(kwargs)
        await self._store.adelete(**self._deleting(ids, filter, access))
        return True

    def get_by_ids(self, ids: Sequence[str], /, *, access: Access | None = None) -> list[Document]:
        """The documents of these ids, in the order asked; those that are not there, or not seen, are left out."""
        found = self._store.get_many(ids, access=self._asker(access), namespace=self._namespace)
        return [as_document(record) for record in found]

    async def aget_by_ids(self, ids: Sequence[str], /, *, access: Access | None = None) -> list[Document]:
        """Async twin of :meth:`get_by_ids`."""
        found = await self._store.aget_many(ids, access=self._asker(access), namespace=self._namespace)
        return [as_document(record) for record in found]

    def _records(
        self, texts: list[str], metadatas: list[dict[str, Any]] | None, ids: Sequence[str | None] | None
    ) -> list[NewRecord]:
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ConfigurationError(f"{len(texts)} texts but {len(given)} {name}: give one a text, or none")
        return [
            NewRecord(
                text=text,
                id=None if ids is None else ids[index],
                metadata={} if metadatas is None else as_metadata(metadatas[index] or {}, self._encode),
                namespace=self._namespace,
            )
            for index, text in enumerate(texts)
        ]

    def _adding(self, access: Access | None, batch_size: int | None) -> dict[str, Any]:
        size = {} if batch_size is None else {"batch_size": batch_size}
        return {"access": self._asker(access), **size}

    def _added(self, report: AddReport) -> list[str]:
        self._last_added = report
        return list(report.ids)

    def _deleting(
        self, ids: Sequence[str] | None, filter: Filter | dict[str, Any] | None, access: Access | None
    ) -> dict[str, Any]:
        if ids is None:
            return {"where": as_where(filter, self._namespace), "access": self._asker(access)}
        if filter is not None:
            raise ConfigurationError("delete takes ids or filter=..., not both")
        return {"ids": ids, "namespace": self._namespace, "access": self._asker(access)}


def _unpacked(documents: list[Document]) -> tuple[list[str], list[dict[str, Any]], list[str | None]]:
    return (
        [document.page_content for document in documents],
        [document.metadata for document in documents],
        [document.id for document in documents],
    )


def _refused(kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"unknown arguments: {', '.join(sorted(kwargs))}")
