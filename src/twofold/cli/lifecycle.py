"""``twofold prune``, ``sweep``, ``supersede``, ``consolidate``, ``stats`` and ``reembed``: the life of records."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from twofold.cli import render
from twofold.cli.opening import AUTO, NONE, checked_embedder, opened
from twofold.cli.options import (
    DEFAULT_STORE,
    AsJson,
    Embedder,
    Namespace,
    Rooms,
    Store,
    Tenant,
    User,
    Where,
    access_of,
    filter_of,
    instant_of,
    words_of,
)
from twofold.errors import ConfigurationError
from twofold.types import Stats

__all__ = ["add_commands"]

_NOT_DONE: Final = 1


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands of this module."""
    for command in (prune, sweep, supersede, consolidate, stats, reembed):
        app.command()(command)


def prune(
    *,
    min_retention: Annotated[
        float, typer.Option("--min-retention", metavar="R", help="Less retained than this has faded; up to 1.")
    ],
    do_it: Annotated[bool, typer.Option("--do-it", help="Archive it, instead of only listing it.")] = False,
    where: Where = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """List what has faded since it was last of use, and with --do-it archive it.

    Nothing is deleted. In a pipe: retention, id, namespace, owner. --json: {"archived", "faded": [{"retention", "id",
    "namespace", "owner"}]}.
    """
    with opened(store, tenant) as it:
        report = it.store.prune(min_retention, where=filter_of(where), dry_run=not do_it, access=access_of(user, room))
    if as_json:
        faded = [
            {"retention": each.retention, "id": each.id, "namespace": list(each.namespace), "owner": str(each.owner)}
            for each in report.faded
        ]
        render.print_json({"archived": report.archived, "faded": faded})
        return
    if report.faded:
        rows = ((f"{each.retention:.4f}", each.id, "/".join(each.namespace), str(each.owner)) for each in report.faded)
        render.print_rows(("retention", "id", "namespace", "owner"), rows, numbers=("retention",))
    if do_it:
        render.print_note(f"{report.archived} archived")
    else:
        render.print_note(f"{len(report.faded)} have faded; nothing was changed, --do-it archives them")


def sweep(
    *,
    archive: Annotated[bool, typer.Option("--archive", help="Archive it, instead of deleting it.")] = False,
    where: Where = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Delete what has expired.

    How many there were goes to standard error. --json: {"swept"}.
    """
    with opened(store, tenant) as it:
        swept = it.store.sweep(where=filter_of(where), archive=archive, access=access_of(user, room))
    if as_json:
        render.print_json({"swept": swept})
    else:
        render.print_note(f"{swept} {'archived' if archive else 'deleted'}")


def supersede(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The id of the record that was right so far.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The id of the record that is right now.")],
    *,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Since when, as 2026-01-31T12:00:00Z. Default: now.")
    ] = None,
    namespace: Namespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Let one record take the place of another, which is not shown any more.

    What was done goes to standard error. --json: {"new"}, whether it was not so already.
    """
    with opened(store, tenant) as it:
        is_new = it.store.supersede(
            old,
            new,
            at=None if at is None else instant_of(at),
            access=access_of(user, room),
            namespace=words_of(namespace),
        )
    if as_json:
        render.print_json({"new": is_new})
    else:
        render.print_note("superseded" if is_new else "it was superseded by that one already")


def consolidate(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of two or more records.")],
    *,
    text: Annotated[str, typer.Option(metavar="TEXT", help="What the new record says.")],
    tag: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="A tag; repeatable. Default: all of theirs.")
    ] = None,
    importance: Annotated[
        float | None, typer.Option(metavar="I", help="0 to 1. Default: the greatest of theirs.")
    ] = None,
    namespace: Namespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Make one record of several; they are archived and linked to it.

    Prints the new record's id. --json: {"id", "pending"}.
    """
    with opened(store, tenant, embedder) as it:
        added = it.store.consolidate(
            ids,
            text,
            tags=tag or None,
            importance=importance,
            access=access_of(user, room),
            namespace=words_of(namespace),
        )
    if as_json:
        render.print_json({"id": added.id, "pending": added.pending})
    else:
        render.print_lines([added.id])
        render.print_note(f"{len(set(ids))} archived")


def stats(
    *,
    where: Where = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Count what the asker may see, by kind, scope and owner.

    In a pipe: name, count. --json: one object; "by_kind", "by_scope" and "by_owner" are objects, "retention" is a list
    of ten counts.
    """
    with opened(store, tenant) as it:
        said = it.store.stats(where=filter_of(where), access=access_of(user, room))
    if as_json:
        render.print_json(_stats_json(said))
        return
    rows: list[tuple[object, object]] = []
    for name, value in _stats_json(said).items():
        if isinstance(value, dict):
            rows += [(f"{name.removeprefix('by_')} {each}", count) for each, count in value.items()]
        elif isinstance(value, list):
            rows += [(f"retained {step / 10:.1f}-{(step + 1) / 10:.1f}", count) for step, count in enumerate(value)]
        else:
            rows.append((name, render.ABSENT if value is None else value))
    render.print_rows(("name", "count"), rows, numbers=("count",))


def reembed(
    embedder: Annotated[str, typer.Argument(metavar="EMBEDDER", help="The new one: local, ollama:<model> …")],
    *,
    forget_given: Annotated[
        bool, typer.Option("--forget-given", help="Lose vectors that were given and have no text to be made of.")
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up a move to another embedder that was not finished.")
    ] = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Make all vectors anew with another embedder; exit with 1 if some are missing.

    Everybody's records: this is maintenance. The old vectors answer until the new ones are all there. It may be
    interrupted, goes on where it ended, and may run in several processes at once.

    In a pipe one line: done, embedded, parked, remaining. --json: {"done", "embedded", "parked", "remaining",
    "degradations"}.
    """
    if checked_embedder(embedder) in (AUTO, NONE):
        raise ConfigurationError(f"say which embedder: twofold reembed local, for example, not {embedder!r}")
    with opened(store, tenant) as it, render.progress_bar("Embedding", None) as step:
        report = it.store.reembed(embedder, forget_given=forget_given, abandon=abandon, progress=step)
    counts = {
        "done": report.done,
        "embedded": report.embedded,
        "parked": report.parked,
        "remaining": report.remaining,
    }
    if as_json:
        render.print_json({**counts, "degradations": render.degradations_json(report.degradations)})
    else:
        shown = ["yes" if report.done else "no", *list(counts.values())[1:]]
        render.print_rows(tuple(counts), [shown], numbers=("embedded", "parked", "remaining"))
        for degradation in report.degradations:
            render.print_note(str(degradation))
    if not report.done or report.remaining:
        raise typer.Exit(_NOT_DONE)


def _stats_json(said: Stats) -> dict[str, object]:
    return {
        "records": said.records,
        "by_kind": dict(said.by_kind),
        "by_scope": dict(said.by_scope),
        "by_owner": {str(owner): count for owner, count in said.by_owner.items()},
        "oldest": None if said.oldest is None else said.oldest.isoformat(),
        "newest": None if said.newest is None else said.newest.isoformat(),
        "pending": said.pending,
        "vectors": said.vectors,
        "links": said.links,
        "text_bytes": said.text_bytes,
        "vector_bytes": said.vector_bytes,
        "retention": list(said.retention),
        "archived": said.archived,
        "superseded": said.superseded,
        "expired": said.expired,
        "out_of_date": said.out_of_date,
        "not_yet_valid": said.not_yet_valid,
    }
