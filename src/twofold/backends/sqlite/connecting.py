"""A new connection, with all that is set on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from twofold.backends.sqlite import pragmas
from twofold.backends.sqlite.driver import Connection, Driver, load_extension
from twofold.config import StoreSettings

__all__ = ["SqlFunction", "connect"]

SqlFunction: TypeAlias = tuple[str, int, Callable[..., str | int | float | bytes | None]]
"""A function for SQL: its name, how many arguments it takes, and what computes it from them alone."""


def connect(
    driver: Driver,
    database: str,
    settings: StoreSettings,
    functions: Sequence[SqlFunction] = (),
    extensions: Sequence[str] = (),
) -> Connection:
    """A new connection with all pragmas, functions and extensions (their paths) set."""
    connection = driver.connect(database)
    try:
        pragmas.busy_timeout(connection, settings.busy_timeout)
        pragmas.cache_size(connection, settings.cache_mib)
        pragmas.synchronous(connection, settings.synchronous)
        pragmas.journal_size_limit(connection)
        pragmas.autocheckpoint(connection, settings.synchronous)
        pragmas.trusted_schema(connection)
        for name, arguments, function in functions:
            connection.create_function(name, arguments, function, deterministic=True)
        for extension in extensions:
            load_extension(connection, extension)
    except BaseException:
        connection.close()
        raise
    return connection
