"""What FTS5 knows of its words and records, read out of it: who holds what how often, and how long each record is."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.rows import load_fields
from twofold.backends.sqlite.schema import fts_columns
from twofold.backends.sqlite.visible_keys import Keys
from twofold.postings import IndexBuilder, weighted_frequencies
from twofold.types import Fields

__all__ = ["ChangedRecord", "Lengths", "PostingsReader", "Totals", "WordsRead", "keeps_order"]

TOKENS_AT_A_TIME: Final = 50_000
"""So many are read in one session, and the rest of the last word: some 15 ms; 0.4 s where a million records hold it."""

RECORDS_AT_A_TIME: Final = 50_000
"""Of so many the lengths are read in one session."""

Floats: TypeAlias = "npt.NDArray[np.float64]"
Lengths: TypeAlias = "npt.NDArray[np.uint32]"

_SCORED: Final = np.dtype([("key", np.int64), ("score", np.float64)])
_TEXT_AT_A_TIME: Final = 400_000
_LEAST_WEIGHT: Final = 1e-15
_SIZE: Final = "SELECT id, sz FROM fts_docsize"


def keeps_order(weights: Sequence[float]) -> bool:
    """Whether what words of these weights gain can be told apart in float32, by which the best are looked for."""
    return all(weight == 0 or weight >= _LEAST_WEIGHT for weight in weights)


class Totals(NamedTuple):
    """What all records have together."""

    records: int
    tokens: int


class ChangedRecord(NamedTuple):
    """What a record holds that was written since."""

    length: int
    """Its tokens."""
    frequencies: Mapping[str, float]
    """By word how often it holds it, weighted."""


class WordsRead(NamedTuple):
    """Postings as they were read."""

    words: list[str]
    counts: list[int]
    """By word how many tokens there are of it."""
    numbers: list[str]
    """By word, for each of these tokens, the record's key and the column as one number."""


class PostingsReader:
    """The SQL of one file's postings. Holds no connection.

    Args:
        fields: the file's.
        weights: by column of the index, what a word in it counts.
        tokens: a record's tokens, one text a column.
    """

    def __init__(
        self,
        fields: tuple[str, ...],
        weights: Sequence[float],
        tokens: Callable[[Fields, Sequence[str]], Sequence[str]],
    ) -> None:
        self._weights = tuple(weights)
        self._tokens = tokens
        columns = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(fts_columns(fields)))
        # One text of numbers a word: several times quicker than a row a time. FTS5 gives the words in their order.
        self._words = (
            f"SELECT term, count(*), group_concat(doc * {len(self._weights)} + CASE col {columns} END, ' ')"
            " FROM fts_postings WHERE term >= ? GROUP BY term"
        )
        bound = ", ".join(repr(float(weight)) for weight in weights)
        self._phrase = f"SELECT rowid, -bm25(fts, {bound}) FROM fts WHERE fts MATCH ?"

    def totals(self, connection: Connection) -> Totals | None:
        """How many records the index holds, and how many tokens; FTS5 keeps both as the first record of its data.

        Returns:
            None if there are no tokens.
        """
        row = connection.execute("SELECT block FROM fts_data WHERE id = 1").fetchone()
        if row is None or not row[0]:
            return None
        records, *tokens = _varints(row[0]).tolist()
        return Totals(records, sum(tokens)) if records and sum(tokens) else None

    def lengths_after(self, connection: Connection, last: int) -> tuple[Keys, Lengths]:
        """The keys above ``last`` of some records, ascending, and their tokens; none: there are no more."""
        sql = f"{_SIZE} WHERE id > ? ORDER BY id LIMIT ?"
        return self._decoded(connection.execute(sql, (last, RECORDS_AT_A_TIME)).fetchall())

    def words_after(self, connection: Connection, last: str | None) -> WordsRead | None:
        """The postings of the words after ``last``, as many as are read at a time; None: there are no more."""
        read = WordsRead([], [], [])
        tokens = 0
        # The next word in the order of bytes is the same with a NUL behind it.
        for word, count, numbers in connection.execute(self._words, ("" if last is None else f"{last}\0",)):
            read.words.append(word)
            read.counts.append(count)
            read.numbers.append(numbers)
            tokens += count
            if tokens >= TOKENS_AT_A_TIME:
                break
        return read if read.words else None

    def give(self, read: WordsRead, builder: IndexBuilder) -> None:
        """Give ``builder`` what was read."""
        words, counts, numbers = read
        held = _numbers(" ".join(numbers))
        keys, columns = np.divmod(held, np.int64(len(self._weights)))
        word_of = np.repeat(np.arange(len(words)), counts)
        first = np.ones(len(held), dtype=np.bool_)
        first[1:] = (keys[1:] != keys[:-1]) | (word_of[1:] != word_of[:-1])
        times = np.zeros((int(np.count_nonzero(first)), len(self._weights)), dtype=np.int64)
        np.add.at(times, (np.cumsum(first) - 1, columns), 1)
        ends = np.cumsum(np.bincount(word_of[first], minlength=len(words)))
        builder.add(words, ends, keys[first], weighted_frequencies(times, self._weights))

    def changed(self, connection: Connection, since: int, most: int) -> Keys | None:
        """The records that were written or deleted since, ascending; None if there are more than ``most``."""
        rows = connection.execute(
            "SELECT key FROM records WHERE generation > :since UNION ALL"
            " SELECT key FROM tombstones WHERE generation > :since LIMIT :most + 1",
            {"since": since, "most": most},
        ).fetchall()
        if len(rows) > most:
            return None
        return np.unique(np.fromiter((key for (key,) in rows), dtype=np.int64, count=len(rows)))

    def phrase(self, connection: Connection, match: str) -> tuple[Keys, Floats]:
        """Who holds a phrase, by key, and what each gains by it."""
        rows = np.fromiter(connection.execute(self._phrase, (match,)), dtype=_SCORED)
        rows.sort(order="key")
        return np.ascontiguousarray(rows["key"]), np.ascontiguousarray(rows["score"])

    def records(self, connection: Connection, keys: Keys) -> dict[int, ChangedRecord | None]:
        """What these records hold, by key; None: it is gone.

        Raises:
            ValueError: the keyword index does not have one of them.
        """
        found: dict[int, ChangedRecord | None] = dict.fromkeys(keys.tolist())
        wanted = json.dumps(keys.tolist())
        sizes = connection.execute(f"{_SIZE} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (wanted,))
        lengths = dict(zip(*(part.tolist() for part in self._decoded(sizes.fetchall())), strict=True))
        rows = connection.execute(
            "SELECT key, fields, tags FROM records WHERE key IN (SELECT value FROM json_each(?))", (wanted,)
        )
        for key, fields, tags in rows.fetchall():
            if key not in lengths:
                raise ValueError("the keyword index lacks a record")
            counters = [Counter(column.split()) for column in self._tokens(load_fields(fields), json.loads(tags))]
            words = list(set().union(*counters))
            times = np.array([[each[word] for each in counters] for word in words], dtype=np.int64)
            frequencies = weighted_frequencies(times.reshape(-1, len(self._weights)), self._weights)
            found[key] = ChangedRecord(lengths[key], dict(zip(words, frequencies.tolist(), strict=True)))
        return found

    def _decoded(self, rows: Sequence[tuple[int, bytes]]) -> tuple[Keys, Lengths]:
        """Keys, and tokens of all columns, of rows of ``fts_docsize``."""
        keys = np.array([key for key, _ in rows], dtype=np.int64)
        sizes = _varints(b"".join([size for _, size in rows])).reshape(len(rows), len(self._weights))
        return keys, sizes.sum(axis=1).astype(np.uint32)


def _numbers(text: str) -> Keys:
    """The numbers in a text, some at a time: meanwhile no other thread gets its turn."""
    parts, start = [np.empty(0, dtype=np.int64)], 0
    while start < len(text):
        space = text.find(" ", start + _TEXT_AT_A_TIME)
        end = len(text) if space < 0 else space
        parts.append(np.fromstring(text[start:end], dtype=np.int64, sep=" "))
        start = end
    return np.concatenate(parts)


def _varints(data: bytes) -> npt.NDArray[Any]:
    """SQLite's numbers of variable length: seven bits a byte, the highest first, the last byte below 128."""
    raw = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
    ends = np.flatnonzero(raw < 128)
    longest = np.diff(ends, prepend=-1)
    values = raw[ends]
    for back in range(1, int(longest.max(initial=1))):
        longer = longest > back
        values[longer] += (raw[ends[longer] - back] & 127) << (7 * back)
    return values
