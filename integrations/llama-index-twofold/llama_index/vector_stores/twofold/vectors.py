"""The vectors that LlamaIndex brings: which of them are any, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold import ConfigurationError, GivenVectors, HybridStore, InvalidVectorError, NewRecord, SearchUnavailableError

__all__ = ["IndexVectors", "Vector", "as_vector", "without_misfits"]

Vector: TypeAlias = npt.NDArray[np.float32]


class IndexVectors(GivenVectors):
    """Stands for the model that an index embeds with, which the store never asks.

    How many numbers its vectors have shows with the first of them.
    """

    def __init__(self, name: str) -> None:
        """Says which model's vectors will come.

        Args:
            name: names the model. It is stored with the vectors, and those of two names are never compared.
        """
        super().__init__(name, 1)

    @property
    def fingerprint(self) -> str:
        """``given:<name>``."""
        return f"given:{self._name}"

    @property
    def dimension(self) -> int | None:  # type: ignore[override]  # an Embedder's may be unknown
        """Unknown."""
        return None


def as_vector(embedding: Any) -> Vector | None:
    """``embedding``, or None if it is no vector: None, empty, all zero, not finite, or not a list of numbers.

    Returns:
        Shape (dimension,).
    """
    if embedding is None:
        return None
    try:
        with np.errstate(all="ignore"):  # what leaves float32's range becomes infinite or zero, and is no vector
            vector: Vector = np.asarray(embedding, np.float32)
    except (TypeError, ValueError, OverflowError):
        return None
    return vector if vector.ndim == 1 and vector.any() and np.isfinite(vector).all() else None


def without_misfits(store: HybridStore, records: Sequence[NewRecord]) -> list[NewRecord]:
    """``records``, those whose vectors are not as long as the store's without them.

    In a store that has no vectors yet the first ones decide.
    """
    first_of_length: dict[int, Vector] = {}
    for record in records:
        if isinstance(record.vector, np.ndarray):
            first_of_length.setdefault(len(record.vector), record.vector)
    length = next((length for length, vector in first_of_length.items() if _fits(store, vector)), None)
    return [
        replace(record, vector=None)
        if isinstance(record.vector, np.ndarray) and len(record.vector) != length
        else record
        for record in records
    ]


def _fits(store: HybridStore, vector: Vector) -> bool:
    """Whether the store compares vectors of this length: a search that wants no hits says so."""
    try:
        store.search("", vector=vector, mode="vector", k=0)
    except InvalidVectorError:
        return False
    except (SearchUnavailableError, ConfigurationError):  # whatever is wrong with it, it is not its length
        return True
    return True
