"""What ``TwofoldRetriever`` is asked, and by whom."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.schema import NodeWithScore, QueryBundle

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever, TwofoldSearchEvent
from twofold import Access, HybridStore, SearchParams
from twofold.testing import FlakyEmbedder

OpenStore = Callable[..., HybridStore]


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def embedder_of(store: HybridStore) -> FlakyEmbedder:
    embedder = store._parts.embedder
    assert isinstance(embedder, FlakyEmbedder)
    return embedder


def texts(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.text for each in found]


async def test_the_bundles_embedding_is_used_and_nothing_is_embedded(fruit: HybridStore) -> None:
    embedder = embedder_of(fruit)
    calls = embedder.calls
    bundle = QueryBundle("banana", embedding=[0.0, 0.0, 1.0])
    retriever = TwofoldRetriever(fruit, similarity_top_k=3)
    found = retriever.retrieve(bundle)
    assert ids(found) == ids(await retriever.aretrieve(bundle))
    assert set(ids(found)[:2]) == {"beta", "gamma"}  # by keyword and by vector
    assert embedder.calls == calls
    assert bundle == QueryBundle("banana", embedding=[0.0, 0.0, 1.0])


async def test_custom_strings_give_the_meaning_and_the_query_the_keywords(fruit: HybridStore, recorder: Any) -> None:
    """HyDE: the mean of the strings is (0, 0.1, 1), so gamma is nearest and beta next; the keyword is alpha's."""
    embedder = embedder_of(fruit)
    bundle = QueryBundle("apple", custom_embedding_strs=["answer one", "answer two"])
    before = copy.deepcopy(bundle)
    retriever = TwofoldRetriever(fruit, similarity_top_k=3)
    for found in (retriever.retrieve(bundle), await retriever.aretrieve(bundle)):
        assert retriever.last_result is not None
        legs = {hit.id: {leg: each.rank for leg, each in hit.explanation.legs.items()} for hit in retriever.last_result}
        assert legs == {"alpha": {"keyword": 1, "vector": 3}, "gamma": {"vector": 1}, "beta": {"vector": 2}}
        by_id = {hit.id: hit for hit in retriever.last_result}
        assert by_id["gamma"].explanation.legs["vector"].raw == pytest.approx(1 / (1 + 0.1**2) ** 0.5)
        assert set(ids(found)) == set(legs)
    assert "apple" not in embedder.texts
    assert bundle == before
    assert [event.vector_source for event in recorder.of(TwofoldSearchEvent)] == ["custom_strings"] * 2


async def test_custom_strings_when_the_embedder_is_down(fruit: HybridStore) -> None:
    embedder_of(fruit).down = True
    bundle = QueryBundle("apple", custom_embedding_strs=["answer one"])
    retriever = TwofoldRetriever(fruit)
    assert ids(retriever.retrieve(bundle)) == ids(await retriever.aretrieve(bundle)) == ["alpha"]
    assert retriever.last_result is not None
    assert retriever.last_result.has("embedder_unreachable")


def test_custom_strings_that_cancel_out_are_as_if_there_were_none(fruit: HybridStore) -> None:
    bundle = QueryBundle("question", custom_embedding_strs=["minus", "plus"])
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1).retrieve(bundle)) == ["beta"]  # 0.8 against alpha's 0.6


@pytest.mark.parametrize("embedding", [[], None, [1.0], [1.0] * 384, [0.0, 0.0, 0.0], [float("nan"), 1.0, 1.0]])
async def test_an_embedding_that_is_not_the_stores_is_as_if_there_were_none(
    fruit: HybridStore, embedding: list[float] | None
) -> None:
    """LlamaIndex's own retriever writes its model's embedding into a bundle that others get too."""
    retriever = TwofoldRetriever(fruit, similarity_top_k=1)
    bundle = QueryBundle("question", embedding=embedding)
    assert ids(retriever.retrieve(bundle)) == ids(await retriever.aretrieve(bundle)) == ["beta"]


def test_an_embedding_is_no_harm_where_there_is_no_embedder(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    assert texts(retriever.retrieve(QueryBundle("deploy", embedding=[1.0]))) == ["The deploy key."]
    assert texts(retriever.retrieve(QueryBundle("deploy", custom_embedding_strs=["x"]))) == ["The deploy key."]
    with pytest.raises(twofold.SearchUnavailableError):
        TwofoldRetriever(store, mode="vector").retrieve(QueryBundle("deploy", embedding=[1.0]))


def test_a_bundles_embedding_may_be_left_out_of_account(fruit: HybridStore) -> None:
    bundle = QueryBundle("question", embedding=[0.0, 0.0, 1.0])
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1).retrieve(bundle)) == ["gamma"]
    assert ids(TwofoldRetriever(fruit, similarity_top_k=1, use_bundle_embedding=False).retrieve(bundle)) == ["beta"]


def test_keyword_mode_embeds_nothing(fruit: HybridStore) -> None:
    embedder = embedder_of(fruit)
    calls = embedder.calls
    bundle = QueryBundle("apple", embedding=[0.0, 0.0, 1.0], custom_embedding_strs=["answer one"])
    assert ids(TwofoldRetriever(fruit, mode="keyword").retrieve(bundle)) == ["alpha"]
    assert ids(TwofoldRetriever(fruit, mode="keyword", use_bundle_embedding=False).retrieve(bundle)) == ["alpha"]
    assert embedder.calls == calls


def test_how_many(fruit: HybridStore) -> None:
    assert TwofoldRetriever(fruit).similarity_top_k == DEFAULT_SIMILARITY_TOP_K
    assert len(TwofoldRetriever(fruit).retrieve("question")) == DEFAULT_SIMILARITY_TOP_K
    assert len(TwofoldRetriever(fruit, similarity_top_k=10).retrieve("question")) == 3
    assert TwofoldRetriever(fruit, similarity_top_k=0).retrieve("question") == []
    retriever = TwofoldRetriever(fruit)
    retriever.similarity_top_k = 1
    assert len(retriever.retrieve("question")) == 1


@pytest.mark.parametrize("embedder", ["fake", None])
async def test_an_empty_store_and_an_empty_question(open_store: OpenStore, embedder: Any) -> None:
    """deepset-ai/haystack#11598, run-llama/llama_index#11005."""
    store = open_store(embedder=embedder)
    retriever = TwofoldRetriever(store)
    assert retriever.retrieve("anything") == await retriever.aretrieve("anything") == []
    store.add("The deploy key.")
    assert retriever.retrieve("") == await retriever.aretrieve("?!") == []


def test_access_where_mode_and_params_hold(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key of all.", metadata={"team": "ops"})
    store.add("Lunch is at noon.")
    store.add("The deploy key of u1.", access=Access(user="u1"))
    everyone, own = TwofoldRetriever(store, similarity_top_k=9), Access(user="u1")
    assert set(texts(everyone.retrieve("deploy"))) == {"The deploy key of all.", "Lunch is at noon."}
    assert len(TwofoldRetriever(store, similarity_top_k=9, access=own).retrieve("deploy")) == 3
    assert len(TwofoldRetriever(store.view(own), similarity_top_k=9).retrieve("deploy")) == 3
    assert texts(TwofoldRetriever(store, where={"team": "ops"}).retrieve("deploy")) == ["The deploy key of all."]
    assert texts(TwofoldRetriever(store, mode="keyword").retrieve("deploy")) == ["The deploy key of all."]
    for strict in (SearchParams(min_score=0.4), SearchParams.preset("rrf", min_score=0.9)):
        assert texts(TwofoldRetriever(store, params=strict).retrieve("deploy")) == ["The deploy key of all."]
    assert len(everyone.retrieve("deploy")) == 2


@pytest.mark.parametrize(
    "wrong",
    [{"store": "memory.db"}, {"similarity_top_k": -1}, {"similarity_top_k": True}, {"mode": "both"}],
)
def test_what_it_cannot_use_is_refused_at_construction(open_store: OpenStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(twofold.ConfigurationError, match=next(iter(wrong))):
        TwofoldRetriever(**{"store": open_store(), **wrong})


@pytest.mark.parametrize("name", ["filter", "top_k", "k"])
def test_an_unknown_argument_is_refused(open_store: OpenStore, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        TwofoldRetriever(open_store(), **{name: 1})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"access": "u1"}, twofold.ConfigurationError),
        ({"params": {"pool": 3}}, twofold.ConfigurationError),
        ({"where": {"a": {"$near": 1}}}, twofold.UnsupportedFilterError),
    ],
)
async def test_what_the_store_refuses_is_raised(fruit: HybridStore, wrong: dict[str, Any], error: Any) -> None:
    for bundle in (QueryBundle("apple"), QueryBundle("apple", embedding=[1.0, 0.0, 0.0])):
        with pytest.raises(error):
            TwofoldRetriever(fruit, **wrong).retrieve(bundle)
        with pytest.raises(error):
            await TwofoldRetriever(fruit, **wrong).aretrieve(bundle)


# For one call


async def test_14959_options_of_one_call_leave_the_retriever_as_it_was(open_store: OpenStore) -> None:
    """run-llama/llama_index#14959: filters for a retrieval, and not only in the constructor."""
    store = open_store()
    store.add("The deploy key of ops.", id="ops", metadata={"team": "ops"})
    store.add("The deploy key of sales.", id="sales", metadata={"team": "sales"})
    store.add("The deploy key of ann.", id="ann", access=Access(user="ann"))
    retriever = TwofoldRetriever(store, similarity_top_k=9)
    for team in ("ops", "sales"):
        one = retriever.with_options(where={"team": team})
        assert ids(one.retrieve("deploy key")) == ids(await one.aretrieve("deploy key")) == [team]
        assert one.last_result is not None
    assert retriever.last_result is None
    ann = retriever.with_options(access=Access(user="ann"), similarity_top_k=1, mode="keyword")
    assert ids(ann.retrieve("ann")) == ["ann"]
    assert set(ids(retriever.retrieve("deploy key"))) == {"ops", "sales"}
    assert retriever.with_options().last_result is None
    assert set(ids(ann.with_options(access=None, similarity_top_k=9).retrieve("deploy key"))) == {"ops", "sales"}


def test_params_or_a_preset_of_one_call_take_the_place_of_both(fruit: HybridStore) -> None:
    retriever = TwofoldRetriever(fruit, preset="muninn")
    strict = retriever.with_options(params=SearchParams(min_score=1.0))
    assert ids(strict.retrieve("alpha apple")) == ["alpha"]
    assert strict.with_options(preset="localmem").params is None
    assert (retriever.preset, retriever.params) == ("muninn", None)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"k": 3}, TypeError),
        ({"similarity_top_k": -1}, twofold.ConfigurationError),
        ({"mode": "both"}, twofold.ConfigurationError),
        ({"access": "ann"}, twofold.ConfigurationError),
        ({"namespace": "notes"}, twofold.ConfigurationError),
        ({"namespace": (1,)}, twofold.TwofoldError),
    ],
)
def test_what_a_call_cannot_use_is_refused(fruit: HybridStore, wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(wrong))):
        TwofoldRetriever(fruit).with_options(**wrong)


def test_a_namespace_is_itself_and_not_what_is_below_it(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    for namespace in ((), ("notes",), ("notes", "old"), ("mail",)):
        store.add(
            "The deploy key.", id="/".join(namespace) or "root", namespace=namespace, metadata={"a": len(namespace)}
        )
    everywhere = TwofoldRetriever(store, similarity_top_k=9)
    assert set(ids(everywhere.retrieve("deploy"))) == {"root", "notes", "notes/old", "mail"}
    for namespace, name in (((), "root"), (("notes",), "notes"), (["notes", "old"], "notes/old")):
        assert ids(everywhere.with_options(namespace=namespace).retrieve("deploy")) == [name]
    notes = everywhere.with_options(namespace=("notes",), where={"a": 2})
    assert ids(notes.retrieve("deploy")) == []
    assert ids(notes.with_options(where=twofold.F("a") == 1).retrieve("deploy")) == ["notes"]
