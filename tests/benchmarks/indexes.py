"""The vector indexes side by side, on one file and in one run."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.benchmarks.data import make_vectors
from tests.benchmarks.timing import interleaved

from twofold import Access, F, SearchParams, StoreSettings
from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.config import INDEXES
from twofold.testing.records import NEW_YEAR, make_record
from twofold.testing.records import make_vectors as vectors_of

__all__ = ["POOL", "compare"]

POOL = SearchParams().pool
EVERYTHING = Visibility(Access.everything(), NEW_YEAR)
TENTH = Visibility(Access.everything(), NEW_YEAR, F("tenth") == 0)
HUNDREDTH = Visibility(Access.everything(), NEW_YEAR, F("hundredth") == 0)


def compare(path: Path, records: int, dimension: int, queries: int) -> list[dict[str, Any]]:
    """A row for each index that can be loaded: seconds to be ready (from the file's rows, as after a first opening),
    median milliseconds of a search of the leg for ``POOL`` candidates among all records, a tenth and a hundredth of
    them, recall of the 10 nearest against the exact scan, and bytes in memory (of sqlite-vec: in the file).

    All are opened with one SQLite library, as they share the file.
    """
    vectors, asked = make_vectors(records, dimension, queries)
    driver = "auto" if importlib.util.find_spec("pysqlite3") is None else "pysqlite3"
    with closing(SqliteBackend.open(path, settings=StoreSettings(index="exact", driver=driver))) as backend:
        fill(backend, vectors)
    rows: list[dict[str, Any]] = []
    contestants: dict[str, SqliteBackend] = {}
    with ExitStack() as stack:
        for name in (each for each in INDEXES if each != "auto"):
            before = path.stat().st_size
            started = perf_counter()
            backend = SqliteBackend.open(path, settings=StoreSettings(index=name, driver=driver))
            stack.enter_context(closing(backend))
            if backend.info().details["vector_index"] != name:
                continue
            nearest(backend, asked[0], EVERYTHING)
            ready = perf_counter() - started
            with backend._file.pool.exclusive() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            newest = backend._parts.vectors.indexes._newest()
            size = path.stat().st_size - before if newest is None else int(newest[1].nbytes)
            contestants[name] = backend
            rows.append({"index": name, "ready, s": ready, "bytes": size})
        for column, visible in (("all, ms", EVERYTHING), ("a tenth, ms", TENTH), ("a hundredth, ms", HUNDREDTH)):
            times = interleaved(
                {name: asking(each, asked, visible) for name, each in contestants.items()}, range(queries)
            )
            for row in rows:
                row[column] = statistics.median(times[row["index"]]) * 1000
        for column, visible in (("recall, all", EVERYTHING), ("recall, a tenth", TENTH)):
            truth = [set(nearest(contestants["exact"], query, visible)[:10]) for query in asked]
            for row in rows:
                found = [set(nearest(contestants[row["index"]], query, visible)[:10]) for query in asked]
                row[column] = sum(len(one & other) for one, other in zip(found, truth, strict=True)) / (10 * queries)
    return rows


def fill(backend: SqliteBackend, vectors: npt.NDArray[np.float32]) -> None:
    """Write the vectors as records."""
    with backend.write() as writer:
        writer.adopt("benchmark", vectors.shape[1])
        for number, vector in enumerate(vectors):
            metadata = {"tenth": number % 10, "hundredth": number % 100}
            record = make_record(f"{number:07}", f"t{number}", attributes={"metadata": metadata})
            writer.insert(record, vectors_of(record, {"text": vector[np.newaxis]}))


def asking(backend: SqliteBackend, asked: npt.NDArray[np.float32], visible: Visibility) -> Callable[[int], object]:
    """A contestant of :func:`interleaved`."""
    return lambda number: nearest(backend, asked[number], visible)


def nearest(backend: SqliteBackend, query: npt.NDArray[np.float32], visible: Visibility) -> list[int]:
    """The keys that the vector leg finds."""
    with backend.read() as reader:
        return [each.key for each in reader.nearest(query, visible, POOL).candidates]
