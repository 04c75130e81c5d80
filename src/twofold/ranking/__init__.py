"""Pure functions that turn candidates into a ranking: no I/O, no clock of their own."""

from twofold.ranking.calibration import background_of, spread_evenly
from twofold.ranking.expansion import Edge, Neighbors, Reached, Step, linked_score, reach
from twofold.ranking.fusion import (
    KEYWORD,
    VECTOR,
    AdditiveBonus,
    Alpha,
    Calibrated,
    DistributionBased,
    Found,
    Fusion,
    OneLeg,
    OwnFusion,
    ReciprocalRank,
    RelativeScore,
)
from twofold.ranking.order import adjacency_factor, in_total_order
from twofold.ranking.prior import MOST_STRENGTH, Bounds, Prior, Standing, composite, with_factors

__all__ = [
    "KEYWORD",
    "MOST_STRENGTH",
    "VECTOR",
    "AdditiveBonus",
    "Alpha",
    "Bounds",
    "Calibrated",
    "DistributionBased",
    "Edge",
    "Found",
    "Fusion",
    "Neighbors",
    "OneLeg",
    "OwnFusion",
    "Prior",
    "Reached",
    "ReciprocalRank",
    "RelativeScore",
    "Standing",
    "Step",
    "adjacency_factor",
    "background_of",
    "composite",
    "in_total_order",
    "linked_score",
    "reach",
    "spread_evenly",
    "with_factors",
]
