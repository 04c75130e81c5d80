"""LangChain's own suite for retrievers, in each state of the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

import twofold
from langchain_twofold import TwofoldRetriever
from twofold.testing import FakeEmbedder, FlakyEmbedder

NOTES = (
    "The deploy key lives in the vault.",
    "To deploy, ask for the key in the ops room.",
    "A deploy takes ten minutes.",
    "Never deploy on Fridays.",
)


class _Suite(RetrieversIntegrationTests):
    store: twofold.HybridStore

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return TwofoldRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self.store}

    @property
    def retriever_query_example(self) -> str:
        return "deploy key"


class TestHybrid(_Suite):
    @pytest.fixture(autouse=True)
    def _filled(self) -> Iterator[None]:
        with twofold.open(":memory:", embedder=FakeEmbedder()) as self.store:
            self.store.add_many(NOTES)
            yield


class TestKeywordOnly(_Suite):
    @pytest.fixture(autouse=True)
    def _filled(self) -> Iterator[None]:
        with twofold.open(":memory:") as self.store:
            self.store.add_many(NOTES)
            yield


class TestVectorMode(_Suite):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self.store, "mode": "vector"}

    @pytest.fixture(autouse=True)
    def _filled(self) -> Iterator[None]:
        with twofold.open(":memory:", embedder=FakeEmbedder()) as self.store:
            self.store.add_many(NOTES)
            yield


class TestEmbedderDown(_Suite):
    @pytest.fixture(autouse=True)
    def _filled(self) -> Iterator[None]:
        embedder = FlakyEmbedder()
        with twofold.open(":memory:", embedder=embedder) as self.store:
            self.store.add_many(NOTES)
            embedder.down = True
            yield
