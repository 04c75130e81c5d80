"""The approximate index: a FAISS structure proposes, the exact index decides.

A snapshot is an exact index and a map from the structure's nodes to its rows. What the structure proposes is scored
like everything else, so scores and ties are the exact scan's; only a neighbour that was never proposed can be missing.
How broadly the structure is searched is measured when it is built, on the vectors themselves. Where a search of that
breadth would not be cheaper, the exact index answers: few rows, few visible ones, many asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.vectors.checks import as_vector
from twofold.vectors.exact import ExactIndex
from twofold.vectors.faiss_library import FaissKernel
from twofold.vectors.protocol import Floats, Found, Keys, Rows, Scores, SearchedAlone
from twofold.vectors.structure import ApproximateKind, Nodes, Structure

__all__ = ["ApproximateIndex", "Breadth"]

LEAST_ROWS: Final = 4096
"""From how many vectors on there is a structure; below, the exact scan takes less than a millisecond."""
MOST_FETCHED: Final = 4096
"""How many nodes are fetched at most; beyond, the exact scan answers."""
EXACT_SHARE: Final = 0.02
"""Up to this share of visible rows the exact index answers."""
_MARGIN: Final = 32
"""How many more nodes are fetched than records are asked for: 8 bits a number put neighbours slightly out of order."""
_TAIL: Final = 256
"""How many new rows are scanned beside the structure before they are added to it."""
_COSTS: Final = 3
"""How much dearer it is to look at a node than at a row of the exact scan."""
_DEAD_SHARE: Final = 0.3
"""Above this share of nodes that lead to no living row, the structure is built anew."""
_OUTGROWN: Final = 4
"""IVF learns its lists anew when there are so many times more vectors."""

_GOAL: Final = 0.985
"""The recall@10 on samples made of the stored vectors that a search must reach; other queries may be harder."""
_SAMPLES: Final = 48
_SAMPLE_SHARE: Final = 0.1
"""The share of visible rows that the breadth of filtered searches is measured at."""


class Breadth(NamedTuple):
    """How broadly to search."""

    all: int
    """If all rows are visible."""
    filtered: int
    """If a tenth of them is."""
    measured_at: int
    """How many nodes there were."""

    def at(self, share: float) -> int:
        """For a share of visible rows, by the power law between the two that were measured."""
        slope = np.log(max(1.0, self.filtered / self.all)) / np.log(_SAMPLE_SHARE)
        return int(np.ceil(self.all * share**slope))


class ApproximateIndex(SearchedAlone):
    """Vectors by key, searched through a structure. A snapshot, as :class:`twofold.vectors.VectorIndex` says.

    Args:
        kind: of the structure.
        rows: all vectors.
        structure: over some of them; None while there are too few.
        row_of: by node, its row; -1 if it leads to none.
        covered: how many rows, from the first on, are in the structure, or dead.
        breadth: how broadly to search.
        problem: why FAISS failed; None if it did not.
    """

    __slots__ = ("_breadth", "_covered", "_row_of", "_rows", "_structure", "kind", "problem")

    kind: ApproximateKind
    """The structure's kind."""
    problem: str | None
    """Why the exact index answers always; None if it does not."""

    def __init__(
        self,
        kind: ApproximateKind,
        rows: ExactIndex,
        structure: Structure | None = None,
        row_of: Nodes | None = None,
        covered: int = 0,
        breadth: Breadth | None = None,
        problem: str | None = None,
    ) -> None:
        self.kind = kind
        self.problem = problem
        self._rows = rows
        self._structure = structure
        self._row_of = np.empty(0, dtype=np.int64) if row_of is None else row_of
        self._covered = covered
        self._breadth = breadth

    @classmethod
    def empty(cls, dimension: int, kind: ApproximateKind, *, room: int = 0) -> ApproximateIndex:
        """An index without vectors; see :meth:`ExactIndex.empty`.

        Raises:
            MissingExtraError: FAISS is not installed.
        """
        return cls(kind, ExactIndex.empty(dimension, FaissKernel(), room=room))

    def __len__(self) -> int:
        """How many vectors it holds."""
        return len(self._rows)

    def __repr__(self) -> str:
        state = "exact" if self._structure is None else f"breadth={self._breadth}"
        return f"ApproximateIndex({self.kind!r}, dimension={self.dimension}, vectors={len(self)}, {state})"

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
        structure = 0 if self._structure is None else self._structure.nbytes
        return self._rows.nbytes + self._row_of.nbytes + structure

    @property
    def structure(self) -> Structure | None:
        """What proposes neighbours; None while the exact index does it all."""
        return self._structure

    def reading(self, stored: object) -> ApproximateIndex:  # noqa: ARG002 - of the protocol
        """Itself: it has the vectors."""
        return self

    @property
    def takes_long_to_build(self) -> bool:
        """Seconds, or minutes, once there is a structure."""
        return self._structure is not None

    # -- updating -------------------------------------------------------------------------------------------------

    def updated(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> ApproximateIndex:
        """The index after removing and then adding; the structure stays as it is. See :class:`VectorIndex`.

        Raises:
            InvalidVectorError: an added vector is zero, not finite or of another length.
        """
        rows, moved = self._rows.changed(removed_keys, added_keys, added_vectors)
        row_of, covered = self._row_of, self._covered
        if moved is not None:
            if len(row_of):
                row_of = np.where(row_of >= 0, moved[row_of], -1)
            covered = int(np.count_nonzero(moved[:covered] >= 0))
        return self._with(rows=rows, row_of=row_of, covered=covered)

    def prepared(self) -> ApproximateIndex:
        """The same index with a structure that has all its rows; see :class:`VectorIndex`.

        Building one for 100,000 vectors takes seconds (IVF) to minutes (HNSW).
        """
        if self.problem is not None or len(self) < LEAST_ROWS:
            return self
        try:
            if self._is_worn_out():
                return self._rebuilt()
            return self._extended()
        except (RuntimeError, MemoryError) as error:  # FAISS's own
            return ApproximateIndex(
                self.kind, self._rows, problem=f"FAISS failed ({error}), so an exact scan stands in for {self.kind}"
            )

    def _is_worn_out(self) -> bool:
        structure = self._structure
        if structure is None:
            return True
        nodes = structure.count + self._rows.size - self._covered
        if len(self) < (1 - _DEAD_SHARE) * nodes:
            return True
        return structure.kind == "faiss-ivf" and nodes > _OUTGROWN * structure.trained_on

    def _rebuilt(self) -> ApproximateIndex:
        living = self._living()
        structure = Structure.built(self.kind, self._rows.unit_vectors(living))
        index = self._with(structure=structure, row_of=living.astype(np.int64), covered=self._rows.size)
        return index.measured()

    def _extended(self) -> ApproximateIndex:
        structure, size = self._structure, self._rows.size
        if structure is None or size - self._covered < _TAIL:
            return self
        living = self._living()
        new = living[living >= self._covered]
        first = structure.add(self._rows.unit_vectors(new)) if len(new) else len(self._row_of)
        # Other snapshots of the same structure may have added nodes in between: they lead to no row of this one.
        foreign = np.full(first - len(self._row_of), -1, dtype=np.int64)
        index = self._with(row_of=np.concatenate((self._row_of, foreign, new)), covered=size)
        outgrown = self._breadth is None or structure.count > 2 * self._breadth.measured_at
        return index.measured() if outgrown else index

    def _with(
        self,
        *,
        rows: ExactIndex | None = None,
        structure: Structure | None = None,
        row_of: Nodes | None = None,
        covered: int | None = None,
        breadth: Breadth | None = None,
    ) -> ApproximateIndex:
        return ApproximateIndex(
            self.kind,
            self._rows if rows is None else rows,
            self._structure if structure is None else structure,
            self._row_of if row_of is None else row_of,
            self._covered if covered is None else covered,
            self._breadth if breadth is None else breadth,
            self.problem,
        )

    # -- searching ------------------------------------------------------------------------------------------------

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """The records that seem nearest to each query, scored exactly.

        Args:
            queries: each of shape (dimension,), of any length.
            visible_keys: the records that may be found, sorted, none twice; None: all.
            limit: how many; 0 gives none.

        Returns:
            As :meth:`ExactIndex.search_many` does. The true nearest where that answers, that is up to 2 % visible rows
            and wherever it is no slower; else each of the 10 nearest with a probability of at least 0.95.

        Raises:
            InvalidVectorError: a query is zero, not finite or of another length.
        """
        checked = [as_vector(query, self.dimension, "the query vector") for query in queries]
        rows = self._rows.rows_of(visible_keys)
        breadth = self._breadth_for(rows, limit)
        if breadth is None:
            return self._rows.search_rows(checked, rows, limit)
        return [self._proposed(query, rows, limit, breadth) for query in checked]

    def cosines(self, query: Floats, keys: Keys) -> tuple[Keys, Scores]:
        """See :meth:`ExactIndex.cosines`."""
        return self._rows.cosines(query, keys)

    def _breadth_for(self, rows: Rows | None, limit: int) -> int | None:
        """How broadly to search; None if the exact index is no slower."""
        structure, breadth = self._structure, self._breadth
        count = self._rows.size if rows is None else len(rows)
        if structure is None or breadth is None or limit < 1 or count <= EXACT_SHARE * len(self):
            return None
        if limit + _MARGIN > min(MOST_FETCHED, count / 4):
            return None
        share = count / max(1, len(self))
        # Twice as many visible nodes as are fetched must be looked at, however near the ten nearest are.
        wanted = max(breadth.at(share), structure.breadth_for(2 * (limit + _MARGIN) / count))
        return wanted if structure.looked_at(wanted) < share / _COSTS else None

    def _proposed(self, query: Floats, rows: Rows | None, limit: int, breadth: int) -> tuple[Keys, Scores]:
        structure = self._structure
        if structure is None:
            return self._rows.search_rows([query], rows, limit)[0]
        unit = (query / np.sqrt(np.add.reduce(query.astype(np.float64) ** 2))).astype(np.float32)
        among = self._among(rows)
        tail = self._tail(rows)
        wanted = limit + _MARGIN
        while wanted <= MOST_FETCHED:
            nodes = structure.search(unit, len(self._row_of), among, wanted, breadth)
            candidates = np.concatenate((np.sort(self._row_of[nodes]), tail)).astype(np.intp, copy=False)
            keys, scores = self._rows.search_rows([query], candidates, limit)[0]
            if len(keys) >= limit:
                # Who is in a tie at the cut is decided by all its members, and equal vectors are easily overlooked.
                if np.count_nonzero(scores == scores[limit - 1]) > 1:
                    break
                return keys, scores
            if len(nodes) < wanted:
                break
            wanted *= 4
        return self._rows.search_rows([query], rows, limit)[0]

    def _among(self, rows: Rows | None) -> npt.NDArray[np.bool_] | None:
        """By node, whether it leads to one of the rows; None if all do."""
        if rows is None and self._row_of.min() >= 0:
            return None
        mask = np.ones(self._rows.size, dtype=np.bool_) if rows is None else np.zeros(self._rows.size, dtype=np.bool_)
        if rows is not None:
            mask[rows] = True
        among: npt.NDArray[np.bool_] = mask[self._row_of] & (self._row_of >= 0)
        return among

    def _tail(self, rows: Rows | None) -> Rows:
        """Those of the rows that are not in the structure."""
        if rows is None:
            return np.arange(self._covered, self._rows.size)
        return rows[np.searchsorted(rows, self._covered) :]

    def _living(self) -> Rows:
        living = self._rows.rows_of(None)
        return np.arange(self._rows.size) if living is None else living

    # -- measuring ------------------------------------------------------------------------------------------------

    def measured(self) -> ApproximateIndex:
        """The same, searched as broadly as its own vectors ask for."""
        structure = self._structure
        if structure is None:
            return self
        chance = np.random.default_rng(len(self))
        living = self._living()
        one, other = (self._rows.unit_vectors(chance.choice(living, _SAMPLES)) for _ in range(2))
        # Between two stored vectors: a query lies near to what it asks for, but farther off than the stored ones.
        queries = one + 0.75 * other
        some = np.sort(chance.choice(living, max(1, int(_SAMPLE_SHARE * len(living))), replace=False))
        everything = None if len(living) == self._rows.size else living
        return self._with(
            breadth=Breadth(
                self._least_breadth(queries, everything), self._least_breadth(queries, some), structure.count
            )
        )

    def _least_breadth(self, queries: Floats, rows: Rows | None) -> int:
        """The least power of two that reaches the goal among these rows, or all there is."""
        structure = self._structure
        if structure is None:
            return 1
        truth = [set(keys.tolist()) for keys, _ in self._rows.search_rows(list(queries), rows, 10)]
        breadth = 4 if structure.kind == "faiss-ivf" else 32
        while breadth < structure.widest:
            found = [set(self._proposed(query, rows, 10, breadth)[0].tolist()) for query in queries]
            hits = sum(len(mine & theirs) for mine, theirs in zip(found, truth, strict=True))
            if hits >= _GOAL * sum(map(len, truth)):
                return breadth
            breadth *= 2
        return structure.widest

    # -- saving ---------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that :meth:`restored` needs: the living rows, and the structure."""
        living = self._living()
        place = np.full(self._rows.size + 1, -1, dtype=np.int64)  # the last is for nodes that lead nowhere
        place[living] = np.arange(len(living))
        structure, breadth = self._structure, self._breadth
        numbers = [int(np.searchsorted(living, self._covered)), 0 if structure is None else structure.trained_on]
        return {
            **self._rows.parts(),
            "row_of": place[self._row_of],
            "numbers": np.array([*numbers, *(breadth or ())], dtype=np.int64),
            "structure": np.empty(0, dtype=np.uint8) if structure is None else structure.serialized(),
        }

    def restored(self, parts: Mapping[str, npt.NDArray[np.generic]]) -> ApproximateIndex:
        """The index whose :meth:`parts` were saved; called on an empty one."""
        rows = self._rows.restored(parts)
        covered, trained_on, *breadth = parts["numbers"].tolist()
        data = parts["structure"].astype(np.uint8)
        if not len(data):
            return ApproximateIndex(self.kind, rows)
        structure = Structure.restored(self.kind, data, trained_on)
        row_of = parts["row_of"].astype(np.int64)
        return ApproximateIndex(self.kind, rows, structure, row_of, covered, Breadth(*breadth))
