"""Which index a setting stands for."""

from __future__ import annotations

from typing import Final

from twofold.vectors.approximate import ApproximateIndex
from twofold.vectors.exact import ExactIndex
from twofold.vectors.faiss_library import faiss_problem, load_faiss
from twofold.vectors.flat import LEAST_ROWS, FlatIndex
from twofold.vectors.protocol import VectorIndex

__all__ = ["APPROXIMATE", "FAISS", "empty_index", "index_in_use"]

FAISS: Final = ("faiss-flat", "faiss-hnsw", "faiss-ivf")
"""The choices that need FAISS."""
APPROXIMATE: Final = ("faiss-hnsw", "faiss-ivf")
"""Those that may miss a neighbour."""


def empty_index(choice: str, dimension: int, *, room: int = 0) -> VectorIndex:
    """The index of this name, without vectors.

    Args:
        choice: ``auto``, one of ``FAISS``, or any other word for the exact scan.
        dimension: how many numbers a vector has.
        room: about how many vectors are going to be added.

    Raises:
        MissingExtraError: it needs FAISS, and there is none.
    """
    if choice == "auto":
        return FlatIndex.empty(dimension, room=room)
    if choice == "faiss-flat":
        load_faiss()
        return FlatIndex.empty(dimension, room=room)
    if choice == "faiss-hnsw":
        return ApproximateIndex.empty(dimension, "faiss-hnsw", room=room)
    if choice == "faiss-ivf":
        return ApproximateIndex.empty(dimension, "faiss-ivf", room=room)
    return ExactIndex.empty(dimension, room=room)


def index_in_use(choice: str, vectors: int) -> str:
    """What a choice amounts to for so many vectors, if nothing is missing."""
    if choice != "auto":
        return choice
    return "faiss-flat" if vectors >= LEAST_ROWS and faiss_problem() is None else "exact"
