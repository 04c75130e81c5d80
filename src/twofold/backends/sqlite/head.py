"""Where a session stands: what it needs to know of the file, read once at its beginning."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import DAMAGED_ADVICE
from twofold.errors import CorruptStoreError

__all__ = ["Head", "head_of_reader", "read_head"]

_SQL = """
    SELECT generation,
        (SELECT value FROM meta WHERE name = 'fingerprint'),
        (SELECT value FROM meta WHERE name = 'dimension'),
        (SELECT value FROM meta WHERE name = 'analyzer'),
        (SELECT value FROM meta WHERE name = 'tombstones_pruned'),
        (SELECT value FROM meta WHERE name = 'strengthened'),
        (SELECT schema_version FROM pragma_schema_version)
    FROM state
"""


@dataclass(slots=True)
class Head:
    """The state of the file in one session. A writer keeps it up to date."""

    generation: int
    """The number of the last write that the session sees, its own included."""
    fingerprint: str | None
    """The embedder that vectors are of."""
    dimension: int | None
    """Their length."""
    analyzer: str
    """The version of the analyser that the keyword index was made with; empty: it is not to be used."""
    pruned: int
    """Deletes of this generation and before may have left no tombstone."""
    strengthened: int | None = 0
    """How many transactions touched records so that their strength grew, which no generation counts; None in one that
    has done so itself, and may yet be rolled back."""
    schema: int = 0
    """How often SQLite was told that tables changed, which it is, too, where a backup is copied into the open file: the
    writes since that backup are gone then, and others will have their numbers."""
    changed: bool = False
    """Whether the session has written something of its own, so that nothing of it may be kept for others."""


def read_head(connection: Connection) -> Head:
    """The head of the session that ``connection`` is in.

    Raises:
        CorruptStoreError: it is not there, or not readable.
    """
    try:
        generation, fingerprint, dimension, analyzer, pruned, strengthened, schema = connection.execute(_SQL).fetchone()
        return Head(
            generation=int(generation),
            fingerprint=fingerprint,
            dimension=None if dimension is None else int(dimension),
            analyzer=analyzer or "",
            pruned=int(pruned or 0),
            strengthened=int(strengthened or 0),
            schema=int(schema),
        )
    except (TypeError, ValueError) as error:
        raise CorruptStoreError(
            f"what the file says of itself cannot be read, so it is damaged: {DAMAGED_ADVICE}"
        ) from error


def head_of_reader(connection: Connection) -> Head:
    """The same for a session of a connection that never writes: read again only if others have written since.

    SQLite's ``data_version`` tells that, of all that is written by other connections: a touch, too, gives another one.

    Raises:
        CorruptStoreError: as for :func:`read_head`.
    """
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    if connection.kept is None or connection.kept[0] != version:
        connection.kept = version, read_head(connection)
    head: Head = connection.kept[1]
    return head
