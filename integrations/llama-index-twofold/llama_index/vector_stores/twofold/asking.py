"""One query of a vector store, in LlamaIndex's modes, as searches of the store."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Real
from typing import Final, TypeVar

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from llama_index.vector_stores.twofold.filters import narrowed
from llama_index.vector_stores.twofold.options import QueryOptions, ranked_by
from llama_index.vector_stores.twofold.vectors import Vector, as_vector
from twofold import (
    Access,
    ConfigurationError,
    Degradation,
    DegradationCode,
    EmbeddingError,
    Explanation,
    Filter,
    Hit,
    HybridStore,
    InvalidVectorError,
    Mode,
    SearchParams,
    SearchResult,
    SearchUnavailableError,
)
from twofold.embedders import degradation_of

__all__ = ["answer"]

_T = TypeVar("_T")

_KEYWORD_MODES: Final = (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH)
_HYBRID_MODES: Final = (VectorStoreQueryMode.HYBRID, VectorStoreQueryMode.SEMANTIC_HYBRID)
_MODES: Final = (VectorStoreQueryMode.DEFAULT, *_KEYWORD_MODES, *_HYBRID_MODES, VectorStoreQueryMode.MMR)
_WITH_ALPHA: Final = ("alpha", "relative", "dbsf", "calibrated")
_DIGITS: Final = 6
"""Of alpha; a leg that counts less than the last of them is left out."""
_UNRANKED: Final = Explanation(legs={}, answered=(), fused=1.0, factors={}, best_possible=1.0, formula="not ranked")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What every search of one query has in common."""

    store: HybridStore
    text: str
    vector: Vector | None
    """The query's, if it came with one that can be any."""
    access: Access | None
    where: Filter
    params: SearchParams

    def search(
        self, mode: Mode, k: int, vector: Vector | None = None, params: SearchParams | None = None
    ) -> SearchResult:
        return self.store.search(
            self.text,
            access=self.access,
            k=k,
            where=self.where,
            mode=mode,
            params=self.params if params is None else params,
            vector=vector,
        )


def answer(
    query: VectorStoreQuery,
    options: QueryOptions,
    store: HybridStore,
    *,
    access: Access | None,
    namespace: tuple[str, ...],
    params: SearchParams | None,
) -> SearchResult:
    """What the store answers, as ``TwofoldVectorStore.query`` tells.

    Args:
        query: LlamaIndex's.
        options: the query's own.
        store: what is searched.
        access: who asks, where the options do not say.
        namespace: where the nodes are.
        params: how to rank, where the options do not say.
    """
    mode = VectorStoreQueryMode(query.mode)
    if mode not in _MODES:
        raise ConfigurationError(
            f"a TwofoldVectorStore has no query mode {mode.value!r}; it has {', '.join(each.value for each in _MODES)}"
        )
    if query.embedding_field is not None:
        raise ConfigurationError("embedding_field: a node has one embedding; leave it out")
    asked = _Asked(
        store=store,
        text=query.query_str or "",
        vector=None if mode in _KEYWORD_MODES else as_vector(query.query_embedding),
        access=_first(options.get("access"), access),
        where=narrowed(
            namespace,
            filters=query.filters,
            doc_ids=query.doc_ids,
            node_ids=query.node_ids or None,  # an index's retriever says [] and means all
            where=_as_filter(options.get("where")),
        ),
        params=ranked_by(options, params, store.settings.search),
    )
    if asked.vector is None and not asked.text.strip():
        return _listed(asked, query.similarity_top_k) if _is_narrowed(query, options) else SearchResult()
    if mode in _KEYWORD_MODES:
        result = asked.search(Mode.KEYWORD, _first(query.sparse_top_k, query.similarity_top_k))
    elif mode in _HYBRID_MODES:
        result = _by_both(asked, query)
    elif mode is VectorStoreQueryMode.MMR:
        result = _diverse(asked, query, options)
    else:
        result = _by_meaning(asked, query.similarity_top_k)
    return _descending(result)


def _descending(result: SearchResult) -> SearchResult:
    """``result``, each hit scoring at most as much as those before it.

    Where they were chosen by something else than their scores, LlamaIndex, which sorts by these, keeps the order so.
    """
    found = (*result.hits, *result.linked)
    least = accumulate((hit.score for hit in found), min)
    found = tuple(replace(hit, score=score) for hit, score in zip(found, least, strict=True))
    return replace(result, hits=found[: len(result.hits)], linked=found[len(result.hits) :])


def _is_narrowed(query: VectorStoreQuery, options: QueryOptions) -> bool:
    """Whether the query says which nodes it wants by other means than a question."""
    by_filters = query.filters is not None and bool(query.filters.filters)
    return by_filters or query.doc_ids is not None or bool(query.node_ids) or options.get("where") is not None


def _listed(asked: _Asked, k: int) -> SearchResult:
    """The newest nodes that the filters leave, all of one score."""
    records = asked.store.list(access=asked.access, where=asked.where, limit=k)
    return SearchResult(hits=tuple(Hit(record, 1.0, _UNRANKED) for record in records))


def _by_meaning(asked: _Asked, k: int) -> SearchResult:
    """The nearest to the query's vector: the one given, else the store's own embedder's; with neither, keywords
    answer.
    """
    trouble: tuple[Degradation, ...] = ()
    if asked.vector is not None:
        try:
            return _nearest(asked, asked.vector, k)
        except (InvalidVectorError, ConfigurationError) as error:
            trouble = (_unusable(error),)
    if asked.text.strip():
        try:
            own = asked.store.embed_queries([asked.text])[0]
        except ConfigurationError:
            pass  # there is no embedder to ask: for such a store keywords are all there is
        except EmbeddingError as error:
            trouble = (*trouble, degradation_of(error))
        else:
            try:
                return _also_degraded(_nearest(asked, own, k), trouble)
            except InvalidVectorError as error:  # the embedder has changed how long its vectors are
                trouble = (*trouble, _unusable(error))
    return _also_degraded(asked.search(Mode.KEYWORD, k), trouble)


def _nearest(asked: _Asked, vector: Vector, k: int) -> SearchResult:
    """The nearest to ``vector``, and what keywords find among the nodes that still wait for theirs.

    Scores stay on the scale of cosines, so that a threshold goes on to mean what it meant.
    """
    try:
        result = asked.search(Mode.VECTOR, k, vector)
    except SearchUnavailableError:  # there is no vector to compare with
        return asked.search(Mode.HYBRID, k, vector)
    if not result.has(DegradationCode.VECTORS_PENDING) or not asked.text.strip():
        return result
    matching = asked.search(Mode.KEYWORD, k)
    vectors = asked.store.vectors([hit.record for hit in matching], access=asked.access)
    best = result[0].score if result else 1.0
    waiting = [replace(hit, score=best * hit.score) for hit, own in zip(matching, vectors, strict=True) if not own]
    found = [*result, *waiting]
    if asked.params.mmr_lambda is None:  # else their order is not that of their scores
        found.sort(key=lambda hit: -hit.score)
    return replace(result, hits=tuple(found[:k]))


def _by_both(asked: _Asked, query: VectorStoreQuery) -> SearchResult:
    """Both legs, as much of each as the query says."""
    nearest, matching = query.similarity_top_k, _first(query.sparse_top_k, query.similarity_top_k)
    wanted = _first(query.hybrid_top_k, query.similarity_top_k)
    alpha = None if query.alpha is None else round(_share("alpha", query.alpha), _DIGITS)
    is_limited = query.sparse_top_k is not None
    if is_limited and not (nearest and matching):
        alpha = 0.0 if matching else 1.0  # of the other leg nothing is wanted
    if alpha == 0:
        return asked.search(Mode.KEYWORD, min(wanted, matching) if is_limited else wanted)
    if alpha == 1:
        return _by_meaning(asked, min(wanted, nearest) if is_limited else wanted)
    params = asked.params if alpha is None else _weighed(asked.params, alpha)
    if not is_limited:
        return _fused(asked, wanted, params)
    result = _fused(asked, wanted, replace(params, keyword_pool=matching, vector_pool=nearest))
    most = {"keyword": matching, "vector": nearest}
    hits = [hit for hit in result if any(found.rank <= most[leg] for leg, found in hit.explanation.legs.items())]
    return replace(result, hits=tuple(hits))


def _fused(asked: _Asked, k: int, params: SearchParams) -> SearchResult:
    if asked.vector is None:
        return asked.search(Mode.HYBRID, k, params=params)
    try:
        return asked.search(Mode.HYBRID, k, asked.vector, params)
    except (InvalidVectorError, ConfigurationError) as error:
        return _also_degraded(asked.search(Mode.HYBRID, k, params=params), (_unusable(error),))


def _weighed(params: SearchParams, alpha: float) -> SearchParams:
    """``params``, the vector leg's share of the fusion being ``alpha``."""
    if params.fusion in _WITH_ALPHA:
        return replace(params, alpha=alpha)
    if not isinstance(params.fusion, str):
        raise ConfigurationError("alpha means nothing to a fusion of your own: leave it out")
    return replace(params, keyword_weight=1 - alpha, vector_weight=alpha)


def _diverse(asked: _Asked, query: VectorStoreQuery, options: QueryOptions) -> SearchResult:
    """Of the nearest those that also differ from each other."""
    threshold = _first(options.get("mmr_threshold"), query.mmr_threshold, 0.5)
    params = replace(
        asked.params,
        mmr_lambda=_share("mmr_threshold", threshold),
        mmr_pool=_prefetched(query.similarity_top_k, options),
        mmr_relevance="cosine",
    )
    return _by_meaning(replace(asked, params=params), query.similarity_top_k)


def _prefetched(k: int, options: QueryOptions) -> int | None:
    """Among how many of the nearest is chosen; None: as many as the pool holds."""
    count, factor = options.get("mmr_prefetch_k"), options.get("mmr_prefetch_factor")
    if count is not None and factor is not None:
        raise ConfigurationError("mmr_prefetch_k and mmr_prefetch_factor say the same: give one")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ConfigurationError(f"mmr_prefetch_k is a whole number of at least 1, not {count!r}")
    if factor is None:
        return count
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor < math.inf:
        raise ConfigurationError(f"mmr_prefetch_factor is a number of at least 1, not {factor!r}")
    return max(1, math.ceil(factor * k))


def _share(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1:
        return float(value)
    raise ConfigurationError(f"{name} is a number from 0 to 1, not {value!r}")


def _unusable(error: Exception) -> Degradation:
    return Degradation(DegradationCode.EMBEDDER_BAD_OUTPUT, f"the query's vector was left out: {error}")


def _also_degraded(result: SearchResult, trouble: tuple[Degradation, ...]) -> SearchResult:
    return replace(result, degradations=(*trouble, *result.degradations))


def _as_filter(where: object) -> Filter | None:
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, dict):
        return Filter.from_dict(where)
    raise ConfigurationError(f"where is made of F(...) and A, or a dict, not {where!r}")


def _first(*values: _T | None) -> _T:
    """The first that is given; 0 is."""
    return next((value for value in values if value is not None), None)  # type: ignore[return-value]  # the last is given
