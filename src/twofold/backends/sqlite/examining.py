"""What vectors are held to before they are stored: one by one, so that an error says what is wrong, or all at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import VectorWrite
from twofold.vectors import as_matrix

__all__ = ["all_sound", "as_they_are", "examined"]

Matrix: TypeAlias = npt.NDArray[np.float32]

_FLOAT32: Final = np.dtype(np.float32)


def examined(given: Matrix, dimension: int | None, field: str) -> Matrix:
    """The vectors of a field, checked so that an error says what is wrong."""
    return as_matrix(given, dimension, f"the vector of field {field!r}")


def as_they_are(given: Matrix, dimension: int | None, field: str) -> Matrix:  # noqa: ARG001 - like the other one
    """The vectors of a field that were found sound with all others."""
    return given


def all_sound(writes: Iterable[VectorWrite | None], dimension: int | None) -> bool:
    """Whether all of these vectors are plainly of that length, finite and not zero: all at once is many times quicker
    than one by one. False leaves it to :func:`examined`.
    """
    matrices = [matrix for each in writes if each is not None for matrix in each.by_field.values()]
    for each in matrices:
        if type(each) is not np.ndarray or each.dtype != _FLOAT32 or each.ndim != 2 or each.shape[1] != dimension:
            return False
        if not len(each):
            return False
    if not matrices:
        return True
    rows = np.concatenate(matrices) if len(matrices) > 1 else matrices[0]
    squares = np.vecdot(rows, rows).tolist() if len(rows) > 1 else [float(np.vdot(rows, rows))]
    return all(0.0 < square < math.inf for square in squares)
