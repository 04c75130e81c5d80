"""Counts of what a caller may see: each number is of visible records, computed by the condition that compiles that."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from dataclasses import replace

from twofold.backends.protocol import Tally, Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import load_owner, load_time, store_time
from twofold.backends.sqlite.visible import compile_visibility

__all__ = ["tally"]


def tally(connection: Connection, fingerprint: str | None, visible: Visibility) -> Tally:
    """Count the visible records and what belongs to them; see :meth:`Reader.tally`.

    Args:
        connection: of the session.
        fingerprint: whose vectors are counted.
        visible: what may be seen.
    """
    living = compile_visibility(visible)
    sql = (
        "SELECT r.kind, r.scope, r.owner, count(*), min(r.created_at), max(r.created_at),"
        f" sum(length(CAST(r.fields AS BLOB))) FROM records r WHERE {living.sql} GROUP BY r.kind, r.scope, r.owner"
    )
    groups = [
        (kind, load_owner(scope, owner), *rest) for kind, scope, owner, *rest in connection.execute(sql, living.params)
    ]
    (vectors, vector_bytes) = connection.execute(
        "SELECT count(*), total(length(v.vector)) FROM records r CROSS JOIN vectors v ON v.key = r.key"
        f" WHERE {living.sql} AND v.space IN (SELECT id FROM spaces WHERE fingerprint = ?)",
        (*living.params, fingerprint),
    ).fetchone()
    seen = f"SELECT r.key FROM records r WHERE {living.sql}"
    (links,) = connection.execute(
        f"SELECT count(*) FROM links WHERE source IN ({seen}) AND target IN ({seen})", living.params * 2
    ).fetchone()
    return Tally(
        groups=tuple((kind, owner, count) for kind, owner, count, *_ in groups),
        oldest=min((load_time(oldest) for *_, oldest, _, _ in groups), default=None),
        newest=max((load_time(newest) for *_, newest, _ in groups), default=None),
        text_bytes=sum(size for *_, size in groups),
        vectors=int(vectors),
        vector_bytes=int(vector_bytes),
        links=int(links),
        **_hidden(connection, visible),
    )


def _hidden(connection: Connection, visible: Visibility) -> dict[str, int]:
    """How many records only their lifecycle hides, by what hides them."""
    permitted = compile_visibility(replace(visible, include_archived=True))
    at = store_time(visible.at)
    archived, superseded, expired, out_of_date, not_yet_valid = connection.execute(
        "SELECT total(r.archived_at IS NOT NULL), total(r.superseded_by IS NOT NULL), total(r.expires_at <= ?),"
        " total(r.superseded_by IS NULL AND r.valid_to <= ?), total(r.valid_from > ?)"
        f" FROM records r WHERE {permitted.sql}",
        (at, at, at, *permitted.params),
    ).fetchone()
    return {
        "archived": int(archived),
        "superseded": int(superseded),
        "expired": int(expired),
        "out_of_date": int(out_of_date),
        "not_yet_valid": int(not_yet_valid),
    }
