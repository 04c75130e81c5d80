"""Whatever is set, pages neither overlap nor skip, and scores are numbers from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold
from twofold import HybridStore, SearchParams, StoreSettings
from twofold.testing import FakeClock, FakeEmbedder

WORDS = ("kettle", "teapot", "broker", "pager")
COUNT = 24


def judges(question: str, texts: Sequence[str]) -> list[float]:
    """Has many ties, and scores of any size and sign."""
    return [((len(text) * 7919) % 5 - 2) * 10.0 ** (len(text) % 3 * 100) for text in texts]


@pytest.fixture(scope="module")
def store() -> Iterator[HybridStore]:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with twofold.open(
        ":memory:",
        embedder=FakeEmbedder(8),
        reranker=judges,
        hyde=lambda question: f"what is known of {question}",
        settings=StoreSettings(clock=clock),
    ) as store:
        for place in range(COUNT):
            text = " ".join([WORDS[place % 4], WORDS[place % 3], "word " * (place % 5)])
            store.add(text, id=str(place), importance=place % 3 / 2, strength=1 + place % 4, project="ab"[place % 2])
            clock.advance(seconds=place % 2)
        yield store


chosen = st.builds(
    SearchParams,
    fusion=st.sampled_from(("rrf", "additive", "alpha", "relative", "dbsf", "calibrated")),
    rescore=st.booleans(),
    pool=st.sampled_from((1, 3, 7, 100)),
    keyword_pool=st.none() | st.sampled_from((1, 5)),
    vector_pool=st.none() | st.sampled_from((1, 5)),
    keyword_operator=st.sampled_from(("or", "and_or")),
    adjacency=st.sampled_from((0.0, 0.2)),
    prior=st.sampled_from(("after", "keyword", "none")),
    recency_weight=st.sampled_from((0.0, 1.0)),
    project=st.none() | st.just("a"),
    hyde=st.sampled_from(("never", "always")),
    mmr_lambda=st.none() | st.sampled_from((0.0, 0.3, 1.0)),
    mmr_pool=st.none() | st.sampled_from((1, 6)),
    mmr_relevance=st.sampled_from(("score", "cosine")),
    rerank=st.sampled_from((0, 1, 4, 50)),
)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen,
    questions,
    st.lists(questions, max_size=2),
    st.sampled_from(("hybrid", "vector", "keyword")),
    st.integers(1, 9),
)
def test_pages_are_the_whole(
    store: HybridStore, params: SearchParams, question: str, phrasings: list[str], mode: str, size: int
) -> None:
    def page(k: int, offset: int) -> list[tuple[str, float]]:
        found = store.search(question, k=k, offset=offset, mode=mode, params=params, phrasings=phrasings)
        assert not found.degraded
        return [(hit.id, hit.score) for hit in found]

    whole = page(COUNT + 5, 0)
    assert len({id_ for id_, _ in whole}) == len(whole) <= COUNT
    if mode != "keyword" and params.shares[1] > 0:
        assert len(whole) == COUNT
    assert all(math.isfinite(score) and 0 <= score <= 1 for _, score in whole)
    if params.mmr_lambda is None:
        scores = [score for _, score in whole]
        assert scores == sorted(scores, reverse=True)
    pages = [page(size, offset) for offset in range(0, len(whole) + size, size)]
    assert [hit for each in pages for hit in each] == [(id_, pytest.approx(score)) for id_, score in whole]
