"""A clock that a test turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from twofold.errors import ConfigurationError

__all__ = ["FakeClock"]


class FakeClock:
    """Gives the instant it is set to, to every call; for ``StoreSettings(clock=...)``.

    Example:
        ``clock = FakeClock(); clock.advance(hours=1); clock()``
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        """Set it.

        Args:
            start: the first instant, with a time zone. Default: the first of January 2026, UTC.

        Raises:
            ConfigurationError: ``start`` has no time zone.
        """
        if start.utcoffset() is None:
            raise ConfigurationError("start has no time zone; write datetime(2026, 1, 1, tzinfo=UTC), say")
        self.now = start.astimezone(UTC)

    def __call__(self) -> datetime:
        """The instant it is set to, in UTC."""
        return self.now

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Turn it forward (or back, with negative amounts) and give the new instant."""
        self.now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return self.now
