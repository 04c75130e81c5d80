"""The one place where a reranker is asked: whatever it does comes out as one score a text, or a named error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

from twofold.config import StoreSettings
from twofold.embedders.asking import Asker
from twofold.errors import EmbedderOutputError
from twofold.rerankers.protocol import Reranker

__all__ = ["Judge"]


class Judge:
    """Asks a reranker on behalf of a store. May be used from any number of threads."""

    def __init__(self, reranker: Reranker, settings: StoreSettings) -> None:
        """Ask nothing yet.

        Args:
            reranker: what judges.
            settings: how long it may take, and when it is left alone.
        """
        self.name = _name_of(reranker)
        self._reranker = reranker
        self._asker = Asker(
            f"the reranker {self.name!r}", settings.rerank_deadline, settings.embedding, "hits keep their fused order"
        )

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in order; finite, higher is better. For no texts the reranker is not asked.

        Raises:
            EmbeddingError: it raised, took too long, gave something else, or is left alone for a while.
            ConfigurationError: it cannot be used like this at all.
        """
        return self._asker.ask(lambda: self._checked(query, texts)) if texts else []

    def _checked(self, query: str, texts: Sequence[str]) -> list[float]:
        what = self._asker.name
        answer = self._asker.call(
            self._reranker, lambda: self._reranker(query, list(texts))
        )  # a list of its own to change
        if isinstance(answer, (str, bytes, Mapping, AbstractSet)):
            raise _not_numbers(what, answer)
        try:
            given: list[Any] = list(islice(answer, len(texts) + 1))  # what never ends would fill the memory
        except TypeError:
            raise _not_numbers(what, answer) from None
        if len(given) > len(texts):
            raise EmbedderOutputError(f"{what} gave more than {len(texts)} scores for {len(texts)} texts")
        if len(given) < len(texts):
            raise EmbedderOutputError(f"{what} gave {len(given)} scores for {len(texts)} texts")
        scores = [_number(each) for each in given]
        unusable = [place for place, score in enumerate(scores, start=1) if not math.isfinite(score)]
        if unusable:
            message = f"{what} gave no finite number for text {unusable[0]} of {len(texts)}"
            raise EmbedderOutputError(message, text_at_fault=True if len(unusable) < len(scores) else None)
        return scores


def _not_numbers(what: str, answer: object) -> EmbedderOutputError:
    """A mapping and a set are such: they have an order that is not that of the texts."""
    return EmbedderOutputError(f"{what} gave a {type(answer).__name__}; it must give one number a text, in order")


def _number(value: Any) -> float:
    """NaN for what is no number."""
    if isinstance(value, (bool, str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _name_of(reranker: Reranker) -> str:
    for name in (getattr(reranker, "name", None), getattr(reranker, "__name__", None)):
        if isinstance(name, str) and name:
            return name
    return type(reranker).__name__
