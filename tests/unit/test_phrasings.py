"""One question in several wordings: each scored as if it were asked alone, and the mean of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import prod
from typing import Any

import pytest

import twofold
from twofold import (
    PRESETS,
    Access,
    ConfigurationError,
    EmbeddingSettings,
    GivenVectors,
    HybridStore,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Search
from twofold.testing import FakeClock, FakeEmbedder, FlakyEmbedder, TableEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = {
    "kettle": "the kettle is in the cupboard",
    "boiler": "the boiler stands in the cellar",
    "both": "a kettle is a small boiler",
    "neither": "cats sleep all day",
}
PLAIN = SearchParams.preset("rrf", prior="none")


@pytest.fixture
def store() -> Iterator[HybridStore]:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=FakeEmbedder(), settings=StoreSettings(clock=clock)) as store:
        for id_, text in TEXTS.items():
            store.add(text, id=id_)
            clock.advance(seconds=1)
        yield store


def scores(result: SearchResult) -> dict[str, float]:
    return {hit.id: hit.score for hit in result}


def mean_of(*results: SearchResult) -> dict[str, float]:
    """Of the scores before they are cut to 0..1."""
    each = [
        {hit.id: hit.explanation.fused / hit.explanation.best_possible * prod(hit.explanation.factors.values())
         for hit in result}
        for result in results
    ]  # fmt: skip
    means = {id_: sum(one.get(id_, 0.0) for one in each) / len(each) for id_ in {id_ for one in each for id_ in one}}
    return {id_: min(1.0, max(0.0, mean)) for id_, mean in means.items()}


@pytest.mark.parametrize("params", [PLAIN, *(PRESETS[name] for name in ("balanced", "engram"))], ids=["rrf", "b", "e"])
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_score_is_the_mean_of_the_phrasings_scores(store: HybridStore, params: SearchParams, mode: str) -> None:
    wordings = ["kettle cupboard", "boiler", "where is it warm"]
    alone = [store.search(wording, params=params, mode=mode) for wording in wordings]
    found = store.search(wordings[0], phrasings=wordings[1:], params=params, mode=mode)
    expected = mean_of(*alone)
    assert scores(found) == pytest.approx(expected)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_what_several_phrasings_find_comes_first(store: HybridStore) -> None:
    params = replace(PLAIN, vector_weight=0)
    assert store.search("kettle", params=params).ids == ("both", "kettle")
    found = store.search("kettle", phrasings=["boiler"], params=params)
    assert found.ids == ("both", "boiler", "kettle")
    both, one = 1 / 61, 1 / 62  # "both" is the shorter text, so it is first in either leg
    assert scores(found) == pytest.approx({"both": 1.0, "boiler": one / both / 2, "kettle": one / both / 2})


def test_phrasings_that_say_nothing_new_do_not_count(store: HybridStore) -> None:
    alone = scores(store.search("kettle"))
    assert scores(store.search("kettle", phrasings=["kettle", "?!", ""])) == alone
    assert scores(store.search("?!", phrasings=["kettle"])) == alone
    assert store.search("?!", phrasings=["..."]).ids == ()
    twice = store.search("kettle", phrasings=["boiler", "boiler"])
    assert scores(twice) == scores(store.search("kettle", phrasings=["boiler"]))


def test_a_hit_says_which_phrasing_found_it(store: HybridStore) -> None:
    found = store.search("kettle", phrasings=["boiler"], params=PLAIN)
    both, boiler = (next(hit for hit in found if hit.id == id_) for id_ in ("both", "boiler"))
    assert set(both.explanation.legs) == {"keyword", "vector", "keyword[2]", "vector[2]"}
    assert "keyword" not in boiler.explanation.legs
    assert boiler.explanation.legs["keyword[2]"].rank == 2
    assert both.explanation.answered == ("keyword", "vector", "keyword[2]", "vector[2]")
    for hit in found:
        contributions = [each.contribution for each in hit.explanation.legs.values()]
        assert sum(filter(None, contributions)) == pytest.approx(hit.explanation.fused)
    raw = boiler.explanation.legs["keyword[2]"].raw
    assert f"keyword[2] rank 2 (bm25 {raw:.4g})" in boiler.why
    assert "not in keyword;" in boiler.why
    assert "mean of 2 phrasings by rrf(k=60)" in boiler.why


def test_the_trace_has_the_legs_of_each(store: HybridStore) -> None:
    params = SearchParams(trace=True, rescore=True)
    found = store.search("kettle", phrasings=["boiler"], params=params)
    assert found.trace is not None
    assert [stage.name for stage in found.trace] == [
        "embed", "vector", "keyword", "rescore", "vector[2]", "keyword[2]", "rescore[2]", "fuse", "hydrate"
    ]  # fmt: skip
    told = {stage.name: stage for stage in found.trace}
    assert told["keyword"].output == ("both", "kettle")
    assert told["keyword[2]"].output == ("both", "boiler")
    assert set(told["fuse"].output) == set(found.ids)
    assert set(found.timings) == {stage.name for stage in found.trace}


def test_pages_neither_overlap_nor_skip_past_the_pools(store: HybridStore) -> None:
    params = SearchParams(pool=1)
    whole = store.search("kettle", phrasings=["boiler", "cats"], params=params).ids
    assert set(whole) == set(TEXTS)
    pages = [store.search("kettle", phrasings=["boiler", "cats"], params=params, k=1, offset=n).ids for n in range(5)]
    assert tuple(id_ for page in pages for id_ in page) == whole


def test_they_are_embedded_in_one_call(store: HybridStore) -> None:
    asked: list[list[str]] = []

    class Counting(FakeEmbedder):
        def embed(self, texts: Any, kind: Any) -> Any:
            asked.append(list(texts))
            return super().embed(texts, kind)

    with twofold.open(":memory:", embedder=Counting()) as other:
        other.search("one", phrasings=["two", "three", "one"])
        other.search("one", phrasings=["two"], mode="keyword")
    assert asked == [["one", "two", "three"]]


def test_a_ready_vector_is_that_of_the_question_alone() -> None:
    table = TableEmbedder({"a": [1.0, 0.0], "b": [0.0, 1.0], "other words": [0.0, 1.0]})
    with twofold.open(":memory:", embedder=table) as store:
        store.add_many([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
        params = SearchParams(keyword_weight=0, fusion="alpha", prior="none")
        found = store.search("", vector=[1.0, 0.0], phrasings=["other words"], params=params)
        assert scores(found) == pytest.approx({"a": 0.5, "b": 0.5})
        assert scores(store.search("", vector=[1.0, 0.0], params=params)) == pytest.approx({"a": 1.0, "b": 0.0})


def test_with_given_vectors_the_other_phrasings_ask_keywords() -> None:
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add("kettle", id="a", vector=[1, 0])
        store.add("boiler", id="b", vector=[0, 1])
        found = store.search("kettle", vector=[1, 0], phrasings=["boiler"], params=PLAIN)
        assert found.ids == ("b", "a")
        assert scores(found) == pytest.approx({"b": ((1 / 62) / (2 / 61) + 1) / 2, "a": 0.5})


def test_an_embedder_that_is_down_is_said_once() -> None:
    embedder = FlakyEmbedder()
    settings = StoreSettings(embedding=EmbeddingSettings(fill_in=False, failures_to_open=100))
    with twofold.open(":memory:", embedder=embedder, settings=settings) as store:
        store.add_many([{"id": "a", "text": "kettle"}, {"id": "b", "text": "boiler"}])
        embedder.down = True
        found = store.search("kettle", phrasings=["boiler"])
        assert set(found.ids) == {"a", "b"}
        assert [each.code for each in found.degradations] == ["embedder_unreachable"]


def test_fields_that_matched_are_those_of_each_phrasing() -> None:
    settings = StoreSettings(fields=("head", "body"))
    with twofold.open(":memory:", embedder=FakeEmbedder(), settings=settings) as store:
        store.add(fields={"head": "kettle", "body": "boiler"}, id="a")
        legs = store.search("kettle", phrasings=["boiler"])[0].explanation.legs
        assert (legs["keyword"].field, legs["keyword[2]"].field) == ("head", "body")
        assert (legs["vector"].field, legs["vector[2]"].field) == ("head", "body")


def test_nobody_elses_records_come_in(store: HybridStore) -> None:
    store.add("boiler of hers", id="hers", access=Access(user="ann"))
    found = store.search("kettle", phrasings=["boiler", "hers"], params=SearchParams(trace=True))
    told = {id_ for stage in found.trace or () for id_ in (*stage.output, *(each.id for each in stage.dropped))}
    assert "hers" not in {*found.ids, *told}


@pytest.mark.parametrize("wrong", ["boiler", 5, [5], [None], None, {"a": 1}])
def test_what_is_no_list_of_texts_is_refused(store: HybridStore, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="phrasings"):
        store.search("kettle", phrasings=wrong)


async def test_every_way_to_search_takes_them(store: HybridStore) -> None:
    found = scores(store.search("kettle", phrasings=["boiler"]))
    assert scores(await store.asearch("kettle", phrasings=["boiler"])) == found
    assert scores(store.batch([Search("kettle", phrasings=["boiler"])])[0]) == found


def test_there_is_an_end_to_them(store: HybridStore) -> None:
    most = [f"kettle {number}" for number in range(100)]
    assert len(store.search("kettle", phrasings=most)) > 0
    with pytest.raises(ConfigurationError, match=r"phrasings holds 100 texts at most, not 101: .* use search_many"):
        store.search("kettle", phrasings=[*most, "one more"])
