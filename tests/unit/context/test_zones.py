from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from twofold import ConfigurationError
from twofold.context import as_zone
from twofold.context.zones import day, minute


def test_a_zone_has_its_summer_time():
    berlin = as_zone("Europe/Berlin")
    assert minute(datetime(2026, 1, 1, 23, 30, tzinfo=UTC), berlin) == "2026-01-02 00:30"
    assert minute(datetime(2026, 7, 1, 22, 30, 59, tzinfo=UTC), berlin) == "2026-07-02 00:30"
    assert day(datetime(2026, 7, 1, 22, 30, tzinfo=UTC), berlin) == "2026-07-02"


def test_utc_needs_no_database():
    assert as_zone("UTC") is UTC


@pytest.mark.parametrize(
    "name", ["Europe/Berlim", "Europe", "", "../etc/passwd", "/etc/passwd", "a\0b", "é", "x" * 999]
)
def test_there_is_no_such_zone(name):
    with pytest.raises(ConfigurationError, match="there is no time zone"):
        as_zone(name)


@pytest.mark.parametrize("name", [None, UTC, 1])
def test_a_zone_is_named_by_text(name):
    with pytest.raises(ConfigurationError, match="zone is the name of a time zone"):
        as_zone(name)


def test_a_machine_without_zones_is_told_what_to_install():
    script = """
import sys, zoneinfo
sys.modules["tzdata"] = None
zoneinfo.reset_tzpath([])
import twofold
with twofold.open(":memory:") as store:
    assert "UTC" in store.context("x", zone="UTC").system
    try:
        store.context("x", zone="Europe/Berlin")
    except twofold.ConfigurationError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install tzdata" in done.stdout


def test_the_ends_of_the_calendar_are_shown_in_utc():
    west, east = timezone(timedelta(hours=-14)), timezone(timedelta(hours=14))
    assert day(datetime.min.replace(tzinfo=UTC), west) == "0001-01-01"
    assert minute(datetime.max.replace(tzinfo=UTC), east) == "9999-12-31 23:59"
