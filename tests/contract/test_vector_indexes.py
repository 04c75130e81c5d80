"""Every vector index keeps the contract, with each SQLite library that it can be used with."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from twofold.backends.protocol import Capability
from twofold.backends.sqlite import vector_indexes
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.config import StoreSettings
from twofold.errors import SearchUnavailableError
from twofold.testing.index_contract import Indexed, VectorIndexContract, fill
from twofold.vectors import index_in_use

needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="the extra faiss is not installed")
needs_sqlite_vec = pytest.mark.skipif(
    importlib.util.find_spec("sqlite_vec") is None or importlib.util.find_spec("pysqlite3") is None,
    reason="the extra sqlite-vec is not installed",
)


@pytest.fixture(scope="class")
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    path, settings = tmp_path_factory.mktemp("index") / "store.db", StoreSettings(**request.cls.settings)
    with closing(SqliteBackend.open(path, settings=settings)) as backend:
        filled = fill(backend)
        if not request.cls.codes:
            yield filled
            return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_indexes, "FLOATS_IN_MEMORY", 0)
        with closing(SqliteBackend.open(path, settings=settings)) as backend:
            filled = replace(filled, backend=backend)
            with pytest.raises(SearchUnavailableError, match="being built"):
                filled.nearest(filled.twin)
            assert backend._background.wait("vector index", 60)
            yield filled


class OverSqlite(VectorIndexContract):
    settings: ClassVar[dict[str, Any]]
    exact: ClassVar[bool] = True
    codes: ClassVar[bool] = False

    def test_it_is_the_one_that_was_chosen(self, indexed: Indexed) -> None:
        details = indexed.backend.info().details
        wanted = self.settings["index"]
        assert details["vector_index"] == index_in_use(wanted, 10_000)
        assert details["vector_index_problem"] is None
        assert (Capability.EXACT_FILTERED_VECTORS in indexed.backend.capabilities) == self.exact


class TestExact(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "exact"}


class TestAuto(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "auto"}


@needs_sqlite_vec
class TestSqliteVec(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "sqlite-vec"}


@needs_faiss
class TestFaissFlat(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "faiss-flat"}


@needs_faiss
class TestCodesInMemory(OverSqlite):
    """As of very many vectors: the codes are in memory, the vectors are read from the file."""

    settings: ClassVar[dict[str, Any]] = {"index": "faiss-flat"}
    codes = True


@needs_faiss
class TestFaissHnsw(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "faiss-hnsw"}
    exact = False


@needs_faiss
class TestFaissIvf(OverSqlite):
    settings: ClassVar[dict[str, Any]] = {"index": "faiss-ivf"}
    exact = False
