"""What a reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """A function of a question and a list of texts, sync or async, that reads them side by side and says how well each
    one answers: one number a text, in order, finite, higher is better.

    It may raise anything, and what it gives is checked: the search then goes on in the order that it has. A store asks
    it in a thread of its own, under ``StoreSettings.rerank_deadline``. An attribute ``name: str`` is what ``hit.why``
    calls it; without one it is the function's or the class's name.
    """

    def __call__(self, query: str, texts: Sequence[str], /) -> Any:
        """One number a text, in order; finite, higher is better.

        They become the hits' scores: let the best be near 1 and the useless near 0, for what is below 0 is shown as 0
        and what is above 1 as 1. An awaitable of such numbers is awaited.
        """
        ...
