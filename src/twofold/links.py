"""What is done with links within a session: walked along, and made by a write of its own accord.

A write makes links of two kinds: between records that were extracted together (:class:`Together`), and from a record to
those that mean much the same (:class:`Alike`). Both stay within one owner, the latter within one namespace too: who
writes for himself is never linked to others without having asked for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import LinkWrite, Reader, VectorWrite, Visibility, Writer
from twofold.config import SearchParams
from twofold.errors import SearchUnavailableError
from twofold.filters import A
from twofold.ranking import Edge, Reached, reach
from twofold.types import Access, Direction, LinkKind, LinkStep, Owner, Scope

__all__ = ["Alike", "Meaning", "Together", "paths_of", "walk"]

CO_EXTRACTED_REACH: Final = 9
"""To how many of those after it in the call a record is linked: up to ten records are each linked to every other."""

MOST_ALIKE: Final = 3
"""To how many records one is linked for its meaning, the nearest first."""

_MOST_VECTORS: Final = 8
"""How many of a record's vectors are compared with others; a record of more parts is judged by the first ones."""

_Matrix: TypeAlias = npt.NDArray[np.float32]


# -- walked along -------------------------------------------------------------------------------------------------


def walk(
    reader: Reader,
    seeds: Sequence[int],
    visible: Visibility,
    params: SearchParams,
    *,
    limit: int,
    hops: int,
    kinds: Sequence[str] | Mapping[str, float] | None,
    direction: Direction = Direction.BOTH,
    exclude: Iterable[int] = (),
) -> list[Reached]:
    """The best of what links lead to from ``seeds``, through visible records only; see
    :func:`twofold.ranking.expansion.reach`.

    Args:
        reader: the session.
        seeds: where the walk begins; that they may be seen is the caller's to know.
        visible: what every record on the way must be.
        params: has ``link_decay`` and ``link_fan_out``.
        limit: how many at most.
        hops: how many links away at most.
        kinds: only along these; with what the weights of their links are multiplied with, or as they are. Default:
            all.
        direction: which way links are followed.
        exclude: records that are passed by.
    """
    weights = kinds if isinstance(kinds, Mapping) else {}

    def neighbors(keys: Sequence[int], most: int) -> Mapping[int, Sequence[Edge]]:
        if not weights:
            named = None if kinds is None else list(kinds)
            return reader.neighbors(keys, visible, direction=direction, kinds=named, limit=most)
        found: dict[int, list[Edge]] = {}
        for weight in sorted(set(weights.values()), reverse=True):  # the strongest of each, so of all
            of_weight = [kind for kind, each in weights.items() if each == weight]
            for key, edges in reader.neighbors(keys, visible, direction=direction, kinds=of_weight, limit=most).items():
                found.setdefault(key, []).extend(edges)
        return {
            key: sorted(edges, key=lambda edge: -edge.weight * weights[edge.kind])[:most]
            for key, edges in found.items()
        }

    return reach(
        seeds,
        neighbors,
        reader.places,
        limit=limit,
        hops=hops,
        decay=params.link_decay,
        fan_out=params.link_fan_out,
        kind_weights=weights,
        exclude=exclude,
    )


def paths_of(reader: Reader, reached: Iterable[Reached]) -> dict[int, tuple[LinkStep, ...]]:
    """By record, the way to it in the words of the user's ids."""
    found = list(reached)
    keys = {key for each in found for step in each.path for key in (step.start, step.edge.key)}
    ids = {key: identity.id for key, identity in reader.identities(sorted(keys)).items()} if keys else {}
    return {
        each.key: tuple(
            LinkStep(ids[start], ids[edge.key], edge.kind, edge.weight, edge.forward) for start, edge in each.path
        )
        for each in found
    }


# -- made by a write ----------------------------------------------------------------------------------------------


class Together:
    """Links the records of one call to each other: each to the :data:`CO_EXTRACTED_REACH` after it, however many
    transactions the call takes, so that the links grow with the records and not with their square.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[int, Owner]] = deque(maxlen=CO_EXTRACTED_REACH)

    def links(self, reader: Reader, stored: Iterable[tuple[int, Owner]]) -> list[LinkWrite]:
        """Those from the records before to each of ``stored``, in order; within one owner.

        Args:
            reader: the session that the links are written in: what was deleted since the last one is left out.
            stored: the keys of what this one has stored, and whose they are.
        """
        there = reader.identities([key for key, _ in self._last])
        self._last = deque((each for each in self._last if each[0] in there), CO_EXTRACTED_REACH)
        made = []
        for key, owner in stored:
            made += [
                LinkWrite(before, key, LinkKind.CO_EXTRACTED.value, 1.0)
                for before, whose in self._last
                if whose == owner and before != key
            ]
            self._last.append((key, owner))
        return made


class Meaning(NamedTuple):
    """A record that is about to be written, as far as its meaning goes."""

    owner: Owner
    """Whose it is."""
    namespace: tuple[str, ...]
    """Where it is."""
    vectors: VectorWrite | None
    """Its vectors; None: it has none, or they do not change."""


class Alike:
    """Links records to those of the same owner and namespace that mean much the same: at most :data:`MOST_ALIKE`, of
    a cosine of at least the threshold, which is the weight. Made before the records are written, while the index is
    still that of the file; their keys are told afterwards.
    """

    def __init__(self, writer: Writer, records: Sequence[Meaning], threshold: float, at: datetime) -> None:
        self._threshold = threshold
        self._rows = [_unit_rows(each.vectors) for each in records]
        self._places = [(each.owner, each.namespace) for each in records]
        self._batch, self._of_row = _joined(self._rows)
        self._stored: list[Mapping[int, float]] = [
            {} if rows is None or each.vectors is None else _nearest_of(writer, each, threshold, at)
            for rows, each in zip(self._rows, records, strict=True)
        ]

    def links(self, keys: Sequence[int], written: Sequence[bool]) -> list[LinkWrite]:
        """The links from the records; of two in one write, from the later to the earlier.

        Args:
            keys: what they are stored under.
            written: which of them were; the others were there already, or another of the same text was.
        """
        latest = {key: index for index, key in enumerate(keys)}  # of an id given twice the last wins
        made: list[LinkWrite] = []
        for index, key in enumerate(keys):
            if self._rows[index] is None or latest[key] != index or not written[index]:
                continue
            near = {stored: cosine for stored, cosine in self._stored[index].items() if stored not in latest}
            cosines = self._to_the_batch(index)
            for before in np.flatnonzero(cosines[:index] >= self._threshold).tolist():
                if latest[keys[before]] == before and self._places[before] == self._places[index]:
                    near[keys[before]] = float(cosines[before])
            best = sorted(near.items(), key=lambda item: (-item[1], item[0]))[:MOST_ALIKE]
            made += [LinkWrite(key, other, LinkKind.SEMANTIC.value, min(1.0, cosine)) for other, cosine in best]
        return made

    def _to_the_batch(self, index: int) -> _Matrix:
        """The best cosine of a record to each of the batch; -1 to those without vectors."""
        cosines = np.full(len(self._rows), -1.0, dtype=np.float32)
        rows = self._rows[index]
        if rows is not None:
            np.maximum.at(cosines, self._of_row, (self._batch @ rows.T).max(axis=1))
        return cosines


def _joined(rows: Sequence[_Matrix | None]) -> tuple[_Matrix, npt.NDArray[np.int64]]:
    """All rows in one matrix, and of which record each is."""
    there = [(index, matrix) for index, matrix in enumerate(rows) if matrix is not None]
    if not there:
        return np.empty((0, 0), dtype=np.float32), np.empty(0, dtype=np.int64)
    of_row = np.repeat([index for index, _ in there], [len(matrix) for _, matrix in there])
    return np.concatenate([matrix for _, matrix in there]), of_row.astype(np.int64)


def _unit_rows(vectors: VectorWrite | None) -> _Matrix | None:
    """The vectors to compare, of unit length; None if there are none. They are checked: none is zero."""
    if vectors is None or not vectors.by_field:
        return None
    rows = np.concatenate(list(vectors.by_field.values()))[:_MOST_VECTORS].astype(np.float32)
    unit: _Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _nearest_of(writer: Writer, record: Meaning, threshold: float, at: datetime) -> dict[int, float]:
    """The records of the file that are near enough, with the best cosine that any of the vectors gives."""
    visible = _of_one_owner(record, at)
    near: dict[int, float] = {}
    rows = _unit_rows(record.vectors)
    if rows is None or writer.fingerprint is None:
        return near
    try:
        # One more than wanted, for the record itself may be there already, with its former text.
        found = writer.nearest_many(list(rows), visible, MOST_ALIKE + 1)
    except SearchUnavailableError:  # the index is being built: no link is worth failing a write for
        return near
    for key, cosine in chain.from_iterable(each.candidates for each in found):
        if cosine >= threshold:
            near[key] = max(cosine, near.get(key, cosine))
    return near


def _of_one_owner(record: Meaning, at: datetime) -> Visibility:
    """What its owner sees of his own in the record's namespace."""
    scope, name = record.owner
    access = Access()
    if scope is Scope.PERSONAL:
        access = Access(user=name)
    elif scope is Scope.ROOM and name is not None:
        access = Access(rooms=(name,))
    return Visibility(access, at, (A.scope == scope.value) & (A.namespace == record.namespace))
