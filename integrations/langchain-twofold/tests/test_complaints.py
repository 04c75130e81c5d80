"""What users complained of elsewhere, where no other test here has it: each once, with where it was said."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

import langchain_twofold
import twofold
from langchain_twofold import TwofoldRetriever, TwofoldVectorStore
from twofold import Access
from twofold.testing import FakeEmbedder

ANN, BEN = Access(user="ann"), Access(user="ben")


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def fake(path: Path | str = ":memory:") -> TwofoldVectorStore:
    return TwofoldVectorStore(path, embedding=DeterministicFakeEmbedding(size=16), embedding_name="fake")


def test_a_source_of_many_parts_has_one_rank_in_each_leg() -> None:
    """langchain-ai/langchain#37046: several chunks of one source count several times."""
    with twofold.open(":memory:", embedder=FakeEmbedder()) as store:
        store.add(fields={"text": ["kettle one", "kettle two", "kettle three"]}, id="many")
        store.add("kettle one", id="single")
        retriever = TwofoldRetriever(store=store, k=10, with_scores=True)
        found = retriever.invoke("kettle one")
        assert sorted(ids(found), key=str) == ["many", "single"]
        for leg in ("keyword", "vector"):
            ranks = [each.metadata[langchain_twofold.SCORES_KEY]["legs"][leg]["rank"] for each in found]
            assert sorted(ranks) == [1, 2]


def test_the_same_text_of_two_users_stays_two_documents() -> None:
    """EnsembleRetriever tells documents apart by their text: one user's id is lost."""
    with fake() as store:
        for user in (ANN, BEN):
            store.add_texts(["a red kettle"], ids=[f"{user.user}'s"], access=user)
        for user in (ANN, BEN):
            assert ids(store.similarity_search("kettle", access=user)) == [f"{user.user}'s"]
            assert ids(TwofoldRetriever.over(store).invoke("kettle", access=user)) == [f"{user.user}'s"]


@pytest.mark.parametrize("query", ["zzzz", "", "   ", "!?"])
def test_keywords_that_nothing_has_find_nothing(query: str) -> None:
    """rank_bm25 gives k documents whatever is asked."""
    with TwofoldVectorStore() as store:
        store.add_texts(["a kettle", "a door", "a pot"])
        assert store.similarity_search(query) == []


def test_upper_and_lower_case_and_the_order_of_words_do_not_matter() -> None:
    """BM25Retriever misses "err_conn_refused_7"; a LIKE of the whole question, words in another order."""
    with TwofoldVectorStore() as store:
        store.add_texts(["ERR_CONN_REFUSED_7: the Proxy is down", "lunch is at noon"], ids=["error", "lunch"])
        for query in ("err_conn_refused_7", "DOWN proxy", "why is the proxy down, and since when?"):
            assert ids(store.similarity_search(query, k=1)) == ["error"]


async def test_there_may_be_no_documents_at_all() -> None:
    """BM25Retriever.from_documents([]) raises."""
    embedding = FakeEmbedder()
    with TwofoldVectorStore.from_documents([], embedding) as store:  # type: ignore[arg-type]
        assert store.add_documents([]) == await store.aadd_texts([]) == []
        assert store.similarity_search("x") == await store.asimilarity_search("x") == []
        assert store.max_marginal_relevance_search("x") == []
        assert store.get_by_ids([]) == []


def test_everything_is_in_the_file(tmp_path: Path) -> None:
    """langchain-ai/langchain#27071, #28123: an index of keywords that is nowhere saved."""
    with fake(tmp_path / "d.db") as store:
        store.add_texts(["a red kettle"], [{"n": 1}], ids=["k"])
    with fake(tmp_path / "d.db") as store:
        for mode in ("hybrid", "keyword", "vector"):
            assert store.similarity_search("kettle", mode=mode) == [
                Document(id="k", page_content="a red kettle", metadata={"n": 1})
            ]


def test_nothing_stored_is_ever_unpickled(tmp_path: Path) -> None:
    """langchain-ai/langchain-community#92: whoever can change the file runs code."""
    code = (
        "import sys\n"
        "class Refused:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('dill', 'cloudpickle', 'joblib', 'shelve'): raise AssertionError(name)\n"
        "sys.meta_path.insert(0, Refused())\n"
        "import langchain_core.embeddings as e, langchain_twofold as l, pickle\n"
        "def refuse(*a, **k): raise AssertionError('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        "for index in ('exact', 'auto'):\n"
        "    for _ in range(2):\n"
        "        with l.TwofoldVectorStore(sys.argv[1], embedding=e.DeterministicFakeEmbedding(size=8),\n"
        "                                  embedding_name='fake', index=index) as store:\n"
        "            store.add_texts(['kettle'], ids=['k'])\n"
        "            assert store.similarity_search('kettle')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "d.db")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_not_equal_to_anything() -> None:
    """Quansight/ragna#530: stores do not agree on it."""
    with TwofoldVectorStore() as store:
        store.add_texts(["kettle"] * 3, [{"n": 1}, {"n": 2}, {}], ids=["1", "2", "none"])
        for condition in ({"n": {"$ne": 1}}, {"n": {"$nin": [1]}}):
            assert set(ids(store.similarity_search("kettle", filter=condition))) == {"2", "none"}


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_a_file_that_is_replaced_is_no_readonly_database(tmp_path: Path) -> None:
    """chroma-core/chroma#1441: what is written goes nowhere, or fails for ever."""
    path, other = tmp_path / "d.db", tmp_path / "other.db"
    for each, text in ((path, "old kettle"), (other, "new kettle")):
        with TwofoldVectorStore(each) as store:
            store.add_texts([text])
    with TwofoldVectorStore(path) as store:
        assert len(store.similarity_search("kettle")) == 1
        other.replace(path)
        try:
            store.add_texts(["another kettle"], ids=["a"])
        except twofold.StoreError as error:
            assert str(path) in str(error)  # noqa: PT017 - either it says so, or it is in the file that is there now
            return
    with TwofoldVectorStore(path) as store:
        assert ids(store.get_by_ids(["a"])) == ["a"]


async def test_a_hundred_tasks_wait_for_a_model_and_the_loop_does_not() -> None:
    """Fifty searches and fifty writes while the model hangs: the heartbeat goes on, and all of them come right."""
    gate, asked = threading.Event(), threading.Event()

    class Hanging(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            asked.set()
            gate.wait(60)
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            asked.set()
            gate.wait(60)
            return super().embed_query(text)

    async with TwofoldVectorStore(embedding=Hanging(size=8), embedding_name="fake") as store:
        work: list[Any] = []
        for n in range(50):
            work.append(store.aadd_documents([Document(f"kettle {n}", id=str(n))]))
            work.append(store.asimilarity_search(f"kettle {n}"))
        tasks = [asyncio.ensure_future(each) for each in work]
        beats = 0
        while not (asked.is_set() and beats >= 20):
            beats += 1
            await asyncio.sleep(0.001)
        assert not any(task.done() for task in tasks)
        gate.set()
        done = await asyncio.gather(*tasks)
        assert done[::2] == [[str(n)] for n in range(50)]
        assert len(await store.asimilarity_search("kettle", k=100)) == 50
