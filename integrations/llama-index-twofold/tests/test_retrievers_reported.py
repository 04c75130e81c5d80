"""What was reported of other retrievers, LlamaIndex's own among them, does not happen to ``TwofoldRetriever``.

Numbers are those of run-llama/llama_index unless another repository is named.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import SummaryIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever
from twofold import A, Access, HybridStore, SearchParams, StoreSettings
from twofold.testing import FailingEmbedder

OpenStore = Callable[..., HybridStore]


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [each.node_id for each in found]


def fused(retrievers: list[BaseRetriever], mode: Any, k: int = 9) -> QueryFusionRetriever:
    return QueryFusionRetriever(
        retrievers, llm=MockLLM(), num_queries=1, mode=mode, similarity_top_k=k, use_async=False
    )


class Given(BaseRetriever):
    """Finds what it was given."""

    def __init__(self, found: dict[str, float]) -> None:
        super().__init__()
        self.found = found

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(id_=id_, text=id_), score=score) for id_, score in self.found.items()]


def test_21444_a_weight_scales_the_leg_and_zero_leaves_it_out(fruit: HybridStore) -> None:
    """The keyword leg finds alpha alone, the vector leg all three, alpha last."""
    bundle = QueryBundle("apple", embedding=[0.0, 0.6, 0.8])
    for keyword, vector in ((1.0, 1.0), (0.3, 0.7), (2.0, 0.5)):
        params = SearchParams.preset("rrf", keyword_weight=keyword, vector_weight=vector, prior="none")
        found = TwofoldRetriever(fruit, similarity_top_k=3, params=params).retrieve(bundle)
        best = (keyword + vector) / 61
        assert {each.node_id: each.score for each in found} == pytest.approx(
            {
                "alpha": (keyword / 61 + vector / 63) / best,
                "gamma": vector / 61 / best,
                "beta": vector / 62 / best,
            }
        )
    only_vector = SearchParams(keyword_weight=0, prior="none")
    found = TwofoldRetriever(fruit, similarity_top_k=3, params=only_vector).retrieve(bundle)
    assert ids(found) == ["gamma", "beta", "alpha"]


async def test_22642_alpha_0_is_keywords_only_sync_and_async(fruit: HybridStore) -> None:
    bundle = QueryBundle("apple", embedding=[0.0, 0.0, 1.0])
    for alpha, first in ((0.0, "alpha"), (1.0, "gamma")):
        retriever = TwofoldRetriever(fruit, params=SearchParams(fusion="alpha", alpha=alpha))
        assert ids(retriever.retrieve(bundle))[0] == first
        assert [(each.node_id, each.score) for each in retriever.retrieve(bundle)] == [
            (each.node_id, each.score) for each in await retriever.aretrieve(bundle)
        ]
    assert ids(TwofoldRetriever(fruit, params=SearchParams(fusion="alpha", alpha=0.0)).retrieve(bundle)) == ["alpha"]


@pytest.mark.parametrize("mode", ["relative_score", "dist_based_score"])
def test_22386_scores_are_floats_that_relative_fusion_can_use(open_store: OpenStore, mode: Any) -> None:
    store = open_store(embedder=FailingEmbedder())
    store.add_many([{"text": "deploy key", "id": "a"}, {"text": "deploy", "id": "b"}])
    found = fused([TwofoldRetriever(store), Given({"other": 0.5})], mode).retrieve("deploy key")
    assert set(ids(found)) == {"a", "b", "other"}
    assert all(isinstance(each.score, float) for each in found)


def test_11538_a_record_found_twice_in_simple_fusion_keeps_its_better_score(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("a", id="a", tags=("deploy",))
    found = fused([Given({"a": 0.25}), TwofoldRetriever(store), Given({"a": 0.125})], "simple").retrieve("deploy")
    assert [(each.text, each.score) for each in found] == [("a", 1.0)]


def test_15172_and_14383_equal_texts_are_records_of_their_own(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("The deploy key.", id="one", metadata={"page": 1}, source="doc 1")
    store.add("The deploy key.", id="two", metadata={"page": 2}, source="doc 1")
    store.add("The deploy key.", id="three", metadata={"page": 2}, source="doc 2")
    found = TwofoldRetriever(store, similarity_top_k=9).retrieve("deploy")
    assert {each.node_id: each.node.ref_doc_id for each in found} == {"one": "doc 1", "two": "doc 1", "three": "doc 2"}


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
def test_12881_keywords_count_in_a_fusion_without_embeddings(open_store: OpenStore, mode: Any) -> None:
    store = open_store(embedder=None)
    store.add("The deploy key.", id="key")
    found = fused([Given({"one": 0.5, "two": 0.25}), TwofoldRetriever(store)], mode).retrieve("deploy")
    assert "key" in ids(found)
    assert all(each.get_score(raise_error=True) >= 0 for each in found)


def test_22897_a_filter_is_strict_and_fewer_hits_are_fine(open_store: OpenStore) -> None:
    store = open_store()
    for number in range(20):
        store.add(f"The deploy key {number}.", id=str(number), metadata={"team": "ops" if number < 2 else "sales"})
    found = TwofoldRetriever(store, similarity_top_k=10, where={"team": "ops"}).retrieve("deploy key")
    assert sorted(ids(found)) == ["0", "1"]
    assert all(each.get_score() > 0 for each in found)


def test_9705_a_filter_that_lets_nothing_through_gives_nothing(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", metadata={"team": "ops"})
    assert TwofoldRetriever(store, where={"team": "none"}).retrieve("deploy key") == []


def test_19656_a_file_that_is_opened_again_answers_the_same(tmp_path: Any) -> None:
    path, found = tmp_path / "memory.db", []
    with twofold.open(path, settings=StoreSettings(language="german")) as store:
        store.add("Die Schlüssel liegen im Tresor.", id="key", metadata={"a": 1})
        found += TwofoldRetriever(store).retrieve("Schlüsseln")
    with twofold.open(path, settings=StoreSettings(language="german")) as store:
        found += TwofoldRetriever(store).retrieve("Schlüsseln")
    assert [(each.node_id, each.score, each.metadata) for each in found] == [("key", 1.0, {"a": 1})] * 2


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Italy is in the south.", "Italy"),
        ("Deployments run on Fridays.", "deployment friday"),
        ("我喜欢喝绿茶。", "绿茶"),
        ("Ёлка стоит у окна.", "елка"),
        ("ERR_CONN_REFUSED_7 came again", "ERR_CONN_REFUSED_7"),
        ("قَهْوَة", "قهوة"),
    ],
)
def test_14960_and_13866_words_are_found_as_they_were_stored_in_any_writing(
    open_store: OpenStore, text: str, asked: str
) -> None:
    store = open_store(embedder=None)
    store.add(text, id="it")
    store.add("Something else altogether.")
    assert ids(TwofoldRetriever(store).retrieve(asked)) == ["it"]


def test_11602_documents_and_ids_restrict_and_an_empty_list_gives_nothing(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    for id_, source in (("a", "doc 1"), ("b", "doc 1"), ("c", "doc 2")):
        store.add("deploy", id=id_, source=source)
    retriever = TwofoldRetriever(store, similarity_top_k=9)
    for where, found in (
        (A.source.in_(["doc 1"]), ["a", "b"]),
        (A.source.in_([]), []),
        (A.id.in_(["b", "c"]), ["b", "c"]),
        (A.id.in_(["b", "c"]) & A.source.in_(["doc 1"]), ["b"]),
        (A.id.in_(["none"]), []),
    ):
        assert sorted(ids(retriever.with_options(where=where).retrieve("deploy"))) == found


def test_17025_keys_of_the_users_own_can_be_asked_for(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("deploy", id="a", metadata={"document_id": "7", "doc_id": 8, "ref_doc_id": None})
    store.add("deploy", id="b", metadata={"document_id": "9"})
    (found,) = TwofoldRetriever(store, where={"document_id": "7", "doc_id": 8}).retrieve("deploy")
    assert found.metadata == {"document_id": "7", "doc_id": 8, "ref_doc_id": None}


@pytest.mark.parametrize("key", ["author' = 'alice' OR '1'='1' --", 'a"b', "a.b", "$", "x\\"])
def test_22475_a_filters_key_and_value_are_data(open_store: OpenStore, key: str) -> None:
    store = open_store(embedder=None)
    store.add("deploy", id="a", metadata={"author": "alice"})
    retriever = TwofoldRetriever(store)
    for value in ("alice", key, "' OR 1=1 --"):
        assert retriever.with_options(where=twofold.F((key,)) == value).retrieve("deploy") == []
    store.add("deploy", id="b", metadata={key: key})
    assert ids(retriever.with_options(where=twofold.F((key,)) == key).retrieve("deploy")) == ["b"]


def test_16588_the_keyword_leg_shows_nobody_elses(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    for user in ("ann", "ben"):
        store.add("The locker code.", id=user, access=Access(user=user))
    store.add("The locker code.", id="room", access=Access(rooms=("gym",)))
    for access, seen in (
        (Access(), []),
        (Access(user="ann"), ["ann"]),
        (Access(user="ben", rooms=("gym",)), ["ben", "room"]),
    ):
        assert sorted(ids(TwofoldRetriever(store, similarity_top_k=9, access=access).retrieve("locker code"))) == seen


async def test_21159_the_loop_goes_on_while_the_embedder_hangs(open_store: OpenStore, gated: Any) -> None:
    """The embedder waits for an event that is set after a hundred beats of the loop, counted during the retrieval."""
    store = open_store(embedder=gated)
    store.add("The deploy key.", id="key")
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    retrieval = asyncio.create_task(TwofoldRetriever(store).aretrieve("deploy key"))
    while not gated.entered.is_set():
        await asyncio.sleep(0)
    task = asyncio.create_task(heart())
    while beats < 100:
        assert not retrieval.done()
        await asyncio.sleep(0)
    gated.gate.set()
    assert ids(await retrieval) == ["key"]
    task.cancel()
    assert gated.in_time == [True]


async def test_a_composed_index_leads_to_it(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("The deploy key lives in the vault.", id="key")
    node = IndexNode(text="Notes of the team.", index_id="notes", obj=TwofoldRetriever(store))
    composed = SummaryIndex(objects=[node]).as_retriever()
    assert ids(composed.retrieve("deploy key")) == ids(await composed.aretrieve("deploy key")) == ["key"]


@pytest.mark.parametrize("embedder", ["refusing", "hanging", None])
async def test_a_missing_embedder_leaves_keywords(open_store: OpenStore, embedder: str | None) -> None:
    release = threading.Event()

    def hang(texts: Sequence[str]) -> list[list[float]]:
        release.wait(60)
        raise AssertionError("nobody waits for this any more")

    made = {
        "refusing": FailingEmbedder(),
        "hanging": twofold.CallableEmbedder(hang, name="hanging", dimension=2),
        None: None,
    }[embedder]
    settings = StoreSettings(embedding=twofold.EmbeddingSettings(query_deadline=0.01, document_deadline=0.01))
    store = open_store(embedder=made, settings=settings)
    try:
        store.add("The deploy key.", id="key")
        retriever = TwofoldRetriever(store)
        assert ids(retriever.retrieve("deploy key")) == ids(await retriever.aretrieve("deploy key")) == ["key"]
    finally:
        release.set()


async def test_11969_and_21611_a_record_stands_for_a_node_a_retriever_or_an_engine(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("Summary: all of deploying.", id="summary")
    store.add("Lunch is at noon.", id="lunch")
    details = open_store(embedder=None)
    details.add("The deploy key lives in the vault. All of deploying.", id="detail")
    inner = TwofoldRetriever(details)
    node = TextNode(id_="page", text="The whole page.")
    for objects, found in (
        ([IndexNode(text="", index_id="summary", obj=inner)], "detail"),
        ([IndexNode(text="", index_id="summary", obj=node)], "page"),
    ):
        retriever = TwofoldRetriever(store, similarity_top_k=1, objects=objects)
        assert ids(retriever.retrieve("deploying")) == ids(await retriever.aretrieve("deploying")) == [found]
    by_name = RecursiveRetriever(
        "vector",
        retriever_dict={
            "vector": TwofoldRetriever(
                store, similarity_top_k=1, object_map={"summary": IndexNode(text="", index_id="inner")}
            ),
            "inner": inner,
        },
    )
    assert ids(by_name.retrieve("deploying")) == ["detail"]


def test_6250_what_is_deleted_or_changed_is_not_found(open_store: OpenStore) -> None:
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    store = open_store(settings=StoreSettings(index="faiss-flat"))
    store.add("red kettle", id="a", metadata={"page": 1})
    store.add("blue car", id="b")
    retriever = TwofoldRetriever(store, similarity_top_k=9)
    assert ids(retriever.retrieve("red kettle")) == ["a", "b"]
    store.update("a", text="green tree", metadata={"page": 2})
    (first, *_) = retriever.retrieve("green tree")
    assert (first.node_id, first.metadata) == ("a", {"page": 2})
    store.delete("a")
    assert ids(retriever.retrieve("green tree")) == ["b"]


def test_23199_a_neighbour_never_takes_the_place_of_a_hit(open_store: OpenStore) -> None:
    """A record that is found and linked to as well is there once, with the score of the hit."""
    store = open_store(embedder=None)
    store.add("red kettle", id="a")
    store.add("kettle", id="b")
    store.add("pear", id="c")
    store.link("a", "b")
    store.link("b", "c")
    params = SearchParams(expand=3)
    plain = TwofoldRetriever(store, similarity_top_k=2, params=params).retrieve("red kettle")
    found = TwofoldRetriever(store, similarity_top_k=2, params=params, include_linked=True).retrieve("red kettle")
    assert ids(found) == ["a", "b", "c"]
    assert [each.score for each in found[:2]] == [each.score for each in plain]
    assert 0 < found[2].get_score(raise_error=True) < found[1].get_score(raise_error=True)


def test_mem0_7196_reading_goes_on_while_others_write(tmp_path: Any) -> None:
    """mem0ai/mem0#7196: "database is locked"."""
    with twofold.open(tmp_path / "memory.db") as one, twofold.open(tmp_path / "memory.db") as other:
        one.add("The deploy key.", id="key")
        retriever = TwofoldRetriever(other, similarity_top_k=1)
        with ThreadPoolExecutor(4) as pool:
            writing = [pool.submit(one.add, f"note {number}") for number in range(20)]
            found = list(pool.map(retriever.retrieve, ["deploy key"] * 20))
            assert [each.result().outcome for each in writing] == ["added"] * 20
    assert [ids(each) for each in found] == [["key"]] * 20


def test_23184_the_first_use_by_many_threads(tmp_path: Any) -> None:
    def first(number: int) -> list[str]:
        with twofold.open(tmp_path / "memory.db") as store:
            store.add("The deploy key.", id=str(number))
            assert store.add_many([]).ids == ()
            return ids(TwofoldRetriever(store, similarity_top_k=9).retrieve("deploy"))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(first, range(4)))
    assert all(str(number) in each for number, each in enumerate(found))
