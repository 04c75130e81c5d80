"""What servers of embeddings answer: vectors with the number of their text, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twofold.errors import EmbedderOutputError, EmbedderUnreachableError, EmbeddingError

__all__ = ["in_order", "refusal_of"]

_SHOWN: Final = 200
"""How much of what a server says is handed on, in characters."""
_OF_A_TEXT: Final = frozenset({400, 413, 422, 500})
"""Statuses by which servers refuse a batch for the sake of one of its texts, among other reasons."""
_TOO_LONG: Final = ("context length", "too long", "maximum input length", "too many tokens", "larger than")
"""How servers say that a text does not fit the model."""


def in_order(data: Any, count: int, who: str, vector_of: Callable[[Any], Any]) -> list[Any]:
    """The vectors of an answer in the order of the texts, whatever order they came in.

    Args:
        data: the answer's items, each with an ``embedding`` and an ``index``: of which text it is, from 0. Without
            any index they are taken to be in order.
        count: how many texts were sent.
        who: gave it, as errors say.
        vector_of: takes the vector out of an item.

    Raises:
        EmbedderOutputError: that is not one vector for each text.
    """
    if not isinstance(data, list):
        raise EmbedderOutputError(
            f"what {who} gave is no answer to a request for embeddings: it has no list called data", text_at_fault=False
        )
    if len(data) != count:
        raise EmbedderOutputError(f"{who} gave {len(data)} vectors for {count} texts")
    try:
        places: list[Any] = [getattr(item, "index", None) for item in data]
        if any(place is not None for place in places):
            if sorted(places) != list(range(count)):
                raise EmbedderOutputError(
                    f"{who} numbered its vectors {places[:8]} for {count} texts, so none can be told whose it is"
                )
            data = [item for _, item in sorted(zip(places, data, strict=True), key=lambda pair: pair[0])]
        vectors = [vector_of(item) for item in data]
    except (AttributeError, TypeError, ValueError) as error:  # not of the shape that an item has
        raise EmbedderOutputError(
            f"what {who} gave is no answer to a request for embeddings ({type(error).__name__})"
        ) from error
    if any(vector is None for vector in vectors):
        raise EmbedderOutputError(f"what {who} gave is no answer to a request for embeddings: it has no vectors")
    return vectors


def refusal_of(who: str, status: int, said: str, *, retry_after: str | None, advice: str | None) -> EmbeddingError:
    """The error for an answer that is none.

    Args:
        who: refused, as the message says.
        status: HTTP's.
        said: in the server's words, without the key. They may repeat a text, so the summary is without them.
        retry_after: what the header of that name says, if it was there.
        advice: what to do, if that is known.
    """
    short = f"{who} refused with status {status}"
    words = f"{who} refused ({status}: {said[:_SHOWN]})"
    if any(phrase in said.lower() for phrase in _TOO_LONG) and status in _OF_A_TEXT:
        return EmbedderOutputError(f"a text is too long for the model; {words}", text_at_fault=True, summary=short)
    if 300 <= status < 400:
        advice = "it sends requests elsewhere, which is not followed: pass the address that is meant"
    if retry_after is not None:
        advice = f"it asks to wait {retry_after[:20]} s"
    more = "" if advice is None else f"; {advice}"
    return EmbedderUnreachableError(
        words + more, text_at_fault=None if status in _OF_A_TEXT else False, summary=short + more
    )
