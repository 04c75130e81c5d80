"""A keyword index in memory: the real table, our tokens, OR of quoted phrases, bm25."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import pytest

from twofold.backends.sqlite.schema import fts_ddl
from twofold.text import Analyzer, Term


class KeywordIndex:
    """Finds texts by keyword, without the re-ordering by neighbours."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.names: list[str] = []
        self.connection = sqlite3.connect(":memory:")
        for statement in fts_ddl(("text",)):
            self.connection.execute(statement)

    def add(self, **texts: str) -> None:
        for name, text in texts.items():
            self.names.append(name)
            row = (len(self.names), " ".join(self.analyzer.tokens(text)))
            self.connection.execute("INSERT INTO fts (rowid, f_text, tags) VALUES (?, ?, '')", row)

    def scored(self, query: str) -> list[tuple[str, float]]:
        terms = self.analyzer.query(query).terms
        if not terms:
            return []
        match = " OR ".join(self._quoted(term) for term in terms for _ in range(term.weight))
        rows = self.connection.execute(
            "SELECT rowid, -bm25(fts) AS score FROM fts WHERE fts MATCH ? ORDER BY score DESC, rowid", (match,)
        )
        return [(self.names[row - 1], score) for row, score in rows]

    def find(self, query: str) -> list[str]:
        return [name for name, _ in self.scored(query)]

    def indexed(self) -> set[str]:
        """The tokens as FTS5 cut them."""
        return {token for (token,) in self.connection.execute("SELECT term FROM fts_terms")}

    @staticmethod
    def _quoted(term: Term) -> str:
        phrase = " ".join(term.tokens).replace('"', '""')
        return f'"{phrase}"' + "*" * term.prefix


@pytest.fixture
def index_of() -> Iterator[Callable[..., KeywordIndex]]:
    opened: list[KeywordIndex] = []

    def make(language: str = "english", **texts: str) -> KeywordIndex:
        index = KeywordIndex(Analyzer(language))
        index.add(**texts)
        opened.append(index)
        return index

    yield make
    for index in opened:
        index.connection.close()
