"""What runs of several sizes found, written into the documentation: tables between two marks, and a plot beside them.

A block begins with ``<!-- measured: NAME -->`` and ends with ``<!-- end -->``; what is between is replaced.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.benchmarks.goals import GOALS, SIZES
from tests.benchmarks.peers import APPROXIMATE, BESIDE, PEERS

__all__ = ["PAGE", "write_growth"]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "performance.md"
"""The page that is written if no other is given."""

PLOT: Final = "growth.svg"
"""The name of the plot, beside the page."""

CURVES: Final = (
    "hybrid", "hybrid, nobody beside", "plain pipeline", "keyword leg", "FTS5 by bm25()", "vector leg",
    "FAISS FlatIP, one thread", "hybrid, rare words", "hybrid, common words", "hybrid, stop words alone",
    "hybrid, filter of 1 %",
)  # fmt: skip
"""The rows whose cost is followed from size to size."""

_OTHERS: Final = ("plain pipeline", "FTS5 by bm25()", "FAISS FlatIP, one thread")
"""Those that are not twofold's."""

_CPU: Final = "CPU p50, ms"
_CLOCK: Final = "p50, ms"
_TIMES: Final = (_CLOCK, "p95, ms", _CPU, "CPU p95, ms")
_MADE_UP: Final = "made up"
_NOTHING: Final = "Not measured yet."
_BLOCK: Final = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Run: TypeAlias = Mapping[str, Any]
"""What one run of ``scale`` wrote."""


def write_growth(files: Sequence[Path], page: Path | None = None) -> None:
    """Replace the measured blocks of a page.

    Args:
        files: what runs of ``scale`` wrote, in any order; those of made-up data have different sizes.
        page: is there, with its marks. Default: ``PAGE``.

    Raises:
        SystemExit: no file is given, two are of one size, or the page has no marks.
    """
    page = PAGE if page is None else page
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    made_up = sorted((run for run in runs if run["about"]["data"] == _MADE_UP), key=_size)
    sizes = [_size(run) for run in made_up]
    if not runs or len(set(sizes)) != len(sizes):
        sys.exit("growth takes the JSON files of runs of scale, one of each size")
    blocks: dict[str, Callable[[], list[str]]] = {
        "goals": lambda: _goals(made_up),
        "growth": lambda: _growth(made_up),
        "plot": lambda: _plot(made_up, page.with_name(PLOT)),
        "rivals": lambda: [line for run in made_up for line in _rivals(run)],
        "batches": lambda: _batches(made_up),
        "rest": lambda: _rest(made_up),
        "real": lambda: [line for run in runs if run["about"]["data"] != _MADE_UP for line in _real(run)],
        "runs": lambda: _runs([*made_up, *(run for run in runs if run not in made_up)]),
    }
    old = page.read_text(encoding="utf-8")
    if not _BLOCK.search(old):
        sys.exit(f"{page} has no <!-- measured: ... --> marks to write between")

    def filled(match: re.Match[str]) -> str:
        lines = blocks[match[2]]() or [_NOTHING]
        return "\n".join((match[1], "\n".join(lines).rstrip(), "", match[3]))

    page.write_text(_BLOCK.sub(filled, old), encoding="utf-8")


def _goals(runs: Sequence[Run]) -> list[str]:
    """A line for each goal, a column for each size."""
    rows = []
    for goal in GOALS:
        cells = []
        for run in runs:
            value, records = goal.measured(run["rows"]), _size(run)
            if value is None:
                cells.append("not measured" if goal.bound(records) is not None else "–")
                continue
            missed = goal.missed_by(value, records)
            beside = f" ({goal.said(records)})" if missed is not None else ""
            cells.append(f"**{_said(value)}**{beside}, missed by {missed:.0%}" if missed else f"{_said(value)}{beside}")
        rows.append([goal.what, *cells])
    return _table(["", *(_heading(run) for run in runs)], rows) if runs else []


def _growth(runs: Sequence[Run]) -> list[str]:
    """Milliseconds of the processor by size, and the power of N that they grow with between the first and the last."""
    rows = []
    for name in CURVES:
        costs = [run["rows"].get(name, {}).get(_CPU) for run in runs]
        slope = "–"
        if len(runs) > 1 and costs[0] and costs[-1]:
            slope = f"{math.log(costs[-1] / costs[0]) / math.log(_size(runs[-1]) / _size(runs[0])):.2f}"
        rows.append([name, *("–" if cost is None else _said(cost) for cost in costs), slope])
    return _table(["CPU, ms", *(_heading(run) for run in runs), "grows as N to the"], rows) if runs else []


def _plot(runs: Sequence[Run], to: Path) -> list[str]:
    """Draw the same, both axes logarithmic."""
    if len(runs) < 2:
        return ["A plot needs runs of two sizes."]
    if importlib.util.find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return ["The plot was not drawn: that needs matplotlib."]
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "twofold"  # the same figures give the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 6))
    for name in CURVES:
        points = [(_size(run), run["rows"][name][_CPU]) for run in runs if name in run["rows"]]
        axes.loglog(*zip(*points, strict=True), marker="o", linestyle="--" if name in _OTHERS else "-", label=name)
    axes.set_xlabel("records")
    axes.set_ylabel("CPU of the median question, ms")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(to, format="svg", metadata={"Date": None})
    plt.close(figure)
    return [f"![CPU of the median question against the number of records, both logarithmic]({to.name})"]


def _rivals(run: Run) -> list[str]:
    """What rivals took for the same questions, and which were left out and why."""
    rows = []
    for name in (BESIDE, APPROXIMATE, *PEERS):
        found = run["rows"].get(name)
        if found is None:
            continue
        remarks = [found["remark"]] if "remark" in found else []
        if "recall@10" in found:
            remarks.append(f"recall@10 {_said(found['recall@10'])}")
        if name == APPROXIMATE:
            remarks.append(f"of its hits, those of the row above: {_said(found['the same hits, share'])}")
        columns = (_CPU, _CLOCK, "hybrid is faster, times", "ready after, s", "memory, MB")
        rows.append([name, *(_said(found[each]) if each in found else "–" for each in columns), "; ".join(remarks)])
    if not rows:
        return []
    heads = [
        _heading(run),
        "CPU, ms",
        "clock, ms",
        "twofold is faster (CPU), times",
        "filled after, s",
        "memory, MB",
        "",
    ]
    left_out = [f"Left out: {name}: {why}." for name, why in run["left out"].items()]
    return [*_table(heads, rows), "", *(line for each in left_out for line in (each, ""))]


def _batches(runs: Sequence[Run]) -> list[str]:
    """What a question costs among many, in one call and in calls of their own."""
    rows = []
    for mode in ("hybrid", "vector"):
        for name in (f"{mode}, all questions in one call", f"{mode}, a call for each"):
            costs = (run["rows"].get(name, {}).get(_CPU) for run in runs)
            per_question = zip(costs, runs, strict=True)
            rows.append(
                [
                    name,
                    *("–" if cost is None else _said(cost / run["about"]["questions"]) for cost, run in per_question),
                ]
            )
    return _table(["CPU, ms a question", *(_heading(run) for run in runs)], rows) if runs else []


def _rest(runs: Sequence[Run]) -> list[str]:
    """Writing, opening, memory and disk."""
    names = dict.fromkeys(
        (name, column)
        for run in runs
        for name, cells in run["rows"].items()
        if _CPU not in cells or "one by one" in name
        for column in cells
        if column not in _TIMES or column == _CLOCK
    )
    rows = [
        [f"{name}: {column}", *(_said(run["rows"].get(name, {}).get(column, "–")) for run in runs)]
        for name, column in names
    ]
    return _table(["", *(_heading(run) for run in runs)], rows) if runs else []


def _real(run: Run) -> list[str]:
    """All rows of times of one run."""
    rows = []
    for name, cells in run["rows"].items():
        if _CPU in cells:
            rest = "; ".join(f"{key}: {_said(value)}" for key, value in cells.items() if key not in _TIMES)
            rows.append([name, *(_said(cells[each]) for each in _TIMES), rest])
    return [*_table([_heading(run), *_TIMES, ""], rows), ""]


def _runs(runs: Sequence[Run]) -> list[str]:
    """The command of each run, and what it ran on."""
    lines = []
    for run in runs:
        about = run["about"]
        lines.append(
            f"- `{about['command']}`: {about['records']:,} records ({about['data']}), {about['dimension']} numbers,"
            f" {about['questions']} questions; {about['processor']}, {about['cores']} cores, load"
            f" {about['load before']:.1f} before and {about['load after']:.1f} after; {about['system']}, Python"
            f" {about['python']}, SQLite {about['sqlite']}, numpy {about['numpy']}, FAISS {about['faiss-cpu']}, twofold"
            f" {about['twofold']}."
        )
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    first, *others = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return [first, "|---" * len(heads) + "|", *others]


def _size(run: Run) -> int:
    return int(run["about"]["records"])


def _heading(run: Run) -> str:
    size = _size(run)
    return f"{size:,}" if size in SIZES or run["about"]["data"] == _MADE_UP else f"{size:,} ({run['about']['data']})"


def _said(value: object) -> str:
    """A figure in three digits, or in full above a thousand."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
