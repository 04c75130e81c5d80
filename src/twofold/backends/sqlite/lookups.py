"""Which records hold an id, or a text: the keys behind what callers know records by."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are constants of this module
from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twofold.backends.sqlite.candidates import TOTAL_ORDER
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import load_owner, store_namespace, store_owner
from twofold.backends.sqlite.visible import LIVING
from twofold.types import Owner
from twofold.types.json import dump_json

__all__ = ["holders_of", "with_equal_text"]

_MOST_OWNERS: Final = 32
"""How many owners are looked under one by one; of more, all that hold an id are looked through."""

_NAMED: Final = "json_each(?) j CROSS JOIN records r ON r.id = j.value AND r.namespace = ?"
_OF_ANY: Final = f"SELECT r.id, r.key, r.scope, r.owner FROM {_NAMED} ORDER BY r.scope, r.owner"
_OF_ONE: Final = f"SELECT r.id, r.key FROM {_NAMED} AND r.scope = ? AND r.owner = ?"


def holders_of(
    connection: Connection, ids: Sequence[str], namespace: tuple[str, ...], owners: Sequence[Owner] | None
) -> dict[str, list[tuple[int, Owner]]]:
    """By id the keys that hold it and whose they are; see :meth:`Reader.find_many`. One statement for all ids, or one
    an owner: a statement gives the interpreter's lock away, and where threads take turns it comes back late.
    """
    named = (dump_json(list(dict.fromkeys(ids))), store_namespace(namespace))
    found: dict[str, list[tuple[int, Owner]]] = {}
    if owners is None or len(owners) > _MOST_OWNERS:
        for id_, key, scope, name in connection.execute(_OF_ANY, named):
            found.setdefault(id_, []).append((key, load_owner(scope, name)))
        return found if owners is None else _in_order(found, owners)
    for owner in dict.fromkeys(owners):
        for id_, key in connection.execute(_OF_ONE, (*named, *store_owner(owner))):
            found.setdefault(id_, []).append((key, owner))
    return found


def with_equal_text(connection: Connection, content_hash: str, owner: Owner, namespace: tuple[str, ...]) -> list[int]:
    """See :meth:`Reader.with_equal_text`; by newer, then id."""
    rows = connection.execute(
        "SELECT r.key FROM records r WHERE r.content_hash = ? AND r.scope = ? AND r.owner = ?"
        f" AND r.namespace = ? AND {LIVING} ORDER BY {TOTAL_ORDER}",
        (content_hash, *store_owner(owner), store_namespace(namespace)),
    )
    return [key for (key,) in rows]


def _in_order(found: dict[str, list[tuple[int, Owner]]], owners: Sequence[Owner]) -> dict[str, list[tuple[int, Owner]]]:
    """What these owners hold of it, in their order."""
    place = {owner: number for number, owner in reversed(list(enumerate(owners)))}
    kept = {
        id_: sorted((each for each in holders if each[1] in place), key=lambda each: place[each[1]])
        for id_, holders in found.items()
    }
    return {id_: holders for id_, holders in kept.items() if holders}
