"""Vectors as rows: what a writer stores of them, once they were looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import VectorWrite
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.known import Known
from twofold.backends.sqlite.vector_indexes import spaces_of
from twofold.backends.sqlite.vectors import blob_of
from twofold.errors import ConfigurationError, InvalidVectorError

__all__ = ["blobs_of", "drop_vectors", "put_blobs"]

Matrix: TypeAlias = npt.NDArray[np.float32]
Blobs: TypeAlias = Sequence[tuple[int, int, bytes]]
"""A record's vectors, each with its space and its part."""

_ADD: Final = "INSERT INTO vectors (space, key, part, content_hash, vector) VALUES (?, ?, ?, ?, ?)"


def blobs_of(
    known: Known,
    vectors: VectorWrite | None,
    content_hash: str,
    examine: Callable[[Matrix, int | None, str], Matrix],
) -> Blobs:
    """Vectors as they are stored; none if there are none or they were made of another text than ``content_hash``'s.

    Raises:
        ConfigurationError: no embedder was adopted.
        InvalidVectorError: of an unknown field, or what ``examine`` raises.
    """
    if vectors is None or vectors.content_hash != content_hash:
        return ()
    head = known.head
    if head.fingerprint is None:
        raise ConfigurationError("vectors cannot be stored before an embedder is adopted")
    if known.spaces is None:
        known.spaces = spaces_of(known.connection, head.fingerprint)
    blobs: list[tuple[int, int, bytes]] = []
    for field, given in vectors.by_field.items():
        space = known.spaces.get(field)
        if space is None:
            raise InvalidVectorError(f"a vector is of the field {field!r}; there are {', '.join(known.spaces)}")
        matrix = examine(given, head.dimension, field)
        blobs += [(space, part, blob_of(vector)) for part, vector in enumerate(matrix)]
    return blobs


def put_blobs(connection: Connection, records: Iterable[tuple[int, str, Blobs]]) -> None:
    """Store vectors: by record its key, the hash of its text, and what :func:`blobs_of` gives."""
    connection.executemany(
        _ADD,
        [(space, key, part, content_hash, blob) for key, content_hash, blobs in records for space, part, blob in blobs],
    )


def drop_vectors(connection: Connection, key: int) -> None:
    """Forget what was made of a record's former text."""
    connection.execute("DELETE FROM vectors WHERE key = ?", (key,))
    connection.execute("DELETE FROM pending WHERE key = ?", (key,))
