"""LangChain's own suite for vector stores: in memory and in a file, over each index, and without an embedding model."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from langchain_twofold import TwofoldVectorStore

_LIBRARIES = {"exact": (), "faiss-flat": ("faiss",), "sqlite-vec": ("pysqlite3", "sqlite_vec")}

_NEIGHBOURS = "a keyword store finds what matches a word of the query, and no nearest neighbours besides"


def _indexes() -> list[Any]:
    return [
        pytest.param(
            index,
            marks=pytest.mark.skipif(
                not all(map(importlib.util.find_spec, libraries)), reason=f"{' and '.join(libraries)} not installed"
            ),
        )
        for index, libraries in _LIBRARIES.items()
    ]


class TestWithEmbeddings(VectorStoreIntegrationTests):
    @pytest.fixture(params=_indexes())
    def index(self, request: pytest.FixtureRequest) -> str:
        index: str = request.param
        return index

    @pytest.fixture(params=["memory", "file"])
    def vectorstore(self, request: pytest.FixtureRequest, index: str, tmp_path: Path) -> Iterator[VectorStore]:
        path = ":memory:" if request.param == "memory" else tmp_path / "documents.db"
        settings = {"driver": "pysqlite3"} if index == "sqlite-vec" else _driver()
        with TwofoldVectorStore(
            path, embedding=self.get_embeddings(), embedding_name="fake", index=index, **settings
        ) as store:
            yield store


class TestKeywordsOnly(VectorStoreIntegrationTests):
    @pytest.fixture(params=["memory", "file"])
    def vectorstore(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
        path = ":memory:" if request.param == "memory" else tmp_path / "documents.db"
        with TwofoldVectorStore(path, **_driver()) as store:
            yield store

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    def test_add_documents(self, vectorstore: VectorStore) -> None:
        super().test_add_documents(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    def test_deleting_documents(self, vectorstore: VectorStore) -> None:
        super().test_deleting_documents(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    def test_deleting_bulk_documents(self, vectorstore: VectorStore) -> None:
        super().test_deleting_bulk_documents(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    def test_add_documents_with_ids_is_idempotent(self, vectorstore: VectorStore) -> None:
        super().test_add_documents_with_ids_is_idempotent(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    def test_add_documents_by_id_with_mutation(self, vectorstore: VectorStore) -> None:
        super().test_add_documents_by_id_with_mutation(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    async def test_add_documents_async(self, vectorstore: VectorStore) -> None:
        await super().test_add_documents_async(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    async def test_deleting_documents_async(self, vectorstore: VectorStore) -> None:
        await super().test_deleting_documents_async(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    async def test_deleting_bulk_documents_async(self, vectorstore: VectorStore) -> None:
        await super().test_deleting_bulk_documents_async(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    async def test_add_documents_with_ids_is_idempotent_async(self, vectorstore: VectorStore) -> None:
        await super().test_add_documents_with_ids_is_idempotent_async(vectorstore)

    @pytest.mark.xfail(reason=_NEIGHBOURS, strict=True)
    async def test_add_documents_by_id_with_mutation_async(self, vectorstore: VectorStore) -> None:
        await super().test_add_documents_by_id_with_mutation_async(vectorstore)


def _driver() -> dict[str, str]:
    """The SQLite library that the run asks for, as the other tests take it."""
    driver = os.environ.get("TWOFOLD_TEST_DRIVER")
    return {} if driver is None else {"driver": driver}
