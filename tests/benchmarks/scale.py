"""One size, all that is measured of it: rows of times, memory, disk, and the goals beside them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.table import Table
from tests.benchmarks import stages
from tests.benchmarks.collection import Collection, save_made_up
from tests.benchmarks.goals import GOALS
from tests.benchmarks.memory import memory
from tests.benchmarks.opening import opening
from tests.benchmarks.peers import PEERS
from tests.benchmarks.process import LeftOutError, PeerProcess

__all__ = ["compare_at_scale", "print_scale"]

RIVAL_QUESTIONS: Final = 50
"""How many questions rivals answer at most: some take a second for each."""

_SINGLE_ADDS: Final = 200
_OPENINGS: Final = 3
_FEW: Final = 1000
"""Of fewer records one process of each kind says enough: nobody measures so little but to see that it can be done."""
_TIMES: Final = ("p50, ms", "p95, ms", "CPU p50, ms", "CPU p95, ms")

Report: TypeAlias = stages.Report


def compare_at_scale(
    records: int,
    dimension: int,
    queries: int,
    *,
    real: bool = False,
    rivals: Sequence[str] = (),
    patience: float = 1800.0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Everything, as it goes into the JSON file.

    Args:
        records: how many; of real text there may be fewer.
        dimension: of made-up vectors; real ones have 256 numbers.
        queries: how many questions of each kind.
        real: docstrings of the standard library instead of made-up data.
        rivals: interpreters of the environments in which rivals are installed; none of them: no rivals.
        patience: how many seconds a rival may take to be filled.
        say: is told what is being done.
    """
    load = _load()
    with tempfile.TemporaryDirectory(prefix="twofold-benchmark-") as name:
        folder = Path(name)
        say("making the data")
        (folder / "collection").mkdir()
        collection = _collection(folder / "collection", records, dimension, queries, real=real)
        path = folder / "store.db"
        rows: Report = {}
        for what, measure in _stages(collection, path):
            say(what)
            rows |= measure()
        left_out: dict[str, str] = {}
        if rivals:
            rows |= _beside_rivals(collection, path, rivals, patience, left_out, say)
        say("single adds")
        rows |= stages.one_by_one(collection, path, min(_SINGLE_ADDS, collection.records))
    return {
        "about": _about(collection) | {"load before": load, "load after": _load(), "command": _command()},
        "rows": rows,
        "left out": left_out,
    }


def print_scale(figures: dict[str, Any], to: Path | None) -> None:
    """Write the figures to a file, and print them as tables."""
    if to is not None:
        to.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    about, rows = figures["about"], figures["rows"]
    console = Console(width=None if sys.stdout.isatty() else 140)
    title = (
        f"{about['records']:,} records ({about['data']}), {about['dimension']} numbers, {about['questions']} questions"
    )
    times = Table(title=title)
    for name in ("", *_TIMES, "and"):
        times.add_column(name, justify="right" if name in _TIMES else "left")
    others = Table()
    others.add_column("")
    others.add_column("")
    for name, cells in rows.items():
        rest = "; ".join(f"{key} {_said(value)}" for key, value in cells.items() if key not in _TIMES)
        if _TIMES[0] in cells:
            times.add_row(name, *(f"{cells[each]:,.3f}" for each in _TIMES), rest)
        else:
            others.add_row(name, rest)
    goals = Table(title="goals")
    for name in ("", "measured", "goal", ""):
        goals.add_column(name)
    for goal in GOALS:
        value = goal.measured(rows)
        if value is not None:
            missed = goal.missed_by(value, about["records"])
            verdict = "" if missed is None else "met" if not missed else f"missed by {missed:.0%}"
            goals.add_row(goal.what, _said(value), goal.said(about["records"]), verdict)
    for table in (times, others, goals):
        console.print(table)
    for name, why in figures["left out"].items():
        console.print(f"left out: {name}: {why}", markup=False)


def _collection(folder: Path, records: int, dimension: int, queries: int, *, real: bool) -> Collection:
    if not real:
        return save_made_up(folder, records, dimension, queries)
    from tests.benchmarks.real import save_real

    return save_real(folder, records, queries)


def _stages(collection: Collection, path: Path) -> list[tuple[str, Callable[[], Report]]]:
    """What is done, in order: the first fills the store, and later ones leave it as it is."""
    return [
        ("filling the store", lambda: stages.adding(collection, path)),
        ("hybrid search and the plain pipeline", lambda: stages.hybrids(collection, path)),
        ("keyword leg", lambda: stages.keyword_leg(collection, path)),
        ("vector leg", lambda: stages.vector_leg(collection, path)),
        ("common and rare words", lambda: stages.words(collection, path)),
        ("batches", lambda: stages.batches(collection, path)),
        ("filters", lambda: stages.filtering(collection, path)),
        ("the same hits", lambda: stages.same_hits(collection, path)),
        ("opening", lambda: opening(collection, path, _OPENINGS if collection.records >= _FEW else 1)),
        ("memory", lambda: memory(collection, path)),
        ("touches", lambda: stages.touching(collection, path)),
    ]


def _beside_rivals(
    collection: Collection,
    path: Path,
    pythons: Sequence[str],
    patience: float,
    left_out: dict[str, str],
    say: Callable[[str], None],
) -> Report:
    """Hybrid search and the rivals; ``left_out`` is told who takes no part, and why."""
    with ExitStack() as stack:
        processes: dict[str, PeerProcess] = {}
        for number, name in enumerate(PEERS):
            say(f"starting {name}")
            reasons = []
            for place, python in enumerate(pythons):
                folder = path.with_name(f"rival-{number}-{place}")
                folder.mkdir()
                try:
                    processes[name] = PeerProcess(name, collection, folder, python, patience)
                except LeftOutError as error:
                    reasons.append(str(error))
                else:
                    stack.callback(processes[name].close)
                    break
            if name not in processes:
                left_out[name] = "; ".join(dict.fromkeys(reasons))
        say("hybrid search and the rivals")
        questions = min(RIVAL_QUESTIONS, len(collection.questions.mixed))
        rows = stages.beside_rivals(collection, path, processes, questions)
        for name, process in processes.items():
            process.finish()
            remark = {"remark": PEERS[name].remark} if PEERS[name].remark else {}
            rows[name] |= process.about | remark
    return rows


def _about(collection: Collection) -> dict[str, Any]:
    versions = {}
    for package in ("twofold", "numpy", "faiss-cpu"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "data": collection.name,
        "records": collection.records,
        "dimension": collection.dimension,
        "questions": len(collection.questions.mixed),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **versions,
    }


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _command() -> str:
    """How this was asked for, without the paths of this machine."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == "--json":
            next(words, None)
        elif not Path(word).is_absolute():
            kept.append(word)
    return " ".join(("python -m tests.benchmarks", *kept))


def _load() -> float:
    """How many processes want to run, the last minute's mean: figures of a busy machine are ratios at best."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _said(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
