"""Why each hit is there, and what each stage did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold.backends.protocol import Reader
from twofold.ranking import KEYWORD, VECTOR, Adder, Standing, composite, leg_name, plain_leg
from twofold.search.fields import cosines_by_field
from twofold.types import Dropped, Explanation, LegScore, LinkStep, Stage

if TYPE_CHECKING:  # the legs write into the diary
    from twofold.search.legs import Leg
    from twofold.search.order import Ranking
    from twofold.search.request import PreparedSearch

__all__ = ["Diary", "Explainer", "Told", "explainer"]


class Told(NamedTuple):
    """What went through a stage, by keys: of records only that the caller may see."""

    detail: Mapping[str, Any]
    """What is particular to the stage."""
    output: Sequence[int] = ()
    """What it gave on, best first."""
    dropped: Mapping[int, str] = {}
    """What it did not, and why."""


class Diary:
    """Notes what each stage took and, if a trace is asked for, what went through it.

    Args:
        trace: whether it is; if not, nothing is told and nothing is kept but the time.
    """

    def __init__(self, *, trace: bool) -> None:
        self.timings: dict[str, float] = {}
        self._told: list[tuple[str, float, Told]] | None = [] if trace else None
        self._ids: dict[int, str] = {}
        self._since = perf_counter()

    def note(self, stage: str, tell: Callable[[], Told], milliseconds: float | None = None) -> None:
        """A stage has ended."""
        now = perf_counter()
        taken = (now - self._since) * 1000 if milliseconds is None else milliseconds
        self.timings[stage] = taken
        self._since = now
        if self._told is not None:
            self._told.append((stage, taken, tell()))
            self._since = perf_counter()  # telling is not the next stage's time

    def count(self, milliseconds: float) -> None:
        """What goes on took so long besides: its share of work that was done before, for several at once."""
        self._since -= milliseconds / 1000

    def note_leg(self, stage: str, leg: Leg | None, **asked: object) -> None:
        """A leg has answered, or has not."""
        if leg is None:
            self.note(stage, lambda: Told({**asked, "found": None}))
            return
        self.note(
            stage,
            lambda: Told({**asked, "found": len(leg.head) + len(leg.tail)}, list(leg.head), dict(leg.dropped)),
        )

    def learn(self, reader: Reader) -> None:
        """Look up the ids of what was told; what is told after this is of the same records."""
        if self._told is None:
            return
        keys = {key for _, _, told in self._told for key in (*told.output, *told.dropped)}.difference(self._ids)
        if keys:
            self._ids |= {key: identity.id for key, identity in reader.identities(sorted(keys)).items()}

    def trace(self) -> tuple[Stage, ...] | None:
        """All stages in the words of the user's ids; None if no trace was asked for."""
        if self._told is None:
            return None
        ids = self._ids
        return tuple(
            Stage(
                name=name,
                milliseconds=taken,
                detail=told.detail,
                output=tuple(ids[key] for key in told.output),
                dropped=tuple(Dropped(ids[key], reason) for key, reason in told.dropped.items()),
            )
            for name, taken, told in self._told
        )


class Explainer:
    """Knows why each of some records is there, and says so when somebody asks: nobody asks of most hits.

    Made by :func:`explainer` within the session; what it says after that is from memory.

    Args:
        legs: what was found.
        ranking: what became of it; it may still be put in another order.
        matched: by leg and record, the fields that matched.
        standings: by key, what weighed records inside of the keyword leg.
    """

    __slots__ = ("_ceiling", "_legs", "_matched", "_places", "_ranking", "_standings")

    def __init__(
        self,
        legs: Mapping[str, Leg],
        ranking: Ranking,
        matched: Mapping[tuple[str, int], tuple[str, ...]],
        standings: Mapping[int, Standing],
    ) -> None:
        self._legs = legs
        self._ranking = ranking
        self._ceiling = ranking.ceiling  # as long as the scores are the fused ones
        self._matched = matched
        self._standings = standings
        self._places: dict[str, dict[int, _Place]] | None = None

    def of(self, key: int, path: tuple[LinkStep, ...] = ()) -> Explanation:
        """Where a record comes from; ``path`` if that is from a hit, by links."""
        places = self._places
        if places is None:
            fusion = self._ranking.fusion
            places = self._places = {
                name: _places(leg, fusion.adder(name, list(leg.head.items()))) for name, leg in self._legs.items()
            }
        ranking = self._ranking
        return Explanation(
            legs={name: self._leg_score(name, key, own[key]) for name, own in places.items() if key in own},
            answered=tuple(self._legs),
            fused=ranking.fused.get(key, 0.0),
            factors=ranking.factors.get(key, {}),
            best_possible=self._ceiling,
            formula=ranking.fusion.formula,
            path=path,
            reranked=None if path else ranking.reranked.get(key),  # the score of a linked one is made of its path
            diversity=ranking.diversity.get(key),
        )

    def _leg_score(self, name: str, key: int, place: _Place) -> LegScore:
        leg = self._legs[name]
        standing = self._standings.get(key) if plain_leg(name) == KEYWORD else None
        factor = 1.0 if standing is None else composite(standing.strength, standing.importance)
        return LegScore(
            rank=place.rank,
            raw=leg.raw.get(key, place.score) / factor if factor > 0 else 0.0,
            adjacency=leg.adjacency.get(key, 1.0),
            prior=factor,
            contribution=place.contribution,
            fields=self._matched.get((name, key), ()),
        )


class _Place(NamedTuple):
    """Where a leg has a record."""

    rank: int
    score: float
    contribution: float | None


def _places(leg: Leg, adds: Adder | None) -> dict[int, _Place]:
    """By key; what lies past the pool adds nothing that is known."""
    places = {key: _Place(rank, score, None) for rank, (key, score) in enumerate(leg.tail.items(), start=leg.pool + 1)}
    for rank, (key, score) in enumerate(leg.head.items(), start=1):
        places[key] = _Place(rank, score, None if adds is None else adds(rank, score))
    return places


def explainer(
    prepared: PreparedSearch, legs: Mapping[str, Leg], ranking: Ranking, keys: Sequence[int], reader: Reader
) -> Explainer:
    """Ask the session what explaining these records takes."""
    weighed = prepared.request.params.prior == "keyword" and any(plain_leg(name) == KEYWORD for name in legs)
    return Explainer(
        legs,
        ranking,
        _matched_fields(prepared, legs, keys, reader),
        reader.standings(keys) if weighed and keys else {},
    )


def _matched_fields(
    prepared: PreparedSearch, legs: Mapping[str, Leg], keys: Sequence[int], reader: Reader
) -> dict[tuple[str, int], tuple[str, ...]]:
    """By leg and record, the fields that matched; nothing in a store of one field."""
    matched: dict[tuple[str, int], tuple[str, ...]] = {}
    if len(prepared.fields) == 1 or not keys:
        return matched
    for number, each in enumerate((prepared, *prepared.others), start=1):
        keyword, vector = leg_name(KEYWORD, number), leg_name(VECTOR, number)
        if keyword in legs:
            query = legs[keyword].query or each.query
            matched |= {(keyword, key): names for key, names in reader.keyword_fields(query, keys).items()}
        if vector in legs and each.vector is not None:
            queries = each.by_field or dict.fromkeys(each.fields, each.vector)
            for key, cosines in cosines_by_field(reader, queries, keys).items():
                in_order = sorted((-cosine, each.fields.index(name), name) for name, cosine in cosines.items())
                matched[vector, key] = tuple(name for _, _, name in in_order)
    return matched
