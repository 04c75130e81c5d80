"""What ranking asks of records that the legs have found: their vectors, and what priors look at."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.ranking import Standing

__all__ = ["UNCOMMON", "standings", "vectors_of"]

_STANDINGS: Final = (
    "SELECT r.key, r.importance, r.strength, r.created_at, r.last_accessed, r.kind, r.project, {confidence}"
    " FROM json_each(?) j CROSS JOIN records r ON r.key = j.value"
)
_CONFIDENCE: Final = (
    "CASE WHEN json_type(r.metadata, '$.confidence') IN ('integer', 'real')"
    " THEN json_extract(r.metadata, '$.confidence') END"
)
_WITHOUT: Final = _STANDINGS.replace("{confidence}", "NULL")
_WITH: Final = _STANDINGS.replace("{confidence}", _CONFIDENCE)
UNCOMMON: Final = "r.importance <> 0.5 OR r.strength <> 1.0"
"""Whether what priors look at first is not what records have by default."""
_VECTORS: Final = (
    "SELECT v.key, v.vector FROM json_each(?) j CROSS JOIN vectors v ON v.key = j.value"
    " JOIN spaces s ON s.id = v.space WHERE s.fingerprint = ?"
    " AND typeof(v.vector) = 'blob' AND length(v.vector) = ? ORDER BY v.key, v.space, v.part"
)
_SECOND: Final = 1e6
"""In microseconds."""


def standings(
    connection: Connection, keys_json: str, *, confidence: bool, uncommon: bool = False
) -> dict[int, Standing]:
    """What priors look at, of the records of a JSON list of keys; metadata is read for ``confidence`` only."""
    sql = (_WITH if confidence else _WITHOUT) + (f" WHERE {UNCOMMON}" if uncommon else "")
    return {
        key: Standing(
            importance, strength, created_at / _SECOND, last_accessed / _SECOND, kind, project, confidence
        )
        for key, importance, strength, created_at, last_accessed, kind, project, confidence in connection.execute(
            sql, (keys_json,)
        )
    }  # fmt: skip


def vectors_of(
    connection: Connection, head: Head, keys_json: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The vectors of the records of a JSON list of keys, by key, and of which record each is; shape (n, dimension).

    Damaged ones are passed over here, as by the index, and reported by ``check``.
    """
    dimension = head.dimension or 0
    rows: list[tuple[int, Any]] = connection.execute(_VECTORS, (keys_json, head.fingerprint, 4 * dimension)).fetchall()
    keys = np.fromiter((key for key, _ in rows), dtype=np.int64, count=len(rows))
    joined = np.frombuffer(b"".join([blob for _, blob in rows]), dtype="<f4").astype(np.float32)
    vectors = joined.reshape(len(rows), dimension)
    sound = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return keys[sound], vectors[sound]
