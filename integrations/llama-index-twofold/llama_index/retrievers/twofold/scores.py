"""What a node's score says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, get_args

from twofold import ConfigurationError, Hit, SearchResult

__all__ = ["Scores", "checked_scores", "scored"]

Scores = Literal["rank", "similarity"]
"""``"rank"``: the score of the fusion, see ``SearchParams.fusion``. ``"similarity"``:
how near a record is to the question, comparable between questions."""


def checked_scores(scores: object) -> Scores:
    """``scores``, if it is one of them.

    Raises:
        ConfigurationError: it is not.
    """
    for known in get_args(Scores):
        if scores == known:
            found: Scores = known
            return found
    raise ConfigurationError(f"scores is one of {', '.join(get_args(Scores))}, not {scores!r}")


def scored(result: SearchResult, scores: Scores, *, include_linked: bool = False) -> list[tuple[Hit, float]]:
    """The hits of ``result`` with their scores, descending.

    With ``"rank"`` the order is the result's; where that is not the order of the scores (``SearchParams.mmr_lambda``),
    none is above the one before it, for LlamaIndex sorts by them.

    With ``"similarity"`` a score is the cosine between question and record, or 0 if that is below 0; where the search
    had no cosine (no embedder, one that is down, a vector that is pending) it is the record's BM25 divided by the best
    one in the result.

    Args:
        result: of a search; for ``"similarity"`` one that was rescored, so that each hit has a cosine.
        scores: what they say.
        include_linked: whether linked records follow, below the last hit in the proportion of their own scores.
    """
    if scores == "similarity":
        found = sorted(_similar(result.hits), key=lambda each: -each[1])
    else:
        found = list(zip(result.hits, accumulate((hit.score for hit in result.hits), min), strict=True))
    if include_linked and result.linked:
        last, shown = result.hits[-1].score, found[-1][1]  # linked ones score below the last, see twofold
        share = shown / last if last else 0.0
        found += [(hit, hit.score * share) for hit in result.linked]
    return found


def _similar(hits: Sequence[Hit]) -> list[tuple[Hit, float]]:
    best = max((hit.explanation.legs["keyword"].raw for hit in hits if "keyword" in hit.explanation.legs), default=0.0)
    similar = []
    for hit in hits:
        legs = hit.explanation.legs
        if "vector" in legs:
            similar.append((hit, max(0.0, legs["vector"].raw)))
        else:
            similar.append((hit, legs["keyword"].raw / best if "keyword" in legs and best > 0 else 0.0))
    return similar
