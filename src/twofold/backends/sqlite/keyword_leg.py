"""The keyword leg of one session: from memory where the postings are at hand, else from FTS5, with the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite.candidates import Ties, best_candidates
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.keyword import KeywordIndex, Matches, is_index_fault, match_expression
from twofold.backends.sqlite.postings import Holders, PostingsCache
from twofold.backends.sqlite.visible_keys import Seen
from twofold.errors import SearchUnavailableError
from twofold.text import MAX_TERMS, KeywordQuery

__all__ = ["KeywordLeg"]


class KeywordLeg:
    """Answers what one session asks of the keyword index. What it found out about the last query it keeps, for a
    search asks for it several times.

    Used as a context manager: what SQLite says of a damaged index is said in words that help.

    Args:
        connection: of the session.
        head: of the session.
        index: the file's.
        postings: the same in memory.
    """

    __slots__ = ("_connection", "_head", "_held", "_index", "_kept", "_postings", "_scored")

    def __init__(self, connection: Connection, head: Head, index: KeywordIndex, postings: PostingsCache) -> None:
        self._connection = connection
        self._head = head
        self._index = index
        self._postings = postings
        self._kept: tuple[KeywordQuery, Matches] | None = None
        self._held: tuple[KeywordQuery, Holders | None] | None = None
        self._scored: tuple[KeywordQuery, dict[int, float]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, driver_errors()) and is_index_fault(error):
            raise SearchUnavailableError(
                f"the keyword index is damaged; make it anew with reindex() (SQLite: {error})"
            ) from error

    def search(
        self,
        query: KeywordQuery,
        visible: Visibility,
        seen: Seen | None,
        limit: int,
        *,
        every: bool,
        composite: bool,
        also: Sequence[int],
    ) -> list[Candidate]:
        """See :meth:`Reader.keyword`.

        Args:
            query: what is asked.
            visible: who may be found.
            seen: the same as keys, if they are at hand.
            limit: how many.
            every: whether they must have every term.
            composite: whether BM25 is weighed by strength and importance.
            also: whose scores will be asked for.
        """
        index = self._index
        if every or composite or seen is None:  # few have every word; the composite needs the rows
            return index.search(self._connection, query, visible, limit, every=every, composite=composite)
        holders = self._holders(query)
        if holders is not None:
            besides = np.array(also, dtype=np.int64)
            keys, scores, others = self._postings.best(holders, seen, max(1, limit), besides)
            self._scored = (query, dict(zip(also, others.tolist(), strict=True)))
        else:
            found = self._matches(query)
            found = found[seen.among(found["key"])]
            keys, scores = found["key"], found["score"]
        return best_candidates(keys, scores, limit, Ties(self._connection, seen))

    def scores(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
        """See :meth:`Reader.keyword_scores`."""
        if self._scored is not None and self._scored[0] is query and not self._head.changed:
            known = self._scored[1]
            if known.keys() >= set(keys):
                return {key: known[key] for key in keys if known[key] > 0}
        wanted = np.array(keys, dtype=np.int64)
        holders = self._holders_at_hand(query)
        if holders is not None:
            scores = holders.scores(wanted)
            return {key: score for key, score in zip(keys, scores.tolist(), strict=True) if score > 0}
        found = self._matches(query)
        if not len(found):
            return {}
        places = np.searchsorted(found["key"], wanted)
        places[places == len(found)] = 0
        there = found["key"][places] == wanted
        return dict(zip(wanted[there].tolist(), found["score"][places[there]].tolist(), strict=True))

    def coverage(self, query: KeywordQuery, seen: Seen) -> float:
        """See :meth:`Reader.coverage`."""
        holders = self._holders_at_hand(query)
        there = None if holders is None else self._postings.occurring(holders, seen)
        if there is not None and all(there):
            return 1.0
        words = query.words[:MAX_TERMS]
        if not words:
            return 1.0
        if there is not None:
            terms = (term for term in query.terms for _ in range(term.weight))
            held = {term.tokens for term, is_there in zip(terms, there, strict=True) if is_there and not term.prefix}
            return sum((word,) in held for word in words) / len(words)
        occurring = self._index.document_frequencies(self._connection, words)
        return sum(self._index.occurs(self._connection, word, seen) for word in occurring) / len(words)

    def adjacent(self, pairs: Sequence[tuple[str, str]], keys: Sequence[int]) -> dict[int, int]:
        """See :meth:`Reader.adjacent`."""
        return self._index.adjacent(self._connection, pairs, keys)

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """See :meth:`Reader.document_frequencies`."""
        return self._index.document_frequencies(self._connection, tokens)

    def fields_of(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """See :meth:`Reader.keyword_fields`."""
        return self._index.fields_of(self._connection, query, keys)

    def _holders(self, query: KeywordQuery) -> Holders | None:
        """Who holds the terms of a query, from memory, if that can be."""
        if self._head.changed or self._held is None or self._held[0] is not query:
            holders = self._postings.holders(self._connection, self._head, query.terms, match_expression)
            self._held = (query, holders)
        return self._held[1]

    def _holders_at_hand(self, query: KeywordQuery) -> Holders | None:
        """The same if this query was the last one."""
        if self._head.changed or self._held is None or self._held[0] is not query:
            return None
        return self._held[1]

    def _matches(self, query: KeywordQuery) -> Matches:
        """All matches of a query."""
        if self._head.changed or self._kept is None or self._kept[0] is not query:
            self._kept = (query, self._index.matches(self._connection, query))
        return self._kept[1]
