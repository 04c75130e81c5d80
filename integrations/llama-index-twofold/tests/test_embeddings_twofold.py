"""LlamaIndex embedding models as embedders of a store."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.base.embeddings.base import BaseEmbedding

import twofold
from llama_index.embeddings.twofold import as_embedder
from llama_index.retrievers.twofold import TwofoldRetriever


class TwoSided(BaseEmbedding):
    """Tells queries from documents, and notes what it was asked."""

    dimensions: int | None = None
    api_key: str = "sk-secret"
    queries: list[str] = []  # noqa: RUF012 - pydantic copies it
    documents: list[str] = []  # noqa: RUF012 - likewise

    def _get_query_embedding(self, query: str) -> list[float]:
        self.queries.append(query)
        return [1.0, 0.0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self.documents.append(text)
        return [0.6, 0.8]


def test_queries_and_documents_go_where_the_model_has_them_go() -> None:
    model = TwoSided(model_name="two")
    with twofold.open(":memory:", embedder=as_embedder(model)) as store:
        store.add("a document")
        TwofoldRetriever(store).retrieve("a question")
        hit = store.search("a question", mode="vector")[0]
    assert (model.queries, model.documents) == (["a question"], ["a document"])
    assert hit.score == pytest.approx(1.0 * 0.6 + 0.0 * 0.8)


def test_the_fingerprint_is_the_class_and_the_model() -> None:
    plain, short = as_embedder(TwoSided(model_name="m")), as_embedder(TwoSided(model_name="m", dimensions=2))
    assert (plain.fingerprint, plain.dimension) == ("llama-index:TwoSided:m", None)
    assert (short.fingerprint, short.dimension) == ("llama-index:TwoSided:m:2", 2)
    assert isinstance(plain, twofold.Embedder)
    assert "sk-secret" not in repr(plain)


def test_a_model_without_a_name_asks_for_one() -> None:
    with pytest.raises(twofold.ConfigurationError, match=r"as_embedder\(embed_model, name="):
        as_embedder(MockEmbedding(embed_dim=3))
    named = as_embedder(MockEmbedding(embed_dim=3), name="mock", dimension=3)
    assert (named.fingerprint, named.dimension) == ("llama-index:mock", 3)


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": 3}, {"dimension": 0}, {"dimension": True}, {"dimension": 1.5}]
)
def test_what_it_cannot_use_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(twofold.ConfigurationError, match=next(iter(wrong))):
        as_embedder(TwoSided(model_name="m"), **wrong)


def test_what_is_no_embedding_model_is_refused() -> None:
    with pytest.raises(twofold.ConfigurationError, match="BaseEmbedding"):
        as_embedder("default")  # type: ignore[arg-type]


def test_a_model_that_gives_nothing_costs_meaning_not_the_answer() -> None:
    class Nothing(TwoSided):
        def _get_query_embedding(self, query: str) -> list[float]:
            return []

    with twofold.open(":memory:", embedder=as_embedder(Nothing(model_name="m"))) as store:
        store.add("a document")
        retriever = TwofoldRetriever(store)
        assert [found.text for found in retriever.retrieve("document")] == ["a document"]
        assert retriever.last_result is not None
        assert retriever.last_result.has("embedder_bad_output")
