"""One snapshot of a SQLite file: everything that is read."""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import (
    Candidate,
    Identity,
    Mark,
    Nearest,
    Order,
    Space,
    StoredLink,
    StoredVectors,
    Tally,
    Visibility,
)
from twofold.backends.sqlite import listing, next_space, pending
from twofold.backends.sqlite.candidates import in_order, json_keys
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.keyword import KeywordIndex
from twofold.backends.sqlite.keyword_leg import KeywordLeg
from twofold.backends.sqlite.links import select_links, select_neighbors
from twofold.backends.sqlite.lookups import holders_of, with_equal_text
from twofold.backends.sqlite.marks import select_marks
from twofold.backends.sqlite.postings import PostingsCache
from twofold.backends.sqlite.rescoring import standings
from twofold.backends.sqlite.rows import (
    COLUMNS,
    from_row,
    load_namespace,
    load_owner,
    load_time,
)
from twofold.backends.sqlite.tally import tally
from twofold.backends.sqlite.vectors import VectorLeg, stored_vectors
from twofold.backends.sqlite.visible_keys import Seen, VisibleKeys
from twofold.errors import SearchUnavailableError
from twofold.ranking import Edge, Standing
from twofold.text import KeywordQuery
from twofold.types import Direction, Owner, Record

__all__ = ["Parts", "SqliteReader", "keyword_problem"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What all sessions of a backend share."""

    fields: tuple[str, ...]
    """The names of a record's pieces of text."""
    keyword: KeywordIndex
    """The keyword leg."""
    postings: PostingsCache
    """The same in memory."""
    vectors: VectorLeg
    """The vector leg."""
    visible_keys: VisibleKeys
    """Whom callers may see, for both legs."""
    has_fts5: bool
    """Whether the SQLite library can serve the keyword leg."""


_RECORDS: Final = (
    f"SELECT r.key, {', '.join(f'r.{column}' for column in COLUMNS)}"
    " FROM json_each(?) j CROSS JOIN records r ON r.key = j.value"
)
_IDENTITIES: Final = (
    "SELECT r.key, r.created_at, r.id, r.namespace, r.scope, r.owner"
    " FROM json_each(?) j CROSS JOIN records r ON r.key = j.value"
)


def keyword_problem(parts: Parts, analyzer: str) -> str | None:
    """Why the keyword leg cannot be used on a file whose index was made with ``analyzer``; None if it can."""
    if not parts.has_fts5:
        return "the SQLite library of this Python has no FTS5; use another Python, or driver='pysqlite3'"
    if not analyzer:
        return "the keyword index is out of date: it was written without FTS5. Open the store for writing once"
    if analyzer != parts.keyword.analyzer.version:
        return "the keyword index was made by another text analyser; open the store for writing once to renew it"
    return None


class SqliteReader:
    """A snapshot, while its connection's transaction is open. See :class:`twofold.backends.protocol.Reader`."""

    def __init__(self, connection: Connection, parts: Parts, head: Head) -> None:
        self._connection = connection
        self._parts = parts
        self._head = head
        self._leg: KeywordLeg | None = None
        self._looked_up: tuple[Visibility, Seen] | None = None

    @property
    def generation(self) -> int:
        """The number of the last write that this snapshot holds."""
        return self._head.generation

    @property
    def fingerprint(self) -> str | None:
        """The embedder that the stored vectors are of; None before the first."""
        return self._head.fingerprint

    @property
    def dimension(self) -> int | None:
        """The length of the stored vectors; None before the first."""
        return self._head.dimension

    @property
    def next_space(self) -> Space | None:
        """The embedder that the vectors are being made anew with; None: nobody's."""
        return next_space.next_space(self._connection)

    def keys_lacking(self, fingerprint: str, after: int, limit: int | None) -> list[int]:
        """Keys above ``after`` of records with text and no vector of this embedder."""
        return next_space.keys_lacking(self._connection, fingerprint, after, limit)

    def count_lacking(self, fingerprint: str) -> int:
        """How many records have text and no vector of this embedder."""
        return next_space.count_lacking(self._connection, fingerprint)

    def count_only_given(self) -> int:
        """How many records have vectors that no text stands behind; see :meth:`Reader.count_only_given`."""
        return next_space.count_only_given(self._connection, self.fingerprint)

    # -- the legs -------------------------------------------------------------------------------------------------

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many records each token occurs; tokens that occur nowhere are left out.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        with self._keyword_leg() as leg:
            return leg.document_frequencies(tokens)

    def keyword(
        self,
        query: KeywordQuery,
        visible: Visibility,
        limit: int,
        *,
        every: bool = False,
        composite: bool = False,
        also: Sequence[int] = (),
    ) -> list[Candidate]:
        """The best visible records that have any of the terms, by FTS5's BM25 in total order; see
        :meth:`Reader.keyword`.

        Raises:
            SearchUnavailableError: there is no FTS5, or its index is damaged or of another analyser.
        """
        with self._keyword_leg() as leg:
            seen = self._at_hand(visible)
            return leg.search(query, visible, seen, limit, every=every, composite=composite, also=also)

    def keyword_scores(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
        """The BM25 of these records; see :meth:`Reader.keyword_scores`.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        if not keys:
            return {}
        with self._keyword_leg() as leg:
            return leg.scores(query, keys)

    def coverage(self, query: KeywordQuery, visible: Visibility) -> float:
        """The share of the query's single words that any visible record has; see :meth:`Reader.coverage`.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        with self._keyword_leg() as leg:
            return leg.coverage(query, self._seen(visible))

    def adjacent(self, pairs: Sequence[tuple[str, str]], keys: Sequence[int]) -> dict[int, int]:
        """How many of the first 16 pairs each key holds side by side; those with none are left out.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        with self._keyword_leg() as leg:
            return leg.adjacent(pairs, keys)

    def keyword_fields(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Which fields hold any of the query's terms; see :meth:`Reader.keyword_fields`.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        with self._keyword_leg() as leg:
            return leg.fields_of(query, keys)

    def nearest(self, vector: npt.NDArray[np.float32], visible: Visibility, limit: int) -> Nearest:
        """The visible records nearest to ``vector`` by cosine, from the index that was chosen or an exact scan.

        Raises:
            InvalidVectorError: the vector is zero, not finite or of another length than the stored ones.
        """
        return self.nearest_many([vector], visible, limit)[0]

    def nearest_many(
        self, vectors: Sequence[npt.NDArray[np.float32]], visible: Visibility, limit: int
    ) -> list[Nearest]:
        """The same for several vectors, with what can be shared done once.

        Raises:
            InvalidVectorError: as for :meth:`nearest`.
        """
        return self._parts.vectors.nearest_many(self._connection, self._head, vectors, self._seen(visible), limit)

    def cosines(self, vector: npt.NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """The best cosine of each of these records; see :meth:`Reader.cosines`.

        Raises:
            InvalidVectorError: as for :meth:`nearest`.
        """
        return self._parts.vectors.cosines(self._connection, self._head, vector, keys)

    def background(self, visible: Visibility) -> float:
        """The mean cosine between some of the visible records; see :meth:`Reader.background`."""
        return self._parts.vectors.background(self._connection, self._head, self._seen(visible))

    # -- rows -----------------------------------------------------------------------------------------------------

    def identities(self, keys: Sequence[int]) -> dict[int, Identity]:
        """Whose records these are, and what ties are broken by; what is gone is left out."""
        return {
            key: Identity(load_time(created_at), id_, load_namespace(namespace), load_owner(scope, owner))
            for key, created_at, id_, namespace, scope, owner in self._connection.execute(
                _IDENTITIES, (json_keys(list(keys)),)
            )
        }

    def places(self, keys: Sequence[int]) -> dict[int, int]:
        """Numbers that put records in the order of equal scores; see :meth:`Reader.places`."""
        seen = None if self._looked_up is None or self._head.changed else self._looked_up[1]
        ordered = None if seen is None else seen.newest_first(keys)
        if ordered is None:
            ordered = in_order(self._connection, keys)
        return {key: place for place, key in enumerate(ordered)}

    def standings(
        self, keys: Sequence[int], *, confidence: bool = False, uncommon: bool = False
    ) -> dict[int, Standing]:
        """What priors look at; see :meth:`Reader.standings`."""
        if uncommon and self._looked_up is not None and not self._head.changed:
            keys = self._looked_up[1].maybe_uncommon(keys, self._head.strengthened)
            if not keys:
                return {}
        return standings(self._connection, json_keys(list(keys)), confidence=confidence, uncommon=uncommon)

    def records(self, keys: Sequence[int]) -> dict[int, Record]:
        """The records of these keys; what is gone is left out."""
        rows = self._connection.execute(_RECORDS, (json_keys(list(keys)),))
        return {row[0]: from_row(row[1:]) for row in rows}

    def find(self, id: str, namespace: tuple[str, ...], owners: Sequence[Owner] | None) -> list[tuple[int, Owner]]:
        """The keys that hold ``id`` in ``namespace``, in the order of ``owners``; None means every owner, ordered
        by scope (global, personal, room) and name.
        """
        return self.find_many((id,), namespace, owners).get(id, [])

    def find_many(
        self, ids: Sequence[str], namespace: tuple[str, ...], owners: Sequence[Owner] | None
    ) -> dict[str, list[tuple[int, Owner]]]:
        """By id what :meth:`find` gives, of those that anybody asked for holds."""
        return holders_of(self._connection, ids, namespace, owners)

    def scan(self, visible: Visibility, order: Sequence[Order], limit: int | None, offset: int) -> list[int]:
        """Keys of visible records, absent values last; after ``order`` by newer, id, namespace, owner.

        Raises:
            ConfigurationError: an attribute that does not exist or has no order.
        """
        return listing.scan(self._connection, visible, order, limit, offset)

    def count(self, visible: Visibility) -> int:
        """How many visible records there are."""
        return listing.count(self._connection, visible)

    def distinct(self, attribute: str, visible: Visibility) -> list[Any]:
        """The values, none twice and ascending, that an attribute has among visible records; absent ones are no
        values. Of ``tags``, each tag.

        Raises:
            ConfigurationError: an attribute that does not exist or has no order.
        """
        return listing.distinct(self._connection, attribute, visible)

    def tally(self, visible: Visibility) -> Tally:
        """Counts of the visible records and of what belongs to them."""
        return tally(self._connection, self.fingerprint, visible)

    # -- links ----------------------------------------------------------------------------------------------------

    def links(
        self,
        key: int,
        visible: Visibility,
        *,
        direction: Direction = Direction.BOTH,
        kinds: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[StoredLink]:
        """The links of a record whose other end is visible, the strongest first; see :meth:`Reader.links`."""
        return select_links(
            self._connection, key, visible, direction=direction, kinds=kinds, limit=limit, offset=offset
        )

    def neighbors(
        self,
        keys: Sequence[int],
        visible: Visibility,
        *,
        direction: Direction = Direction.BOTH,
        kinds: Sequence[str] | None = None,
        limit: int,
    ) -> dict[int, list[Edge]]:
        """The strongest visible links of each of some records; see :meth:`Reader.neighbors`."""
        return select_neighbors(self._connection, keys, visible, direction=direction, kinds=kinds, limit=limit)

    # -- vectors, text and marks ----------------------------------------------------------------------------------

    def vectors(self, keys: Sequence[int]) -> dict[int, StoredVectors]:
        """The vectors of the active fingerprint; records without one are left out."""
        return stored_vectors(self._connection, self.fingerprint, json_keys(list(keys)))

    def pending(self, visible: Visibility) -> int:
        """How many visible records have text but no vector; see :meth:`Reader.pending`."""
        return pending.count(self._connection, self.fingerprint, visible)

    def claimed(self, visible: Visibility, now: datetime) -> int:
        """How many visible records somebody is embedding at ``now``; see :meth:`Reader.claimed`."""
        return pending.claimed(self._connection, visible, now)

    def with_equal_text(self, content_hash: str, owner: Owner, namespace: tuple[str, ...]) -> list[int]:
        """Keys of the owner's records in this namespace with this text that are neither archived nor superseded, by
        newer, then id.
        """
        return with_equal_text(self._connection, content_hash, owner, namespace)

    def marks(
        self,
        owner: Owner,
        namespace: str,
        *,
        keys: Sequence[str] | None = None,
        groups: Sequence[str | None] | None = None,
        before: float | None = None,
        after: float | None = None,
        limit: int | None = None,
    ) -> list[Mark]:
        """Marks that satisfy all that is given, by time and key."""
        return select_marks(
            self._connection, owner, namespace, keys=keys, groups=groups, before=before, after=after, limit=limit
        )

    # -- within ---------------------------------------------------------------------------------------------------

    def _keyword_leg(self) -> KeywordLeg:
        if self._leg is None:
            problem = keyword_problem(self._parts, self._head.analyzer)
            if problem is not None:
                raise SearchUnavailableError(problem)
            self._leg = KeywordLeg(self._connection, self._head, self._parts.keyword, self._parts.postings)
        return self._leg

    def _seen(self, visible: Visibility) -> Seen:
        """Whom the caller may see; both legs of a search ask for it."""
        if self._looked_up is None or self._looked_up[0] is not visible or self._head.changed:
            seen = self._parts.visible_keys.of(self._connection, self._head, visible)
            self._looked_up = (visible, seen)
        return self._looked_up[1]

    def _at_hand(self, visible: Visibility) -> Seen | None:
        """The same, unless it would have to be listed for a filter."""
        if self._looked_up is None or self._looked_up[0] is not visible or self._head.changed:
            seen = self._parts.visible_keys.at_hand(self._connection, self._head, visible)
            if seen is None:
                return None
            self._looked_up = (visible, seen)
        return self._looked_up[1]
