"""The total order of all that the legs found: fusion, then priors, then the rule for ties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from twofold.backends.protocol import Reader, Visibility
from twofold.config import SearchParams
from twofold.ranking import (
    KEYWORD,
    VECTOR,
    AdditiveBonus,
    Alpha,
    Calibrated,
    DistributionBased,
    Fusion,
    MeanOfPhrasings,
    OneLeg,
    OwnFusion,
    Phrasing,
    Prior,
    ReciprocalRank,
    RelativeScore,
    in_total_order,
    leg_name,
    with_factors,
)
from twofold.search.legs import Leg
from twofold.search.request import PreparedSearch, SearchRequest
from twofold.types import Diversity, Mode, Reranked

__all__ = ["Ranking", "rank"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Ranking:
    """All that was found, in its final order as far as it was asked for."""

    keys: list[int]
    """Best first: right to the end of the page, what comes after it in any order."""
    scores: Mapping[int, float]
    """By key, what it is ordered by: the fused score times its factors, neither scaled nor clipped; or the reranker's
    score."""
    ceiling: float
    """What scores are divided by."""
    fusion: Fusion
    """What made the legs one."""
    fused: Mapping[int, float]
    """By key, the score before the factors."""
    factors: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """By key, the factors that are not 1, of those whose place they could change."""
    pooled: int = 0
    """How many of the keys the fusion ranked; those that follow lie past the pools."""
    reranked: Mapping[int, Reranked] = field(default_factory=dict)
    """By key, what the reranker said, where one judged."""
    diversity: Mapping[int, Diversity] = field(default_factory=dict)
    """By key, how it was chosen to differ from those before it, where that was asked for."""

    def score(self, key: int) -> float:
        """From 0 to 1."""
        score = self.scores[key] / self.ceiling if self.ceiling > 0 else 0.0
        return min(1.0, score) if score > 0.0 else 0.0


def rank(prepared: PreparedSearch, legs: Mapping[str, Leg], reader: Reader, visible: Visibility) -> Ranking:
    """Fuse what the legs found, weigh it by what it carries, and put it in order at least to the end of the page; all
    of it where it is put in another order afterwards.

    Args:
        prepared: what was asked.
        legs: what was found.
        reader: the session.
        visible: among what it was found.
    """
    request = prepared.request
    making = _fusion_of_all if prepared.others else _fusion
    fusion = making(prepared, legs, reader, visible)
    fused = fusion.fuse({name: list(leg.head.items()) for name, leg in legs.items()})
    places = max(request.wanted, len(fused)) if prepared.reorders else request.wanted
    ordered = sorted(fused, key=fused.__getitem__, reverse=True)
    factors = _factors(fused, ordered, request, reader, places)
    scores = fused
    if factors:
        scores = {**fused, **{key: with_factors(fused[key], found) for key, found in factors.items()}}
        ordered = sorted(scores, key=scores.__getitem__, reverse=True)
    keys = in_total_order(scores, reader.places, places, ordered)
    pooled = len(keys)
    if request.wanted > len(keys):
        past = _past_the_pools(legs, scores, fusion, reader)
        keys += past
        scores, fused = {**scores, **past}, {**fused, **past}
    return Ranking(keys, scores, fusion.ceiling(prepared.configured), fusion, fused, factors, pooled)


def _fusion_of_all(prepared: PreparedSearch, legs: Mapping[str, Leg], reader: Reader, visible: Visibility) -> Fusion:
    """Each phrasing fused as if it were asked alone, and the mean of them."""
    phrasings = []
    for number, each in enumerate((prepared, *prepared.others), start=1):
        own = {leg: legs[name] for leg in (KEYWORD, VECTOR) if (name := leg_name(leg, number)) in legs}
        fusion = _fusion(each, own, reader, visible)
        phrasings.append(Phrasing(fusion, fusion.ceiling(each.configured)))
    return MeanOfPhrasings(phrasings)


def _fusion(prepared: PreparedSearch, legs: Mapping[str, Leg], reader: Reader, visible: Visibility) -> Fusion:
    """What the parameters ask for; with one leg asked for by mode there is nothing to fuse."""
    request, params = prepared.request, prepared.request.params
    if request.mode is Mode.VECTOR:
        return OneLeg("cosine", 1.0)
    if request.mode is Mode.KEYWORD:
        found = legs[KEYWORD].head if KEYWORD in legs else {}
        return OneLeg("bm25 / best", next(iter(found.values()), 1.0))
    keyword_share, vector_share = params.shares
    shares = {KEYWORD: keyword_share, VECTOR: vector_share}
    if params.fusion == "rrf":
        return ReciprocalRank(shares) if params.rrf_k is None else ReciprocalRank(shares, params.rrf_k)
    if params.fusion == "additive":
        return AdditiveBonus(shares)
    if params.fusion == "alpha":
        return Alpha(shares)
    if params.fusion == "relative":
        return RelativeScore(shares)
    if params.fusion == "dbsf":
        return DistributionBased(shares)
    if params.fusion == "calibrated":
        if VECTOR not in legs:
            return Calibrated(shares)
        # Of what the caller may see, whatever is asked: so that one score means the same from query to query.
        is_all = visible.where is None and not (visible.include_archived or visible.as_of)
        everything = visible if is_all else Visibility(request.seen.access, request.at)
        coverage = reader.coverage(prepared.query, everything) if KEYWORD in legs else 1.0
        return Calibrated(shares, reader.background(everything), coverage or 1.0)  # 0: nothing is found to be scaled
    return OwnFusion(params.fusion)


# -- priors -------------------------------------------------------------------------------------------------------


def _prior(params: SearchParams) -> Prior:
    return Prior(
        span=params.span,
        importance=params.importance_weight,
        strength=params.strength_weight,
        recency=params.recency_weight,
        retention=params.retention_weight,
        recency_half_life=params.recency_half_life,
        retention_half_life=params.retention_half_life,
        confidence=params.confidence,
        project=params.project,
        project_weight=params.project_weight,
    )


def _factors(
    fused: Mapping[int, float], ordered: list[int], request: SearchRequest, reader: Reader, places: int
) -> dict[int, dict[str, float]]:
    """The factors that are not 1, by key. Only records that a factor could bring into the places that are asked for,
    or out of them, are looked at, in one statement.
    """
    prior = _prior(request.params)
    if prior.is_off or not ordered or not request.k:
        return {}
    contenders = _contenders(fused, ordered, places, prior)
    standings = reader.standings(
        contenders, confidence=request.params.confidence, uncommon=prior.looks_at_standing_alone
    )
    if not standings:
        return {}
    now = (request.at - _EPOCH).total_seconds()
    return {key: found for key, each in standings.items() if (found := prior.factors(each, now))}


def _contenders(fused: Mapping[int, float], ordered: list[int], wanted: int, prior: Prior) -> list[int]:
    """The records that may end within the first ``wanted`` places, of those that stand in order before the factors."""
    if wanted >= len(ordered):
        return ordered
    least, most = prior.bounds
    sure = with_factors(fused[ordered[wanted - 1]], {"": least})  # so many records end at this or above
    end = wanted
    for key in ordered[wanted:]:
        score = fused[key]
        if (score * most if score >= 0 else score / most) < sure:  # with_factors, written out
            break
        end += 1
    return ordered[:end]


# -- past the pools -----------------------------------------------------------------------------------------------


def _past_the_pools(
    legs: Mapping[str, Leg], scores: Mapping[int, float], fusion: Fusion, reader: Reader
) -> dict[int, float]:
    """What lies past every leg's pool, in leg order: by the better of its ranks, whatever the depth looked at, so that
    pages neither overlap nor skip. The scores go on falling from where the pool's ended.
    """
    best: dict[int, tuple[int, str, float]] = {}
    for name, leg in legs.items():
        for rank_there, (key, score) in enumerate(leg.tail.items(), start=leg.pool + 1):
            if key not in scores and rank_there < best.get(key, (rank_there + 1,))[0]:
                best[key] = (rank_there, name, score)
    adders = {name: fusion.adder(name, list(leg.head.items())) for name, leg in legs.items()}
    ceiling = min(scores.values(), default=math.inf)
    past: dict[int, float] = {}
    for key in in_total_order({key: -float(place) for key, (place, _, _) in best.items()}, reader.places):
        place, name, score = best[key]
        adder = adders[name]
        ceiling = min(ceiling, ceiling if adder is None else adder(place, score))
        past[key] = ceiling if math.isfinite(ceiling) else 0.0
    return past
