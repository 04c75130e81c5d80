"""Records by attribute: which there are, how many, and which values they have."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from twofold.backends.protocol import Order, Visibility
from twofold.backends.sqlite.candidates import TOTAL_ORDER
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import TIMES, load_namespace, load_owner, load_time, row_limit
from twofold.backends.sqlite.visible import compile_visibility
from twofold.errors import ConfigurationError

__all__ = ["count", "distinct", "scan"]

_SORTABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{
            name: f"r.{name}"
            for name in (
                "id",
                "kind",
                "namespace",
                "project",
                "source",
                "importance",
                "strength",
                "access_count",
                *sorted(TIMES),
                "superseded_by",
                "content_hash",
                "revision",
                "scope",
            )
        },
        "owner": "NULLIF(r.owner, '')",
    }
)
"""The attributes that have an order, as SQL."""


def scan(
    connection: Connection, visible: Visibility, order: Sequence[Order], limit: int | None, offset: int
) -> list[int]:
    """See :meth:`Reader.scan`.

    Raises:
        ConfigurationError: an attribute that does not exist or has no order.
    """
    condition = compile_visibility(visible)
    parts = [part for each in order for part in _ordering(each)]
    rows = connection.execute(
        f"SELECT r.key FROM records r WHERE {condition.sql} ORDER BY {', '.join([*parts, TOTAL_ORDER])}"
        " LIMIT ? OFFSET ?",
        (*condition.params, row_limit(limit), row_limit(offset)),
    )
    return [key for (key,) in rows]


def count(connection: Connection, visible: Visibility) -> int:
    """See :meth:`Reader.count`."""
    condition = compile_visibility(visible)
    sql = f"SELECT count(*) FROM records r WHERE {condition.sql}"
    return int(connection.execute(sql, condition.params).fetchone()[0])


def distinct(connection: Connection, attribute: str, visible: Visibility) -> list[Any]:
    """See :meth:`Reader.distinct`.

    Raises:
        ConfigurationError: an attribute that does not exist or has no order.
    """
    condition = compile_visibility(visible)
    if attribute == "tags":
        source, column = "records r CROSS JOIN json_each(r.tags) t", "t.value"
    else:
        source, column = "records r", _sortable(attribute)
    rows = connection.execute(
        f"SELECT DISTINCT {column} AS value FROM {source}"
        f" WHERE {condition.sql} AND {column} IS NOT NULL ORDER BY value",
        condition.params,
    )
    load = _loader(attribute)
    return [value if load is None else load(value) for (value,) in rows]


def _sortable(attribute: str) -> str:
    try:
        return _SORTABLE[attribute]
    except KeyError:
        raise ConfigurationError(
            f"{attribute!r} is no attribute that records can be ordered by; those are {', '.join(sorted(_SORTABLE))}"
        ) from None


def _ordering(order: Order) -> tuple[str, str]:
    column = _sortable(order.attribute)
    return f"{column} IS NULL", f"{column} {'DESC' if order.descending else 'ASC'}"


def _loader(attribute: str) -> Callable[[Any], Any] | None:
    if attribute in TIMES:
        return load_time
    if attribute == "namespace":
        return load_namespace
    if attribute == "scope":
        return lambda code: load_owner(code, "").scope
    return None
