"""Pure functions that turn candidates into a ranking: no I/O, no clock of their own."""

from twofold.ranking.expansion import Edge, Neighbors, Reached, Step, linked_score, reach
from twofold.ranking.fusion import reciprocal_rank, reciprocal_rank_fusion, reciprocal_rank_maximum
from twofold.ranking.order import adjacency_factor, in_total_order

__all__ = [
    "Edge",
    "Neighbors",
    "Reached",
    "Step",
    "adjacency_factor",
    "in_total_order",
    "linked_score",
    "reach",
    "reciprocal_rank",
    "reciprocal_rank_fusion",
    "reciprocal_rank_maximum",
]
