"""What a hit looks like as a LangChain ``Document``."""

from __future__ import annotations

import copy
from typing import Any, Final

from langchain_core.documents import Document

from twofold import Hit

__all__ = ["SCORES_KEY", "as_document"]

SCORES_KEY: Final = "_twofold"
"""The one metadata key that ``with_scores=True`` adds; a key of yours with this name is hidden by it then."""


def as_document(hit: Hit, *, with_scores: bool = False) -> Document:
    """A new document of ``hit``, which shares nothing with the store.

    Args:
        hit: what a search found.
        with_scores: whether the metadata tells under :data:`SCORES_KEY` why it was found.

    Returns:
        ``id`` is the record's, ``page_content`` its text (a lone surrogate, which pydantic refuses, is U+FFFD
        there), ``metadata`` its metadata and nothing else.
    """
    metadata: dict[str, Any] = copy.deepcopy(dict(hit.record.metadata))
    if with_scores:
        metadata[SCORES_KEY] = _scores(hit)
    return Document(id=hit.id, page_content=_well_formed(hit.text), metadata=metadata)


def _scores(hit: Hit) -> dict[str, Any]:
    """As JSON: ``score`` (0 to 1), ``why`` in words, and by leg its ``rank`` (from 1) and ``raw`` score."""
    legs = {leg: {"rank": found.rank, "raw": found.raw} for leg, found in hit.explanation.legs.items()}
    return {"score": hit.score, "why": hit.why, "legs": legs}


def _well_formed(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
