"""The store ranks as plain Python does: every fusion, every prior, every mode, and the pages add up to the whole.

The oracle knows the records, their cosines and what the keyword leg says of each; it fuses, weighs and sorts by the
formulae of the documentation, written out once more and as simply as can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import F, GivenVectors, HybridStore, SearchParams, SearchUnavailableError, StoreSettings
from twofold.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86_400.0
WORDS = ("kettle", "teapot", "broker")

records = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
            "vector": st.sampled_from(([1.0, 0.0], [4.0, 3.0], [0.0, 1.0], [-3.0, 4.0], None)),
            "importance": st.sampled_from((0.5, 0.5, 0.0, 1.0)),
            "strength": st.sampled_from((1.0, 1.0, 0.25, 4.0)),
            "age": st.integers(0, 3),
            "kind": st.sampled_from(("semantic", "semantic", "insight")),
            "project": st.sampled_from((None, "a", "b")),
            "confidence": st.sampled_from((None, 0.2, 1)),
        }
    ),
    min_size=1,
    max_size=9,
)
anyhow: dict[str, st.SearchStrategy[Any]] = {
    "rescore": st.booleans(),
    "pool": st.sampled_from((2, 100)),
    "keyword_pool": st.none() | st.just(3),
    "adjacency": st.sampled_from((0.0, 0.2)),
    "prior": st.sampled_from(("after", "keyword", "none")),
    "prior_span": st.sampled_from((None, 0.5)),
    "recency_weight": st.sampled_from((0.0, 1.0)),
    "retention_weight": st.sampled_from((0.0, 2.0)),
    "confidence": st.booleans(),
    "project": st.sampled_from((None, "a")),
    "min_similarity": st.sampled_from((None, 0.5)),
}
params = st.one_of(
    st.builds(SearchParams, fusion=st.sampled_from(("additive", "relative", "dbsf", "calibrated")), **anyhow),
    st.builds(SearchParams, fusion=st.just("rrf"), rrf_k=st.sampled_from((None, 0.0, 20.0)), **anyhow),
    st.builds(SearchParams, fusion=st.just("alpha"), alpha=st.sampled_from((0.0, 0.3, 1.0)), rescore=st.booleans()),
)


@contextmanager
def filled(asked: list[dict[str, Any]]) -> Iterator[HybridStore]:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), settings=StoreSettings(clock=clock)) as store:
        for number, each in enumerate(asked):
            store.add(
                each["text"], id=f"m{number}", vector=each["vector"], importance=each["importance"],
                strength=each["strength"], created_at=START - timedelta(days=each["age"]), kind=each["kind"],
                project=each["project"],
                metadata={} if each["confidence"] is None else {"confidence": each["confidence"]},
            )  # fmt: skip
        yield store


def cosine(one: list[float], other: list[float]) -> float:
    """Whole numbers of whole lengths: exact in any precision."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


class Oracle:
    """What the answer must be."""

    def __init__(self, store: HybridStore, asked: list[dict[str, Any]], text: str, vector: Any) -> None:
        self.records = {record.id: record for record in store.list()}
        self.asked = {f"m{number}": each for number, each in enumerate(asked)}
        # BM25 itself is FTS5's to compute, and is held to it elsewhere.
        plain = SearchParams(prior="none", adjacency=0)
        found = store.search(text, k=100, mode="keyword", params=plain)
        self.bm25 = {hit.id: hit.explanation.legs["keyword"].raw for hit in found}
        beside = store.search(text, k=100, mode="keyword", params=replace(plain, adjacency=0.2))
        self.beside = {hit.id: hit.explanation.legs["keyword"].adjacency for hit in beside}
        self.cosines = {
            id_: cosine(each["vector"], vector) for id_, each in self.asked.items() if each["vector"] is not None
        }
        self.background = self._background()
        words = set(text.split())
        self.coverage = len([word for word in words if any(word in each["text"] for each in asked)]) / len(words)

    def _background(self) -> float:
        vectors = [each["vector"] for each in self.asked.values() if each["vector"] is not None]
        pairs = [cosine(one, other) for i, one in enumerate(vectors) for j, other in enumerate(vectors) if i != j]
        return max(0.0, min(1, len(vectors) / 64) * sum(pairs) / len(pairs)) if pairs else 0.0

    def ties(self, id_: str) -> tuple[float, str]:
        return -self.records[id_].created_at.timestamp(), id_

    def ordered(self, scores: dict[str, float]) -> list[str]:
        return sorted(scores, key=lambda id_: (-round(scores[id_], 11), *self.ties(id_)))

    def leg(self, scores: dict[str, float], pool: int) -> list[tuple[str, float]]:
        return [(id_, scores[id_]) for id_ in self.ordered(scores)[:pool]]

    def composite(self, id_: str) -> float:
        return self.records[id_].strength * (1 + self.records[id_].importance)

    def legs(self, mode: str, params: SearchParams) -> dict[str, list[tuple[str, float]]]:
        shares = dict(zip(("keyword", "vector"), params.shares, strict=True))
        wanted = [leg for leg in shares if mode == leg or (mode == "hybrid" and shares[leg] > 0)]
        kw = {
            id_: score * (self.composite(id_) if params.prior == "keyword" else 1) for id_, score in self.bm25.items()
        }
        near = {
            id_: score
            for id_, score in self.cosines.items()
            if params.min_similarity is None or score >= params.min_similarity
        }
        legs = {}
        if "keyword" in wanted:
            legs["keyword"] = self.leg(kw, params.keyword_pool or params.pool)
        if "vector" in wanted:
            legs["vector"] = self.leg(near, params.vector_pool or params.pool)
        if params.rescore and len(legs) == 2:
            union = {id_ for leg in legs.values() for id_, _ in leg}
            for name, all_of_it in (("keyword", kw), ("vector", near)):
                more = {id_: all_of_it[id_] for id_ in union & all_of_it.keys() - dict(legs[name]).keys()}
                legs[name] += self.leg(more, len(more))
        if "keyword" in legs and params.adjacency:
            moved = [(id_, score * self.beside[id_]) for id_, score in legs["keyword"]]
            legs["keyword"] = sorted(moved, key=lambda each: -round(each[1], 11))
        return legs

    @property
    def has_vectors(self) -> bool:
        """Whether the vector leg answers at all."""
        return bool(self.cosines)

    @staticmethod
    def rrf_k(params: SearchParams) -> float:
        return 60 if params.rrf_k is None else params.rrf_k

    def part(self, leg: str, rank: int, score: float, scores: list[float], mode: str, params: SearchParams) -> float:
        share = dict(zip(("keyword", "vector"), params.shares, strict=True))[leg]
        best, least = max(scores), min(scores)
        if mode != "hybrid":
            return score
        if params.fusion == "rrf":
            return share / (self.rrf_k(params) + rank)
        if params.fusion == "relative":
            return share * ((score - least) / (best - least) if best > least else 1.0)
        if params.fusion == "dbsf":
            if best == least:
                return share * 0.5
            mean = sum(scores) / len(scores)
            deviation = math.sqrt(sum((each - mean) ** 2 for each in scores) / (len(scores) - 1))
            return share * min(1, max(0, (score - (mean - 3 * deviation)) / (6 * deviation)))
        if leg == "keyword":
            both = params.fusion == "calibrated" and self.has_vectors
            return share * score / best * (self.coverage if both else 1)
        if params.fusion == "calibrated":
            return share * max(0.0, (score - self.background) / (1 - self.background))
        return share * score / (max(1, best) if params.fusion == "alpha" else 1)

    def factor(self, id_: str, params: SearchParams) -> float:
        record, factor = self.records[id_], 1.0
        if params.prior == "after":
            age = (START - record.created_at).total_seconds()
            idle = (START - record.last_accessed).total_seconds()
            lasting = DAY * record.importance * record.strength
            kept = math.exp(-idle / lasting) if lasting else 0.0
            parts = (
                (params.importance_weight, 2 * record.importance - 1),
                (params.strength_weight, (record.strength - 1) / (record.strength + 1)),
                (params.recency_weight, 2 * 0.5 ** (age / (30 * DAY)) - 1),
                (params.retention_weight, 2 * kept - 1),
            )
            span = params.prior_span
            if span is None:
                span = 1 / (2 * self.rrf_k(params) + 4) if params.fusion == "rrf" else 0.1
            factor *= 1 + span * sum(weight * part for weight, part in parts) / sum(weight for weight, _ in parts)
        if params.confidence and "confidence" in record.metadata:
            factor *= 0.5 + 0.5 * record.metadata["confidence"]
        if params.project is not None and record.project != params.project and record.kind != "insight":
            factor *= params.project_weight
        return factor

    def ceiling(self, mode: str, legs: dict[str, list[tuple[str, float]]], params: SearchParams) -> float:
        keyword, vector = params.shares
        if mode == "vector":
            return 1.0
        if mode == "keyword":
            return legs["keyword"][0][1] if legs["keyword"] else 1.0
        if params.fusion == "rrf":
            return (keyword + vector) / (self.rrf_k(params) + 1)
        return vector if params.fusion == "additive" else keyword + vector

    def answer(self, mode: str, params: SearchParams) -> tuple[list[str], dict[str, float]]:
        """Those within the pools, in order, and the score of each."""
        legs = self.legs(mode, params)
        totals: dict[str, float] = {}
        for leg, found in legs.items():
            for rank, (id_, score) in enumerate(found, start=1):
                scores = [each for _, each in found]
                totals[id_] = totals.get(id_, 0.0) + self.part(leg, rank, score, scores, mode, params)
        for id_, total in totals.items():
            factor = self.factor(id_, params)
            totals[id_] = total * factor if total >= 0 else total / factor
        ceiling = self.ceiling(mode, legs, params)
        return self.ordered(totals), {id_: min(1.0, max(0.0, total / ceiling)) for id_, total in totals.items()}


@settings(max_examples=150, deadline=None)
@given(
    asked=records,
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    vector=st.sampled_from(([1.0, 0.0], [3.0, 4.0])),
    mode=st.sampled_from(("hybrid", "hybrid", "keyword", "vector")),
    params=params,
    size=st.integers(1, 4),
)
def test_the_store_ranks_as_the_oracle(
    asked: list[dict[str, Any]], text: str, vector: list[float], mode: str, params: SearchParams, size: int
) -> None:
    with filled(asked) as store:
        needs_vectors = mode == "vector" or (mode == "hybrid" and params.shares[0] == 0)
        if needs_vectors and all(each["vector"] is None for each in asked):
            with pytest.raises(SearchUnavailableError):
                store.search(text, vector=vector, mode=mode, params=params)
            return
        oracle = Oracle(store, asked, text, vector)
        ids, scores = oracle.answer(mode, params)
        whole = store.search(text, k=50, vector=vector, mode=mode, params=params)
        found = {hit.id: hit.score for hit in whole}
        assert set(found) >= set(ids)
        for id_ in ids:
            assert math.isclose(found[id_], scores[id_], rel_tol=1e-9, abs_tol=1e-9)
        # Sums of floats differ in their last bits, so what is equal but for them may stand either way round.
        assert [round(found[id_], 9) for id_ in whole.ids[: len(ids)]] == [round(scores[id_], 9) for id_ in ids]
        values = [hit.score for hit in whole]
        assert values == sorted(values, reverse=True)
        assert all(0 <= score <= 1 for score in values)
        pages = [
            hit.id
            for offset in range(0, len(asked) + size, size)
            for hit in store.search(text, k=size, offset=offset, vector=vector, mode=mode, params=params)
        ]
        assert tuple(pages) == whole.ids
        half = store.search(text, k=50, vector=vector, mode=mode, params=replace(params, min_score=0.5))
        assert half.ids == tuple(hit.id for hit in whole if hit.score >= 0.5)


@settings(max_examples=40, deadline=None)
@given(asked=records, mode=st.sampled_from(("hybrid", "keyword", "vector")), params=params)
def test_a_filter_ranks_what_it_lets_through_as_a_leg_of_its_own(
    asked: list[dict[str, Any]], mode: str, params: SearchParams
) -> None:
    with filled(asked) as store:
        needs_vectors = mode == "vector" or (mode == "hybrid" and params.shares[0] == 0)
        if needs_vectors and all(each["vector"] is None for each in asked):
            with pytest.raises(SearchUnavailableError):
                store.search("kettle", vector=[1.0, 0.0], mode=mode, params=params)
            return
        result = store.search("kettle", vector=[1.0, 0.0], k=50, mode=mode, params=params, where=F("confidence") == 1)
        assert {hit.id for hit in result} <= {
            f"m{number}" for number, each in enumerate(asked) if each["confidence"] == 1
        }
