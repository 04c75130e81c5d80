"""A copy of the whole file, made while it is in use: SQLite's own online backup, of one snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from twofold.backends.sqlite.connections import MEMORY, Pool
from twofold.backends.sqlite.driver import Driver
from twofold.backends.sqlite.faults import translating
from twofold.errors import ConfigurationError
from twofold.files import free_place, placed

__all__ = ["copy_to"]

_PAGES: Final = 1024
"""Pages copied at a time: 4 MiB."""
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What lies beside a SQLite file that is open, or that nobody closed."""


def copy_to(
    target: str | os.PathLike[str],
    source: str,
    driver: Driver,
    pool: Pool,
    *,
    overwrite: bool,
    progress: Callable[[int, int], None] | None,
) -> str:
    """Copy the file as it is at this moment; see :meth:`twofold.backends.protocol.Backend.backup`.

    The snapshot that the copy is of stays open for the whole of it, so writers, of other processes too, neither wait
    nor make it start over.

    Args:
        target: the copy's name, or a folder to put it in under the file's own.
        source: the file, or ``":memory:"``.
        driver: the library that it is open with.
        pool: its connections.
        overwrite: whether a file that is there already is replaced.
        progress: called with the pages copied and the pages in all.
    """
    name = os.fspath(target)
    if source != MEMORY and isinstance(name, str) and name and "\0" not in name and Path(name).is_dir():
        name = str(Path(name) / Path(source).name)
    if name == MEMORY:
        raise ConfigurationError("a backup goes to a file: name one")
    place = free_place(name, overwrite=overwrite)
    _refuse_use(place, source)
    with translating(f"backing up to {place}"), placed(place, overwrite=overwrite, like=_like(source)) as temporary:
        with pool.reader() as connection:
            copy = driver.connect(f"{temporary.as_uri()}?mode=rw")
            try:
                connection.backup(copy, pages=_PAGES, progress=_told(progress))
            finally:
                copy.close()
        _refuse_use(place, source)  # again: it may have been opened meanwhile
        for suffix in _BESIDE:
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)
    return str(place)


def _told(progress: Callable[[int, int], None] | None) -> Callable[[int, int, int], None] | None:
    if progress is None:
        return None
    return lambda _, remaining, total: progress(total - remaining, total)


def _like(source: str) -> str | None:
    return None if source == MEMORY else source


def _refuse_use(place: Path, source: str) -> None:
    """A file that is open, or whose last writes are still in a log beside it, must not be replaced: the log would be
    taken for the new file's.
    """
    if source != MEMORY and place.exists() and place.samefile(source):
        raise ConfigurationError(f"{place} is the store itself: name another file")
    beside = [f"{place}{suffix}" for suffix in _BESIDE if Path(f"{place}{suffix}").exists()]
    if beside:
        raise ConfigurationError(
            f"{beside[0]} lies there: {place.name} is in use, or was not closed. Close it (or open and close it once), "
            "or name another file"
        )
