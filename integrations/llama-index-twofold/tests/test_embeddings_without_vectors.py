"""``NoEmbedding`` and ``ResilientEmbedding``: where LlamaIndex wants a vector and there is none, it gets ``[]``."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.storage.kvstore import SimpleKVStore

import twofold
from llama_index.embeddings.twofold import NoEmbedding, ResilientEmbedding
from llama_index.embeddings.twofold.choosing import store_embedder
from twofold import EmbeddingSettings
from twofold.testing import FakeEmbedder

PATIENT_NOT = EmbeddingSettings(query_deadline=0.01, warm_up=0, document_deadline=0.01)
STEADFAST = EmbeddingSettings(failures_to_open=10_000)
"""Never leaves the model alone."""


async def everything(model: BaseEmbedding, text: str) -> list[Any]:
    """What each public method of an embedding model makes of one text."""
    node = TextNode(text=text)
    return [
        model.get_query_embedding(text),
        await model.aget_query_embedding(text),
        model.get_text_embedding(text),
        await model.aget_text_embedding(text),
        *model.get_text_embedding_batch([text]),
        *await model.aget_text_embedding_batch([text]),
        model.get_agg_embedding_from_queries([text, text]),
        await model.aget_agg_embedding_from_queries([text, text]),
        model([node])[0].embedding,
        (await model.acall([node]))[0].embedding,
    ]


async def test_no_embedding_has_none_for_anything() -> None:
    model = NoEmbedding()
    assert await everything(model, "text") == [[]] * 10
    assert model.get_text_embedding_batch(["a", "b", "c"]) == [[], [], []]
    assert model.get_agg_embedding_from_queries([]) == []
    assert (model.model_name, model.class_name()) == ("none", "NoEmbedding")
    assert await everything(pickle.loads(pickle.dumps(model)), "text") == [[]] * 10


async def test_a_model_that_is_well_answers_itself(model: Any) -> None:
    resilient = ResilientEmbedding(model)
    plain = model.get_text_embedding("some text")
    for found in await everything(resilient, "some text"):
        assert found == pytest.approx(plain, abs=1e-6)
        assert all(type(number) is float for number in found)
    texts = [f"text {place}" for place in range(25)]
    assert np.allclose(resilient.get_text_embedding_batch(texts), model.get_text_embedding_batch(texts))
    assert np.allclose(await resilient.aget_text_embedding_batch(texts), model.get_text_embedding_batch(texts))
    assert resilient.inner is model
    assert (resilient.model_name, resilient.embed_batch_size) == (model.model_name, model.embed_batch_size)
    assert resilient.state.last_error is None


async def test_a_model_that_is_down_has_none(model: Any) -> None:
    model.down = True
    resilient = ResilientEmbedding(model)
    assert await everything(resilient, "text") == [[]] * 10
    assert resilient.state.last_error == "ConnectionError"
    texts = [f"text {place}" for place in range(25)]
    assert resilient.get_text_embedding_batch(texts) == [[]] * 25
    assert await resilient.aget_text_embedding_batch(texts) == [[]] * 25


def test_a_model_that_failed_is_left_alone_for_a_while(model: Any) -> None:
    model.down = True
    resilient = ResilientEmbedding(model, settings=EmbeddingSettings(failures_to_open=2, first_pause=3600))
    for _ in range(9):
        assert resilient.get_query_embedding("text") == []
    assert len(model.asked) == 2


def test_a_model_that_comes_back_is_asked_again(model: Any) -> None:
    model.down = True
    resilient = ResilientEmbedding(model, settings=STEADFAST)
    assert resilient.get_text_embedding_batch(["one", "two"]) == [[], []]
    model.down = False
    assert all(resilient.get_text_embedding_batch(["one", "two"]))


async def test_a_model_that_hangs_is_left_behind(model: Any) -> None:
    model.gate.clear()
    resilient = ResilientEmbedding(model, settings=PATIENT_NOT)
    assert await everything(resilient, "text") == [[]] * 10
    assert resilient.state.last_error is not None


async def test_a_model_that_hangs_leaves_the_loop_free(model: Any) -> None:
    """run-llama/llama_index#21934: also a model whose async methods block."""
    model.gate.clear()
    resilient = ResilientEmbedding(model)
    for ask in (
        resilient.aget_query_embedding("text"),
        resilient.aget_text_embedding("text"),
        resilient.aget_text_embedding_batch(["text", "more"]),
        resilient.aget_agg_embedding_from_queries(["other text"]),
    ):
        model.entered.clear()
        model.gate.clear()
        asking = asyncio.create_task(ask)
        while not model.entered.is_set():
            await asyncio.sleep(0)
        assert not asking.done()
        model.gate.set()  # only a loop that runs gets here
        assert await asking


class Odd(BaseEmbedding):
    """Gives what it is told to."""

    gives: Any = None

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.gives[0]  # type: ignore[no-any-return]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.gives[0]  # type: ignore[no-any-return]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.gives  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "gives", [[[]], [[0.0, 0.0]], [[float("nan"), 1.0]], [[float("inf"), 1.0]], [["x", "y"]], [None], None, "text"]
)
async def test_what_is_no_vector_comes_to_none(gives: Any) -> None:
    assert await everything(ResilientEmbedding(Odd(gives=gives)), "text") == [[]] * 10


def test_too_few_vectors_are_given_to_nobody() -> None:
    resilient = ResilientEmbedding(Odd(gives=[[1.0, 0.0]]), settings=STEADFAST)
    assert resilient.get_text_embedding_batch(["a"]) == [[1.0, 0.0]]
    assert len(resilient.get_text_embedding_batch(["a", "b", "c"])) == 3


async def test_of_several_queries_those_that_have_a_vector_are_averaged(model: Any) -> None:
    """LlamaIndex's own mean of a vector and none is an error, and so the whole query would be."""

    class Picky(Odd):
        def _get_query_embedding(self, query: str) -> list[float]:
            if "bad" in query:
                raise ValueError(query)
            return [1.0, 0.0] if query == "x" else [0.0, 1.0]

    resilient = ResilientEmbedding(Picky(), settings=STEADFAST)
    for queries, expected in (
        (["x", "bad", "y"], [0.5, 0.5]),
        (["bad", "worse bad"], []),
        ([], []),
        (["x"], [1.0, 0.0]),
    ):
        assert resilient.get_agg_embedding_from_queries(queries) == expected
        assert await resilient.aget_agg_embedding_from_queries(queries) == expected
    best = resilient.get_agg_embedding_from_queries(["x", "bad", "y"], agg_fn=lambda found: found[0])
    assert best == [1.0, 0.0]


def test_its_inner_models_cache_is_used_and_it_has_none_of_its_own(model: Any) -> None:
    with pytest.raises(twofold.ConfigurationError, match="inner model"):
        ResilientEmbedding(model, embeddings_cache=SimpleKVStore())
    cached = Odd(gives=[[1.0, 2.0]], embeddings_cache=SimpleKVStore())
    resilient = ResilientEmbedding(cached)
    assert resilient.get_text_embedding_batch(["a"]) == [[1.0, 2.0]]
    cached.gives = None
    assert resilient.get_text_embedding_batch(["a"]) == [[1.0, 2.0]]


def test_what_is_no_embedding_model_is_refused() -> None:
    with pytest.raises(twofold.ConfigurationError, match="BaseEmbedding"):
        ResilientEmbedding("default")  # type: ignore[arg-type]


def test_it_is_copied_and_pickled_with_its_settings() -> None:
    settings = EmbeddingSettings(query_deadline=7)
    resilient = ResilientEmbedding(MockEmbedding(embed_dim=3), settings=settings, embed_batch_size=5)
    for twin in (copy.copy(resilient), copy.deepcopy(resilient), pickle.loads(pickle.dumps(resilient))):
        assert twin.get_text_embedding_batch(["a"]) == [[0.5, 0.5, 0.5]]
        assert (twin.embed_batch_size, twin.inner.embed_dim) == (5, 3)
        assert twin.to_dict() == resilient.to_dict()


def test_two_models_differ_in_a_pipelines_cache() -> None:
    one, two = (ResilientEmbedding(MockEmbedding(embed_dim=dimension)).to_dict() for dimension in (2, 3))
    assert one != two
    assert one["class_name"] == "ResilientEmbedding"


def test_many_threads_at_once(model: Any) -> None:
    resilient = ResilientEmbedding(model)
    found: list[Any] = []

    def ask(place: int) -> None:
        found.append(resilient.get_query_embedding(f"text {place % 3}"))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert all(len(each) == 64 for each in found)


def test_what_a_store_embeds_with(model: Any) -> None:
    own = FakeEmbedder()
    assert store_embedder(None) is None
    assert store_embedder(NoEmbedding()) is None
    assert store_embedder("local") == "local"
    assert store_embedder(own) is own
    for given in (model, ResilientEmbedding(model)):
        embedder = store_embedder(given, "mine")
        assert isinstance(embedder, twofold.Embedder)
        assert embedder.fingerprint == "llama-index:mine"
    for nameless in (None, NoEmbedding(), own, "local"):
        with pytest.raises(twofold.ConfigurationError, match="embed_model_name"):
            store_embedder(nameless, "mine")
