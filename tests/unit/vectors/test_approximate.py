"""The approximate index: what the structure proposes, what the exact index decides, and what shifts nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from twofold.errors import InvalidVectorError, MissingExtraError
from twofold.vectors import (
    ApproximateIndex,
    ExactIndex,
    FlatIndex,
    approximate,
    empty_index,
    faiss_library,
    index_in_use,
)
from twofold.vectors.structure import ApproximateKind, Structure

needs_faiss = pytest.mark.skipif(faiss_library.faiss_problem() is not None, reason="the extra faiss is not installed")
KINDS: list[ApproximateKind] = ["faiss-hnsw", "faiss-ivf"]
NONE = np.empty(0, dtype=np.int64)
Matrix = npt.NDArray[np.float32]


def random(count: int, dimension: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def keys_of(index: Any, query: Matrix, limit: int = 10, visible: Any = None) -> list[int]:
    return index.search(query, visible, limit)[0].tolist()  # type: ignore[no-any-return]


@needs_faiss
@pytest.mark.parametrize("kind", KINDS)
class TestTheStructure:
    @pytest.mark.parametrize("count", [0, 1, 5, 50, 99, 100, 101, 4095])
    def test_few_vectors_need_none(self, kind: ApproximateKind, count: int) -> None:
        # facebookresearch/faiss#2513: IVF cannot learn from few points; run-llama/llama_index#9882: -1 is no id.
        vectors = random(count, 4)
        index = ApproximateIndex.empty(4, kind).updated(NONE, np.arange(count), vectors).prepared()
        assert index.structure is None
        exact = ExactIndex.empty(4).updated(NONE, np.arange(count), vectors)
        for limit in (0, 5, 10**9):
            assert keys_of(index, random(1, 4, 9)[0], limit) == keys_of(exact, random(1, 4, 9)[0], limit)

    def test_many_have_one_that_is_used(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        vectors = random(8000, 8)
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(8000), vectors).prepared()
        asked: list[int] = []
        real = Structure.search

        def search(self: Structure, *arguments: Any) -> Any:
            asked.append(arguments[-1])
            return real(self, *arguments)

        monkeypatch.setattr(Structure, "search", search)
        exact = ExactIndex.empty(8).updated(NONE, np.arange(8000), vectors)
        queries = random(50, 8, 5)
        common = sum(len(set(keys_of(index, each)) & set(keys_of(exact, each))) for each in queries)
        assert common >= 0.95 * 50 * 10
        assert len(asked) >= 50
        asked.clear()
        few = np.arange(0, 8000, 100)  # 1 %
        assert keys_of(index, queries[0], visible=few) == keys_of(exact, queries[0], visible=few)
        assert keys_of(index, queries[0], 4000) == keys_of(exact, queries[0], 4000)
        assert asked == [], "the exact index answered"

    def test_a_delete_shifts_nothing(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        # deepset-ai/haystack#6228: after a delete, every later id led to another record.
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(600, 8)
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(600), vectors).prepared()
        built = index.structure
        assert built is not None
        for round_ in range(5):
            gone = np.arange(round_ * 20, round_ * 20 + 20)
            index = index.updated(gone, gone + 1000, vectors[gone]).prepared()
            assert index.structure is built
            for key in (590, 300, round_ * 20 + 20):
                assert keys_of(index, vectors[key], 1) == [key]
            assert keys_of(index, vectors[5], 1) == [1005]
            assert not set(keys_of(index, vectors[5], 50)) & set(range(round_ * 20 + 20))

    def test_snapshots_share_it(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(3000, 8)
        old = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(1000), vectors[:1000]).prepared()
        one = old.updated(NONE, np.arange(1000, 1300), vectors[1000:1300]).prepared()
        other = old.updated(NONE, np.arange(2000, 2300), vectors[2000:2300]).prepared()
        assert old.structure is one.structure is other.structure
        assert old.structure.count == 1600  # type: ignore[union-attr]
        for index, there, not_there in ((one, 1100, 2100), (other, 2100, 1100)):
            assert keys_of(index, vectors[there], 1) == [there]
            assert not_there not in keys_of(index, vectors[not_there], 20)
        assert max(keys_of(old, vectors[1100], 20)) < 1000

    def test_a_worn_out_one_is_built_anew(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(1000, 8)
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(1000), vectors).prepared()
        worn = index.updated(np.arange(400), NONE, np.empty((0, 8), dtype=np.float32)).prepared()
        assert worn.structure is not index.structure
        assert worn.structure.count == 600  # type: ignore[union-attr]
        assert keys_of(worn, vectors[500], 1) == [500]

    def test_equal_vectors_stay_together(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(3000, 8)
        vectors[100:180] = vectors[100]
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(3000), vectors).prepared()
        keys, scores = index.search(vectors[100], None, 10)
        assert keys.tolist() == list(range(100, 180))
        assert set(scores.tolist()) == {1.0}

    def test_what_faiss_cannot_do_the_exact_scan_does(
        self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*arguments: Any) -> None:
            raise RuntimeError("Error in faiss::train")

        monkeypatch.setattr(Structure, "built", fail)
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(200, 8)
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(200), vectors).prepared()
        assert "faiss::train" in str(index.problem)
        assert keys_of(index.prepared(), vectors[7], 1) == [7]

    def test_it_is_restored_as_it_was(self, kind: ApproximateKind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(approximate, "LEAST_ROWS", 100)
        vectors = random(2000, 8)
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(1900), vectors[:1900]).prepared()
        index = index.updated(np.arange(50), np.arange(1900, 2000), vectors[1900:])
        back = ApproximateIndex.empty(8, kind).restored(index.parts())
        assert back.structure is not None
        assert len(back) == len(index)
        for query in random(20, 8, 5):
            for visible in (None, np.arange(0, 2000, 2)):
                one, other = index.search(query, visible, 10), back.search(query, visible, 10)
                assert [each.tolist() for each in one] == [each.tolist() for each in other]

    @pytest.mark.parametrize("bad", [[1, 2], [0] * 8, [float("nan")] * 8, []])
    def test_an_unusable_query_is_refused(self, kind: ApproximateKind, bad: list[float]) -> None:
        # tteon/seocho#121: an assertion without a word.
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(10), random(10, 8))
        with pytest.raises(InvalidVectorError, match="query"):
            index.search(np.array(bad, dtype=np.float32), None, 5)
        with pytest.raises(InvalidVectorError, match="shape"):
            index.updated(NONE, np.arange(1), random(1, 7))

    def test_the_callers_arrays_stay_as_they_are(self, kind: ApproximateKind) -> None:
        vectors = random(5000, 8) * 3
        before = vectors.copy()
        index = ApproximateIndex.empty(8, kind).updated(NONE, np.arange(5000), vectors).prepared()
        index.search(vectors[0], None, 5)
        assert (vectors == before).all()


@needs_faiss
class TestThreads:
    def test_the_count_is_set_for_the_call_alone(self) -> None:
        faiss = faiss_library.load_faiss()
        counts: list[int] = []

        def look() -> None:
            before = faiss.omp_get_max_threads()
            with faiss_library.threads(1):
                counts.append(faiss.omp_get_max_threads())
            counts.append(faiss.omp_get_max_threads() - before)

        worker = threading.Thread(target=look)
        worker.start()
        worker.join()
        assert counts == [1, 0]

    @pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system cannot fork")
    @pytest.mark.parametrize("index", ["faiss-flat", "faiss-hnsw", "faiss-ivf"])
    def test_a_child_can_search_and_build(self, index: str, tmp_path: Any) -> None:
        # facebookresearch/faiss#5206: the threads of OpenMP do not live on in a child.
        code = f"""
import os, sys
import numpy as np, twofold
settings = twofold.StoreSettings(index="{index}")
vectors = np.random.default_rng(0).standard_normal((4300, 8)).astype("f4")
def ids(path):
    with twofold.open(path, embedder=twofold.GivenVectors("g", 8), settings=settings) as store:
        return [hit.record.id for hit in store.search("", vector=vectors[7], mode="vector")]
def fill(path):
    with twofold.open(path, embedder=twofold.GivenVectors("g", 8)) as store:
        store.add_many([twofold.NewRecord(text="t", id=str(n), vector=v) for n, v in enumerate(vectors)])
fill(sys.argv[1]); fill(sys.argv[2])
mine = ids(sys.argv[1])
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, repr((ids(sys.argv[1]), ids(sys.argv[2]))).encode())
    os._exit(0)
os.wait()
theirs = eval(os.read(read, 10000))
assert mine[0] == "7" and len(mine) == 10
assert theirs[0] == mine and theirs[1][0] == "7", (mine, theirs)
"""
        paths = [str(tmp_path / "a.db"), str(tmp_path / "b.db")]
        subprocess.run([sys.executable, "-c", code, *paths], check=True, timeout=90)

    def test_it_is_loaded_only_when_it_is_chosen(self) -> None:
        # facebookresearch/faiss#4292: two OpenMP runtimes in one process end it.
        code = """
import os, sys
before = dict(os.environ)
import twofold
for index in ("auto", "exact", "sqlite-vec", "faiss-flat"):
    assert "faiss" not in sys.modules, index
    settings = twofold.StoreSettings(index=index)
    with twofold.open(":memory:", embedder=twofold.GivenVectors("g", 2), settings=settings) as store:
        store.add("x", vector=[1, 0])
        assert len(store.search("x", vector=[1, 0])) == 1
assert "faiss" in sys.modules
assert dict(os.environ) == before
"""
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class TestWithoutFaiss:
    @pytest.fixture(autouse=True)
    def _without(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setitem(sys.modules, "faiss", None)
        faiss_library._loaded.cache_clear()
        yield
        faiss_library._loaded.cache_clear()

    @pytest.mark.parametrize("choice", ["faiss-flat", "faiss-hnsw", "faiss-ivf"])
    def test_the_error_names_the_extra(self, choice: str) -> None:
        with pytest.raises(MissingExtraError, match=r"twofold\[faiss\]"):
            empty_index(choice, 2)
        assert "twofold[faiss]" in str(faiss_library.faiss_problem())

    def test_auto_is_exact(self) -> None:
        vectors = random(5000, 4)
        index = empty_index("auto", 4).updated(NONE, np.arange(5000), vectors).prepared()
        assert isinstance(index, FlatIndex)
        assert index.codes is None
        assert index.problem is None
        assert keys_of(index, vectors[3], 1) == [3]
        assert index_in_use("auto", 10**6) == "exact"

    @pytest.mark.parametrize("choice", ["faiss-flat", "faiss-hnsw", "faiss-ivf"])
    def test_a_store_falls_back_and_says_so(self, choice: Any) -> None:
        import twofold

        settings = twofold.StoreSettings(index=choice)
        with twofold.open(":memory:", embedder=twofold.GivenVectors("g", 2), settings=settings) as store:
            store.add("kettle", id="a", vector=[1, 0])
            result = store.search("kettle", vector=[1, 0])
            assert [hit.record.id for hit in result] == ["a"]
            assert [each.code for each in result.degradations] == ["exact_fallback"]
            assert "twofold[faiss]" in result.degradations[0].message
            details = store.info().backend.details
            assert details["vector_index"] == "exact"
            assert "twofold[faiss]" in details["vector_index_problem"]
