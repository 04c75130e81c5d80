"""Touches: a record was of use. They change what tells of use, and nothing else: no generation, revision or token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from twofold.backends.protocol import Touch
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head
from twofold.backends.sqlite.rows import store_time

__all__ = ["STRENGTH_CAP", "TOUCHED_COLUMNS", "touch_rows"]

STRENGTH_CAP: Final = 100.0
"""What touches let a record's strength grow to; one that was given more keeps it."""

TOUCHED_COLUMNS: Final = ("access_count", "last_accessed", "strength")
"""The columns that change without a new generation, so that nothing that depends on them may be kept by generation."""

_MOST_POWERS: Final = 256
"""Any growth that matters reaches the cap long before; beyond it a power could be too large for a float."""

_TOUCH: Final = (
    "UPDATE records SET access_count = access_count + ?, last_accessed = max(last_accessed, ?),"
    " strength = max(strength, min(?, strength * ?)) WHERE key = ?"
)
_STRENGTHENED: Final = (
    "INSERT INTO meta VALUES ('strengthened', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
)


def touch_rows(connection: Connection, head: Head, touches: Mapping[int, Touch], growth: float) -> None:
    """See :meth:`twofold.backends.protocol.Writer.touch`."""
    rows = [
        (touch.times, store_time(touch.at), STRENGTH_CAP, _growth(touch, growth), key) for key, touch in touches.items()
    ]
    connection.executemany(_TOUCH, rows)
    if any(growth_of_one > 1.0 for *_, growth_of_one, _ in rows):
        connection.execute(_STRENGTHENED)
        head.strengthened = None


def _growth(touch: Touch, growth: float) -> float:
    return growth ** min(touch.times, _MOST_POWERS) if touch.growth is None else touch.growth
