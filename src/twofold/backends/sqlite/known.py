"""What a writer knows of the file: read once, and good for the next one too unless somebody else has written.

SQLite counts the commits of other connections for each one (``PRAGMA data_version``), of this process or another, and
the pool counts the turns of its own writer. A transaction that follows directly on one of the same connection, with
neither in between, finds the file as that one left it, and need not read again what it knew.
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.backends.sqlite import pragmas
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head, read_head

__all__ = ["Known", "LastWrite"]


@dataclass(slots=True)
class Known:
    """What holds while a transaction lasts; its writer keeps it up to date."""

    connection: Connection
    """Whose transaction it is."""
    turn: int
    """The how many-eth of the pool's writer."""
    version: int
    """What SQLite had counted of others' commits."""
    head: Head
    """Where the file stands."""
    spaces: dict[str, int] | None = None
    """The spaces of the head's fingerprint, by field; None: not looked up."""
    last_key: int | None = None
    """The highest key there ever was; None: not looked up."""
    reserved: int = 0
    """Up to which key SQLite has been told of."""
    tokens_checked: bool = False
    """Whether the keyword index was made sure of."""
    finds_equal_text: bool = False
    """Whether the index of equal text was."""


class LastWrite:
    """What the last transaction of a backend's writer knew when it was committed."""

    def __init__(self) -> None:
        self._kept: Known | None = None

    def known(self, connection: Connection, turn: int) -> Known:
        """What is known at the beginning of a transaction, with the write lock held.

        Args:
            connection: the writer's.
            turn: the how many-eth it is.

        Raises:
            CorruptStoreError: what the file says of itself is not there, or not readable.
        """
        kept, self._kept = self._kept, None
        version = pragmas.data_version(connection)
        if kept is not None and (kept.connection, kept.turn + 1, kept.version) == (connection, turn, version):
            kept.turn = turn
            return kept
        return Known(connection, turn, version, read_head(connection))

    def keep(self, known: Known) -> None:
        """Remember what a transaction knew that has been committed."""
        if known.head.strengthened is not None:  # else it did not count along
            known.head.changed = False
            self._kept = known
