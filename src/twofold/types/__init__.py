"""Words and values: what the whole of twofold speaks of. No I/O, no SQL."""

from twofold.types.access import Access, Owner, Scope
from twofold.types.degradation import Degradation, DegradationCode
from twofold.types.lifecycle import Faded, PruneReport, ReembedReport, Stats
from twofold.types.link import DEFAULT_LINK_KIND, Direction, Link, LinkKind, LinkStep, Neighbor
from twofold.types.moving import ExportReport, ImportProblem, ImportReport
from twofold.types.record import UNSET, Fields, NewRecord, Record, Unset, Vector, Vectors, content_hash
from twofold.types.result import (
    Added,
    AddReport,
    Diversity,
    Dropped,
    EmbedReport,
    Explanation,
    Hit,
    LegScore,
    Mode,
    NearDuplicate,
    Outcome,
    Progress,
    Reranked,
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
    "Diversity",
    "Dropped",
    "EmbedReport",
    "Explanation",
    "ExportReport",
    "Faded",
    "Fields",
    "Hit",
    "ImportProblem",
    "ImportReport",
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
    "PruneReport",
    "Record",
    "ReembedReport",
    "Reranked",
    "Scope",
    "SearchResult",
    "Stage",
    "Stats",
    "Unset",
    "Vector",
    "Vectors",
    "content_hash",
]
