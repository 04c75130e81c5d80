"""What LlamaIndex wants to know of documents, answered from the file that their nodes are in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo
from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE

from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import A, ConfigurationError

__all__ = ["TwofoldDocumentStore"]

_UNFINISHED: Final = "unfinished"
"""Stands for the hash of a document that has nodes but was never said to be complete: no hash equals it."""


class TwofoldDocumentStore(BaseDocumentStore):
    """The document store of a :class:`TwofoldVectorStore`, in the same file, so that nothing is inserted twice.

    LlamaIndex asks its document store which documents are there already, and by default has forgotten it in the next
    process. This one knows: ``refresh_ref_docs`` and an ``IngestionPipeline`` pass over documents that have not
    changed, and replace those that have. A document whose insertion broke off is inserted anew, one that was deleted
    from the vector store counts as not there.

    What is read are the vector store's nodes, of its namespace and for its access, e.g. by
    ``PrevNextNodePostprocessor(docstore=...)``. No documents are kept besides: :meth:`add_documents` keeps nothing
    that the vector store does not hold.
    """

    def __init__(self, vector_store: TwofoldVectorStore) -> None:
        """Nothing is read here.

        Args:
            vector_store: whose nodes these are; it is closed by who made it.

        Raises:
            ConfigurationError: it is no such vector store.
        """
        if not isinstance(vector_store, TwofoldVectorStore):
            raise ConfigurationError(f"vector_store is a TwofoldVectorStore, not {type(vector_store).__name__}")
        self._vector_store = vector_store
        self._marked = json.dumps(["llama_index", *vector_store.namespace])

    @property
    def docs(self) -> dict[str, BaseNode]:
        """All nodes, by id."""
        return {node.node_id: node for node in self._vector_store.get_nodes()}

    def add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,  # noqa: FBT001, FBT002 - the signature is LlamaIndex's
        batch_size: int = DEFAULT_BATCH_SIZE,
        store_text: bool = True,  # noqa: FBT001, FBT002 - likewise
    ) -> None:
        """Nothing: nodes go into the vector store, and documents are not kept besides."""

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:  # noqa: FBT001, FBT002 - likewise
        """The node of this id.

        Raises:
            ValueError: there is none, and ``raise_error``; else the answer is None.
        """
        found = self._vector_store.get_nodes([doc_id])
        if not found and raise_error:
            raise ValueError(f"doc_id {doc_id} not found.")
        return found[0] if found else None

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:  # noqa: FBT001, FBT002 - likewise
        """Remove the node of this id, and forget the document of this id.

        Raises:
            ValueError: there is neither, and ``raise_error``.
        """
        if raise_error and self.get_document_hash(doc_id) is None:
            raise ValueError(f"doc_id {doc_id} not found.")
        self._vector_store.delete_nodes([doc_id])
        self._forget(doc_id)

    def document_exists(self, doc_id: str) -> bool:
        """Whether there is a node of this id."""
        return bool(self._vector_store.get_nodes([doc_id]))

    def set_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Say that the document is complete, and what it was made of."""
        self.set_document_hashes({doc_id: doc_hash})

    def set_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """Say the same of several documents."""
        marks, access = self._vector_store.store.marks, self._vector_store.access
        earlier = marks.list(self._marked, groups=list(doc_hashes), access=access)
        keys = [_key(doc_id, doc_hash) for doc_id, doc_hash in doc_hashes.items()]
        marks.set(self._marked, keys, groups=list(doc_hashes), access=access)
        marks.delete(self._marked, sorted({mark.key for mark in earlier} - set(keys)), access=access)

    def get_document_hash(self, doc_id: str) -> str | None:
        """What the document was made of; None if nothing of it is there."""
        store, access = self._vector_store.store, self._vector_store.access
        here = A.namespace == self._vector_store.namespace
        if not store.count(where=here & ((A.source == doc_id) | (A.id == doc_id)), access=access):
            return None
        marks = store.marks.list(self._marked, groups=[doc_id], access=access)
        return _hash(marks[-1].key) if marks else _UNFINISHED

    def get_all_document_hashes(self) -> dict[str, str]:
        """By what it was made of, the id of each document that is there."""
        store, access = self._vector_store.store, self._vector_store.access
        marks = store.marks.list(self._marked, access=access)
        made_of = {str(mark.group): _hash(mark.key) for mark in marks}
        there = {node.ref_doc_id or node.node_id for node in self._vector_store.get_nodes()}
        return {made_of.get(doc_id, f"{_UNFINISHED} {doc_id}"): doc_id for doc_id in sorted(there)}

    def get_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """By document, its nodes."""
        found: dict[str, RefDocInfo] = {}
        for node in self._vector_store.get_nodes():
            _note(found, node)
        return found

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """The nodes of one document; None if there are none."""
        store, access = self._vector_store.store, self._vector_store.access
        here = A.namespace == self._vector_store.namespace
        records = store.list(where=here & (A.source == ref_doc_id), order="created_at", access=access)
        found: dict[str, RefDocInfo] = {}
        for node in self._vector_store.get_nodes([record.id for record in records]):
            _note(found, node)
        return found.get(ref_doc_id)

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:  # noqa: FBT001, FBT002 - likewise
        """Remove the nodes of a document, and forget it.

        Raises:
            ValueError: nothing of it is there, and ``raise_error``.
        """
        if raise_error and self.get_document_hash(ref_doc_id) is None:
            raise ValueError(f"ref_doc_id {ref_doc_id} not found.")
        self._vector_store.delete(ref_doc_id)
        self._forget(ref_doc_id)

    async def async_add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,  # noqa: FBT001, FBT002 - the signature is LlamaIndex's
        batch_size: int = DEFAULT_BATCH_SIZE,
        store_text: bool = True,  # noqa: FBT001, FBT002 - likewise
    ) -> None:
        """Nothing, like :meth:`add_documents`."""

    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:  # noqa: FBT001, FBT002
        """Async twin of :meth:`get_document`."""
        return await asyncio.to_thread(self.get_document, doc_id, raise_error)

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:  # noqa: FBT001, FBT002
        """Async twin of :meth:`delete_document`."""
        await asyncio.to_thread(self.delete_document, doc_id, raise_error)

    async def adocument_exists(self, doc_id: str) -> bool:
        """Async twin of :meth:`document_exists`."""
        return await asyncio.to_thread(self.document_exists, doc_id)

    async def aset_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Async twin of :meth:`set_document_hash`."""
        await asyncio.to_thread(self.set_document_hash, doc_id, doc_hash)

    async def aset_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """Async twin of :meth:`set_document_hashes`."""
        await asyncio.to_thread(self.set_document_hashes, doc_hashes)

    async def aget_document_hash(self, doc_id: str) -> str | None:
        """Async twin of :meth:`get_document_hash`."""
        return await asyncio.to_thread(self.get_document_hash, doc_id)

    async def aget_all_document_hashes(self) -> dict[str, str]:
        """Async twin of :meth:`get_all_document_hashes`."""
        return await asyncio.to_thread(self.get_all_document_hashes)

    async def aget_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """Async twin of :meth:`get_all_ref_doc_info`."""
        return await asyncio.to_thread(self.get_all_ref_doc_info)

    async def aget_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """Async twin of :meth:`get_ref_doc_info`."""
        return await asyncio.to_thread(self.get_ref_doc_info, ref_doc_id)

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:  # noqa: FBT001, FBT002
        """Async twin of :meth:`delete_ref_doc`."""
        await asyncio.to_thread(self.delete_ref_doc, ref_doc_id, raise_error)

    def _forget(self, doc_id: str) -> None:
        marks, access = self._vector_store.store.marks, self._vector_store.access
        known = marks.list(self._marked, groups=[doc_id], access=access)
        marks.delete(self._marked, [mark.key for mark in known], access=access)


def _key(doc_id: str, doc_hash: str) -> str:
    """A mark is found by its group, the document; what it was made of stands in its key."""
    return json.dumps([doc_hash, doc_id])


def _hash(key: str) -> str:
    found: str = json.loads(key)[0]
    return found


def _note(found: dict[str, RefDocInfo], node: BaseNode) -> None:
    if node.ref_doc_id is not None:
        source: Mapping[str, object] = {} if node.source_node is None else node.source_node.metadata
        found.setdefault(node.ref_doc_id, RefDocInfo(metadata=dict(source))).node_ids.append(node.node_id)
