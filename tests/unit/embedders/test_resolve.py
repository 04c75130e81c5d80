"""What may stand for an embedder."""

from __future__ import annotations

from typing import Any

import pytest

from twofold.embedders import CallableEmbedder, GivenVectors, LocalEmbedder, resolve_embedder
from twofold.errors import ConfigurationError
from twofold.testing import FakeEmbedder


class LangChainLike:
    def embed_query(self, text: str) -> list[float]: ...
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...


class LlamaIndexLike:
    def get_text_embedding(self, text: str) -> list[float]: ...
    def get_query_embedding(self, query: str) -> list[float]: ...
    def __call__(self, nodes: list[Any]) -> list[Any]: ...


class Half:
    dimension = 3

    def embed(self, texts: Any, kind: Any) -> Any: ...


class NotCallable(Half):
    fingerprint = "x"
    embed = 3  # type: ignore[assignment]


class Nameless(Half):
    fingerprint = ""


@pytest.mark.parametrize("embedder", [FakeEmbedder(), GivenVectors("m", 3), CallableEmbedder(len, "m")])
def test_an_embedder_is_taken_as_it_is(embedder: Any) -> None:
    assert resolve_embedder(embedder) is embedder


def test_none_is_keywords_only() -> None:
    assert resolve_embedder(None) is None


def test_local_by_name() -> None:
    assert isinstance(resolve_embedder("local"), LocalEmbedder)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "cohere",
            r"no embedder called 'cohere'; pass 'local', 'ollama', 'ollama:<model>', 'fastembed', .*an embedder obj",
        ),
        ("openai:", "model is the name of one"),
        ("fastembed:", "model is the name of one"),
        ("", "pass 'local'"),
        ("LOCAL", "pass 'local'"),
        (lambda texts: [], r"two models must never be compared; wrap it: CallableEmbedder\(function, name="),
        (LangChainLike(), "LangChainLike is a LangChain embedding model; use the package langchain-twofold"),
        (LlamaIndexLike(), "LlamaIndexLike is a LlamaIndex embedding model; use the package llama-index-twofold"),
        (Half(), "Half is no embedder: it lacks fingerprint;"),
        (NotCallable(), "it lacks embed;"),
        (Nameless(), "the fingerprint of Nameless must be a text"),
        (7, "int is no embedder: it lacks fingerprint, dimension, embed;"),
        (FakeEmbedder, r"FakeEmbedder is a class; pass an instance"),
    ],
)
def test_what_is_none_says_what_to_pass(value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        resolve_embedder(value)
