"""One query: the right records, in the right order, with the right scores, and what is said when something is missing.

``score`` of a hybrid search is ``0.6 · (cosine - μ) / (1 - μ) + 0.4 · BM25 / best``, μ being ``min(1, n / 64)`` times
the mean cosine of the n records to each other; with ``preset="rrf"`` it is the sum of ``1 / (60 + rank)`` over its
maximum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import twofold
from twofold import (
    PRESETS,
    Access,
    ConfigurationError,
    DegradationCode,
    EmbeddingSettings,
    F,
    GivenVectors,
    HybridStore,
    InvalidVectorError,
    SearchParams,
    SearchResult,
    SearchUnavailableError,
    StoreSettings,
)
from twofold.search.explain import Told
from twofold.testing import FailingEmbedder, FakeClock, FakeEmbedder, FlakyEmbedder, TableEmbedder

BY_HAND = EmbeddingSettings(fill_in=False)
"""What is missing stays missing, so that it can be looked at."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def open_with(
    embedder: Any = None, records: Mapping[str, str] | None = None, vectors: Mapping[str, list[float]] | None = None
) -> HybridStore:
    """A store with a clock that ticks a second a record, so that later ones are newer."""
    clock = FakeClock(START)
    store = twofold.open(":memory:", embedder=embedder, settings=StoreSettings(clock=clock, embedding=BY_HAND))
    for id_, text in (records or {}).items():
        store.add(text, id=id_, vector=None if vectors is None else vectors.get(id_))
        clock.advance(seconds=1)
    return store


# -- hybrid ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed() -> Iterator[HybridStore]:
    """Keywords rank m1, m2; vectors rank m1, m3, m2 for the query ``kettle``, by cosines of 1, 0.8 and 0."""
    table = {
        "kettle": [1.0, 0.0],
        "kettle kettle": [1.0, 0.0],
        "a kettle among many other words": [0.0, 1.0],
        "teapot": [0.8, 0.6],
    }
    texts = {"m1": "kettle kettle", "m2": "a kettle among many other words", "m3": "teapot"}
    with open_with(TableEmbedder(table), texts) as store:
        yield store


MU = 3 / 64 * (0.0 + 0.8 + 0.6) / 3
"""Of ``mixed``: its three pairs have cosines of 0, 0.8 and 0.6."""


def test_both_scores_count_and_the_best_possible_score_is_one(mixed: HybridStore) -> None:
    keyword = {hit.id: hit.score for hit in mixed.search("kettle", mode="keyword")}
    assert 0.4 * keyword["m2"] < 0.6 * (0.8 - MU) / (1 - MU)
    result = mixed.search("kettle")
    expected = {"m1": 0.6 + 0.4, "m3": 0.6 * (0.8 - MU) / (1 - MU), "m2": 0.4 * keyword["m2"]}
    assert result.ids == tuple(expected)
    assert {hit.id: hit.score for hit in result} == pytest.approx(expected)
    assert not result.degraded
    assert result.trace is None


def test_balanced_is_what_one_gets_without_a_word(mixed: HybridStore) -> None:
    assert SearchParams() == PRESETS["balanced"]
    assert mixed.search("kettle").hits == mixed.search("kettle", preset="balanced").hits
    assert mixed.search("kettle").hits != mixed.search("kettle", preset="rrf").hits


def test_ranks_are_fused_and_the_best_possible_score_is_one(mixed: HybridStore) -> None:
    result = mixed.search("kettle", preset="rrf")
    assert result.ids == ("m1", "m2", "m3")
    maximum = 1 / 61 + 1 / 61
    expected = [(1 / 61 + 1 / 61) / maximum, (1 / 62 + 1 / 63) / maximum, (1 / 62) / maximum]
    assert [hit.score for hit in result] == pytest.approx(expected)
    assert not result.degraded
    assert result.trace is None


def test_every_hit_says_why(mixed: HybridStore) -> None:
    first, second, third = mixed.search("kettle")
    legs = first.explanation.legs
    assert [(leg, score.rank) for leg, score in legs.items()] == [("keyword", 1), ("vector", 1)]
    assert legs["vector"].raw == pytest.approx(1.0)
    assert legs["keyword"].raw > 0
    assert sum(score.contribution for score in legs.values()) == pytest.approx(first.explanation.fused)
    assert "keyword rank 1" in first.why
    assert "vector rank 1 (cosine 1)" in first.why
    assert f"0.6 · (cosine - {MU:.3g}) / {1 - MU:.3g} + 0.4 · bm25 / best: 1 of at most 1" in first.why
    assert list(second.explanation.legs) == ["vector"]
    assert "not in keyword" in second.why
    assert list(third.explanation.legs) == ["keyword", "vector"]


def test_with_rrf_a_hit_says_its_ranks(mixed: HybridStore) -> None:
    first, _, third = mixed.search("kettle", preset="rrf")
    assert first.why.endswith(f"rrf(k=60): {2 / 61:.4g} of at most {2 / 61:.4g}")
    assert list(third.explanation.legs) == ["vector"]
    assert "not in keyword" in third.why


def test_a_leg_that_fails_takes_its_share_off_the_highest_score() -> None:
    for params, highest in ((SearchParams(), 0.4), (SearchParams(alpha=0.7), 0.3), (PRESETS["rrf"], 1 / 2)):
        with open_with(FlakyEmbedder(FakeEmbedder(8), down=True), {"m1": "kettle"}) as store:
            assert store.search("kettle", params=params)[0].score == pytest.approx(highest)


def test_with_and_or_what_has_every_word_comes_first_and_the_rest_in_its_order() -> None:
    """Also by score: what was put behind neither ties nor, newer first, turns round."""
    texts = {"all": "blue kettle " + "word " * 60, "much": "kettle kettle kettle", "less": "blue " + "word " * 10}
    any_word = SearchParams(adjacency=0)
    every = replace(any_word, keyword_operator="and_or")
    with open_with(GivenVectors("v", 2), texts, {id_: [1.0, 0.0] for id_ in texts}) as store:
        for number in range(20):  # without text: they make the words rarer, and are in neither leg
            store.add(fields={}, tags=(f"other{number}",))
        for alone in ({}, {"vector_weight": 0}):
            found = store.search("blue kettle", vector=[1.0, 0.0], params=replace(any_word, **alone))
            assert found.ids == ("much", "less", "all")
            found = store.search("blue kettle", vector=[1.0, 0.0], params=replace(every, **alone))
            assert found.ids == ("all", "much", "less")


def test_weights_and_rrf_k_of_one_call(mixed: HybridStore) -> None:
    params = SearchParams.preset("rrf", keyword_weight=0.3, vector_weight=0.7, rrf_k=10)
    result = mixed.search("kettle", params=params)
    maximum = 0.3 / 11 + 0.7 / 11
    scores = {hit.id: hit.score for hit in result}
    assert scores["m2"] == pytest.approx((0.3 / 12 + 0.7 / 13) / maximum)
    assert scores["m3"] == pytest.approx((0.7 / 12) / maximum)
    assert [hit.score for hit in mixed.search("kettle")] == [hit.score for hit in mixed.search("kettle")]


@pytest.mark.parametrize(("weights", "ids"), [((1.0, 0.0), ("m1", "m2")), ((0.0, 1.0), ("m1", "m3", "m2"))])
def test_a_leg_of_weight_zero_is_not_run(
    mixed: HybridStore, weights: tuple[float, float], ids: tuple[str, ...]
) -> None:
    """run-llama/llama_index#21444."""
    params = SearchParams(keyword_weight=weights[0], vector_weight=weights[1], trace=True)
    result = mixed.search("kettle", params=params)
    assert result.ids == ids
    assert result[0].score == pytest.approx(1.0)
    assert result.trace is not None
    ran = {stage.name for stage in result.trace} & {"keyword", "vector"}
    assert ran == ({"keyword"} if weights[0] else {"vector"})


def test_modes(mixed: HybridStore) -> None:
    keyword = mixed.search("kettle", mode="keyword")
    assert keyword.ids == ("m1", "m2")
    raw = [hit.explanation.legs["keyword"].raw for hit in keyword]
    assert [hit.score for hit in keyword] == pytest.approx([1.0, raw[1] / raw[0]])
    vector = mixed.search("kettle", mode="vector")
    assert vector.ids == ("m1", "m3", "m2")
    assert [hit.score for hit in vector] == pytest.approx([1.0, 0.8, 0.0])
    with pytest.raises(ConfigurationError, match="hybrid, keyword, vector"):
        mixed.search("kettle", mode="fuzzy")


def test_scores_of_vectors_that_point_away_stop_at_zero_but_keep_their_order() -> None:
    vectors = {"m1": [-1.0, 0.0], "m2": [-0.8, 0.6], "m3": [0.6, 0.8]}
    with open_with(GivenVectors("v", 2), dict.fromkeys(vectors, "x"), vectors) as store:
        result = store.search("", vector=[1.0, 0.0], mode="vector")
        assert result.ids == ("m3", "m2", "m1")
        assert [hit.score for hit in result] == pytest.approx([0.6, 0.0, 0.0])
        assert [hit.explanation.legs["vector"].raw for hit in result] == pytest.approx([0.6, -0.8, -1.0])


def test_thresholds_are_on_the_cosine_and_on_the_final_score() -> None:
    """RamaAditya49/titen#227, georgeguimaraes/arcana#166, TencentCloud/TencentDB-Agent-Memory#1296."""
    vectors = {"m1": [1.0, 0.0], "m2": [0.8, 0.6], "m3": [0.6, 0.8]}
    with open_with(GivenVectors("v", 2), dict.fromkeys(vectors, "word"), vectors) as store:
        near = SearchParams(min_similarity=0.9)
        assert store.search("", vector=[1.0, 0.0], params=near).ids == ("m1",)
        assert store.search("", vector=[0.0, -1.0], params=near).ids == ()
        for mode in ("hybrid", "vector", "keyword"):
            best = store.search("word", vector=[1.0, 0.0], mode=mode, params=SearchParams(min_score=0.3))
            assert "m1" in best.ids
        high = store.search("", vector=[1.0, 0.0], mode="vector", params=SearchParams(min_score=0.7))
        assert high.ids == ("m1", "m2")


# -- order, pages ----------------------------------------------------------------------------------------------------


def test_equal_scores_are_ordered_newer_first_then_by_id() -> None:
    clock = FakeClock(START)
    with twofold.open(":memory:", settings=StoreSettings(clock=clock)) as store:
        for id_ in ("b", "a", "c"):
            store.add("kettle", id=id_)
        clock.advance(seconds=1)
        store.add("kettle", id="z")
        assert store.search("kettle").ids == ("z", "a", "b", "c")
        assert store.search("kettle", mode="keyword").ids == ("z", "a", "b", "c")


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
@pytest.mark.parametrize("pool", [1, 3, 100])
def test_pages_neither_overlap_nor_skip(mode: str, pool: int) -> None:
    texts = {f"m{number:02}": f"kettle {'pager ' * (number % 5)} word{number}" for number in range(30)}
    with open_with(FakeEmbedder(16), texts) as store:
        params = SearchParams(pool=pool)
        whole = store.search("kettle pager", k=100, mode=mode, params=params)
        assert sorted(whole.ids) == sorted(texts)
        scores = [hit.score for hit in whole]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        for size in (1, 4, 7):
            pages = [
                hit.id
                for offset in range(0, 35, size)
                for hit in store.search("kettle pager", k=size, offset=offset, mode=mode, params=params)
            ]
            assert tuple(pages) == whole.ids


def test_top_k_is_a_prefix_of_top_k_plus_one() -> None:
    """xerj-org/xerj#940."""
    texts = {id_: "kettle" if id_ in "abc" else "teapot" for id_ in "fbdace"}
    vectors = {id_: [0.0, 1.0] if id_ in "abc" else [1.0, 0.0] for id_ in texts}
    with open_with(GivenVectors("v", 2), texts, vectors) as store:
        results = [store.search("kettle", vector=[1.0, 0.0], k=k).ids for k in range(7)]
        assert [len(ids) for ids in results] == list(range(7))
        assert all(longer[: len(ids)] == ids for ids, longer in pairwise(results))


@pytest.mark.parametrize(
    ("k", "found"), [(0, 0), (1, 1), (19, 19), (20, 20), (21, 20), (4096, 20), (4097, 20), (10**9, 20)]
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_any_k_gives_at_most_what_there_is(k: int, found: int, mode: str) -> None:
    """basicmachines-co/basic-memory#604."""
    with open_with(FakeEmbedder(8), {f"m{number}": f"kettle {number}" for number in range(20)}) as store:
        result = store.search("kettle", k=k, mode=mode)
        assert len(result) == found
        assert len(set(result.ids)) == found


@pytest.mark.parametrize("wrong", [{"k": -1}, {"k": 1.5}, {"k": True}, {"offset": -1}, {"k": None}])
def test_a_k_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with open_with() as store, pytest.raises(ConfigurationError):
        store.search("kettle", **wrong)


def test_words_side_by_side_come_before_the_same_words_apart() -> None:
    """MemTensor/MemOS#1227, and that the re-ordering is bounded by what it states."""
    texts = {
        "apart": "blue kettle and then some more words about a broker",
        "beside": "kettle and then some more words about a blue broker",
    }
    with open_with(None, texts) as store:
        result = store.search("blue broker", mode="keyword")
        assert result.ids == ("beside", "apart")
        beside, apart = (hit.explanation.legs["keyword"] for hit in result)
        assert (beside.adjacency, apart.adjacency) == (1.2, 1.0)
        assert beside.raw == pytest.approx(apart.raw)
        plain = store.search("blue broker", mode="keyword", params=SearchParams(adjacency=0))
        assert [hit.explanation.legs["keyword"].adjacency for hit in plain] == [1.0, 1.0]


# -- nothing to find -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n\t", '"', "***", "()", '""""', "\0", "\ud800"])
def test_text_with_nothing_to_search_for_gives_nothing(text: str) -> None:
    """sqldelight/sqldelight#3566."""
    with open_with(FakeEmbedder(8), {"m1": "alpha"}) as store:
        assert store.search(text).ids == ()
        assert store.search(text, mode="keyword").ids == ()


def test_an_empty_store_is_legal() -> None:
    with open_with(FakeEmbedder(8)) as store:
        for mode in ("hybrid", "keyword", "vector"):
            result = store.search("anything", mode=mode)
            assert (result.ids, result.degraded) == ((), False)


def test_one_leg_may_find_nothing() -> None:
    """typesense/typesense#2816."""
    with open_with(
        TableEmbedder({"aa": [1, 0], "kettle": [0, 1], "zz": [1, 0]}), {"m1": "aa", "m2": "kettle"}
    ) as store:
        assert store.search("zz").ids == ("m1", "m2")
        unlisted = store.search("a kettle")
        assert unlisted.ids == ("m2",)
        assert unlisted.has(DegradationCode.EMBEDDER_UNREACHABLE)


# -- filters and lifecycle are inside the legs -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_filter_never_costs_hits(mode: str) -> None:
    """asg017/sqlite-vec#152."""
    with open_with(GivenVectors("v", 2)) as store:
        for number in range(300):
            store.add("kettle", id=f"other{number}", metadata={"mine": False}, vector=[1, number / 10_000])
        for number in range(5):
            store.add("kettle and other words", id=f"mine{number}", metadata={"mine": True}, vector=[0.5, 1])
        params = SearchParams(pool=5)
        result = store.search("kettle", vector=[1, 0], k=5, mode=mode, where=F("mine") == True, params=params)  # noqa: E712
        assert sorted(result.ids) == [f"mine{number}" for number in range(5)]
        assert result.ids == store.search("kettle", vector=[1, 0], k=5, mode=mode, where={"mine": True}).ids


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_what_is_archived_expired_or_not_yet_valid_is_not_found(mode: str) -> None:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=FakeEmbedder(8), settings=StoreSettings(clock=clock)) as store:
        store.add("kettle living", id="living")
        store.add("kettle archived", id="archived")
        store.archive("archived")
        store.add("kettle expiring", id="expiring", expires_at=START + timedelta(hours=1))
        store.add("kettle to come", id="to come", valid_from=START + timedelta(hours=2))
        store.add("kettle ending", id="ending", valid_to=START + timedelta(hours=3))

        def found() -> set[str]:
            return set(store.search("kettle", mode=mode).ids)

        assert found() == {"living", "expiring", "ending"}
        clock.advance(seconds=3600)
        assert found() == {"living", "ending"}
        clock.advance(seconds=3600)
        assert found() == {"living", "ending", "to come"}
        clock.advance(seconds=3600)
        assert found() == {"living", "to come"}
        store.restore("archived")
        assert found() == {"living", "to come", "archived"}
        archived_too = store.search("kettle", mode=mode, params=SearchParams(include_archived=True))
        assert len(archived_too) == 5


# -- degradations ----------------------------------------------------------------------------------------------------


def test_no_embedder_is_a_mode_not_a_degradation() -> None:
    with open_with(None, {"m1": "kettle"}) as store:
        result = store.search("kettle")
        assert (result.ids, result.degraded, result[0].score) == (("m1",), False, 1.0)
        assert store.info().mode == "keyword"
        with pytest.raises(SearchUnavailableError, match="embedder"):
            store.search("kettle", mode="vector")
        with pytest.raises(ConfigurationError, match="GivenVectors"):
            store.search("kettle", vector=[1.0, 0.0])


def test_keywords_go_on_when_the_embedder_fails_and_the_score_shows_it() -> None:
    inner = FlakyEmbedder(FakeEmbedder(8))
    with open_with(inner, {"m1": "kettle", "m2": "teapot"}) as store:
        assert store.search("kettle")[0].score == pytest.approx(1.0)
        inner.down = True
        result = store.search("the kettle")
        assert result.ids == ("m1",)
        assert [each.code for each in result.degradations] == [DegradationCode.EMBEDDER_UNREACHABLE]
        assert result[0].score == pytest.approx(0.4 / (0.4 + 0.6))
        with pytest.raises(SearchUnavailableError):
            store.search("the kettle", mode="vector")
        assert store.search("the kettle", mode="keyword").degraded is False
        assert store.search("kettle").degraded is False  # the vector of a query asked before is remembered
        inner.down = False
        assert store.search("the kettle").degraded is False


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ([], DegradationCode.EMBEDDER_BAD_OUTPUT),
        ([[float("nan"), 1.0]], DegradationCode.EMBEDDER_BAD_OUTPUT),
        ([[0.0, 0.0]], DegradationCode.EMBEDDER_BAD_OUTPUT),
        ([[1.0]], DegradationCode.EMBEDDER_BAD_OUTPUT),
        ([[1.0, 0.0], [1.0, 0.0]], DegradationCode.EMBEDDER_BAD_OUTPUT),
        (TimeoutError("slow"), DegradationCode.EMBEDDER_TIMEOUT),
        (ConnectionRefusedError("down"), DegradationCode.EMBEDDER_UNREACHABLE),
    ],
    ids=repr,
)
def test_whatever_the_embedder_gives_keywords_answer(output: Any, code: DegradationCode) -> None:
    def answer(texts: list[str], kind: str) -> Any:
        if kind == "document":
            return [[1.0, 0.0] for _ in texts]
        if isinstance(output, Exception):
            raise output
        return output

    embedder = twofold.CallableEmbedder(answer, name="odd", dimension=2)
    with open_with(embedder, {"m1": "kettle"}) as store:
        result = store.search("kettle")
        assert result.ids == ("m1",)
        assert [each.code for each in result.degradations] == [code]


def test_records_without_a_vector_are_found_by_keyword_and_said_to_be_pending() -> None:
    inner = FlakyEmbedder(FakeEmbedder(8))
    with open_with(inner, {"m1": "kettle one"}) as store:
        inner.down = True
        added = store.add("kettle two", id="m2")
        assert added.pending
        assert [each.code for each in added.degradations] == [DegradationCode.EMBEDDER_UNREACHABLE]
        inner.down = False
        result = store.search("kettle")
        assert set(result.ids) == {"m1", "m2"}
        assert [each.code for each in result.degradations] == [DegradationCode.VECTORS_PENDING]
        assert store.info().pending == 1
        assert store.check().ok


def test_pending_records_of_others_are_not_hinted_at() -> None:
    inner = FlakyEmbedder(FakeEmbedder(8))
    with open_with(inner, {"m1": "kettle one"}) as store:
        inner.down = True
        store.add("kettle two", access=Access(user="u2"))
        inner.down = False
        assert store.search("kettle", access=Access(user="u1")).degraded is False
        assert store.search("kettle", access=Access(user="u2")).has(DegradationCode.VECTORS_PENDING)
        assert store.info(access=Access(user="u1")).pending == 0


def test_an_embedder_that_never_answered_leaves_a_keyword_store() -> None:
    with open_with(FailingEmbedder(ConnectionError("down")), {"m1": "kettle"}) as store:
        result = store.search("kettle")
        assert result.ids == ("m1",)
        assert [each.code for each in result.degradations] == [DegradationCode.EMBEDDER_UNREACHABLE]


def test_vectors_of_another_embedder_are_never_compared(tmp_path: Any) -> None:
    """fabio-rovai/open-ontologies#74, arabold/docs-mcp-server#337."""
    path = tmp_path / "s.db"
    with twofold.open(path, embedder=FakeEmbedder(8, name="one")) as store:
        store.add("kettle", id="m1")
    for other in (FakeEmbedder(8, name="two"), FakeEmbedder(4, name="one")):
        with twofold.open(path, embedder=other) as store:
            result = store.search("kettle")
            assert (result.ids, [each.code for each in result.degradations]) == (
                ("m1",),
                [DegradationCode.SPACE_MISMATCH],
            )
            added = store.add("teapot", id=other.fingerprint)
            assert added.pending
            assert added.degradations[0].code == DegradationCode.SPACE_MISMATCH
            with pytest.raises(SearchUnavailableError, match="embedder it was made with"):
                store.search("kettle", mode="vector")
            with pytest.raises(ConfigurationError):
                store.add("given", vector=[1.0] * (other.dimension or 0))
    settings = StoreSettings(embedding=BY_HAND)
    with twofold.open(path, embedder=FakeEmbedder(8, name="one"), settings=settings) as store:
        assert store.search("kettle").has(DegradationCode.VECTORS_PENDING)
        assert store.search("kettle", mode="vector").ids == ("m1",)
        assert store.check().ok


@pytest.mark.parametrize("vector", [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [float("nan"), 1.0], [], "ab"])
def test_a_vector_that_cannot_be_compared_is_refused(vector: Any) -> None:
    with open_with(GivenVectors("v", 2), {"m1": "x"}, {"m1": [1.0, 0.0]}) as store, pytest.raises(InvalidVectorError):
        store.search("x", vector=vector)


def test_vectors_that_the_caller_brings() -> None:
    """hybrid when a vector is given, else keywords; neither is a degradation."""
    with open_with(GivenVectors("v", 2), {"m1": "kettle", "m2": "teapot"}, {"m1": [1, 0], "m2": [0, 1]}) as store:
        hybrid = store.search("kettle", vector=[0.0, 1.0])
        assert {hit.id: hit.score for hit in hybrid} == pytest.approx({"m2": 0.6, "m1": 0.4})
        assert hybrid.ids == ("m2", "m1")
        keyword = store.search("kettle")
        assert (keyword.ids, keyword.degraded, keyword[0].score) == (("m1",), False, 1.0)
        assert store.search("nothing", vector={"text": [0.0, 1.0]}).ids == ("m2", "m1")


def test_a_long_query_is_cut_to_its_rarest_tokens_and_says_so() -> None:
    with open_with(None, {"m1": "kettle kettle", "m2": "other"}) as store:
        long = " ".join(f"word{number}" for number in range(20_000)) + " kettle"
        result = store.search(long)
        assert result.ids == ("m1",)
        assert [each.code for each in result.degradations] == [DegradationCode.QUERY_TRUNCATED]
        assert store.search(" ".join(f"word{number}" for number in range(100)) + " kettle").degraded is False


def test_a_trace_tells_each_stage(mixed: HybridStore) -> None:
    result = mixed.search("kettle", params=SearchParams(trace=True))
    assert result.trace is not None
    assert [stage.name for stage in result.trace] == ["embed", "vector", "keyword", "rescore", "fuse", "hydrate"]
    by_name = {stage.name: stage.detail for stage in result.trace}
    assert by_name["keyword"]["found"] == 2
    assert by_name["vector"]["found"] == 3
    assert by_name["hydrate"]["ids"] == ["m1", "m3", "m2"]
    assert set(result.timings) == set(by_name)


def test_a_trace_costs_nothing_when_not_asked_for(mixed: HybridStore, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Told] = []
    make = Told.__new__

    def making(cls: type[Told], *parts: Any) -> Told:
        told.append(make(cls, *parts))
        return told[-1]

    monkeypatch.setattr(Told, "__new__", making)
    backend: Any = mixed._parts.backend

    def statements_of(params: SearchParams) -> tuple[Counter[str], SearchResult]:
        statements: list[str] = []
        told.clear()
        with backend.read() as reader:
            connection = reader._connection  # a store in memory has no other
        connection.set_trace_callback(statements.append)
        try:
            result = mixed.search("kettle", params=params)
        finally:
            connection.set_trace_callback(None)
        return Counter(statements), result

    for _ in range(3):  # what is kept from one search to the next is there then
        mixed.search("kettle")
    plain, without = statements_of(SearchParams())
    assert not told, "nothing is told of any stage"
    assert without.trace is None
    traced, result = statements_of(SearchParams(trace=True))
    assert len(told) == len(result.trace or ()) > 0
    assert plain.total() > 0
    assert not plain - traced
    assert (traced - plain).total() == 1, "the ids of what was told"
    assert without.hits == result.hits
    assert [hit.why for hit in without] == [hit.why for hit in result]


def test_a_result_is_a_sequence_of_hits(mixed: HybridStore) -> None:
    result = mixed.search("kettle")
    assert len(result) == 3
    assert result[0].id == "m1"
    assert [hit.id for hit in result[1:]] == ["m3", "m2"]
    assert result[0] in result
    assert bool(mixed.search("")) is False
