"""The exact index: right neighbours, whole ties, snapshots that never change."""

from __future__ import annotations

import math
import threading
import warnings

import numpy as np
import numpy.typing as npt
import pytest

from twofold.errors import InvalidVectorError
from twofold.vectors import ExactIndex, exact, exact_cosines

NONE = np.empty(0, dtype=np.int64)


def keys(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def rows(*values: list[float]) -> npt.NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def vector(*values: float) -> npt.NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def made(*entries: tuple[int, list[float]]) -> ExactIndex:
    return ExactIndex.empty(len(entries[0][1])).updated(
        NONE, keys(*(key for key, _ in entries)), rows(*(row for _, row in entries))
    )


def found(index: ExactIndex, query: npt.NDArray[np.float32], limit: int, visible: object = None) -> list[int]:
    return index.search(query, visible, limit)[0].tolist()  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _numpy_is_silent() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# obra/episodic-memory#55, mem0ai/mem0#5959: length must not count
def test_scores_are_cosines_of_vectors_of_any_length() -> None:
    index = made((1, [0.1, 0.0]), (2, [0.5, 0.5]), (3, [-7.0, 0.0]))
    got, scores = index.search(vector(1, 0), None, 3)
    assert got.tolist() == [1, 2, 3]
    assert scores.tolist() == pytest.approx([1.0, 1 / math.sqrt(2), -1.0], abs=1e-11)
    assert got.dtype == np.int64
    assert scores.dtype == np.float64


def test_a_vector_is_exactly_as_near_to_itself_as_can_be() -> None:
    numbers = np.random.default_rng(0).standard_normal((300, 33)).astype(np.float32)
    index = ExactIndex.empty(33).updated(NONE, np.arange(300), numbers)
    before = numbers.copy()
    for place, query in enumerate(numbers):
        got, scores = index.search(query, None, 1)
        assert (got.tolist(), scores.tolist()) == ([place], [1.0])
    assert (numbers == before).all()


# run-llama/llama_index#9882: padding with key -1
@pytest.mark.parametrize("limit", [1, 2, 20, 4097, 10**9])
def test_no_more_than_there_are(limit: int) -> None:
    assert found(made((1, [1.0, 0.0]), (2, [0.0, 1.0])), vector(1, 0.5), limit) == [1, 2][:limit]
    assert found(ExactIndex.empty(2), vector(1, 0), limit) == []


@pytest.mark.parametrize("visible", [None, keys(1), NONE])
def test_limit_0_gives_none(visible: object) -> None:
    got, scores = made((1, [1.0])).search(vector(1), visible, 0)  # type: ignore[arg-type]
    assert (len(got), len(scores), got.dtype, scores.dtype) == (0, 0, np.int64, np.float64)


def test_all_that_are_tied_with_the_last_are_there() -> None:
    index = made((9, [1, 1]), (4, [1, 0]), (7, [2, 2]), (5, [0, 1]), (3, [0.5, 0.5]), (8, [-1, 0]))
    assert found(index, vector(1, 1), 1) == [3, 7, 9]
    assert found(index, vector(1, 1), 3) == [3, 7, 9]
    assert found(index, vector(1, 1), 4) == [3, 7, 9, 4, 5]


def test_directions_that_differ_by_rounding_only_are_tied() -> None:
    row = np.random.default_rng(1).standard_normal(200).astype(np.float32)
    stretched = [row, row * np.float32(0.5), np.roll(row, 1)]
    index = ExactIndex.empty(200).updated(NONE, keys(1, 2, 3), np.stack(stretched))
    _, scores = index.search(np.ones(200, dtype=np.float32), None, 1)
    assert len(scores) == 3  # the same numbers in another order, summed against ones
    assert len(set(scores.tolist())) == 1


def test_a_records_best_part_counts_once() -> None:
    index = made((1, [0, 1]), (1, [1, 0.1]), (2, [1, 1]), (1, [1, 0.2]), (3, [-1, 0]))
    got, scores = index.search(vector(1, 0), None, 2)
    assert got.tolist() == [1, 2]
    assert scores[0] == pytest.approx(1 / math.hypot(1, 0.1), abs=1e-8)
    assert index.keys.tolist() == [1, 2, 3]
    assert len(index) == 5


def test_many_parts_of_one_record_do_not_crowd_out_the_others() -> None:
    index = made(*[(1, [1.0, place / 1000]) for place in range(500)], (2, [1.0, 1.0]), (3, [0.0, 1.0]))
    assert found(index, vector(1, 0), 2) == [1, 2]
    assert found(index, vector(1, 0), 3) == [1, 2, 3]


# asg017/sqlite-vec#152: a filter after the cut returned nothing
@pytest.mark.parametrize("spread", [1, 10**6, 10**15])
def test_the_nearest_among_the_visible(spread: int) -> None:
    others = [(key * spread, [1.0, key / 1000]) for key in range(1, 31)]
    mine = [(key * spread, [0.5, 1.0 + key]) for key in range(31, 36)]
    index = made(*others, *mine)
    visible = keys(*(key for key, _ in mine))
    assert found(index, vector(1, 0), 5, visible) == [key for key, _ in mine]
    assert found(index, vector(1, 0), 2, visible) == [key for key, _ in mine[:2]]
    assert found(index, vector(1, 0), 5, NONE) == []
    assert found(index, vector(1, 0), 5, keys(7, 12345678901)) == ([7] if spread == 1 else [])


def test_visible_few_half_and_all_agree_with_the_whole_ranking() -> None:
    rng = np.random.default_rng(2)
    index = ExactIndex.empty(8).updated(NONE, rng.permutation(3000), rng.standard_normal((3000, 8)).astype(np.float32))
    query = rng.standard_normal(8).astype(np.float32)
    everything, scores = index.search(query, None, 3000)
    for share in (0.001, 0.01, 0.09, 0.11, 0.5, 1.0):
        visible = np.sort(rng.choice(3000, int(3000 * share), replace=False))
        got, got_scores = index.search(query, visible, 25)
        seen = np.isin(everything, visible)
        assert got.tolist() == everything[seen][:25].tolist()
        assert got_scores.tolist() == scores[seen][:25].tolist()


@pytest.mark.parametrize("dimension", [3, 700])
@pytest.mark.parametrize("held", [1, 2_500, 10**6])
def test_many_queries_at_once_find_what_each_finds_alone(
    monkeypatch: pytest.MonkeyPatch, dimension: int, held: int
) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((1000, dimension)).astype(np.float32)
    index = (
        ExactIndex.empty(dimension)
        .updated(NONE, rng.permutation(1000), vectors)
        .updated(keys(3, 8), NONE, np.empty((0, dimension), dtype=np.float32))
    )
    queries = list(rng.standard_normal((7, dimension)).astype(np.float32))
    monkeypatch.setattr(exact, "_SHARED_SCORES", held)  # so few that they go in several rounds, or one by one
    for share in (None, 0.01, 0.08, 0.6):
        visible = None if share is None else np.flatnonzero(rng.random(1000) < share)
        together = index.search_many(queries, visible, 5)
        assert [got.tolist() for got, _ in together] == [found(index, query, 5, visible) for query in queries]
    assert index.search_many([], None, 5) == []
    with pytest.raises(InvalidVectorError):
        index.search_many([queries[0], queries[1][:2]], None, 5)


def test_with_room_nothing_is_copied_as_it_grows() -> None:
    vectors = np.random.default_rng(3).standard_normal((3000, 8)).astype(np.float32)
    index, grown = ExactIndex.empty(8, room=3000), ExactIndex.empty(8)
    buffers = index._buffers
    assert index.nbytes == 0
    for start in range(0, 3000, 100):
        index = index.updated(NONE, np.arange(start, start + 100), vectors[start : start + 100])
        grown = grown.updated(NONE, np.arange(start, start + 100), vectors[start : start + 100])
        assert index._buffers is buffers
    assert index.nbytes == grown.nbytes == 3000 * (8 * 4 + 8 + 4 + 8)  # a row, its length, the inverse of it, its key
    assert found(index, vectors[2999], 20) == found(grown, vectors[2999], 20)


def test_removing_and_replacing() -> None:
    first = made((1, [1, 0]), (2, [0, 1]), (3, [1, 1]))
    second = first.updated(keys(1, 99), keys(2), rows([1.0, 0.0]))
    third = second.updated(keys(2), keys(2), rows([-1.0, 0.0]))
    assert first.keys.tolist() == [1, 2, 3]
    assert second.keys.tolist() == [2, 3]
    assert found(second, vector(1, 0), 5) == [2, 3]  # its old part is still there: 2 was not removed
    assert third.search(vector(1, 0), keys(2), 5)[1].tolist() == [-1.0]
    assert (len(first), len(second), len(third)) == (3, 3, 2)


def test_an_update_that_changes_nothing_is_the_same_index() -> None:
    index = made((1, [1, 0]))
    assert index.updated(NONE, NONE, np.empty((0, 2), dtype=np.float32)) is index
    assert index.updated(keys(5), NONE, np.empty((0, 2), dtype=np.float32)) is index


def test_two_successors_of_one_snapshot_do_not_disturb_each_other() -> None:
    first = made((1, [1, 0]))
    left = first.updated(NONE, keys(2), rows([1.0, 1.0]))
    right = first.updated(NONE, keys(3), rows([0.0, 1.0]))
    assert left.keys.tolist() == [1, 2]
    assert right.keys.tolist() == [1, 3]
    assert found(left, vector(0, 1), 1) == [2]
    assert found(right, vector(0, 1), 1) == [3]


def test_appending_copies_nothing_and_deleting_gives_room_back() -> None:
    numbers = np.random.default_rng(3).standard_normal((4000, 4)).astype(np.float32)
    index = ExactIndex.empty(4).updated(NONE, np.arange(4000), numbers)
    room = index.nbytes
    appended = index.updated(NONE, keys(4000), numbers[:1])
    assert appended._buffers is index._buffers
    shrunk = appended
    for start in range(0, 3900, 100):
        shrunk = shrunk.updated(np.arange(start, start + 100), NONE, numbers[:0])
    assert shrunk.keys.tolist() == list(range(3900, 4001))
    assert shrunk.nbytes < room / 10


def test_keys_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        made((1, [1, 0])).keys[0] = 5


@pytest.mark.parametrize("bad", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_an_unusable_vector_is_refused_and_nothing_changes(bad: list[float]) -> None:
    index = made((1, [1, 0]))
    with pytest.raises(InvalidVectorError, match=r"1 of the added vectors .* first at row 1"):
        index.updated(keys(1), keys(2, 3), rows([1.0, 0.0], bad))
    assert index.keys.tolist() == [1]


def test_wrong_lengths_name_both() -> None:
    index = made((1, [1, 0]))
    with pytest.raises(InvalidVectorError, match=r"has 3 numbers, 2 are expected"):
        index.search(vector(1, 2, 3), None, 1)
    with pytest.raises(InvalidVectorError, match=r"\(1, 3\); \(1, 2\) is expected"):
        index.updated(NONE, keys(2), rows([1.0, 2.0, 3.0]))
    with pytest.raises(InvalidVectorError, match=r"\(1, 2\); \(2, 2\) is expected"):
        index.updated(NONE, keys(2, 3), rows([1.0, 2.0]))
    with pytest.raises(InvalidVectorError, match="all zeros"):
        index.search(vector(0, 0), None, 1)


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1.0, 1e20, 1e38])
def test_the_ends_of_float32(scale: float) -> None:
    with np.errstate(all="raise"):
        index = made((1, [scale, scale]), (2, [scale, 0.0]), (3, [1.0, 0.0]))
        got, scores = index.search(vector(scale, scale), None, 3)
    assert got.tolist() == [1, 2, 3]
    assert scores.tolist() == pytest.approx([1.0, math.sqrt(0.5), math.sqrt(0.5)], abs=1e-11)
    assert scores[1] == scores[2]


def test_equal_rows_score_equal_bits_wherever_they_lie() -> None:
    rng = np.random.default_rng(4)
    for dimension in (1, 2, 3, 7, 8, 9, 127, 384, 1000):
        row = rng.standard_normal(dimension).astype(np.float32)
        query = rng.standard_normal(dimension).astype(np.float32)
        alone = exact_cosines(row[np.newaxis], query)[0]
        spread = rng.standard_normal((2500, dimension)).astype(np.float32)
        places = np.array([0, 1, 2, 3, 1022, 1023, 1024, 1025, 2499])
        spread[places] = row
        assert set(exact_cosines(spread, query)[places].tolist()) == {alone}
        assert set(exact_cosines(spread, query, places).tolist()) == {alone}
        index = ExactIndex.empty(dimension).updated(NONE, np.arange(2500), spread)
        assert set(index.search(query, places, 1)[1].tolist()) == {alone}


def test_the_scan_in_float32_misses_no_near_tie() -> None:
    # Neighbours nearer to each other than float32 can tell: the exact order must come out.
    dimension, count = 64, 2000
    query = np.ones(dimension, dtype=np.float32)
    numbers = np.ones((count, dimension), dtype=np.float32)
    numbers[:, 0] += np.arange(count, dtype=np.float32) * np.float32(1e-4)
    order = np.random.default_rng(5).permutation(count)
    index = ExactIndex.empty(dimension).updated(NONE, order, numbers[order])
    expected = np.lexsort((np.arange(count), -exact_cosines(numbers, query)))
    assert found(index, query, 50)[:50] == expected[:50].tolist()


def test_searches_and_updates_at_once() -> None:
    rng = np.random.default_rng(6)
    numbers = rng.standard_normal((400, 16)).astype(np.float32)
    shared = [ExactIndex.empty(16).updated(NONE, np.arange(100), numbers[:100])]
    failures: list[str] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            index = shared[0]
            got, scores = index.search(numbers[7], None, 5)
            again, again_scores = index.search(numbers[7], None, 5)
            if got.tolist() != again.tolist() or scores.tolist() != again_scores.tolist():
                failures.append("a snapshot changed")
            if got[0] != 7 or scores[0] != 1.0:
                failures.append("the nearest was missed")

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for place in range(100, 400):
        gone = np.array([place - 90]) if place % 3 == 0 else NONE
        shared[0] = shared[0].updated(gone, np.array([place]), numbers[place : place + 1])
    done.set()
    for thread in threads:
        thread.join(10)
    assert failures == []
    assert len(shared[0]) == 400 - 100
