"""Along the links: from some records to those around them, the strongest first, with a bound on the work.

The value of a path is ``Π_step weight · kind weight · decay``, so it never grows on the way; that of a record is the
value of its best path. A record on several paths gains nothing by it: a hub cannot lift what hangs on it above what is
linked better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from twofold.ranking.order import in_total_order

__all__ = ["MOST_FOLLOWED", "Edge", "Neighbors", "Reached", "Step", "linked_score", "reach"]

MOST_FOLLOWED: Final = 256
"""Of how many records the links are followed in one walk, those that it begins at included."""


class Edge(NamedTuple):
    """A link, as seen from one of its ends."""

    key: int
    """The record at the other end."""
    kind: str
    """The link's kind."""
    weight: float
    """Above 0, at most 1."""
    forward: bool
    """Whether the other end is the link's target."""


class Step(NamedTuple):
    """An edge and where it was taken."""

    start: int
    """The record it was taken from."""
    edge: Edge
    """The link."""


class Reached(NamedTuple):
    """A record that the walk came to."""

    key: int
    """The record."""
    value: float
    """Of its best path; above 0, at most 1."""
    path: tuple[Step, ...]
    """That path, from the record where the walk began."""


Neighbors: TypeAlias = Callable[[Sequence[int], int], Mapping[int, Sequence[Edge]]]
"""Gives so many links, at most, of each of some records, the strongest first, by what its kind makes of its weight."""

_ALL_ALIKE: Final[Mapping[str, float]] = MappingProxyType({})

TieBreakers: TypeAlias = Callable[[Sequence[int]], Mapping[int, Any]]


def reach(
    seeds: Sequence[int],
    neighbors: Neighbors,
    tie_breakers: TieBreakers,
    *,
    limit: int,
    hops: int,
    decay: float,
    fan_out: int,
    kind_weights: Mapping[str, float] = _ALL_ALIKE,
    exclude: Iterable[int] = (),
) -> list[Reached]:
    """The ``limit`` records with the best paths from ``seeds``, best first; equal ones by their tie-breakers.

    Of two paths of one value the shorter counts, then that of the earlier seed.

    Args:
        seeds: where the walk begins, the best first; of more than :data:`MOST_FOLLOWED` the first ones.
        neighbors: asked once a hop, for all records that the hop begins at.
        tie_breakers: what equal values are ordered by.
        limit: how many, at least 0.
        hops: how long a path may be, in links.
        decay: what each link on the way takes off, above 0, at most 1.
        fan_out: how many links of one record are followed, the strongest first.
        kind_weights: what the links of a kind are multiplied with, above 0, at most 1. Default: 1 for all.
        exclude: records that are passed by, as the seeds are.
    """
    if limit < 1:
        return []
    avoided = {*seeds, *exclude}
    wanted = fan_out + min(len(avoided), MOST_FOLLOWED)  # links to what is avoided must not use the fan-out up
    best: dict[int, Reached] = {}
    frontier = [Reached(seed, 1.0, ()) for seed in dict.fromkeys(seeds)]
    left = MOST_FOLLOWED
    for hop in range(hops):
        frontier = frontier[:left]
        if not frontier:
            break
        left -= len(frontier)
        edges = neighbors([each.key for each in frontier], wanted)
        improved: dict[int, Reached] = {}
        for each in frontier:
            fresh = [edge for edge in edges.get(each.key, ()) if edge.key not in avoided]
            for edge in fresh[:fan_out]:
                value = each.value * edge.weight * kind_weights.get(edge.kind, 1.0) * decay
                known = improved.get(edge.key) or best.get(edge.key)
                if value > (0.0 if known is None else known.value):
                    improved[edge.key] = Reached(edge.key, value, (*each.path, Step(each.key, edge)))
        best |= improved
        if hop + 1 < hops:
            frontier = _worth_going_on(improved, best, tie_breakers, limit=limit, decay=decay)
    ordered = in_total_order({key: each.value for key, each in best.items()}, tie_breakers, limit)
    return [best[key] for key in ordered[:limit]]


def linked_score(value: float, last: float) -> float:
    """The score of a linked record, below that of every hit: ``last · value / (1 + value)``.

    Args:
        value: of its path, above 0, at most 1.
        last: the score of the last hit, 0 to 1.

    Returns:
        Above 0 and at most half of ``last``; 0 if that is 0.
    """
    return max(last * value / (1.0 + value), math.ulp(0.0)) if last > 0 else 0.0


def _worth_going_on(
    improved: Mapping[int, Reached],
    best: Mapping[int, Reached],
    tie_breakers: TieBreakers,
    *,
    limit: int,
    decay: float,
) -> list[Reached]:
    """Those of the records just reached that could still lead to one of the best, best first."""
    values = sorted((each.value for each in best.values()), reverse=True)
    needed = values[limit - 1] if len(values) >= limit else 0.0
    going_on = {key: each.value for key, each in improved.items() if each.value * decay >= needed}
    return [improved[key] for key in in_total_order(going_on, tie_breakers)]
