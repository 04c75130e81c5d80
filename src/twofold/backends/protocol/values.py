"""What sessions take and give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.filters import Filter
from twofold.types import Access, Owner

__all__ = [
    "Candidate",
    "Capability",
    "CheckReport",
    "Damage",
    "Identity",
    "LinkWrite",
    "Mark",
    "Nearest",
    "Order",
    "Space",
    "StoreInfo",
    "StoredLink",
    "StoredVectors",
    "Tally",
    "Touch",
    "VectorWrite",
    "Visibility",
    "as_candidates",
    "by_key",
    "keys_of",
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


def keys_of(found: Iterable[Candidate]) -> list[int]:
    """The keys of candidates, in their order; as quickly."""
    return list(map(itemgetter(0), found))


def by_key(found: Iterable[Candidate]) -> dict[int, float]:
    """The scores of candidates by their keys, in their order; ``dict(found)`` takes twice as long."""
    return {key: score for key, score in found}  # noqa: C416


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
    sound: bool = False
    """Whether whoever made it has found each to be finite and not all zero, as what :func:`twofold.vectors.as_matrix`
    gives is: a backend then looks at their length alone. Default: it looks at each."""


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
