"""What the instrumentation is told of a search."""

from __future__ import annotations

from typing import Literal

from llama_index.core.instrumentation.events import BaseEvent
from pydantic import Field

from twofold import SearchResult

__all__ = ["TwofoldSearchEvent", "VectorSource", "search_event"]

VectorSource = Literal["store", "bundle", "custom_strings", "embed_model"]
"""Where the query's vector came from."""


class TwofoldSearchEvent(BaseEvent):
    """One search has been answered. Sent once a retrieval, before ``RetrievalEndEvent``, and once a recall of a memory
    block; never if it failed.
    """

    query_str: str
    """What was asked, in words."""
    ids: list[str]
    """The records found, best first."""
    linked: list[str] = Field(default_factory=list)
    """The records that links lead to from them, the strongest first."""
    legs: dict[str, int]
    """By leg, how many of them it found."""
    timings: dict[str, float]
    """Milliseconds of wall time by stage."""
    degradations: dict[str, str] = Field(default_factory=dict)
    """By code, why the answer is less than a full one; empty if it is not."""
    vector_source: VectorSource
    """``"store"``: its own embedder, if it has one; ``"bundle"``: the bundle's embedding; ``"custom_strings"``: the
    bundle's strings; ``"embed_model"``: the question by the retriever's own model."""

    @classmethod
    def class_name(cls) -> str:
        """Its name in dumps."""
        return "TwofoldSearchEvent"


def search_event(query_str: str, result: SearchResult, source: VectorSource) -> TwofoldSearchEvent:
    """The event of ``result``."""
    found = [leg for hit in result for leg in hit.explanation.legs]
    return TwofoldSearchEvent(
        query_str=query_str,
        ids=list(result.ids),
        linked=[hit.id for hit in result.linked],
        legs={leg: found.count(leg) for leg in dict.fromkeys(found)},
        timings=dict(result.timings),
        degradations={each.code.value: each.message for each in result.degradations},
        vector_source=source,
    )
