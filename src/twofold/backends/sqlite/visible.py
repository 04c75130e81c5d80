"""What a call may see, as SQL: access, lifecycle and the user's filter in one condition of every statement."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.filter_sql import compile_filter
from twofold.backends.sqlite.rows import store_time
from twofold.backends.sqlite.schema import SCOPE_CODES
from twofold.types import Access, Scope
from twofold.types.json import dump_json

__all__ = ["LIVING", "Condition", "alive_at", "compile_visibility", "permitted"]

LIVING: Final = "r.archived_at IS NULL AND r.superseded_by IS NULL"
"""The part of a record's lifecycle that no clock decides."""

_MAX_LISTED_ROOMS: Final = 32
"""How many rooms are bound one by one; more of them go in as one JSON list, for SQLite's limit of variables."""

_GLOBAL, _ROOM, _PERSONAL = (SCOPE_CODES[scope] for scope in (Scope.GLOBAL, Scope.ROOM, Scope.PERSONAL))


class Condition(NamedTuple):
    """A condition on ``records r`` and what is bound in it, in order."""

    sql: str
    params: tuple[Any, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        if not self.sql or not other.sql:
            return self if self.sql else other
        return Condition(f"{self.sql} AND {other.sql}", self.params + other.params)


_ALWAYS: Final = Condition("")


def compile_visibility(visible: Visibility) -> Condition:
    """All of it; never empty."""
    condition = permitted(visible)
    if not visible.include_archived:
        condition &= alive_at(store_time(visible.at), as_of=visible.as_of)
    return condition if condition.sql else Condition("TRUE")


def permitted(visible: Visibility) -> Condition:
    """Access and the user's filter: what no clock decides. Empty if all is."""
    condition = _readable(visible.access)
    if visible.where is not None:
        sql, params = compile_filter(visible.where, alias="r")
        condition &= Condition(f"({sql})", tuple(params))
    return condition


def alive_at(microseconds: int, *, as_of: bool = False) -> Condition:
    """Not archived, not superseded, valid and not expired at an instant. Bounds: valid from the first on, no longer
    valid at the last.

    Args:
        microseconds: the instant.
        as_of: whether what was archived or superseded since counts, and what was made since does not.
    """
    if as_of:
        return Condition(
            "COALESCE(r.valid_from, r.created_at) <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)"
            " AND (r.expires_at IS NULL OR r.expires_at > ?) AND (r.archived_at IS NULL OR r.archived_at > ?)"
            " AND (r.superseded_by IS NULL OR r.valid_to IS NOT NULL)",
            (microseconds, microseconds, microseconds, microseconds),
        )
    return Condition(
        f"{LIVING} AND (r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"
        " AND (r.expires_at IS NULL OR r.expires_at > ?)",
        (microseconds, microseconds, microseconds),
    )


@lru_cache(maxsize=1024)
def _readable(access: Access) -> Condition:
    if access.is_everything:
        return _ALWAYS
    # With a plus: no index is good at it, but for one that holds it SQLite would rather look at all rows in its order.
    choices = [f"+r.scope = {_GLOBAL}"]
    params: list[Any] = []
    if access.user is not None:
        choices.append(f"r.scope = {_PERSONAL} AND r.owner = ?")
        params.append(access.user)
    if len(access.rooms) > _MAX_LISTED_ROOMS:
        choices.append(f"r.scope = {_ROOM} AND r.owner IN (SELECT value FROM json_each(?))")
        params.append(dump_json(list(access.rooms)))
    elif access.rooms:
        choices.append(f"r.scope = {_ROOM} AND r.owner IN ({', '.join('?' * len(access.rooms))})")
        params += access.rooms
    return Condition(f"({' OR '.join(f'({choice})' for choice in choices)})", tuple(params))
