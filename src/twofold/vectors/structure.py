"""The mutable half of an approximate index: one FAISS structure over numbered vectors, HNSW or IVF.

Vectors are numbered in the order they come (nodes), and none is ever taken out: who searches says which nodes count.
So a delete shifts nothing, and any number of snapshots can share one structure. It keeps vectors in 8 bits a number:
it only proposes candidates, which are scored from the float32 vectors.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.vectors.faiss_library import BUILD_THREADS, bitmap_selector, load_faiss, threads
from twofold.vectors.gate import Gate
from twofold.vectors.protocol import Floats

__all__ = ["ApproximateKind", "Nodes", "Structure"]

ApproximateKind: TypeAlias = Literal["faiss-hnsw", "faiss-ivf"]
"""The structures there are."""
Nodes: TypeAlias = npt.NDArray[np.int64]
"""Numbers of vectors in a structure."""

_LINKS: Final = 16
"""HNSW's M."""
_BUILD_BREADTH: Final = 80
"""HNSW's efConstruction."""
_POINTS_PER_LIST: Final = 40
"""How many vectors IVF learns each of its lists from; FAISS asks for 39."""
_TRAINING_ROUNDS: Final = 8


class Structure:
    """Proposes neighbours. Safe to be searched by several threads while another adds: FAISS alone is not.

    Args:
        kind: HNSW, which is slow to build and needs no training, or IVF, which is quick to build.
        faiss_index: the FAISS object, as :meth:`built` or :meth:`restored` make it.
        trained_on: how many vectors it was built from.
    """

    def __init__(self, kind: ApproximateKind, faiss_index: Any, trained_on: int) -> None:
        self.kind: Final = kind
        self.trained_on: Final = trained_on
        self._faiss = faiss_index
        self._gate = Gate()

    @classmethod
    def built(cls, kind: ApproximateKind, units: Floats) -> Structure:
        """A structure of these vectors, which are of length 1; takes seconds to minutes for 100,000.

        Args:
            kind: which.
            units: shape (n, dimension); at least some thousand.
        """
        faiss: Any = load_faiss()
        dimension = units.shape[1]
        eight_bits, product = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        if kind == "faiss-hnsw":
            index = faiss.IndexHNSWSQ(dimension, eight_bits, _LINKS, product)
            index.hnsw.efConstruction = _BUILD_BREADTH
        else:
            lists = min(round(2 * len(units) ** 0.5), len(units) // _POINTS_PER_LIST)
            coarse = faiss.IndexFlatIP(dimension)
            index = faiss.IndexIVFScalarQuantizer(coarse, dimension, lists, eight_bits, product)
            index.cp.niter = _TRAINING_ROUNDS
            index.cp.max_points_per_centroid = _POINTS_PER_LIST
        with threads(BUILD_THREADS):
            index.train(units)
            index.add(units)
        return cls(kind, index, len(units))

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return int(self._faiss.ntotal)

    @property
    def widest(self) -> int:
        """The largest breadth that makes sense: IVF's lists, or HNSW's nodes."""
        return int(self._faiss.nlist) if self.kind == "faiss-ivf" else self.count

    def looked_at(self, breadth: int) -> float:
        """About what share of the nodes a search of this breadth looks at."""
        if self.kind == "faiss-ivf":
            return breadth / self.widest
        return min(1.0, breadth * _LINKS / max(1, self.count))

    def breadth_for(self, share: float) -> int:
        """How broad a search must be to look at this share of the nodes."""
        return int(np.ceil(share * (self.widest if self.kind == "faiss-ivf" else self.count / _LINKS)))

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        links = 2 * 4 * _LINKS if self.kind == "faiss-hnsw" else 8
        return self.count * (int(self._faiss.d) + links)

    def add(self, units: Floats) -> int:
        """Append vectors of length 1; the first one's number."""
        with self._gate.alone(), threads(BUILD_THREADS if len(units) > 1000 else 1):
            first = self.count
            self._faiss.add(units)
            return first

    def search(self, unit: Floats, known: int, among: npt.NDArray[np.bool_] | None, limit: int, breadth: int) -> Nodes:
        """The nodes that seem nearest.

        Args:
            unit: shape (dimension,), of length 1.
            known: how many nodes the caller knows of; those that came later do not count.
            among: by known node, whether it counts; None: all of them.
            limit: how many, at least 1.
            breadth: HNSW's efSearch, IVF's nprobe.

        Returns:
            At most ``limit`` nodes, the one that seems nearest first.
        """
        faiss: Any = load_faiss()
        with self._gate.together(), threads(1):
            if among is None and self.count > known:
                among = np.ones(known, dtype=np.bool_)
            selector = None if among is None else bitmap_selector(among, self.count)
            if self.kind == "faiss-hnsw":
                how = faiss.SearchParametersHNSW(efSearch=max(breadth, limit), sel=selector)
            else:
                how = faiss.SearchParametersIVF(nprobe=min(breadth, self.widest), sel=selector)
            nodes: Nodes = self._faiss.search(unit[np.newaxis], limit, params=how)[1][0]
        return nodes[nodes >= 0]  # missing neighbours are -1

    def serialized(self) -> npt.NDArray[np.uint8]:
        """Its bytes, in FAISS's own format."""
        with self._gate.together():
            data: npt.NDArray[np.uint8] = load_faiss().serialize_index(self._faiss)
            return data

    @classmethod
    def restored(cls, kind: ApproximateKind, data: npt.NDArray[np.uint8], trained_on: int) -> Structure:
        """The structure that :meth:`serialized` gave. Only for bytes that are known to be so: FAISS trusts them."""
        return cls(kind, load_faiss().deserialize_index(data), trained_on)
