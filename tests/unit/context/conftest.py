from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import twofold
from twofold import StoreSettings

NOW = datetime(2026, 3, 2, 8, 5, tzinfo=UTC)


@pytest.fixture
def now():
    return NOW


@pytest.fixture(scope="session")
def a_hit():
    with twofold.open(":memory:", settings=StoreSettings(clock=lambda: NOW)) as store:
        store.add("a memory", id="1")
        return store.search("memory")[0]


@pytest.fixture
def hit_of(a_hit):
    """A hit of a text, with attributes of its record as wanted."""

    def make(text="a memory", **attributes):
        return replace(a_hit, record=replace(a_hit.record, fields={"text": text}, **attributes))

    return make
