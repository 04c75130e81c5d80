"""The flat index: what the codes propose is never less than what can be among the nearest."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from twofold.errors import InvalidVectorError
from twofold.vectors import ExactIndex, FlatIndex, choice, codes, empty_index, faiss_library, flat, index_in_use
from twofold.vectors.codes import TOGETHER

pytestmark = pytest.mark.skipif(faiss_library.faiss_problem() is not None, reason="the extra faiss is not installed")


NONE = np.empty(0, dtype=np.int64)
Matrix = npt.NDArray[np.float32]


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (flat, choice):
        monkeypatch.setattr(module, "LEAST_ROWS", 2000)
    monkeypatch.setattr(flat, "_LEAST_VISIBLE", 1000)


def clustered(count: int, dimension: int, seed: int = 0) -> Matrix:
    """Vectors as embeddings lie: around a few centres."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((max(1, count // 200), dimension))
    near = centres[chance.integers(0, len(centres), count)] + 0.7 * chance.standard_normal((count, dimension))
    return near.astype(np.float32)


def filled(vectors: Matrix) -> tuple[FlatIndex, ExactIndex]:
    keys = np.arange(len(vectors))
    index = FlatIndex.empty(vectors.shape[1]).updated(NONE, keys, vectors).prepared()
    return index, ExactIndex.empty(vectors.shape[1]).updated(NONE, keys, vectors)


def assert_same(index: FlatIndex, exact: ExactIndex, query: Matrix, visible: Any = None, limit: int = 10) -> None:
    found, truth = (each.search(query, visible, limit) for each in (index, exact))
    assert [each.tolist() for each in found] == [each.tolist() for each in truth]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each search of the exact index that is behind it looks at; -1: all."""
    looked_at: list[int] = []
    real = ExactIndex.search_rows

    def search_rows(self: ExactIndex, queries: Any, rows: Any, limit: int) -> Any:
        looked_at.extend([-1 if rows is None else len(rows)] * len(queries))
        return real(self, queries, rows, limit)

    monkeypatch.setattr(ExactIndex, "search_rows", search_rows)
    return looked_at


@pytest.mark.parametrize("dimension", [5, 16, 100, 384])
@pytest.mark.parametrize("limit", [1, 10, 100])
def test_it_finds_what_a_scan_finds_and_looks_at_few(
    monkeypatch: pytest.MonkeyPatch, dimension: int, limit: int
) -> None:
    vectors = clustered(6000, dimension)
    index, exact = filled(vectors)
    looked_at = counted(monkeypatch)
    for query in clustered(20, dimension, seed=0):
        assert_same(index, exact, query, limit=limit)
    few = [count for count in looked_at[::2] if 0 <= count <= 2000]  # every other one is the exact index's own
    assert dimension < 100 or len(few) >= 15


@pytest.mark.parametrize("share", [None, 0.001, 0.5])
def test_many_queries_at_once_find_what_each_finds_alone(share: float | None) -> None:
    vectors = clustered(5000, 32)
    vectors[100:1300] = vectors[7]  # so many equals that the codes cannot tell who is nearest: all rows are scanned
    index, exact = filled(vectors)
    visible = None if share is None else np.flatnonzero(np.random.default_rng(1).random(5000) < share)
    queries = [*clustered(12, 32, seed=0), vectors[7], -vectors[7]]
    found = index.search_many(queries, visible, 10)
    alone = [exact.search(query, visible, 10) for query in queries]
    assert [[each.tolist() for each in one] for one in found] == [[each.tolist() for each in one] for one in alone]
    assert index.search_many([], visible, 10) == []


def test_vectors_of_any_length_and_sign() -> None:
    vectors = clustered(3000, 32) * np.logspace(-30, 30, 3000, dtype=np.float64)[:, None].astype(np.float32)
    index, exact = filled(vectors)
    for scale in (1e-38, 1.0, 1e37):
        assert_same(index, exact, vectors[1500] / np.abs(vectors[1500]).max() * np.float32(scale), limit=20)
        assert_same(index, exact, -vectors[1500] / np.abs(vectors[1500]).max() * np.float32(scale), limit=20)


def test_equal_vectors_are_all_there() -> None:
    vectors = clustered(4000, 64)
    vectors[1000:1500] = vectors[7]
    index, exact = filled(vectors)
    assert len(index.search(vectors[7], None, 10)[0]) == 501
    assert_same(index, exact, vectors[7])


def test_one_axis_takes_it_all() -> None:
    # The code of a vector that lies along an axis is all in one number; the others are all error.
    vectors = clustered(4000, 48) * np.float32(1e-3)
    vectors[:, 5] += np.where(np.arange(4000) % 2 == 0, 1, -1)
    index, exact = filled(vectors)
    for query in (vectors[10], vectors[11], np.eye(48, dtype=np.float32)[5]):
        assert_same(index, exact, query, limit=30)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.9])
def test_among_the_visible(share: float) -> None:
    index, exact = filled(clustered(8000, 32))
    visible = np.flatnonzero(np.random.default_rng(1).random(8000) < share)
    for query in clustered(10, 32, seed=3):
        assert_same(index, exact, query, visible, limit=20)


def test_what_is_new_is_found_before_it_has_a_code_and_after() -> None:
    vectors = clustered(4000, 32)
    index, exact = filled(vectors[:3000])
    codes = index.codes
    assert codes is not None
    for size in (3001, 3100, 4000):
        new = np.arange(len(exact), size)
        index = index.updated(NONE, new, vectors[new])
        exact = exact.updated(NONE, new, vectors[new])
        assert_same(index, exact, vectors[size - 1])
        index = index.prepared()
        assert index.codes is codes, "they are added to, not made anew"
        assert_same(index, exact, vectors[size - 1])
    assert codes.count == 4000


def test_codes_are_made_anew_where_vectors_are_of_another_kind() -> None:
    centre = 5 * np.eye(32, dtype=np.float32)[0]
    vectors = centre + clustered(3000, 32)
    index, exact = filled(vectors)
    before = index.codes
    others = clustered(400, 32, seed=2) - centre
    new = np.arange(3000, 3400)
    index, exact = index.updated(NONE, new, others).prepared(), exact.updated(NONE, new, others)
    assert index.codes is not before
    assert index.codes is not None
    assert index.codes.coding.fits(others / np.linalg.norm(others, axis=1, keepdims=True)).all()
    assert_same(index, exact, others[3], limit=20)
    assert_same(index, exact, vectors[3], limit=20)
    more = 0.1 * clustered(320, 32, seed=3) - 3 * centre
    new, made = np.arange(3400, 3720), index.codes
    index, exact = index.updated(NONE, new, more).prepared(), exact.updated(NONE, new, more)
    assert index.codes is made
    assert made.count == 3720 // TOGETHER * TOGETHER
    assert_same(index, exact, more[3], limit=20)


def test_deletes_shift_nothing() -> None:
    vectors = clustered(4000, 32)
    index, exact = filled(vectors)
    for gone in (np.arange(100), np.arange(500, 2500)):  # the second empties half of it: rows are laid anew
        index, exact = index.updated(gone, NONE, vectors[:0]), exact.updated(gone, NONE, vectors[:0])
        assert_same(index, exact, vectors[50], limit=20)
        index = index.prepared()
        assert_same(index, exact, vectors[50], limit=20)
    assert index.codes is None, "there are too few left"


def test_two_futures_of_one_index_do_not_mix() -> None:
    index, _ = filled(clustered(3000, 32))
    futures = []
    for seed in (5, 6):
        new, vectors = np.arange(3000, 3400), clustered(400, 32, seed)
        futures.append((index.updated(NONE, new, vectors).prepared(), vectors))
    for future, vectors in futures:
        assert future.search(vectors[7], None, 1)[0].tolist() == [3007]
    assert index.search(futures[0][1][7], None, 1)[0].tolist()[0] < 3000


def test_several_threads_while_one_adds() -> None:
    vectors = clustered(9000, 32)
    index, exact = filled(vectors[:3000])
    problems: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                assert_same(index, exact, vectors[17], limit=20)
        except BaseException as error:  # noqa: BLE001 - told below
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    newest = index
    for start in range(3000, 9000, 300):
        new = np.arange(start, start + 300)
        newest = newest.updated(NONE, new, vectors[new]).prepared()
    done.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert newest.search(vectors[8999], None, 1)[0].tolist() == [8999]


def test_auto_takes_it_for_many_vectors() -> None:
    few = empty_index("auto", 8).updated(NONE, np.arange(100), clustered(100, 8)).prepared()
    many = empty_index("auto", 8).updated(NONE, np.arange(3000), clustered(3000, 8)).prepared()
    assert isinstance(few, FlatIndex)
    assert isinstance(many, FlatIndex)
    assert few.codes is None
    assert many.codes is not None
    assert index_in_use("auto", flat.LEAST_ROWS - 1) == "exact"
    assert index_in_use("auto", flat.LEAST_ROWS) == "faiss-flat"


def test_a_failure_of_faiss_is_told_and_a_scan_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(codes, "_append", fail)
    vectors = clustered(3000, 16)
    index, exact = filled(vectors)
    assert "out of luck" in str(index.problem)
    assert_same(index, exact, vectors[5])


@pytest.mark.parametrize("query", [np.zeros(16, dtype=np.float32), np.full(16, np.nan, dtype=np.float32)])
def test_a_query_that_is_none(query: Matrix) -> None:
    index, _ = filled(clustered(3000, 16))
    with pytest.raises(InvalidVectorError):
        index.search(query, None, 5)


def test_it_is_restored_as_it_was_saved() -> None:
    vectors = clustered(3000, 16)
    index, exact = filled(vectors)
    again = FlatIndex.empty(16).restored(index.parts()).prepared()
    assert again.codes is not None
    assert_same(again, exact, vectors[5], limit=20)
