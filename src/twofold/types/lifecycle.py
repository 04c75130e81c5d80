"""What the calls about a record's life give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from twofold.types.access import Owner
from twofold.types.degradation import Degradation

__all__ = ["Faded", "PruneReport", "ReembedReport", "Stats"]


@dataclass(frozen=True, slots=True)
class Faded:
    """A record of which too little is retained."""

    id: str
    """Its id."""
    retention: float
    """How much is, 0 to 1."""
    namespace: tuple[str, ...]
    """Where it is."""
    owner: Owner
    """Whose it is."""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What has faded, and what became of it."""

    faded: tuple[Faded, ...]
    """What has, the most faded first."""
    archived: int
    """How many of them are archived now: all, or none where it was only tried."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """How far a store has come on its way to another embedder."""

    done: bool
    """Whether the store's vectors are of the new embedder now. If not, the old ones still answer, and the next
    ``reembed()`` goes on from here."""
    embedded: int = 0
    """How many records this call has made vectors for."""
    parked: int = 0
    """How many records the new embedder refused."""
    remaining: int = 0
    """How many still have no vector of the new embedder, parked ones included."""
    degradations: tuple[Degradation, ...] = ()
    """Why it ended before all was done; empty if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What there is, of what the caller may see and the filter fits.

    Unless said otherwise it is of the records that a search would show now.
    """

    records: int
    """How many there are."""
    by_kind: Mapping[str, int] = field(default_factory=dict)
    """How many of each kind."""
    by_scope: Mapping[str, int] = field(default_factory=dict)
    """How many of each scope."""
    by_owner: Mapping[Owner, int] = field(default_factory=dict)
    """How many each owner has."""
    oldest: datetime | None = None
    """When the first was made; None if there are none."""
    newest: datetime | None = None
    """When the last was made; None if there are none."""
    pending: int = 0
    """How many wait for a vector; 0 where there is no embedder that they could wait for."""
    vectors: int = 0
    """How many vectors they have: one for each piece of text that was embedded."""
    links: int = 0
    """How many links lead from one of them to another."""
    text_bytes: int = 0
    """How much their text takes, with the names of their fields, as it is stored."""
    vector_bytes: int = 0
    """How much their vectors take."""
    retention: tuple[int, ...] = (0,) * 10
    """How many retain 0 up to 0.1, 0.1 up to 0.2, … 0.9 to 1; see :func:`twofold.ranking.retention`."""
    archived: int = 0
    """How many others are archived."""
    superseded: int = 0
    """How many others another record has taken the place of; archived ones too, and so below."""
    expired: int = 0
    """How many others have expired and await ``sweep()``."""
    out_of_date: int = 0
    """How many others are not valid any more, superseded ones not counted."""
    not_yet_valid: int = 0
    """How many others are not valid yet."""
