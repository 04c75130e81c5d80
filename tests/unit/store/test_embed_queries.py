"""``HybridStore.embed_queries``: what adapters embed several strings of one question with."""

from __future__ import annotations

import numpy as np
import pytest

import twofold
from twofold.testing import FailingEmbedder, FlakyEmbedder


async def test_it_gives_the_vectors_that_a_search_would_use() -> None:
    embedder = FlakyEmbedder()
    with twofold.open(":memory:", embedder=embedder) as store:
        vectors = store.embed_queries(["one", "two"])
        np.testing.assert_array_equal(vectors, embedder.inner.embed(["one", "two"], "query"))
        np.testing.assert_array_equal(vectors, await store.aembed_queries(["one", "two"]))
        assert store.embed_queries([]).shape == (0, embedder.dimension)
        store.add("one")
        assert store.search("", vector=vectors[0], mode="vector")[0].score == pytest.approx(1.0)


def test_it_raises_where_a_search_would_degrade() -> None:
    with twofold.open(":memory:", embedder=FailingEmbedder()) as store, pytest.raises(twofold.EmbedderUnreachableError):
        store.embed_queries(["one"])


@pytest.mark.parametrize("embedder", [None, twofold.GivenVectors("mine", 2)])
def test_without_an_embedder_it_is_refused(embedder: twofold.Embedder | None) -> None:
    with twofold.open(":memory:", embedder=embedder) as store, pytest.raises(twofold.ConfigurationError):
        store.embed_queries(["one"])


def test_one_text_is_no_list_of_texts() -> None:
    with (
        twofold.open(":memory:", embedder=FlakyEmbedder()) as store,
        pytest.raises(twofold.ConfigurationError, match="list"),
    ):
        store.embed_queries("one")
