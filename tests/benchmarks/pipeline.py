"""What people write themselves: FTS5 and FAISS side by side, fused by rank, without a library in between.

Nothing here is slower than it need be: one connection, statements that SQLite keeps prepared, one thread, a log
instead of a journal. It asks FTS5 for all words of the question and lets it order by ``rank``, scans all vectors,
fetches a row for each hit, and writes down at once that the hits were used. Needs numpy and FAISS alone.
"""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.benchmarks.collection import Collection
from tests.benchmarks.data import Floats

__all__ = ["PlainPipeline", "flat_index", "or_of_words"]

_CANDIDATES: Final = 30
_HITS: Final = 10
_RRF_K: Final = 60
_WORD: Final = re.compile(r"\w+")


class PlainPipeline:
    """Over a file of its own.

    Args:
        collection: what is stored.
        path: of the file, which is made if it is not there.
    """

    def __init__(self, collection: Collection, path: Path) -> None:
        is_new = not path.exists()
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        if is_new:
            self._fill(collection)
        self._index = flat_index(collection)

    def _fill(self, collection: Collection) -> None:
        self._connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, text TEXT, access_count INTEGER, last_accessed REAL)"
        )
        self._connection.execute(
            "CREATE VIRTUAL TABLE words"
            " USING fts5(text, content='memories', content_rowid='id', tokenize='porter unicode61')"
        )
        first = 0
        for texts, _ in collection.blocks():
            rows = list(enumerate(texts, first))
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO memories VALUES (?, ?, 0, 0.0)", rows)
            self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")
            first += len(texts)

    def search(self, text: str, vector: Floats) -> list[tuple[int, str]]:
        """Ids and texts of the best, at most ten."""
        scores: dict[int, float] = {}
        matched = self._connection.execute(
            f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT {_CANDIDATES}", (or_of_words(text),)
        )
        nearest = self._index.search(vector[np.newaxis], _CANDIDATES)[1][0].tolist()
        for found in ([key for (key,) in matched], nearest):
            for rank, key in enumerate(found, start=1):
                scores[key] = scores.get(key, 0.0) + 1 / (_RRF_K + rank)
        best = sorted(scores, key=lambda key: -scores[key])[:_HITS]
        hits = [
            self._connection.execute("SELECT id, text FROM memories WHERE id = ?", (key,)).fetchone() for key in best
        ]
        now = time.time()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "UPDATE memories SET access_count = access_count + 1, last_accessed = ? WHERE id = ?",
            [(now, key) for key in best],
        )
        self._connection.execute("COMMIT")
        return hits

    def close(self) -> None:
        self._connection.close()


def or_of_words(text: str) -> str:
    """FTS5's spelling of any of a text's words."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(text.lower())))


def flat_index(collection: Collection) -> Any:
    """FAISS's exact scan of all vectors, on one thread in the thread that calls this."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(collection.dimension)
    for _, vectors in collection.blocks():
        index.add(vectors)
    return index
