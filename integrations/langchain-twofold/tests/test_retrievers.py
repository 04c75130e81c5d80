"""``TwofoldRetriever`` of LangChain."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import inspect
import pickle
import string
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableParallel
from pydantic import ValidationError

import twofold
from langchain_twofold import DEGRADED_EVENT, SCORES_KEY, TwofoldRetriever, TwofoldVectorStore
from twofold import A, Access, F, HybridStore, SearchParams
from twofold.testing import FakeEmbedder, FlakyEmbedder

OpenStore = Callable[..., HybridStore]

needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss-cpu is not installed")

NOTES = [f"The deploy note of team {name}." for name in ("red", "green", "blue", "white", "black")]
NESTED = {"z": [1, None, True, 1.5, {"é": "ü"}], "a": {"b": {"c": []}}, "id": 1, "_id": "x", "source": "s"}


class Recorder(BaseCallbackHandler):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.seen.append(("start", query))
        self.metadata = kwargs.get("metadata")

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.append(("end", [document.page_content for document in documents]))

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(("error", type(error)))

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.seen.append((name, [each["code"] for each in data["degradations"]]))


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


# What comes back


def test_a_document_has_the_records_id_text_and_exact_metadata(open_store: OpenStore) -> None:
    """langchain-ai/langchain#26860, #11600: the id is in ``id``, and never in the metadata."""
    store = open_store()
    added = store.add("The deploy key.", metadata=NESTED, kind="insight", tags=("ops",), source="doc")
    generated, given = store.add("Another deploy key."), store.add("A third deploy key.", id="x")
    found = {document.id: document for document in TwofoldRetriever(store=store).invoke("deploy key")}
    assert set(found) == {added.id, generated.id, given.id}
    document = found[added.id]
    assert document.page_content == "The deploy key."
    assert document.metadata == NESTED
    assert list(document.metadata) == list(NESTED)
    assert document.metadata["z"][2] is True


def test_changing_a_document_changes_nothing_else(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", metadata={"a": {"b": [1]}})
    retriever = TwofoldRetriever(store=store)
    first = retriever.invoke("deploy key")[0]
    first.metadata["a"]["b"].append(2)
    assert retriever.last_result is not None
    assert retriever.last_result[0].record.metadata == {"a": {"b": [1]}}
    assert retriever.invoke("deploy key")[0].metadata == {"a": {"b": [1]}}


def test_scores_and_reasons_stand_under_one_key_if_asked_for(open_store: OpenStore) -> None:
    """langchain-ai/langchain#16445."""
    store = open_store()
    store.add("The deploy key.", metadata={"team": "ops"})
    store.add("Lunch is at noon.")
    retriever = TwofoldRetriever(store=store, with_scores=True)
    best, other = retriever.invoke("deploy key")
    key, lunch, asked = FakeEmbedder().embed(["The deploy key.", "Lunch is at noon.", "deploy key"], "query")
    background = max(0.0, 2 / 64 * float(key @ lunch))
    assert set(best.metadata) == {"team", SCORES_KEY}
    told = best.metadata[SCORES_KEY]
    assert told["score"] == pytest.approx(0.6 * (float(key @ asked) - background) / (1 - background) + 0.4)
    assert told["legs"]["keyword"]["rank"] == told["legs"]["vector"]["rank"] == 1
    assert told["legs"]["keyword"]["raw"] > 0
    assert retriever.last_result is not None
    assert told["why"] == retriever.last_result[0].why
    assert set(other.metadata[SCORES_KEY]["legs"]) == {"vector"}
    assert other.metadata[SCORES_KEY]["score"] < told["score"]


def test_text_that_pydantic_refuses_does_not_cost_the_answer(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    store.add("a deploy \ud800 key\0", id="odd")
    store.add("a pair \ud83d\ude00 of the deploy key", id="pair")
    store.add("the deploy key 😀", id="plain")
    found = {document.id: document.page_content for document in TwofoldRetriever(store=store).invoke("deploy key")}
    assert found == {
        "odd": "a deploy \N{REPLACEMENT CHARACTER} key\0",
        "pair": "a pair 😀 of the deploy key",
        "plain": "the deploy key 😀",
    }


def test_several_fields_are_one_text() -> None:
    settings = twofold.StoreSettings(fields=("context", "action"))
    with twofold.open(":memory:", settings=settings) as store:
        store.add(fields={"context": "the deploy failed", "action": "roll back"})
        assert texts(TwofoldRetriever(store=store).invoke("deploy")) == ["the deploy failed\nroll back"]


# How many


def test_more_asked_than_there_is(open_store: OpenStore) -> None:
    """langchain-ai/langchain#1186."""
    store = open_store()
    assert TwofoldRetriever(store=store, k=10).invoke("deploy") == []
    store.add_many(NOTES[:2])
    assert len(TwofoldRetriever(store=store, k=10).invoke("deploy")) == 2


@pytest.mark.parametrize("embedder", ["fake", None])
async def test_an_empty_store_and_an_empty_question(open_store: OpenStore, embedder: Any) -> None:
    """deepset-ai/haystack#11598."""
    store = open_store(embedder=embedder)
    retriever = TwofoldRetriever(store=store)
    assert retriever.invoke("anything") == await retriever.ainvoke("anything") == []
    store.add("The deploy key.")
    assert retriever.invoke("") == retriever.invoke("?!") == await retriever.ainvoke(" ") == []


async def test_k_of_a_call_wins_once(open_store: OpenStore) -> None:
    """langchain-ai/langchain#23158."""
    store = open_store()
    store.add_many(NOTES)
    retriever = TwofoldRetriever(store=store, k=2)
    assert len(retriever.invoke("deploy", k=4)) == len(await retriever.ainvoke("deploy", k=4)) == 4
    assert len(retriever.invoke("deploy")) == len(await retriever.ainvoke("deploy")) == 2
    assert retriever.invoke("deploy", k=0) == []
    assert retriever.k == 2
    assert len(retriever.bind(k=3).invoke("deploy")) == 3


async def test_pages_neither_overlap_nor_skip(open_store: OpenStore) -> None:
    store = open_store()
    store.add_many(NOTES)
    retriever = TwofoldRetriever(store=store, k=2)
    paged = [await retriever.ainvoke("deploy note", offset=offset) for offset in (0, 2, 4)]
    assert [document for page in paged for document in page] == retriever.invoke("deploy note", k=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": -1},
        {"k": True},
        {"k": "3"},
        {"k": 2.0},
        {"mode": "both"},
        {"access": "u1"},
        {"params": {"pool": 3}},
        {"where": "team = ops"},
        {"search_kwargs": {"k": 1}},
        {"filter": {"a": 1}},
        {"top_k": 1},
        {"store": "memory.db"},
    ],
)
def test_what_it_cannot_use_is_refused_at_construction(open_store: OpenStore, wrong: dict[str, Any]) -> None:
    """langchain-ai/langchain#21492: an argument is never ignored."""
    with pytest.raises(ValidationError):
        TwofoldRetriever(**{"store": open_store(), **wrong})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"k": -1}, twofold.ConfigurationError),
        ({"k": True}, twofold.ConfigurationError),
        ({"mode": "both"}, twofold.ConfigurationError),
        ({"access": "u1"}, twofold.ConfigurationError),
        ({"params": {"pool": 3}}, twofold.ConfigurationError),
        ({"where": {"a": {"$near": 1}}}, twofold.UnsupportedFilterError),
        ({"filter": {"a": 1}}, TypeError),
        ({"top_k": 1}, TypeError),
    ],
)
async def test_what_it_cannot_use_is_refused_in_a_call(
    open_store: OpenStore, wrong: dict[str, Any], error: type[Exception]
) -> None:
    retriever = TwofoldRetriever(store=open_store())
    with pytest.raises(error):
        retriever.invoke("deploy", **wrong)
    with pytest.raises(error):
        await retriever.ainvoke("deploy", **wrong)


def test_sync_and_async_take_the_same_arguments() -> None:
    sync = inspect.signature(TwofoldRetriever._get_relevant_documents).parameters
    twin = inspect.signature(TwofoldRetriever._aget_relevant_documents).parameters
    assert [(name, each.default) for name, each in sync.items()] == [
        (name, each.default) for name, each in twin.items()
    ]


# Who asks, and for what


async def test_the_access_of_a_call_never_stays(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key of all.")
    for user in ("u1", "u2"):
        store.add(f"The deploy key of {user}.", access=Access(user=user))
    retriever = TwofoldRetriever(store=store, access=Access(user="u1"))
    own = {"The deploy key of all.", "The deploy key of u1."}
    other = {"The deploy key of all.", "The deploy key of u2."}
    for _ in range(2):
        assert set(texts(retriever.invoke("deploy key", access=Access(user="u2")))) == other
        assert set(texts(retriever.invoke("deploy key"))) == own
        assert set(texts(await retriever.ainvoke("deploy key", access=Access(user="u2")))) == other
        assert set(texts(await retriever.ainvoke("deploy key"))) == own
    assert texts(TwofoldRetriever(store=store).invoke("deploy key")) == ["The deploy key of all."]
    both = retriever.batch(["deploy key"] * 2, access=Access(user="u2"))
    assert [set(texts(each)) for each in both] == [other, other]


async def test_concurrent_calls_do_not_see_each_others_access(open_store: OpenStore) -> None:
    store = open_store()
    users = [f"u{number}" for number in range(8)]
    for user in users:
        store.add(f"The deploy key of {user}.", access=Access(user=user))
    retriever = TwofoldRetriever(store=store)
    answers = await asyncio.gather(
        *(retriever.ainvoke("deploy key", access=Access(user=user)) for user in users for _ in range(3))
    )
    assert [texts(each) for each in answers] == [[f"The deploy key of {user}."] for user in users for _ in range(3)]


def test_over_a_view_its_access_holds(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key of u1.", access=Access(user="u1"))
    retriever = TwofoldRetriever(store=store.view(Access(user="u1")))
    assert texts(retriever.invoke("deploy key")) == ["The deploy key of u1."]
    with pytest.raises(twofold.AccessError):
        retriever.invoke("deploy key", access=Access(user="u2"))


async def test_where_is_applied_before_the_cut(open_store: OpenStore) -> None:
    """langchain-ai/langchain#28413: nearer records of others never cost a caller hits."""
    store = open_store()
    store.add_many([{"text": "deploy key", "metadata": {"n": n, "mine": False}} for n in range(30)])
    store.add_many([{"text": f"a deploy note, no {n}", "metadata": {"n": n, "mine": True}} for n in range(10)])
    retriever = TwofoldRetriever(store=store, k=5, params=SearchParams(pool=5))
    for where in ({"mine": True}, F("mine") == True):  # noqa: E712
        found = retriever.invoke("deploy key", where=where)
        assert [document.metadata["mine"] for document in found] == [True] * 5
        assert found == await retriever.ainvoke("deploy key", where=where)
    assert not any(document.metadata["mine"] for document in retriever.invoke("deploy key"))


def test_where_of_a_call_takes_the_place_of_the_retrievers(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.", metadata={"team": "ops"}, kind="insight")
    store.add("A deploy note.", metadata={"team": "dev"})
    retriever = TwofoldRetriever(store=store, where={"team": "ops"})
    assert texts(retriever.invoke("deploy")) == ["The deploy key."]
    assert texts(retriever.invoke("deploy", where=F("team") == "dev")) == ["A deploy note."]
    assert len(retriever.invoke("deploy", where={})) == 2
    assert texts(retriever.invoke("deploy", where=A.kind == "insight")) == ["The deploy key."]
    assert retriever.where == {"team": "ops"}


async def test_mode_and_params_of_a_call(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The deploy key.")
    store.add("Lunch is at noon.")
    retriever = TwofoldRetriever(store=store)
    assert len(retriever.invoke("deploy")) == 2
    assert texts(retriever.invoke("deploy", mode="keyword")) == ["The deploy key."]
    assert texts(await retriever.ainvoke("deploy", mode=twofold.Mode.KEYWORD)) == ["The deploy key."]
    for strict in (SearchParams(min_score=0.4), SearchParams.preset("rrf", min_score=0.9)):
        assert texts(await retriever.ainvoke("deploy", params=strict)) == ["The deploy key."]
    assert texts(TwofoldRetriever(store=store, mode="keyword").invoke("deploy")) == ["The deploy key."]


def test_fields_can_be_configured(open_store: OpenStore) -> None:
    store = open_store()
    store.add_many(NOTES)
    retriever = TwofoldRetriever(store=store).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke("deploy", {"configurable": {"k": 1}})) == 1
    assert len(retriever.invoke("deploy")) == 4


@pytest.mark.parametrize("char", sorted(string.printable + "“”–…\N{NO-BREAK SPACE}\N{ZERO WIDTH JOINER}\0"))
def test_any_character_may_be_asked(filled: HybridStore, char: str) -> None:
    """FTS5's own syntax is never met: "multi-agent" is no column, GB/s no error."""
    retriever = TwofoldRetriever(store=filled)
    for query in (f"deploy{char}key", f"{char}deploy{char}", f'deploy {char} key "{char}'):
        assert "The deploy key." in texts(retriever.invoke(query))


@pytest.fixture(scope="module")
def filled() -> Any:
    with twofold.open(":memory:", embedder=FakeEmbedder()) as store:
        store.add("The deploy key.")
        yield store


# When something is missing, changes, or ends


async def test_an_embedder_that_is_down_costs_meaning_not_the_answer(open_store: OpenStore) -> None:
    embedder = FlakyEmbedder()
    store = open_store(embedder=embedder)
    store.add("The deploy key.")
    store.add("Lunch is at noon.")
    retriever, recorder = TwofoldRetriever(store=store), Recorder()
    config: Any = {"callbacks": [recorder]}
    assert len(retriever.invoke("deploy", config)) == 2
    assert [name for name, _ in recorder.seen] == ["start", "end"]
    embedder.down = True
    told = [("start", "deploying"), (DEGRADED_EVENT, ["embedder_unreachable"]), ("end", ["The deploy key."])]
    recorder.seen.clear()
    assert texts(retriever.invoke("deploying", config)) == ["The deploy key."]
    assert recorder.seen == told
    recorder.seen.clear()
    assert texts(await retriever.ainvoke("deploying", config)) == ["The deploy key."]
    assert recorder.seen == told
    assert retriever.last_result is not None
    assert retriever.last_result.has("embedder_unreachable")
    embedder.down = False
    assert len(retriever.invoke("deploying")) == 2
    assert not retriever.last_result.degraded


async def test_mode_vector_without_an_embedder_is_an_error(open_store: OpenStore) -> None:
    retriever, recorder = TwofoldRetriever(store=open_store(embedder=None), mode="vector"), Recorder()
    config: Any = {"callbacks": [recorder]}
    with pytest.raises(twofold.SearchUnavailableError):
        retriever.invoke("deploy", config)
    with pytest.raises(twofold.SearchUnavailableError):
        await retriever.ainvoke("deploy", config)
    assert recorder.seen == [("start", "deploy"), ("error", twofold.SearchUnavailableError)] * 2


def test_what_is_added_is_found_and_what_is_deleted_is_not(open_store: OpenStore) -> None:
    """Neither leg lags behind, as a BM25 index beside a vector store does."""
    store = open_store()
    gone = store.add("The old deploy key.")
    retriever = TwofoldRetriever(store=store)
    store.delete(gone.id)
    store.add("The new deploy key.")
    for mode in twofold.Mode:
        assert texts(retriever.invoke("deploy key", mode=mode)) == ["The new deploy key."]


async def test_events_are_seen_once(open_store: OpenStore) -> None:
    """run-llama/llama_index#9114 and its like: start and end, with query and documents, once."""
    store = open_store()
    store.add("The deploy key.")
    retriever, recorder = TwofoldRetriever(store=store), Recorder()
    retriever.invoke("deploy", {"callbacks": [recorder]})
    assert recorder.seen == [("start", "deploy"), ("end", ["The deploy key."])]
    assert recorder.metadata is not None
    assert recorder.metadata["ls_retriever_name"] == recorder.metadata["ls_vector_store_provider"] == "twofold"
    seen = [event["event"] async for event in retriever.astream_events("deploy", version="v2")]
    assert seen.count("on_retriever_start") == seen.count("on_retriever_end") == 1
    assert "on_custom_event" not in seen


async def test_astream_events_tells_of_degradations(open_store: OpenStore) -> None:
    store = open_store(embedder=FlakyEmbedder(down=True))
    store.add("The deploy key.")
    events = [event async for event in TwofoldRetriever(store=store).astream_events("deploy", version="v2")]
    (told,) = [event for event in events if event["event"] == "on_custom_event"]
    assert told["name"] == DEGRADED_EVENT
    assert [each["code"] for each in told["data"]["degradations"]] == ["embedder_unreachable"]


async def test_records_that_wait_for_a_vector_are_told_of(open_store: OpenStore) -> None:
    settings = twofold.StoreSettings(embedding=twofold.EmbeddingSettings(fill_in=False))
    embedder = FlakyEmbedder()
    store = open_store(embedder=embedder, settings=settings)
    store.add("The deploy key.", id="x")
    embedder.down = True
    store.add("The deploy note.", id="y")
    embedder.down = False
    retriever, recorder = TwofoldRetriever(store=store), Recorder()
    config: Any = {"callbacks": [recorder]}
    for documents in (retriever.invoke("deploy note", config), await retriever.ainvoke("deploy note", config)):
        assert {document.id for document in documents} == {"x", "y"}
    assert [seen for seen in recorder.seen if seen[0] == DEGRADED_EVENT] == [(DEGRADED_EVENT, ["vectors_pending"])] * 2
    recorder.seen.clear()
    store.embed_pending()
    assert len(retriever.invoke("deploy note", config)) == 2
    assert [name for name, _ in recorder.seen] == ["start", "end"]


@needs_faiss
async def test_another_index_answers_the_same(open_store: OpenStore) -> None:
    retrievers = []
    for settings in (twofold.StoreSettings(), twofold.StoreSettings(index="faiss-flat")):
        store = open_store(settings=settings)
        store.add_many([{"text": text, "id": str(number)} for number, text in enumerate(NOTES)])
        store.add("The deploy note of u1.", id="u1", access=Access(user="u1"))
        retrievers.append(TwofoldRetriever(store=store, k=3, mode="vector", with_scores=True))
    exact, faiss = retrievers
    for access in (Access(), Access(user="u1")):
        found = faiss.invoke("deploy note of u1", access=access)
        assert found == exact.invoke("deploy note of u1", access=access)
        assert found == await faiss.ainvoke("deploy note of u1", access=access)
        assert (found[0].id == "u1") == (access.user == "u1")
    assert faiss.last_result is not None
    assert not faiss.last_result.degraded
    assert faiss.store.info().backend.details["vector_index"] == "faiss-flat"


async def test_async_leaves_the_loop_free(open_store: OpenStore, gated: Any) -> None:
    """doobidoo/mcp-memory-service#433: only a loop that runs can open the gate that the embedder waits at."""
    store = open_store(embedder=gated)
    store.add("The deploy key.")
    call = asyncio.create_task(TwofoldRetriever(store=store).ainvoke("deploy key"))
    while not gated.entered.is_set():
        await asyncio.sleep(0)
    gated.gate.set()
    assert texts(await call) == ["The deploy key."]
    assert gated.in_time == [True]


async def test_the_sync_call_works_inside_a_running_loop(open_store: OpenStore) -> None:
    """run-llama/llama_index#9978."""
    store = open_store()
    store.add("The deploy key.")
    assert texts(TwofoldRetriever(store=store).invoke("deploy key")) == ["The deploy key."]


async def test_reads_and_writes_at_once(open_store: OpenStore, tmp_path: Path) -> None:
    """langchain-ai/langchain#992: fifty searches beside fifty writes."""
    store = open_store(tmp_path / "memory.db")
    store.add("The deploy key.", id="first")
    retriever = TwofoldRetriever(store=store, k=60)
    searches = [retriever.ainvoke("deploy key") for _ in range(50)]
    writes = [store.aadd(f"The deploy key no {number}.", id=f"n{number}") for number in range(50)]
    answers = await asyncio.gather(*(each for pair in zip(searches, writes, strict=True) for each in pair))
    assert all("first" in {document.id for document in found} for found in answers[::2])
    assert {document.id for document in retriever.invoke("deploy key")} == {"first", *(f"n{n}" for n in range(50))}


def test_threads_share_a_retriever(open_store: OpenStore, tmp_path: Path) -> None:
    """open-webui/oikb#81, mem0ai/mem0#3184: a bounded number of connections, none left after close()."""
    path = tmp_path / "memory.db"
    store = open_store(path, settings=twofold.StoreSettings(max_readers=3))
    store.add_many(NOTES)
    retriever = TwofoldRetriever(store=store, k=1)
    with ThreadPoolExecutor(8) as pool:
        made_elsewhere = pool.submit(TwofoldRetriever, store=store, k=1).result()
        found = list(pool.map(made_elsewhere.invoke, NOTES * 5))
    assert [texts(each) for each in found] == [[note] for note in NOTES * 5]
    batch = retriever.batch(NOTES * 20, {"max_concurrency": 8}, return_exceptions=False)
    assert [texts(each) for each in batch] == [[note] for note in NOTES * 20]
    assert 1 <= _descriptors(path) <= 3 + 1  # the readers' and the writer's
    store.close()
    assert _descriptors(path) == 0


def _descriptors(path: Path) -> int:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list a process's open files")
    return sum(1 for each in folder.iterdir() if each.is_symlink() and str(each.readlink()) == str(path.resolve()))


def test_closing_while_a_call_runs_is_a_clean_error(open_store: OpenStore, gated: Any, tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db", embedder=gated)
    store.add("The deploy key.")
    retriever = TwofoldRetriever(store=store)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(retriever.invoke, "deploy key")
        assert gated.entered.wait(60)
        store.close()
        gated.gate.set()
        with pytest.raises(twofold.StoreClosedError):
            call.result(60)
    with pytest.raises(twofold.StoreClosedError):
        retriever.invoke("deploy key")


# As an object


def test_copies_share_the_store(open_store: OpenStore, tmp_path: Path) -> None:
    """mem0ai/mem0#3430."""
    store = open_store(tmp_path / "memory.db")
    store.add("The deploy key.", access=Access(user="u1"), metadata={"a": [1]})
    retriever = TwofoldRetriever(store=store, access=Access(user="u1"), where={"a": {"$contains": 1}}, tags=["t"])
    retriever.invoke("deploy key")
    chain = RunnableParallel(found=retriever, again=retriever.with_config(run_name="again"))
    for twin in (copy.copy(retriever), copy.deepcopy(retriever), retriever.model_copy(update={"k": 1})):
        assert twin is not retriever
        assert twin.store is store
        assert texts(twin.invoke("deploy key")) == ["The deploy key."]
    assert copy.deepcopy(retriever).where is not retriever.where
    answer = copy.deepcopy(chain).invoke("deploy key")
    assert {name: texts(found) for name, found in answer.items()} == {
        "found": ["The deploy key."],
        "again": ["The deploy key."],
    }


def test_pickling_says_what_to_do_instead(open_store: OpenStore) -> None:
    with pytest.raises(TypeError, match=r"twofold\.open\(path\)"):
        pickle.dumps(TwofoldRetriever(store=open_store()))


def test_the_repr_is_short_and_tells_no_record(open_store: OpenStore) -> None:
    store = open_store()
    store.add("The secret deploy key.")
    retriever = TwofoldRetriever(store=store)
    retriever.invoke("deploy key")
    assert ":memory:" in repr(retriever)
    assert "secret" not in repr(retriever)


def test_last_result_is_none_before_the_first_call_and_is_no_argument(open_store: OpenStore) -> None:
    retriever = TwofoldRetriever(store=open_store())
    assert retriever.last_result is None
    with pytest.raises(ValidationError):
        TwofoldRetriever(store=open_store(), last_result=None)  # type: ignore[call-arg]


# Linked records


async def test_linked_records_follow_the_hits_if_asked_for(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    for id_, text in (("hit", "a red kettle"), ("near", "a pear"), ("far", "a fig")):
        store.add(text, id=id_, metadata={"n": id_})
    store.link("hit", "near")
    store.link("near", "far")
    params = SearchParams(expand=2, hops=2, touch=True)
    retriever = TwofoldRetriever(store=store, k=1, params=params, include_linked=True, with_scores=True)
    for documents in (retriever.invoke("kettle"), await retriever.ainvoke("kettle")):
        assert [document.id for document in documents] == ["hit", "near", "far"]
        assert "hit -[related 1]-> near" in documents[1].metadata[SCORES_KEY]["why"]
        scores = [document.metadata[SCORES_KEY]["score"] for document in documents]
        assert scores == sorted(scores, reverse=True)
        assert 0 < scores[1] < scores[0]
    assert [document.id for document in retriever.invoke("kettle", params=SearchParams())] == ["hit"]
    plain = TwofoldRetriever(store=store, k=1, params=params)
    assert [document.metadata for document in plain.invoke("kettle")] == [{"n": "hit"}]
    store.add("the next write")
    assert [store.get(id_).access_count for id_ in ("hit", "near", "far")] == [3, 3, 3]  # type: ignore[union-attr]


def test_a_path_in_the_place_of_a_store_says_what_to_write() -> None:
    with pytest.raises(ValidationError, match=r"twofold\.open\('memory\.db'\)"):
        TwofoldRetriever(store="memory.db")


# Over a vector store, over a path


async def test_over_a_vector_store(open_store: OpenStore) -> None:
    store = open_store()
    ann = Access(user="ann")
    vectors = TwofoldVectorStore(store, namespace=("a",), access=ann, mode="keyword")
    vectors.add_texts(["ann's red kettle", "ann's pot"], [{"n": 1}, {"n": 2}], ids=["mine", "pot"])
    store.add("a kettle elsewhere", id="elsewhere", access=ann)
    store.add("a kettle below", id="below", namespace=("a", "b"), access=ann)
    TwofoldVectorStore(store, namespace=("a",)).add_texts(["everybody's kettle"], ids=["all"])
    retriever = TwofoldRetriever.over(vectors)
    assert {each.id for each in retriever.invoke("kettle")} == {"mine", "all"}
    assert {each.id for each in await retriever.ainvoke("kettle", access=Access(user="ben"))} == {"all"}
    assert [each.id for each in retriever.invoke("kettle pot", where={"n": 2})] == ["pot"]
    assert [each.id for each in TwofoldRetriever.over(vectors, where=F("n") == 1, k=9).invoke("kettle pot")] == ["mine"]
    assert retriever.last_result is not None
    assert all(set(hit.explanation.legs) == {"keyword"} for hit in retriever.last_result)
    assert copy.deepcopy(retriever).invoke("kettle") == retriever.invoke("kettle")
    with pytest.raises(ValueError, match="embedding"):
        TwofoldRetriever.over(vectors, embedding="local")
    with pytest.raises(ValidationError, match=r"over\(vector_store\)"):
        TwofoldRetriever(store=vectors)  # type: ignore[arg-type]
    retriever.close()
    assert store.count(access=ann) == 5


def test_over_a_path(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with twofold.open(path) as store:
        store.add("a kettle")
    with TwofoldRetriever.over(path, k=1, embedding=FakeEmbedder()) as retriever:
        assert texts(retriever.invoke("kettle")) == ["a kettle"]
    with pytest.raises(twofold.StoreClosedError):
        retriever.invoke("kettle")
    with pytest.raises(ValidationError, match="colour"):
        TwofoldRetriever.over(path, colour="red")
    path.unlink()  # nobody holds it
