"""What figures are set beside: a bare SQLite insert of the same data, and the deadline of an embedder that hangs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from tests.benchmarks.data import Corpus

import twofold
from twofold import CallableEmbedder, EmbeddingSettings, StoreSettings

__all__ = ["bare_insert", "blocked_embedder"]

_DEADLINE = 0.05  # seconds


def bare_insert(corpus: Corpus, path: Path) -> float:
    """Seconds to put text, words and vectors into three bare tables, a thousand records a transaction: no checks, no
    analysis, no ids of our own.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -65536"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE TABLE vectors (key INTEGER PRIMARY KEY, vector BLOB)")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='ascii')")
    started = perf_counter()
    for key, (text, vector) in enumerate(zip(corpus.texts, corpus.vectors, strict=True)):
        if key % 1000 == 0:
            connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (key, text))
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (key, text))
        connection.execute("INSERT INTO vectors VALUES (?, ?)", (key, vector.tobytes()))
        if key % 1000 == 999 or key == len(corpus.texts) - 1:
            connection.execute("COMMIT")
    taken = perf_counter() - started
    connection.close()
    return taken


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
            times = []
            for question in corpus.queries[:2]:
                started = perf_counter()
                if not store.search(question).has("embedder_timeout" if not times else "embedder_unreachable"):
                    raise RuntimeError("the embedder was to hang")
                times.append(perf_counter() - started)
        finally:
            release.set()
    return times[0] - _DEADLINE, times[1]
