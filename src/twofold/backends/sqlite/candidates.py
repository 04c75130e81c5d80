"""The end of both legs: the best of what was found, in total order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate, Identity
from twofold.ranking.order import in_total_order

__all__ = ["best_candidates"]


def best_candidates(
    keys: npt.NDArray[np.int64],
    scores: npt.NDArray[Any],
    limit: int,
    identities: Callable[[Sequence[int]], Mapping[int, Identity]],
) -> list[Candidate]:
    """The ``limit`` best by score, equal ones as :class:`Identity` orders them; one that is tied with the last of
    them has its chance too.

    Args:
        keys: shape (n,), none twice.
        scores: shape (n,), higher is better.
        limit: how many; less than 1 gives none.
        identities: what ties are broken by; asked only for keys that share a score.
    """
    if limit < 1:
        return []
    if len(keys) > limit:
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        keys, scores = keys[scores >= last], scores[scores >= last]
    order = np.argsort(-scores, kind="stable")
    keys, scores = keys[order], scores[order]
    found = list(map(Candidate, keys.tolist(), scores.tolist()))
    if len(found) < 2 or (scores[1:] != scores[:-1]).all():
        return found
    by_key = dict(found)
    ordered = in_total_order(by_key, lambda tied: {key: each.order for key, each in identities(tied).items()}, limit)
    return [Candidate(key, by_key[key]) for key in ordered[:limit]]
