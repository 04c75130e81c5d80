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
    unknown: list[Matrix] = []
    for each in writes:
        if each is None:
            continue
        for given in each.by_field.values():
            if type(given) is not np.ndarray or given.dtype != _FLOAT32 or given.ndim != 2:
                return False
            if given.shape[1] != dimension or not len(given):
                return False
            if not each.sound:
                unknown.append(given)
    if not unknown:
        return True
    rows = np.concatenate(unknown)
    return all(0.0 < square < math.inf for square in np.vecdot(rows, rows).tolist())
