"""The embedded default: one SQLite file, or one database in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final

from twofold.backends.protocol import Backend, Capability, CheckReport, StoreInfo
from twofold.backends.sqlite.background import Background
from twofold.backends.sqlite.backup import copy_to
from twofold.backends.sqlite.check import run_check
from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.filter_sql import FUNCTIONS
from twofold.backends.sqlite.head import head_of_reader, read_head
from twofold.backends.sqlite.keyword import KeywordIndex, column_weights, is_index_fault
from twofold.backends.sqlite.known import LastWrite
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.opening import OpenedFile, open_file
from twofold.backends.sqlite.postings import PostingsCache, SavedPostings
from twofold.backends.sqlite.postings_reading import PostingsReader, keeps_order
from twofold.backends.sqlite.reader import Parts, SqliteReader, keyword_problem
from twofold.backends.sqlite.scrub import scrub
from twofold.backends.sqlite.sidecar import Sidecar
from twofold.backends.sqlite.vec0 import Vec0, extension_problem
from twofold.backends.sqlite.vector_indexes import VectorIndexes
from twofold.backends.sqlite.vectors import VectorLeg
from twofold.backends.sqlite.visible_keys import VisibleKeys
from twofold.backends.sqlite.writer import SqliteWriter
from twofold.backends.sqlite.writing_session import WritingSession
from twofold.config import StoreSettings
from twofold.errors import SearchUnavailableError, StoreError
from twofold.text import Analyzer
from twofold.vectors import APPROXIMATE, FAISS, faiss_problem

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
        self._approximate = False
        self._background = Background()
        self._last_write = LastWrite()
        keyword = KeywordIndex(opened.fields, analyzer, settings)
        self._parts = Parts(
            fields=opened.fields,
            keyword=keyword,
            postings=self._postings(keyword, settings),
            vectors=self._vector_leg(settings.index),
            visible_keys=VisibleKeys(),
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
            backend._renew_vec0()
        except BaseException:
            opened.close()
            raise
        return backend

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do with this file and this SQLite library."""
        can = {Capability.TRANSACTIONS, Capability.SNAPSHOTS, Capability.LINKS, Capability.BACKUP}
        if not self._approximate:
            can.add(Capability.EXACT_FILTERED_VECTORS)
        if self._parts.has_fts5:
            can |= {Capability.KEYWORD, Capability.BM25_PARITY, Capability.SCRUB}
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

    def read(self) -> AbstractContextManager[SqliteReader]:
        """A snapshot, taken at entry. Sessions belong to one thread, and are not to be nested in a store in memory.

        Raises:
            StoreClosedError: the store is closed.
        """
        return self._file.pool.session(self._reader, self._save_wanted_index)

    def write(self) -> AbstractContextManager[SqliteWriter]:
        """A transaction, begun with the write lock held; it commits at the end of the block.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: the lock was held elsewhere for longer than ``busy_timeout``.
            StoreClosedError: the store is closed.
        """
        return WritingSession(self._file.pool, self._parts, self._last_write)

    def info(self) -> StoreInfo:
        """What it says of itself."""
        with self._file.pool.reader() as connection:
            head = read_head(connection)
            # How many vectors each has is nobody's business who may not see all records.
            spaces = connection.execute("SELECT fingerprint, field, dimension FROM spaces ORDER BY id").fetchall()
            index, problem = self._parts.vectors.in_use(connection, head)
        details: dict[str, Any] = {
            "path": self._file.path,
            "driver": self._file.driver.name,
            "sqlite_version": self._file.driver.version,
            "file_bytes": self._file_bytes(),
            "immutable": self._file.immutable,
            "language": self._file.language,
            "keyword_index": "memory" if self._parts.postings.is_ready else "FTS5",
            "vector_index": index,
            "vector_index_problem": problem,
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
        """Make the keyword index, and a vec0 table in use, anew from the rows; damaged ones too.

        Raises:
            SearchUnavailableError: the SQLite library has no FTS5.
            ReadOnlyStoreError: the store is open for reading only.
        """
        with self._file.pool.writer() as connection:
            if not self._parts.has_fts5:
                raise SearchUnavailableError("this SQLite library has no FTS5, so there is no keyword index to make")
            self._rebuild(connection)
            if self._parts.vectors.vec0 is not None:
                self._parts.vectors.vec0.rebuild(connection, read_head(connection))

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Copy the file as it is at this moment, the log's part included; progress is told in pages.

        Raises:
            ConfigurationError: the target cannot be used, or is there already, or in use.
            StorageFullError: the disk is full; nothing is left of the copy.
        """
        file = self._file
        return copy_to(target, file.path, file.driver, file.pool, overwrite=overwrite, progress=progress)

    def scrub(self) -> None:
        """Leave no byte of what was deleted before, in the file, its log, or the indexes saved beside it.

        Raises:
            UnsupportedOperationError: the SQLite library has no FTS5.
            ReadOnlyStoreError: the store is open for reading only.
            CorruptStoreError: the keyword index is damaged.
            StoreBusyError: a reader still needs an old state of the file, or another process is writing.
            StorageFullError: the disk has no room for a second copy of the file, which this needs for a moment.
        """
        scrub(self._file.path, self._file.pool, self._parts)

    def close(self) -> None:
        """Wait for what is in flight, then close. Calling it again does nothing."""
        self._background.close()
        self._save_index()
        self._file.close()

    def _postings(self, keyword: KeywordIndex, settings: StoreSettings) -> PostingsCache:
        weights = column_weights(self._file.fields, settings)
        saved = None
        if self._file.path != MEMORY:
            sidecar = Sidecar(
                self._file.path, "keyword", lambda head: {"analyzer": head.analyzer, "weights": list(weights)}
            )
            saved = SavedPostings(sidecar, None if self.read_only else self._file.pool.writer)
        return PostingsCache(
            PostingsReader(self._file.fields, weights, keyword.tokens),
            keyword.analyzer.version,
            settings.keyword_index_from if keeps_order(weights) else None,
            self._background,
            self._file.pool.reader,
            saved,
        )

    def _vector_leg(self, choice: str) -> VectorLeg:
        if choice == "sqlite-vec":
            problem = extension_problem(self._file.driver)
            return VectorLeg(VectorIndexes(), vec0=None if problem else Vec0(), problem=problem)
        problem = faiss_problem() if choice in FAISS else None
        if problem is not None:
            return VectorLeg(VectorIndexes(), problem=problem)
        self._approximate = choice in APPROXIMATE
        if self._file.path == MEMORY:
            return VectorLeg(VectorIndexes(choice))
        return VectorLeg(
            VectorIndexes(
                choice,
                sidecar=Sidecar(self._file.path, choice) if choice in FAISS else None,
                codes=Sidecar(self._file.path, "faiss-codes") if choice in ("auto", "faiss-flat") else None,
                background=self._background,
                sessions=self._file.pool.reader,
                writer=self._file.pool.writer,
            )
        )

    def _reader(self, connection: Connection) -> SqliteReader:
        head = read_head(connection) if self._file.path == MEMORY else head_of_reader(connection)
        return SqliteReader(connection, self._parts, head)

    def _save_wanted_index(self) -> None:
        if self._parts.vectors.indexes.wants_to_be_saved:
            self._save_index()

    def _save_index(self) -> None:
        """Save a built index beside the file, if that can be done at once: it is a cache."""
        if self.read_only or self._file.path == MEMORY:
            return
        with suppress(StoreError, OSError, *driver_errors()), self._file.pool.writer(wait=False) as connection:
            self._parts.vectors.indexes.save(connection)

    def _renew_vec0(self) -> None:
        """Bring a vec0 table to where the rows are."""
        vec0 = self._parts.vectors.vec0
        if self.read_only or vec0 is None:
            return
        with self._file.pool.reader() as connection:
            head = read_head(connection)
            if head.fingerprint is None or vec0.is_current(connection, head):
                return
        with self._file.pool.writer() as connection:
            vec0.catch_up(connection, read_head(connection))

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
        self._parts.postings.forget(connection)

    def _file_bytes(self) -> int:
        """The size of the file and of its log; it looks only, as opening it would drop the locks on it."""
        if self._file.path == MEMORY:
            return 0
        files = (Path(f"{self._file.path}{suffix}") for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())


def _is_a_backend(backend: SqliteBackend) -> Backend:
    """Says to the type checker what must hold."""
    return backend
