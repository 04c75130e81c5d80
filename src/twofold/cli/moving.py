"""``twofold export``, ``import``, ``backup`` and ``purge``: records out, in, copied, and gone for good."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Final, cast

import typer

from twofold.backends.sqlite.tenants import tenant_file_name
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
from twofold.errors import ConfigurationError
from twofold.moving.parsing import parse_header
from twofold.types import Access, ImportReport, Progress

__all__ = ["add_commands"]

_STDIO: Final = "-"
_NOT_DONE: Final = 1
_LINES_SHOWN: Final = 20
"""More lines that cannot be used than these are told as JSON only."""
_MIB: Final = 2**20
_MEMORY: Final = Path(":memory:")

Everything = Annotated[bool, typer.Option("--everything", help="Everybody's records, instead of what one may see.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there already.")]


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands of this module."""
    app.command()(export)
    app.command("import")(import_)
    app.command()(backup)
    app.command()(purge)


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to be written; - is standard output.")],
    *,
    where: Where = None,
    living: Annotated[
        bool, typer.Option("--living", help="Leave out archived, superseded, expired and not yet valid records.")
    ] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Write vectors too.")] = False,
    overwrite: Overwrite = False,
    everything: Everything = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Write records and links to a file that "import" reads.

    JSON Lines: a line that says what it is, one for each record, one for each link, and a last one. Without --user,
    --room or --everything these are the records that everybody sees. The file gets its name when it is whole.

    What was written is said on standard error. --json: {"records", "links", "vectors"}, not together with FILE -.
    """
    asker, only = _asker(user, room, everything=everything), filter_of(where)
    if as_json and file == _STDIO:
        raise ConfigurationError("--json answers on standard output, where the records go to: name a file")
    with opened(store, tenant) as it, render.progress_bar("Exporting", None) as step:
        report = it.store.export_jsonl(
            sys.stdout.buffer if file == _STDIO else file,
            access=asker,
            where=only,
            include_archived=not living,
            vectors=vectors,
            overwrite=overwrite,
            progress=step,
        )
    counts = {"records": report.records, "links": report.links, "vectors": report.vectors}
    if as_json:
        render.print_json(counts)
    else:
        render.print_note(", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "records"))


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What export wrote; - is standard input.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check all of it, and write nothing.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with the first line that cannot be used.")] = False,
    skip: Annotated[
        bool, typer.Option("--skip-existing", help="Leave records that are there already as they are.")
    ] = False,
    max_line: Annotated[int, typer.Option("--max-line-mib", metavar="N", help="Longer lines are not read.")] = 64,
    everything: Everything = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Store what "export" wrote: same ids, owners, times, links.

    A store is made if there is none. A line that cannot be used is told and stops no other, unless --strict is given;
    then the command exits with 1. It may be interrupted and run again: what is there already is found equal. Vectors
    are taken if they are of the store's embedder; for the rest see embed-pending.

    --json: {"added", "updated", "unchanged", "skipped", "links", "vectors", "pending", "failed", "problems": [{"line",
    "reason"}], "degradations", "dry_run"}.
    """
    asker = _asker(user, room, everything=everything)
    target = store if tenant is None else store / tenant_file_name(tenant)
    with _source(file) as source:
        fields = None if target.exists() else source.fields
        place = _MEMORY if dry_run and fields is not None else store
        with (
            opened(place, tenant, make=True, fields=fields) as it,
            render.progress_bar("Importing", source.records) as step,
        ):
            report = it.store.import_jsonl(
                cast("BinaryIO", source),
                access=asker,
                existing="skip" if skip else "update",
                dry_run=dry_run,
                strict=strict,
                max_line_bytes=max_line * _MIB,
                progress=step,
            )
    if as_json:
        render.print_json(_report_json(report))
    else:
        _say(report)
    if not report.ok:
        raise typer.Exit(_NOT_DONE)


def _report_json(report: ImportReport) -> dict[str, object]:
    return {
        **_counts(report),
        "failed": report.failed,
        "problems": [{"line": each.line, "reason": each.reason} for each in report.problems],
        "degradations": render.degradations_json(report.degradations),
        "dry_run": report.dry_run,
    }


def _counts(report: ImportReport) -> dict[str, int]:
    names = ("added", "updated", "unchanged", "skipped", "links", "vectors", "pending")
    return {name: getattr(report, name) for name in names}


def _say(report: ImportReport) -> None:
    for problem in report.problems[:_LINES_SHOWN]:
        render.print_note(str(problem))
    if report.failed > _LINES_SHOWN:
        render.print_note(f"and {report.failed - _LINES_SHOWN} more; --json names them")
    for degradation in report.degradations:
        render.print_note(str(degradation))
    said = ", ".join(f"{count} {name}" for name, count in _counts(report).items() if count) or "nothing to import"
    failed = f", {report.failed} could not be imported" if report.failed else ""
    render.print_note(f"{'would be: ' if report.dry_run else ''}{said}{failed}")
    if report.pending and not report.dry_run:
        render.print_note("twofold embed-pending makes the vectors that are missing")


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy; or a folder to put it in.")],
    *,
    overwrite: Overwrite = False,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Copy the whole store while it is in use.

    The copy is of one moment, is opened like any store, and gets its name when it is whole. Prints where it is.
    --json: {"path"}.
    """
    with opened(store, tenant) as it, render.progress_bar("Copying", None) as step:
        path = it.store.backup(file, overwrite=overwrite, progress=lambda done, total: step(Progress(done, total)))
    if as_json:
        render.print_json({"path": str(path)})
    else:
        render.print_lines([str(path)])


def purge(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The records' ids.")] = None,
    *,
    all_of_user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of ids: all that belongs to this user.")
    ] = None,
    all_of_room: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of ids: all that belongs to this room.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    namespace: Namespace = None,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Remove records so that no byte of them is left.

    Not in the file, nor in its log, nor in the indexes beside it; what was deleted earlier goes as well. It cannot be
    undone, and asks first. The whole file is written anew, which takes a while and, for a moment, room for a copy.
    Backups and exports are yours to remove.

    How many were removed is said on standard error. --json: {"purged"}.
    """
    with opened(store, tenant) as it:
        if not yes:
            _confirm(_named(ids, all_of_user, all_of_room))
        purged = it.store.purge(
            ids or None,
            user=all_of_user,
            room=all_of_room,
            access=None if user is None and not room else access_of(user, room),
            namespace=words_of(namespace),
        )
    if as_json:
        render.print_json({"purged": purged})
    else:
        render.print_note(f"{purged} purged")


def _named(ids: list[str] | None, user: str | None, room: str | None) -> str:
    """What is to be removed, in words."""
    if user is None and room is None:
        if not ids:
            raise ConfigurationError("say what to purge: ids, --all-of-user or --all-of-room")
        return f"{len(ids)} record{'s' if len(ids) > 1 else ''}"
    return f"all that belongs to {f'user {user}' if user is not None else f'room {room}'}"


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _confirm(what: str) -> None:
    if not _can_ask():
        raise ConfigurationError(f"purge removes {what} for good, and nobody can be asked here: say --yes")
    if not typer.confirm(f"Remove {render.one_line(what)} for good?", err=True):
        render.print_note("nothing was removed")
        raise typer.Exit(_NOT_DONE)


def _asker(user: str | None, room: list[str] | None, *, everything: bool) -> Access:
    if not everything:
        return access_of(user, room)
    if user is not None or room:
        raise ConfigurationError("--everything is everybody's records: leave --user and --room out, or leave it out")
    return Access.everything()


class _Source:
    """A stream of lines, of which the first has been looked at already."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._first: bytes | None = stream.readline(_MIB)
        header = parse_header(self._first)
        self.fields = header.fields
        self.records = header.records

    def readline(self, size: int = -1) -> bytes:
        """The next line, or ``size`` bytes of it."""
        first, self._first = self._first, None
        return self._stream.readline(size) if first is None else first


@contextmanager
def _source(name: str) -> Iterator[_Source]:
    if name == _STDIO:
        yield _Source(sys.stdin.buffer)
        return
    if Path(name).is_dir():
        raise ConfigurationError(f"{name} is a folder: name a file in it")
    with Path(name).open("rb") as stream:
        yield _Source(stream)
