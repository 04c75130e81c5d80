"""Opening a file: whose it is, what it is, whether it can be written, and bringing it up to date.

Nothing is written before it is certain that the file is twofold's, of this release or an older one, and of this
tenant; a file that is refused stays as it is, byte for byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from twofold.backends.sqlite import pragmas, registry
from twofold.backends.sqlite.connecting import SqlFunction, connect
from twofold.backends.sqlite.connections import MEMORY, Pool
from twofold.backends.sqlite.driver import DEFAULT_DRIVER, Connection, Driver, DriverName, load_driver
from twofold.backends.sqlite.faults import FULL_DISK, Fault, driver_errors, fault_of, translating
from twofold.backends.sqlite.keyword import column_weights
from twofold.backends.sqlite.migrations import (
    MIGRATIONS,
    Creation,
    Migration,
    applied_migrations,
    migrate,
    read_meta,
    write_meta,
)
from twofold.backends.sqlite.tenants import tenant_file_name
from twofold.backends.sqlite.vec0 import extension_path, extension_problem
from twofold.config import DEFAULT_FIELDS, DEFAULT_LANGUAGE, StoreSettings
from twofold.errors import (
    ConfigurationError,
    MissingExtraError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreError,
    WrongTenantError,
)
from twofold.text import Analyzer

__all__ = ["OpenedFile", "open_file"]

_LOOKS: Final = 3
"""How often a file is looked at that may not be writable, or may have come in this very moment."""
_FORBIDDEN: Final = (Fault.READ_ONLY, Fault.CANNOT_OPEN)
"""What SQLite says, now the one and now the other, if the file or its folder may not be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that is open, up to date and the caller's."""

    path: str
    """Where it is: an absolute path, or ``":memory:"``."""
    driver: Driver
    """The SQLite library that it is open with."""
    pool: Pool
    """Its connections."""
    read_only: bool
    """Whether nothing can be written: because that was asked for, or because the file or its folder forbids it."""
    immutable: bool
    """Whether it is read without locks, as it lies where none can be made: others must not write it meanwhile."""
    fields: tuple[str, ...]
    """The names of a record's pieces of text."""
    language: str
    """The language of stemming and stop words."""
    stop_words: tuple[str, ...] | None
    """Words dropped from a query; None: the language's list."""
    tenant: str | None
    """Whom it belongs to; None: to nobody."""

    def close(self) -> None:
        """Wait for the sessions in flight, close the connections, let go of the file."""
        self.pool.close()


def open_file(
    path: str | os.PathLike[str],
    *,
    tenant: str | None,
    settings: StoreSettings,
    functions: Sequence[SqlFunction] = (),
    migrations: Sequence[Migration] = MIGRATIONS,
) -> OpenedFile:
    """Open a file, or make one.

    Args:
        path: a file in a folder that exists; with a tenant, the folder that holds the tenants' files; or
            ``":memory:"``.
        tenant: whose file it is; a file refuses all others.
        settings: what differs from the file's own is changed in it (language, stop words) or refused (fields).
        functions: functions that SQL may call.
        migrations: the steps that a file of today has behind it.

    Raises:
        ConfigurationError: the path cannot be used like this, or ``fields`` are not the file's.
        WrongTenantError: the file belongs to another tenant.
        NotAStoreError: it is no SQLite database, or another program's. It was not changed.
        NewerFormatError: a newer release of twofold wrote it. It was not changed.
        ReadOnlyStoreError: it cannot be written, and reading is not enough: it is new, has to be brought up to date,
            or other settings are asked for.
        DriverConflictError: this process has it open with another SQLite library than the one asked for.
        MissingExtraError: ``pysqlite3`` was asked for and is not installed.
        CorruptStoreError, StorageFullError, StoreBusyError, StoreError: it cannot be opened; the message says why.
    """
    location = _locate(path, tenant)
    with translating(f"opening {location}"):
        if settings.driver != "auto":
            load_driver(settings.driver)  # before a file is made
        if settings.language is not None:
            Analyzer(settings.language, settings.stop_words)  # likewise
        preferred = _preferred_driver(settings)
        claim = None if location == MEMORY else _claim(location, settings, preferred)
        try:
            driver = load_driver(preferred if claim is None else claim.driver)
            return _Opening(
                path=location,
                claim=claim,
                driver=driver,
                tenant=tenant,
                settings=settings,
                functions=functions,
                extensions=_extensions(driver, settings),
                migrations=migrations,
            ).run()
        except BaseException:
            if claim is not None:
                claim.release()
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """The steps of :func:`open_file`, and what they all need."""

    path: str
    claim: registry.Claim | None
    driver: Driver
    tenant: str | None
    settings: StoreSettings
    functions: Sequence[SqlFunction]
    extensions: Sequence[str]
    migrations: Sequence[Migration]

    def run(self) -> OpenedFile:
        if self.claim is None:
            return self.for_writing(MEMORY)
        if self.claim.first:
            self.inspect()
        if not self.settings.read_only and _can_be_written(self.path):
            try:
                return self.for_writing(_uri(self.path, mode="rw"))
            except driver_errors() as error:
                # The rights were read, but only trying tells: mounts and network folders have rules of their own.
                if fault_of(error) not in _FORBIDDEN:
                    raise
        return self.for_reading()

    def inspect(self) -> None:
        """Refuse what is not ours to open without leaving a trace: even opening a file in WAL for reading makes
        files beside it, and closing it may move a log into it.
        """
        if _size(self.path) == 1:
            # SQLite takes a file of one byte for an empty one, and would write over it.
            raise NotAStoreError(f"{self.path} is no SQLite database; it was not changed")
        if _has_log(self.path):
            self._look(_uri(self.path, mode="ro"))
            return
        try:
            self._look(_uri(self.path, immutable="1"))
        except StoreError:
            # No lock was held: judge only what nobody changed meanwhile.
            if not _has_log(self.path):
                raise

    def _look(self, uri: str) -> None:
        connection = self.driver.connect(uri)
        try:
            pragmas.busy_timeout(connection, self.settings.busy_timeout)
            if applied_migrations(connection, self.migrations):
                self.check(read_meta(connection))
        except driver_errors() as error:
            if fault_of(error) is Fault.NOT_A_DATABASE:
                raise NotAStoreError(f"{self.path} is no SQLite database; it was not changed") from error
            # Whatever else is wrong is said by the real opening.
        finally:
            connection.close()

    def for_writing(self, database: str) -> OpenedFile:
        connection = connect(self.driver, database, self.settings, self.functions, self.extensions)
        try:
            if applied_migrations(connection, self.migrations):
                self.check(read_meta(connection))
            else:
                creation = self.creation()
                self.check_settings(creation.fields, creation.language)
            if database != MEMORY:
                pragmas.use_wal(connection, self.settings.busy_timeout)
            migrate(connection, self.creation(), now=self.settings.clock, migrations=self.migrations)
            meta = read_meta(connection)
            self.check(meta)  # again: another process may have made the file meanwhile
            changes = self.changes(meta)
            if changes:
                connection.execute("BEGIN IMMEDIATE")
                for name, value in changes.items():
                    write_meta(connection, name, value)
                connection.execute("COMMIT")
                meta |= changes
        except BaseException:
            connection.close()
            raise
        return self.opened(self.pool(database, main=connection), meta, immutable=False)

    def for_reading(self) -> OpenedFile:
        database = _uri(self.path, mode="ro")
        immutable = False
        try:
            meta = self.read(database)
        except driver_errors() as error:
            if fault_of(error) not in _FORBIDDEN:
                raise
            if _has_log(self.path):
                raise StoreError(
                    f"{self.path} has a write-ahead log (-wal) without its index (-shm), and its folder cannot be "
                    "written to make one. Open it once where it can be written, or copy the file and its -wal to such "
                    "a folder; the log holds writes that the file alone does not"
                ) from error
            database = _uri(self.path, immutable="1")
            immutable = True
            meta = self.read(database)
        return self.opened(self.pool(database, read_only=True), meta, immutable=immutable)

    def pool(self, database: str, *, read_only: bool = False, main: Connection | None = None) -> Pool:
        return Pool(
            self.driver,
            database,
            self.settings,
            functions=self.functions,
            extensions=self.extensions,
            read_only=read_only,
            main=main,
            claim=self.claim,
        )

    def read(self, database: str) -> dict[str, str]:
        connection = connect(self.driver, database, self.settings)
        try:
            applied = applied_migrations(connection, self.migrations)
            if len(applied) < len(self.migrations):
                state = "holds no store yet" if not applied else "was written by an older release"
                raise ReadOnlyStoreError(f"{self.path} {state}, and cannot be written: open it once for writing")
            meta = read_meta(connection)
            self.check(meta)
            if self.changes(meta):
                raise ReadOnlyStoreError(
                    f"{self.path} has other settings ({', '.join(self.changes(meta))}) and cannot be written: "
                    "leave them unset to take the file's"
                )
            return meta
        finally:
            connection.close()

    def check(self, meta: Mapping[str, str]) -> None:
        """Whether this caller may have the file as asked for."""
        if meta.get("tenant") != self.tenant:
            whose = "no tenant" if self.tenant is None else "this one"
            raise WrongTenantError(f"{self.path} does not belong to {whose}: open it with the tenant it was made for")
        fields = tuple(json.loads(meta["fields"]))
        if self.settings.fields not in (None, fields):
            raise ConfigurationError(
                f"{self.path} was made with fields={fields!r}, which cannot be changed: leave fields unset, or export "
                "its records to a new file"
            )
        self.check_settings(fields, self.settings.language or meta["language"])

    def creation(self) -> Creation:
        settings = self.settings
        return Creation(
            fields=settings.fields or DEFAULT_FIELDS,
            language=settings.language or DEFAULT_LANGUAGE,
            stop_words=settings.stop_words,
            tenant=self.tenant,
            keyword_index=self.driver.has_fts5,
        )

    def check_settings(self, fields: tuple[str, ...], language: str) -> None:
        """Whether the keyword index can be used as set; before the settings are kept in the file for ever after."""
        Analyzer(language, self.settings.stop_words)
        column_weights(fields, self.settings)

    def changes(self, meta: Mapping[str, str]) -> dict[str, str]:
        """What of the file's own settings is to be another than it is."""
        wanted = {}
        if self.settings.language is not None:
            wanted["language"] = self.settings.language
        if self.settings.stop_words is not None:
            wanted["stop_words"] = json.dumps(self.settings.stop_words)
        return {name: value for name, value in wanted.items() if meta.get(name) != value}

    def opened(self, pool: Pool, meta: Mapping[str, str], *, immutable: bool) -> OpenedFile:
        stop_words = meta.get("stop_words")
        return OpenedFile(
            path=self.path,
            driver=self.driver,
            pool=pool,
            read_only=pool.read_only,
            immutable=immutable,
            fields=tuple(json.loads(meta["fields"])),
            language=meta["language"],
            stop_words=None if stop_words is None else tuple(json.loads(stop_words)),
            tenant=self.tenant,
        )


def _locate(path: str | os.PathLike[str], tenant: str | None) -> str:
    raw = os.fspath(path)
    if not isinstance(raw, str) or not raw or "\0" in raw:
        raise ConfigurationError(f"path is the name of a file as text, not {raw!r}")
    name = None if tenant is None else tenant_file_name(tenant)
    if raw == MEMORY:
        return MEMORY
    try:
        return _place(Path(raw), name)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise ConfigurationError(f"{raw} cannot be used as a path: {error}") from error


def _place(path: Path, name: str | None) -> str:
    place = path.resolve()  # links are followed: the log lies beside the file itself
    if name is not None:
        if not place.is_dir():
            what = "is a file" if place.exists() else "does not exist: create it"
            raise ConfigurationError(f"with a tenant, path is the folder of the tenants' files; {place} {what}")
        place = (place / name).resolve()
    if place.is_dir():
        raise ConfigurationError(f"{place} is a folder: name a file in it, or say whose file with tenant=")
    if place.exists() and not place.is_file():
        raise ConfigurationError(f"{place} is no regular file")
    if not place.parent.is_dir():
        raise ConfigurationError(f"there is no folder {place.parent}: create it first")
    return str(place)


def _claim(path: str, settings: StoreSettings, preferred: DriverName) -> registry.Claim:
    try:
        return registry.claim(path, settings.driver, create=not settings.read_only, preferred=preferred)
    except FileNotFoundError as error:
        raise ConfigurationError(f"there is no file {path}, and read_only=True makes none") from error
    except PermissionError as error:
        raise ReadOnlyStoreError(f"there is no file {path}, and its folder cannot be written to make one") from error
    except OSError as error:
        if error.errno in FULL_DISK:
            raise
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error


def _preferred_driver(settings: StoreSettings) -> DriverName:
    """The driver of a file that is not open yet. With sqlite-vec, one that can load it, if there is one."""
    if settings.driver != "auto":
        return settings.driver
    if settings.index == "sqlite-vec" and extension_problem(load_driver(DEFAULT_DRIVER)) is not None:
        with suppress(MissingExtraError):
            if extension_problem(load_driver("pysqlite3")) is None:
                return "pysqlite3"
    return DEFAULT_DRIVER


def _extensions(driver: Driver, settings: StoreSettings) -> tuple[str, ...]:
    if settings.index != "sqlite-vec" or extension_problem(driver) is not None:
        return ()
    return (extension_path(),)


def _uri(path: str, **parameters: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"{Path(path).as_uri()}?{query}"


def _has_log(path: str) -> bool:
    """Whether something lies beside the file that belongs to its content: a write-ahead log, or a rollback journal."""
    return any(_size(path + suffix) > 0 for suffix in ("-wal", "-journal"))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _can_be_written(path: str) -> bool:
    """As far as rights can tell: the file, and what lies beside it or else the folder, must be writable."""
    return os.access(path, os.W_OK) and all(_can_be_written_or_made(path + suffix) for suffix in ("-wal", "-shm"))


def _can_be_written_or_made(path: str) -> bool:
    """The same of a file that comes and goes, as other processes open and close the one it lies beside."""
    for _ in range(_LOOKS):
        if os.access(path, os.W_OK):
            return True
        if not Path(path).exists():
            return os.access(Path(path).parent, os.W_OK)
    return False  # it is there whenever one looks, and may not be written
