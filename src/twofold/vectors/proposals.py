"""From what codes propose to what is nearest: more is fetched than is asked for, until nobody else can come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.vectors.codes import Codes, Nodes, Proposed
from twofold.vectors.protocol import Floats, Found
from twofold.vectors.scoring import best_of_each

__all__ = ["merged", "nearest_by_codes"]

_FETCHED: Final = 4
"""How many times as many neighbours are fetched as are asked for."""
_LEAST_FETCHED: Final = 512


def nearest_by_codes(
    codes: Codes,
    known: int,
    among: npt.NDArray[np.bool_] | None,
    queries: Sequence[Floats],
    limit: int,
    *,
    most: int,
    scored: Callable[[Sequence[Floats], Sequence[Nodes]], Sequence[Found]],
) -> list[Found | None]:
    """For each query the nearest, ties with the last one included; None where the codes do not tell who they are.

    Args:
        codes: what proposes.
        known: how many of the codes count.
        among: by code, whether it counts; None: all of those do.
        queries: each of shape (dimension,), of any length above 0.
        limit: how many are asked for, at least 1.
        most: how many may be fetched.
        scored: for each of some queries the ``limit`` best of its nodes, by exact cosine.
    """
    found: list[Found | None] = [None] * len(queries)
    waiting = list(range(len(queries)))
    fetched = max(_LEAST_FETCHED, _FETCHED * limit)
    while waiting and fetched <= most:
        asked = [queries[number] for number in waiting]
        proposals = codes.search(asked, known, among, fetched)
        best = _best_proposed(asked, proposals, limit, scored)
        for number, proposed, (keys, scores) in zip(waiting, proposals, best, strict=True):
            if len(keys) >= limit and scores[limit - 1] > proposed.most:
                found[number] = keys, scores
        waiting = [number for number in waiting if found[number] is None]
        fetched *= 4
    return found


def _best_proposed(
    queries: Sequence[Floats],
    proposals: Sequence[Proposed],
    limit: int,
    scored: Callable[[Sequence[Floats], Sequence[Nodes]], Sequence[Found]],
) -> list[Found]:
    """For each query the best of what is proposed for it. To look at a vector is dear, so those that seem best are
    looked at first: they say how good another must be to come in.
    """
    found = scored(queries, [proposed.nodes[:limit] for proposed in proposals])
    others = scored(
        queries,
        [
            proposed.at_least(float(scores[limit - 1]) if len(keys) >= limit else -1.0, limit)
            for proposed, (keys, scores) in zip(proposals, found, strict=True)
        ],
    )
    return [merged(one, other, limit) for one, other in zip(found, others, strict=True)]


def merged(one: Found, other: Found, limit: int) -> Found:
    """The best of both."""
    if not len(other[0]):
        return one
    return best_of_each(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), limit)
