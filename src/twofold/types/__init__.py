"""Words and values: what the whole of twofold speaks of. No I/O, no SQL."""

from twofold.types.access import Access, Owner, Scope
from twofold.types.degradation import Degradation, DegradationCode
from twofold.types.link import DEFAULT_LINK_KIND, Direction, Link, LinkKind, LinkStep, Neighbor
from twofold.types.record import UNSET, Fields, NewRecord, Record, Unset, Vector, Vectors, content_hash
from twofold.types.result import (
    Added,
    AddReport,
    EmbedReport,
    Explanation,
    Hit,
    LegScore,
    Mode,
    NearDuplicate,
    Outcome,
    Progress,
    SearchResult,
    Stage,
)

__all__ = [
    "DEFAULT_LINK_KIND",
    "UNSET",
    "Access",
    "AddReport",
    "Added",
    "Degradation",
    "DegradationCode",
    "Direction",
    "EmbedReport",
    "Explanation",
    "Fields",
    "Hit",
    "LegScore",
    "Link",
    "LinkKind",
    "LinkStep",
    "Mode",
    "NearDuplicate",
    "Neighbor",
    "NewRecord",
    "Outcome",
    "Owner",
    "Progress",
    "Record",
    "Scope",
    "SearchResult",
    "Stage",
    "Unset",
    "Vector",
    "Vectors",
    "content_hash",
]
