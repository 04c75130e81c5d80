"""From what codes propose to what is nearest: more is fetched than is asked for, until nobody else can come in."""

from __future__ import annotations

import math
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
_MARGIN: Final = 1.25
"""How many times as many as are expected to be needed are fetched then."""
_HOPELESS: Final = 8.0
"""If so many times more would be needed than may be fetched, none are."""


def nearest_by_codes(
    codes: Codes,
    known: int,
    among: npt.NDArray[np.bool_] | None,
    queries: Sequence[Floats],
    limit: int,
    *,
    most: int,
    scored: Callable[[Sequence[Floats], Sequence[Nodes]], Sequence[Found]],
    uncoded: Nodes | None = None,
) -> list[Found | None]:
    """For each query the nearest, ties with the last one included; None where the codes do not tell who they are.

    To look at a vector is dear, so those that seem best are looked at first: they say how good another must be to come
    in. Those that can be so good are looked at once nobody behind what was fetched can.

    Args:
        codes: what proposes.
        known: how many of the codes count.
        among: by code, whether it counts; None: all of those do.
        queries: each of shape (dimension,), of any length above 0.
        limit: how many are asked for, at least 1.
        most: how many may be fetched.
        scored: for each of some queries the ``limit`` best of its nodes, by exact cosine.
        uncoded: nodes that have no codes, and are looked at in any case.
    """
    fetched = max(_LEAST_FETCHED, _FETCHED * limit)
    if fetched > most or not queries:
        return [None] * len(queries)
    proposals = codes.search(queries, known, among, fetched)
    best, looked_at = _first(queries, proposals, limit, scored)
    leasts = [float(scores[limit - 1]) if len(keys) >= limit else -2.0 for keys, scores in best]
    waiting = [number for number, least in enumerate(leasts) if not proposals[number].most < least]
    while waiting and fetched < most:
        needed = max(proposals[number].expected(leasts[number]) for number in waiting)
        if needed > _HOPELESS * most:
            break
        fetched = min(most, max(2 * fetched, math.ceil(_MARGIN * needed)))
        more = codes.search([queries[number] for number in waiting], known, among, fetched)
        for number, proposed in zip(waiting, more, strict=True):
            proposals[number], looked_at[number] = proposed, 0  # what seems equal may have changed places
        waiting = [number for number in waiting if not proposals[number].most < leasts[number]]
    settled = [number for number in range(len(queries)) if number not in waiting]
    contenders = [proposals[number].at_least(leasts[number], looked_at[number]) for number in settled]
    if uncoded is not None and len(uncoded):
        contenders = [np.concatenate([own, uncoded]) for own in contenders]
    others = scored([queries[number] for number in settled], contenders)
    found: list[Found | None] = [None] * len(queries)
    for number, other in zip(settled, others, strict=True):
        found[number] = merged(best[number], other, limit)
    return found


def _first(
    queries: Sequence[Floats],
    proposals: Sequence[Proposed],
    limit: int,
    scored: Callable[[Sequence[Floats], Sequence[Nodes]], Sequence[Found]],
) -> tuple[list[Found], list[int]]:
    """For each query the best of the first proposals, and how many of those that is: ``limit`` of them, or all if these
    belong to fewer records.
    """
    looked_at = [min(limit, len(proposed.nodes)) for proposed in proposals]
    best = list(scored(queries, [proposed.nodes[:limit] for proposed in proposals]))
    few = [number for number, (keys, _) in enumerate(best) if len(keys) < limit]
    if few:
        again = scored([queries[number] for number in few], [proposals[number].nodes for number in few])
        for number, found in zip(few, again, strict=True):
            best[number], looked_at[number] = found, len(proposals[number].nodes)
    return best, looked_at


def merged(one: Found, other: Found, limit: int) -> Found:
    """The best of both."""
    if not len(other[0]):
        return one
    return best_of_each(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]), limit)
