"""``twofold embed-pending``: work on everybody's records."""

from __future__ import annotations

from typing import Annotated

import typer

from twofold.cli import render
from twofold.cli.opening import EmbedderChoice, opened
from twofold.cli.options import DEFAULT_STORE, AsJson, Embedder, Store, Tenant
from twofold.types import Access

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("embed-pending")(embed_pending)


def embed_pending(
    *,
    retry_parked: Annotated[
        bool, typer.Option("--retry-parked", help="Try records again whose text the embedder refused before.")
    ] = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = EmbedderChoice.AUTO,
    as_json: AsJson = False,
) -> None:
    """Make the vectors that records still wait for; exit with 1 if some still do.

    Everybody's records: this is maintenance. It may be interrupted, and run in several processes at once.

    In a pipe one line: embedded, parked, remaining. --json: {"embedded", "parked", "remaining", "degradations"}.
    """
    everything = Access.everything()
    with opened(store, tenant, embedder) as it:
        pending = it.store.info(access=everything).pending
        with render.progress_bar("Embedding", pending) as step:
            report = it.store.embed_pending(access=everything, retry_parked=retry_parked, progress=step)
    counts = {"embedded": report.embedded, "parked": report.parked, "remaining": report.remaining}
    if as_json:
        render.print_json({**counts, "degradations": render.degradations_json(report.degradations)})
    else:
        render.print_rows(tuple(counts), [tuple(counts.values())], numbers=tuple(counts))
        for degradation in report.degradations:
            render.print_note(str(degradation))
    if report.remaining:
        raise typer.Exit(1)
