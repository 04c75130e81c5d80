"""Orders in which no two records share a place, so that pages never overlap or skip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

__all__ = ["adjacency_factor", "in_total_order"]


def in_total_order(
    scores: Mapping[int, float],
    tie_breakers: Callable[[Sequence[int]], Mapping[int, Any]],
    first: int | None = None,
    ordered: list[int] | None = None,
) -> list[int]:
    """Keys by descending score, those of equal score by ascending tie-breaker.

    Args:
        scores: by key; finite.
        tie_breakers: gives what equal scores are ordered by; asked at most once, and only for keys that share a score.
        first: how many places must be right; those behind are left as they come. Default: all.
        ordered: the keys by descending score, if they stand in that order already.
    """
    if ordered is None:
        ordered = sorted(scores, key=scores.__getitem__, reverse=True)
    looked_at = ordered if first is None else ordered[: first + 1]
    if len(set(map(scores.__getitem__, looked_at))) == len(looked_at):  # mostly no two are equal
        return ordered
    groups: list[list[int]] = []
    placed = 0
    for _, group in groupby(ordered, key=scores.__getitem__):
        groups.append(list(group))
        placed += len(groups[-1])
        if first is not None and placed >= first:
            break
    tied = [key for group in groups if len(group) > 1 for key in group]
    if not tied:
        return ordered
    breakers = tie_breakers(tied)
    head = [key for group in groups for key in (sorted(group, key=breakers.__getitem__) if len(group) > 1 else group)]
    return head + ordered[placed:]


def adjacency_factor(found: int, asked: int, adjacency: float) -> float:
    """How much a record moves up for words side by side: ``1 + adjacency · found / asked``; 1 if none was asked.

    Args:
        found: how many of the query's neighbouring pairs the record holds.
        asked: how many there are.
        adjacency: the most it may gain, 0 to 1.
    """
    return 1.0 + adjacency * found / asked if asked else 1.0
