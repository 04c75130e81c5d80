"""What figures are set beside: a bare SQLite insert of the same data, and the deadline of an embedder that hangs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from time import perf_counter

from tests.benchmarks.data import Corpus, Floats

import twofold
from twofold import CallableEmbedder, EmbeddingSettings, StoreSettings

__all__ = ["BareFile", "bare_insert", "blocked_embedder"]

_DEADLINE = 0.05  # seconds


class BareFile:
    """Text, words and vectors in three bare tables: no checks, no analysis, no ids of our own.

    Args:
        path: of the file, which is made if it is not there.
        synchronous: SQLite's word for what a commit survives.
    """

    def __init__(self, path: Path, synchronous: str = "NORMAL") -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", f"synchronous = {synchronous}", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        for table in (
            "TABLE IF NOT EXISTS rows (key INTEGER PRIMARY KEY, text TEXT)",
            "TABLE IF NOT EXISTS vectors (key INTEGER PRIMARY KEY, vector BLOB)",
            "VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', tokenize='ascii')",
        ):
            self._connection.execute(f"CREATE {table}")
        self._next = int(self._connection.execute("SELECT coalesce(max(key), -1) + 1 FROM rows").fetchone()[0])

    def add_all(self, records: Iterable[tuple[str, Floats]]) -> None:
        """Texts with their vectors, a thousand a transaction."""
        pairs = iter(records)
        while batch := list(islice(pairs, 1000)):
            self._connection.execute("BEGIN IMMEDIATE")
            for text, vector in batch:
                self._insert(text, vector)
            self._connection.execute("COMMIT")

    def add(self, text: str, vector: Floats) -> None:
        """One, in a transaction of its own."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(text, vector)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    def _insert(self, text: str, vector: Floats) -> None:
        key, self._next = self._next, self._next + 1
        self._connection.execute("INSERT INTO rows VALUES (?, ?)", (key, text))
        self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (key, text))
        self._connection.execute("INSERT INTO vectors VALUES (?, ?)", (key, vector.tobytes()))


def bare_insert(records: Iterable[tuple[str, Floats]], path: Path) -> float:
    """Seconds to put records into a :class:`BareFile`."""
    with closing(BareFile(path)) as file:
        started = perf_counter()
        file.add_all(records)
        return perf_counter() - started


def blocked_embedder(corpus: Corpus) -> tuple[float, float]:
    """With an embedder that hangs: seconds beyond the deadline that the first search takes, and seconds of one that
    comes while the embedder is left alone.
    """
    release = threading.Event()

    def embed(texts: Sequence[str], kind: str) -> list[list[float]]:
        if kind == "query":
            release.wait(60)
        return [[1.0, float(len(text))] for text in texts]

    settings = StoreSettings(embedding=EmbeddingSettings(query_deadline=_DEADLINE, warm_up=0.0, first_pause=60.0))
    with twofold.open(":memory:", embedder=CallableEmbedder(embed, name="hangs"), settings=settings) as store:
        store.add_many(corpus.texts[:1000])
        try:
            times: list[float] = []
            for question in corpus.queries[:2]:
                started = perf_counter()
                if not store.search(question).has("embedder_timeout" if not times else "embedder_unreachable"):
                    raise RuntimeError("the embedder was to hang")
                times.append(perf_counter() - started)
        finally:
            release.set()
    return times[0] - _DEADLINE, times[1]
