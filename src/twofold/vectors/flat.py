"""The exact index for many vectors: their codes say which can be among the nearest, those alone are looked at.

A snapshot is an exact index and the codes of its first rows. The codes are scanned for more neighbours than are asked
for; where the last of them is so far that nobody behind it can come in, the answer is that of a scan of all vectors,
ties included. Else more are fetched, or all vectors are scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.vectors.checks import as_vector
from twofold.vectors.codes import TOGETHER, Codes, Nodes
from twofold.vectors.coding import Coding
from twofold.vectors.exact import ExactIndex
from twofold.vectors.faiss_library import faiss_problem
from twofold.vectors.proposals import nearest_by_codes
from twofold.vectors.protocol import Floats, Found, Keys, Rows, Scores, SearchedAlone

__all__ = ["FlatIndex"]

LEAST_ROWS: Final = 4096
"""From how many vectors on there are codes; below, numpy is quicker."""
_LEAST_VISIBLE: Final = 2048
"""Of fewer visible rows each is looked at."""
_LEAST_SHARE: Final = 0.01
"""Of a smaller share of visible rows too: all codes are scanned, whether they count or not."""
_TAIL: Final = 256
"""How many new rows are looked at beside the codes before they get codes of their own."""
_MOST_FETCHED: Final = 8192
"""How many neighbours are fetched at most."""
_SAMPLE: Final = 1024
"""How many vectors say where the centre of all is."""
_BLOCK: Final = 256


class FlatIndex(SearchedAlone):
    """Vectors by key, searched by cosine, none missed but for what :class:`twofold.vectors.coding.Losses` leaves to
    chance. A snapshot, as :class:`twofold.vectors.VectorIndex` says.

    Args:
        rows: all vectors.
        codes: of the first rows; None while there are too few.
        covered: how many rows those are.
        problem: why FAISS failed; None if it did not.
    """

    __slots__ = ("_codes", "_covered", "_rows", "problem")

    problem: str | None
    """Why there are no codes though there should be; None if nothing is wrong."""

    def __init__(
        self, rows: ExactIndex, codes: Codes | None = None, covered: int = 0, problem: str | None = None
    ) -> None:
        self._rows = rows
        self._codes = codes
        self._covered = covered
        self.problem = problem

    @classmethod
    def empty(cls, dimension: int, *, room: int = 0) -> FlatIndex:
        """An index without vectors; see :meth:`ExactIndex.empty`. Where FAISS is not installed it stays a scan by
        numpy.
        """
        return cls(ExactIndex.empty(dimension, room=room))

    def __len__(self) -> int:
        """How many vectors it holds."""
        return len(self._rows)

    def __repr__(self) -> str:
        return f"FlatIndex(dimension={self.dimension}, vectors={len(self)}, codes={self._covered})"

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._rows.dimension

    @property
    def keys(self) -> Keys:
        """The records that have a vector here: sorted, none twice."""
        return self._rows.keys

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self._rows.nbytes + (0 if self._codes is None else self._codes.nbytes)

    @property
    def codes(self) -> Codes | None:
        """What proposes neighbours; None while every vector is looked at."""
        return self._codes

    def reading(self, stored: object) -> FlatIndex:  # noqa: ARG002 - of the protocol
        """Itself: it has the vectors."""
        return self

    @property
    def takes_long_to_build(self) -> bool:
        """Codes are made in a fraction of the time in which the vectors are read."""
        return False

    # -- updating -------------------------------------------------------------------------------------------------

    def updated(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> FlatIndex:
        """The index after removing and then adding; what is new has no codes yet. See :class:`VectorIndex`.

        Raises:
            InvalidVectorError: an added vector is zero, not finite or of another length.
        """
        rows, moved = self._rows.changed(removed_keys, added_keys, added_vectors)
        if moved is not None:  # the codes are of rows that are elsewhere now
            return FlatIndex(rows, problem=self.problem)
        return FlatIndex(rows, self._codes, self._covered, self.problem)

    def prepared(self) -> FlatIndex:
        """The same index with codes of all its rows but the newest; see :class:`VectorIndex`."""
        size = self._rows.size
        if self.problem is not None or len(self) < LEAST_ROWS or size - self._covered < _TAIL:
            return self
        if self._codes is None and faiss_problem() is not None:
            return self
        try:
            codes, covered = self._codes, self._covered
            for block in self._blocks(covered):
                if codes is None or not codes.coding.fits(block).all() or not codes.add(covered, block):
                    return self._coded()
                covered += len(block)
            return FlatIndex(self._rows, codes, covered)
        except (RuntimeError, MemoryError) as error:  # FAISS's own
            return FlatIndex(
                self._rows, problem=f"FAISS failed ({error}), so a scan of all vectors stands in for faiss-flat"
            )

    def _coded(self) -> FlatIndex:
        """The same index with codes of their own for its rows: around their centre, or if some are of another kind,
        around none.
        """
        step = -(-self._rows.size // _SAMPLE)
        centred = Coding.for_such(self._rows.unit_vectors(slice(0, self._rows.size, step)))
        codes = self._codes_by(centred) or self._codes_by(Coding.plain(self.dimension))
        return FlatIndex(self._rows, codes, 0 if codes is None else codes.count)

    def _codes_by(self, coding: Coding) -> Codes | None:
        """Codes of all rows; None if some do not fit in."""
        codes = Codes(coding)
        for block in self._blocks(0):
            codes.add(codes.count, block)
        return codes if codes.all_fit else None

    def _blocks(self, start: int) -> Iterator[Floats]:
        """The rows from ``start`` on at a length of 1, some thousand at a time, as far as they fill whole groups."""
        stop = self._rows.size - self._rows.size % TOGETHER
        for first in range(start, stop, _BLOCK):
            yield self._rows.unit_vectors(slice(first, min(first + _BLOCK, stop)))

    def parts(self) -> dict[str, npt.NDArray[np.generic]]:
        """See :meth:`ExactIndex.parts`."""
        return self._rows.parts()

    def restored(self, parts: Mapping[str, npt.NDArray[np.generic]]) -> FlatIndex:
        """See :meth:`ExactIndex.restored`."""
        return FlatIndex(self._rows.restored(parts))

    # -- searching ------------------------------------------------------------------------------------------------

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """See :meth:`ExactIndex.search_many`: the same keys and scores.

        Raises:
            InvalidVectorError: a query is zero, not finite or of another length.
        """
        checked = [as_vector(query, self.dimension, "the query vector") for query in queries]
        rows = self._rows.rows_of(visible_keys)
        visible = self._rows.size if rows is None else len(rows)
        if self._codes is None or limit < 1 or visible < max(_LEAST_VISIBLE, _LEAST_SHARE * self._rows.size):
            return self._rows.search_rows(checked, rows, limit)
        found = nearest_by_codes(
            self._codes,
            self._covered,
            self._among(rows),
            checked,
            limit,
            most=min(_MOST_FETCHED, visible // 4),
            scored=lambda asked, nodes: self._scored(asked, nodes, limit),
            uncoded=self._tail(rows),
        )
        unsettled = [query for query, each in zip(checked, found, strict=True) if each is None]
        rest = iter(self._rows.search_rows(unsettled, rows, limit) if unsettled else ())
        return [next(rest) if each is None else each for each in found]

    def cosines(self, query: Floats, keys: Keys) -> tuple[Keys, Scores]:
        """See :meth:`ExactIndex.cosines`."""
        return self._rows.cosines(query, keys)

    def _scored(self, queries: Sequence[Floats], nodes: Sequence[Nodes], limit: int) -> list[Found]:
        return [
            self._rows.search_rows([query], np.sort(own), limit)[0] for query, own in zip(queries, nodes, strict=True)
        ]

    def _among(self, rows: Rows | None) -> npt.NDArray[np.bool_] | None:
        """By code, whether it is of one of the rows; None if all are."""
        if rows is None:
            return None
        mask = np.zeros(self._covered, dtype=np.bool_)
        mask[rows[: np.searchsorted(rows, self._covered)]] = True
        return mask

    def _tail(self, rows: Rows | None) -> Rows:
        """Those of the rows that have no code."""
        if rows is None:
            return np.arange(self._covered, self._rows.size)
        return rows[np.searchsorted(rows, self._covered) :]
