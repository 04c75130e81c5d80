"""Patience: a test that is not about time must end the same way on a machine that is busy with other things."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest import mock

from twofold.config import EmbeddingSettings

__all__ = ["PATIENT", "patient_embedders"]

PATIENT: Final = 120.0
"""Seconds that an embedder is waited for where a test does not say."""


@contextmanager
def patient_embedders() -> Iterator[None]:
    """Meanwhile searches and writes wait for their embedder, also where it gets its turn late.

    By default two seconds are enough for a search.
    """
    longer = dict.fromkeys(("query_deadline", "warm_up", "document_deadline"), PATIENT)
    with mock.patch.dict(EmbeddingSettings.__init__.__kwdefaults__, longer):
        yield
