"""The SQLite library: which one it is and what it can do.

Python's own ``sqlite3`` is the default. ``pysqlite3`` is a drop-in with a current SQLite that can load extensions. Two
SQLite libraries must never have the same file open in one process: the kernel drops a process's POSIX locks on a file
when *any* of its descriptors is closed, and one library cannot know of the other's.
:mod:`twofold.backends.sqlite.registry` sees to that.
"""

from __future__ import annotations

import functools
import importlib
import sqlite3
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, cast

from twofold.errors import ConfigurationError, MissingExtraError

__all__ = ["DEFAULT_DRIVER", "OLDEST_SQLITE", "Connection", "Driver", "DriverName", "load_driver", "load_extension"]


class Connection(sqlite3.Connection):
    """A connection of either driver: they have the same shape."""

    kept: Any = None
    """What its sessions keep for each other."""


DriverName: TypeAlias = Literal["sqlite3", "pysqlite3"]
"""The drivers there are."""

DEFAULT_DRIVER: Final[DriverName] = "sqlite3"
"""The driver of a file that this process does not have open, where none is asked for."""

OLDEST_SQLITE: Final = (3, 40)
"""The oldest SQLite that is known to work."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One SQLite library."""

    name: DriverName
    """The name it is imported by."""
    module: ModuleType
    """The DB-API module."""
    version: str
    """SQLite's version, e.g. ``"3.40.1"``."""
    has_fts5: bool
    """Whether it has the full-text index that the keyword leg needs."""
    can_load_extensions: bool
    """Whether it can load sqlite-vec; many builds of Python cannot."""

    def connect(self, database: str) -> Connection:
        """A connection in autocommit that any thread may use, one at a time.

        Args:
            database: a ``file:`` URI, or ``":memory:"``.
        """
        connection = self.module.connect(
            database,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_connection_of(self.module),
        )
        return cast("Connection", connection)


@functools.cache
def _connection_of(module: ModuleType) -> type:
    """:class:`Connection`, as one of that library's."""
    return Connection if module is sqlite3 else type("Connection", (module.Connection,), {"kept": None})


@functools.cache
def load_driver(name: DriverName) -> Driver:
    """The driver of this name; what it can do is found out once a process.

    Raises:
        MissingExtraError: ``pysqlite3`` is not installed.
        ConfigurationError: its SQLite is older than 3.40, or was built to be used by one thread only.
    """
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, extra="sqlite-vec") from error
    if tuple(module.sqlite_version_info[:2]) < OLDEST_SQLITE:
        least = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigurationError(
            f"{name} brings SQLite {module.sqlite_version}; twofold needs {least} or newer. "
            "Use a newer Python, or install 'twofold[sqlite-vec]' and pass driver='pysqlite3'"
        )
    connection = module.connect(":memory:")
    try:
        if ("THREADSAFE=0",) in connection.execute("PRAGMA compile_options").fetchall():
            raise ConfigurationError(f"the SQLite of {name} was built without thread safety (THREADSAFE=0)")
        return Driver(
            name=name,
            module=module,
            version=module.sqlite_version,
            has_fts5=_has_fts5(connection, module),
            can_load_extensions=_can_load_extensions(connection, module),
        )
    finally:
        connection.close()


def _has_fts5(connection: Any, module: ModuleType) -> bool:
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (text)")
    except module.Error:
        return False
    return True


def _can_load_extensions(connection: Any, module: ModuleType) -> bool:
    try:
        connection.enable_load_extension(True)  # noqa: FBT003 - the DB-API's own shape
        connection.enable_load_extension(False)  # noqa: FBT003
    except (AttributeError, module.Error):
        return False
    return True


def load_extension(connection: Connection, path: str) -> None:
    """Load one extension; SQL cannot load any, neither before nor after."""
    connection.enable_load_extension(True)  # noqa: FBT003 - the DB-API's own shape
    try:
        connection.load_extension(path)
    finally:
        connection.enable_load_extension(False)  # noqa: FBT003
