"""Scores of ``TwofoldRetriever`` that a cut-off can be set on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever
from twofold import PRESETS, HybridStore, SearchParams
from twofold.testing import FlakyEmbedder, TableEmbedder

OpenStore = Callable[..., HybridStore]

TABLE = {
    "red kettle": [1.0, 0.0],
    "crimson pot": [0.8, 0.6],
    "blue car": [-0.6, 0.8],
    "green kettle": [0.28, 0.96],
    "red kettle?": [1.0, 0.0],
    "kettle?": [0.6, 0.8],
}
COSINES = {"red kettle": 1.0, "crimson pot": 0.8, "green kettle": 0.28, "blue car": 0.0}  # to "red kettle?"


def scores(found: Sequence[NodeWithScore]) -> dict[str, float]:
    return {each.text: each.get_score(raise_error=True) for each in found}


@pytest.fixture
def things(open_store: OpenStore) -> HybridStore:
    store = open_store(embedder=FlakyEmbedder(TableEmbedder(TABLE)))
    store.add_many(["red kettle", "crimson pot", "green kettle", "blue car"])
    return store


async def test_a_similarity_is_the_cosine_whichever_leg_found_the_record(things: HybridStore) -> None:
    """The vector leg gives one candidate only; "green kettle" comes by keyword, with its cosine all the same."""
    params = SearchParams(vector_pool=1)
    retriever = TwofoldRetriever(things, similarity_top_k=2, scores="similarity", params=params)
    for found in (retriever.retrieve("red kettle?"), await retriever.aretrieve("red kettle?")):
        assert scores(found) == pytest.approx({"red kettle": 1.0, "green kettle": 0.28})
        assert list(scores(found)) == ["red kettle", "green kettle"]


def test_577_a_cutoff_keeps_what_is_near_and_nothing_else(things: HybridStore) -> None:
    """basicmachines-co/basic-memory#577, norrietaylor/distillery#170: ranks alone do not say how good a match is."""
    near = TwofoldRetriever(things, similarity_top_k=4, scores="similarity")
    found = near.retrieve("red kettle?")
    assert scores(found) == pytest.approx(COSINES, abs=1e-8)
    assert all(score > 0 for score in scores(found).values())  # LlamaIndex takes 0 for no score
    for cutoff, kept in ((0.9, 1), (0.5, 2), (0.1, 3)):
        left = SimilarityPostprocessor(similarity_cutoff=cutoff).postprocess_nodes(found)
        assert list(scores(left)) == list(COSINES)[:kept]
    by_rank = SimilarityPostprocessor(similarity_cutoff=0.4).postprocess_nodes(
        TwofoldRetriever(things, similarity_top_k=4, params=PRESETS["rrf"]).retrieve("red kettle?")
    )
    assert len(by_rank) > len([cosine for cosine in COSINES.values() if cosine >= 0.4])
    assert len(LongContextReorder().postprocess_nodes(found)) == 4


def test_the_records_are_those_of_the_ranking_in_the_order_of_their_similarity(things: HybridStore) -> None:
    by_rank = TwofoldRetriever(things, similarity_top_k=3).retrieve("kettle?")
    near = TwofoldRetriever(things, similarity_top_k=3, scores="similarity").retrieve("kettle?")
    assert set(scores(near)) == set(scores(by_rank))
    assert list(scores(near).values()) == sorted(scores(near).values(), reverse=True)


def test_without_a_cosine_it_is_the_keyword_score(things: HybridStore) -> None:
    """The embedder is down: what is found by keyword is not lost to a cut-off."""
    embedder = things._parts.embedder
    assert isinstance(embedder, FlakyEmbedder)
    embedder.down = True
    retriever = TwofoldRetriever(things, similarity_top_k=4, scores="similarity")
    found = scores(retriever.retrieve("red kettle?"))
    assert retriever.last_result is not None
    raw = [hit.explanation.legs["keyword"].raw for hit in retriever.last_result]
    assert list(found) == ["red kettle", "green kettle"]
    assert list(found.values()) == pytest.approx([1.0, raw[1] / raw[0]])
    kept = SimilarityPostprocessor(similarity_cutoff=0.9).postprocess_nodes(retriever.retrieve("red kettle?"))
    assert list(scores(kept)) == ["red kettle"]


def test_a_store_without_an_embedder_has_similarities_too(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add_many(["red kettle", "green kettle", "red car"])
    found = scores(TwofoldRetriever(store, similarity_top_k=3, scores="similarity").retrieve("red kettle?"))
    assert next(iter(found.items())) == ("red kettle", 1.0)
    assert all(0 < score <= 1 for score in found.values())


def test_a_record_whose_vector_is_pending_keeps_its_keyword_score(open_store: OpenStore) -> None:
    embedder = FlakyEmbedder(TableEmbedder(TABLE))
    store = open_store(
        embedder=embedder, settings=twofold.StoreSettings(embedding=twofold.EmbeddingSettings(fill_in=False))
    )
    store.add("crimson pot")
    embedder.down = True
    store.add("red kettle")
    embedder.down = False
    found = scores(TwofoldRetriever(store, scores="similarity").retrieve("red kettle?"))
    assert found == pytest.approx({"red kettle": 1.0, "crimson pot": 0.8})


@pytest.mark.parametrize("preset", [None, "balanced", "muninn", "localmem", "engram", "ariadne"])
def test_every_preset_and_every_mode_has_them(things: HybridStore, preset: str | None) -> None:
    retriever = TwofoldRetriever(things, similarity_top_k=4, scores="similarity", preset=preset)
    assert scores(retriever.retrieve("red kettle?")) == pytest.approx(COSINES, abs=1e-8)
    by_vector = retriever.with_options(mode="vector")
    assert scores(by_vector.retrieve("red kettle?")) == pytest.approx(COSINES, abs=1e-8)
    by_keyword = retriever.with_options(mode="keyword")
    assert next(iter(scores(by_keyword.retrieve("red kettle?")).items())) == ("red kettle", 1.0)


def test_linked_records_stay_below_the_last_hit(things: HybridStore) -> None:
    things.link(*(hit.id for hit in things.search("red kettle?", k=4) if hit.text in {"crimson pot", "blue car"}))
    retriever = TwofoldRetriever(
        things,
        similarity_top_k=2,
        scores="similarity",
        include_linked=True,
        mode="vector",
        params=SearchParams(expand=1),
    )
    found = scores(retriever.retrieve("red kettle?"))
    assert list(found) == ["red kettle", "crimson pot", "blue car"]
    assert retriever.last_result is not None
    last, linked = retriever.last_result.hits[1].score, retriever.last_result.linked[0].score
    assert found["blue car"] == pytest.approx(0.8 * linked / last)
    hybrid = retriever.with_options(mode="hybrid", similarity_top_k=3)
    by_both = scores(hybrid.retrieve("red kettle?"))
    assert list(by_both) == ["red kettle", "crimson pot", "green kettle", "blue car"]
    assert hybrid.last_result is not None
    last, linked = hybrid.last_result.hits[-1].score, hybrid.last_result.linked[0].score
    assert by_both["blue car"] == pytest.approx(0.28 * linked / last)
    assert last != pytest.approx(0.28)


async def test_scores_descend_where_hits_were_chosen_to_differ(things: HybridStore) -> None:
    """LlamaIndex's fusion, say, sorts by scores."""
    things.add("crimson pots", id="like crimson pot", vector=[0.8, 0.6])
    params = SearchParams.preset("rrf", mmr_lambda=0.3, vector_pool=5)
    result = things.search("red kettle?", k=4, params=params)
    raw = [hit.score for hit in result]
    assert raw != sorted(raw, reverse=True)
    retriever = TwofoldRetriever(things, similarity_top_k=4, params=params)
    for found in (retriever.retrieve("red kettle?"), await retriever.aretrieve("red kettle?")):
        assert [each.node_id for each in found] == list(result.ids)
        assert [each.score for each in found] == [min(raw[: place + 1]) for place in range(4)]
    things.link("like crimson pot", things.add("a linked thing", id="linked", vector=[-1.0, 0.0]).id)
    options = {"params": replace(params, expand=1), "include_linked": True}
    found = retriever.with_options(**options).retrieve("red kettle?")
    shown = [each.get_score() for each in found]
    assert found[-1].node_id == "linked"
    assert shown == sorted(shown, reverse=True)
    assert 0 < shown[-1] < shown[-2]


def test_other_words_for_it_are_refused(things: HybridStore) -> None:
    with pytest.raises(twofold.ConfigurationError, match="scores is one of rank, similarity"):
        TwofoldRetriever(things, scores="cosine")  # type: ignore[arg-type]
