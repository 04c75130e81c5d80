"""No setting of a search does nothing: each changes what comes back, in the way that its docstring says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

import twofold
from twofold import GivenVectors, HybridStore, SearchParams, SearchResult, StoreSettings
from twofold.testing import FakeClock, FakeEmbedder, TableEmbedder

START = datetime(2026, 6, 1, tzinfo=UTC)
NONE = SearchParams(prior="none", adjacency=0)
RANKS = SearchParams.preset("rrf", prior="none", adjacency=0)
"""Fused by rank: no two records of one leg have the same score."""
ALONE = replace(NONE, rescore=False)
"""What a leg did not find has no score there."""


class Case(NamedTuple):
    """A setting, and what follows from it."""

    change: dict[str, Any]
    """What is set."""
    holds: Callable[[SearchResult, SearchResult], bool]
    """Of the answer without it and the one with it."""
    base: SearchParams = NONE
    """What it is set on."""
    text: str = "blue broker"
    k: int = 10


def scores(result: SearchResult) -> dict[str, float]:
    return {hit.id: hit.score for hit in result}


def raised(*ids: str) -> Callable[[SearchResult, SearchResult], bool]:
    """Some gain against all others."""

    def holds(before: SearchResult, after: SearchResult) -> bool:
        ratio = {id_: scores(after)[id_] / score for id_, score in scores(before).items() if score}
        least = min(ratio[id_] for id_ in ids)
        return all(least > value for id_, value in ratio.items() if id_ not in ids)

    return holds


def gone(*ids: str) -> Callable[[SearchResult, SearchResult], bool]:
    return lambda before, after: set(before.ids) - set(after.ids) == set(ids)


def formula(start: str) -> Callable[[SearchResult, SearchResult], bool]:
    return lambda before, after: (
        not before[0].explanation.formula.startswith(start) and after[0].explanation.formula.startswith(start)
    )


def only(leg: str) -> Callable[[SearchResult, SearchResult], bool]:
    return lambda before, after: len(before[0].explanation.answered) == 2 and after[0].explanation.answered == (leg,)


def legs_of(id_: str, result: SearchResult) -> set[str]:
    """Those that had it in their pool."""
    found = (hit.explanation.legs for hit in result if hit.id == id_)
    return {leg for legs in found for leg, score in legs.items() if score.contribution is not None}


PLAIN = replace(RANKS, vector_weight=0)
"""Only those with the word, the newest first."""
AFTER = replace(PLAIN, prior="after", prior_span=0.5, importance_weight=0, strength_weight=0)
"""A wide span, where nothing counts yet."""
WEIGHED = replace(PLAIN, prior="after", prior_span=0.5)
LINKS = replace(NONE, expand=5)

CASES = {
    "fusion": [
        *(Case({"fusion": name}, formula(start)) for name, start in (
            ("additive", "cosine +"), ("alpha", "0.7 · cosine"), ("relative", "min-max"), ("dbsf", "dbsf"),
            ("rrf", "rrf(k=60)"),
        )),
        Case({"fusion": "calibrated"}, formula("0.6 · (cosine -"), RANKS),
        Case({"fusion": lambda legs: dict(legs["keyword"])}, formula("<lambda>")),
    ],
    "alpha": [
        Case({"alpha": 0.0}, only("keyword"), replace(NONE, fusion="alpha")),
        Case({"alpha": 1.0}, only("vector")),
    ],
    "bonus": [Case({"bonus": 0.0}, only("vector"), replace(NONE, fusion="additive"))],
    "rrf_k": [Case({"rrf_k": 1.0}, lambda before, after: scores(after)["apart"] < scores(before)["apart"], RANKS)],
    "keyword_weight": [Case({"keyword_weight": 0.0}, only("vector"))],
    "vector_weight": [Case({"vector_weight": 0.0}, only("keyword"))],
    "rescore": [
        Case(
            {"rescore": False},
            lambda before, after: legs_of("beside", before) == {"keyword", "vector"}
            and legs_of("beside", after) == {"keyword"},
            replace(NONE, vector_pool=1),
        )
    ],
    "pool": [
        Case({"pool": 1}, lambda before, after: legs_of("beside", before) == {"keyword", "vector"}
             and legs_of("beside", after) == set()),
    ],
    "pool_per_k": [
        Case({"pool_per_k": 1}, lambda before, after: set() < legs_of("beside", after) < legs_of("beside", before),
             ALONE, k=5),
    ],
    "keyword_pool": [
        Case(
            {"keyword_pool": 1},
            lambda before, after: "keyword" in legs_of("beside", before) and "keyword" not in legs_of("beside", after),
            ALONE,
        )
    ],
    "vector_pool": [
        Case({"vector_pool": 1}, lambda before, after: legs_of("beside", after) == {"keyword"}
             < legs_of("beside", before), ALONE),
    ],
    "keyword_operator": [
        Case(
            {"keyword_operator": "and_or"},
            lambda before, after: (before[0].id, after[0].id) == ("loud", "lonely") and {*before.ids} == {*after.ids},
            replace(NONE, vector_weight=0),
            text="loud and lonely",
        )
    ],
    "adjacency": [
        Case({"adjacency": 1.0}, lambda before, after: before.ids[:2] == ("apart", "beside")
             and after.ids[:2] == ("beside", "apart"), replace(NONE, vector_weight=0)),
    ],
    "prior": [
        Case({"prior": "after"}, raised("strong"), replace(WEIGHED, prior="none"), text="plain"),
        Case(
            {"prior": "keyword"},
            lambda before, after: before[0].id == "fresh" and after[0].id == "strong",
            replace(NONE, vector_weight=0),
            text="plain",
        ),
    ],
    "prior_span": [Case({"prior_span": 0.5}, raised("strong"), replace(PLAIN, prior="after"), text="plain")],
    "importance_weight": [Case({"importance_weight": 1.0}, raised("strong"), AFTER, text="plain")],
    "strength_weight": [Case({"strength_weight": 1.0}, raised("strong"), AFTER, text="plain")],
    "recency_weight": [Case({"recency_weight": 1.0}, raised("fresh"), AFTER, text="plain")],
    "retention_weight": [Case({"retention_weight": 1.0}, raised("fresh"), AFTER, text="plain")],
    "recency_half_life": [
        Case({"recency_half_life": 1e12}, raised("strong", "usual"), replace(AFTER, recency_weight=1.0), text="plain")
    ],
    "retention_half_life": [
        Case(
            {"retention_half_life": 1e9},
            lambda before, after: scores(after)["strong"] > scores(before)["strong"],
            replace(AFTER, retention_weight=1.0),
            text="plain",
        )
    ],
    "confidence": [Case({"confidence": True}, raised("strong", "fresh"), PLAIN, text="plain")],
    "project": [Case({"project": "p"}, raised("fresh"), PLAIN, text="plain")],
    "project_weight": [
        Case({"project_weight": 1.0}, raised("strong", "usual"), replace(PLAIN, project="p"), text="plain")
    ],
    "project_only": [Case({"project_only": True}, gone("strong", "usual"), replace(PLAIN, project="p"), text="plain")],
    "min_score": [Case({"min_score": 0.9}, lambda before, after: 0 < len(after) < len(before))],
    "min_similarity": [
        Case({"min_similarity": 0.5}, lambda before, after: "vector" not in legs_of("beside", after)
             and "vector" in legs_of("beside", before)),
    ],
    "mmr_lambda": [
        Case(
            {"mmr_lambda": 0.1},
            lambda before, after: before.ids == ("fresh", "strong") and after.ids == ("fresh", "loud"),
            text="plain",
            k=2,
        )
    ],
    "mmr_pool": [
        Case(
            {"mmr_pool": 2},
            lambda before, after: after.ids == ("fresh", "strong") != before.ids,
            replace(NONE, mmr_lambda=0.1),
            text="plain",
            k=2,
        )
    ],
    "mmr_relevance": [
        Case(
            {"mmr_relevance": "cosine"},
            lambda before, after: before[1].id == "beside" and after[1].id == "fresh",
            replace(RANKS, mmr_lambda=1.0),
        )
    ],
    "expand": [Case({"expand": 5}, lambda before, after: not before.linked and bool(after.linked), k=1)],
    "hops": [Case({"hops": 2}, lambda before, after: len(after.linked) > len(before.linked), LINKS, k=1)],
    "link_kinds": [
        Case({"link_kinds": ("other",)}, lambda before, after: not after.linked, LINKS, k=1),
        Case(
            {"link_kinds": {"related": 0.5}},
            lambda before, after: 0 < after.linked[0].score < before.linked[0].score,
            LINKS,
            k=1,
        ),
    ],
    "link_decay": [
        Case({"link_decay": 1.0}, lambda before, after: after.linked[0].score > before.linked[0].score, LINKS, k=1)
    ],
    "link_fan_out": [Case({"link_fan_out": 1}, lambda before, after: len(after.linked) == 1, LINKS, k=1)],
    "include_archived": [
        Case({"include_archived": True}, lambda before, after: set(after.ids) - set(before.ids) == {"archived"})
    ],
    "trace": [Case({"trace": True}, lambda before, after: before.trace is None and bool(after.trace))],
    "rerank": [],
    "hyde": [],
    "hyde_words": [],
    "hyde_vector": [],
    "touch": [],
    "touch_growth": [],
    "field_aggregation": [],
}  # fmt: skip
"""``touch`` and ``touch_growth`` change the store and not the answer; their test stands below, and those of ``rerank``
and HyDE, which take a helper. What ``field_aggregation`` does shows in a store of several fields, with the tests of
those."""


@pytest.fixture(scope="module")
def store() -> Iterator[HybridStore]:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), settings=StoreSettings(clock=clock)) as store:

        def add(id_: str, text: str, vector: list[float], **more: Any) -> None:
            store.add(text, id=id_, vector=vector, **more)
            clock.advance(seconds=1)

        add("beside", "blue broker meets someone at noon", [0.0, 1.0])
        add("apart", "blue someone meets broker at noon", [1.0, 0.0])
        add("lonely", "loud lonely someone who lives in quite another place than most of us would think of", [0.0, 1.0])
        add("loud", "lonely lonely lonely lonely", [0.0, 1.0])
        add("archived", "blue broker", [1.0, 0.0])
        store.archive("archived")
        clock.advance(seconds=60)
        add("strong", "plain", [1.0, 0.0], importance=1.0, strength=9.0, created_at=START - timedelta(days=90))
        add("usual", "plain", [1.0, 0.0], importance=0.1, strength=0.2, created_at=START - timedelta(days=90),
            metadata={"confidence": 0})  # fmt: skip
        add("fresh", "plain", [1.0, 0.0], project="p", importance=0.2)
        for number in range(30):
            store.add(fields={}, tags=(f"other{number}",))
        for source in ("beside", "apart"):
            store.link(source, "strong", weight=0.9)
            store.link(source, "usual", weight=0.5)
        store.link("strong", "lonely", weight=0.9)
        clock.advance(seconds=86_400)
        yield store


def test_every_setting_has_a_case() -> None:
    assert CASES.keys() == {each.name for each in fields(SearchParams)}


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, cases in CASES.items() for case in cases],
    ids=lambda value: str(value)[:40],
)
def test_it_changes_the_answer_as_it_says(store: HybridStore, name: str, case: Case) -> None:
    assert set(case.change) == {name}
    before = store.search(case.text, vector=[1.0, 0.0], k=case.k, params=case.base)
    after = store.search(case.text, vector=[1.0, 0.0], k=case.k, params=replace(case.base, **case.change))
    assert case.holds(before, after), (scores(before), scores(after))
    assert not case.holds(before, before)


def test_touch_counts_and_its_growth_strengthens() -> None:
    def after(**params: Any) -> tuple[int, float]:
        with twofold.open(":memory:", settings=StoreSettings(touch_growth=2.0)) as store:
            store.add("kettle", id="a")
            for _ in range(2):
                store.search("kettle", params=SearchParams(**params))
            store.add("other")  # takes the touches along
            record = store.get("a")
            assert record is not None
            return record.access_count, record.strength

    assert after() == (0, 1.0)
    assert after(touch=True) == (2, 2.0**2)
    assert after(touch=True, touch_growth=1.5) == (2, 1.5**2)
    assert after(touch=True, touch_growth=1.0) == (2, 1.0)


def test_rerank_is_how_many_the_reranker_judges() -> None:
    def shorter_is_better(query: str, texts: Sequence[str]) -> list[float]:
        return [1 / len(text) for text in texts]

    with twofold.open(":memory:", reranker=shorter_is_better) as store:
        store.add_many([{"id": "long", "text": "kettle kettle kettle"}, {"id": "short", "text": "kettle of steel"}])
        found = {most: store.search("kettle", params=SearchParams(rerank=most)) for most in (0, 1, 2)}
        assert {most: each.ids for most, each in found.items()} == {
            0: ("long", "short"), 1: ("long", "short"), 2: ("short", "long")
        }  # fmt: skip
        assert scores(found[2]) == {"short": 1 / 15, "long": 1 / 20}
        assert scores(found[1]) == {"long": 1 / 20, "short": 1 / 20}  # never above what was judged


def test_hyde_is_for_which_questions_and_what_its_vector_does() -> None:
    table = TableEmbedder({"lonely": [1.0, 0.0], "written": [0.0, 1.0], "one of two": [0.0, 1.0]})

    def cosine(**params: Any) -> float:
        with twofold.open(":memory:", embedder=table, hyde=lambda question: "written") as store:
            store.add("one of two", id="a")
            found = store.search("lonely", params=SearchParams(**params))
            return found[0].explanation.legs["vector"].raw

    joined = pytest.approx(0.5**0.5)
    assert cosine() == cosine(hyde="always") == joined
    assert cosine(hyde="never") == 0.0
    assert cosine(hyde_vector="replace") == 1.0


def test_hyde_words_is_how_short_a_short_question_is() -> None:
    asked: list[str] = []

    def writes(question: str) -> str:
        asked.append(question)
        return "an answer"

    with twofold.open(":memory:", embedder=FakeEmbedder(), hyde=writes) as store:
        for most in (2, 3):
            store.search("lonely kettle pager", params=SearchParams(hyde_words=most))
            assert len(asked) == most - 2
