"""Vectors in memory: what a usable one is, and finding the nearest. Pure data structures, no I/O."""

from twofold.vectors.checks import as_matrix, as_vector
from twofold.vectors.exact import ExactIndex, exact_cosines

__all__ = ["ExactIndex", "as_matrix", "as_vector", "exact_cosines"]
