"""What a backend is: it owns rows, both legs and what is visible. Ranking, ties of the fused list and text
analysis are the core's.

A backend hands out sessions. A :class:`Reader` is one snapshot: everything it answers belongs to one moment. A
:class:`Writer` is one transaction: it commits when its ``with`` block ends and leaves nothing behind when that
raises. No session is ever held while an embedder is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from twofold.filters import Filter
from twofold.ranking import Edge
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
    "StoreInfo",
    "StoredLink",
    "StoredVectors",
    "Touch",
    "VectorWrite",
    "Visibility",
    "Writer",
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


class Candidate(NamedTuple):
    """One record that a leg found."""

    key: int
    """The record's integer key."""
    score: float
    """Higher is better."""


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

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many records each token occurs, of the whole tenant; tokens that occur nowhere are left out."""
        ...

    def keyword(self, query: KeywordQuery, visible: Visibility, limit: int) -> list[Candidate]:
        """The ``limit`` best visible records that have any of the terms, by BM25 in total order.

        Raises:
            SearchUnavailableError: there is no keyword index, or it is damaged or out of date.
        """
        ...

    def adjacent(self, pairs: Sequence[tuple[str, str]], keys: Sequence[int]) -> dict[int, int]:
        """How many of ``pairs`` each of ``keys`` holds side by side, in order; those with none are left out."""
        ...

    def nearest(self, vector: npt.NDArray[np.float32], visible: Visibility, limit: int) -> Nearest:
        """The ``limit`` visible records whose best field's best part is nearest to ``vector`` by cosine.

        Args:
            vector: shape (dimension,), finite, not zero, of the active fingerprint.
        """
        ...

    def identities(self, keys: Sequence[int]) -> dict[int, Identity]:
        """What ties are broken by."""
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

    def scan(self, visible: Visibility, order: Sequence[Order], limit: int | None, offset: int) -> list[int]:
        """Keys of visible records; after ``order`` by newer, id, namespace, owner."""
        ...

    def count(self, visible: Visibility) -> int:
        """How many visible records there are."""
        ...

    def distinct(self, attribute: str, visible: Visibility) -> list[Any]:
        """The values, none twice and in order, that an attribute has among visible records; of ``tags``, each tag."""
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

    def close(self) -> None:
        """Wait for what is in flight, then close. Calling it again does nothing."""
        ...
