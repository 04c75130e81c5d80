"""Vectors in memory: what a usable one is, and finding the nearest. Pure data structures, no I/O."""

from twofold.vectors.approximate import ApproximateIndex
from twofold.vectors.checks import as_matrix, as_vector, is_sound
from twofold.vectors.choice import APPROXIMATE, FAISS, empty_index, index_in_use
from twofold.vectors.compact import CompactIndex
from twofold.vectors.exact import ExactIndex
from twofold.vectors.faiss_library import faiss_problem
from twofold.vectors.flat import FlatIndex
from twofold.vectors.protocol import VectorIndex
from twofold.vectors.scoring import best_of_each, exact_cosines, membership

__all__ = [
    "APPROXIMATE",
    "FAISS",
    "ApproximateIndex",
    "CompactIndex",
    "ExactIndex",
    "FlatIndex",
    "VectorIndex",
    "as_matrix",
    "as_vector",
    "best_of_each",
    "empty_index",
    "exact_cosines",
    "faiss_problem",
    "index_in_use",
    "is_sound",
    "membership",
]
