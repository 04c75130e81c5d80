"""Pure functions that turn candidates into a ranking: no I/O, no clock of their own."""

from twofold.ranking.calibration import background_of, spread_evenly
from twofold.ranking.diversity import Chosen, diverse
from twofold.ranking.expansion import Edge, Neighbors, Reached, Step, linked_score, reach
from twofold.ranking.fusion import (
    KEYWORD,
    VECTOR,
    Adder,
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
from twofold.ranking.phrasings import MeanOfPhrasings, Phrasing, leg_name, plain_leg
from twofold.ranking.prior import MOST_STRENGTH, Bounds, Prior, Standing, composite, with_factors

__all__ = [
    "KEYWORD",
    "MOST_STRENGTH",
    "VECTOR",
    "Adder",
    "AdditiveBonus",
    "Alpha",
    "Bounds",
    "Calibrated",
    "Chosen",
    "DistributionBased",
    "Edge",
    "Found",
    "Fusion",
    "MeanOfPhrasings",
    "Neighbors",
    "OneLeg",
    "OwnFusion",
    "Phrasing",
    "Prior",
    "Reached",
    "ReciprocalRank",
    "RelativeScore",
    "Standing",
    "Step",
    "adjacency_factor",
    "background_of",
    "composite",
    "diverse",
    "in_total_order",
    "leg_name",
    "linked_score",
    "plain_leg",
    "reach",
    "spread_evenly",
    "with_factors",
]
