"""The keyword leg in memory: the postings of all words, read from FTS5 in the background and then kept up.

What FTS5 counts again for every query (who holds a word, how often, how long each record is) stays here, by
generation. Answers are those of FTS5 to the last bit; where they could not be, there are none and FTS5 is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.background import Background, Stopping
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head, read_head
from twofold.backends.sqlite.postings_reading import PostingsReader
from twofold.backends.sqlite.postings_state import Changes, PostingsState
from twofold.backends.sqlite.pragmas import reading_through
from twofold.backends.sqlite.sidecar import Sidecar
from twofold.backends.sqlite.visible_keys import Keys, Seen
from twofold.errors import StoreError
from twofold.postings import Among, IndexBuilder, Weighted, WordIndex, best_of_terms, holds_any, scores_of
from twofold.text.query import Term

__all__ = ["JOB", "Holders", "PostingsCache", "SavedPostings"]

JOB: Final = "keyword index"
"""The name of the job that makes the index."""

MAX_AT_ONCE: Final = 200
"""Changed records that a query takes in by itself, in some 20 ms; more are taken in in the background."""

MAX_CHANGES: Final = 10_000
"""Changed records that are kept beside the index; when there are half as many it is made anew in the background."""

SAVED_FROM: Final = 1_000_000
"""Tokens of a file from which on the index is saved: reading so many takes some half a second."""

_FIRST_PATIENCE: Final = 2
_MOST_PATIENCE: Final = 1024

Floats: TypeAlias = npt.NDArray[np.float64]


class SavedPostings(NamedTuple):
    """Where an index is saved."""

    sidecar: Sidecar
    writer: Callable[[], AbstractContextManager[Connection]] | None
    """Begins a transaction; None: nothing may be written."""


@dataclass(frozen=True, eq=False, slots=True)
class _Made:
    """An index as it was made."""

    since: int
    """The generation that it was begun at: what changed since counts as changed, whatever it holds of that."""
    index: WordIndex
    age: int
    """How often all had been forgotten then."""


@dataclass(frozen=True, eq=False, slots=True)
class Holders:
    """Who holds the terms of a query."""

    state: PostingsState
    terms: Sequence[Weighted]
    """In order; one that counts twice stands here twice."""

    def scores(self, keys: Keys) -> Floats:
        """The BM25 of each of ``keys``, 0 of those that hold none of the terms."""
        slots, known = self.state.slots_of(keys)
        return scores_of(self.terms, self.state.norms, slots) * known


class PostingsCache:
    """The postings of one file, for all its threads.

    The index is begun when a second query shows that more will come. It is read piece by piece, each in a session of
    its own, so that no snapshot grows old and no log long: what is changed meanwhile is known by its generation, and
    counts as changed since the first piece, whichever state of it the later pieces hold.

    Args:
        reader: of the file.
        analyzer: the version that the index in the file must be of.
        least: how many records there must be; None: it is never made.
        background: where it is made.
        sessions: a session of the file.
        saved: where an index that took its time is saved, and looked for first.
    """

    def __init__(
        self,
        reader: PostingsReader,
        analyzer: str,
        least: int | None,
        background: Background,
        sessions: Callable[[], AbstractContextManager[Connection]],
        saved: SavedPostings | None = None,
    ) -> None:
        self._reader = reader
        self._analyzer = analyzer
        self._least = least
        self._background = background
        self._sessions = sessions
        self._saved = saved
        self._lock = threading.Lock()
        self._state: PostingsState | None = None
        self._age = 0  # how often all was forgotten
        self._looked = saved is None  # whether it was looked for what is saved
        self._too_few = -1  # the generation at which there were too few records
        self._queries = 0  # that found no index
        self._patience = _FIRST_PATIENCE

    @property
    def is_ready(self) -> bool:
        """Whether there is an index, be it that changes are still to be taken in."""
        return self._state is not None

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
            None where FTS5 must be asked: while there is no index of the session's generation, in a session that has
            written something, or of an index that contradicts itself.
        """
        if head.changed or self._least is None:
            return None
        state = self._at(connection, head)
        if state is None:
            return None
        found: list[Weighted] = []
        for term in terms:
            weighted = self._term(connection, state, term, match)
            if weighted is None:
                return None
            found += [weighted] * term.weight
        return Holders(state, found)

    def best(self, holders: Holders, seen: Seen, limit: int, also: Keys) -> tuple[Keys, Floats, Floats]:
        """Keys and scores of visible records, the ``limit`` best and those tied with the last of them included; and the
        scores of ``also``, 0 of those that hold none of the terms.

        Args:
            holders: of the query's terms.
            seen: who is visible, at the same generation.
            limit: how many are wanted, at least 1.
            also: whose scores are wanted besides.
        """
        state = holders.state
        among = self._among(state, seen)
        if not len(also):
            best = best_of_terms(holders.terms, state.norms, len(state.keys), among, limit, state.drift)
            return state.keys[best.slots], best.scores, best.also
        slots, known = state.slots_of(also)
        best = best_of_terms(holders.terms, state.norms, len(state.keys), among, limit, state.drift, slots)
        return state.keys[best.slots], best.scores, best.also * known

    def occurring(self, holders: Holders, seen: Seen) -> list[bool]:
        """Which terms any visible record holds, in the order of ``holders``."""
        mask = self._among(holders.state, seen).mask
        return [holds_any(term, mask) for term in holders.terms]

    def forget(self, connection: Connection) -> None:
        """Trust nothing of what was read or saved: the keyword index is being made anew.

        Args:
            connection: in the transaction that does so.
        """
        if self._saved is not None:
            self._saved.sidecar.disown(connection)
        with self._lock:
            self._state = None
            self._age += 1

    def _among(self, state: PostingsState, seen: Seen) -> Among:
        with self._lock:
            return state.among(seen)

    def _term(
        self, connection: Connection, state: PostingsState, term: Term, match: Callable[[Sequence[Term]], str]
    ) -> Weighted | None:
        asked = (term.tokens, term.prefix)
        known = state.known(asked)
        if known is not None:
            return known
        is_word = len(term.tokens) == 1 and not term.prefix
        held = None if is_word else self._reader.phrase(connection, match([replace(term, weight=1)]))
        with self._lock:
            if self._state is not state:  # its changes are no longer its own
                return None
            try:
                return state.word(term.tokens[0]) if held is None else state.phrase(asked, *held)
            except ValueError:
                self._state = None
                return None

    # -- the state of a generation --------------------------------------------------------------------------------

    def _at(self, connection: Connection, head: Head) -> PostingsState | None:
        """The state of the session's generation, if it is at hand or few records have changed since."""
        with self._lock:
            state = self._state
        if state is None:
            return self._begun(connection, head)
        if state.generation >= head.generation:
            return state if state.generation == head.generation else None
        if head.pruned <= state.generation:
            changed = self._reader.changed(connection, state.generation, MAX_AT_ONCE)
            if changed is not None:
                return self._advanced(connection, head, state, changed)
        self._background.start(JOB, self._make)
        return None

    def _begun(self, connection: Connection, head: Head) -> PostingsState | None:
        """The saved index, if there is one of use, which takes no longer than one answer of FTS5; else it is begun."""
        self._queries += 1
        if self._too_few == head.generation or (self._looked and self._queries < self._patience):
            return None
        totals = self._reader.totals(connection)
        if totals is None or self._least is None or totals.records < self._least:
            self._too_few = head.generation
            return None
        with self._lock:
            looks, self._looked = not self._looked, True
        found = self._found(connection, head) if looks else None
        with suppress(ValueError):
            state = None if found is None else self._state_of(connection, head, found, MAX_AT_ONCE)
            if found is not None and state is not None and self._put_in_place(state, found.age):
                if _is_due(state):
                    self._background.start(JOB, self._make)
                return state
        if found is not None or self._queries >= self._patience:
            self._background.start(JOB, partial(self._make, found=found))
        return None

    def _found(self, connection: Connection, head: Head) -> _Made | None:
        """What is saved, if it is of use."""
        age = self._age
        found = None if self._saved is None else self._saved.sidecar.load(connection, head, WordIndex.restored)
        return None if found is None else _Made(*found, age)

    def _advanced(
        self, connection: Connection, head: Head, state: PostingsState, changed: Keys
    ) -> PostingsState | None:
        """The state of the session's generation, of an earlier one and what changed since."""
        totals = self._reader.totals(connection)
        records = None
        with suppress(ValueError):
            records = self._reader.records(connection, changed)
        with self._lock:
            if self._state is not state:
                return None
            self._state = None
            if totals is None or records is None:
                return None
            state.changes.update(records)
            if len(state.changes.records) <= MAX_CHANGES:
                with suppress(ValueError):
                    self._state = PostingsState(state.index, head.generation, totals, state.changes)
            fresh = self._state
        if fresh is None or _is_due(fresh):
            self._background.start(JOB, self._make)
        return fresh

    # -- in the background ----------------------------------------------------------------------------------------

    def _make(self, stopping: Stopping, found: _Made | None = None) -> None:
        """Bring the state up to date, or ``found``, which is of an earlier generation; or make it anew."""
        self._queries = 0
        try:
            done = self._brought_up() or self._finished(found, stopping) or self._made_anew(stopping)
        except (StoreError, ValueError):  # the same query finds out, and FTS5 says what it is
            done = False
            with self._lock:
                self._state = None
        self._patience = _FIRST_PATIENCE if done else min(2 * self._patience, _MOST_PATIENCE)

    def _brought_up(self) -> bool:
        state = self._state
        if state is None or _is_due(state):
            return False
        with self._sessions() as connection:
            head = read_head(connection)
            if head.analyzer != self._analyzer or not head.pruned <= state.generation <= head.generation:
                return False
            changed = self._reader.changed(connection, state.generation, MAX_CHANGES)
            return changed is not None and self._advanced(connection, head, state, changed) is not None

    def _made_anew(self, stopping: Stopping) -> bool:
        age = self._age
        with self._sessions() as connection:
            since = read_head(connection).generation
        index = self._read(since, stopping)
        if index is None or not self._finished(_Made(since, index, age), stopping):
            return False
        if self._saved is not None and self._saved.writer is not None and index.tokens >= SAVED_FROM:
            with suppress(StoreError, OSError):  # it is a cache
                self._saved.sidecar.save_unhurried(self._saved.writer, since, index, lambda: self._age == age)
        return True

    def _read(self, since: int, stopping: Stopping) -> WordIndex | None:
        """The postings of all words and records that have not changed since; of the others, anything."""
        keys, lengths = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint32)]
        while not stopping():
            with self._sessions() as connection, reading_through(connection):
                self._check(connection, since)
                some, long = self._reader.lengths_after(connection, int(keys[-1][-1]) if len(keys) > 1 else -1)
            if not len(some):
                break
            keys.append(some)
            lengths.append(long)
        if not any(each.any() for each in lengths):
            return None
        builder = IndexBuilder(np.concatenate(keys), np.concatenate(lengths))
        del keys, lengths
        last: str | None = None
        while not stopping():
            with self._sessions() as connection, reading_through(connection):
                self._check(connection, since)
                read = self._reader.words_after(connection, last)
            if read is None:
                return builder.finish()
            last = read.words[-1]
            self._reader.give(read, builder)
        return None

    def _finished(self, made: _Made | None, stopping: Stopping) -> bool:
        """Take in what changed since an index was made, and let queries have it."""
        while made is not None and made.age == self._age and not stopping():
            with self._sessions() as connection:
                state = self._state_of(connection, self._check(connection, made.since), made, MAX_CHANGES)
            if state is None:
                return False
            if self._put_in_place(state, made.age):
                return True
        return False

    def _state_of(self, connection: Connection, head: Head, made: _Made, most: int) -> PostingsState | None:
        """The state of the session's generation, of an index and what changed since; None if that is too much."""
        totals = self._reader.totals(connection)
        changed = self._reader.changed(connection, made.since, most)
        if totals is None or changed is None:
            return None
        changes = Changes()
        changes.update(self._reader.records(connection, changed))
        return PostingsState(made.index, head.generation, totals, changes)

    def _put_in_place(self, state: PostingsState, age: int) -> bool:
        """Let queries have a state, unless all was forgotten since, or there is one that is ahead of it."""
        with self._lock:
            if self._age != age or (self._state is not None and self._state.generation > state.generation):
                return False
            self._state = state
            return True

    def _check(self, connection: Connection, since: int) -> Head:
        """The session's head.

        Raises:
            ValueError: what changed since ``since`` is not known in this session, or the index is of another analyser.
        """
        head = read_head(connection)
        if head.analyzer != self._analyzer or not head.pruned <= since <= head.generation:
            raise ValueError("the file is not the one that was begun with")
        return head


def _is_due(state: PostingsState) -> bool:
    """Whether so much has changed that the index is to be made anew."""
    return len(state.changes.records) > min(MAX_CHANGES // 2, MAX_AT_ONCE + len(state.index.keys) // 8)
