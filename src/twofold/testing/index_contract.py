"""The contract of a vector index, as tests to be run against a backend that uses it, on 10,000 records.

::

    @pytest.fixture(scope="class")
    def indexed(tmp_path_factory):
        with contextlib.closing(MyBackend(tmp_path_factory.mktemp("index"), index="mine")) as backend:
            yield fill(backend)

    class TestMyIndex(VectorIndexContract):
        pass  # all its tests are inherited

The ids and scores must be those of a plain scan. An index that may miss some of the nearest, and therefore does not
declare ``EXACT_FILTERED_VECTORS``, must find 95 % of the 10 nearest, and all of them where a filter passes few records.
"""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from twofold.backends.protocol import Backend, Capability, Nearest
from twofold.filters import F, Filter
from twofold.testing.contract_rows import seen_by
from twofold.testing.records import make_record, make_vectors
from twofold.vectors import exact_cosines

__all__ = ["Indexed", "VectorIndexContract", "fill"]

RECORDS: Final = 10_000
DIMENSION: Final = 16
RARE: Final = 5
TWINS: Final = 40
QUERIES: Final = 30
RECALL: Final = 0.95

Matrix = npt.NDArray[np.float32]


@dataclass
class Indexed:
    """A backend, and what it holds."""

    backend: Backend
    vectors: dict[int, Matrix]
    """By key, shape (parts, dimension)."""
    numbers: dict[int, int]
    """By key, the number ``n`` in the record's metadata."""
    twin: Matrix
    """A vector that ``TWINS`` records have, by key in the order of ties."""

    def nearest(self, query: Matrix, where: Filter | None = None, limit: int = 10) -> Nearest:
        """What the backend finds."""
        with self.backend.read() as reader:
            return reader.nearest(query, seen_by(where=where), limit)

    def truth(self, query: Matrix, *, every: int = 1, rest: int = 0, limit: int = 10) -> list[tuple[int, float]]:
        """What a plain scan finds among the records whose number leaves ``rest`` when divided by ``every``; equal
        ones by key, as all records are of one instant and their ids are in the order of their keys.
        """
        keys = [key for key in self.vectors if self.numbers[key] % every == rest]
        parts = [self.vectors[key] for key in keys]
        scores = exact_cosines(np.concatenate(parts), query)
        first = np.cumsum([0, *(len(each) for each in parts[:-1])])
        best = np.maximum.reduceat(scores, first)
        return sorted(zip(keys, best.tolist(), strict=True), key=lambda found: (-found[1], found[0]))[:limit]


def fill(backend: Backend) -> Indexed:
    """Write the records that the contract is about: random vectors, some equal ones, some records of two parts; then
    delete, replace and add some.

    Args:
        backend: empty.
    """
    chance = np.random.default_rng(11)
    made = chance.standard_normal((RECORDS, DIMENSION)).astype(np.float32)
    twin = chance.standard_normal(DIMENSION).astype(np.float32)
    made[1000 : 1000 + TWINS] = twin
    indexed = Indexed(backend, {}, {}, twin)
    with backend.write() as writer:
        writer.adopt("contract", DIMENSION)
        for number, vector in enumerate(made):
            parts = np.stack((vector, -vector)) if number % 50 == 0 else vector[np.newaxis]
            record = make_record(f"r{number:06}", f"t{number}", attributes={"metadata": _metadata(number)})
            key = writer.insert(record, make_vectors(record, {"text": parts}))
            indexed.vectors[key], indexed.numbers[key] = parts, number
    indexed.nearest(made[0])  # so that what comes now meets an index that is there
    keys = list(indexed.vectors)
    with backend.write() as writer:
        gone = keys[5000:5300]
        writer.delete(gone)
        for key in gone:
            del indexed.vectors[key]
        for key in keys[2000:2400]:
            number = indexed.numbers[key]
            record = make_record(f"r{number:06}", f"new {number}", attributes={"metadata": _metadata(number)})
            indexed.vectors[key] = chance.standard_normal((1, DIMENSION)).astype(np.float32)
            writer.replace(key, record, make_vectors(record, {"text": indexed.vectors[key]}))
    with backend.write() as writer:
        for number in range(RECORDS, RECORDS + 400):
            vector = chance.standard_normal((1, DIMENSION)).astype(np.float32)
            record = make_record(f"r{number:06}", f"t{number}", attributes={"metadata": _metadata(number)})
            key = writer.insert(record, make_vectors(record, {"text": vector}))
            indexed.vectors[key], indexed.numbers[key] = vector, number
    return indexed


def _metadata(number: int) -> dict[str, int]:
    return {"n": number, "rare": number % (RECORDS // RARE), "tenth": number % 10, "half": number % 2}


class VectorIndexContract:
    """Same ids and same scores as the plain scan. Needs a fixture ``indexed``: what :func:`fill` gives."""

    @pytest.mark.parametrize(
        ("where", "every"), [(None, 1), (F("half") == 0, 2), (F("tenth") == 0, 10)], ids=["all", "half", "tenth"]
    )
    def test_the_nearest_are_found(self, indexed: Indexed, where: Filter | None, every: int) -> None:
        chance = np.random.default_rng(5)
        common = wanted = 0
        for _ in range(QUERIES):
            query = chance.standard_normal(DIMENSION).astype(np.float32)
            found = [(each.key, each.score) for each in indexed.nearest(query, where).candidates]
            truth = indexed.truth(query, every=every)
            assert len(found) == len(truth)
            assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
            common += len(set(found) & set(truth))  # keys and scores: what is found has the plain scan's score
            wanted += len(truth)
            if Capability.EXACT_FILTERED_VECTORS in indexed.backend.capabilities:
                assert found == truth
        assert common >= RECALL * wanted

    def test_where_a_filter_passes_few_all_are_found(self, indexed: Indexed) -> None:
        chance = np.random.default_rng(6)
        for rest in (7, 8, 99):
            query = chance.standard_normal(DIMENSION).astype(np.float32)
            truth = indexed.truth(query, every=RECORDS // RARE, rest=rest)
            found = indexed.nearest(query, F("rare") == rest).candidates
            assert [(each.key, each.score) for each in found] == truth
            assert RARE - 1 <= len(truth) <= RARE + 1

    def test_equal_vectors_are_whole_ties(self, indexed: Indexed) -> None:
        for limit in (1, 10, TWINS):
            found = indexed.nearest(indexed.twin, limit=limit).candidates
            assert [each.score for each in found] == [1.0] * limit
            assert [each.key for each in found] == [key for key, _ in indexed.truth(indexed.twin, limit=limit)]

    @pytest.mark.parametrize("limit", [0, 1, 100, 4096, 4097, 10**9])
    def test_any_limit(self, indexed: Indexed, limit: int) -> None:
        # basicmachines-co/basic-memory#604: a limit above 4,096 was refused.
        query = np.random.default_rng(7).standard_normal(DIMENSION).astype(np.float32)
        found = indexed.nearest(query, limit=limit).candidates
        assert len(found) == min(limit, len(indexed.vectors))
        assert len({each.key for each in found}) == len(found)
        if limit > 4000:
            assert [(each.key, each.score) for each in found] == indexed.truth(query, limit=limit)

    def test_a_query_of_any_length(self, indexed: Indexed) -> None:
        # mem0ai/mem0#5959: longer vectors won, and scores rose above 1.
        key, vectors = next(iter(indexed.vectors.items()))
        for factor in (1e-30, 0.5, 1e30):
            query = (vectors[0] * np.float32(factor)).astype(np.float32)
            best = indexed.nearest(query, limit=1).candidates[0]
            assert best.key == key
            assert best.score == pytest.approx(1.0, abs=1e-6)
            assert best.score <= 1.0

    def test_nothing_falls_back(self, indexed: Indexed) -> None:
        assert indexed.nearest(indexed.twin).fell_back is None

    def test_an_older_snapshot_sees_what_it_saw(self, indexed: Indexed) -> None:
        if Capability.SNAPSHOTS not in indexed.backend.capabilities:
            pytest.skip("the backend does not declare SNAPSHOTS")
        query = np.random.default_rng(8).standard_normal(DIMENSION).astype(np.float32)
        record = make_record("late", "late")
        with indexed.backend.read() as reader:
            before = reader.nearest(query, seen_by(), 5)
            with ThreadPoolExecutor(1) as other:
                key = other.submit(self._write_and_look, indexed, query).result()
            assert reader.nearest(query, seen_by(), 5).candidates == before.candidates
        assert indexed.nearest(query, limit=1).candidates[0].key == key
        with indexed.backend.write() as writer:
            writer.delete([key])
            assert writer.nearest(query, seen_by(), 5).candidates == before.candidates
            key = writer.insert(record, make_vectors(record, query.tolist()))
            assert writer.nearest(query, seen_by(), 5).candidates[0].key == key
            writer.delete([key])
        assert indexed.nearest(query, limit=5).candidates == before.candidates
        assert indexed.backend.check().ok

    @staticmethod
    def _write_and_look(indexed: Indexed, query: Matrix) -> int:
        record = make_record("late", "late")
        with indexed.backend.write() as writer:
            key = writer.insert(record, make_vectors(record, query.tolist()))
        assert indexed.nearest(query, limit=1).candidates[0].key == key
        return key

    def test_many_threads(self, indexed: Indexed) -> None:
        # facebookresearch/faiss#1781: an index may not be searched while it is added to.
        chance = np.random.default_rng(9)
        queries = chance.standard_normal((8, DIMENSION)).astype(np.float32)
        known = set(indexed.vectors)
        added: set[int] = set()
        done = threading.Event()

        def look(query: Matrix) -> int:
            rounds = 0
            while not done.is_set() or not rounds:
                found = {each.key for each in indexed.nearest(query).candidates}
                assert len(found) == 10
                assert found <= known | added
                rounds += 1
            return rounds

        def write() -> None:
            try:
                for start in range(0, 400, 100):
                    with indexed.backend.write() as writer:
                        for number in range(start, start + 100):
                            record = make_record(f"busy{number}", f"busy {number}")
                            vector = chance.standard_normal(DIMENSION).tolist()
                            added.add(writer.insert(record, make_vectors(record, vector)))
            finally:
                done.set()

        with ThreadPoolExecutor(5) as threads:
            looking = [threads.submit(look, query) for query in queries[:4]]
            threads.submit(write).result()
            assert all(each.result() for each in looking)
        with indexed.backend.write() as writer:
            writer.delete(sorted(added))
        assert {each.key for each in indexed.nearest(queries[0], limit=10**6).candidates} == known
