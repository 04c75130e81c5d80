"""Codes in memory, vectors elsewhere: the same answers, few of the vectors read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from twofold.errors import InvalidVectorError
from twofold.vectors import CompactIndex, ExactIndex, codes, compact, faiss_library, subsets
from twofold.vectors.codes import TOGETHER

pytestmark = pytest.mark.skipif(faiss_library.faiss_problem() is not None, reason="the extra faiss is not installed")

NONE = np.empty(0, dtype=np.int64)
CENTRE = 5 * np.eye(32, dtype=np.float32)[0]
"""Where vectors lie that have much in common."""
Matrix = npt.NDArray[np.float32]


def clustered(count: int, dimension: int = 32, seed: int = 0) -> Matrix:
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((max(1, count // 200), dimension))
    near = centres[chance.integers(0, len(centres), count)] + 0.7 * chance.standard_normal((count, dimension))
    return near.astype(np.float32)


class File:
    """Where the vectors are; it counts how many of them are read."""

    def __init__(self, vectors: Matrix) -> None:
        self.keys = np.arange(len(vectors))
        self.vectors = vectors
        self.read = 0

    def batches(self, size: int = 700) -> Iterator[tuple[Any, Matrix]]:
        for start in range(0, len(self.keys), size):
            yield self.keys[start : start + size], self.vectors[start : start + size]

    def __call__(self, keys: Any) -> tuple[Any, Matrix]:
        wanted = np.isin(self.keys, keys)
        self.read += int(np.count_nonzero(wanted))
        return self.keys[wanted], self.vectors[wanted]


def filled(vectors: Matrix) -> tuple[CompactIndex, ExactIndex, File]:
    file = File(vectors)
    index = CompactIndex.built(vectors.shape[1], file.batches, lambda: False)
    assert index is not None
    exact = ExactIndex.empty(vectors.shape[1]).updated(NONE, file.keys, vectors)
    return index, exact, file


def assert_same(index: CompactIndex, file: File, exact: ExactIndex, query: Matrix, visible: Any = None) -> None:
    for limit in (1, 10, 100):
        found, truth = (each.search(query, visible, limit) for each in (index.reading(file), exact))
        assert [each.tolist() for each in found] == [each.tolist() for each in truth]


def test_it_finds_what_a_scan_finds_and_reads_few() -> None:
    index, exact, file = filled(clustered(30_000))
    file.read = 0
    for query in clustered(10, seed=0):
        assert_same(index, file, exact, query)
    assert file.read < 10 * 3 * 4096
    assert len(index) == 30_000
    assert index.nbytes < 30_000 * 32 * 4


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.9])
@pytest.mark.parametrize("few", [0, 4 * 32 * 100, 4 * 32 * 8000])
def test_among_the_visible(monkeypatch: pytest.MonkeyPatch, few: int, share: float) -> None:
    monkeypatch.setattr(compact, "_FEW_BYTES", few)
    index, exact, file = filled(clustered(8000))
    visible = np.flatnonzero(np.random.default_rng(1).random(8000) < share)
    for query in clustered(5, seed=3):
        assert_same(index, file, exact, query, visible)


def test_a_few_far_from_the_others_stand_beside_the_codes() -> None:
    vectors = CENTRE + clustered(9000)
    vectors[8500:8550] = -vectors[8500:8550]
    index, exact, file = filled(vectors)
    assert f"recent={50 + (9000 - 8192 - 50) % TOGETHER}" in repr(index)
    for query in (vectors[8505], vectors[5], clustered(1, seed=9)[0]):
        assert_same(index, file, exact, query)


def test_where_many_come_that_are_far_from_the_first_all_get_codes() -> None:
    vectors = CENTRE + clustered(12_000)
    vectors[9000:] = clustered(3000, seed=5)
    index, exact, file = filled(vectors)
    assert f"recent={(12_000 - 8192) % TOGETHER}" in repr(index)
    for query in (vectors[10_000], vectors[5], -vectors[5]):
        assert_same(index, file, exact, query)


def test_changes_are_seen_before_and_after_they_have_codes() -> None:
    vectors = clustered(6000)
    index, exact, file = filled(vectors[:5000])
    for start in range(5000, 6000, 250):
        new = np.arange(start, start + 250)
        gone = np.arange(start - 5000, start - 4900)
        file.keys = np.concatenate([file.keys[~np.isin(file.keys, gone)], new])
        file.vectors = vectors[file.keys]
        index = index.updated(gone, new, vectors[new]).prepared()
        exact = exact.updated(gone, new, vectors[new])
        assert index.keys.tolist() == exact.keys.tolist()
        assert_same(index, file, exact, vectors[start])
        assert_same(index, file, exact, vectors[gone[0]])


def test_what_is_too_far_for_a_code_keeps_its_numbers_when_the_others_get_theirs() -> None:
    vectors = CENTRE + clustered(4000)
    index, exact, file = filled(vectors)
    new = np.arange(4000, 5500)
    more = CENTRE + clustered(1500, seed=4)
    more[::5] = -more[::5]
    file.keys, file.vectors = np.arange(5500), np.concatenate([vectors, more])
    index, exact = index.updated(NONE, new, more), exact.updated(NONE, new, more)
    folded = index.prepared()
    assert f"recent={300 + (1200 + 4000 % TOGETHER) % TOGETHER}" in repr(folded)
    for query in (more[5], more[6], more[10] + more[15]):
        assert_same(folded, file, exact, query)


def test_where_faiss_fails_what_is_new_stays_beside_the_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    vectors = clustered(7000)
    index, exact, file = filled(vectors[:5000])
    file.keys, file.vectors = np.arange(7000), vectors
    new = np.arange(5000, 7000)
    index, exact = index.updated(NONE, new, vectors[new]), exact.updated(NONE, new, vectors[new])
    monkeypatch.setattr(codes, "_append", fail)
    assert index.prepared() is index
    monkeypatch.undo()
    for each in (index, index.prepared()):
        for query in (vectors[10], vectors[6000]):
            assert_same(each, file, exact, query)


def test_many_equal_ones_are_all_there() -> None:
    vectors = clustered(9000)
    vectors[1000:7000] = vectors[7]
    index, exact, file = filled(vectors)
    assert_same(index, file, exact, vectors[7])


def test_it_can_be_called_off() -> None:
    assert CompactIndex.built(32, File(clustered(2000)).batches, lambda: True) is None


def test_of_nothing() -> None:
    index, exact, file = filled(clustered(0))
    assert len(index) == 0
    assert_same(index, file, exact, np.ones(32, dtype=np.float32))


def test_it_is_restored_as_it_was_saved() -> None:
    vectors = clustered(5000)
    index, exact, file = filled(vectors)
    new = clustered(10, seed=9)
    index = index.updated(np.arange(50), np.arange(5000, 5010), new)
    exact = exact.updated(np.arange(50), np.arange(5000, 5010), new)
    file.keys, file.vectors = (
        np.concatenate([np.arange(50, 5000), np.arange(5000, 5010)]),
        np.concatenate([vectors[50:], new]),
    )
    again = CompactIndex.empty(32).restored(index.parts())
    assert again.keys.tolist() == exact.keys.tolist()
    for query in (vectors[3], vectors[70], new[4]):
        assert_same(again, file, exact, query)


def test_parts_of_another_dimension_are_refused() -> None:
    index, _, _ = filled(clustered(3000))
    with pytest.raises(ValueError, match="codes of 32 numbers"):
        CompactIndex.empty(64).restored(index.parts())


@pytest.mark.parametrize("query", [np.zeros(32, dtype=np.float32), np.full(32, np.nan, dtype=np.float32)])
def test_a_query_that_is_none(query: Matrix) -> None:
    index, _, file = filled(clustered(3000))
    with pytest.raises(InvalidVectorError):
        index.reading(file).search(query, None, 5)


def test_the_vectors_of_few_visible_records_are_read_once_for_who_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(20_000, 32)
    index, exact, file = filled(vectors)
    read: list[int] = []
    real = CompactIndex._of_few

    def of_few(self: CompactIndex, keys: Any) -> Any:
        read.append(len(keys))
        return real(self, keys)

    few = [np.arange(start, 20_000, 61) for start in range(10)]
    monkeypatch.setattr(CompactIndex, "_of_few", of_few)
    monkeypatch.setattr(compact, "_FEW_BYTES", 4 * 32 * len(few[0]))
    monkeypatch.setattr(subsets, "_KEPT_BYTES", 8 * real(index.reading(file), few[0]).nbytes)
    for _ in range(2):
        for visible in few[:8]:
            for query in vectors[:3]:
                assert_same(index, file, exact, query, visible)
    assert read == [len(visible) for visible in few[:8]]
    assert_same(index, file, exact, vectors[0], few[8])  # one more than are kept: the first goes
    assert_same(index, file, exact, vectors[0], few[1])
    assert_same(index, file, exact, vectors[0], few[0])
    assert read[8:] == [len(few[8]), len(few[0])]
    many = np.arange(0, 20_000, 40)
    assert_same(index, file, exact, vectors[0], many)
    assert len(read) == 10
    gone = index.updated(few[1][:100], NONE, np.empty((0, 32), dtype=np.float32))
    left = exact.updated(few[1][:100], NONE, np.empty((0, 32), dtype=np.float32))
    file.keys, file.vectors = np.delete(file.keys, few[1][:100]), np.delete(file.vectors, few[1][:100], axis=0)
    assert_same(gone, file, left, vectors[0], few[1])
    assert read[10:] == [len(few[1])]
