"""One question asked in several ways: the rankings of all of them made one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from twofold.ranking.fusion import KEYWORD, VECTOR, Adder, Found, Fusion

__all__ = ["MeanOfPhrasings", "Phrasing", "leg_name", "plain_leg"]


def leg_name(leg: str, number: int) -> str:
    """What a leg of the phrasing of this number, from 1, is called: ``"keyword"``, ``"keyword[2]"``."""
    return leg if number == 1 else f"{leg}[{number}]"


def plain_leg(name: str) -> str:
    """The leg that a name is of: ``"keyword"`` of ``"keyword[2]"``."""
    return name.partition("[")[0]


@dataclass(frozen=True, slots=True)
class Phrasing:
    """How one of the phrasings is fused."""

    fusion: Fusion
    """As if it were asked alone."""
    ceiling: float
    """The most that it gives a record, of its configured legs."""


@dataclass(frozen=True, slots=True)
class MeanOfPhrasings:
    """``Σ_p score_p / n``: the mean of what a record scores by each of n phrasings, from 0 to 1 as if that were asked
    alone, and 0 by one that does not find it.

    With reciprocal rank fusion the order is that of the sum over all legs of all phrasings, known as RAG-fusion.

    Range: that of the fusion over its ceiling, cut to 0 to 1 only when the mean is made: 1 is what every phrasing puts
    at its best. As ``min_score`` it keeps what the phrasings agree on.
    """

    phrasings: Sequence[Phrasing]
    """At least one."""
    _of: Mapping[str, tuple[str, Phrasing]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbered = list(enumerate(self.phrasings, start=1))
        of = {leg_name(leg, number): (leg, each) for number, each in numbered for leg in (KEYWORD, VECTOR)}
        object.__setattr__(self, "_of", of)

    @property
    def formula(self) -> str:
        """In short."""
        return f"mean of {len(self.phrasings)} phrasings by {self.phrasings[0].fusion.formula}"

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """See :class:`Fusion`; legs by their names of :func:`leg_name`."""
        fused: dict[int, float] = {}
        for each in self.phrasings:
            own = {leg: legs[name] for name, (leg, whose) in self._of.items() if whose is each and name in legs}
            share = self._share(each)
            for key, score in each.fusion.fuse(own).items():
                fused[key] = fused.get(key, 0.0) + score * share
        return fused

    def adder(self, leg: str, found: Found) -> Adder | None:
        """What it adds to its phrasing's score, over that one's ceiling and the number of phrasings."""
        plain, whose = self._of[leg]
        adds = whose.fusion.adder(plain, found)
        share = self._share(whose)
        return None if adds is None else lambda rank, score: adds(rank, score) * share

    def ceiling(self, legs: Collection[str]) -> float:  # noqa: ARG002 - of the protocol
        """1."""
        return 1.0

    def _share(self, phrasing: Phrasing) -> float:
        """What its scores are multiplied with."""
        return 1.0 / (phrasing.ceiling * len(self.phrasings)) if phrasing.ceiling > 0 else 0.0
