"""The keyword leg in memory: the postings of the words that were asked for, read from FTS5 once and then kept up.

What FTS5 counts again for every query (who holds a word, how often, how long each record is) stays here, by
generation. Answers are those of FTS5 to the last bit; where they could not be, there are none and FTS5 is asked.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.rows import load_fields
from twofold.backends.sqlite.schema import fts_columns
from twofold.backends.sqlite.visible_keys import Keys, Seen, changed_since
from twofold.postings import (
    Postings,
    best_of_terms,
    contributions,
    inverse_document_frequency,
    length_norms,
    weighted_frequencies,
)
from twofold.text.query import Term
from twofold.types import Fields

__all__ = ["POSTINGS_FROM", "Holders", "PostingsCache"]

MAX_CACHED_BYTES: Final = 128 * 1024 * 1024
"""How much the kept postings may take."""

POSTINGS_FROM: Final = 1_000
"""Visible records from which on this is worth its while; of fewer, FTS5 is as quick."""

MAX_READ_AHEAD: Final = 500_000
"""Tokens of a file up to which all words are read at once, in a fraction of a second, when a second query shows that
more will come."""

MAX_CHANGES: Final = 2_000
"""Of more changed records, all is read anew."""

_BYTES: Final = 24  # of a posting: slot, frequency, contribution
_SCORED: Final = np.dtype([("key", np.int64), ("score", np.float64)])
_KEYS: Final = 1 << 40  # more than there are keys
_SIZE: Final = "SELECT id, sz FROM fts_docsize"

Asked: TypeAlias = "tuple[tuple[str, ...], bool]"
"""The tokens of a term, and whether the last is only the beginning of one."""

Floats: TypeAlias = "npt.NDArray[np.float64]"

_Counts: TypeAlias = "Mapping[str, tuple[int, ...]]"
"""By token, how often each column of a record holds it."""


@dataclass(frozen=True, eq=False)
class _Lengths:
    """How long each record is, at one generation. A record keeps its slot for good."""

    generation: int
    keys: Keys
    """Ascending; of those that are gone too."""
    lengths: Floats
    """Tokens."""
    records: int
    """How many there are."""
    tokens: int
    """Of all of them."""

    @cached_property
    def norms(self) -> Floats:
        """See :func:`twofold.postings.length_norms`."""
        return length_norms(self.lengths, self.tokens / self.records)

    def slots(self, keys: Keys) -> Keys | None:
        """Where ``keys`` are; None if one of them is nowhere."""
        slots = np.searchsorted(self.keys, keys)
        if len(slots) and (slots.max() == len(self.keys) or not np.array_equal(self.keys[slots], keys)):
            return None
        return slots


@dataclass(frozen=True, eq=False)
class _Kept:
    """The postings of one term at one generation."""

    generation: int
    slots: Keys
    frequencies: Floats | None
    """None: of a phrase, whose contributions are FTS5's own and end with the generation."""
    scored: Postings


@dataclass(frozen=True, eq=False)
class _All:
    """The postings of every word, at one generation; each word's stand one after the other."""

    generation: int
    places: Mapping[str, int]
    """By word, which it is."""
    ends: Keys
    slots: Keys
    frequencies: Floats
    contributions: Floats

    def of(self, word: str) -> _Kept:
        """Those of one word; of a word that is not there, none."""
        place = self.places.get(word)
        own = slice(0, 0) if place is None else slice(self.ends[place - 1] if place else 0, self.ends[place])
        slots = self.slots[own]
        return _Kept(self.generation, slots, self.frequencies[own], Postings(slots, self.contributions[own]))


@dataclass(frozen=True, eq=False)
class Holders:
    """Who holds the terms of a query."""

    lengths: _Lengths
    terms: Sequence[Postings]
    """In order; one that counts twice stands here twice."""

    def scores(self, keys: Keys) -> Floats:
        """The BM25 of each of ``keys``, 0 of those that hold none of the terms."""
        slots = np.searchsorted(self.lengths.keys, keys)
        slots[slots == len(self.lengths.keys)] = 0
        scores = np.zeros(len(keys))
        for term in self.terms:
            scores += term.of(slots)
        return np.where(self.lengths.keys[slots] == keys, scores, 0.0)


class PostingsCache:
    """The postings of one file, for all its threads; the least used are dropped.

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
        # One text of numbers: several times quicker than a row a time.
        place = f"* {len(self._weights)} + CASE t.col {columns} END, ' '"
        self._holders = (
            f"SELECT group_concat((j.key * {_KEYS} + t.doc) {place})"
            " FROM json_each(?) j CROSS JOIN fts_postings t ON t.term = j.value"
        )
        self._everything = f"SELECT group_concat(t.doc {place}) FROM fts_postings t"
        bound = ", ".join(repr(float(weight)) for weight in weights)
        self._phrase_holders = f"SELECT rowid, -bm25(fts, {bound}) FROM fts WHERE fts MATCH ?"
        self._lock = threading.Lock()
        self._lengths: _Lengths | None = None
        self._kept: OrderedDict[Asked, _Kept] = OrderedDict()  # the last used last
        self._all: _All | None = None
        self._queries = 0  # since all was read anew
        self._bytes = 0
        self._changes: list[tuple[int, dict[int, _Counts]]] = []  # by generation: what changed slots hold since
        self._oldest = 0  # changes are known from this generation on
        self._among: WeakKeyDictionary[Seen, tuple[_Lengths, npt.NDArray[np.bool_] | None]] = WeakKeyDictionary()

    def holders(
        self, connection: Connection, head: Head, terms: Sequence[Term], match: Callable[[Sequence[Term]], str]
    ) -> Holders | None:
        """Who holds the terms of a query, in order.

        Args:
            connection: in the session's snapshot.
            head: of the session.
            terms: of the query.
            match: FTS5's spelling of terms.

        Returns:
            None where FTS5 must be asked: in a session that has written something or is behind, or of an index that
            contradicts itself.
        """
        if head.changed:
            return None
        with self._lock:
            lengths = self._at(connection, head)
            if lengths is None:
                return None
            self._queries += 1
            if self._queries == 2 and lengths.tokens <= MAX_READ_AHEAD:
                self._all = self._read_all(connection, lengths)
            found = self._of(connection, lengths, terms, match)
        if found is None:
            return None
        return Holders(lengths, [found[_asked(term)].scored for term in terms for _ in range(term.weight)])

    def best(self, holders: Holders, seen: Seen, limit: int) -> tuple[Keys, Floats]:
        """Keys and scores of visible records, the ``limit`` best and those tied with the last of them included.

        Args:
            holders: of the query's terms.
            seen: who is visible.
            limit: how many are wanted, at least 1.
        """
        lengths = holders.lengths
        slots, scores = best_of_terms(holders.terms, len(lengths.keys), self._mask(lengths, seen), limit)
        return lengths.keys[slots], scores

    def occurring(self, holders: Holders, seen: Seen) -> list[bool]:
        """Which terms any visible record holds, in the order of ``holders``."""
        mask = self._mask(holders.lengths, seen)
        return [bool(len(term.slots) if mask is None else mask[term.slots].any()) for term in holders.terms]

    # -- who is how long ------------------------------------------------------------------------------------------

    def _at(self, connection: Connection, head: Head) -> _Lengths | None:
        known = self._lengths
        if known is not None and known.generation == head.generation:
            return known
        if known is not None and known.generation > head.generation:
            return None
        fresh = None
        if known is not None and head.pruned <= known.generation:
            changed = changed_since(connection, known.generation)
            if len(changed) <= MAX_CHANGES:
                fresh = self._brought_up(connection, head, known, np.sort(changed))
        if fresh is None:
            fresh = _all_lengths(connection, head, len(self._weights))
            self._kept.clear()
            self._changes.clear()
            self._all = None
            self._bytes, self._oldest, self._queries = 0, head.generation, 0
        self._lengths = fresh if fresh is not None and fresh.records and fresh.tokens else None
        return self._lengths

    def _brought_up(self, connection: Connection, head: Head, known: _Lengths, changed: Keys) -> _Lengths | None:
        """``known`` with what was changed since, which is noted; None if that cannot be done."""
        if sum(len(each) for _, each in self._changes) + len(changed) > MAX_CHANGES:
            return None
        wanted = json.dumps(changed.tolist())
        sizes = connection.execute(f"{_SIZE} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (wanted,))
        keys, lengths = _decoded(sizes.fetchall(), len(self._weights))
        new = keys[keys > known.keys[-1]] if len(known.keys) else keys
        all_keys = np.concatenate([known.keys, new])
        all_lengths = np.concatenate([known.lengths, np.zeros(len(new))])
        totals = _totals(connection)
        if totals is None:
            return None
        fresh = _Lengths(head.generation, all_keys, all_lengths, *totals)
        slots = fresh.slots(keys)
        if slots is None:
            return None
        gone = np.searchsorted(all_keys, np.intersect1d(np.setdiff1d(changed, keys), all_keys))
        all_lengths[gone] = 0.0
        all_lengths[slots] = lengths
        held: dict[int, _Counts] = {slot: {} for slot in gone.tolist()}
        rows = connection.execute(
            "SELECT key, fields, tags FROM records WHERE key IN (SELECT value FROM json_each(?))", (wanted,)
        )
        for key, fields, tags in rows.fetchall():
            slot = int(np.searchsorted(all_keys, key))
            held[slot] = _counted(self._tokens(load_fields(fields), json.loads(tags)))
        self._changes.append((head.generation, held))
        return fresh

    def _mask(self, lengths: _Lengths, seen: Seen) -> npt.NDArray[np.bool_] | None:
        """Which slots are visible; None: all."""
        with self._lock:
            known = self._among.get(seen)
        if known is not None and known[0] is lengths:
            return known[1]
        mask = None if np.array_equal(seen.keys, lengths.keys) else seen.among(lengths.keys)
        with self._lock:
            self._among[seen] = (lengths, mask)
        return mask

    # -- who holds what -------------------------------------------------------------------------------------------

    def _of(
        self,
        connection: Connection,
        lengths: _Lengths,
        terms: Sequence[Term],
        match: Callable[[Sequence[Term]], str],
    ) -> dict[Asked, _Kept] | None:
        """Who holds each of the terms: as kept, brought up to date, or read now."""
        found: dict[Asked, _Kept] = {}
        unknown: list[Asked] = []
        for term in terms:
            asked = _asked(term)
            kept = self._kept.get(asked)
            if kept is None and self._all is not None and _is_word(term):
                kept = self._all.of(term.tokens[0])
            if kept is not None and kept.generation == lengths.generation:
                found[asked] = kept
            elif kept is not None and kept.frequencies is not None and kept.generation >= self._oldest:
                found[asked] = self._changed(kept.slots, kept.frequencies, kept.generation, term.tokens[0], lengths)
            elif _is_word(term):
                unknown.append(asked)
            else:
                phrase = self._read_phrase(connection, lengths, match([replace(term, weight=1)]))
                if phrase is None:
                    return None
                found[asked] = phrase
        if unknown:
            read = self._read(connection, lengths, [tokens[0] for tokens, _ in unknown])
            if read is None:
                return None
            found.update(zip(unknown, read, strict=True))
        for asked, kept in found.items():
            self._keep(asked, kept)
        return found

    def _read(self, connection: Connection, lengths: _Lengths, words: Sequence[str]) -> list[_Kept] | None:
        (numbers,) = connection.execute(self._holders, (json.dumps(words, ensure_ascii=False),)).fetchone()
        held, columns = np.divmod(
            np.sort(np.fromstring(numbers or "", dtype=np.int64, sep=" ")), np.int64(len(self._weights))
        )
        first = np.ones(len(held), dtype=np.bool_)
        np.not_equal(held[1:], held[:-1], out=first[1:])
        word_of, keys = np.divmod(held[first], np.int64(_KEYS))
        slots = lengths.slots(keys)
        if slots is None:
            return None
        counts = np.zeros((len(slots), len(self._weights)), dtype=np.int64)
        np.add.at(counts, (np.cumsum(first) - 1, columns), 1)
        ends = np.searchsorted(word_of, np.arange(len(words)), side="right")
        return _scored(lengths, slots, weighted_frequencies(counts, self._weights), ends)

    def _read_all(self, connection: Connection, lengths: _Lengths) -> _All | None:
        """The postings of every word, several times quicker than word by word; None of a file that has changed."""
        words = connection.execute("SELECT term, doc, cnt FROM fts_terms").fetchall()
        (numbers,) = connection.execute(self._everything).fetchone()
        held, columns = np.divmod(np.fromstring(numbers or "", dtype=np.int64, sep=" "), np.int64(len(self._weights)))
        word_of = np.repeat(np.arange(len(words)), [count for _, _, count in words])
        if len(word_of) != len(held):
            return None
        first = np.ones(len(held), dtype=np.bool_)
        first[1:] = (held[1:] != held[:-1]) | (word_of[1:] != word_of[:-1])
        slots = lengths.slots(held[first])
        if slots is None:
            return None
        counts = np.zeros((len(slots), len(self._weights)), dtype=np.int64)
        np.add.at(counts, (np.cumsum(first) - 1, columns), 1)
        frequencies = weighted_frequencies(counts, self._weights)
        ends = np.cumsum([holding for _, holding, _ in words])
        return _All(
            lengths.generation,
            {word: place for place, (word, _, _) in enumerate(words)},
            ends,
            slots,
            frequencies,
            _contributions(lengths, slots, frequencies, ends),
        )

    def _read_phrase(self, connection: Connection, lengths: _Lengths, match: str) -> _Kept | None:
        rows = np.fromiter(connection.execute(self._phrase_holders, (match,)), dtype=_SCORED)
        rows.sort(order="key")
        slots = lengths.slots(np.ascontiguousarray(rows["key"]))
        if slots is None:
            return None
        return _Kept(lengths.generation, slots, None, Postings(slots, np.ascontiguousarray(rows["score"])))

    def _changed(self, slots: Keys, frequencies: Floats, since: int, word: str, lengths: _Lengths) -> _Kept:
        """Who holds ``word`` now, if these did at the generation ``since``."""
        held: dict[int, _Counts] = {}
        for generation, changes in self._changes:
            if generation > since:
                held.update(changes)
        stays = ~np.isin(slots, np.fromiter(held, dtype=np.int64, count=len(held)))
        come = [slot for slot, counts in held.items() if word in counts]
        counts = np.array([held[slot][word] for slot in come], dtype=np.int64).reshape(len(come), len(self._weights))
        slots = np.concatenate([slots[stays], np.array(come, dtype=np.int64)])
        frequencies = np.concatenate([frequencies[stays], weighted_frequencies(counts, self._weights)])
        order = np.argsort(slots, kind="stable")
        return _scored(lengths, slots[order], frequencies[order], [len(slots)])[0]

    def _keep(self, asked: Asked, kept: _Kept) -> None:
        """Remember a term's postings, as the last used."""
        before = self._kept.get(asked)
        self._kept[asked] = kept
        self._kept.move_to_end(asked)
        self._bytes += _BYTES * (len(kept.slots) - (0 if before is None else len(before.slots)))
        while self._bytes > MAX_CACHED_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= _BYTES * len(dropped.slots)


def _counted(columns: Sequence[str]) -> _Counts:
    """What a record holds, by the tokens of its columns."""
    counters = [Counter(column.split()) for column in columns]
    return {token: tuple(each[token] for each in counters) for token in set().union(*counters)}


def _asked(term: Term) -> Asked:
    return term.tokens, term.prefix


def _is_word(term: Term) -> bool:
    return len(term.tokens) == 1 and not term.prefix


def _scored(lengths: _Lengths, slots: Keys, frequencies: Floats, ends: Sequence[int] | Keys) -> list[_Kept]:
    """The postings of several words, which stand one after the other; ``ends``: where each word's do."""
    scores = _contributions(lengths, slots, frequencies, ends)
    parts = zip(*(np.split(array, ends[:-1]) for array in (slots, frequencies, scores)), strict=True)
    return [_Kept(lengths.generation, own, counts, Postings(own, gains)) for own, counts, gains in parts]


def _contributions(lengths: _Lengths, slots: Keys, frequencies: Floats, ends: Sequence[int] | Keys) -> Floats:
    holding = np.diff(ends, prepend=0)
    idf = np.array([inverse_document_frequency(lengths.records, count) for count in holding.tolist()])
    return contributions(frequencies, lengths.norms[slots], np.repeat(idf, holding))


def _all_lengths(connection: Connection, head: Head, columns: int) -> _Lengths | None:
    totals = _totals(connection)
    if totals is None:
        return None
    keys, lengths = _decoded(connection.execute(f"{_SIZE} ORDER BY id").fetchall(), columns)
    return _Lengths(head.generation, keys, lengths, *totals)


def _totals(connection: Connection) -> tuple[int, int] | None:
    """How many records the index holds, and how many tokens; FTS5 keeps both as the first record of its data."""
    row = connection.execute("SELECT block FROM fts_data WHERE id = 1").fetchone()
    if row is None or not row[0]:
        return None
    records, *tokens = _varints(row[0]).tolist()
    return records, sum(tokens)


def _decoded(rows: Sequence[tuple[int, bytes]], columns: int) -> tuple[Keys, Floats]:
    """Keys, and tokens of all columns, of rows of ``fts_docsize``."""
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    sizes = _varints(b"".join([size for _, size in rows])).reshape(len(rows), columns)
    return keys, sizes.sum(axis=1).astype(np.float64)


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
