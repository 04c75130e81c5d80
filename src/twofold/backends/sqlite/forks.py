"""What becomes of open files when the process forks.

SQLite keeps in memory which locks its process holds. A forked child inherits that memory but not the locks, so a
connection that it opens to the same file takes none: the parent would not know of it, and would delete the write-ahead
log under it. Therefore idle connections are closed before a fork (they come back at the next use), and a file that was
in the middle of a session cannot be opened by the child. A child never touches the parent's connections, not even to
close them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from typing import Final, Protocol
from weakref import WeakSet

from twofold.backends.sqlite import registry
from twofold.backends.sqlite.driver import Connection

__all__ = ["Forkable", "watch"]


class Forkable(Protocol):
    """What has connections."""

    def before_fork(self) -> None:
        """Hold still until one of the other two is called, with as few connections open as can be."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> Iterable[Connection]:
        """Let go of what was closed; gives the connections that were not."""
        ...


_watched: Final[WeakSet[Forkable]] = WeakSet()
_ahead: Final[WeakSet[Forkable]] = WeakSet()
_held: Final[list[Forkable]] = []
_installing: Final = threading.Lock()
_installed: Final = threading.Event()


def watch(forkable: Forkable, *, ahead: bool = False) -> None:
    """Tell ``forkable`` of every fork, as long as it lives.

    Args:
        forkable: has connections, or uses those of others.
        ahead: whether it must hold still before the others can, as it uses theirs.
    """
    with _installing:
        (_ahead if ahead else _watched).add(forkable)
        if not _installed.is_set() and hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
        _installed.set()


def _before() -> None:
    _installing.acquire()
    # Always in the same order, so that two forks cannot block each other.
    _held.extend([*sorted(_ahead, key=id), *sorted(_watched, key=id)])
    for forkable in _held:
        forkable.before_fork()
    registry.lock.acquire()


def _in_parent() -> None:
    registry.lock.release()
    for forkable in _held:
        forkable.after_fork_in_parent()
    _held.clear()
    _installing.release()


def _in_child() -> None:
    registry.lock.release()
    for forkable in _held:
        for connection in forkable.after_fork_in_child():
            # Kept for good: were it collected, SQLite would close it, and write.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _held.clear()
    registry.forget_after_fork()
    _installing.release()
