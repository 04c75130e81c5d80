"""What is nearest to the vectors of several phrasings, looked up together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Final, NamedTuple, TypeAlias

from twofold.backends.protocol import Nearest, Reader, Visibility
from twofold.errors import SearchUnavailableError
from twofold.search.request import PreparedSearch

__all__ = ["LookedUp", "Neighbours", "neighbours_of"]

_AT_ONCE: Final = 64
"""How many vectors are looked up at a time: more would not make each cheaper."""


class LookedUp(NamedTuple):
    """What was found for one phrasing."""

    nearest: Nearest
    milliseconds: float
    """Its share of the time."""


Neighbours: TypeAlias = Mapping[int, LookedUp]
"""By the identity of the phrasing; those that are not in it are looked up alone."""


def neighbours_of(prepared: Sequence[PreparedSearch], reader: Reader, visible: Visibility) -> Neighbours:
    """What the vector legs of some searches look for, where several can be looked up in one go.

    Args:
        prepared: searches that differ in nothing but what is asked.
        reader: the session.
        visible: what may be found.
    """
    found: dict[int, LookedUp] = {}
    if len(prepared) == 1 and not prepared[0].others:
        return found
    phrasings = [
        (id(each), each.vector)
        for search in prepared
        for each in (search, *search.others)
        if each.vector is not None
        and each.by_field is None
        and (reader.fingerprint, reader.dimension) == (each.fingerprint, each.vector.size)
    ]
    if len(phrasings) < 2:
        return found
    depth = prepared[0].request.nearest
    for start in range(0, len(phrasings), _AT_ONCE):
        batch = phrasings[start : start + _AT_ONCE]
        began = perf_counter()
        try:
            nearest = reader.nearest_many([vector for _, vector in batch], visible, depth)
        except SearchUnavailableError:  # as each finds out by itself
            return found
        share = (perf_counter() - began) * 1000 / len(batch)
        found |= {phrasing: LookedUp(each, share) for (phrasing, _), each in zip(batch, nearest, strict=True)}
    return found
