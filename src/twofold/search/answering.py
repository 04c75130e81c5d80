"""The line through one search, in one snapshot: legs, order, page, links, records, result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from twofold.backends.protocol import Reader, Visibility
from twofold.links import paths_of, walk
from twofold.ranking import Reached, linked_score
from twofold.search.explain import Diary, Told, explanations
from twofold.search.legs import run_legs
from twofold.search.order import Ranking, rank
from twofold.search.request import PreparedSearch, SearchRequest
from twofold.types import Hit, SearchResult

__all__ = ["answer"]


def answer(
    prepared: PreparedSearch,
    reader: Reader,
    touched: Callable[[Sequence[int], datetime, float | None], None] | None = None,
) -> SearchResult:
    """Run a prepared search in ``reader``'s snapshot.

    Args:
        prepared: the search.
        reader: the session.
        touched: told the keys of all records returned, each once, the time, and what that multiplies their strength
            with, if the search is to touch them.

    Raises:
        SearchUnavailableError: the leg that was asked for by mode, or every leg, cannot answer.
    """
    request, params = prepared.request, prepared.request.params
    diary = Diary(trace=params.trace)
    if prepared.embed_milliseconds:
        diary.note("embed", lambda: Told({"embedder": prepared.fingerprint}), prepared.embed_milliseconds)
    visible = request.visible

    answers = run_legs(prepared, reader, visible, diary)
    ranking = rank(prepared, answers.legs, reader)
    diary.note("fuse", lambda: _ranked(ranking, request))
    page = _page(ranking, request, diary)
    linked = _linked(request, ranking, page, visible, reader, diary) if params.expand else []

    found = [*page, *(each.key for each in linked)]
    records = reader.records(found)
    why = explanations(prepared, answers.legs, ranking, found, reader)
    hits = tuple(Hit(records[key], ranking.score(key), why[key]) for key in page if key in records)
    paths = paths_of(reader, linked)
    if touched is not None and params.touch:
        touched(found, request.at, params.touch_growth)
    diary.note("hydrate", lambda: Told({"ids": [hit.id for hit in hits]}, found))
    return SearchResult(
        hits=hits,
        linked=tuple(
            Hit(
                records[each.key],
                linked_score(each.value, hits[-1].score),
                replace(why[each.key], path=paths[each.key]),
            )
            for each in linked
        ),
        degradations=tuple(answers.degradations),
        timings=diary.timings,
        trace=diary.trace(reader),
    )


def _page(ranking: Ranking, request: SearchRequest, diary: Diary) -> list[int]:
    """The part of the ranking that is asked for, without what scores too low."""
    page = ranking.keys[request.offset : request.wanted]
    least = request.params.min_score
    if least is None:
        return page
    kept = [key for key in page if ranking.score(key) >= least]
    diary.note(
        "threshold",
        lambda: Told(
            {"min_score": least},
            kept,
            {
                key: f"its score, {ranking.score(key):.4g}, is below min_score"
                for key in page
                if ranking.score(key) < least
            },
        ),
    )
    return kept


def _linked(
    request: SearchRequest,
    ranking: Ranking,
    page: Sequence[int],
    visible: Visibility,
    reader: Reader,
    diary: Diary,
) -> list[Reached]:
    """What links lead to from the hits of the page, best first; no hit of this page or an earlier one is among it."""
    params = request.params
    linked = walk(
        reader,
        page,
        visible,
        params,
        limit=params.expand,
        hops=params.hops,
        kinds=params.link_kinds,
        exclude=ranking.keys[: request.offset],
    )
    diary.note("expand", lambda: Told({"hops": params.hops, "linked": len(linked)}, [each.key for each in linked]))
    return linked


def _ranked(ranking: Ranking, request: SearchRequest) -> Told:
    """Fusion, priors and the cut, as they are told."""
    page = ranking.keys[request.offset : request.wanted]
    dropped = dict.fromkeys(ranking.keys[: request.offset], f"on an earlier page: offset is {request.offset}")
    dropped |= dict.fromkeys(ranking.keys[request.wanted :], f"behind the page: k is {request.k}")
    detail = {
        "formula": ranking.fusion.formula,
        "ranked": len(ranking.keys),
        "page": len(page),
        "weighed": len(ranking.factors),
    }
    return Told(detail, page, dropped)
