"""The SQLite backend keeps the contract: on both drivers, with each vector index, in a file and in memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.protocol import Backend
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.config import StoreSettings
from twofold.testing.backend_contract import BackendContract

needs_pysqlite3 = pytest.mark.skipif(
    importlib.util.find_spec("pysqlite3") is None, reason="pysqlite3 (the extra sqlite-vec) is not installed"
)
needs_sqlite_vec = pytest.mark.skipif(
    importlib.util.find_spec("sqlite_vec") is None, reason="sqlite-vec (the extra sqlite-vec) is not installed"
)
needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="faiss-cpu (the extra faiss) is not installed"
)
SETTINGS = [
    pytest.param({"driver": "sqlite3"}, id="sqlite3"),
    pytest.param({"driver": "pysqlite3"}, id="pysqlite3", marks=needs_pysqlite3),
    pytest.param({"index": "exact"}, id="exact"),
    pytest.param(
        {"driver": "pysqlite3", "index": "sqlite-vec"}, id="sqlite-vec", marks=[needs_pysqlite3, needs_sqlite_vec]
    ),
    *(
        pytest.param({"driver": "sqlite3", "index": index}, id=index, marks=needs_faiss)
        for index in ("faiss-flat", "faiss-hnsw", "faiss-ivf")
    ),
]


@pytest.fixture(params=SETTINGS)
def open_backend(request: pytest.FixtureRequest) -> Iterator[Callable[[str | Path], SqliteBackend]]:
    with ExitStack() as stack:

        def opened(path: str | Path) -> SqliteBackend:
            return stack.enter_context(
                closing(SqliteBackend.open(path, settings=StoreSettings(busy_timeout=60, **request.param)))
            )

        yield opened


class TestInAFile(BackendContract):
    @pytest.fixture
    def backend(self, open_backend: Callable[[str | Path], SqliteBackend], tmp_path: Path) -> Backend:
        return open_backend(tmp_path / "store.db")

    @pytest.fixture
    def another(self, open_backend: Callable[[str | Path], SqliteBackend], tmp_path: Path) -> Callable[[], Backend]:
        return lambda: open_backend(tmp_path / "store.db")

    @pytest.fixture
    def open_copy(self, open_backend: Callable[[str | Path], SqliteBackend]) -> Callable[[str], Backend]:
        return open_backend


class TestInMemory(BackendContract):
    @pytest.fixture
    def backend(self, open_backend: Callable[[str | Path], SqliteBackend]) -> Backend:
        return open_backend(":memory:")

    @pytest.fixture
    def open_copy(self, open_backend: Callable[[str | Path], SqliteBackend]) -> Callable[[str], Backend]:
        return open_backend


def nothing(self: object) -> None:
    """A test that asks for nothing."""


def marked(mark: Any) -> Callable[[object], None]:
    def test(self: object) -> None:
        """Another one, for pytest marks the function itself."""

    mark(test)
    return test


class TestTheGuard:
    """A contract that may be passed over in silence is none."""

    @pytest.fixture
    def subclass(self) -> Callable[[Any], type[BackendContract]]:
        return lambda test: type("Sub", (BackendContract,), {"test_marks": test})

    @pytest.mark.parametrize(
        "test",
        [
            None,
            nothing,
            marked(pytest.mark.skip(reason="no time")),
            marked(pytest.mark.xfail),
        ],
        ids=["removed", "overridden", "skipped", "no reason"],
    )
    def test_a_changed_test_is_noticed(self, subclass: Callable[[Any], type[BackendContract]], test: Any) -> None:
        with pytest.raises(AssertionError, match="test_marks"):
            subclass(test)().test_no_contract_test_is_changed()

    def test_an_expected_failure_with_a_reason_is_allowed(
        self, subclass: Callable[[Any], type[BackendContract]]
    ) -> None:
        expected = marked(pytest.mark.xfail(reason="no marks yet"))
        subclass(expected)().test_no_contract_test_is_changed()
