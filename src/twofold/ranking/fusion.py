"""Several rankings made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["reciprocal_rank", "reciprocal_rank_fusion", "reciprocal_rank_maximum"]


def reciprocal_rank(rank: int, weight: float, rrf_k: float) -> float:
    """What a leg adds to the score of the record it has at ``rank``: ``weight / (rrf_k + rank)``."""
    return weight / (rrf_k + rank)


def reciprocal_rank_fusion(
    legs: Mapping[str, Sequence[int]], weights: Mapping[str, float], rrf_k: float
) -> dict[int, float]:
    """Weighted reciprocal rank fusion: ``Σ_leg w_leg / (rrf_k + rank_leg)``.

    Ranks start at 1; a leg that did not find a record adds nothing. Formula and the constant 60: Cormack, Clarke and
    Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.

    Args:
        legs: by leg, the keys it found, best first, none twice.
        weights: by leg, 0 or more.
        rrf_k: 0 or more.

    Returns:
        Scores by key, in no particular order; from 0 to :func:`reciprocal_rank_maximum`.
    """
    fused: dict[int, float] = {}
    for leg, keys in legs.items():
        weight = weights[leg]
        for rank, key in enumerate(keys, start=1):
            fused[key] = fused.get(key, 0.0) + weight / (rrf_k + rank)  # reciprocal_rank, on the hot path
    return fused


def reciprocal_rank_maximum(weights: Mapping[str, float], rrf_k: float) -> float:
    """The score of a record that is first in every leg: ``Σ_leg w_leg / (rrf_k + 1)``."""
    total = 0.0
    for weight in weights.values():
        total += reciprocal_rank(1, weight, rrf_k)
    return total
