"""Which SQLite library this process has which file open with.

Two libraries on one file in one process lose each other's locks, and with them acknowledged writes (see
:mod:`twofold.backends.sqlite.driver`). So the first handle of a file decides, until the last one is closed. A file is
known by its device and inode: symbolic and hard links to it are the same file.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakSet

from twofold.backends.sqlite.driver import DEFAULT_DRIVER, DriverName
from twofold.errors import DriverConflictError, ForkedStoreError, StoreError

__all__ = ["Claim", "claim", "forget_after_fork", "lock"]

lock: Final = threading.Lock()
"""Guards this module; held while the process forks, so that the child does not inherit it taken."""

# Weak: the claim of a store that was dropped without being closed must not outlive its connections, because the
# number of a deleted file's inode is soon given to another.
_open: Final[dict[tuple[int, int], WeakSet[Claim]]] = {}
_inherited: Final[set[tuple[int, int]]] = set()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Claim:
    """One handle's right to open a file with a driver; it lasts as long as this object, or until released."""

    path: str
    """The file's real path."""
    driver: DriverName
    """The driver to open it with."""
    first: bool
    """Whether this process had no handle on the file before."""
    identity: tuple[int, int]
    """Device and inode of the file."""

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that was claimed."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - as below
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def release(self) -> None:
        """The handle is closed; calling it again does nothing."""
        with lock:
            claims = _open.get(self.identity)
            if claims is not None:
                claims.discard(self)
                if not claims:
                    del _open[self.identity]


def claim(
    path: str,
    wanted: Literal["auto", "sqlite3", "pysqlite3"],
    *,
    create: bool,
    preferred: DriverName | None = None,
) -> Claim:
    """Say that a handle on ``path`` is about to be opened.

    Args:
        path: the real path, with no links in it.
        wanted: ``auto`` takes the driver that the file is open with, or else ``preferred``.
        create: whether to make an empty file if there is none. It is made here, under the lock: by closing a
            descriptor of a file, a process drops the locks of all its other handles on it.
        preferred: what ``auto`` takes for a file that is not open. Default: Python's own.

    Raises:
        DriverConflictError: the file is open with another driver than the one asked for.
        ForkedStoreError: the parent process was using the file while it forked.
        StoreError: the file is open under another name; its write-ahead log lies beside that.
        FileNotFoundError: there is no file, and none is to be made.
        OSError: the file cannot be made.
    """
    with lock:
        identity = _identity(path, create=create)
        if identity in _inherited:
            raise ForkedStoreError(
                f"{path} was in use while the parent process forked, so SQLite's locks on it are wrong in this one: "
                "start processes with 'spawn' or 'forkserver', or fork while no call is running"
            )
        claims = _open.get(identity, ())
        for other in claims:
            if wanted not in ("auto", other.driver):
                raise DriverConflictError(
                    f"{path} is open in this process with {other.driver}; two SQLite libraries on one file lose each "
                    f"other's locks. Close it first, or open it with driver='auto' or driver={other.driver!r}"
                )
            if path != other.path:
                raise StoreError(f"{path} is open in this process as {other.path}: use that name, its log lies there")
        driver = next((other.driver for other in claims), (preferred or DEFAULT_DRIVER) if wanted == "auto" else wanted)
        made = Claim(path=path, driver=driver, first=not claims, identity=identity)
        _open.setdefault(identity, WeakSet()).add(made)
        return made


def forget_after_fork() -> None:
    """In a child: what the parent had open when it forked is not the child's, and can never be opened by it."""
    with lock:
        _inherited.update(identity for identity, claims in _open.items() if claims)
        _open.clear()


def _identity(path: str, *, create: bool) -> tuple[int, int]:
    if create:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    status = os.stat(path)  # noqa: PTH116 - the path is a str throughout, as SQLite wants it
    return status.st_dev, status.st_ino
