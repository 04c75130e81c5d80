"""A reranker in a search: its order and its scores, what is kept when it fails, and what is told of it."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import (
    Access,
    ConfigurationError,
    DegradationCode,
    EmbedderUnreachableError,
    EmbeddingSettings,
    GivenVectors,
    HybridStore,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Add, Delete, Search
from twofold.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["one", "two", "three", "four", "five", "six"]
"""In this order their vectors are near the query."""
EAST = [1.0, 0.0]


def angle(place: int) -> list[float]:
    return [math.cos(place / 10), math.sin(place / 10)]


class Marks:
    """Gives each text the mark that a table has for its first word, and remembers what it was asked."""

    def __init__(self, marks: dict[str, float]) -> None:
        self.marks = marks
        self.asked: list[tuple[str, list[str]]] = []

    def __call__(self, query: str, texts: Sequence[str], /) -> list[float]:
        self.asked.append((query, list(texts)))
        return [self.marks[text.split()[0]] for text in texts]


REVERSED = {name: place / 10 for place, name in enumerate(NAMES, start=1)}
"""The last is the best."""


def open_with(reranker: Any, **settings: Any) -> HybridStore:
    clock = FakeClock(START)
    store = twofold.open(
        ":memory:", embedder=GivenVectors("v", 2), reranker=reranker, settings=StoreSettings(clock=clock, **settings)
    )
    for place, name in enumerate(NAMES):
        store.add(f"{name} kettle", id=name, vector=angle(place))
        clock.advance(seconds=1)
    return store


def search(store: HybridStore, k: int = 6, *, offset: int = 0, **params: Any) -> SearchResult:
    chosen = SearchParams(prior="none", **params)
    return store.search("which?", vector=EAST, mode="vector", k=k, offset=offset, params=chosen)


@pytest.fixture
def marks() -> Marks:
    return Marks(dict(REVERSED))


@pytest.fixture
def store(marks: Marks) -> Iterator[HybridStore]:
    with open_with(marks) as store:
        yield store


# -- order and scores ------------------------------------------------------------------------------------------------


def test_its_order_and_its_scores_are_the_answers(store: HybridStore, marks: Marks) -> None:
    result = search(store, 2)
    assert result.ids == ("six", "five")
    assert [hit.score for hit in result] == [REVERSED["six"], REVERSED["five"]]
    assert marks.asked == [("which?", [f"{name} kettle" for name in NAMES])]
    assert not result.degraded


def test_only_the_best_are_judged_and_the_rest_follows(store: HybridStore, marks: Marks) -> None:
    result = search(store, rerank=3)
    assert result.ids == ("three", "two", "one", "four", "five", "six")
    assert marks.asked == [("which?", ["one kettle", "two kettle", "three kettle"])]
    last = REVERSED["one"]
    cosines = [math.cos(place / 10) for place in (3, 4, 5)]
    assert [hit.score for hit in result] == [0.3, 0.2, 0.1, *(min(last, cosine) for cosine in cosines)]
    assert [hit.explanation.reranked is None for hit in result] == [False] * 3 + [True] * 3


def test_zero_asks_nobody(store: HybridStore, marks: Marks) -> None:
    assert search(store, rerank=0).ids == tuple(NAMES)
    assert search(store, 0).ids == ()
    assert store.search("?!", k=3).ids == ()
    assert marks.asked == []


def test_scores_are_shown_from_0_to_1_and_ordered_as_they_are(store: HybridStore, marks: Marks) -> None:
    marks.marks = {"one": -3.0, "two": 8.0, "three": 9.5, "four": 0.5, "five": -7.0, "six": 0.5}
    result = search(store)
    assert result.ids == ("three", "two", "four", "six", "one", "five")  # equal ones stay as they were
    assert [hit.score for hit in result] == [1.0, 1.0, 0.5, 0.5, 0.0, 0.0]
    raw = [hit.explanation.reranked.score for hit in result if hit.explanation.reranked is not None]
    assert raw == [9.5, 8.0, 0.5, 0.5, -3.0, -7.0]


def test_pages_are_cut_of_its_order(store: HybridStore) -> None:
    whole = search(store, rerank=4).ids
    assert whole == ("four", "three", "two", "one", "five", "six")
    pages = [search(store, 2, offset=start, rerank=4).ids for start in (0, 2, 4, 6)]
    assert pages == [whole[:2], whole[2:4], whole[4:], ()]


@pytest.mark.parametrize(
    "params",
    [
        {"pool": 2},
        {"pool": 2, "mmr_lambda": 0.5},
        {"pool_per_k": 1},
        {"pool": 3, "rescore": True},
        {"pool": 2, "rerank": 1},
    ],
    ids=str,
)
def test_pages_agree_beyond_the_pools(store: HybridStore, marks: Marks, params: dict[str, Any]) -> None:
    for size in (1, 2, 4):
        pages = [search(store, size, offset=start, **params).ids for start in range(0, 6, size)]
        assert sorted(id_ for page in pages for id_ in page) == sorted(NAMES), "none twice, none left out"
    whole = search(store, **{**params, "pool": 2, "pool_per_k": None})
    assert whole.ids[2:] == ("three", "four", "five", "six"), "what lies past the pool is not judged"
    assert max(len(texts) for _, texts in marks.asked) <= 4


def test_min_score_is_of_its_scores(store: HybridStore) -> None:
    assert search(store, min_score=0.45).ids == ("six", "five")
    assert search(store, min_score=0.9).ids == ()


def test_numbers_of_numpy_and_awaitables_are_taken() -> None:
    async def later(query: str, texts: Sequence[str]) -> Any:
        return np.array([REVERSED[text.split()[0]] for text in texts], np.float32)

    def hands_on(query: str, texts: Sequence[str]) -> Any:
        return later(query, texts)

    for reranker in (later, hands_on):
        with open_with(reranker) as store:
            assert search(store, 2).ids == ("six", "five")


# -- what is told ----------------------------------------------------------------------------------------------------


def test_a_hit_says_who_decided(store: HybridStore) -> None:
    first = search(store, 1)[0]
    assert first.explanation.reranked is not None
    assert (first.explanation.reranked.rank, first.explanation.reranked.by) == (6, "Marks")
    assert first.why.endswith("; reranked by Marks from rank 6: 0.6")
    assert first.explanation.fused == pytest.approx(math.cos(0.5))
    assert "reranked" not in search(store, 1, rerank=0)[0].why


def test_what_it_is_called() -> None:
    def by_length(query: str, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    class Named(Marks):
        name = "my model"

    for reranker, called in ((by_length, "by_length"), (Named(REVERSED), "my model")):
        with open_with(reranker) as store:
            assert f"reranked by {called} from" in search(store, 1)[0].why


def test_the_trace_has_its_stage(store: HybridStore) -> None:
    result = search(store, 2, rerank=3, trace=True)
    assert result.trace is not None
    names = [stage.name for stage in result.trace]
    assert names == ["vector", "fuse", "hydrate", "rerank"]
    stage = result.trace[-1]
    assert stage.output == ("three", "two", "one", "four", "five", "six")
    assert stage.detail == {"reranker": "Marks", "judged": 3}
    assert search(store).trace is None
    assert "rerank" in search(store).timings
    assert "rerank" not in search(store, rerank=0).timings


# -- when it fails ---------------------------------------------------------------------------------------------------


def failing(query: str, texts: Sequence[str]) -> list[float]:
    raise ConnectionError("refused")


@pytest.mark.parametrize(
    ("reranker", "said"),
    [
        (failing, "ConnectionError: refused"),
        (lambda query, texts: [1.0], "gave 1 scores for 6 texts"),
        (lambda query, texts: [*range(5), math.nan], "no finite number for text 6 of 6"),
        (lambda query, texts: [*range(5), math.inf], "no finite number for text 6 of 6"),
        (lambda query, texts: [*range(5), 10**400], "no finite number for text 6 of 6"),
        (lambda query, texts: ["0.5", *range(5)], "no finite number for text 1 of 6"),
        (lambda query, texts: [None, *range(5)], "no finite number for text 1 of 6"),
        (lambda query, texts: [True, *range(5)], "no finite number for text 1 of 6"),
        (lambda query, texts: [[0.5], *range(5)], "no finite number for text 1 of 6"),
        (lambda query, texts: [0.5] * 7, "gave more than 6 scores for 6 texts"),
        (lambda query, texts: itertools.repeat(0.5), "gave more than 6 scores for 6 texts"),
        (lambda query, texts: "012345", "gave a str; it must give one number a text, in order"),
        (lambda query, texts: dict.fromkeys(range(6), 0.5), "gave a dict; it must give one number a text, in order"),
        (lambda query, texts: set(range(6)), "gave a set; it must give one number a text, in order"),
        (lambda query, texts: None, "gave a NoneType"),
    ],
)
def test_its_failure_is_a_degradation_and_the_fused_order_stays(reranker: Callable[..., Any], said: str) -> None:
    with open_with(reranker) as store:
        result = search(store, trace=True)
        assert result.ids == tuple(NAMES)
        assert [hit.score for hit in result] == [hit.score for hit in search(store, rerank=0)]
        assert [each.code for each in result.degradations] == [DegradationCode.RERANKER_FAILED]
        assert said in result.degradations[0].message
        assert "hits keep their fused order" in result.degradations[0].message
        assert result[0].explanation.reranked is None
        assert result.trace is not None
        assert said in result.trace[-1].detail["failed"]


def test_one_that_hangs_is_not_waited_for_beyond_its_deadline_and_then_left_alone() -> None:
    gate, asked = threading.Event(), list[int]()

    def hangs(query: str, texts: Sequence[str]) -> list[float]:
        asked.append(len(texts))
        gate.wait(30)
        return [0.0] * len(texts)

    embedding = EmbeddingSettings(first_pause=3600, longest_pause=3600)
    with open_with(hangs, rerank_deadline=0.05, embedding=embedding) as store:
        try:
            first, second = search(store), search(store)
        finally:
            gate.set()
        assert "gave no answer within 0.05 s" in first.degradations[0].message
        assert "was not asked" in second.degradations[0].message
        assert first.ids == second.ids == tuple(NAMES)
        assert asked == [6]


@pytest.mark.parametrize("error", [ValueError, EmbedderUnreachableError])
def test_what_it_says_of_a_text_is_told_to_no_other(error: type[Exception]) -> None:
    def repeats(query: str, texts: Sequence[str]) -> list[float]:
        raise error(f"cannot read {texts}")

    with open_with(
        repeats, embedding=EmbeddingSettings(failures_to_open=1, first_pause=3600, longest_pause=3600)
    ) as store:
        store.add("secret kettle", vector=EAST, access=Access(user="ann"))
        asked = {"vector": EAST, "mode": "vector"}
        mine = store.search("which?", access=Access(user="ann"), **asked)
        assert "secret kettle" in mine.degradations[0].message
        others = store.search("which?", access=Access(user="ben"), **asked)
        assert "was not asked" in others.degradations[0].message
        assert "secret" not in repr(others.degradations)


def test_a_text_that_it_cannot_judge_takes_it_from_no_other() -> None:
    marks = Marks({**REVERSED, "five": math.nan})
    with open_with(
        marks, embedding=EmbeddingSettings(failures_to_open=1, first_pause=3600, longest_pause=3600)
    ) as store:
        assert all(search(store).has("reranker_failed") for _ in range(3))
        assert not search(store, rerank=4).degraded
        assert len(marks.asked) == 4


def test_it_is_asked_again_when_it_is_well() -> None:
    marks = Marks({})
    with open_with(marks, embedding=EmbeddingSettings(failures_to_open=1000)) as store:
        assert search(store).has("reranker_failed")  # a KeyError
        marks.marks = dict(REVERSED)
        assert search(store, 1).ids == ("six",)


def test_an_async_one_is_refused_where_it_would_block_the_loop() -> None:
    async def later(query: str, texts: Sequence[str]) -> list[float]:
        return [REVERSED[text.split()[0]] for text in texts]

    async def asks(store: HybridStore) -> SearchResult:
        with pytest.raises(ConfigurationError, match=r"await store\.asearch"):
            search(store)
        return await store.asearch("which?", vector=EAST, mode="vector", k=1)

    with open_with(later) as store:
        assert asyncio.run(asks(store)).ids == ("six",)


async def test_an_async_one_runs_on_the_callers_loop() -> None:
    loops = []

    async def later(query: str, texts: Sequence[str]) -> list[float]:
        loops.append(asyncio.get_running_loop())
        return [REVERSED[text.split()[0]] for text in texts]

    with open_with(later) as store:
        found = await store.asearch("which?", vector=EAST, mode="vector", k=1)
    assert found.ids == ("six",)
    assert loops == [asyncio.get_running_loop()]


async def test_a_search_that_is_called_off_does_not_wait_for_it() -> None:
    entered, gate = threading.Event(), threading.Event()

    def hangs(query: str, texts: Sequence[str]) -> list[float]:
        entered.set()
        gate.wait(30)
        return [0.0] * len(texts)

    with open_with(hangs, rerank_deadline=60) as store:
        task = asyncio.create_task(store.asearch("which?", vector=EAST, mode="vector"))
        assert await asyncio.to_thread(entered.wait, 30)
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            gate.set()


# -- with the rest of a search ---------------------------------------------------------------------------------------


def test_nothing_is_locked_while_it_is_asked(tmp_path: Any) -> None:
    """It writes to the store that asks it."""
    written = []

    def writes(query: str, texts: Sequence[str]) -> list[float]:
        written.append(store.add("written meanwhile", vector=[0.0, 1.0]).id)
        return [float(len(text)) for text in texts]

    with twofold.open(tmp_path / "a.db", embedder=GivenVectors("v", 2), reranker=writes) as store:
        store.add("one kettle", id="a", vector=EAST)
        for call in (
            lambda: store.search("kettle"),
            lambda: store.search_many(["kettle"])[0],
            lambda: store.batch([Search("kettle"), Add("other")])[0],
        ):
            assert call().ids == ("a",)
        assert len(written) == 3
        assert store.count() == 5


def test_what_it_judges_is_what_the_snapshot_held() -> None:
    """A record that is deleted meanwhile is shown as it was found, and nothing is made up for it."""

    def deletes(query: str, texts: Sequence[str]) -> list[float]:
        store.delete(["one"])
        return [REVERSED[text.split()[0]] for text in texts]

    with open_with(deletes) as store:
        store.link("two", "three", weight=0.5)
        store.link("one", "six", weight=0.9)
        result = search(store, 6, rerank=2, trace=True, expand=3)
        assert result.ids == ("two", "one", "three", "four", "five", "six")
        assert search(store, 6, rerank=0).ids == tuple(NAMES[1:])


def test_links_lead_from_the_hits_that_there_are_then(store: HybridStore) -> None:
    store.link("six", "two", weight=0.9)
    store.link("one", "three", weight=0.9)
    result = search(store, 1, expand=5, trace=True)
    assert result.ids == ("six",)
    assert [(hit.id, hit.explanation.path[0].start) for hit in result.linked] == [("two", "six")]
    assert result.linked[0].score < result[0].score
    assert result.trace is not None
    assert result.trace[-1].name == "expand"
    assert result.trace[-1].output == ("two",)
    later = search(store, 1, offset=4, expand=5)  # "two", whose link leads to a hit of an earlier page
    assert (later.ids, later.linked) == (("two",), ())


def test_only_what_is_returned_is_touched(store: HybridStore) -> None:
    store.link("six", "two", weight=0.9)
    search(store, 1, touch=True, expand=5)
    store.add("more", vector=[0.0, 1.0])  # takes the touches along
    assert {record.id for record in store.list() if record.access_count} == {"six", "two"}


def test_diversity_is_chosen_from_what_it_judged(store: HybridStore, marks: Marks) -> None:
    marks.marks = {"one": 0.9, "two": 0.89, "three": 0.5, "four": 0.88, "five": 0.2, "six": 0.86}
    assert search(store, 2).ids == ("one", "two")
    result = search(store, 2, mmr_lambda=0.5, trace=True)

    def worth(name: str) -> float:
        return 0.5 * marks.marks[name] - 0.5 * math.cos(NAMES.index(name) / 10)

    assert result.ids == ("one", max(NAMES[1:], key=worth)) == ("one", "six")
    assert [hit.score for hit in result] == [0.9, 0.86]
    assert result[1].why.endswith(
        "; reranked by Marks from rank 6: 0.86"
        f"; chosen by mmr(lambda=0.5) from rank 4, cosine {math.cos(0.5):.3g} to the nearest before it"
    )
    assert result.trace is not None
    assert [stage.name for stage in result.trace][-2:] == ["rerank", "mmr"]
    assert search(store, 2, mmr_lambda=0.5, rerank=2).ids == ("one", "two")
    assert search(store, 3, mmr_lambda=0.0, mmr_relevance="cosine").ids[0] == "one"


@pytest.mark.parametrize("largest", [1e6, 1e308])
def test_diversity_copes_with_scores_of_any_size(largest: float) -> None:
    with open_with(lambda query, texts: [largest, -largest] * (len(texts) // 2)) as store:
        found = search(store, mmr_lambda=0.5)
        assert sorted(found.ids) == sorted(NAMES)
        assert [hit.score for hit in found] == [1.0] * 3 + [0.0] * 3
        assert set(found.ids[:3]) == {"one", "three", "five"}


def test_what_it_does_to_its_input_changes_no_hit() -> None:
    def spoils(query: str, texts: Any) -> list[float]:
        count = len(texts)
        texts[:] = ["spoilt"] * count
        texts.append("more")
        return [0.5] * count

    with open_with(spoils) as store:
        found = search(store)
        assert not found.degraded
        assert [hit.text for hit in found] == [hit.text for hit in search(store, rerank=0)]


def test_diversity_without_it_when_it_fails() -> None:
    with open_with(failing) as store:
        params = {"mmr_lambda": 0.4}
        failed, without = search(store, 3, **params), search(store, 3, rerank=0, **params)
        assert failed.ids == without.ids
        assert failed.ids != tuple(NAMES[:3])
        assert failed.has("reranker_failed")


def test_phrasings_are_judged_by_the_question(store: HybridStore, marks: Marks) -> None:
    found = store.search("one", phrasings=["two"], k=1)
    assert found.ids == ("two",)
    assert marks.asked == [("one", ["two kettle", "one kettle"])]


def test_it_sees_nobody_elses_records(store: HybridStore, marks: Marks) -> None:
    store.add("six of hers", id="hers", vector=EAST, access=Access(user="ann"))
    assert "hers" not in search(store).ids
    assert not any("hers" in text for _, texts in marks.asked for text in texts)


async def test_every_way_to_search_asks_it(store: HybridStore) -> None:
    question: dict[str, Any] = {"k": 2, "mode": "vector"}
    assert (await store.asearch("which?", vector=EAST, **question)).ids == ("six", "five")
    many = store.search_many(["which?", "what?"], vectors=[EAST, EAST], **question)
    assert [each.ids for each in many] == [("six", "five")] * 2
    found, _, _ = store.batch([Search("which?", vector=EAST, **question), Delete("six"), Add("more")])
    assert found.ids == ("six", "five")
    assert store.context("which?", vector=EAST, mode="vector", k=1).memories[0].id == "five"


def test_many_searches_are_of_one_state_of_the_file(marks: Marks) -> None:
    def writes(query: str, texts: Sequence[str]) -> list[float]:
        store.add("seven kettle", id="seven", vector=EAST)
        return marks(query, texts)

    with open_with(writes) as store:
        for result in store.search_many(["a", "b"], vectors=[EAST, EAST], mode="vector"):
            assert set(result.ids) == set(NAMES)


def test_a_record_without_text_is_judged_by_none(marks: Marks) -> None:
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), reranker=lambda q, texts: map(len, texts)) as store:
        store.add(fields={}, id="picture", vector=EAST)
        store.add("ab", id="text", vector=[0.0, 1.0])
        found = store.search("which?", vector=EAST)
        assert [(hit.id, hit.score) for hit in found] == [("text", 1.0), ("picture", 0.0)]


def test_presets_and_settings_say_how_many(marks: Marks) -> None:
    with open_with(marks, search=SearchParams(rerank=2)) as store:
        store.search("which?", vector=EAST, mode="vector")
        store.search("which?", vector=EAST, mode="vector", preset="engram")
    assert [len(texts) for _, texts in marks.asked] == [2, 6]


@pytest.mark.parametrize("wrong", ["cohere", "", 5, Marks, ["x"]])
def test_what_is_no_reranker_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        twofold.open(":memory:", reranker=wrong)
