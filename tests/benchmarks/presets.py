"""What each preset costs: ``python -m tests.benchmarks.presets [--records 10000] [--dimension 384] [--queries 300]``,
from the top of the repository.

Prints the processor's milliseconds a search, all threads together; the presets answer the same queries turn by turn.
Those that touch what they return are left out: they would change what the others find.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before anything loads OpenMP

from tests.benchmarks.data import Corpus, make_corpus
from tests.benchmarks.timing import interleaved

import twofold
from twofold import PRESETS, GivenVectors, NewRecord, SearchParams

WARM_UP = 20


def costs(corpus: Corpus, path: Path) -> dict[str, list[float]]:
    """Seconds of the processor for each query, by preset."""
    embedder = GivenVectors("benchmark", int(corpus.vectors.shape[1]))
    with twofold.open(path, embedder=embedder) as store:
        store.add_many(
            (NewRecord(text=text, vector=vector) for text, vector in zip(corpus.texts, corpus.vectors, strict=True)),
            batch_size=1000,
        )

        def ask(params: SearchParams, number: int) -> object:
            return store.search(corpus.queries[number], vector=corpus.query_vectors[number], params=params)

        contestants: dict[str, Callable[[int], object]] = {
            name: functools.partial(ask, params) for name, params in PRESETS.items() if not params.touch
        }
        numbers = range(len(corpus.queries))
        interleaved(contestants, numbers[:WARM_UP])
        return interleaved(contestants, numbers, clock=process_time)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.presets", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=300)
    asked = parser.parse_args()
    corpus = make_corpus(asked.records, asked.dimension, asked.queries)
    with tempfile.TemporaryDirectory() as folder:
        found = costs(corpus, Path(folder) / "presets.db")
    plain = statistics.median(found["rrf"])
    print("| preset | median, ms of CPU | against `rrf` |\n|---|---|---|")
    for name, seconds in found.items():
        median = statistics.median(seconds)
        print(f"| `{name}` | {1000 * median:.2f} | {median / plain:.2f} |")


if __name__ == "__main__":
    main()
