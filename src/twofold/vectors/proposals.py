"""From what codes propose to what is nearest: more is fetched than is asked for, until nobody else can come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.vectors.codes import Codes, Proposed
from twofold.vectors.protocol import Floats, Found

__all__ = ["nearest_by_codes"]

_FETCHED: Final = 2
"""How many times as many neighbours are fetched as are asked for."""
_LEAST_FETCHED: Final = 192


def nearest_by_codes(
    codes: Codes,
    known: int,
    among: npt.NDArray[np.bool_] | None,
    queries: Sequence[Floats],
    limit: int,
    *,
    most: int,
    scored: Callable[[Sequence[Floats], Sequence[Proposed]], Sequence[Found]],
) -> list[Found | None]:
    """For each query the nearest, ties with the last one included; None where the codes do not tell who they are.

    Args:
        codes: what proposes.
        known: how many of the codes count.
        among: by code, whether it counts; None: all of those do.
        queries: each of shape (dimension,), of any length above 0.
        limit: how many are asked for, at least 1.
        most: how many may be fetched.
        scored: for each of some queries the best of what is proposed for it, by exact cosine.
    """
    found: list[Found | None] = [None] * len(queries)
    waiting = list(range(len(queries)))
    fetched = max(_LEAST_FETCHED, _FETCHED * limit)
    while waiting and fetched <= most:
        asked = [queries[number] for number in waiting]
        proposals = codes.search(asked, known, among, fetched)
        for number, proposed, (keys, scores) in zip(waiting, proposals, scored(asked, proposals), strict=True):
            if proposed.all or (len(keys) >= limit and scores[limit - 1] > proposed.most):
                found[number] = keys, scores
        waiting = [number for number in waiting if found[number] is None]
        fetched *= 4
    return found
