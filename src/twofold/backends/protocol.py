"""What a backend is: it owns rows, both legs and what is visible. Ranking, ties of the fused list and text
analysis are the core's.

A backend hands out sessions. A :class:`Reader` is one snapshot: everything it answers belongs to one moment. A
:class:`Writer` is one transaction: it commits when its ``with`` block ends and leaves nothing behind when that
raises. No session is ever held while an embedder is asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from twofold.filters import Filter
from twofold.ranking import Edge, Standing
from twofold.text import Analyzer, KeywordQuery
from twofold.types import Access, Direction, Owner, Record

__all__ = [
    "Backend",
    "Candidate",
    "Capability",
    "CheckReport",
    "Damage",
    "Identity",
    "LinkWrite",
    "Mark",
    "Nearest",
    "Order",
    "Reader",
    "Space",
    "StoreInfo",
    "StoredLink",
    "StoredVectors",
    "Tally",
    "Touch",
    "VectorWrite",
    "Visibility",
    "Writer",
    "as_candidates",
]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Capability(StrEnum):
    """What a backend declares it can do; the contract suite checks both directions."""

    TRANSACTIONS = "transactions"
    """A writer that raises leaves nothing behind."""
    SNAPSHOTS = "snapshots"
    """A reader sees one moment, whatever is written meanwhile."""
    KEYWORD = "keyword"
    """It has a keyword leg."""
    EXACT_FILTERED_VECTORS = "exact_filtered_vectors"
    """Its vector leg finds the true nearest among the visible, however few they are."""
    LINKS = "links"
    """It keeps links between records; without, their calls raise ``UnsupportedOperationError``."""
    MULTI_PROCESS = "multi_process"
    """Several processes may write at once; each sees the others' writes at its next session."""
    BACKUP = "backup"
    """It can copy all it holds into a file while it is in use; without, ``UnsupportedOperationError``."""
    SCRUB = "scrub"
    """It can leave no trace of what was deleted; without, ``UnsupportedOperationError``."""
    BM25_PARITY = "bm25_parity"
    """Its keyword scores are those of FTS5's ``bm25()``."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a call may see: compiled by the backend itself into every statement, so that no caller can forget it."""

    access: Access
    """Who asks."""
    at: datetime
    """The instant that validity and expiry are judged at."""
    where: Filter | None = None
    """The user's filter."""
    include_archived: bool = False
    """Whether archived, superseded, expired and not yet valid records are seen too."""
    as_of: bool = False
    """Whether things are seen as they stood at ``at``, see :meth:`Record.was_living`; of no consequence where
    ``include_archived`` is set."""


class Candidate(NamedTuple):
    """One record that a leg found."""

    key: int
    """The record's integer key."""
    score: float
    """Higher is better."""


def as_candidates(found: Iterable[tuple[int, float]]) -> list[Candidate]:
    """Keys with their scores, as candidates: ``Candidate(key, score)`` of each, many times quicker."""
    return list(map(tuple.__new__, repeat(Candidate), found))


class Identity(NamedTuple):
    """What equal scores are ordered by: newer first, then id, namespace, owner."""

    created_at: datetime
    """UTC."""
    id: str
    """The record's id."""
    namespace: tuple[str, ...]
    """The record's namespace."""
    owner: Owner
    """The record's scope and owner."""

    @property
    def order(self) -> tuple[int, str, str, str, str]:
        """Sorts equal scores: newer first, then by id, namespace (its words, each followed by U+001F) and owner."""
        return (
            -((self.created_at - _EPOCH) // _MICROSECOND),
            self.id,
            "".join(f"{word}\x1f" for word in self.namespace),
            self.owner.scope,
            self.owner.name or "",
        )


@dataclass(frozen=True, slots=True)
class Nearest:
    """What the vector leg found."""

    candidates: tuple[Candidate, ...]
    """Best first, in total order: cosine, then as :class:`Identity` says."""
    unembedded: int
    """How many of the visible records that have text have no vector in the space yet."""
    fell_back: str | None = None
    """Why an exact scan stood in for the chosen index; None if it did not."""


class Order(NamedTuple):
    """One part of the order of a listing."""

    attribute: str = "created_at"
    """The name of an attribute of a record."""
    descending: bool = False
    """Whether larger ones come first."""


class VectorWrite(NamedTuple):
    """Vectors to be attached to a record, valid only for the text they were made of."""

    content_hash: str
    """The hash of the text that was embedded."""
    by_field: Mapping[str, npt.NDArray[np.float32]]
    """By field name, shape (parts, dimension)."""


class Space(NamedTuple):
    """Vectors that can be compared with each other."""

    fingerprint: str
    """The embedder that they are of."""
    dimension: int
    """Their length."""


class StoredVectors(NamedTuple):
    """One record's vectors as stored."""

    key: int
    """The record's integer key."""
    by_field: Mapping[str, npt.NDArray[np.float32]]
    """By field name, shape (parts, dimension)."""


class LinkWrite(NamedTuple):
    """A link to be made, or to be given another weight."""

    source: int
    """The key of the record that it leads from."""
    target: int
    """The key of the record that it leads to; another one."""
    kind: str
    """Its kind; of each there is at most one from this source to this target."""
    weight: float
    """Above 0, at most 1."""


class StoredLink(NamedTuple):
    """A link as stored."""

    source: int
    """The key of the record that it leads from."""
    target: int
    """The key of the record that it leads to."""
    kind: str
    """Its kind."""
    weight: float
    """Above 0, at most 1."""
    created_at: datetime
    """UTC."""


class Touch(NamedTuple):
    """That a record was of use."""

    times: int
    """How often, at least once."""
    at: datetime
    """When last, in UTC."""
    growth: float | None = None
    """What that multiplies the strength with in all, at least 1. Default: growth^times of :meth:`Writer.touch`."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of what a caller may see."""

    groups: tuple[tuple[str, Owner, int], ...]
    """How many visible records there are of each kind and owner."""
    oldest: datetime | None
    """When the first was made."""
    newest: datetime | None
    """When the last was made."""
    text_bytes: int
    """How much their text takes as it is stored."""
    vectors: int
    """How many vectors of the active fingerprint they have."""
    vector_bytes: int
    """How much those take."""
    links: int
    """How many links have both ends among them."""
    archived: int
    """How many records are archived, of those that only their lifecycle hides; so are the following, which overlap."""
    superseded: int
    """How many have another in their place."""
    expired: int
    """How many have expired."""
    out_of_date: int
    """How many are not valid any more and not superseded."""
    not_yet_valid: int
    """How many are not valid yet."""


class Mark(NamedTuple):
    """One entry of a record manager: that ``key`` was seen at ``time``."""

    key: str
    """What was seen."""
    group: str | None
    """What it belongs to, e.g. a source document."""
    time: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of fault that ``check`` found."""

    code: str
    """E.g. ``"stale_tokens"``, ``"missing_vector"``, ``"orphan_vector"``, ``"stale_analyzer"``."""
    count: int
    """How many records, vectors or tokens it concerns."""
    message: str
    """What it means and what repairs it."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What ``check`` found."""

    records: int
    """How many records were looked at."""
    damage: tuple[Damage, ...] = ()
    """Empty if all is well."""
    skipped: tuple[str, ...] = ()
    """What could not be looked at, and why; empty if everything was."""

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a backend says of itself. Holds nothing about single records."""

    fields: tuple[str, ...]
    """The names of a record's pieces of text."""
    tenant: str | None
    """The tenant that the file belongs to."""
    analyzer: str
    """The analyser that the keyword index was made with; empty if there is none."""
    keyword_problem: str | None
    """Why the keyword leg cannot be used; None if it can."""
    fingerprint: str | None
    """The embedder that the stored vectors are of; None before the first."""
    dimension: int | None
    """The length of those vectors."""
    read_only: bool
    """Whether nothing can be written."""
    details: Mapping[str, Any]
    """What is particular to the backend: driver, versions, file size …"""


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
        """What ties are broken by."""
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


class Writer(Reader, Protocol):
    """One transaction; it sees its own writes."""

    def adopt(self, fingerprint: str, dimension: int) -> None:
        """Make this the embedder that vectors are of, if there is none yet; every record with text is then pending.

        Raises:
            ConfigurationError: another fingerprint or dimension is there.
        """
        ...

    def begin_space(self, space: Space) -> None:
        """Begin to make the vectors anew with another embedder; if these are under way, nothing. Nothing that is
        found changes until :meth:`swap_space`, and this counts as no write, nor does :meth:`put_next`.

        Raises:
            ConfigurationError: another one's are under way, they are in use already, or the dimension is below 1.
        """
        ...

    def put_next(self, key: int, vectors: VectorWrite) -> bool:
        """Keep vectors of the next space, if the record's text is still the one that they were made of and it has
        none there; whether it was so.

        Raises:
            ConfigurationError: there is no next space.
            InvalidVectorError: as for :meth:`insert`.
        """
        ...

    def swap_space(self, refused: Mapping[int, str]) -> None:
        """Let the next space be the one in use. Records with text that have no vector there are pending, those in
        ``refused`` parked for the reason given.

        Raises:
            ConfigurationError: there is no next space.
        """
        ...

    def drop_next(self) -> None:
        """Give the next space up."""
        ...

    def drop_former(self, limit: int) -> int:
        """Remove up to ``limit`` vectors of embedders that are neither in use nor next; how many were."""
        ...

    def insert(self, record: Record, vectors: VectorWrite | None) -> int:
        """Add a record with its tokens and vectors, or marked as pending if it has text, the file has a
        fingerprint and ``vectors`` is None. Gives its key.
        """
        ...

    def insert_many(self, new: Sequence[tuple[Record, VectorWrite | None]]) -> list[int]:
        """:meth:`insert` of each, and their keys in order; none is added if one is refused."""
        ...

    def replace(self, key: int, record: Record, vectors: VectorWrite | None) -> None:
        """Put ``record`` in the place of the one at ``key``. Tokens, vectors and the pending mark follow the text:
        if that is unchanged and ``vectors`` is None, the vectors stay.
        """
        ...

    def attach(self, key: int, vectors: VectorWrite) -> bool:
        """Attach vectors to a pending record if its text is still the one they were made of; whether it was."""
        ...

    def claim_pending(self, visible: Visibility, limit: int, now: datetime, until: datetime) -> dict[int, Record]:
        """Some of the visible records that wait for a vector and that nobody else has claimed, now claimed until
        ``until``; none that is parked.
        """
        ...

    def release(self, keys: Sequence[int]) -> None:
        """Give claims back."""
        ...

    def park(self, key: int, reason: str) -> None:
        """Leave a waiting record out of claims, for its text was refused, until that changes or it is unparked."""
        ...

    def unpark(self, visible: Visibility) -> int:
        """Take visible parked records in again; how many there were."""
        ...

    def set_archived(self, keys: Sequence[int], at: datetime | None) -> None:
        """Archive (or, with None, restore) records; tokens and vectors stay."""
        ...

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows, tokens, vectors, pending marks and all links from or to them; unknown keys are passed over."""
        ...

    def put_links(self, links: Sequence[LinkWrite], at: datetime) -> int:
        """Make links; one that is there gets the new weight and keeps its time. How many are new.

        Raises:
            RecordNotFoundError: an end does not exist.
            ConfigurationError: both ends are one record.
        """
        ...

    def delete_links(
        self, *, source: int | None = None, target: int | None = None, kinds: Sequence[str] | None = None
    ) -> int:
        """Remove the links from ``source``, to ``target``, or of both; of these kinds, or of all. How many there were.

        Raises:
            ConfigurationError: neither end is given.
        """
        ...

    def touch(self, touches: Mapping[int, Touch], growth: float = 1.0) -> None:
        """Count uses of records: access_count grows by ``times``, last_accessed is the later time, strength is
        multiplied with growth^times, up to 100 and never to less than it was. Not a write otherwise: generation,
        revision, updated_at, tokens and vectors stay. Unknown keys are passed over.

        Args:
            touches: by key.
            growth: at least 1.
        """
        ...

    def put_marks(self, owner: Owner, namespace: str, marks: Sequence[Mark]) -> None:
        """Write marks; the same key again replaces it."""
        ...

    def delete_marks(self, owner: Owner, namespace: str, keys: Sequence[str]) -> None:
        """Remove marks; unknown keys are passed over."""
        ...

    def forget_marks(self, owner: Owner, keys: Sequence[str] | None = None) -> int:
        """Remove an owner's marks in every namespace, those of ``keys`` or all. How many there were."""
        ...


class Backend(Protocol):
    """A place that records are kept in."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a record's pieces of text, fixed when the file was made."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """What turns text into the tokens of this file's keyword index; queries go through the same."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """A snapshot. A session opened under a :class:`twofold.cancellation.Cancellation` is interrupted by it."""
        ...

    def write(self) -> AbstractContextManager[Writer]:
        """A transaction, begun with the write lock held.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: another process held the lock too long.
        """
        ...

    def info(self) -> StoreInfo:
        """What it says of itself."""
        ...

    def check(self) -> CheckReport:
        """Compare everything derived with the rows it is derived from. Changes nothing."""
        ...

    def reindex(self) -> None:
        """Make the keyword index anew from the rows."""
        ...

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Copy all there is, as it is at this moment, into a file that can be opened like this one; where it is then.
        Writers do not wait for it, nor does it start over for them. The copy gets its name when it is whole.

        Args:
            target: the file, or a folder to put it in under the name that this one has.
            overwrite: whether a file that is there already is replaced.
            progress: called with what is copied and how much there is, in units of the backend's own.

        Raises:
            ConfigurationError: the target cannot be used, or is there already, or in use.
        """
        ...

    def scrub(self) -> None:
        """Leave no byte of what was deleted before, in the file, its log, or what is saved beside it.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: a reader still needs an old state, or another process is writing; call it again later.
            StorageFullError: there is no room for a second copy, which this may need for a moment.
        """
        ...

    def close(self) -> None:
        """Wait for what is in flight, then close. Calling it again does nothing."""
        ...
