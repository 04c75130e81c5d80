"""What the tests of the guard share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from twofold.config import EmbeddingSettings
from twofold.embedders import Guard


class Seconds:
    """A clock of seconds that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """An embedder that raises, or answers, what ``answer`` says; it counts calls and can be blocked."""

    fingerprint = "scripted"
    dimension = 2

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answer: Callable[[Sequence[str]], Any] = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
        self.error: BaseException | None = None
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: Sequence[str], kind: Any) -> Any:
        self.calls.append(list(texts))
        self.entered.release()
        self.gate.wait(30)
        if self.error is not None:
            raise self.error
        return self.answer(texts)


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    embedder = Scripted()
    yield embedder
    embedder.gate.set()


@pytest.fixture
def guard_of(seconds: Seconds) -> Callable[..., Guard]:
    """Makes a guard with a clock that a test turns, and no cache unless one is asked for."""

    def make(embedder: Any, **settings: Any) -> Guard:
        settings = {"query_cache_size": 0, **settings}
        return Guard(embedder, EmbeddingSettings(**settings), clock=seconds)

    return make
