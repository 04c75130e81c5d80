"""``twofold info``, ``check`` and ``embed-pending``: how a store is, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Final

import typer

from twofold.cli import render
from twofold.cli.opening import AUTO, opened
from twofold.cli.options import (
    DEFAULT_INDEX,
    DEFAULT_STORE,
    AsJson,
    Embedder,
    Index,
    Rooms,
    Store,
    Tenant,
    User,
    access_of,
)
from twofold.store import Info
from twofold.types import Access

__all__ = ["add_commands"]

_NOT_SHOWN: Final = ("path", "spaces")
"""Details that info leaves out: said already, or a count of records that the asker may not see."""
_NOT_DONE: Final = 1
"""The exit code where something is damaged, or still waits."""


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands of this module."""
    app.command()(info)
    app.command()(check)
    app.command("embed-pending")(embed_pending)


def info(
    *,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    index: Index = DEFAULT_INDEX,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Say what a store is, and how much of it the asker may see.

    In a pipe: name, value. --json: one object of the same names.
    """
    with opened(store, tenant, embedder, index=index) as it:
        said = it.store.info(access=access_of(user, room))
    values = _values(said, it.because)
    if as_json:
        render.print_json(values)
    else:
        render.print_rows(("name", "value"), ((name, _shown(value)) for name, value in values.items()))


def _values(said: Info, because: str) -> dict[str, object]:
    """What ``info`` prints, by name."""
    file = said.backend
    return {
        "path": said.path,
        "tenant": file.tenant,
        "mode": said.mode.value,
        "embedder": said.embedder,
        "embedder_because": because,
        "embedder_state": None if said.embedder_state is None else asdict(said.embedder_state),
        "records": said.records,
        "pending": said.pending,
        "fields": list(file.fields),
        "vectors_of": file.fingerprint,
        "dimension": file.dimension,
        "analyzer": file.analyzer,
        "keyword_problem": file.keyword_problem,
        "read_only": file.read_only,
        **{name: value for name, value in file.details.items() if name not in _NOT_SHOWN},
    }


def _shown(value: object) -> str:
    if value is None or value in ([], ""):
        return render.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    return str(value)


def check(
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="If anything is, make the keyword index anew and look again.")
    ] = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Compare the indexes with the records; exit with 1 if damaged.

    Everything derived is compared with what it is derived from; nothing is changed without --repair.

    In a pipe one line for each kind of damage: code, count, message. --json: {"ok", "records", "damage": [{"code",
    "count", "message"}], "skipped"}.
    """
    with opened(store, tenant) as it:
        report = it.store.check()
        if repair and not report.ok:
            it.store.reindex()
            report = it.store.check()
    if as_json:
        damage = [{"code": each.code, "count": each.count, "message": each.message} for each in report.damage]
        answer = {"ok": report.ok, "records": report.records, "damage": damage, "skipped": list(report.skipped)}
        render.print_json(answer)
    else:
        if report.damage:
            rows = [(each.code, each.count, each.message) for each in report.damage]
            render.print_rows(("damage", "count", "what helps"), rows, numbers=("count",))
        for reason in report.skipped:
            render.print_note(f"not looked at: {reason}")
        render.print_note(f"{report.records} records, {'all is well' if report.ok else 'damage found'}")
    if not report.ok:
        raise typer.Exit(_NOT_DONE)


def embed_pending(
    *,
    retry_parked: Annotated[
        bool, typer.Option("--retry-parked", help="Try records again whose text the embedder refused before.")
    ] = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    index: Index = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Make the vectors that records still wait for; exit with 1 if some still do.

    Everybody's records: this is maintenance. It may be interrupted, and run in several processes at once.

    In a pipe one line: embedded, parked, remaining, and if another process is embedding some of those: elsewhere.
    --json: {"embedded", "parked", "remaining", "elsewhere", "degradations"}.
    """
    everything = Access.everything()
    with opened(store, tenant, embedder, index=index) as it:
        pending = it.store.info(access=everything).pending
        with render.progress_bar("Embedding", pending) as step:
            report = it.store.embed_pending(access=everything, retry_parked=retry_parked, progress=step)
    counts = {"embedded": report.embedded, "parked": report.parked, "remaining": report.remaining}
    if as_json or report.elsewhere:
        counts["elsewhere"] = report.elsewhere
    if as_json:
        render.print_json({**counts, "degradations": render.degradations_json(report.degradations)})
    else:
        render.print_rows(tuple(counts), [tuple(counts.values())], numbers=tuple(counts))
        for degradation in report.degradations:
            render.print_note(str(degradation))
    if report.remaining:
        raise typer.Exit(_NOT_DONE)
