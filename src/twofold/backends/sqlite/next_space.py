"""The vectors of the embedder that a file is moving to, beside those that answer until all are there.

They lie in ``vectors`` like all others, in spaces of their own. What belongs to them is found by what is missing: a
record that is added or changed meanwhile lacks them, whoever wrote it, so nobody has to know of the move. Which
embedder it is stands in ``meta`` under ``next_space``; no search looks at these vectors, and no index follows them, so
to write them is no change of the file that readers would have to follow.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from twofold.backends.protocol import Space, VectorWrite
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.migrations import write_meta
from twofold.backends.sqlite.rows import row_limit
from twofold.backends.sqlite.vector_indexes import spaces_of
from twofold.backends.sqlite.vectors import blob_of
from twofold.errors import ConfigurationError, InvalidVectorError
from twofold.vectors import as_matrix

__all__ = [
    "begin",
    "count_lacking",
    "count_only_given",
    "drop",
    "drop_former",
    "keys_lacking",
    "next_space",
    "put",
    "swap",
]

_NAME: Final = "next_space"
_NOT_UNDER_WAY: Final = "the file is not on its way to another embedder"


def next_space(connection: Connection) -> Space | None:
    """Whose vectors are being made; None: nobody's."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (_NAME,)).fetchone()
    if row is None:
        return None
    fingerprint, dimension = json.loads(row[0])
    return Space(fingerprint, dimension)


def begin(connection: Connection, head: Head, fields: Sequence[str], space: Space) -> None:
    """Make room for the vectors of another embedder.

    Raises:
        ConfigurationError: another one's are being made, they are the file's already, or the dimension is below 1.
    """
    under_way = next_space(connection)
    if under_way == space:
        return
    if under_way is not None:
        raise ConfigurationError(
            f"the file is on its way to {under_way.fingerprint!r} ({under_way.dimension} numbers), not to "
            f"{space.fingerprint!r} ({space.dimension})"
        )
    if head.fingerprint == space.fingerprint:
        raise ConfigurationError(
            f"the file's vectors are of {space.fingerprint!r} already ({head.dimension} numbers); an embedder that "
            "makes others needs another name"
        )
    if space.dimension < 1:
        raise ConfigurationError(f"a vector has at least 1 number, not {space.dimension}")
    drop_former(connection, head, None, only=space.fingerprint)  # of a former stay with it
    connection.execute("DELETE FROM spaces WHERE fingerprint = ?", (space.fingerprint,))
    connection.executemany(
        "INSERT INTO spaces (fingerprint, field, dimension) VALUES (?, ?, ?)",
        [(space.fingerprint, field, space.dimension) for field in fields],
    )
    write_meta(connection, _NAME, json.dumps(space))


def put(connection: Connection, key: int, vectors: VectorWrite) -> bool:
    """Keep vectors of the next space, unless the record's text is another by now, or has some there.

    Raises:
        ConfigurationError: there is no next space.
        InvalidVectorError: a vector is zero, not finite or of the wrong length, or of an unknown field.
    """
    space = next_space(connection)
    if space is None:
        raise ConfigurationError(_NOT_UNDER_WAY)
    lacking = connection.execute(
        f"SELECT r.content_hash FROM records r WHERE r.key = ? AND {_lacks(connection, space.fingerprint)}", (key,)
    ).fetchone()
    if lacking != (vectors.content_hash,) or not vectors.by_field:
        return False
    spaces = spaces_of(connection, space.fingerprint)
    for field, given in vectors.by_field.items():
        if field not in spaces:
            raise InvalidVectorError(f"a vector is of the field {field!r}; there are {', '.join(spaces)}")
        matrix = as_matrix(given, space.dimension, f"the vector of field {field!r}")
        connection.executemany(
            "INSERT INTO vectors (space, key, part, content_hash, vector) VALUES (?, ?, ?, ?, ?)",
            [(spaces[field], key, part, vectors.content_hash, blob_of(vector)) for part, vector in enumerate(matrix)],
        )
    return True


def keys_lacking(connection: Connection, fingerprint: str, after: int, limit: int | None) -> list[int]:
    """Keys above ``after``, ascending, of records with text and no vector of this embedder."""
    rows = connection.execute(
        f"SELECT r.key FROM records r WHERE r.key > ? AND {_lacks(connection, fingerprint)} ORDER BY r.key LIMIT ?",
        (after, row_limit(limit)),
    )
    return [key for (key,) in rows]


def count_lacking(connection: Connection, fingerprint: str) -> int:
    """How many such records there are."""
    (count,) = connection.execute(f"SELECT count(*) FROM records r WHERE {_lacks(connection, fingerprint)}").fetchone()
    return int(count)


def count_only_given(connection: Connection, fingerprint: str | None) -> int:
    """How many records have more vectors of this embedder than pieces of text: some were given and have none."""
    (count,) = connection.execute(
        "SELECT count(*) FROM (SELECT v.key FROM vectors v JOIN records r ON r.key = v.key"
        " WHERE v.space IN (SELECT id FROM spaces WHERE fingerprint = ?)"
        " GROUP BY v.key HAVING count(*) > max(r.parts))",
        (fingerprint,),
    ).fetchone()
    return int(count)


def swap(connection: Connection, head: Head, refused: Mapping[int, str]) -> None:
    """Let the next space be the file's; what has no vector there is pending, with the reason if it was refused.

    The caller has counted the transaction as a change. Every index of before is void, also one that was kept of the
    same embedder from before an earlier move.

    Raises:
        ConfigurationError: there is no next space.
    """
    space = next_space(connection)
    if space is None:
        raise ConfigurationError(_NOT_UNDER_WAY)
    for name, value in (
        ("fingerprint", space.fingerprint),
        ("dimension", str(space.dimension)),
        ("tombstones_pruned", str(head.generation)),
        (_NAME, None),
    ):
        write_meta(connection, name, value)
    connection.execute("DELETE FROM pending")
    connection.executemany(
        "INSERT INTO pending (key, reason, attempts) VALUES (?, ?, ?)",
        [(key, refused.get(key), int(key in refused)) for key in keys_lacking(connection, space.fingerprint, 0, None)],
    )
    head.fingerprint, head.dimension, head.pruned = space.fingerprint, space.dimension, head.generation


def drop(connection: Connection) -> None:
    """Give the next space up; its vectors are then a former embedder's."""
    write_meta(connection, _NAME, None)


def drop_former(connection: Connection, head: Head, limit: int | None, *, only: str | None = None) -> int:
    """Remove vectors that are neither the file's nor the next space's; how many were.

    Args:
        connection: in a transaction with the write lock held.
        head: of that transaction.
        limit: how many at most. Default: all.
        only: only this embedder's.
    """
    space = next_space(connection)
    kept = json.dumps([head.fingerprint, None if space is None else space.fingerprint])
    former = (
        "SELECT s.id FROM spaces s WHERE s.fingerprint NOT IN"
        " (SELECT value FROM json_each(?) WHERE value IS NOT NULL) AND (? IS NULL OR s.fingerprint = ?)"
    )
    bound = (kept, only, only)
    removed = connection.execute(
        f"DELETE FROM vectors WHERE id IN (SELECT v.id FROM vectors v WHERE v.space IN ({former}) LIMIT ?)",
        (*bound, row_limit(limit)),
    ).rowcount
    if limit is None or removed < limit:
        connection.execute(f"DELETE FROM spaces WHERE id IN ({former})", bound)
    return removed


def _lacks(connection: Connection, fingerprint: str) -> str:
    spaces = ", ".join(str(int(space)) for space in spaces_of(connection, fingerprint).values())
    if not spaces:
        return "r.parts > 0"
    return f"r.parts > 0 AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.key = r.key AND v.space IN ({spaces}))"
