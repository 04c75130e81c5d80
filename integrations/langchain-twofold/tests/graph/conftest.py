"""Stores and a model for the tests of ``TwofoldStore``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from twofold.testing import FakeClock

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _letters(texts: Sequence[str]) -> list[list[float]]:
    return [[0.01, *(float(text.lower().count(letter)) for letter in LETTERS)] for text in texts]


class Model:
    """``letters``, which can be turned off, and waits for its gate."""

    def __init__(self) -> None:
        self.down = False
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.gate.set()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.down:
            raise ConnectionError("connection refused")
        self.entered.set()
        self.gate.wait(60)
        return _letters(texts)


@pytest.fixture
def letters() -> Callable[[Sequence[str]], list[list[float]]]:
    """How often each letter is in a text, and one more number so that none is all zero: 27 in all."""
    return _letters


@pytest.fixture
def cosine() -> Callable[[str, str], float]:
    """The cosine of two texts by ``letters``."""

    def cosine(one: str, other: str) -> float:
        a, b = (np.array(vector) for vector in _letters([one, other]))
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    return cosine


@pytest.fixture
def index() -> Callable[..., Any]:
    """Makes an index configuration with ``letters``."""
    return lambda **more: {"dims": 27, "embed": _letters, **more}


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.gate.set()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def store() -> Iterator[Any]:
    """A ``TwofoldStore`` in memory, without a model."""
    from langchain_twofold import TwofoldStore

    with TwofoldStore() as store:
        yield store


@pytest.fixture
def vectors(index: Callable[..., Any]) -> Iterator[Any]:
    """A ``TwofoldStore`` in memory that searches by vectors alone."""
    from langchain_twofold import TwofoldStore

    with TwofoldStore(index=index(fields=["text"]), search_mode="vector") as store:
        yield store
