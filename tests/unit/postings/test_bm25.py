"""BM25 as FTS5 computes it; each number stands here as its formula."""

from __future__ import annotations

import math

import numpy as np

from twofold.postings import contributions, inverse_document_frequency, length_norms, weighted_frequencies


def test_inverse_document_frequency() -> None:
    assert inverse_document_frequency(100, 3) == math.log((100 - 3 + 0.5) / (3 + 0.5))
    assert inverse_document_frequency(10, 10) == 1e-6  # the logarithm is negative
    assert inverse_document_frequency(10, 0) == math.log(10.5 / 0.5)


def test_a_records_contribution() -> None:
    norms = length_norms(np.array([4.0, 8.0]), 8.0)
    assert norms.tolist() == [1.2 * (1 - 0.75 + 0.75 * 4 / 8), 1.2 * (1 - 0.75 + 0.75 * 8 / 8)]
    assert contributions(np.array([1.0, 2.0]), norms, 3.0).tolist() == [
        3.0 * ((1.0 * 2.2) / (1.0 + norms[0])),
        3.0 * ((2.0 * 2.2) / (2.0 + norms[1])),
    ]


def test_frequencies_are_added_up_weight_by_weight() -> None:
    counts = np.array([[3, 1], [0, 2], [0, 0]])
    assert weighted_frequencies(counts, (1.0, 5.0)).tolist() == [3 + 5.0, 10.0, 0.0]
    assert weighted_frequencies(counts, (0.1, 0.7)).tolist() == [0.1 + 0.1 + 0.1 + 0.7, 0.7 + 0.7, 0.0]
