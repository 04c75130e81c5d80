"""Several rankings made one.

A :class:`Fusion` takes each leg's candidates, best first, and gives every record one score. All but a function of the
user's own are sums: each leg adds something for a record, made of its rank or its score there, and a leg that did not
find the record adds nothing. So every fusion can tell what each leg added (:meth:`Fusion.adder`) and the most that its
sum can be (:meth:`Fusion.ceiling`), which is what turns the sum into a score from 0 to 1.

What the legs' scores are: the keyword leg's BM25, 0 or more, comparable within one query only; the vector leg's
cosine, -1 to 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from twofold.errors import ConfigurationError

__all__ = [
    "KEYWORD",
    "VECTOR",
    "Adder",
    "AdditiveBonus",
    "Alpha",
    "Calibrated",
    "DistributionBased",
    "Found",
    "Fusion",
    "OneLeg",
    "OwnFusion",
    "ReciprocalRank",
    "RelativeScore",
]

KEYWORD: Final = "keyword"
"""The name of the keyword leg."""
VECTOR: Final = "vector"
"""The name of the vector leg."""

Found: TypeAlias = Sequence[tuple[int, float]]
"""What one leg found: key and score, best first, no key twice."""

Adder: TypeAlias = Callable[[int, float], float]
"""What a leg adds for a record, by its rank (from 1) and its score there."""


class Fusion(Protocol):
    """A way to make several rankings one."""

    @property
    def formula(self) -> str:
        """In short, e.g. ``"rrf(k=60)"``."""
        ...

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """Scores by key of all that any leg found, in no particular order; finite, higher is better."""
        ...

    def adder(self, leg: str, found: Found) -> Adder | None:
        """What the leg adds; None if this fusion is no sum."""
        ...

    def ceiling(self, legs: Collection[str]) -> float:
        """The most that a score is taken for where these legs are configured; above 0 unless all they add is 0."""
        ...


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """Weighted reciprocal rank fusion: ``Σ_leg w_leg / (rrf_k + rank_leg)``, ranks from 1.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009, with their constant of 60. Looks at ranks only: nothing has to be comparable, and nothing says how good
    the best record is.

    Range: 0 to ``Σ_leg w_leg / (rrf_k + 1)``, that of a record that is first in every leg. As a score from 0 to 1 it
    says how far the legs agree, and ``min_score=0.5`` keeps, of two legs of one weight, what is first in one of them
    or found by both. Only one result, equal scores, negative cosines: ranks are not touched by them.
    """

    weights: Mapping[str, float]
    """By leg, 0 or more."""
    rrf_k: float = 60.0
    """0 or more; a larger one flattens the ranks."""

    @property
    def formula(self) -> str:
        """In short."""
        return f"rrf(k={self.rrf_k:g})"

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """See :class:`Fusion`. On the path of every search, so the adder is written out."""
        fused: dict[int, float] = {}
        rrf_k = self.rrf_k
        for leg, found in legs.items():
            weight = self.weights[leg]
            for rank, (key, _) in enumerate(found, start=1):
                fused[key] = fused.get(key, 0.0) + weight / (rrf_k + rank)
        return fused

    def adder(self, leg: str, found: Found) -> Adder:  # noqa: ARG002 - of the protocol
        """``w / (rrf_k + rank)``."""
        weight = self.weights[leg]
        return lambda rank, _: weight / (self.rrf_k + rank)

    def ceiling(self, legs: Collection[str]) -> float:
        """The score of a record that is first in each of these legs."""
        total = 0.0
        for leg in legs:
            total += self.weights[leg] / (self.rrf_k + 1)
        return total


class _Line(NamedTuple):
    """A leg's score put on a scale: ``(score - shift) / scale``, kept from ``floor`` to ``cap``."""

    shift: float = 0.0
    scale: float = 1.0
    floor: float = -math.inf
    cap: float = math.inf

    def of(self, score: float) -> float:
        return min(self.cap, max(self.floor, (score - self.shift) / self.scale))


@dataclass(frozen=True, slots=True)
class _ByScore(ABC):
    """Fusions by score: ``Σ_leg share_leg · scaled_leg(score)``; they differ in how a leg's scores are scaled."""

    shares: Mapping[str, float]
    """By leg, what a scaled score of 1 adds; 0 or more."""

    @property
    @abstractmethod
    def formula(self) -> str: ...

    @abstractmethod
    def line(self, leg: str, scores: Sequence[float]) -> _Line:
        """How the scores of a leg, at least one, are scaled."""

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """See :class:`Fusion`."""
        fused: dict[int, float] = {}
        for leg, found in legs.items():
            if not found:
                continue
            share, (shift, scale, floor, cap) = self.shares[leg], self._line_of(leg, found)
            for key, score in found:
                scaled = (score - shift) / scale
                scaled = floor if scaled < floor else cap if scaled > cap else scaled  # noqa: FURB136 - several times quicker
                fused[key] = fused.get(key, 0.0) + share * scaled
        return fused

    def adder(self, leg: str, found: Found) -> Adder:
        """``share · scaled(score)``, scaled as by what the leg found."""
        share, line = self.shares[leg], self._line_of(leg, found) if found else _Line()
        return lambda _, score: share * line.of(score)

    def ceiling(self, legs: Collection[str]) -> float:
        """The sum of the legs' shares."""
        total = 0.0
        for leg in legs:
            total += self.shares[leg]
        return total

    def _line_of(self, leg: str, found: Found) -> _Line:
        return self.line(leg, [score for _, score in found])


class AdditiveBonus(_ByScore):
    """The cosine and a bonus for keywords: ``min(1, cosine + bonus · kw)``, kw = BM25 / best BM25 of the query.

    Known from localmem with a bonus of 0.25. The scale is the cosine's, so that ``min_score`` is a cosine that matching
    words may make up for. Records whose sum passes 1 keep their order, only the score that is shown ends there.

    Range: of the sum -1 to 1 + bonus; of the score 0 to 1. A record without a vector, or not found by the vector leg,
    has its bonus alone; a negative cosine counts as it is. With no vector leg at all the score is kw. One result, or
    all equal: kw is 1.
    """

    __slots__ = ()

    @property
    def formula(self) -> str:
        """In short."""
        return f"cosine + {self.shares[KEYWORD]:g} · bm25 / best"

    def line(self, leg: str, scores: Sequence[float]) -> _Line:
        """The cosine as it is, BM25 over the best."""
        return _over_the_best(scores) if leg == KEYWORD else _Line()

    def ceiling(self, legs: Collection[str]) -> float:
        """Where the sum is cut: at the vector leg's share, or at the bonus where there are keywords alone."""
        return self.shares[VECTOR] if VECTOR in legs and self.shares[VECTOR] > 0 else self.shares[KEYWORD]


class Alpha(_ByScore):
    """A convex sum of scores, each over its maximum: ``alpha · cos / max(1, best cos) + (1 - alpha) · BM25 / best``.

    Known from engram with an alpha of 0.7; the vector leg's maximum counts as 1 at least, so a best record that is
    not near keeps a low score. On convex sums: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid
    Retrieval", TOIS 2023.

    Range: up to 1; a negative cosine counts as it is and may bring a sum below 0, shown as 0. ``min_score`` is on this
    scale: 0.7 is a perfect cosine without any keyword. One result, or all equal: BM25 / best is 1.
    """

    __slots__ = ()

    @property
    def formula(self) -> str:
        """In short."""
        return f"{self.shares[VECTOR]:g} · cosine + {self.shares[KEYWORD]:g} · bm25 / best"

    def line(self, leg: str, scores: Sequence[float]) -> _Line:
        """Over the best, which of the vector leg is 1 at least."""
        return _over_the_best(scores) if leg == KEYWORD else _Line(scale=max(1.0, *scores))


class RelativeScore(_ByScore):
    """Min-max: ``Σ_leg share_leg · (score - least) / (most - least)``, least and most of what the leg found.

    Known from Weaviate as relative score fusion. The best of a leg counts in full and the last not at all, however
    good or bad they are, so ``min_score`` compares records of one answer only.

    Range: 0 to 1. Where a leg has no spread (one result, or all equal) each of its records counts in full. Negative
    cosines are scaled like others.
    """

    __slots__ = ()

    @property
    def formula(self) -> str:
        """In short."""
        return f"min-max, {self.shares[VECTOR]:g} vector + {self.shares[KEYWORD]:g} keyword"

    def line(self, leg: str, scores: Sequence[float]) -> _Line:  # noqa: ARG002 - both legs alike
        """From the least to the most."""
        least, spread = min(scores), max(scores) - min(scores)
        return _Line(shift=least, scale=spread) if spread > 0 else _Line(floor=1.0, cap=1.0)


class DistributionBased(_ByScore):
    """DBSF: ``Σ_leg share_leg · (score - (mean - 3·dev)) / 6·dev``, kept from 0 to 1; dev is the standard
    deviation of the sample.

    Mazzeschi, "Distribution-Based Score Fusion", 2023, as in Qdrant. A score at the leg's mean counts half, so
    ``min_score`` compares records of one answer only.

    Range: 0 to 1. Where a leg has no spread (one result, or all equal) each of its records counts half. Negative
    cosines are scaled like others.
    """

    __slots__ = ()

    @property
    def formula(self) -> str:
        """In short."""
        return f"dbsf, {self.shares[VECTOR]:g} vector + {self.shares[KEYWORD]:g} keyword"

    def line(self, leg: str, scores: Sequence[float]) -> _Line:  # noqa: ARG002 - both legs alike
        """From three deviations below the mean to three above."""
        mean = math.fsum(scores) / len(scores)
        if max(scores) == min(scores):
            return _Line(floor=0.5, cap=0.5)
        deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1))
        if not deviation > 0:  # squares too small for a float
            return _Line(floor=0.5, cap=0.5)
        return _Line(shift=mean - 3 * deviation, scale=6 * deviation, floor=0.0, cap=1.0)


@dataclass(frozen=True, slots=True)
class Calibrated(_ByScore):
    """A convex sum with the background taken off the cosine:
    ``alpha · max(0, (cos - μ) / (1 - μ)) + (1 - alpha) · coverage · BM25 / best``.

    μ is the cosine that two records have which have nothing to do with each other: near 0 with some models, 0.75 with
    others. Without it a model of high cosines makes everything near. Coverage is the share of the question's words that
    occur at all: where most do not, because it is asked in another language say, the best match is chance. Measured on
    judged sets with an alpha of 0.6, see the explanation of scores; on convex sums see :class:`Alpha`.

    Range: 0 to 1. ``min_score`` is on this scale: 0.6 is a perfect cosine without any keyword. What is less alike than
    the background, negative cosines included, adds nothing. One result, or all equal: BM25 / best is 1.
    """

    background: float = 0.0
    """μ, 0 to below 1."""
    coverage: float = 1.0
    """Above 0, at most 1."""

    @property
    def formula(self) -> str:
        """In short."""
        near = f"(cosine - {self.background:.3g}) / {1 - self.background:.3g}" if self.background else "cosine"
        kept = f" · {self.coverage:.3g}" if self.coverage < 1 else ""
        return f"{self.shares[VECTOR]:g} · {near} + {self.shares[KEYWORD]:g} · bm25 / best{kept}"

    def line(self, leg: str, scores: Sequence[float]) -> _Line:
        """From the background to 1, and BM25 over the best up to the coverage."""
        if leg == KEYWORD:
            return _Line(scale=_over_the_best(scores).scale / self.coverage)
        return _Line(shift=self.background, scale=1.0 - self.background, floor=0.0)


@dataclass(frozen=True, slots=True)
class OneLeg:
    """One leg alone, where there is nothing to fuse: the score is its own over ``best``.

    Range: the keyword leg's 0 to 1, the best hit always 1; the vector leg's is the cosine, shown as 0 where it is
    below. ``min_score`` is on that scale.
    """

    formula: str
    """In short."""
    best: float
    """What counts as 1."""

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """See :class:`Fusion`."""
        return {key: score for found in legs.values() for key, score in found}

    def adder(self, leg: str, found: Found) -> Adder:  # noqa: ARG002 - of the protocol
        """The score."""
        return lambda _, score: score

    def ceiling(self, legs: Collection[str]) -> float:  # noqa: ARG002 - of the protocol
        """The best."""
        return self.best


@dataclass(frozen=True, slots=True)
class OwnFusion:
    """A function of the user's own, given each leg's candidates; it returns a score by key.

    Range: what it returns, shown as 0 where it is below and as 1 where it is above; ``min_score`` is on that scale.

    Raises:
        ConfigurationError: by :meth:`fuse`, what it returned is not a finite score for some of the keys it was given.
    """

    function: Callable[[Mapping[str, Found]], Mapping[int, float]]
    """Given ``{"keyword": ((key, bm25), ...), "vector": ((key, cosine), ...)}``, best first."""

    @property
    def formula(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        """See :class:`Fusion`."""
        given = {leg: tuple((key, score) for key, score in found) for leg, found in legs.items()}
        known = {key: key for found in given.values() for key, _ in found}
        scores = self.function(given)
        if not isinstance(scores, Mapping) or not scores.keys() <= known.keys():
            raise ConfigurationError("a fusion of your own returns {key: score} for keys that it was given")
        try:
            fused = {known[key]: float(score) for key, score in scores.items()}  # an equal key may be of another type
        except (TypeError, ValueError, OverflowError):
            raise ConfigurationError("a fusion of your own returns numbers as scores") from None
        if not all(map(math.isfinite, fused.values())):
            raise ConfigurationError("a fusion of your own returned a score that is not finite")
        return fused

    def adder(self, leg: str, found: Found) -> None:  # noqa: ARG002 - of the protocol
        """Nobody knows."""
        return

    def ceiling(self, legs: Collection[str]) -> float:  # noqa: ARG002 - of the protocol
        """1."""
        return 1.0


def _over_the_best(scores: Sequence[float]) -> _Line:
    best = max(scores)
    return _Line(scale=best) if best > 0 else _Line(scale=math.inf)  # nothing is relevant: 0 for each
