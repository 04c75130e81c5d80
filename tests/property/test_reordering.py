"""Whatever order hits are put in: pages add up to the whole, nothing is lost or made up, and the trace tells it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, GivenVectors, HybridStore, SearchParams, StoreSettings
from twofold.testing import FakeClock

WORDS = ("kettle", "teapot", "broker")

records = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
            "vector": st.sampled_from(([1.0, 0.0], [4.0, 3.0], [0.0, 1.0], [-3.0, 4.0], None)),
            "importance": st.sampled_from((0.0, 0.5, 1.0)),
        }
    ),
    min_size=1,
    max_size=9,
)
params = st.builds(
    SearchParams,
    fusion=st.sampled_from(("rrf", "additive", "calibrated")),
    rescore=st.booleans(),
    pool=st.sampled_from((2, 100)),
    mmr_lambda=st.sampled_from((None, 0.0, 0.5, 1.0)),
    mmr_pool=st.sampled_from((None, 2)),
    mmr_relevance=st.sampled_from(("score", "cosine")),
    rerank=st.sampled_from((0, 2, 50)),
    min_score=st.sampled_from((None, 0.4)),
)
phrasings = st.lists(st.sampled_from(("teapot", "broker kettle", "?!", "nothing")), max_size=2)


def by_length(query: str, texts: Sequence[str]) -> list[float]:
    return [1 / len(text) for text in texts]


@contextmanager
def filled(asked: list[dict[str, Any]], reranker: Any) -> Iterator[HybridStore]:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with twofold.open(
        ":memory:", embedder=GivenVectors("v", 2), reranker=reranker, settings=StoreSettings(clock=clock)
    ) as store:
        for number, each in enumerate(asked):
            store.add(id=f"m{number}", **each)
            clock.advance(seconds=1)
        store.add("kettle teapot broker", id="hers", vector=[1.0, 0.0], access=Access(user="ann"))
        yield store


@settings(max_examples=120, deadline=None)
@given(
    asked=records,
    wordings=phrasings,
    params=params,
    reranker=st.sampled_from((None, by_length)),
    mode=st.sampled_from(("hybrid", "keyword")),
    size=st.integers(1, 4),
)
def test_pages_add_up_and_nothing_is_lost(
    asked: list[dict[str, Any]],
    wordings: list[str],
    params: SearchParams,
    reranker: Any,
    mode: str,
    size: int,
) -> None:
    question: dict[str, Any] = {"vector": [1.0, 0.0], "phrasings": wordings, "mode": mode}
    with filled(asked, reranker) as store:
        whole = store.search("kettle", k=50, params=replace(params, trace=True), **question)
        pages = [
            hit.id
            for offset in range(0, len(asked) + size, size)
            for hit in store.search("kettle", k=size, offset=offset, params=params, **question)
        ]
        assert tuple(pages) == whole.ids
        assert len(set(whole.ids)) == len(whole)
        assert all(0 <= hit.score <= 1 for hit in whole)

        plain = replace(params, mmr_lambda=None, rerank=0)
        usual = {hit.id: hit.score for hit in store.search("kettle", k=50, params=plain, **question)}
        judged = reranker is not None and params.rerank > 0
        if not judged:
            assert {hit.id: hit.score for hit in whole} == usual
        if params.min_score is None:
            assert set(whole.ids) == set(usual)
        else:
            assert all(hit.score >= params.min_score for hit in whole)
        if params.mmr_lambda is None:
            assert [hit.score for hit in whole] == sorted((hit.score for hit in whole), reverse=True)

        for hit in whole:
            found = hit.explanation
            assert (found.reranked is not None) <= judged
            assert (found.diversity is not None) <= (params.mmr_lambda is not None)
            if found.reranked is not None:
                assert hit.score == found.reranked.score == 1 / len(hit.text)
        assert whole.trace is not None
        told = {id_ for stage in whole.trace for id_ in (*stage.output, *(each.id for each in stage.dropped))}
        assert "hers" not in told
        assert told >= set(whole.ids)
        assert [stage.name for stage in whole.trace] == list(whole.timings)
