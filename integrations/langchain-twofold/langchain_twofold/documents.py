"""What a hit looks like as a LangChain ``Document``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

from langchain_core.documents import Document

from twofold import Hit, Record

__all__ = ["SCORES_KEY", "as_document", "as_metadata"]

SCORES_KEY: Final = "_twofold"
"""The one metadata key that ``with_scores=True`` adds; a key of yours with this name is hidden by it then."""


def as_document(found: Hit | Record, *, with_scores: bool = False) -> Document:
    """A new document of ``found``, which shares nothing with the store.

    Args:
        found: what a search found, or a record.
        with_scores: whether the metadata tells under :data:`SCORES_KEY` why a search found it.

    Returns:
        ``id`` is the record's, ``page_content`` its text (a lone surrogate, which pydantic refuses, is U+FFFD
        there), ``metadata`` its metadata and nothing else.
    """
    record = found.record if isinstance(found, Hit) else found
    metadata: dict[str, Any] = copy.deepcopy(dict(record.metadata))
    if with_scores and isinstance(found, Hit):
        metadata[SCORES_KEY] = _scores(found)
    return Document(id=record.id, page_content=_well_formed(record.text), metadata=metadata)


def as_metadata(metadata: Mapping[str, Any], encode: Callable[[Any], Any] | None) -> Any:
    """``metadata``, in which each value that JSON has no word for is what ``encode`` makes of it, if that is given.

    The store copies it, and refuses what is left of such values.
    """
    return metadata if encode is None else _encoded(metadata, encode)


def _encoded(value: Any, encode: Callable[[Any], Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {key: _encoded(item, encode) for key, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item, encode) for item in value]
    return encode(value)


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
