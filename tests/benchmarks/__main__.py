"""Measures twofold: ``python -m tests.benchmarks [WHAT] [--records 10000] [--dimension 384] [--queries 200]
[--json FILE]``. WHAT is ``store``, the default, for a store as a whole; ``indexes`` compares the vector indexes;
``graph-store`` LangGraph's stores, ``--operations 6000``; ``adapters`` says what those of LangChain and LlamaIndex add.
``scale [--real] [--rivals [PYTHON ...]]`` measures all that is promised of a size, and ``growth FILE ...`` writes what
such runs found into the documentation; docs/explanation/performance.md says more of both.

Times are wall time. A rival answers the same queries in the same run, turn by turn, so that the ratio means something
on a machine that is not quiet. Idle OpenMP threads sleep (``OMP_WAIT_POLICY``), or those of one contestant would spin
while the next one is timed. Run it from the repository's root.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before anything loads OpenMP

import numpy as np
from tests.benchmarks.baselines import bare_insert, blocked_embedder
from tests.benchmarks.data import Corpus, make_corpus
from tests.benchmarks.indexes import POOL, compare
from tests.benchmarks.timing import interleaved

import twofold
from twofold import GivenVectors, NewRecord

WHAT = ("store", "indexes", "graph-store", "adapters", "scale", "growth")


def main() -> None:
    """Run all measurements and print them as a table, or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=WHAT, default="store")
    parser.add_argument("files", nargs="*", type=Path, help="growth: what runs of scale wrote")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--operations", type=int, default=6000)
    parser.add_argument("--no-rivals", action="store_true", help="measure twofold alone")
    parser.add_argument("--real", action="store_true", help="scale: docstrings instead of made-up data")
    parser.add_argument("--rivals", nargs="*", metavar="PYTHON", help="scale: the interpreters that rivals are under")
    parser.add_argument(
        "--patience", type=float, default=1800, help="scale: seconds that a rival may take to be filled"
    )
    parser.add_argument("--page", type=Path, help="growth: the page instead of docs/explanation/performance.md")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    asked = parser.parse_args()
    if asked.files and asked.what != "growth":
        parser.error(f"{asked.what} takes no files")
    if asked.what == "growth":
        from tests.benchmarks.growth import write_growth

        write_growth(asked.files, asked.page)
        return
    if asked.what == "scale":
        measure_scale(asked)
        return
    if asked.what == "indexes":
        print_indexes(asked.records, asked.dimension, asked.queries, asked.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = figures_of(asked, Path(folder))
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    for name, value in figures.items():
        print(f"{name:<48} {value:>14,.3f}" if isinstance(value, float) else f"{name:<48} {value:>14,}")


def measure_scale(asked: argparse.Namespace) -> None:
    """Measure a size, and print what was found."""
    from tests.benchmarks.scale import compare_at_scale, print_scale

    figures = compare_at_scale(
        asked.records,
        asked.dimension,
        asked.queries,
        real=asked.real,
        rivals=() if asked.rivals is None else asked.rivals or [sys.executable],
        patience=asked.patience,
        say=lambda what: print(f"… {what}", file=sys.stderr),
    )
    print_scale(figures, asked.json)


def figures_of(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All figures by name, beginning with what was asked for."""
    if asked.what == "graph-store":
        from tests.benchmarks.graph_store import compare_stores

        return compare_stores(folder, asked.operations, rivals=not asked.no_rivals)
    corpus = make_corpus(asked.records, asked.dimension, asked.queries)
    figures: dict[str, Any] = {"records": asked.records, "dimension": asked.dimension, "queries": asked.queries}
    if asked.what == "adapters":
        from tests.benchmarks.adapters import measure_adapters

        return figures | measure_adapters(corpus, folder / "adapters.db")
    return figures | measure(corpus, folder / "benchmark.db", rivals=not asked.no_rivals)


def print_indexes(records: int, dimension: int, queries: int, to: Path | None) -> None:
    """Compare the vector indexes, and print a row for each."""
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(Path(folder) / "indexes.db", records, dimension, queries)
    if to is not None:
        figures = {"records": records, "dimension": dimension, "queries": queries, "indexes": rows}
        to.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(f"{records:,} vectors of {dimension} numbers, {queries} queries, {POOL} neighbours each")
    names = list(rows[0])
    print("  ".join(f"{name:>{max(12, len(name))}}" for name in names))
    for row in rows:
        cells = [f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
                 for value in row.values()]  # fmt: skip
        print("  ".join(f"{cell:>{max(12, len(name))}}" for name, cell in zip(names, cells, strict=True)))


def measure(corpus: Corpus, path: Path, *, rivals: bool) -> dict[str, Any]:
    """All figures by name; names end in their unit."""
    dimension = int(corpus.vectors.shape[1])
    figures: dict[str, Any] = {}
    embedder = GivenVectors("benchmark", dimension)
    with twofold.open(path, embedder=embedder) as store:
        started = perf_counter()
        store.add_many(records_of(corpus), batch_size=1000)
        taken = perf_counter() - started
        figures["bulk add, records/s"] = len(corpus.texts) / taken
    bare = bare_insert(zip(corpus.texts, corpus.vectors, strict=True), path.with_name("bare.db"))
    figures["bare SQLite insert, records/s"] = len(corpus.texts) / bare
    figures["bulk add takes longer than bare, times"] = taken / bare
    figures["file, bytes/record"] = path.stat().st_size / len(corpus.texts)
    figures["of which vector, bytes/record"] = 4 * dimension
    figures["open to first answer, s"] = open_to_first_answer(path, corpus)

    with twofold.open(path, embedder=embedder) as store:

        def ask(mode: str) -> Callable[[int], object]:
            return lambda number: store.search(
                corpus.queries[number], vector=None if mode == "keyword" else corpus.query_vectors[number], mode=mode
            )

        contestants: dict[str, Callable[[int], object]] = {
            "hybrid": ask("hybrid"), "keyword": ask("keyword"), "vector": ask("vector"),
        }  # fmt: skip
        if rivals:
            from tests.benchmarks.rivals import ensemble_retriever

            contestants["EnsembleRetriever"] = ensemble_retriever(corpus, k=10)
        settle(ask("hybrid"), len(corpus.queries))
        times = interleaved(contestants, range(len(corpus.queries)))
    for name, taken in times.items():
        figures[f"{name}, median ms"] = statistics.median(taken) * 1000
        figures[f"{name}, p95 ms"] = float(np.quantile(taken, 0.95)) * 1000
    beyond, after = blocked_embedder(corpus)
    figures["embedder hangs: beyond the deadline, ms"] = beyond * 1000
    figures["embedder hangs: the next search, ms"] = after * 1000
    if rivals:
        ratio = statistics.median(times["EnsembleRetriever"]) / statistics.median(times["hybrid"])
        figures["hybrid is faster than EnsembleRetriever, times"] = ratio
    return figures


def settle(ask: Callable[[int], object], queries: int) -> None:
    """Search a little, then wait until what the store reads in the background is there: what is measured is how it goes
    on, how it begins has figures of its own.
    """
    for number in range(min(queries, 20)):
        ask(number)
    for thread in threading.enumerate():
        if thread.name.startswith("twofold-background"):
            thread.join(600)


def records_of(corpus: Corpus) -> Iterable[NewRecord]:
    """The corpus as records with their vectors."""
    for text, vector in zip(corpus.texts, corpus.vectors, strict=True):
        yield NewRecord(text=text, vector=vector)


def open_to_first_answer(path: Path, corpus: Corpus) -> float:
    """Median seconds, of five new processes, from ``open`` to the first hybrid answer; importing is not counted."""
    script = (
        "import sys, json, numpy, twofold; from time import perf_counter; from twofold import GivenVectors;"
        "path, text, vector = sys.argv[1], sys.argv[2], numpy.array(json.loads(sys.argv[3]));"
        "started = perf_counter();"
        "store = twofold.open(path, embedder=GivenVectors('benchmark', len(vector)));"
        "hits = store.search(text, vector=vector);"
        "print(perf_counter() - started); assert hits; store.close()"
    )
    arguments = [
        sys.executable,
        "-c",
        script,
        str(path),
        corpus.queries[0],
        json.dumps(corpus.query_vectors[0].tolist()),
    ]
    times = [float(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return statistics.median(times)


if __name__ == "__main__":
    main()
