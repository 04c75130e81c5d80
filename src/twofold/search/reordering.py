"""After fusion: what a reranker thinks of the best, and hits that also differ from each other.

Both put the ranking in another order and leave alone what they did not look at, which follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Reader
from twofold.errors import EmbeddingError
from twofold.ranking import VECTOR, diverse
from twofold.search.explain import Diary, Told
from twofold.search.fields import combined_cosines
from twofold.search.order import Ranking
from twofold.search.request import PreparedSearch, SearchRequest
from twofold.types import Degradation, DegradationCode, Diversity, Record, Reranked

__all__ = ["Likeness", "diversify", "likeness", "rerank"]

_MOST_CHOSEN: Final = 1000
"""How many hits are chosen to differ: each costs a look at all candidates. Whatever the page, so that pages agree."""


# -- what a reranker thinks ---------------------------------------------------------------------------------------


def rerank(
    prepared: PreparedSearch, ranking: Ranking, records: Mapping[int, Record], diary: Diary
) -> Degradation | None:
    """Have the best judged and put them in the reranker's order; equal ones stay in the order that they have. What lies
    past the pools is not judged: it is there only for who pages so far, and pages must agree.

    Returns:
        What was missing, if the reranker failed; everything is as it was then.
    """
    judge, request = prepared.judge, prepared.request
    best = ranking.keys[: min(request.params.rerank, ranking.pooled)]
    judged = [key for key in best if key in records]
    if judge is None or not judged or not request.k:
        return None
    try:
        given = judge.scores(request.text, [records[key].text for key in judged])
    except EmbeddingError as error:
        said = str(error)
        diary.note("rerank", lambda: Told({"reranker": judge.name, "failed": said}, ranking.keys))
        return Degradation(DegradationCode.RERANKER_FAILED, f"{said}; hits keep their fused order")
    scores = dict(zip(judged, given, strict=True))
    ranking.reranked = {
        key: Reranked(place, scores[key], judge.name) for place, key in enumerate(best, start=1) if key in scores
    }
    last = min(1.0, max(0.0, min(given)))
    order = sorted(judged, key=scores.__getitem__, reverse=True)
    rest = [key for key in ranking.keys if key not in scores]
    ranking.scores = {**scores, **{key: min(last, ranking.score(key)) for key in rest}}
    ranking.ceiling = 1.0
    ranking.keys = order + rest
    diary.note("rerank", lambda: Told({"reranker": judge.name, "judged": len(judged)}, ranking.keys))
    return None


# -- hits that differ ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Likeness:
    """What maximal marginal relevance is worked out from, of all candidates."""

    vectors: Mapping[int, npt.NDArray[np.float32]]
    """By key, shape (parts, dimension), whatever field they are of; without records that have none."""
    cosines: Mapping[int, float] | None
    """By key, the cosine to the query, where that is what is relevant."""


def likeness(prepared: PreparedSearch, legs: Collection[str], ranking: Ranking, reader: Reader) -> Likeness:
    """Read it."""
    keys = ranking.keys[: ranking.pooled]
    vectors: dict[int, npt.NDArray[np.float32]] = {}
    for key, stored in reader.vectors(keys).items():
        parts = [each for each in stored.by_field.values() if each.shape[1] == reader.dimension]
        if parts:
            vectors[key] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return Likeness(vectors, _cosines(prepared, legs, keys, reader))


def _cosines(
    prepared: PreparedSearch, legs: Collection[str], keys: Sequence[int], reader: Reader
) -> Mapping[int, float] | None:
    """None where scores are what is relevant, or the vector leg did not answer."""
    params, vector = prepared.request.params, prepared.vector
    if params.mmr_relevance == "score" or vector is None or VECTOR not in legs:
        return None
    if prepared.by_field is None:
        return reader.cosines(vector, keys)
    return combined_cosines(reader, prepared.by_field, keys, params.field_aggregation)


def diversify(prepared: PreparedSearch, ranking: Ranking, alike: Likeness, diary: Diary) -> None:
    """Choose hits that differ from each other among the candidates, of what was judged if a reranker judged, and put
    them first, to the end of the page; a thousand at most, which the others follow by their score.
    """
    request, params = prepared.request, prepared.request.params
    balance = params.mmr_lambda
    if balance is None:
        return
    candidates = ranking.keys[: len(ranking.reranked) or ranking.pooled]
    if params.min_score is not None:
        candidates = [key for key in candidates if ranking.score(key) >= params.min_score]
    candidates = candidates[: params.mmr_pool]
    relevance = _relevance(ranking, alike, candidates)
    in_order = sorted(candidates, key=relevance.__getitem__, reverse=True)  # stable: of equal ones the better score
    most = min(request.wanted, _MOST_CHOSEN)
    chosen = diverse([(key, relevance[key]) for key in in_order], alike.vectors, most, balance)
    places = {key: place for place, key in enumerate(ranking.keys, start=1)}
    ranking.diversity = {key: Diversity(places[key], similarity, balance) for key, similarity in chosen}
    before = ranking.keys
    ranking.keys = [key for key, _ in chosen] + [key for key in before if key not in ranking.diversity]
    diary.note("mmr", lambda: _told(ranking, before[:most], candidates, request, alike))


def _relevance(ranking: Ranking, alike: Likeness, keys: Sequence[int]) -> Mapping[int, float]:
    """The score before it is clipped, or the cosine to the query, 0 where a record has none; never the latter where a
    reranker judged.
    """
    if alike.cosines is not None and not ranking.reranked:
        return {key: alike.cosines.get(key, 0.0) for key in keys}
    return {key: ranking.scores[key] / ranking.ceiling if ranking.ceiling > 0 else 0.0 for key in keys}


def _told(
    ranking: Ranking, best: Sequence[int], candidates: Sequence[int], request: SearchRequest, alike: Likeness
) -> Told:
    """What was chosen, and what by its score alone would have been."""
    among = set(candidates)
    shown = [key for key in ranking.keys[: request.wanted] if key in among]
    on_page = set(shown)
    dropped = dict.fromkeys(shown[: request.offset], f"on an earlier page: offset is {request.offset}")
    passed_over = "more like the chosen ones than its relevance makes up for"
    dropped |= dict.fromkeys((key for key in best if key not in on_page), passed_over)
    behind = among.difference(on_page, dropped)
    dropped |= dict.fromkeys((key for key in candidates if key in behind), "behind the page")
    without = sum(key not in alike.vectors for key in candidates)
    return Told({"among": len(candidates), "without_vector": without}, shown[request.offset :], dropped)
