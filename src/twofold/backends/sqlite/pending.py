"""Records that wait for a vector: who is making it, and which text an embedder refused."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import store_time
from twofold.backends.sqlite.visible import compile_visibility

__all__ = ["claim", "claimed", "count", "park", "release", "unpark"]


def claim(connection: Connection, visible: Visibility, limit: int, now: datetime, until: datetime) -> list[int]:
    """Keys of visible records that nobody is embedding and no embedder refused, now claimed until ``until``."""
    condition = compile_visibility(visible)
    keys = [
        key
        for (key,) in connection.execute(
            "SELECT p.key FROM pending p CROSS JOIN records r ON r.key = p.key WHERE p.reason IS NULL"
            f" AND (p.claimed_until IS NULL OR p.claimed_until <= ?) AND {condition.sql} ORDER BY p.key LIMIT ?",
            (store_time(now), *condition.params, limit),
        )
    ]
    connection.executemany(
        "UPDATE pending SET claimed_until = ? WHERE key = ?", [(store_time(until), key) for key in keys]
    )
    return keys


def count(connection: Connection, fingerprint: str | None, visible: Visibility) -> int:
    """How many visible records have text but no vector of ``fingerprint``; see :meth:`Reader.pending`."""
    condition = compile_visibility(visible)
    without = "pending p CROSS JOIN records r ON r.key = p.key WHERE"
    if fingerprint is None:
        without = "records r WHERE r.parts > 0 AND"
    sql = f"SELECT count(*) FROM {without} {condition.sql}"
    return int(connection.execute(sql, condition.params).fetchone()[0])


def claimed(connection: Connection, visible: Visibility, now: datetime) -> int:
    """How many visible records are claimed beyond ``now``."""
    condition = compile_visibility(visible)
    (count,) = connection.execute(
        "SELECT count(*) FROM pending p CROSS JOIN records r ON r.key = p.key WHERE p.reason IS NULL"
        f" AND p.claimed_until > ? AND {condition.sql}",
        (store_time(now), *condition.params),
    ).fetchone()
    return int(count)


def release(connection: Connection, keys: Sequence[int]) -> None:
    """Give claims back; of records that wait no longer there are none."""
    connection.executemany("UPDATE pending SET claimed_until = NULL WHERE key = ?", [(key,) for key in keys])


def park(connection: Connection, key: int, reason: str) -> None:
    """Leave a record out from now on, until its text changes or it is unparked."""
    connection.execute("UPDATE pending SET reason = ?, attempts = attempts + 1 WHERE key = ?", (reason, key))


def unpark(connection: Connection, visible: Visibility) -> int:
    """Take visible parked records in again; how many there were."""
    condition = compile_visibility(visible)
    return connection.execute(
        "UPDATE pending SET reason = NULL WHERE reason IS NOT NULL"
        f" AND key IN (SELECT r.key FROM records r WHERE {condition.sql})",
        condition.params,
    ).rowcount
