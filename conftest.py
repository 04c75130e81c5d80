"""What the tests of all distributions share: patience.

A test that is not about time must end the same way on a machine that is busy with other things.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import hypothesis
import pytest

from twofold.config import EmbeddingSettings

PATIENT: Final = 120.0
"""Seconds that an embedder is waited for where a test does not say."""

hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def _patient_embedders() -> Iterator[None]:
    """Searches wait for their embedder, also where it gets its turn late: by default two seconds are enough."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("query_deadline", "warm_up", "document_deadline"):
            patch.setitem(EmbeddingSettings.__init__.__kwdefaults__, name, PATIENT)
        yield
