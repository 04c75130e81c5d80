"""The commands and their options. What they do is the store's; how it looks is :mod:`twofold.cli.render`'s."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

import twofold
from twofold.cli import contextual, lifecycle, linking, maintenance, moving, render
from twofold.cli.demo import run_demo
from twofold.cli.opening import AUTO, checked_embedder, opened
from twofold.cli.options import (
    DEFAULT_INDEX,
    DEFAULT_STORE,
    AsJson,
    AsOf,
    Embedder,
    Hyde,
    Index,
    Mmr,
    Namespace,
    Phrasings,
    Preset,
    Project,
    Reranker,
    Rooms,
    Settings,
    Store,
    Tenant,
    User,
    Where,
    access_of,
    filter_of,
    instant_of,
    params_of,
    words_of,
)
from twofold.cli.reading_input import Input, parsed_json
from twofold.errors import ConfigurationError, TwofoldError
from twofold.types import Hit, Mode

__all__ = ["app"]

_IDS_SHOWN: Final = 20
"""More ids than these are of use to a program only."""
_NOTHING, _MISTAKE, _INTERRUPTED, _NO_READER = 1, 2, 130, 141

_EXIT_CODES: Final = """\b
Exit codes:
  0    all is well
  1    search found nothing, neighbors found nothing linked, check found damage, embed-pending or reembed left
       records waiting, import could not use a line, or purge was told not to
  2    a mistake in what was asked, said in one line on standard error
  130  interrupted
"""


class _Commands(TyperGroup):
    """Turns what a command raises into a line and an exit code; a traceback is left to faults of twofold's own."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except TwofoldError as error:
            render.print_error(" ".join([str(error), *getattr(error, "__notes__", ())]))
            raise typer.Exit(_MISTAKE) from None
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        except OSError as error:
            _abandon_output()
            if isinstance(error, BrokenPipeError):  # the reader has seen enough, as in "list | head"
                raise typer.Exit(_NO_READER) from None
            render.print_error(str(error))
            raise typer.Exit(_MISTAKE) from None
        return result


def _abandon_output() -> None:
    """Throw away what is still to be written: it would fail again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # standard output is no file


app = typer.Typer(
    cls=_Commands,
    help="Records in one SQLite file, found by keyword and by meaning.",
    epilog=_EXIT_CODES,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        print(f"twofold {twofold.__version__}")  # noqa: T201 - this is the command's output
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Records in one SQLite file, found by keyword and by meaning."""


@app.command()
def add(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="One record each; - is all of standard input.")
    ] = None,
    *,
    file: Annotated[
        list[Path] | None, typer.Option(help="A text file, one record, its path the source; repeatable.")
    ] = None,
    jsonl: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="One record a line; - is standard input; repeatable.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="The one record's id. Default: a new one.")] = None,
    source: Annotated[str | None, typer.Option(help="The document that the one record comes from.")] = None,
    kind: Annotated[str | None, typer.Option(help="What type of record. Default: semantic.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A word to find it by; repeatable.")] = None,
    project: Annotated[str | None, typer.Option(help="What it belongs to.")] = None,
    namespace: Namespace = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="An object of your own.")] = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    index: Index = DEFAULT_INDEX,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Store texts, files, and JSON Lines.

    A line of JSON is a text, or an object with the names of a record: id, text, kind, tags, source, project,
    namespace, metadata, importance, scope, room, created_at, event_at, valid_from, valid_to, expires_at ...; times are
    ISO 8601 with a zone. Options stand for what a line leaves out. All is checked before anything is stored.

    The records become the user's, else the first room's, else everybody's. Prints their ids; what became of them
    goes to standard error. --json: {"ids", "added", "updated", "unchanged", "skipped", "pending", "degradations"}.
    """
    options = {
        "id": id,
        "source": source,
        "kind": kind,
        "tags": tag or None,
        "project": project,
        "namespace": None if namespace is None else words_of(namespace),
        "metadata": None if metadata is None else parsed_json(metadata, "--metadata"),
    }
    given = {name: value for name, value in options.items() if value is not None}
    with (
        Input(texts or (), file or (), jsonl or (), given, sys.stdin.buffer) as records,
        opened(store, tenant, embedder, index=index, make=True) as it,
        render.progress_bar("Adding", len(records)) as step,
    ):
        report = it.store.add_many(iter(records), access=access_of(user, room), progress=step)
    counts = {name: getattr(report, name) for name in ("added", "updated", "unchanged", "skipped", "pending")}
    if as_json:
        degradations = render.degradations_json(report.degradations)
        render.print_json({"ids": report.ids, **counts, "degradations": degradations})
        return
    if len(report.ids) <= _IDS_SHOWN or not render.on_terminal():
        render.print_lines(report.ids)
    if it.warning is not None:
        render.print_note(it.warning)
    for degradation in report.degradations:
        render.print_note(str(degradation))
    render.print_note(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to add")


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is asked, in any words.")],
    *,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many hits at most.")] = 10,
    offset: Annotated[int, typer.Option(metavar="N", help="How many of the best to leave out.")] = 0,
    mode: Annotated[Mode, typer.Option(help="Which legs search.")] = Mode.HYBRID,
    where: Where = None,
    expand: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many records that links lead to from the hits are shown too. Default: the preset's, else 0.",
        ),
    ] = None,
    hops: Annotated[
        int | None, typer.Option(metavar="N", help="How many links away they may be, 1 to 5. Default: 1.")
    ] = None,
    touch: Annotated[bool, typer.Option("--touch", help="Count what is shown as used.")] = False,
    preset: Preset = None,
    project: Project = None,
    phrasing: Phrasings = None,
    mmr: Mmr = None,
    reranker: Reranker = None,
    hyde: Hyde = None,
    as_of: AsOf = None,
    setting: Settings = None,
    why: Annotated[bool, typer.Option("--why", help="Show each leg's rank and score.")] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Tell on standard error what each stage gave on, what it left out, and why.")
    ] = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    index: Index = DEFAULT_INDEX,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Find records by keyword and by meaning.

    In a pipe: score, id, text; with --why: score, keyword rank, BM25, vector rank, cosine, id, text. A leg that did not
    find the record shows "-". With --expand, linked records follow the hits, and before the id stands the way to them.
    What an answer lacks is said on standard error.

    --json: {"hits": [{"score", "legs": {"keyword": {"rank", "score"}, "vector": ...}, "record": {...}}],
    "degradations": [{"code", "message"}]}; with --expand "linked" too, like "hits" and with "path": [{"start", "end",
    "kind", "weight", "forward"}]; with --why "why" in each hit, one line; with --trace "trace": [{"name",
    "milliseconds", "detail", "output", "dropped": [{"id", "reason"}]}].
    """
    always = None if hyde is None else "always"
    params = params_of(
        preset,
        setting,
        expand=expand,
        hops=hops,
        touch=touch or None,
        project=project,
        mmr_lambda=mmr,
        hyde=always,
        trace=trace or None,
    )
    if hops is not None and not params.expand:
        raise ConfigurationError("--hops goes with --expand")
    asker, only, then = access_of(user, room), filter_of(where), None if as_of is None else instant_of(as_of)
    writer = None if hyde is None else lambda _: hyde
    with opened(store, tenant, embedder, index=index, reranker=reranker, hyde=writer) as it:
        result = it.store.search(
            text,
            access=asker,
            k=k,
            offset=offset,
            where=only,
            mode=mode,
            params=params,
            as_of=then,
            phrasings=phrasing or (),
        )
    if as_json:
        render.print_json(render.search_json(result, linked=params.expand > 0, why=why))
    elif result.hits:
        legs = ("keyword", "BM25", "vector", "cosine") if why else ()
        ways = ("way",) if params.expand else ()
        rows = (_hit_row(hit, why=why, way=params.expand > 0) for hit in (*result.hits, *result.linked))
        render.print_rows(("score", *legs, *ways, "id", "text"), rows, numbers=("score", *legs))
    if not as_json:
        render.print_trace(result.trace or ())
    if it.warning is not None and mode is Mode.HYBRID:
        render.print_note(f"keywords answered alone: {it.warning}")
    for degradation in result.degradations:
        render.print_note(str(degradation))
    if not result.hits:
        if not as_json:
            render.print_note("nothing found")
        raise typer.Exit(_NOTHING)


def _hit_row(hit: Hit, *, why: bool, way: bool) -> tuple[object, ...]:
    legs: list[object] = []
    for leg in ("keyword", "vector") if why else ():
        found = hit.explanation.legs.get(leg)
        legs += [render.ABSENT, render.ABSENT] if found is None else [found.rank, f"{found.raw:.4g}"]
    ways = [render.way(hit.explanation.path)] if way else []
    return (f"{hit.score:.3f}", *legs, *ways, hit.id, hit.text)


@app.command("list")
def list_(
    *,
    where: Where = None,
    order: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="E.g. -importance (descending) or id; repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="How many at most. Default: all.")] = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """List records, newest first.

    In a pipe: id, kind, owner, when it was made, text. --json: JSON Lines by the names that "add --jsonl" takes.
    """
    with opened(store, tenant) as it:
        records = it.store.list(access=access_of(user, room), where=filter_of(where), order=order or (), limit=limit)
    if as_json:
        for record in records:
            render.print_json(render.record_json(record))
        return
    if records or not render.on_terminal():
        rows = (
            (each.id, each.kind, each.belongs_to, each.created_at.isoformat(timespec="seconds"), each.text)
            for each in records
        )
        render.print_rows(("id", "kind", "owner", "created", "text"), rows)
    else:
        render.print_note("no records")


contextual.add_commands(app)
linking.add_commands(app)
maintenance.add_commands(app)
moving.add_commands(app)
lifecycle.add_commands(app)


@app.command()
def demo(
    questions: Annotated[
        list[str] | None, typer.Argument(metavar="[QUESTION]...", help="What to ask instead of its own questions.")
    ] = None,
    *,
    store: Annotated[Path | None, typer.Option(metavar="PATH", help="Keep the store in this new file.")] = None,
    modules: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only these modules, e.g. json,os,shutil. Default: the whole library."),
    ] = None,
    embedder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            callback=checked_embedder,
            help="What makes vectors: local, ollama, ollama:<model>, none, or auto: local if installed.",
        ),
    ] = AUTO,
) -> None:
    """Index Python's docstrings and ask: by keyword, vector, both.

    The corpus is the documentation of the standard library on this machine, made anew on the spot.

    Then the same store answers behind each framework whose adapter is installed. Nothing leaves the machine,
    unless the embedder is an Ollama elsewhere.
    """
    run_demo(store, [name.strip() for name in (modules or "").split(",") if name.strip()], embedder, questions or ())
