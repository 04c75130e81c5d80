"""What a backend is: it owns rows, both legs and what is visible. Ranking, ties of the fused list and text
analysis are the core's.

A backend hands out sessions. A :class:`Reader` is one snapshot: everything it answers belongs to one moment. A
:class:`Writer` is one transaction: it commits when its ``with`` block ends and leaves nothing behind when that
raises. No session is ever held while an embedder is asked.
"""

from twofold.backends.protocol.backend import Backend
from twofold.backends.protocol.reader import Reader
from twofold.backends.protocol.values import (
    Candidate,
    Capability,
    CheckReport,
    Damage,
    Identity,
    LinkWrite,
    Mark,
    Nearest,
    Order,
    Space,
    StoredLink,
    StoredVectors,
    StoreInfo,
    Tally,
    Touch,
    VectorWrite,
    Visibility,
    as_candidates,
    by_key,
    keys_of,
)
from twofold.backends.protocol.writer import Writer

__all__ = [
    "Backend",
    "Candidate",
    "Capability",
    "CheckReport",
    "Damage",
    "Identity",
    "LinkWrite",
    "Mark",
    "Nearest",
    "Order",
    "Reader",
    "Space",
    "StoreInfo",
    "StoredLink",
    "StoredVectors",
    "Tally",
    "Touch",
    "VectorWrite",
    "Visibility",
    "Writer",
    "as_candidates",
    "by_key",
    "keys_of",
]
