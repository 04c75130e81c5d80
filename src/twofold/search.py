"""One query, from its text to its hits.

:func:`prepare` checks what was asked and has it embedded, before any lock or transaction; :func:`answer` does the
rest within one snapshot: both legs, fusion, the cut, hydration. A batch runs several answers in one snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import perf_counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Backend, Candidate, Reader, Visibility
from twofold.config import SearchParams
from twofold.embedders import Guard, degradation_of
from twofold.errors import (
    ConfigurationError,
    EmbeddingError,
    InvalidVectorError,
    SearchUnavailableError,
)
from twofold.filters import Filter
from twofold.links import paths_of, walk
from twofold.ranking import (
    Reached,
    adjacency_factor,
    in_total_order,
    linked_score,
    reciprocal_rank,
    reciprocal_rank_fusion,
    reciprocal_rank_maximum,
)
from twofold.text import MAX_TERMS, KeywordQuery
from twofold.types import (
    Access,
    Degradation,
    DegradationCode,
    Explanation,
    Hit,
    LegScore,
    Mode,
    SearchResult,
    Stage,
    Vectors,
)
from twofold.vectors import as_vector

__all__ = ["PreparedSearch", "SearchRequest", "answer", "prepare"]

KEYWORD: Final = "keyword"
VECTOR: Final = "vector"

_ONE_LEG: Final = {Mode.KEYWORD: "bm25 / best", Mode.VECTOR: "cosine"}
"""How a leg alone is scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is asked."""

    text: str
    access: Access
    k: int
    offset: int
    where: Filter | None
    mode: Mode
    params: SearchParams
    vector: Vectors | None
    at: datetime

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConfigurationError(f"a search asks for text, not {type(self.text).__name__}")
        for name, value in (("k", self.k), ("offset", self.offset)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} is a whole number of at least 0, not {value!r}")


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A request with its vector, ready to run in a snapshot."""

    request: SearchRequest
    query: KeywordQuery
    vector: npt.NDArray[np.float32] | None
    fingerprint: str | None
    """Of the embedder that ``vector`` is of."""
    configured: tuple[str, ...]
    """The legs that would answer if nothing were missing: what scores are scaled by."""
    degradations: tuple[Degradation, ...]
    failure: EmbeddingError | None
    embed_milliseconds: float


@dataclass(slots=True)
class _Leg:
    """One leg's candidates, best first."""

    candidates: list[Candidate]
    factors: Mapping[int, float] = field(default_factory=dict)
    """By key, what adjacency multiplied the score with, where that is not 1."""

    def head(self, pool: int) -> list[int]:
        """The keys that take part in fusion."""
        return [key for key, _ in self.candidates[:pool]]


@dataclass(slots=True)
class _Ranking:
    """All that was found, in its final order as far as it was asked for."""

    keys: list[int]
    fused: Mapping[int, float]
    """By key, the score before it is scaled."""
    best: float
    """What scores are divided by."""
    formula: str

    def score(self, key: int) -> float:
        """From 0 to 1."""
        return min(1.0, max(0.0, self.fused[key] / self.best)) if self.best > 0 else 0.0


class _Diary:
    """Notes what each stage took and, if a trace is asked for, what went through it."""

    def __init__(self, *, trace: bool) -> None:
        self.timings: dict[str, float] = {}
        self.stages: list[Stage] | None = [] if trace else None
        self._since = perf_counter()

    def note(self, stage: str, detail: Mapping[str, Any], milliseconds: float | None = None) -> None:
        now = perf_counter()
        taken = (now - self._since) * 1000 if milliseconds is None else milliseconds
        self._since = now
        self.timings[stage] = taken
        if self.stages is not None:
            self.stages.append(Stage(stage, taken, detail))


def prepare(request: SearchRequest, backend: Backend, guard: Guard | None) -> PreparedSearch:
    """Check the request and embed its text. No snapshot is open meanwhile.

    Raises:
        InvalidVectorError: the vector given is zero, not finite or of the wrong length.
        ConfigurationError: the store has no embedder that a given vector could be of.
        SearchUnavailableError: vectors were asked for by mode and cannot be had.
    """
    params, mode = request.params, request.mode
    wants_keyword = mode is Mode.KEYWORD or (mode is Mode.HYBRID and params.keyword_weight > 0)
    wants_vector = mode is Mode.VECTOR or (mode is Mode.HYBRID and params.vector_weight > 0)
    given = None if request.vector is None else _given_vector(request.vector, guard, backend.fields)
    query = backend.analyzer.query(request.text) if wants_keyword else KeywordQuery()
    can_embed = guard is not None and guard.embeds

    if mode is Mode.VECTOR and given is None and not can_embed:
        raise SearchUnavailableError(
            "mode='vector' needs an embedder, twofold.open(..., embedder=...), "
            "or a ready vector, search(..., vector=...)"
        )
    vector, taken = given, 0.0
    failure: EmbeddingError | None = None
    degradations: tuple[Degradation, ...] = ()
    if wants_vector and given is None and can_embed and guard is not None and _has_words(request.text, query):
        started = perf_counter()
        try:
            vector = guard.query(request.text)
        except EmbeddingError as error:
            failure, degradations = error, (degradation_of(error),)
        taken = (perf_counter() - started) * 1000
    configured = [KEYWORD] if wants_keyword else []
    if wants_vector and (given is not None or can_embed):
        configured.append(VECTOR)
    return PreparedSearch(
        request=request,
        query=query,
        vector=vector if wants_vector else None,
        fingerprint=None if guard is None else guard.fingerprint,
        configured=tuple(configured),
        degradations=degradations,
        failure=failure,
        embed_milliseconds=taken,
    )


def answer(
    prepared: PreparedSearch, reader: Reader, touched: Callable[[Sequence[int], datetime], None] | None = None
) -> SearchResult:
    """Run a prepared search in ``reader``'s snapshot.

    Args:
        prepared: the search.
        reader: the session.
        touched: told the keys of all records returned, each once, and the time, if the search is to touch them.

    Raises:
        SearchUnavailableError: the leg that was asked for by mode, or every leg, cannot answer.
    """
    request, params = prepared.request, prepared.request.params
    diary = _Diary(trace=params.trace)
    if prepared.embed_milliseconds:
        diary.note("embed", {"embedder": prepared.fingerprint}, prepared.embed_milliseconds)
    degradations = list(prepared.degradations)
    visible = Visibility(request.access, request.at, request.where, params.include_archived)
    depth = max(params.pool, request.offset + request.k)
    legs: dict[str, _Leg] = {}
    failures: list[Exception] = [] if prepared.failure is None else [prepared.failure]

    if KEYWORD in prepared.configured and prepared.query:
        try:
            query = _within_limit(prepared.query, reader, degradations)
            legs[KEYWORD] = _keyword_leg(query, reader, visible, depth, params)
        except SearchUnavailableError as error:
            failures.append(error)
            degradations.append(Degradation(DegradationCode.KEYWORD_UNAVAILABLE, str(error)))
        diary.note(KEYWORD, _leg_detail(legs.get(KEYWORD), terms=prepared.query.terms))
    if prepared.vector is not None:
        obstacle = _space_obstacle(prepared, reader)
        if obstacle is None:
            legs[VECTOR] = _vector_leg(prepared.vector, reader, visible, depth, params, degradations)
        elif obstacle.code is DegradationCode.SPACE_MISMATCH or reader.pending(visible):
            degradations.append(obstacle)
            failures.append(SearchUnavailableError(obstacle.message))
        diary.note(VECTOR, _leg_detail(legs.get(VECTOR), embedder=prepared.fingerprint))
    _refuse_if_nothing_answered(prepared, legs, failures)

    ranking = _rank(prepared, legs, reader)
    page = ranking.keys[request.offset : request.offset + request.k]
    if params.min_score is not None:
        page = [key for key in page if ranking.score(key) >= params.min_score]
    diary.note("fuse", {"formula": ranking.formula, "ranked": len(ranking.keys), "page": len(page)})

    linked: list[Reached] = []
    if params.expand:
        linked = _linked(request, ranking, page, visible, reader)
        diary.note("expand", {"hops": params.hops, "linked": len(linked)})

    found = [*page, *(each.key for each in linked)]
    records = reader.records(found)
    explanations = _explanations(prepared, legs, ranking, found)
    hits = tuple(Hit(records[key], ranking.score(key), explanations[key]) for key in page if key in records)
    paths = paths_of(reader, linked)
    if touched is not None and params.touch:
        touched(found, request.at)
    diary.note("hydrate", {"ids": [hit.id for hit in hits]})
    return SearchResult(
        hits=hits,
        linked=tuple(
            Hit(
                records[each.key],
                linked_score(each.value, hits[-1].score),
                replace(explanations[each.key], path=paths[each.key]),
            )
            for each in linked
        ),
        degradations=tuple(degradations),
        timings=diary.timings,
        trace=None if diary.stages is None else tuple(diary.stages),
    )


def _has_words(text: str, query: KeywordQuery) -> bool:
    """Whether there is anything to search for: punctuation alone is not worth an embedding."""
    return bool(query) or any(char.isalnum() for char in text)


def _given_vector(vector: Vectors, guard: Guard | None, fields: tuple[str, ...]) -> npt.NDArray[np.float32]:
    if guard is None:
        raise ConfigurationError(
            "search(..., vector=...) needs to know what made the vector: "
            "twofold.open(..., embedder=GivenVectors(name, dimension))"
        )
    if isinstance(vector, Mapping):
        unknown = sorted(set(vector) - set(fields))
        if unknown or len(vector) != 1:
            raise ConfigurationError(f"vector is one vector, or {{field: vector}} for one of the fields {fields}")
        return as_vector(next(iter(vector.values())), guard.dimension, "the query's vector")
    return as_vector(vector, guard.dimension, "the query's vector")


def _within_limit(query: KeywordQuery, reader: Reader, degradations: list[Degradation]) -> KeywordQuery:
    """The query with its rarest tokens if it has too many; tokens that occur nowhere are not missed."""
    tokens = query.tokens
    if len(tokens) <= MAX_TERMS:
        return query
    frequencies = reader.document_frequencies(tokens)
    rarest = sorted((token for token in tokens if token in frequencies), key=lambda token: frequencies[token])
    degradations.append(
        Degradation(
            DegradationCode.QUERY_TRUNCATED,
            f"the query has {len(tokens)} distinct tokens; the rarest {MAX_TERMS} were searched",
        )
    )
    return query.keeping(frozenset(rarest[:MAX_TERMS]))


def _keyword_leg(query: KeywordQuery, reader: Reader, visible: Visibility, depth: int, params: SearchParams) -> _Leg:
    """BM25, then a bounded re-ordering of the pool: words side by side as asked come before the same words apart."""
    candidates = reader.keyword(query, visible, depth)
    if not (query.pairs and params.adjacency and len(candidates) > 1):
        return _Leg(candidates)
    head, tail = candidates[: params.pool], candidates[params.pool :]
    found = reader.adjacent(query.pairs, [candidate.key for candidate in head])
    if not found:
        return _Leg(candidates)
    asked = len(query.pairs)
    factors = {key: adjacency_factor(count, asked, params.adjacency) for key, count in found.items()}
    moved = [Candidate(key, score * factors.get(key, 1.0)) for key, score in head]
    moved.sort(key=lambda candidate: -candidate.score)  # stable: equal scores stay in the leg's total order
    return _Leg([*moved, *tail], factors)


def _vector_leg(
    vector: npt.NDArray[np.float32],
    reader: Reader,
    visible: Visibility,
    depth: int,
    params: SearchParams,
    degradations: list[Degradation],
) -> _Leg:
    nearest = reader.nearest(vector, visible, depth)
    if nearest.unembedded:
        degradations.append(
            Degradation(
                DegradationCode.VECTORS_PENDING,
                f"{nearest.unembedded} of the records searched have no vector yet; they are found by keyword only",
            )
        )
    if nearest.fell_back is not None:
        degradations.append(Degradation(DegradationCode.EXACT_FALLBACK, nearest.fell_back))
    candidates = list(nearest.candidates)
    if params.min_similarity is not None:
        candidates = [candidate for candidate in candidates if candidate.score >= params.min_similarity]
    return _Leg(candidates)


def _space_obstacle(prepared: PreparedSearch, reader: Reader) -> Degradation | None:
    """Why the stored vectors cannot be compared with the query's; None if they can."""
    if reader.fingerprint is None:
        return Degradation(DegradationCode.VECTORS_PENDING, "no record has a vector yet; keywords answered alone")
    length = 0 if prepared.vector is None else int(prepared.vector.size)
    if reader.fingerprint == prepared.fingerprint and reader.dimension == length:
        return None
    if prepared.request.vector is not None and reader.fingerprint == prepared.fingerprint:
        raise InvalidVectorError(f"the query's vector has {length} numbers; the stored ones have {reader.dimension}")
    return Degradation(
        DegradationCode.SPACE_MISMATCH,
        f"the stored vectors are of {reader.fingerprint!r} ({reader.dimension} numbers), the query's is of "
        f"{prepared.fingerprint!r} ({length}); open the store with the embedder it was made with",
    )


def _refuse_if_nothing_answered(
    prepared: PreparedSearch, legs: Mapping[str, _Leg], failures: Sequence[Exception]
) -> None:
    if legs or not failures:
        return
    mode = prepared.request.mode
    reasons = "; ".join(str(failure) for failure in failures)
    if KEYWORD in prepared.configured and not prepared.query:
        # Keywords could have answered but there were none to look for: the missing vector is then all that was left.
        raise SearchUnavailableError(f"the text has no keywords and could not be embedded: {reasons}") from failures[0]
    what = f"mode={mode.value!r} cannot answer" if mode is not Mode.HYBRID else "neither leg can answer"
    raise SearchUnavailableError(f"{what}: {reasons}") from failures[0]


def _tie_breakers(reader: Reader) -> Any:
    return lambda keys: {key: identity.order for key, identity in reader.identities(keys).items()}


def _rank(prepared: PreparedSearch, legs: Mapping[str, _Leg], reader: Reader) -> _Ranking:
    """One ranking of all that the legs found: in order at least to the end of the page."""
    request, params = prepared.request, prepared.request.params
    if request.mode is not Mode.HYBRID:
        candidates = next((leg.candidates for leg in legs.values()), [])
        best = 1.0 if request.mode is Mode.VECTOR or not candidates else candidates[0].score
        return _Ranking([key for key, _ in candidates], dict(candidates), best, _ONE_LEG[request.mode])
    weights = {KEYWORD: params.keyword_weight, VECTOR: params.vector_weight}
    fused = reciprocal_rank_fusion({leg: legs[leg].head(params.pool) for leg in legs}, weights, params.rrf_k)
    wanted = request.offset + request.k
    keys = in_total_order(fused, _tie_breakers(reader), wanted)
    if wanted > len(keys):
        keys += _beyond_the_pool(legs, fused, weights, params, reader)
    best = reciprocal_rank_maximum({leg: weights[leg] for leg in prepared.configured}, params.rrf_k)
    return _Ranking(keys, fused, best, f"rrf(k={params.rrf_k:g})")


def _beyond_the_pool(
    legs: Mapping[str, _Leg],
    fused: dict[int, float],
    weights: Mapping[str, float],
    params: SearchParams,
    reader: Reader,
) -> list[int]:
    """What lies past every leg's pool, in leg order: by the better of its ranks, whatever the depth looked at, so that
    pages neither overlap nor skip. The scores, added to ``fused``, go on falling from where the pool's ended.
    """
    best_rank: dict[int, tuple[int, str]] = {}
    for leg, found in legs.items():
        for rank, candidate in enumerate(found.candidates, start=1):
            if candidate.key not in fused and rank < best_rank.get(candidate.key, (rank + 1, ""))[0]:
                best_rank[candidate.key] = (rank, leg)
    ordered = in_total_order({key: -float(rank) for key, (rank, _) in best_rank.items()}, _tie_breakers(reader))
    ceiling = min(fused.values(), default=math.inf)
    for key in ordered:
        rank, leg = best_rank[key]
        ceiling = min(ceiling, reciprocal_rank(rank, weights[leg], params.rrf_k))
        fused[key] = ceiling
    return ordered


def _linked(
    request: SearchRequest, ranking: _Ranking, page: Sequence[int], visible: Visibility, reader: Reader
) -> list[Reached]:
    """What links lead to from the hits of the page, best first; no hit of this page or an earlier one is among it."""
    params = request.params
    return walk(
        reader,
        page,
        visible,
        params,
        limit=params.expand,
        hops=params.hops,
        kinds=params.link_kinds,
        exclude=ranking.keys[: request.offset],
    )


def _explanations(
    prepared: PreparedSearch, legs: Mapping[str, _Leg], ranking: _Ranking, page: Sequence[int]
) -> dict[int, Explanation]:
    """Where each record of the page comes from."""
    params = prepared.request.params
    weights = {KEYWORD: params.keyword_weight, VECTOR: params.vector_weight}
    scores: dict[int, dict[str, LegScore]] = {key: {} for key in page}
    for leg, found in legs.items():
        for rank, (key, score) in enumerate(found.candidates, start=1):
            if key in scores:
                factor = found.factors.get(key, 1.0)
                alone = prepared.request.mode is not Mode.HYBRID
                added = score if alone else reciprocal_rank(rank, weights[leg], params.rrf_k)
                scores[key][leg] = LegScore(rank=rank, raw=score / factor, adjacency=factor, contribution=added)
    return {
        key: Explanation(
            legs=scores[key],
            answered=tuple(legs),
            fused=ranking.fused.get(key, 0.0),
            best_possible=ranking.best,
            formula=ranking.formula,
        )
        for key in page
    }


def _leg_detail(leg: _Leg | None, **asked: Any) -> Mapping[str, Any]:
    return {**asked, "found": None if leg is None else len(leg.candidates)}
