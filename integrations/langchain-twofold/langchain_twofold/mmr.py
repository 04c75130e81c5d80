"""Maximal marginal relevance over stored vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from langchain_core.vectorstores.utils import maximal_marginal_relevance

__all__ = ["PartsByField", "diverse"]

PartsByField: TypeAlias = Mapping[str, npt.NDArray[np.float32]]
"""A record's vectors by field, shape (parts, dimension)."""


def diverse(
    query: Sequence[float] | npt.NDArray[np.float32],
    candidates: Sequence[PartsByField],
    k: int,
    lambda_mult: float,
) -> list[int]:
    """The places of the candidates chosen, in the order they were: those without a vector only for want of others.

    Args:
        query: shape (dimension,).
        candidates: the vectors of each; of several the one nearest to the query stands for it.
        k: how many at most.
        lambda_mult: 1 is for the most fitting, 0 for the most different.
    """
    asked = np.asarray(query, np.float32)
    compared = {place: _nearest(by_field, asked) for place, by_field in enumerate(candidates) if by_field}
    rows = [vector.tolist() for vector in compared.values()]
    chosen = maximal_marginal_relevance(asked, rows, lambda_mult, k) if rows else []
    places = list(compared)
    order = [places[row] for row in chosen] + [place for place in range(len(candidates)) if place not in compared]
    return order[: max(k, 0)]


def _nearest(by_field: PartsByField, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    parts = np.concatenate(list(by_field.values()))
    best: npt.NDArray[np.float32] = parts[int(np.argmax(parts @ query / np.linalg.norm(parts, axis=1)))]
    return best
