"""The clock that a test turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from twofold.errors import ConfigurationError
from twofold.testing import FakeClock


def test_it_stands_still_until_turned() -> None:
    clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
    assert clock() == clock() == datetime(2026, 3, 1, tzinfo=UTC)
    assert clock.advance(days=1, hours=2, minutes=3, seconds=4.5) == clock()
    assert clock() - datetime(2026, 3, 1, tzinfo=UTC) == timedelta(days=1, hours=2, minutes=3, seconds=4.5)


def test_it_speaks_utc() -> None:
    clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=3))))
    assert clock().isoformat() == "2026-03-01T09:00:00+00:00"


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        FakeClock(datetime(2026, 3, 1))  # noqa: DTZ001 - a naive one is what is tried
