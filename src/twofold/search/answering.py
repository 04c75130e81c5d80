"""The line through one search: legs, order, page, links, records, result; in one snapshot, unless a reranker is asked.

A reranker is asked when the snapshot is closed, so with one there are two halves: the first reads all that may become
a hit, the second puts it in order. Links lead from the hits that there then are, and are followed in a snapshot of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias

from twofold.backends.protocol import Reader, Visibility
from twofold.config import SearchParams
from twofold.links import paths_of, walk
from twofold.ranking import Reached, linked_score
from twofold.search.explain import Diary, Explainer, Told, explainer
from twofold.search.hyde import Written
from twofold.search.legs import Answers, run_legs
from twofold.search.neighbours import Neighbours, neighbours_of
from twofold.search.order import Ranking, rank
from twofold.search.reordering import Likeness, diversify, likeness, rerank
from twofold.search.request import PreparedSearch
from twofold.types import Hit, LinkStep, Record, SearchResult
from twofold.types.result import unexplained_hit

__all__ = ["Touched", "answer", "answers"]

Touched: TypeAlias = Callable[[Sequence[int], datetime, float | None], None]
"""Told the keys of all records returned, each once, the time, and what that multiplies their strength with, if the
search is to touch them."""


def answers(
    prepared: Sequence[PreparedSearch],
    read: Callable[[], AbstractContextManager[Reader]],
    touched: Touched | None = None,
) -> list[SearchResult]:
    """Run searches that differ in nothing but what is asked, in one snapshot; with a reranker, which is asked after
    that, their links are followed in a second one. What may be found is worked out once for all of them.

    Args:
        prepared: the searches.
        read: opens a snapshot.
        touched: see :data:`Touched`.

    Raises:
        SearchUnavailableError: the leg that was asked for by mode, or every leg, cannot answer one of them.
    """
    if not prepared:
        return []
    visible = prepared[0].request.visible
    with read() as reader:
        neighbours = neighbours_of(prepared, reader, visible)
        if not any(each.judge for each in prepared):
            return [_answered(each, reader, visible, neighbours, touched) for each in prepared]
        waiting = [_gathered(each, reader, visible, neighbours) for each in prepared]
    for each in waiting:
        each.judge()
    if not any(each.found.prepared.request.params.expand for each in waiting):
        return [each.finish(None, touched) for each in waiting]
    with read() as reader:
        return [each.finish(reader, touched) for each in waiting]


def answer(prepared: PreparedSearch, reader: Reader, touched: Touched | None = None) -> SearchResult:
    """Run a search that asks no reranker in ``reader``'s snapshot.

    Args:
        prepared: the search.
        reader: the session.
        touched: see :data:`Touched`.

    Raises:
        SearchUnavailableError: the leg that was asked for by mode, or every leg, cannot answer.
    """
    visible = prepared.request.visible
    return _answered(prepared, reader, visible, neighbours_of([prepared], reader, visible), touched)


def _answered(
    prepared: PreparedSearch, reader: Reader, visible: Visibility, neighbours: Neighbours, touched: Touched | None
) -> SearchResult:
    found = _find(prepared, reader, visible, neighbours)
    params = prepared.request.params
    if params.mmr_lambda is not None:
        diversify(prepared, found.ranking, likeness(prepared, found.answers.legs, found.ranking, reader), found.diary)
    page = _page(found)
    linked = _linked(found, page, reader) if params.expand else []
    keys = [*page, *(each.key for each in linked)]
    records = reader.records(keys)
    why = explainer(prepared, found.answers.legs, found.ranking, keys, reader)
    hits = _hits(found.ranking, [key for key in page if key in records], records, why)
    paths = paths_of(reader, linked) if linked else {}
    if touched is not None and params.touch:
        touched(keys, prepared.request.at, params.touch_growth)
    found.diary.note("hydrate", lambda: Told({"ids": [hit.id for hit in hits]}, keys))
    found.diary.learn(reader)
    return _result(found, hits, linked, records, why, paths)


# -- with a reranker ----------------------------------------------------------------------------------------------


def _gathered(prepared: PreparedSearch, reader: Reader, visible: Visibility, neighbours: Neighbours) -> _Gathered:
    """All that may become a hit, with all that is told of it."""
    found = _find(prepared, reader, visible, neighbours)
    request, ranking = prepared.request, found.ranking
    diverse = request.params.mmr_lambda is not None
    most = max(request.wanted, ranking.pooled if diverse else request.params.rerank)
    records = reader.records(ranking.keys[:most])
    keys = [key for key in ranking.keys[:most] if key in records]
    why = explainer(prepared, found.answers.legs, ranking, keys, reader)
    alike = likeness(prepared, found.answers.legs, ranking, reader) if diverse else None
    found.diary.note("hydrate", lambda: Told({"ids": [records[key].id for key in keys]}, keys))
    found.diary.learn(reader)
    return _Gathered(found, records, why, alike)


@dataclass(slots=True)
class _Gathered:
    """A search between its snapshot and its result."""

    found: _Found
    records: dict[int, Record]
    why: Explainer
    alike: Likeness | None

    def judge(self) -> None:
        """Ask the reranker, and put what was found in its order; then choose what differs, if that is asked for."""
        found = self.found
        degradation = rerank(found.prepared, found.ranking, self.records, found.diary)
        if degradation is not None:
            found.answers.degradations.append(degradation)
        if self.alike is not None:
            diversify(found.prepared, found.ranking, self.alike, found.diary)

    def finish(self, reader: Reader | None, touched: Touched | None) -> SearchResult:
        """The result; ``reader`` is for links, if they are followed."""
        found, params = self.found, self.found.prepared.request.params
        ranking = found.ranking
        page = [key for key in _page(found) if key in self.records]
        linked = [] if reader is None or not params.expand else _linked(found, page, reader)
        why, paths = self.why, dict[int, tuple[LinkStep, ...]]()
        if reader is not None and linked:
            more = [each.key for each in linked]
            self.records |= reader.records(more)
            why = explainer(found.prepared, found.answers.legs, ranking, more, reader)
            paths = paths_of(reader, linked)
            found.diary.learn(reader)
        hits = _hits(ranking, page, self.records, self.why)
        if touched is not None and params.touch:
            touched([*page, *(each.key for each in linked)], found.prepared.request.at, params.touch_growth)
        return _result(found, hits, linked, self.records, why, paths)


# -- what both have in common -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Found:
    """What the legs found, in the order of the fused scores."""

    prepared: PreparedSearch
    visible: Visibility
    diary: Diary
    answers: Answers
    ranking: Ranking


def _find(prepared: PreparedSearch, reader: Reader, visible: Visibility, neighbours: Neighbours) -> _Found:
    request = prepared.request
    diary = Diary(trace=request.params.trace)
    if prepared.embed_milliseconds:
        diary.note("embed", lambda: Told({"embedder": prepared.fingerprint}), prepared.embed_milliseconds)
    if prepared.written is not None:
        _note_hyde(diary, prepared.written, request.params)
    found = run_legs(prepared, reader, visible, neighbours, diary)
    ranking = rank(prepared, found.legs, reader, visible)
    diary.note("fuse", lambda: _ranked(ranking, prepared))
    return _Found(prepared, visible, diary, found, ranking)


def _note_hyde(diary: Diary, written: Written, params: SearchParams) -> None:
    came_of_it = {"vector": params.hyde_vector} if written.failure is None else {"failed": str(written.failure)}
    diary.note("hyde", lambda: Told({"written": written.text, **came_of_it}), written.milliseconds)


def _page(found: _Found) -> list[int]:
    """The part of the ranking that is asked for, without what scores too low."""
    request, ranking = found.prepared.request, found.ranking
    page = ranking.keys[request.offset : request.wanted]
    least = request.params.min_score
    if least is None:
        return page
    kept = [key for key in page if ranking.score(key) >= least]
    found.diary.note(
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


def _linked(found: _Found, page: Sequence[int], reader: Reader) -> list[Reached]:
    """What links lead to from the hits of the page, best first; no hit of this page or an earlier one is among it."""
    request = found.prepared.request
    params = request.params
    linked = walk(
        reader,
        page,
        found.visible,
        params,
        limit=params.expand,
        hops=params.hops,
        kinds=params.link_kinds,
        exclude=found.ranking.keys[: request.offset],
    )
    found.diary.note(
        "expand", lambda: Told({"hops": params.hops, "linked": len(linked)}, [each.key for each in linked])
    )
    return linked


def _hits(ranking: Ranking, page: Sequence[int], records: Mapping[int, Record], why: Explainer) -> tuple[Hit, ...]:
    return tuple([unexplained_hit(records[key], ranking.score(key), partial(why.of, key)) for key in page])


def _result(
    found: _Found,
    hits: tuple[Hit, ...],
    linked: Sequence[Reached],
    records: Mapping[int, Record],
    why: Explainer,
    paths: Mapping[int, tuple[LinkStep, ...]],
) -> SearchResult:
    return SearchResult(
        hits=hits,
        linked=tuple(
            unexplained_hit(
                records[each.key],
                linked_score(each.value, hits[-1].score),
                partial(why.of, each.key, paths[each.key]),
            )
            for each in linked
        ),
        degradations=tuple(found.answers.degradations),
        timings=found.diary.timings,
        trace=found.diary.trace(),
    )


def _ranked(ranking: Ranking, prepared: PreparedSearch) -> Told:
    """Fusion, priors and the cut, as they are told; where another order follows, there is no cut yet."""
    request = prepared.request
    start, stop = (0, max(ranking.pooled, request.wanted)) if prepared.reorders else (request.offset, request.wanted)
    page = ranking.keys[start:stop]
    dropped = dict.fromkeys(ranking.keys[:start], f"on an earlier page: offset is {request.offset}")
    dropped |= dict.fromkeys(ranking.keys[stop:], f"behind the page: k is {request.k}")
    detail = {
        "formula": ranking.fusion.formula,
        "ranked": len(ranking.keys),
        "page": len(page),
        "weighed": len(ranking.factors),
    }
    return Told(detail, page, dropped)
