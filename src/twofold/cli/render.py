"""How answers look: tables on a terminal, tab-separated lines in a pipe, JSON where asked for.

Nothing that a record holds is read as markup or reaches the terminal as a control sequence.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, TextIO

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from twofold.text import Term
from twofold.types import Degradation, Hit, LinkStep, Neighbor, Progress, Record, Scope, SearchResult, Stage

__all__ = [
    "ABSENT",
    "degradations_json",
    "hit_json",
    "neighbor_json",
    "on_terminal",
    "one_line",
    "path_json",
    "print_error",
    "print_json",
    "print_lines",
    "print_note",
    "print_rows",
    "print_text",
    "print_trace",
    "progress_bar",
    "record_json",
    "search_json",
    "way",
]

ABSENT: Final = "-"
"""What stands in a cell that has no value."""

_SHOWN: Final = 400
"""Characters of a record's text that a table shows."""

_GAP: Final = 3
"""Characters between two columns."""
_LAST_COLUMN: Final = 30
"""Characters that the last column, the longest, wants at least before the others are kept whole."""

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys instead of showing it: control characters, marks that turn the writing's direction, and lone
surrogates, which no encoding has."""


def on_terminal(stream: TextIO | None = None) -> bool:
    """Whether a person reads ``stream`` (default: standard output) as it is written."""
    return (sys.stdout if stream is None else stream).isatty()


def one_line(text: str, longest: int | None = None) -> str:
    r"""``text`` on one line and without anything that a terminal obeys.

    Args:
        text: any text. Runs of white space become one space; what is unsafe is written as ``\x1b`` or ``\u202e``.
        longest: characters after which it is cut, with ``…``. Default: never.
    """
    line = " ".join(text.split())
    if longest is not None and len(line) > longest:
        line = f"{line[: longest - 1]}…"
    return _UNSAFE.sub(_as_escape, line)


def _as_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_error(message: str) -> None:
    """A user's mistake, in one line on standard error."""
    print(f"twofold: {one_line(message)}", file=sys.stderr)  # noqa: T201 - this is the command's output


def print_note(message: str) -> None:
    """Something that the user should know beside the answer, in one line on standard error."""
    print(f"note: {one_line(message)}", file=sys.stderr)  # noqa: T201 - this is the command's output


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> None:
    """A table with a head on a terminal; in a pipe one line a row, cells apart by tabs, without a head.

    Args:
        columns: what each is called.
        rows: one cell a column.
        numbers: the columns that hold numbers; they are put to the right.
    """
    if not on_terminal():
        for row in rows:
            print("\t".join(one_line(str(cell)) for cell in row))  # noqa: T201 - this is the command's output
        return
    console = Console()
    cells = [[one_line(str(cell), _SHOWN) for cell in row] for row in rows]
    head = [max(len(text) for text in column) for column in zip(columns, *cells, strict=True)][:-1]
    fits = sum(head) + _GAP * len(columns) + _LAST_COLUMN <= console.width
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        is_number = name in numbers
        whole = is_number or (fits and place < len(head))
        table.add_column(name, justify="right" if is_number else "left", no_wrap=whole, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def print_trace(stages: Iterable[Stage]) -> None:
    """What each stage of a search did, on standard error: a line, and one for each record that it left out."""
    for stage in stages:
        detail = "".join(f" {name}={_in_short(value)}" for name, value in stage.detail.items() if name != "ids")
        given = f": {', '.join(stage.output)}" if stage.output else ""
        _print_told(f"{stage.name} {stage.milliseconds:.2f} ms{detail}{given}")
        for each in stage.dropped:
            _print_told(f"left out {each.id}: {each.reason}", "    ")


def _in_short(value: object) -> str:
    """Of terms that were searched for, their words."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_in_short, value))
    return "+".join(value.tokens) if isinstance(value, Term) else str(value)


def _print_told(line: str, indent: str = "  ") -> None:
    print(f"{indent}{one_line(line)}", file=sys.stderr)  # noqa: T201 - this is the command's output


def print_lines(texts: Iterable[str]) -> None:
    """One text a line, on standard output."""
    for text in texts:
        print(one_line(text))  # noqa: T201 - this is the command's output


def print_text(text: str) -> None:
    """A text of several lines, without anything else that a terminal obeys."""
    print(_UNSAFE.sub(lambda found: found.group() if found.group() in "\n\t" else _as_escape(found), text))  # noqa: T201 - the command's output


def print_json(value: object) -> None:
    """One JSON document on one line; safe on a terminal too."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    # Unsafe characters stand inside of strings only: JSON itself has none.
    print(_UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text))  # noqa: T201 - the command's output


def record_json(record: Record) -> dict[str, Any]:
    """A record by the names that ``add --jsonl`` takes, so that what is listed can be added elsewhere."""
    (name, text), *others = record.fields.items() or [("text", "")]
    single = name == "text" and not others and isinstance(text, str)
    return {
        "id": record.id,
        "text": text if single else None,
        "fields": None if single else {field: _plain(value) for field, value in record.fields.items()},
        "kind": record.kind,
        "scope": record.scope.value,
        "room": record.owner if record.scope is Scope.ROOM else None,
        "namespace": list(record.namespace),
        "project": record.project,
        "source": record.source,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "importance": record.importance,
        "strength": record.strength,
        "created_at": record.created_at.isoformat(),
        "event_at": _time(record.event_at),
        "valid_from": _time(record.valid_from),
        "valid_to": _time(record.valid_to),
        "expires_at": _time(record.expires_at),
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """A hit: its score, the legs that found it, its record."""
    legs = {leg: {"rank": each.rank, "score": each.raw} for leg, each in hit.explanation.legs.items()}
    return {"score": hit.score, "legs": legs, "record": record_json(hit.record)}


def search_json(result: SearchResult, *, linked: bool, why: bool) -> dict[str, Any]:
    """An answer: its hits, best first, what it could not do, and, as far as they were asked for, what is linked to the
    hits, why each is there, and the trace.
    """

    def told(hit: Hit) -> dict[str, Any]:
        return {**hit_json(hit), **({"why": hit.why} if why else {})}

    answer: dict[str, Any] = {"hits": [told(hit) for hit in result]}
    if linked:
        answer["linked"] = [{**told(hit), "path": path_json(hit.explanation.path)} for hit in result.linked]
    answer["degradations"] = degradations_json(result.degradations)
    if result.trace is not None:
        answer["trace"] = [asdict(stage) for stage in result.trace]
    return answer


def neighbor_json(neighbor: Neighbor) -> dict[str, Any]:
    """A linked record: its score, the way to it, the record."""
    return {"score": neighbor.score, "path": path_json(neighbor.path), "record": record_json(neighbor.record)}


def path_json(path: Iterable[LinkStep]) -> list[dict[str, Any]]:
    """The way to a linked record, one object a link."""
    return [asdict(step) for step in path]


def way(path: Sequence[LinkStep]) -> str:
    """The way to a linked record in one line."""
    return ", ".join(map(str, path)) or ABSENT


def degradations_json(degradations: Iterable[Degradation]) -> list[Mapping[str, str]]:
    """Why an answer, or a write, is less than it could be."""
    return [{"code": each.code.value, "message": each.message} for each in degradations]


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[Progress], None]]:
    """A bar on standard error, if that is a terminal; the block is given what to call with each step.

    Args:
        what: what is being done, in a word.
        total: how many there are to do; None if nobody knows.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not on_terminal(sys.stderr)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total)


def _plain(text: str | tuple[str, ...]) -> str | list[str]:
    return text if isinstance(text, str) else list(text)


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
