"""What is much like a record that is about to be written: reported, and nothing more.

Two texts that differ in a number, a date or a "not" mean nearly the same to an embedder, so nothing is ever dropped or
merged for being near. It is looked for before the write and outside of its transaction.
"""

from __future__ import annotations

from datetime import datetime
from itertools import chain
from typing import Final

import numpy as np

from twofold.backends.protocol import Backend, Visibility
from twofold.errors import SearchUnavailableError
from twofold.filters import A
from twofold.ingest import Draft, Embedded
from twofold.types import Access, NearDuplicate

__all__ = ["near_duplicates"]

MOST_NEAR: Final = 3
"""How many are reported, the nearest first."""
_MOST_VECTORS: Final = 8
"""How many of a record's vectors are compared; a record of more parts is judged by the first ones."""


def near_duplicates(
    backend: Backend, each: Draft, made: Embedded, threshold: float, access: Access, at: datetime
) -> tuple[NearDuplicate, ...]:
    """The records of its namespace that are nearest, of those that ``access`` sees.

    Args:
        backend: where they are.
        each: the record, which may be there already and is not one of them.
        made: its vectors.
        threshold: the least cosine.
        access: who asks.
        at: the time.
    """
    (vectors,) = made.vectors
    if vectors is None:
        return ()
    rows = np.concatenate(list(vectors.by_field.values()))[:_MOST_VECTORS]
    visible = Visibility(access, at, A.namespace == each.new.namespace)
    near: dict[int, float] = {}
    with backend.read() as reader:
        if (reader.fingerprint, reader.dimension) != (made.fingerprint, made.dimension):
            return ()
        try:
            found = reader.nearest_many(list(rows), visible, MOST_NEAR + 1)  # itself may be among them
        except SearchUnavailableError:  # a report is not worth failing a write for
            return ()
        for key, cosine in chain.from_iterable(each.candidates for each in found):
            if cosine >= threshold:
                near[key] = max(cosine, near.get(key, cosine))
        named = reader.identities(list(near))
    itself = (each.id, each.owner)
    order = sorted(near, key=lambda key: (-near[key], named[key].order))
    return tuple(
        NearDuplicate(named[key].id, min(1.0, near[key]), named[key].owner)
        for key in order
        if (named[key].id, named[key].owner) != itself
    )[:MOST_NEAR]
