"""A session that reads: one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol.values import (
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
from twofold.ranking import Edge, Standing
from twofold.text import KeywordQuery
from twofold.types import Direction, Owner, Record

__all__ = ["Reader"]


class Reader(Protocol):
    """One snapshot."""

    @property
    def generation(self) -> int:
        """The number of the last write that this snapshot holds; grows by one a write, touches apart."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """The embedder that the stored vectors are of; None before the first. Vectors of two are never compared."""
        ...

    @property
    def dimension(self) -> int | None:
        """The length of the stored vectors; None before the first."""
        ...

    @property
    def next_space(self) -> Space | None:
        """The embedder that the vectors are being made anew with, beside those in use; None: nobody's."""
        ...

    def keys_lacking(self, fingerprint: str, after: int, limit: int | None) -> list[int]:
        """Keys above ``after``, ascending, of records with text and no vector of this embedder; anybody's."""
        ...

    def count_lacking(self, fingerprint: str) -> int:
        """How many such records there are."""
        ...

    def count_only_given(self) -> int:
        """How many records have vectors in use that were given with them and that no text stands behind."""
        ...

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many records each token occurs, of the whole tenant; tokens that occur nowhere are left out."""
        ...

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
        """The ``limit`` best visible records that have any of the terms, by BM25 in total order.

        Args:
            query: its terms.
            visible: what may be found.
            limit: how many.
            every: only records that have all of the terms.
            composite: the score is BM25 times :func:`twofold.ranking.composite` of the record.
            also: records whose :meth:`keyword_scores` will be asked for next, so that one look at the words may do.

        Raises:
            SearchUnavailableError: there is no keyword index, or it is damaged or out of date.
        """
        ...

    def keyword_scores(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
        """The BM25 of these records, the same number that :meth:`keyword` gives; those with none of the terms are left
        out. Not checked for access: the keys come from the other leg.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        ...

    def coverage(self, query: KeywordQuery, visible: Visibility) -> float:
        """The share of the query's single words that any visible record has; 1 if it has no such words.

        Raises:
            SearchUnavailableError: as for :meth:`keyword`.
        """
        ...

    def adjacent(self, pairs: Sequence[tuple[str, str]], keys: Sequence[int]) -> dict[int, int]:
        """How many of ``pairs`` each of ``keys`` holds side by side, in order; those with none are left out."""
        ...

    def keyword_fields(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Which fields of each of ``keys`` hold any of the query's terms, in the backend's order of fields; a record of
        which none does, but its tags may, is left out.
        """
        ...

    def nearest(self, vector: npt.NDArray[np.float32], visible: Visibility, limit: int) -> Nearest:
        """The ``limit`` visible records whose best field's best part is nearest to ``vector`` by cosine.

        Args:
            vector: shape (dimension,), finite, not zero, of the active fingerprint.

        Raises:
            SearchUnavailableError: the index of very many vectors is still being built.
        """
        ...

    def nearest_many(
        self, vectors: Sequence[npt.NDArray[np.float32]], visible: Visibility, limit: int
    ) -> list[Nearest]:
        """What :meth:`nearest` gives for each of some vectors, cheaper than one by one where a backend can share the
        work: some dozens at a time, as all that is scored for them may be held at once.

        Raises:
            SearchUnavailableError: as for :meth:`nearest`.
        """
        ...

    def cosines(self, vector: npt.NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """The best cosine of each of these records, the same number that :meth:`nearest` gives; those without a vector
        are left out. Not checked for access: the keys come from the other leg.
        """
        ...

    def background(self, visible: Visibility) -> float:
        """The mean cosine between some of the visible records, see :func:`twofold.ranking.background_of`: the same
        number for as long as nothing is written, and made of nothing but what is visible.
        """
        ...

    def identities(self, keys: Sequence[int]) -> dict[int, Identity]:
        """Whose records these are, and what ties are broken by; what is gone is left out."""
        ...

    def places(self, keys: Sequence[int]) -> dict[int, int]:
        """Numbers that put records in the order of equal scores, that of :attr:`Identity.order`; what is gone is left
        out.
        """
        ...

    def standings(
        self, keys: Sequence[int], *, confidence: bool = False, uncommon: bool = False
    ) -> dict[int, Standing]:
        """What priors look at; ``confidence`` is None unless it is asked for.

        Args:
            keys: of the records.
            confidence: whether metadata is read for it.
            uncommon: only of those whose importance is not 0.5 or whose strength is not 1, mostly a few.
        """
        ...

    def records(self, keys: Sequence[int]) -> dict[int, Record]:
        """The records of these keys in one statement; what is gone is left out. Not checked for access: the keys
        come from a leg, a scan or a look-up of the same snapshot.
        """
        ...

    def find(self, id: str, namespace: tuple[str, ...], owners: Sequence[Owner] | None) -> list[tuple[int, Owner]]:
        """The keys that hold ``id`` in ``namespace``, archived ones too, in the order of ``owners``; None means
        every owner. Who may see what is the caller's to ask for by naming the owners.
        """
        ...

    def find_many(
        self, ids: Sequence[str], namespace: tuple[str, ...], owners: Sequence[Owner] | None
    ) -> dict[str, list[tuple[int, Owner]]]:
        """By id what :meth:`find` gives; ids that none of the owners holds are left out."""
        ...

    def scan(self, visible: Visibility, order: Sequence[Order], limit: int | None, offset: int) -> list[int]:
        """Keys of visible records; after ``order`` by newer, id, namespace, owner."""
        ...

    def count(self, visible: Visibility) -> int:
        """How many visible records there are."""
        ...

    def distinct(self, attribute: str, visible: Visibility) -> list[Any]:
        """The values, none twice and in order, that an attribute has among visible records; of ``tags``, each tag."""
        ...

    def tally(self, visible: Visibility) -> Tally:
        """Counts of the visible records and of what belongs to them."""
        ...

    def vectors(self, keys: Sequence[int]) -> dict[int, StoredVectors]:
        """The vectors of the active fingerprint; records without one are left out."""
        ...

    def pending(self, visible: Visibility) -> int:
        """How many visible records have text but no vector of the active fingerprint; all that have text if there is
        none yet.
        """
        ...

    def claimed(self, visible: Visibility, now: datetime) -> int:
        """How many of those are claimed at ``now``: somebody is embedding them."""
        ...

    def with_equal_text(self, content_hash: str, owner: Owner, namespace: tuple[str, ...]) -> list[int]:
        """Keys of the owner's living records in this namespace with this text."""
        ...

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
        """The links of a record whose other end is visible: the strongest first, equal ones as :class:`Identity`
        orders the other end, then by kind, then those that lead from the record. Whether the record itself may be
        seen is the caller's to ask.

        Args:
            key: the record.
            visible: what the other end must be.
            direction: those that lead from the record, to it, or both.
            kinds: only these. Default: all.
            limit: how many at most. Default: all.
            offset: how many to leave out first.
        """
        ...

    def neighbors(
        self,
        keys: Sequence[int],
        visible: Visibility,
        *,
        direction: Direction = Direction.BOTH,
        kinds: Sequence[str] | None = None,
        limit: int,
    ) -> dict[int, list[Edge]]:
        """By record, the first ``limit`` of what :meth:`links` gives, as seen from it; records without any are left
        out. The work for a record grows with ``limit`` and with the links before the last one that are not visible,
        not with all that it has.
        """
        ...

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
        """Marks that satisfy all that is given, by time and key; ``before`` and ``after`` exclude their bounds."""
        ...
