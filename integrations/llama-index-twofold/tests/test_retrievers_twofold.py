"""``TwofoldRetriever`` as an object: threads, tasks, copies, files."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever
from twofold import HybridStore, SearchParams

OpenStore = Callable[..., HybridStore]


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def texts(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.text for each in found]


async def test_async_leaves_the_loop_free(open_store: OpenStore, gated: Any) -> None:
    """run-llama/llama_index#21159: only a loop that runs can open the gate that the embedder waits at."""
    store = open_store(embedder=gated)
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store)
    for bundle in (QueryBundle("deploy key"), QueryBundle("deploy key", custom_embedding_strs=["the key"])):
        gated.entered.clear()
        gated.gate.clear()
        call = asyncio.create_task(retriever.aretrieve(bundle))
        while not gated.entered.is_set():
            await asyncio.sleep(0)
        gated.gate.set()
        assert texts(await call) == ["The deploy key."]
    assert gated.in_time == [True, True]


async def test_an_async_embedder_runs_on_the_callers_loop(open_store: OpenStore) -> None:
    loops = []

    async def embed(given: list[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        return [[1.0, 0.0] for _ in given]

    store = open_store(embedder=twofold.CallableEmbedder(embed, name="async"))
    await store.aadd("The deploy key.")
    bundle = QueryBundle("deploy", custom_embedding_strs=["key"])
    assert texts(await TwofoldRetriever(store).aretrieve(bundle)) == ["The deploy key."]
    assert loops == [asyncio.get_running_loop()] * 2


async def test_the_sync_call_works_inside_a_running_loop(open_store: OpenStore) -> None:
    """run-llama/llama_index#9978."""
    store = open_store()
    store.add("The deploy key.")
    assert texts(TwofoldRetriever(store).retrieve("deploy")) == ["The deploy key."]


def test_threads_share_a_retriever(open_store: OpenStore, tmp_path: Any) -> None:
    store = open_store(tmp_path / "memory.db")
    notes = [f"The deploy note of team {name}." for name in ("red", "green", "blue", "white", "black")]
    store.add_many(notes)
    retriever = TwofoldRetriever(store, similarity_top_k=1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(retriever.retrieve, notes * 10))
    assert [texts(each) for each in found] == [[note] for note in notes * 10]


def test_copies_share_the_store(open_store: OpenStore, tmp_path: Any) -> None:
    """run-llama/llama_index#14570."""
    store = open_store(tmp_path / "memory.db")
    store.add("The deploy key.", metadata={"a": 1})
    retriever = TwofoldRetriever(store, where={"a": 1}, object_map={"none": TextNode(text="")})
    retriever.retrieve("deploy")
    for twin in (copy.copy(retriever), copy.deepcopy(retriever), copy.deepcopy([retriever])[0]):
        assert twin is not retriever
        assert twin.store is store
        assert texts(twin.retrieve("deploy")) == ["The deploy key."]
    deep = copy.deepcopy(retriever)
    assert deep.where is not retriever.where
    deep.similarity_top_k = 1
    assert retriever.similarity_top_k == DEFAULT_SIMILARITY_TOP_K


def test_pickling_says_what_to_do_instead(open_store: OpenStore) -> None:
    with pytest.raises(TypeError, match=r"twofold\.open\(path\)"):
        pickle.dumps(TwofoldRetriever(open_store()))


def test_the_repr_is_short_and_tells_no_record(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The secret deploy key.")
    retriever = TwofoldRetriever(store)
    assert retriever.last_result is None
    retriever.retrieve("deploy")
    assert repr(retriever) == "TwofoldRetriever(HybridStore(':memory:'), similarity_top_k=2)"


async def test_linked_records_follow_the_hits_if_asked_for(open_store: OpenStore) -> None:
    store = open_store()
    for id_, text in (("hit", "a red kettle"), ("near", "a pear"), ("far", "a fig")):
        store.add(text, id=id_)
    store.link("hit", "near")
    store.link("near", "far")
    params = SearchParams(expand=2, hops=2)
    retriever = TwofoldRetriever(store, similarity_top_k=1, params=params, mode="keyword", include_linked=True)
    for nodes in (retriever.retrieve("kettle"), await retriever.aretrieve("kettle")):
        assert [node.node.id_ for node in nodes] == ["hit", "near", "far"]
        scores = [node.score for node in nodes if node.score is not None]
        assert scores[0] > scores[1] > scores[2] > 0
    assert copy.copy(retriever).include_linked
    plain = TwofoldRetriever(store, similarity_top_k=1, params=params, mode="keyword")
    assert [node.node.id_ for node in plain.retrieve("kettle")] == ["hit"]


# Over a file


async def test_over_a_path_with_an_embedding_model_of_llama_index(tmp_path: Any) -> None:
    path, model = tmp_path / "memory.db", MockEmbedding(embed_dim=8)
    with TwofoldRetriever.over(path, embed_model=model, embed_model_name="mine", similarity_top_k=1) as retriever:
        retriever.store.add("The deploy key.", metadata={"a": 1})
        assert texts(retriever.retrieve("deploy key")) == ["The deploy key."]
        assert retriever.last_result is not None
        assert not retriever.last_result.degraded
        with retriever.with_options(where={"a": 1}) as twin:
            assert texts(await twin.aretrieve("key")) == ["The deploy key."]
        assert texts(retriever.retrieve("deploy key")) == ["The deploy key."]  # the twin closed nothing
    with pytest.raises(twofold.StoreClosedError):
        retriever.retrieve("deploy key")
    with TwofoldRetriever.over(str(path)) as again:
        assert texts(again.retrieve("deploy key")) == ["The deploy key."]


def test_over_a_path_opens_nothing_that_it_cannot_use(tmp_path: Any) -> None:
    for wrong in (
        {"similarity_top_k": -1},
        {"embed_model": MockEmbedding(embed_dim=8)},  # which model is it?
        {"embed_model_name": "mine"},
    ):
        with pytest.raises(twofold.ConfigurationError):
            TwofoldRetriever.over(tmp_path / "none.db", **wrong)
    with pytest.raises(TypeError, match="top_k"):
        TwofoldRetriever.over(tmp_path / "none.db", top_k=3)  # type: ignore[call-arg]
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_given_is_not_closed(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    with TwofoldRetriever(store) as retriever:
        assert texts(retriever.retrieve("deploy")) == ["The deploy key."]
    assert store.count() == 1
