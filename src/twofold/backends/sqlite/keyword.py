"""The keyword leg: our tokens in and out of FTS5, BM25, words side by side, and making the index anew.

The table is contentless. A row is taken out by FTS5's 'delete' command with the very tokens that it was put in with,
which the analyser makes again from the stored record; other tokens would leave stale hits behind without any error.
So whoever writes makes sure first that the index is of this analyser's version.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import Fault, driver_errors, fault_of
from twofold.backends.sqlite.migrations import create_keyword_index
from twofold.backends.sqlite.rows import load_fields, row_limit
from twofold.backends.sqlite.schema import fts_columns
from twofold.backends.sqlite.visible import compile_visibility
from twofold.backends.sqlite.visible_keys import Seen
from twofold.config import StoreSettings
from twofold.errors import ConfigurationError, CorruptStoreError
from twofold.ranking import MOST_STRENGTH
from twofold.text import Analyzer, KeywordQuery
from twofold.text.query import Term
from twofold.types import Fields

__all__ = ["KeywordIndex", "Matches", "Tokens", "column_weights", "is_index_fault", "match_expression"]

Tokens: TypeAlias = "tuple[str, ...]"
"""A record's tokens joined by spaces, one text a column of the index."""

Matches: TypeAlias = "npt.NDArray[Any]"
"""Shape (n,), with the columns ``key``, ascending, and ``score``, BM25, higher is better."""

MAX_PAIRS: Final = 16
"""How many neighbouring pairs of a query are looked for."""

_MAX_WEIGHT: Final = 1e6
_FOUND: Final = np.dtype([("key", np.int64), ("score", np.float64)])
_BATCH: Final = 1000
_TABLES: Final = ("fts_postings", "fts_terms", "fts")
_NAME_ALL: Final = f"SELECT 1 FROM {', '.join(_TABLES)} LIMIT 0"


def match_expression(terms: Iterable[Term], operator: Literal["OR", "AND"] = "OR") -> str:
    """FTS5's spelling of the OR (or the AND) of terms. Every token is quoted, so nothing in it is an operator.

    A term of weight n stands there n times: FTS5 sums BM25 over the phrases of a query, however they are joined.
    """
    phrases = (phrase for term in terms for phrase in (_phrase(term.tokens, term.prefix),) * term.weight)
    return f" {operator} ".join(phrases)


def _phrase(tokens: Sequence[str], prefix: bool = False) -> str:  # noqa: FBT001, FBT002 - private, named by its caller
    words = " ".join(tokens).replace('"', '""')
    return f'"{words}"*' if prefix else f'"{words}"'


class KeywordIndex:
    """The keyword index of one file: its SQL, prepared once. Holds no connection, so any thread may use it.

    Raises:
        ConfigurationError: ``settings.field_weights`` names an unknown field, or a weight is beyond 1,000,000.
    """

    def __init__(self, fields: tuple[str, ...], analyzer: Analyzer, settings: StoreSettings) -> None:
        self.analyzer = analyzer
        self._fields = fields
        weights = ", ".join(repr(float(weight)) for weight in column_weights(fields, settings))
        columns = ", ".join(f'"{column}"' for column in fts_columns(fields))
        values = ", ".join("?" * (len(fields) + 2))
        self._add = f"INSERT INTO fts (rowid, {columns}) VALUES ({values})"
        self._remove = f"INSERT INTO fts (fts, rowid, {columns}) VALUES ('delete', {values})"
        score = f"-bm25(fts, {weights})"  # bm25() is lower-is-better; this is the one line that turns its sign
        self._search_all = f"SELECT rowid, {score} FROM fts WHERE fts MATCH ?"
        # CROSS JOIN: FTS5 leads, whatever the planner thinks. ORDER BY rank would compute BM25 for every match.
        self._search_visible = (
            "SELECT r.key, {score} AS score FROM fts CROSS JOIN records r ON r.key = fts.rowid"
            " WHERE fts MATCH ? AND {visible}"
            " ORDER BY score DESC, r.created_at DESC, r.id, r.namespace, r.scope, r.owner LIMIT ?"
        )
        self._score = score
        # twofold.ranking.composite, so that what is cut is cut by the very score
        self._composite = f"{score} * (min(max(0.0, r.strength), {MOST_STRENGTH!r}) * (1 + r.importance))"

    # -- reading --------------------------------------------------------------------------------------------------

    def search(
        self,
        connection: Connection,
        query: KeywordQuery,
        visible: Visibility,
        limit: int,
        *,
        every: bool = False,
        composite: bool = False,
    ) -> list[Candidate]:
        """The best visible records that have any of the terms, by their rows; see :meth:`Reader.keyword`.

        Args:
            connection: in the session's snapshot.
            query: its terms.
            visible: what may be found.
            limit: how many.
            every: only records that have all of the terms.
            composite: whether strength and importance count.
        """
        if not query.terms or limit < 1:
            return []
        match = match_expression(query.terms, "AND" if every else "OR")
        condition = compile_visibility(visible)
        sql = self._search_visible.replace("{visible}", condition.sql)
        sql = sql.replace("{score}", self._composite if composite else self._score)
        return list(map(Candidate._make, connection.execute(sql, (match, *condition.params, row_limit(limit)))))

    def matches(self, connection: Connection, query: KeywordQuery) -> Matches:
        """Every record of the file that has any of the terms, with its BM25, by key; whoever may see it.

        Looking visibility up in a list of keys that is at hand is some times faster than reading the matches' rows.
        """
        if not query.terms:
            return np.empty(0, dtype=_FOUND)
        match = match_expression(query.terms)
        return np.fromiter(connection.execute(self._search_all, (match,)), dtype=_FOUND)

    def adjacent(self, connection: Connection, pairs: Sequence[tuple[str, str]], keys: Sequence[int]) -> dict[int, int]:
        """How many of the first 16 pairs each key holds side by side.

        One MATCH a pair, intersected here: ``rowid IN (...)`` would run the MATCH once for every key.
        """
        found: dict[int, int] = {}
        if not keys:
            return found
        wanted, least, most = set(keys), min(keys), max(keys)
        for pair in pairs[:MAX_PAIRS]:
            rows = connection.execute(
                "SELECT rowid FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ?", (_phrase(pair), least, most)
            )
            for key in wanted.intersection(key for (key,) in rows):
                found[key] = found.get(key, 0) + 1
        return found

    def fields_of(self, connection: Connection, query: KeywordQuery, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Which fields of each key hold any of the terms; see :meth:`Reader.keyword_fields`.

        One MATCH a field, intersected here, as for :meth:`adjacent`.
        """
        found: dict[int, tuple[str, ...]] = {}
        if not query.terms or not keys:
            return found
        wanted, least, most = set(keys), min(keys), max(keys)
        anything = match_expression(query.terms)
        for field, column in zip(self._fields, fts_columns(self._fields), strict=False):  # the last one is the tags
            rows = connection.execute(
                "SELECT rowid FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ?",
                (f'"{column}" : ({anything})', least, most),
            )
            for key in wanted.intersection(key for (key,) in rows):
                found[key] = (*found.get(key, ()), field)
        return found

    def occurs(self, connection: Connection, word: str, seen: Seen) -> bool:
        """Whether a visible record has this token. Mostly the first one that has it is visible."""
        rows = connection.execute("SELECT rowid FROM fts WHERE fts MATCH ?", (_phrase((word,)),))
        while batch := rows.fetchmany(_BATCH):
            if seen.among(np.array(batch, dtype=np.int64)[:, 0]).any():
                return True
        return False

    def document_frequencies(self, connection: Connection, tokens: Sequence[str]) -> dict[str, int]:
        """In how many records each token occurs; those that occur nowhere are left out."""
        rows = connection.execute(
            "SELECT t.term, t.doc FROM json_each(?) j CROSS JOIN fts_terms t ON t.term = j.value",
            (json.dumps(list(tokens), ensure_ascii=False),),
        )
        return dict(rows)

    # -- writing --------------------------------------------------------------------------------------------------

    def tokens(self, fields: Fields, tags: Iterable[str]) -> Tokens:
        """A record's tokens, one text a column. Each part and each tag is analysed by itself."""
        return (*[self._joined(fields.get(name, "")) for name in self._fields], self._joined(tuple(tags)))

    def add(self, connection: Connection, records: Iterable[tuple[int, Tokens]]) -> None:
        """Put records' tokens in, by key.

        Raises:
            CorruptStoreError: the index is damaged.
        """
        with _naming_the_repair():
            connection.executemany(self._add, [(key, *tokens) for key, tokens in records])

    def remove(self, connection: Connection, key: int, tokens: Tokens) -> None:
        """Take a record's tokens out: the same that were put in.

        Raises:
            CorruptStoreError: the index is damaged.
        """
        with _naming_the_repair():
            connection.execute(self._remove, (key, *tokens))

    def rebuild(self, connection: Connection) -> None:
        """Make the whole index anew from the rows, within the transaction that is open."""
        if self.exists(connection):
            connection.execute("INSERT INTO fts (fts) VALUES ('delete-all')")
        else:
            self.recreate(connection)
        for key, tokens in self.stored_tokens(connection):
            connection.execute(self._add, (key, *tokens))

    def recreate(self, connection: Connection) -> None:
        """Drop what there is of the index's tables and make them anew, empty."""
        tables = _tables(connection)
        if "fts" in tables and _has_table(connection, "fts_data"):
            # A table whose structure record cannot be read cannot even be dropped (SQLite 3.40): an empty one can.
            connection.execute("REPLACE INTO fts_data (id, block) VALUES (10, zeroblob(7))")
        for name in tables:
            connection.execute(f"DROP TABLE {name}")
        create_keyword_index(connection, self._fields)

    def exists(self, connection: Connection) -> bool:
        """Whether all of the index's tables are there."""
        try:  # every write asks: what names them costs a third of what looks them up, and reads nothing of them
            connection.execute(_NAME_ALL)
        except driver_errors():  # one is missing, or damaged
            return len(_tables(connection)) == len(_TABLES)
        return True

    def stored_tokens(self, connection: Connection) -> Iterator[tuple[int, Tokens]]:
        """Every record's tokens, made again from its row, by ascending key."""
        rows = connection.execute("SELECT key, fields, tags FROM records ORDER BY key")
        while batch := rows.fetchmany(_BATCH):
            for key, fields, tags in batch:
                yield key, self.tokens(load_fields(fields), json.loads(tags))

    def _joined(self, text: str | tuple[str, ...]) -> str:
        if isinstance(text, str):
            return self.analyzer.joined(text)
        return " ".join(filter(None, map(self.analyzer.joined, text))) if text else ""


class _naming_the_repair:  # noqa: N801 - it reads as what is done
    """What FTS5 says of an index that it cannot write helps nobody."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, driver_errors()) and is_index_fault(error):
            raise CorruptStoreError(
                f"the keyword index is damaged, so nothing was written; make it anew with reindex() (SQLite: {error})"
            ) from error


def is_index_fault(error: Exception) -> bool:
    """Whether a driver's error says that the keyword index is damaged, or that it or FTS5 is not there."""
    text = str(error)
    return fault_of(error) in (Fault.CORRUPT, Fault.KEYWORD_INDEX) or text.startswith(
        (
            "no such table: fts",
            "no such table: main.fts",
            "no such column: fts",
            "no such fts5 table",
            "no such module: fts5",
            "vtable constructor failed: fts",
        )
    )


def _has_table(connection: Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is not None


def _tables(connection: Connection) -> list[str]:
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return [name for name in _TABLES if name in present]


def column_weights(fields: tuple[str, ...], settings: StoreSettings) -> tuple[float, ...]:
    """How much a word counts in each column of the index: the fields, then the tags.

    Raises:
        ConfigurationError: ``settings.field_weights`` names an unknown field, or a weight is beyond 1,000,000.
    """
    weights: Mapping[str, float] = settings.field_weights
    unknown = sorted(weights.keys() - set(fields))
    if unknown:
        raise ConfigurationError(
            f"field_weights names {', '.join(map(repr, unknown))}; the fields of this store are {', '.join(fields)}"
        )
    values = (*(weights.get(name, 1.0) for name in fields), settings.tag_weight)
    if not all(math.isfinite(value) and value <= _MAX_WEIGHT for value in values):
        raise ConfigurationError(f"a weight in field_weights, and tag_weight, is at most {_MAX_WEIGHT:,.0f}")
    return values
