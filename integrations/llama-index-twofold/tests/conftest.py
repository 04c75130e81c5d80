"""Stores for the tests of llama-index-twofold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import twofold
from twofold.testing import FakeEmbedder
from twofold.testing.patience import patient_embedders


@pytest.fixture(scope="session", autouse=True)
def _patient_embedders() -> Iterator[None]:
    with patient_embedders():
        yield


class GatedEmbedder(FakeEmbedder):
    """Waits in every query until the test opens the gate; ``in_time`` says whether it did within a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.in_time: list[bool] = []

    def embed(self, texts: Any, kind: Any) -> Any:
        if kind == "query":
            self.entered.set()
            self.in_time.append(self.gate.wait(60))
        return super().embed(texts, kind)


@pytest.fixture
def gated() -> Iterator[GatedEmbedder]:
    embedder = GatedEmbedder()
    yield embedder
    embedder.gate.set()


@pytest.fixture
def open_store() -> Iterator[Callable[..., twofold.HybridStore]]:
    """``twofold.open`` that is closed after the test; in memory, with the fake embedder, unless told otherwise."""
    opened: list[twofold.HybridStore] = []

    def make(path: Any = ":memory:", embedder: Any = "fake", **options: Any) -> twofold.HybridStore:
        store = twofold.open(path, embedder=FakeEmbedder() if embedder == "fake" else embedder, **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()
