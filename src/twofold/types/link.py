"""Links between records, and the way from a hit to a record that is linked to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from twofold.types.access import Owner
from twofold.types.record import Record

__all__ = ["DEFAULT_LINK_KIND", "Direction", "Link", "LinkKind", "LinkStep", "Neighbor"]


class LinkKind(StrEnum):
    """The kinds of link that twofold itself makes or knows of; any other word of yours is a kind too."""

    RELATED = "related"
    """They have to do with each other: what :meth:`HybridStore.link` makes if no kind is given."""
    CO_EXTRACTED = "co_extracted"
    """They were extracted from one text: ``add_many(..., extracted_together=True)``."""
    SEMANTIC = "semantic"
    """They mean much the same: ``StoreSettings.semantic_links``; the weight is the cosine."""
    CONSOLIDATED = "consolidated"
    """The one was made of the other, by putting several records together: :meth:`HybridStore.consolidate`."""
    SUPERSEDES = "supersedes"
    """The one took the other's place: :meth:`HybridStore.supersede`."""


DEFAULT_LINK_KIND: Final = LinkKind.RELATED.value
"""The kind of a link that is given none."""


class Direction(StrEnum):
    """Which of a record's links are meant."""

    BOTH = "both"
    """Those that lead from it and those that lead to it."""
    OUT = "out"
    """Those that lead from it."""
    IN = "in"
    """Those that lead to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A weighted edge from one record to another. It belongs to its source's owner, and who sees both ends sees it.

    Of two records there is at most one link of each kind and direction.
    """

    source: str
    """The id of the record that it leads from."""
    target: str
    """The id of the record that it leads to."""
    kind: str
    """A :class:`LinkKind`, or a word of yours."""
    weight: float
    """Above 0, at most 1; the strongest are followed first."""
    created_at: datetime
    """UTC; kept when the weight is changed."""
    namespace: tuple[str, ...]
    """The source's namespace."""
    owner: Owner
    """The source's owner."""
    target_namespace: tuple[str, ...]
    """The target's namespace."""
    target_owner: Owner
    """The target's owner."""


@dataclass(frozen=True, slots=True)
class LinkStep:
    """One link on the way from a hit to a linked record."""

    start: str
    """The id of the record that the step begins at."""
    end: str
    """The id of the record that it ends at."""
    kind: str
    """The link's kind."""
    weight: float
    """The link's weight, above 0, at most 1."""
    forward: bool
    """Whether the step goes the link's way, from its source to its target."""

    def __str__(self) -> str:
        line = f"{self.kind} {self.weight:.3g}"
        return f"{self.start} -[{line}]-> {self.end}" if self.forward else f"{self.start} <-[{line}]- {self.end}"


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A record that links lead to."""

    record: Record
    """The record."""
    path: tuple[LinkStep, ...]
    """The strongest way to it, one step a hop."""
    score: float
    """Above 0, at most 1: the product of the steps' weights, and of ``SearchParams.link_decay`` once a step."""
