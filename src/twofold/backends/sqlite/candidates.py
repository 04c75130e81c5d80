"""The end of both legs: the best of what was found, in total order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate

__all__ = ["best_candidates"]


def best_candidates(
    keys: npt.NDArray[np.int64],
    scores: npt.NDArray[Any],
    limit: int,
    in_order: Callable[[Sequence[int]], Sequence[int]],
) -> list[Candidate]:
    """The ``limit`` best by score, equal ones in the order of :class:`Identity`; one that is tied with the last of
    them has its chance too.

    Args:
        keys: shape (n,), none twice.
        scores: shape (n,), higher is better.
        limit: how many; less than 1 gives none.
        in_order: puts the keys of equal scores in their order; asked only for those, which may be very many: a word
            that every record has gives all of them one score.
    """
    if limit < 1:
        return []
    if len(keys) > limit:
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        keys, scores = keys[scores >= last], scores[scores >= last]
    order = np.argsort(-scores, kind="stable")
    keys, scores = keys[order], scores[order]
    equal = scores[1:] == scores[:-1]
    if equal.any():
        tied = np.append(equal, False) | np.append(False, equal)
        place = np.zeros(len(keys), dtype=np.int64)
        ordered = np.fromiter(in_order(keys[tied].tolist()), dtype=np.int64)
        places = np.argsort(ordered, kind="stable")
        place[tied] = places[np.searchsorted(ordered, keys[tied], sorter=places)]
        order = np.lexsort((place, -scores))
        keys, scores = keys[order], scores[order]
    pairs = zip(keys[:limit].tolist(), scores[:limit].tolist(), strict=True)
    return list(map(tuple.__new__, repeat(Candidate), pairs))  # Candidate(...) is a function of Python's own
