"""What passes as a vector."""

from __future__ import annotations

import array
import warnings
from decimal import Decimal

import numpy as np
import pytest

from twofold.errors import InvalidVectorError
from twofold.vectors import as_matrix, as_vector


@pytest.mark.parametrize(
    "value",
    [
        [1.0, 2.0, 3.0],
        (1, 2, 3),
        np.array([1.0, 2.0, 3.0], dtype=np.float64),
        np.array([[1.0, 2.0, 3.0]], dtype=np.float32),
        np.array([1, 2, 3], dtype=np.int8),
        np.array([1, 2, 3], dtype=np.float16),
        [[1.0, 2.0, 3.0]],
        [np.float32(1), np.int64(2), 3],
        array.array("d", [1.0, 2.0, 3.0]),
        np.array([1.0, 0.0, 2.0, 0.0, 3.0, 0.0])[::2],
    ],
)
def test_numbers_of_any_kind_become_float32(value: object) -> None:
    vector = as_vector(value, 3, "the query vector")
    assert vector.dtype == np.float32
    assert vector.flags.c_contiguous
    assert vector.tolist() == [1.0, 2.0, 3.0]


def test_the_callers_array_is_copied() -> None:
    given = np.array([3.0, 4.0], dtype=np.float32)
    vector = as_vector(given, 2, "it")
    vector[0] = 9.0
    assert given.tolist() == [3.0, 4.0]


def test_any_length_if_none_is_asked_for() -> None:
    assert as_vector([0.5], None, "it").shape == (1,)


# tteon/seocho#121: the error was an empty AssertionError
@pytest.mark.parametrize("value", [[1, 2, 3, 4], np.ones(4), np.ones((1, 4)), np.ones(4, dtype=np.float32)])
def test_wrong_length_names_both(value: object) -> None:
    with pytest.raises(InvalidVectorError, match=r"the query vector has 4 numbers, 3 are expected; .*embedder"):
        as_vector(value, 3, "the query vector")


@pytest.mark.parametrize("value", [[], np.empty(0), np.empty((1, 0)), ()])
def test_empty_names_what_is_expected(value: object) -> None:
    with pytest.raises(InvalidVectorError, match="empty; 3 numbers are expected"):
        as_vector(value, 3, "it")


@pytest.mark.parametrize("value", [[0.0, 0.0], [0, 0], np.zeros(2), [1e-60, -1e-60]])
def test_zero_after_the_cast_is_refused(value: object) -> None:
    with pytest.raises(InvalidVectorError, match="all zeros"):
        as_vector(value, 2, "it")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e39, -1e300, 10**100])
def test_not_finite_after_the_cast_is_refused(bad: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidVectorError, match=r"finite|real numbers"):
            as_vector([1.0, bad], 2, "it")


@pytest.mark.parametrize(
    "value",
    [
        "12",
        b"12",
        ["1", "2"],
        [True, False],
        [True, 1.0],
        np.array([True, False]),
        [Decimal(1), Decimal(2)],
        np.array([1.0, None], dtype=object),
        [1.0, None],
        [1j, 2j],
        {"a": 1.0, "b": 2.0},
        {1.0, 2.0},
        None,
        1.0,
        [[1.0, 2.0], [3.0]],
        [[1.0, 2.0], [3.0, 4.0]],
        np.ones((2, 2)),
        (number for number in (1.0, 2.0)),
    ],
)
def test_what_is_no_vector_is_refused(value: object) -> None:
    with pytest.raises(InvalidVectorError, match=r"^the query vector "):
        as_vector(value, 2, "the query vector")


def test_a_matrix_has_one_row_a_part() -> None:
    assert as_matrix([[1, 2], (3, 4), np.array([5.0, 6.0])], 2, "it").tolist() == [[1, 2], [3, 4], [5, 6]]
    assert as_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]), 2, "it").dtype == np.float32


@pytest.mark.parametrize("value", [[1, 2], (1.0, 2.0), np.array([1.0, 2.0]), [[1, 2]], array.array("f", [1, 2])])
def test_a_single_vector_is_the_only_part(value: object) -> None:
    assert as_matrix(value, 2, "it").tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([[1, 2], [3]], r"it, part 2 of 2, has 1 numbers, 2 are expected"),
        ([[1, 2], [0, 0]], r"it, part 2 of 2, is all zeros"),
        ([[1, 2], 3], r"it, part 2 of 2,"),
        ([], "it holds no vector; give one a part, of 2 numbers"),
        (np.empty((0, 2)), "it holds no vector"),
        ([[]], "it is empty"),
        ("ab", "real numbers"),
        (["a", "b"], "real numbers"),
        (np.ones((2, 2, 2)), r"part 1 of 2, has the shape \(2, 2\)"),
    ],
)
def test_a_bad_part_is_named(value: object, said: str) -> None:
    with pytest.raises(InvalidVectorError, match=said):
        as_matrix(value, 2, "it")


def test_parts_share_a_length_even_if_none_is_asked_for() -> None:
    assert as_matrix([[1, 2, 3], [4, 5, 6]], None, "it").shape == (2, 3)
    with pytest.raises(InvalidVectorError, match="part 2 of 2, has 2 numbers, 3 are expected"):
        as_matrix([[1, 2, 3], [4, 5]], None, "it")
