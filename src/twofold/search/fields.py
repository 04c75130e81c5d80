"""Records of several fields: one score made of several cosines, and which field it is of.

No index knows fields: it gives the records that are nearest by their best field, and of those the fields' own cosines
are worked out here. A record that is not among the nearest ``n`` has no cosine above the last one's, and so no mean of
cosines either: the search widens until nothing that was not looked at could belong to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Nearest, Reader, Visibility, as_candidates
from twofold.vectors import exact_cosines

__all__ = ["Aggregation", "Queries", "combined", "combined_cosines", "cosines_by_field", "nearest_by_fields"]

Queries: TypeAlias = Mapping[str, npt.NDArray[np.float32]]
"""By field, what its vectors are compared with; a field that is not named is not compared."""

Aggregation: TypeAlias = Literal["best", "mean", "sum"]
"""How fields become one score; see ``SearchParams.field_aggregation``."""

MOST_LOOKED_AT: Final = 4096
"""How many records the search widens to."""


def cosines_by_field(reader: Reader, queries: Queries, keys: Sequence[int]) -> dict[int, dict[str, float]]:
    """Of each record the cosine of each field with its query, that of its best part; -1 to 1.

    Records that have none of the fields, and damaged vectors, are left out.
    """
    found: dict[int, dict[str, float]] = {}
    for key, stored in reader.vectors(keys).items():
        for field, parts in stored.by_field.items():
            query = queries.get(field)
            if query is None or parts.shape[1] != query.size:
                continue
            sound = parts[np.isfinite(parts).all(axis=1) & parts.any(axis=1)]
            if len(sound):
                found.setdefault(key, {})[field] = float(exact_cosines(sound, query).max())
    return found


def combined(cosines: Mapping[str, float], how: Aggregation, asked: int) -> float:
    """One score of the cosines of a record's fields, -1 to 1.

    Args:
        cosines: by field, at least one.
        how: ``best``: the largest; ``mean``: of those there are; ``sum``: divided by ``asked``, so that a field which
            the record has not counts 0.
        asked: how many fields were asked.
    """
    if how == "best":
        return max(cosines.values())
    return sum(cosines.values()) / (len(cosines) if how == "mean" else asked)


def combined_cosines(reader: Reader, queries: Queries, keys: Sequence[int], how: Aggregation) -> dict[int, float]:
    """The one score of each of these records; those that have none of the fields are left out."""
    found = cosines_by_field(reader, queries, keys)
    return {key: combined(cosines, how, len(queries)) for key, cosines in found.items()}


def nearest_by_fields(
    reader: Reader,
    queries: Queries,
    visible: Visibility,
    limit: int,
    how: Aggregation,
    in_order: Callable[[Mapping[int, float]], Sequence[int]],
) -> Nearest:
    """The ``limit`` visible records of the highest score, like :meth:`Reader.nearest`.

    Args:
        reader: the session.
        queries: by field, what is asked.
        visible: what may be found.
        limit: how many.
        how: how fields become one score.
        in_order: puts scores in their total order.
    """
    vectors = list({id(vector): vector for vector in queries.values()}.values())
    depth, scores = max(1, limit), dict[int, float]()
    while True:
        lists = reader.nearest_many(vectors, visible, depth)
        unknown = {key for found in lists for key, _ in found.candidates}.difference(scores)
        scores |= combined_cosines(reader, queries, sorted(unknown), how)
        cut = [found.candidates[-1].score for found in lists if len(found.candidates) >= depth]
        ordered = in_order(scores)[:limit]
        if not cut or depth >= MOST_LOOKED_AT:
            break
        highest = max(cut)  # no field of what was not looked at is nearer
        if how == "sum" and highest < 0:
            highest /= len(queries)  # one field alone is less far below 0 than all of them
        if len(ordered) >= limit and (not ordered or scores[ordered[-1]] > highest):
            break
        depth = min(4 * depth, max(MOST_LOOKED_AT, limit))
    return replace(
        lists[0],
        candidates=tuple(as_candidates((key, scores[key]) for key in ordered)),
        fell_back=next((found.fell_back for found in lists if found.fell_back is not None), None),
    )
