"""Links: two indexes, one from either end, in the very order that links are followed in.

Equal weights are ordered by :class:`Identity` of the other end. That never changes while a record lives, so it is kept
beside the link (``source_rank``, ``target_rank``), and the strongest links of a hub are the first that its index gives:
nothing is sorted, and the walk ends with the last one wanted. What the caller may not see is passed over on the way,
before anything is counted.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from twofold.backends.protocol import Identity, LinkWrite, StoredLink, Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import load_time, row_limit, store_time
from twofold.backends.sqlite.visible import Condition, compile_visibility
from twofold.errors import ConfigurationError, RecordNotFoundError
from twofold.ranking import Edge
from twofold.types import Direction
from twofold.types.json import dump_json

__all__ = ["ORPHAN_LINKS", "delete_links", "drop_links_of", "put_links", "select_links", "select_neighbors"]

ORPHAN_LINKS: Final = (
    "SELECT count(*) FROM links l WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.key = l.source)"
    " OR NOT EXISTS (SELECT 1 FROM records r WHERE r.key = l.target)"
)
"""Counts the links that lead from or to nowhere."""

_HIGHEST: Final = 2**63 - 1


class _Side(NamedTuple):
    """The links of a record as seen from it."""

    near: str
    """Its own column."""
    far: str
    """The column of the other end."""

    @property
    def is_forward(self) -> bool:
        return self.near == "source"


_OUT, _IN = _Side("source", "target"), _Side("target", "source")
_SIDES: Final[Mapping[Direction, tuple[_Side, ...]]] = {
    Direction.OUT: (_OUT,),
    Direction.IN: (_IN,),
    Direction.BOTH: (_OUT, _IN),
}


def rank_of(identity: Identity) -> bytes:
    """``identity.order`` as bytes that compare as it does; no part of it holds NUL."""
    newer, id_, namespace, scope, owner = (_HIGHEST - store_time(identity.created_at), *identity.order[1:])
    return newer.to_bytes(8, "big") + "\0".join((id_, namespace, scope, owner)).encode()


def put_links(
    connection: Connection,
    links: Sequence[LinkWrite],
    at: datetime,
    identities: Callable[[Sequence[int]], Mapping[int, Identity]],
    begin_change: Callable[[], None],
) -> int:
    """See :meth:`twofold.backends.protocol.Writer.put_links`."""
    ends = identities(list({key for link in links for key in (link.source, link.target)}))
    ranks = {key: rank_of(identity) for key, identity in ends.items()}
    new = 0
    for link in links:
        if link.source not in ranks or link.target not in ranks:
            raise RecordNotFoundError("a link leads from a record to another; there is no such record")
        if link.source == link.target:
            raise ConfigurationError("a record is not linked to itself")
        known = connection.execute(
            "SELECT weight FROM links WHERE source = ? AND target = ? AND kind = ?",
            (link.source, link.target, link.kind),
        ).fetchone()
        if known == (link.weight,):
            continue
        begin_change()
        if known is None:
            new += 1
        connection.execute(
            "INSERT INTO links (source, target, kind, weight, created_at, source_rank, target_rank)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (source, target, kind) DO UPDATE SET weight = excluded.weight",
            (*link, store_time(at), ranks[link.source], ranks[link.target]),
        )
    return new


def delete_links(
    connection: Connection,
    source: int | None,
    target: int | None,
    kinds: Sequence[str] | None,
    begin_change: Callable[[], None],
) -> int:
    """See :meth:`twofold.backends.protocol.Writer.delete_links`."""
    given = [(name, key) for name, key in (("source", source), ("target", target)) if key is not None]
    if not given:
        raise ConfigurationError("say which record's links are to be removed: source=, target= or both")
    where = Condition(" AND ".join(f"l.{name} = ?" for name, _ in given), tuple(key for _, key in given))
    where &= _of_kinds(kinds)
    if connection.execute(f"SELECT 1 FROM links l WHERE {where.sql} LIMIT 1", where.params).fetchone() is None:
        return 0
    begin_change()
    return int(connection.execute(f"DELETE FROM links AS l WHERE {where.sql}", where.params).rowcount)


def drop_links_of(connection: Connection, keys_json: str) -> None:
    """Forget all links that lead from or to the records of a JSON list of keys."""
    for side in _SIDES[Direction.BOTH]:
        connection.execute(
            f"DELETE FROM links WHERE {side.near} IN (SELECT value FROM json_each(?))",
            (keys_json,),
        )


def select_neighbors(
    connection: Connection,
    keys: Iterable[int],
    visible: Visibility,
    *,
    direction: Direction,
    kinds: Sequence[str] | None,
    limit: int,
) -> dict[int, list[Edge]]:
    """See :meth:`twofold.backends.protocol.Reader.neighbors`.

    One prepared statement, run once a record and direction: SQLite has no LATERAL, and any one statement for all of
    them would look at every link of a hub.
    """
    found: dict[int, list[Edge]] = {}
    statements = [
        (side, _walk(side, f"l.{side.far}, l.kind, l.weight, l.{side.far}_rank", visible, kinds))
        for side in _SIDES[direction]
    ]
    for key in dict.fromkeys(keys):
        rows: list[tuple[tuple[Any, ...], Edge]] = []
        for side, walk in statements:
            for far, kind, weight, rank in connection.execute(walk.sql, (key, *walk.params, row_limit(limit))):
                edge = Edge(far, kind, weight, side.is_forward)
                rows.append(((-weight, rank, kind, not side.is_forward), edge))
        if rows:
            found[key] = [edge for _, edge in sorted(rows)[:limit]]
    return found


def select_links(
    connection: Connection,
    key: int,
    visible: Visibility,
    *,
    direction: Direction,
    kinds: Sequence[str] | None,
    limit: int | None,
    offset: int,
) -> list[StoredLink]:
    """See :meth:`twofold.backends.protocol.Reader.links`."""
    stop = None if limit is None else limit + offset
    rows: list[tuple[tuple[Any, ...], StoredLink]] = []
    for side in _SIDES[direction]:
        columns = f"l.source, l.target, l.kind, l.weight, l.created_at, l.{side.far}_rank"
        walk = _walk(side, columns, visible, kinds)
        found = connection.execute(walk.sql, (key, *walk.params, row_limit(stop)))
        for source, target, kind, weight, created_at, rank in found:
            stored = StoredLink(source, target, kind, weight, load_time(created_at))
            rows.append(((-weight, rank, kind, not side.is_forward), stored))
    return [link for _, link in sorted(rows)[offset:stop]]


def _walk(side: _Side, columns: str, visible: Visibility, kinds: Sequence[str] | None) -> Condition:
    """The statement that gives the visible links of one record, the strongest first; all but the record, which is
    bound first, and the limit, which is bound last, is bound already.
    """
    where = _of_kinds(kinds) & compile_visibility(visible)
    return Condition(
        f"SELECT {columns} FROM links l INDEXED BY links_by_{side.near} CROSS JOIN records r ON r.key = l.{side.far}"
        f" WHERE l.{side.near} = ? AND {where.sql}"
        f" ORDER BY l.weight DESC, l.{side.far}_rank, l.kind LIMIT ?",
        where.params,
    )


def _of_kinds(kinds: Sequence[str] | None) -> Condition:
    if kinds is None:
        return Condition("")
    return Condition("l.kind IN (SELECT value FROM json_each(?))", (dump_json(list(kinds)),))
