"""A record manager's entries: what was seen, of which group, and when."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.backends.protocol import Mark
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import row_limit, store_owner
from twofold.types import Owner
from twofold.types.json import dump_json

__all__ = ["delete_marks", "forget_marks", "put_marks", "select_marks"]


def select_marks(
    connection: Connection,
    owner: Owner,
    namespace: str,
    *,
    keys: Sequence[str] | None,
    groups: Sequence[str | None] | None,
    before: float | None,
    after: float | None,
    limit: int | None,
) -> list[Mark]:
    """See :meth:`twofold.backends.protocol.Reader.marks`."""
    where = ["scope = ? AND owner = ? AND namespace = ?"]
    params: list[Any] = [*store_owner(owner), namespace]
    if keys is not None:
        where.append("key IN (SELECT value FROM json_each(?))")
        params.append(dump_json(list(keys)))
    if groups is not None:
        # NULL is in no list.
        where.append("(grp IN (SELECT value FROM json_each(?)) OR (grp IS NULL AND ?))")
        params += (dump_json([group for group in groups if group is not None]), None in groups)
    if before is not None:
        where.append("time < ?")
        params.append(before)
    if after is not None:
        where.append("time > ?")
        params.append(after)
    rows = connection.execute(
        f"SELECT key, grp, time FROM marks WHERE {' AND '.join(where)} ORDER BY time, key LIMIT ?",
        (*params, row_limit(limit)),
    )
    return [Mark(*row) for row in rows]


def put_marks(connection: Connection, owner: Owner, namespace: str, marks: Sequence[Mark]) -> None:
    """Write marks; the same key again replaces it."""
    whose = (*store_owner(owner), namespace)
    connection.executemany(
        "INSERT INTO marks (scope, owner, namespace, key, grp, time) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET grp = excluded.grp, time = excluded.time",
        ((*whose, mark.key, mark.group, mark.time) for mark in marks),
    )


def delete_marks(connection: Connection, owner: Owner, namespace: str, keys: Sequence[str]) -> None:
    """Remove marks; unknown keys are passed over."""
    connection.execute(
        "DELETE FROM marks WHERE scope = ? AND owner = ? AND namespace = ? AND key IN (SELECT value FROM json_each(?))",
        (*store_owner(owner), namespace, dump_json(list(keys))),
    )


def forget_marks(connection: Connection, owner: Owner, keys: Sequence[str] | None) -> int:
    """Remove an owner's marks whatever their namespace, those of ``keys`` or all; how many there were."""
    where, params = "scope = ? AND owner = ?", store_owner(owner)
    if keys is None:
        return int(connection.execute(f"DELETE FROM marks WHERE {where}", params).rowcount)
    return int(
        connection.execute(
            f"DELETE FROM marks WHERE {where} AND key IN (SELECT value FROM json_each(?))",
            (*params, dump_json(list(keys))),
        ).rowcount
    )
