"""What every vector index in memory can do, and what a scan computes its products with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Found", "Kernel", "Keys", "Rows", "Scores", "SearchedAlone", "VectorIndex"]

Keys: TypeAlias = npt.NDArray[np.int64]
"""Integer keys of records."""
Floats: TypeAlias = npt.NDArray[np.float32]
"""Vectors, or the scores of a float32 scan."""
Rows: TypeAlias = npt.NDArray[np.intp]
"""Places in an index's own arrays."""
Scores: TypeAlias = npt.NDArray[np.float64]
"""Exact cosines."""
Found: TypeAlias = tuple[Keys, Scores]
"""What a search found: records, and the exact cosine of each one's best vector, best first."""


class Kernel(Protocol):
    """Dot products in float32, in any order of summation."""

    @property
    def gather_share(self) -> float:
        """Up to this share of the rows it is faster to take them one by one than to scan all."""
        ...

    def products(self, rows: Floats, unit: Floats) -> Floats:
        """The product of each row with ``unit``; shape (n,), the caller's to write to."""
        ...

    def products_at(self, rows: Floats, at: Rows, unit: Floats) -> Floats:
        """The same for the rows ``at``."""
        ...


class VectorIndex(Protocol):
    """Vectors by the key of their record, searched by cosine. A snapshot: it never changes for who holds it.

    Snapshots share memory. Any of them, however old, may be searched and updated at any time, from any thread.
    """

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def keys(self) -> Keys:
        """The records that have a vector here: sorted, none twice."""
        ...

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, what it shares with other snapshots included."""
        ...

    @property
    def problem(self) -> str | None:
        """Why an exact scan stands in for it; None if it does not."""
        ...

    def __len__(self) -> int:
        """How many vectors it holds; a record with several parts counts once for each."""
        ...

    def updated(self, removed_keys: Keys, added_keys: Keys, added_vectors: Floats) -> Self:
        """The index after removing all vectors of some records and then adding some; cheap."""
        ...

    def prepared(self) -> Self:
        """The same index with all built that makes it fast; may take long. To be used for one that is kept."""
        ...

    def reading(self, stored: Callable[[Keys], tuple[Keys, Floats]]) -> Self:
        """The same index, to be searched in a session in which ``stored`` gives records' vectors, and of which record
        each is. One that has the vectors itself is that already.
        """
        ...

    @property
    def takes_long_to_build(self) -> bool:
        """Whether what :meth:`prepared` built took so long that it is worth being saved at once."""
        ...

    def parts(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """All that :meth:`restored` needs, to be saved."""
        ...

    def restored(self, parts: Mapping[str, npt.NDArray[np.generic]]) -> Self:
        """The index whose :meth:`parts` were saved; called on an empty one."""
        ...

    def cosines(self, query: Floats, keys: Keys) -> tuple[Keys, Scores]:
        """Those of ``keys`` (sorted, none twice) that have a vector, and the cosine of each as :meth:`search` gives
        it.
        """
        ...

    def search_many(self, queries: Sequence[Floats], visible_keys: Keys | None, limit: int) -> list[Found]:
        """For each query the nearest of the visible records; all that are tied with the last one are there too. What
        can be done once for all queries is.
        """
        ...


class SearchedAlone:
    """A search for one query: one of many, alone."""

    __slots__ = ()

    def search(self: VectorIndex, query: Floats, visible_keys: Keys | None, limit: int) -> Found:
        """The nearest of the visible records; see :meth:`VectorIndex.search_many`."""
        return self.search_many([query], visible_keys, limit)[0]
