"""The commands about links."""

from __future__ import annotations

from typing import Annotated

import typer

from twofold.cli import render
from twofold.cli.opening import opened
from twofold.cli.options import (
    DEFAULT_STORE,
    AsJson,
    Namespace,
    Rooms,
    Store,
    Tenant,
    User,
    Where,
    access_of,
    filter_of,
    words_of,
)
from twofold.types import DEFAULT_LINK_KIND, Direction

__all__ = ["add_commands"]

_NOTHING = 1

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="The id of the record that it leads from.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="The id of the record that it leads to.")]
TargetNamespace = Annotated[
    str | None, typer.Option(metavar="A/B", help="Where the target is kept. Default: where the source is.")
]


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands of this module."""
    for command in (link, unlink, neighbors):
        app.command()(command)


def link(
    source: Source,
    target: Target,
    *,
    kind: Annotated[str, typer.Option(metavar="WORD", help="What kind of link.")] = DEFAULT_LINK_KIND,
    weight: Annotated[float, typer.Option(metavar="W", help="How strong it is, above 0, at most 1.")] = 1.0,
    namespace: Namespace = None,
    target_namespace: TargetNamespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Link one record to another, or give a link another weight.

    The asker must be able to change the source and to see the target. What was done goes to standard error.
    --json: {"new"}, whether there was no such link.
    """
    with opened(store, tenant) as it:
        is_new = it.store.link(
            source,
            target,
            kind=kind,
            weight=weight,
            access=access_of(user, room),
            namespace=words_of(namespace),
            target_namespace=None if target_namespace is None else words_of(target_namespace),
        )
    if as_json:
        render.print_json({"new": is_new})
    else:
        render.print_note("linked" if is_new else "there was such a link; its weight is the one given now")


def unlink(
    source: Source,
    target: Target,
    *,
    kind: Annotated[str | None, typer.Option(metavar="WORD", help="Only this kind. Default: all.")] = None,
    namespace: Namespace = None,
    target_namespace: TargetNamespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Remove the links that lead from one record to another.

    How many there were goes to standard error. --json: {"removed"}.
    """
    with opened(store, tenant) as it:
        removed = it.store.unlink(
            source,
            target,
            kind=kind,
            access=access_of(user, room),
            namespace=words_of(namespace),
            target_namespace=None if target_namespace is None else words_of(target_namespace),
        )
    if as_json:
        render.print_json({"removed": removed})
    else:
        render.print_note(f"{removed} removed")


def neighbors(
    id: Annotated[str, typer.Argument(metavar="ID", help="The record's id.")],
    *,
    hops: Annotated[int, typer.Option(metavar="N", help="How many links away at most, 1 to 5.")] = 1,
    limit: Annotated[int, typer.Option(metavar="N", help="How many records at most.")] = 10,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="Only along links of this kind; repeatable.")
    ] = None,
    direction: Annotated[Direction, typer.Option(help="Which way links are followed.")] = Direction.BOTH,
    where: Where = None,
    namespace: Namespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Show the records that links lead to from one; exit with 1 if there are none.

    In a pipe: score, the way, id, text. --json: {"neighbors": [{"score", "path": [{"start", "end", "kind", "weight",
    "forward"}], "record": {...}}]}.
    """
    with opened(store, tenant) as it:
        found = it.store.neighbors(
            id,
            hops=hops,
            limit=limit,
            kinds=kind or None,
            direction=direction,
            where=filter_of(where),
            access=access_of(user, room),
            namespace=words_of(namespace),
        )
    if as_json:
        render.print_json({"neighbors": [render.neighbor_json(each) for each in found]})
    elif found:
        rows = ((f"{each.score:.3f}", render.way(each.path), each.record.id, each.record.text) for each in found)
        render.print_rows(("score", "way", "id", "text"), rows, numbers=("score",))
    if not found:
        if not as_json:
            render.print_note("nothing is linked to it")
        raise typer.Exit(_NOTHING)
