"""What counts as a vector: the one gate that every query and every stored vector passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt

from twofold.errors import InvalidVectorError

__all__ = ["as_matrix", "as_vector", "is_sound"]


_FLOAT32: Final = np.dtype(np.float32)


def as_vector(value: object, dimension: int | None, what: str) -> npt.NDArray[np.float32]:
    """``value`` as a float32 vector of its own: the caller's array is neither kept nor changed.

    Args:
        value: a list, tuple or array of real numbers, shape (dimension,) or (1, dimension). It need not be of unit
            length.
        dimension: how many numbers are expected; None takes any, at least one.
        what: what it is, as the error calls it, e.g. ``"the query vector"``.

    Returns:
        Shape (dimension,), finite and not all zero.

    Raises:
        InvalidVectorError: wrong length, all zero, NaN or infinite (float32 reaches from 1e-45 to 3.4e38), or no
            numbers at all.
    """
    if is_sound(value, dimension):
        return value.copy()
    numbers = _numbers(value, what)
    if numbers.ndim == 2 and numbers.shape[0] == 1:
        numbers = numbers[0]
    if numbers.ndim != 1:
        raise InvalidVectorError(
            f"{what} has the shape {numbers.shape}; pass one vector, of {_expected(dimension)} numbers"
        )
    if numbers.size == 0:
        raise InvalidVectorError(f"{what} is empty; {_expected(dimension)} numbers are expected")
    if dimension is not None and numbers.size != dimension:
        raise InvalidVectorError(
            f"{what} has {numbers.size} numbers, {dimension} are expected; "
            "make it with the embedder that the other vectors were made with"
        )
    with np.errstate(all="ignore"):  # what leaves float32's range becomes infinite or zero, and is named below
        vector = np.array(numbers, dtype=np.float32, order="C")
    if not np.isfinite(vector).all():
        raise InvalidVectorError(
            f"{what} holds NaN, an infinity or a number beyond float32 (3.4e38); every number must be finite"
        )
    if not vector.any():
        raise InvalidVectorError(
            f"{what} is all zeros (or below float32's smallest number), so it has no direction to compare; "
            "leave it out, or embed a text that has words"
        )
    return vector


def as_matrix(value: object, dimension: int | None, what: str) -> npt.NDArray[np.float32]:
    """The vectors of several parts, one a row.

    Args:
        value: a sequence of vectors, an array of shape (parts, dimension), or a single vector as its only part.
        dimension: how many numbers each has; None takes any number that all share.
        what: what they are, as the error calls them.

    Returns:
        Shape (parts, dimension), at least one part; each row as :func:`as_vector` gives it.

    Raises:
        InvalidVectorError: there is no part, or one of them cannot be used; the message says which.
    """
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return as_vector(value, dimension, what)[np.newaxis]
    parts = list(value) if _is_sequence(value) else None
    if parts == []:
        raise InvalidVectorError(f"{what} holds no vector; give one a part, of {_expected(dimension)} numbers")
    if parts is None or not _is_sequence(parts[0]):
        return as_vector(value, dimension, what)[np.newaxis]
    rows: list[npt.NDArray[np.float32]] = []
    for place, part in enumerate(parts, start=1):
        name = f"{what}, part {place} of {len(parts)}," if len(parts) > 1 else what
        rows.append(as_vector(part, rows[0].size if rows else dimension, name))
    return np.stack(rows)


def is_sound(value: object, dimension: int | None) -> TypeGuard[npt.NDArray[np.float32]]:
    """Whether ``value`` is plainly a float32 vector of that length, finite and not zero, as it stands.

    As nearly all are, at the price of one product: of its square, which is neither NaN nor infinite nor zero. False
    (numbers near the ends of float32's range are among it) leaves it to the full examination.
    """
    return (
        type(value) is np.ndarray
        and value.dtype == _FLOAT32
        and value.ndim == 1
        and (dimension is None or len(value) == dimension)
        and 0.0 < float(np.vdot(value, value)) < math.inf
    )


def _numbers(value: object, what: str) -> npt.NDArray[np.generic]:
    """``value`` as an array of integers or floats, of any shape."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):  # lists of unequal length, or what no array can be made of
        raise InvalidVectorError(f"{what} is not a flat list of numbers; pass one float a dimension") from None
    # An empty list is an array of floats; bool in a list of floats would pass for 1.0.
    if array.dtype.kind not in "iuf" or (isinstance(value, (list, tuple)) and bool in set(map(type, value))):
        kind = type(value).__name__ if array.ndim == 0 else f"{type(value).__name__} of {array.dtype}"
        raise InvalidVectorError(f"{what} must be made of real numbers, not a {kind}; pass one float a dimension")
    return array


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether ``value`` has elements that may be numbers or vectors."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _expected(dimension: int | None) -> str:
    return "some" if dimension is None else str(dimension)
