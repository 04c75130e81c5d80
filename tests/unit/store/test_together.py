"""``search_many``: the same answers as one by one, with one call of the embedder."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twofold
from twofold import A, Access, CallableEmbedder, ConfigurationError, EmbeddingSettings, SearchParams, StoreSettings
from twofold.testing import FakeEmbedder
from twofold.vectors import ExactIndex

WORDS = ("kettle", "door", "vault", "tea", "E4021")
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), max_size=6)


class Counting:
    """Counts its calls, and the texts of each."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []
        self.down = False
        self._fake = FakeEmbedder()

    def __call__(self, texts: Sequence[str]) -> Any:
        self.calls.append(tuple(texts))
        if self.down:
            raise ConnectionError("down")
        return self._fake.embed(texts, "document")


def store_of(embedder: Counting, index: str = "auto", **embedding: Any) -> twofold.HybridStore:
    settings = StoreSettings(index=index, embedding=EmbeddingSettings(**embedding))
    store = twofold.open(":memory:", embedder=CallableEmbedder(embedder, "counting"), settings=settings)
    store.add_many([{"id": word, "text": f"the {word} and the {other}"} for word in WORDS for other in WORDS[:2]])
    store.add("a tea of Ann's", id="ann", access=Access(user="ann"))
    embedder.calls.clear()
    return store


def shown(results: Sequence[Any]) -> list[Any]:
    return [([(hit.id, hit.score) for hit in result], result.degradations) for result in results]


@given(texts, st.sampled_from(("hybrid", "keyword", "vector")), st.sampled_from((0, 1, 2, 256)), st.booleans())
def test_the_answers_are_those_of_single_searches(asked: list[str], mode: str, cache: int, personal: bool) -> None:
    access = Access(user="ann") if personal else Access()
    with store_of(Counting(), query_cache_size=cache) as store:
        options: dict[str, Any] = {"mode": mode, "access": access, "k": 4, "params": SearchParams(pool=3)}
        together = store.search_many(asked, **options)
        assert shown(together) == shown([store.search(text, **options) for text in asked])
        if not personal:
            assert all(hit.id != "ann" for result in together for hit in result)


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=6), st.sampled_from(("exact", "auto")))
def test_so_are_those_of_searches_with_several_phrasings(asked: list[str], index: str) -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder(), settings=StoreSettings(index=index)) as store:
        store.add_many([{"id": word, "text": f"the {word} and the {other}"} for word in WORDS for other in WORDS[:2]])
        alone = shown([store.search(text, mode="vector", k=3) for text in asked])
        assert shown(store.search_many(asked, mode="vector", k=3)) == alone
        found = store.search(asked[0], mode="vector", k=3, phrasings=asked[1:])
        assert {hit.id for hit in found} <= {id_ for hits, _ in alone for id_, _ in hits}


def test_the_vectors_are_compared_together(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    real = ExactIndex.search_many

    def search_many(self: ExactIndex, queries: Any, visible: Any, limit: int) -> Any:
        looked_up.append(len(queries))
        return real(self, queries, visible, limit)

    monkeypatch.setattr(ExactIndex, "search_many", search_many)
    with store_of(Counting(), index="exact") as store:
        asked = [f"{WORDS[number % 5]} {number}" for number in range(130)]
        results = store.search_many([*asked, ""], params=SearchParams(trace=True))
        assert looked_up == [64, 64, 2]  # and nothing for the text that has no vector
        assert shown(results) == shown([store.search(text, params=SearchParams(trace=True)) for text in [*asked, ""]])
        assert all(result.timings["vector"] > 0 for result in results[:-1])
        looked_up.clear()
        store.search("kettle", phrasings=["door", "tea"])
        assert looked_up == [3]


def test_the_texts_are_embedded_together() -> None:
    embedder = Counting()
    with store_of(embedder) as store:
        store.search_many(["kettle", "door", "kettle", "..."])
        assert embedder.calls == [("kettle", "door")]


def test_so_many_at_a_time_as_are_remembered() -> None:
    embedder = Counting()
    with store_of(embedder, query_cache_size=2) as store:
        store.search_many(["kettle", "door", "vault"])
        assert embedder.calls == [("kettle", "door"), ("vault",)]


def test_keywords_answer_for_all_if_the_embedder_is_down() -> None:
    embedder = Counting()
    with store_of(embedder, failures_to_open=1) as store:
        embedder.down = True
        results = store.search_many(["kettle", "door"])
        assert [result.ids[0] for result in results] == ["kettle", "door"]
        assert [[each.code for each in result.degradations] for result in results] == [["embedder_unreachable"]] * 2
        assert len(embedder.calls) == 1  # the breaker opened at the first


def test_ready_vectors_are_used() -> None:
    embedder = Counting()
    with store_of(embedder) as store:
        vector = store.embed_queries(["kettle"])[0]
        embedder.calls.clear()
        one, two = store.search_many(["door", "door"], vectors=[vector, None], mode="vector", k=1)
        assert (one.ids, embedder.calls) == (store.search("kettle", mode="vector", k=1).ids, [("door",)])
        assert two.ids == store.search("door", mode="vector", k=1).ids


@pytest.mark.parametrize("reranker", [None, lambda question, texts: [0.5] * len(texts)])
def test_all_are_asked_at_one_instant_of_what_is_visible_then(reranker: Any) -> None:
    days = itertools.count()
    settings = StoreSettings(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=next(days)))
    with twofold.open(":memory:", reranker=reranker, settings=settings) as store:
        for day in range(100):
            begins = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
            store.add("kettle", valid_from=begins, valid_to=begins + timedelta(days=1))
        found = store.search_many(["kettle"] * 5, where=A.access_count == 0)
        assert len({result.ids for result in found}) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"texts": "kettle"}, "search_many"), ({"texts": ["a"], "vectors": []}, "one for each"), ({"texts": [1]}, "text")],
)
def test_mistakes(arguments: dict[str, Any], says: str) -> None:
    with store_of(Counting()) as store, pytest.raises(ConfigurationError, match=says):
        store.search_many(**arguments)


def test_of_nothing_nothing() -> None:
    with store_of(Counting()) as store:
        assert store.search_many([]) == []


async def test_fifty_callers_at_once_get_their_own_answers() -> None:
    with store_of(Counting()) as store:
        asked = [WORDS[number % len(WORDS)] for number in range(50)]
        expected = {word: store.search(word, access=Access(user="ann")).ids for word in WORDS}
        found = await asyncio.gather(*(store.asearch(word, access=Access(user="ann")) for word in asked))
        assert [result.ids for result in found] == [expected[word] for word in asked]
        assert shown(await store.asearch_many(asked)) == shown(store.search_many(asked))
