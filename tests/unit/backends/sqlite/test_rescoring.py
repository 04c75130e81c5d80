"""What ranking asks of records that the legs have found."""

from __future__ import annotations

from typing import Any

import pytest

from twofold.backends.sqlite import SqliteBackend
from twofold.config import StoreSettings
from twofold.testing.records import make_record

CARRIED: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"importance": 0.5, "strength": 1.0}, False),
    ({"importance": 0.25}, True),
    ({"strength": 4.0}, True),
    ({"importance": 1.0, "strength": 0.0}, True),
    ({"project": "p", "metadata": {"confidence": 0.5}}, False),
]


@pytest.mark.parametrize("confidence", [False, True])
def test_uncommon_standings_are_those_not_of_default_importance_and_strength(confidence: bool) -> None:
    backend = SqliteBackend.open(":memory:", settings=StoreSettings())
    try:
        with backend.write() as writer:
            keys = [
                writer.insert(make_record(str(number), "kettle", attributes=carried), None)
                for number, (carried, _) in enumerate(CARRIED)
            ]
        with backend.read() as session:
            every = session.standings(keys, confidence=confidence)
            few = session.standings(keys, confidence=confidence, uncommon=True)
        assert list(every) == keys
        assert few == {key: every[key] for key, (_, uncommon) in zip(keys, CARRIED, strict=True) if uncommon}
    finally:
        backend.close()
