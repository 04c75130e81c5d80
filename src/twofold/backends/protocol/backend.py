"""What hands out sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from twofold.backends.protocol.reader import Reader
from twofold.backends.protocol.values import (
    Capability,
    CheckReport,
    StoreInfo,
)
from twofold.backends.protocol.writer import Writer
from twofold.text import Analyzer

__all__ = ["Backend"]


class Backend(Protocol):
    """A place that records are kept in."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a record's pieces of text, fixed when the file was made."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """What turns text into the tokens of this file's keyword index; queries go through the same."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """A snapshot. A session opened under a :class:`twofold.cancellation.Cancellation` is interrupted by it."""
        ...

    def write(self) -> AbstractContextManager[Writer]:
        """A transaction, begun with the write lock held.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: another process held the lock too long.
        """
        ...

    def info(self) -> StoreInfo:
        """What it says of itself."""
        ...

    def check(self) -> CheckReport:
        """Compare everything derived with the rows it is derived from. Changes nothing."""
        ...

    def reindex(self) -> None:
        """Make the keyword index anew from the rows."""
        ...

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Copy all there is, as it is at this moment, into a file that can be opened like this one; where it is then.
        Writers do not wait for it, nor does it start over for them. The copy gets its name when it is whole.

        Args:
            target: the file, or a folder to put it in under the name that this one has.
            overwrite: whether a file that is there already is replaced.
            progress: called with what is copied and how much there is, in units of the backend's own.

        Raises:
            ConfigurationError: the target cannot be used, or is there already, or in use.
        """
        ...

    def scrub(self) -> None:
        """Leave no byte of what was deleted before, in the file, its log, or what is saved beside it.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: a reader still needs an old state, or another process is writing; call it again later.
            StorageFullError: there is no room for a second copy, which this may need for a moment.
        """
        ...

    def close(self) -> None:
        """Wait for what is in flight, then close. Calling it again does nothing."""
        ...
