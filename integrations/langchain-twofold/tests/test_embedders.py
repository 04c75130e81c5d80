"""LangChain embedding models as embedders of a store."""

from __future__ import annotations

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

import twofold
from langchain_twofold import TwofoldRetriever, as_embedder


class TwoSided(Embeddings):
    """Tells queries from documents, and notes what it was asked."""

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)
        self.queries: list[str] = []
        self.documents: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return [1.0, 0.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.extend(texts)
        return [[0.6, 0.8] for _ in texts]


def test_queries_and_documents_go_where_the_model_has_them_go() -> None:
    model = TwoSided(model="two")
    with twofold.open(":memory:", embedder=as_embedder(model)) as store:
        store.add("a document")
        TwofoldRetriever(store=store).invoke("a question")
        hit = store.search("a question", mode="vector")[0]
    assert (model.queries, model.documents) == (["a question"], ["a document"])
    assert hit.score == pytest.approx(1.0 * 0.6 + 0.0 * 0.8)


@pytest.mark.parametrize(
    ("attributes", "fingerprint", "dimension"),
    [
        ({"model": "m1"}, "langchain:TwoSided:m1", None),
        ({"model_name": "m2"}, "langchain:TwoSided:m2", None),
        ({"model_id": "m3"}, "langchain:TwoSided:m3", None),
        ({"model": object(), "model_name": "m4"}, "langchain:TwoSided:m4", None),
        ({"model": "m5", "dimensions": 2}, "langchain:TwoSided:m5:2", 2),
        ({"model": "m6", "dimensions": None}, "langchain:TwoSided:m6", None),
    ],
)
def test_the_fingerprint_is_the_class_and_the_model(
    attributes: dict[str, object], fingerprint: str, dimension: int | None
) -> None:
    embedder = as_embedder(TwoSided(**attributes))
    assert (embedder.fingerprint, embedder.dimension) == (fingerprint, dimension)


def test_a_name_given_is_the_fingerprint() -> None:
    embedder = as_embedder(TwoSided(model="m"), name="mine", dimension=2)
    assert (embedder.fingerprint, embedder.dimension) == ("langchain:mine", 2)
    assert isinstance(embedder, twofold.Embedder)


def test_a_model_without_a_name_asks_for_one() -> None:
    with pytest.raises(twofold.ConfigurationError, match=r"as_embedder\(embeddings, name="):
        as_embedder(DeterministicFakeEmbedding(size=6))
    assert as_embedder(DeterministicFakeEmbedding(size=6), name="fake").fingerprint == "langchain:fake"


@pytest.mark.parametrize("name", ["", " ", 3])
def test_a_name_is_text(name: object) -> None:
    with pytest.raises(twofold.ConfigurationError, match="name"):
        as_embedder(TwoSided(), name=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("dimension", [0, -1, True, 1.0, "3"])
def test_a_dimension_is_a_whole_number(dimension: object) -> None:
    with pytest.raises(twofold.ConfigurationError, match="dimension"):
        as_embedder(TwoSided(model="m"), dimension=dimension)  # type: ignore[arg-type]


def test_what_is_no_embedding_model_is_refused() -> None:
    with pytest.raises(twofold.ConfigurationError, match="Embeddings"):
        as_embedder(len)  # type: ignore[arg-type]


def test_no_key_shows_in_the_repr() -> None:
    assert "sk-secret" not in repr(as_embedder(TwoSided(model="m", api_key="sk-secret")))


def test_vectors_of_two_models_are_not_compared(tmp_path: object) -> None:
    path = f"{tmp_path}/memory.db"
    with twofold.open(path, embedder=as_embedder(TwoSided(model="old"))) as store:
        store.add("the text")
    with twofold.open(path, embedder=as_embedder(TwoSided(model="new"))) as store:
        retriever = TwofoldRetriever(store=store)
        assert [document.page_content for document in retriever.invoke("text")] == ["the text"]
        assert retriever.last_result is not None
        assert retriever.last_result.has(twofold.DegradationCode.SPACE_MISMATCH)
