"""Times as they read on the user's clock."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, tzinfo
from typing import Final

from twofold.errors import ConfigurationError

__all__ = ["WEEKDAYS", "as_zone", "day", "in_zone", "minute"]

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""By ``date.weekday()``; ``strftime`` would take them from the machine's locale."""


def as_zone(name: object) -> tzinfo:
    """The time zone of this name.

    Args:
        name: as the IANA database has it, e.g. ``"Europe/Berlin"``; ``"UTC"`` needs no database.

    Raises:
        ConfigurationError: there is no such zone, or no database of zones on this machine.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"zone is the name of a time zone such as 'Europe/Berlin', not {name!r}")
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: the name of a folder, "Europe"
        if not zoneinfo.available_timezones():
            raise ConfigurationError(
                f"zone={name!r}: this machine has no database of time zones; install one with: pip install tzdata"
            ) from error
        raise ConfigurationError(
            f"there is no time zone {name!r}: write one such as 'Europe/Berlin', 'America/New_York' or 'UTC'"
        ) from error


def in_zone(at: datetime, zone: tzinfo) -> datetime:
    """``at`` on the clock of ``zone``; in UTC where that clock would leave the years 1 to 9999."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at.astimezone(UTC)


def day(at: datetime, zone: tzinfo) -> str:
    """E.g. ``2026-03-02``."""
    return date.isoformat(in_zone(at, zone).date())


def minute(at: datetime, zone: tzinfo) -> str:
    """E.g. ``2026-03-02 09:05``."""
    return in_zone(at, zone).replace(tzinfo=None).isoformat(" ", "minutes")
