"""The end of both legs: the best of what was found, in total order."""

# ruff: noqa: S608 - what is put into the text of SQL is a constant of this module
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate, as_candidates
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.visible_keys import Keys, Seen

__all__ = ["TOTAL_ORDER", "Ties", "best_candidates", "in_order", "json_keys"]

Scores: TypeAlias = "npt.NDArray[Any]"

TOTAL_ORDER: Final = "r.created_at DESC, r.id, r.namespace, r.scope, r.owner"
"""What equal scores are ordered by, as SQL; see :class:`twofold.backends.protocol.Identity`."""

_IN_ORDER: Final = f"SELECT r.key FROM json_each(?) j CROSS JOIN records r ON r.key = j.value ORDER BY {TOTAL_ORDER}"


def json_keys(keys: object) -> str:
    """A list of whole numbers as JSON: for a list that is what Python writes."""
    return str(keys)


def in_order(connection: Connection, keys: Sequence[int]) -> list[int]:
    """``keys`` in total order; those of no record are left out."""
    return [key for (key,) in connection.execute(_IN_ORDER, (json_keys(list(keys)),))]


class Ties:
    """Puts records of equal scores in their order.

    Args:
        connection: of the session.
        seen: who is visible; nobody else is asked for.
    """

    def __init__(self, connection: Connection, seen: Seen) -> None:
        self._connection = connection
        self._seen = seen

    def candidates(self, keys: Keys, scores: Scores, limit: int) -> list[Candidate]:
        """The first ``limit``.

        Args:
            keys: shape (n,), none twice, best first; equal ones in any order.
            scores: shape (n,), descending.
            limit: how many, at least 1. One that is tied with the last of them has its chance too.
        """
        if np.count_nonzero(scores[1:] == scores[:-1]):  # many times quicker than any()
            return self.ranked(keys, scores, limit)
        return as_candidates(zip(keys[:limit].tolist(), scores[:limit].tolist(), strict=True))

    def ranked(self, keys: Keys, scores: Scores, limit: int) -> list[Candidate]:
        """The same of keys in any order. Of equal ones the newer come first, as is known of all; the file is asked only
        for those that are of one instant, which may be very many.
        """
        created = self._seen.created_at(keys)
        order = np.lexsort((-created, -scores))
        created, scores = created[order], scores[order]
        same = scores[1:] == scores[:-1]
        same &= created[1:] == created[:-1]
        listed: list[int] = keys[order].tolist()
        tied: list[int] = same.nonzero()[0].tolist()
        if tied:
            self._settle(listed, tied)
        return as_candidates(zip(listed[:limit], scores[:limit].tolist(), strict=True))

    def _settle(self, keys: list[int], tied: list[int]) -> None:
        """Put those in order that nothing but the file can tell apart.

        Args:
            keys: otherwise in order.
            tied: the places of those that are tied with the next one, ascending.
        """
        runs: list[list[int]] = []
        for at in tied:
            if runs and runs[-1][1] == at + 1:
                runs[-1][1] = at + 2
            else:
                runs.append([at, at + 2])
        ordered = in_order(self._connection, [key for start, stop in runs for key in keys[start:stop]])
        place = {key: number for number, key in enumerate(ordered)}
        for start, stop in runs:
            keys[start:stop] = sorted(keys[start:stop], key=place.__getitem__)


def best_candidates(keys: Keys, scores: Scores, limit: int, ties: Ties) -> list[Candidate]:
    """The ``limit`` best by score, equal ones in their order.

    Args:
        keys: shape (n,), none twice, in any order.
        scores: shape (n,), higher is better.
        limit: how many; less than 1 gives none.
        ties: puts equal ones in order.
    """
    if limit < 1:
        return []
    if len(keys) > limit:
        parted = scores.copy()
        parted.partition(len(scores) - limit)
        best = scores >= parted[len(scores) - limit]
        keys, scores = keys[best], scores[best]
    return ties.ranked(keys, scores, limit)
