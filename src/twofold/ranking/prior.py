"""What a record carries whatever the query: importance, strength, age. Pure functions; the clock is passed in.

A prior never finds anything, and never buries anything: after fusion it is a bounded factor, the same for every query
and 1 for a record with default attributes. Inside the keyword leg it is a product that nothing bounds
(:func:`composite`), because the formula is known so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from twofold.ranking.retention import retention

__all__ = [
    "MOST_STRENGTH",
    "Bounds",
    "Prior",
    "Standing",
    "composite",
    "confidence_factor",
    "importance_part",
    "project_factor",
    "recency",
    "strength_part",
    "with_factors",
]

MOST_STRENGTH: Final = 1e6
"""More strength than this counts as this much in :func:`composite`, so that no product overflows."""


class Standing(NamedTuple):
    """What priors look at."""

    importance: float
    """0 to 1."""
    strength: float
    """Above 0."""
    created_at: float
    """Seconds since 1970."""
    last_accessed: float
    """Seconds since 1970."""
    kind: str
    """The record's type."""
    project: str | None
    """What it belongs to."""
    confidence: Any
    """What ``metadata["confidence"]`` holds, whatever that is; None if it is not there."""


class Bounds(NamedTuple):
    """Between what a factor lies."""

    least: float
    """Above 0."""
    most: float
    """At least ``least``."""


def composite(strength: float, importance: float) -> float:
    """What BM25 is multiplied with inside the keyword leg: ``strength · (1 + importance)``.

    Of two records as relevant as each other the strong, important one comes first. BM25 is higher-is-better here; with
    SQLite's own negative one a division would look right and do the opposite.

    Args:
        strength: 0 or more; above :data:`MOST_STRENGTH` it counts as that. 0 gives 0.
        importance: 0 to 1; 0 gives the strength alone.
    """
    return min(max(0.0, strength), MOST_STRENGTH) * (1 + importance)


def importance_part(importance: float) -> float:
    """Importance as -1 (none) to 1 (all): ``2 · importance - 1``; 0 for the default of 0.5."""
    return min(1.0, max(-1.0, 2.0 * importance - 1.0))


def strength_part(strength: float) -> float:
    """Strength as -1 (0) to 1 (without end): ``(s - 1) / (s + 1)``; 0 for the default of 1."""
    if not strength > 0:
        return -1.0
    return (strength - 1.0) / (strength + 1.0) if strength < 1e300 else 1.0


def recency(age_seconds: float, half_life: float) -> float:
    """How new a record is: ``0.5 ** (age / half_life)``.

    Args:
        age_seconds: since it was made; one that lies in the future counts as 0.
        half_life: seconds, above 0.

    Returns:
        0 to 1, never NaN; 1 at age 0.
    """
    age = max(0.0, age_seconds)  # in this order a NaN becomes 0
    return 0.0 if math.isinf(age) else math.exp2(-age / half_life)


def confidence_factor(confidence: object) -> float:
    """``0.5 + 0.5 · confidence``, known from ariadne; 1 where there is none, or it is not a number.

    Args:
        confidence: 0 to 1; what lies outside counts as the nearer of the two.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        return 1.0
    if isinstance(confidence, float) and math.isnan(confidence):
        return 1.0
    return 0.5 + 0.5 * min(1.0, max(0.0, confidence))


def project_factor(asked: str, project: str | None, kind: str, weight: float) -> float:
    """1 for a record of the project asked for, and for an insight of any; ``weight`` for all others.

    Args:
        asked: the project.
        project: the record's; None is another one.
        kind: the record's type.
        weight: above 0, at most 1.
    """
    return 1.0 if project == asked or kind == "insight" else weight


@dataclass(frozen=True, slots=True)
class Prior:
    """The factor that a fused score is multiplied with: ``bounded · confidence · project``.

    ``bounded = 1 + span · Σ w_part · part / Σ w_part``, each part from -1 to 1, so that it lies from 1 - span to
    1 + span. Importance and strength have a part of 0 at their defaults; recency and retention, which fall as time goes
    by, have ``2 · value - 1``.
    """

    span: float
    """How far ``bounded`` may go from 1, 0 to 0.5; 0: it is 1."""
    importance: float
    """The weight of importance, 0 or more."""
    strength: float
    """The weight of strength, 0 or more."""
    recency: float
    """The weight of recency, 0 or more."""
    retention: float
    """The weight of retention, 0 or more."""
    recency_half_life: float
    """Seconds, above 0."""
    retention_half_life: float
    """Seconds, above 0."""
    confidence: bool
    """Whether :func:`confidence_factor` counts."""
    project: str | None
    """The project asked for; None: projects do not count."""
    project_weight: float
    """What other projects' records are multiplied with, above 0, at most 1."""

    @property
    def is_off(self) -> bool:
        """Whether every factor is 1."""
        return not (self._is_bounded or self.confidence or self.project is not None)

    @property
    def _is_bounded(self) -> bool:
        return self.span > 0 and self.importance + self.strength + self.recency + self.retention > 0

    @property
    def looks_at_standing_alone(self) -> bool:
        """Whether importance and strength are all that counts: every factor is 1 where both have their defaults."""
        return not (self.confidence or self.project is not None or self.recency or self.retention)

    @property
    def bounds(self) -> Bounds:
        """Between what every factor lies."""
        span = self.span if self._is_bounded else 0.0
        least = (1.0 - span) * (0.5 if self.confidence else 1.0)
        return Bounds(least if self.project is None else least * self.project_weight, 1.0 + span)

    def factors(self, record: Standing, now: float) -> dict[str, float]:
        """By name, ``"prior"``, ``"confidence"`` and ``"project"``, the factors that are not 1.

        Args:
            record: what it carries.
            now: seconds since 1970.
        """
        named = {
            "prior": self._bounded(record, now) if self._is_bounded else 1.0,
            "confidence": confidence_factor(record.confidence) if self.confidence else 1.0,
            "project": 1.0
            if self.project is None
            else project_factor(self.project, record.project, record.kind, self.project_weight),
        }
        return {name: factor for name, factor in named.items() if factor != 1.0}

    def _bounded(self, record: Standing, now: float) -> float:
        total = weights = 0.0
        if self.importance:
            total += self.importance * importance_part(record.importance)
            weights += self.importance
        if self.strength:
            total += self.strength * strength_part(record.strength)
            weights += self.strength
        if self.recency:
            total += self.recency * (2.0 * recency(now - record.created_at, self.recency_half_life) - 1.0)
            weights += self.recency
        if self.retention:
            kept = retention(now - record.last_accessed, record.importance, record.strength, self.retention_half_life)
            total += self.retention * (2.0 * kept - 1.0)
            weights += self.retention
        return 1.0 + self.span * min(1.0, max(-1.0, total / weights))


def with_factors(score: float, factors: Mapping[str, float]) -> float:
    """``score`` times its factors; one below 0 is divided by them, so that a larger factor is always better."""
    for factor in factors.values():
        score = score * factor if score >= 0 else score / factor
    return score
