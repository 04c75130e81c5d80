"""The embedded default: one SQLite file, or one database in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from twofold.backends.protocol import Backend, Capability, CheckReport, StoreInfo
from twofold.backends.sqlite.check import run_check
from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.filter_sql import FUNCTIONS
from twofold.backends.sqlite.head import read_head
from twofold.backends.sqlite.keyword import KeywordIndex, is_index_fault
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.opening import OpenedFile, open_file
from twofold.backends.sqlite.reader import Parts, SqliteReader, keyword_problem
from twofold.backends.sqlite.vectors import VectorLeg
from twofold.backends.sqlite.visible_keys import VisibleKeys
from twofold.backends.sqlite.writer import SqliteWriter
from twofold.config import StoreSettings
from twofold.errors import SearchUnavailableError
from twofold.text import Analyzer

__all__ = ["SqliteBackend"]

_TWO_LIBRARIES: Final = (
    "two SQLite libraries on one file in one process lose each other's locks: never open this file with Python's own "
    "sqlite3 in this process"
)


class SqliteBackend:
    """Records, tokens and vectors in one SQLite file. See :class:`twofold.backends.protocol.Backend`.

    Make one with :meth:`open`.
    """

    def __init__(self, opened: OpenedFile, settings: StoreSettings) -> None:
        self._file = opened
        analyzer = Analyzer(opened.language, opened.stop_words)
        visible_keys = VisibleKeys()
        self._parts = Parts(
            fields=opened.fields,
            keyword=KeywordIndex(opened.fields, analyzer, settings),
            vectors=VectorLeg(visible_keys),
            visible_keys=visible_keys,
            has_fts5=opened.driver.has_fts5,
        )

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, tenant: str | None = None, settings: StoreSettings | None = None
    ) -> SqliteBackend:
        """Open a file, or make one; its keyword index is renewed first if another analyser made it.

        Args:
            path: a file in a folder that exists; with a tenant, the folder of the tenants' files; or ``":memory:"``.
            tenant: whose file it is. Default: nobody's in particular.
            settings: how it behaves. Default: ``StoreSettings()``.

        Raises:
            ConfigurationError: a setting does not fit the file.
            StoreError: it cannot be opened; see :func:`twofold.backends.sqlite.opening.open_file`.
        """
        settings = StoreSettings() if settings is None else settings
        opened = open_file(path, tenant=tenant, settings=settings, functions=FUNCTIONS)
        try:
            backend = cls(opened, settings)
            backend._renew_keyword_index()
        except BaseException:
            opened.close()
            raise
        return backend

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do with this file and this SQLite library."""
        can = {Capability.TRANSACTIONS, Capability.SNAPSHOTS, Capability.EXACT_FILTERED_VECTORS}
        if self._parts.has_fts5:
            can |= {Capability.KEYWORD, Capability.BM25_PARITY}
        if self._file.path != MEMORY and not self._file.immutable:
            can.add(Capability.MULTI_PROCESS)
        return frozenset(can)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a record's pieces of text."""
        return self._parts.fields

    @property
    def analyzer(self) -> Analyzer:
        """What turns text into the tokens of this file's keyword index."""
        return self._parts.keyword.analyzer

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        return self._file.read_only

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """A snapshot, taken at entry. Sessions belong to one thread, and are not to be nested in a store in memory.

        Raises:
            StoreClosedError: the store is closed.
        """
        with self._file.pool.reader() as connection:
            yield SqliteReader(connection, self._parts)

    @contextmanager
    def write(self) -> Iterator[SqliteWriter]:
        """A transaction, begun with the write lock held; it commits at the end of the block.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: the lock was held elsewhere for longer than ``busy_timeout``.
            StoreClosedError: the store is closed.
        """
        with self._file.pool.writer() as connection:
            yield SqliteWriter(connection, self._parts)

    def info(self) -> StoreInfo:
        """What it says of itself."""
        with self._file.pool.reader() as connection:
            head = read_head(connection)
            # How many vectors each has is nobody's business who may not see all records.
            spaces = connection.execute("SELECT fingerprint, field, dimension FROM spaces ORDER BY id").fetchall()
        details: dict[str, Any] = {
            "path": self._file.path,
            "driver": self._file.driver.name,
            "sqlite_version": self._file.driver.version,
            "file_bytes": self._file_bytes(),
            "immutable": self._file.immutable,
            "language": self._file.language,
            "vector_index": "exact",
            "spaces": [dict(zip(("fingerprint", "field", "dimension"), row, strict=True)) for row in spaces],
        }
        if self._file.driver.name != "sqlite3":
            details["caution"] = _TWO_LIBRARIES
        return StoreInfo(
            fields=self.fields,
            tenant=self._file.tenant,
            analyzer=head.analyzer,
            keyword_problem=keyword_problem(self._parts, head.analyzer),
            fingerprint=head.fingerprint,
            dimension=head.dimension,
            read_only=self.read_only,
            details=details,
        )

    def check(self) -> CheckReport:
        """Compare everything derived with the rows it is derived from. Changes nothing.

        Of a file open for reading only, FTS5's own check is skipped: SQLite counts it as a write.
        """
        return run_check(self._file.pool, self._parts)

    def reindex(self) -> None:
        """Make the keyword index anew from the rows, a damaged one too.

        Raises:
            SearchUnavailableError: the SQLite library has no FTS5.
            ReadOnlyStoreError: the store is open for reading only.
        """
        with self._file.pool.writer() as connection:
            if not self._parts.has_fts5:
                raise SearchUnavailableError("this SQLite library has no FTS5, so there is no keyword index to make")
            self._rebuild(connection)

    def close(self) -> None:
        """Wait for what is in flight, then close. Calling it again does nothing."""
        self._file.close()

    def _renew_keyword_index(self) -> None:
        """Make the index anew if another analyser, or a writer without FTS5, left it unusable."""
        if self.read_only or not self._parts.has_fts5:
            return
        with self._file.pool.reader() as connection:
            if self._is_current(connection):
                return
        with self._file.pool.writer() as connection:
            if not self._is_current(connection):  # another process may have been faster
                self._rebuild(connection)

    def _is_current(self, connection: Connection) -> bool:
        keyword = self._parts.keyword
        return read_head(connection).analyzer == keyword.analyzer.version and keyword.exists(connection)

    def _rebuild(self, connection: Connection) -> None:
        keyword = self._parts.keyword
        try:
            keyword.rebuild(connection)
        except driver_errors() as error:
            if not is_index_fault(error):
                raise
            keyword.recreate(connection)
            keyword.rebuild(connection)
        write_meta(connection, "analyzer", keyword.analyzer.version)

    def _file_bytes(self) -> int:
        """The size of the file and of its log; it looks only, as opening it would drop the locks on it."""
        if self._file.path == MEMORY:
            return 0
        files = (Path(f"{self._file.path}{suffix}") for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def _is_a_backend(backend: SqliteBackend) -> Backend:
    """Says to the type checker what must hold."""
    return backend
