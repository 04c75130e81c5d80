"""The two legs: what each finds, and the scores that one has of what the other found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Candidate, Nearest, Reader, Visibility, as_candidates, by_key, keys_of
from twofold.errors import InvalidVectorError, SearchUnavailableError
from twofold.ranking import KEYWORD, VECTOR, adjacency_factor, composite, in_total_order, leg_name
from twofold.search.explain import Diary
from twofold.search.fields import combined_cosines, nearest_by_fields
from twofold.search.neighbours import Neighbours
from twofold.search.request import PreparedSearch
from twofold.text import MAX_TERMS, KeywordQuery
from twofold.types import Degradation, DegradationCode, Mode

__all__ = ["Answers", "Leg", "run_legs"]

Vector: TypeAlias = npt.NDArray[np.float32]

_JUST_BELOW: Final = 1 - 1e-6
"""Far more than the rounding of a fused sum, far less than what a rank is worth."""


@dataclass(slots=True)
class Leg:
    """What one leg found, in two parts: what takes part in fusion, and what lies past the pool."""

    head: dict[int, float]
    """Scores by key, best first: the pool, and what only the other leg found if that is rescored."""
    tail: dict[int, float]
    """Likewise; looked at only by those who page so far."""
    pool: int
    """How many the pool holds at most: the rank of the first of the tail is one more."""
    query: KeywordQuery | None = None
    """Of the keyword leg, the words that were searched for."""
    raw: dict[int, float] = field(default_factory=dict)
    """By key the leg's own score, where it was changed."""
    adjacency: Mapping[int, float] = field(default_factory=dict)
    """By key, what words side by side multiplied the score with, where that is not 1."""
    dropped: dict[int, str] = field(default_factory=dict)
    """By key, why it was left out."""


@dataclass(slots=True)
class Answers:
    """What the legs answered, and what they could not."""

    legs: dict[str, Leg]
    degradations: list[Degradation]


def run_legs(
    prepared: PreparedSearch, reader: Reader, visible: Visibility, neighbours: Neighbours, diary: Diary
) -> Answers:
    """Ask both legs of each phrasing, as far as they are wanted and can answer.

    Args:
        prepared: the search.
        reader: the session.
        visible: what may be found.
        neighbours: what the vector legs would find, as far as that was looked up before.
        diary: is told what the legs did.

    Raises:
        SearchUnavailableError: none can.
        InvalidVectorError: the vector given is of another length than the stored ones.
    """
    answers = _legs_of_one(prepared, reader, visible, neighbours, diary, 1)
    for number, other in enumerate(prepared.others, start=2):
        more = _legs_of_one(other, reader, visible, neighbours, diary, number)
        answers.legs |= more.legs
        answers.degradations += [each for each in more.degradations if each not in answers.degradations]
    return answers


def _legs_of_one(
    prepared: PreparedSearch, reader: Reader, visible: Visibility, neighbours: Neighbours, diary: Diary, number: int
) -> Answers:
    """The legs of the phrasing of this number, from 1."""
    params = prepared.request.params
    answers = Answers({}, list(prepared.degradations))
    failures: list[Exception] = [] if prepared.failure is None else [prepared.failure]
    asked, keyword, nearest = prepared.vector, None, None
    if asked is not None:
        obstacle = _space_obstacle(prepared, reader)
        if obstacle is None:
            try:
                found = _nearest(prepared, asked, reader, visible, neighbours, diary)
                nearest = _vector_leg(prepared, found, answers.degradations)
            except SearchUnavailableError as error:
                failures.append(error)
                answers.degradations.append(Degradation(DegradationCode.INDEX_BUILDING, str(error)))
        elif obstacle.code is DegradationCode.SPACE_MISMATCH or reader.pending(visible):
            answers.degradations.append(obstacle)
            failures.append(SearchUnavailableError(obstacle.message))
        diary.note_leg(leg_name(VECTOR, number), nearest, embedder=prepared.fingerprint)
    if KEYWORD in prepared.configured and prepared.query:
        also = list(nearest.head) if nearest is not None and params.rescore else []
        try:
            keyword = _keyword_leg(prepared, reader, visible, also, answers.degradations)
        except SearchUnavailableError as error:
            failures.append(error)
            answers.degradations.append(Degradation(DegradationCode.KEYWORD_UNAVAILABLE, str(error)))
        diary.note_leg(leg_name(KEYWORD, number), keyword, terms=prepared.query.terms)
    if params.rescore and asked is not None and keyword is not None and nearest is not None:
        _add_cosines(prepared, asked, reader, nearest, keyword.head)
        diary.note_leg(leg_name("rescore", number), nearest)
    if keyword is not None:
        answers.legs[leg_name(KEYWORD, number)] = keyword
    if nearest is not None:
        answers.legs[leg_name(VECTOR, number)] = nearest
    if failures and not answers.legs:
        _refuse(prepared, failures)
    return answers


def _in_order(scores: Mapping[int, float], reader: Reader) -> dict[int, float]:
    """The scores in total order."""
    return {key: scores[key] for key in in_total_order(scores, reader.places)}


# -- keyword ------------------------------------------------------------------------------------------------------


def _keyword_leg(
    prepared: PreparedSearch, reader: Reader, visible: Visibility, also: Sequence[int], degradations: list[Degradation]
) -> Leg:
    """BM25 of the best, and of ``also``; then words side by side as asked come before the same words apart."""
    request, params = prepared.request, prepared.request.params
    query = _within_limit(prepared.query, reader, degradations)
    pool, _ = params.pools(request.k)
    weighed = params.prior == "keyword"
    found = reader.keyword(query, visible, max(pool, request.wanted), composite=weighed, also=also)
    leg = Leg(by_key(found[:pool]), by_key(found[pool:]), pool, query)
    if params.keyword_operator == "and_or" and len(query.terms) > 1:
        found = _all_words_first(leg, reader.keyword(query, visible, len(found), every=True, composite=weighed), found)
        leg.head, leg.tail = by_key(found[:pool]), by_key(found[pool:])
    extras = [key for key in also if key not in leg.head]
    if extras:
        _add_keyword_scores(leg, query, extras, reader, weighed=weighed, capped=params.keyword_operator == "and_or")
    if query.pairs and params.adjacency and len(leg.head) > 1:
        _move_neighbours_up(leg, query, reader, params.adjacency)
    return leg


def _within_limit(query: KeywordQuery, reader: Reader, degradations: list[Degradation]) -> KeywordQuery:
    """The query with its rarest tokens if it has too many; tokens that occur nowhere are not missed."""
    if sum([len(term.tokens) for term in query.terms]) <= MAX_TERMS:
        return query
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


def _all_words_first(leg: Leg, every: list[Candidate], some: list[Candidate]) -> list[Candidate]:
    """Those with every word, then those with some, whose scores end where the others' do."""
    have_all = set(keys_of(every))
    rest = {key: score for key, score in some if key not in have_all}
    below = _below(every[-1].score, rest) if every else rest
    if below is not rest:
        leg.raw.update(rest)
    return [*every, *as_candidates(below.items())][: len(some)]


def _below(ceiling: float, scores: dict[int, float]) -> dict[int, float]:
    """The scores, made smaller by one factor if the best is not below the ceiling: fusions by score then neither tie
    what they must keep apart, nor lose the order of these.
    """
    best = max(scores.values(), default=0.0)
    if best < ceiling or best <= 0:
        return scores
    return {key: score / best * ceiling * _JUST_BELOW for key, score in scores.items()}


def _add_keyword_scores(
    leg: Leg, query: KeywordQuery, keys: Sequence[int], reader: Reader, *, weighed: bool, capped: bool
) -> None:
    """Put what the other leg found in its place behind what this one found, by its true score."""
    scores = reader.keyword_scores(query, keys)
    if weighed and scores:
        standings = reader.standings(list(scores))
        scores = {
            key: score * composite(standings[key].strength, standings[key].importance) for key, score in scores.items()
        }
    if capped and leg.head:  # what has not every word must not pass what has
        below = _below(next(reversed(leg.head.values())), scores)
        if below is not scores:
            leg.raw.update(scores)
        scores = below
    leg.head |= _in_order(scores, reader)


def _move_neighbours_up(leg: Leg, query: KeywordQuery, reader: Reader, adjacency: float) -> None:
    """A re-ordering bounded by the pool: words side by side as asked come before the same words apart."""
    found = reader.adjacent(query.pairs, list(leg.head))
    if not found:
        return
    asked = len(query.pairs)
    factors = {key: adjacency_factor(count, asked, adjacency) for key, count in found.items()}
    for key in factors:
        leg.raw.setdefault(key, leg.head[key])
    leg.adjacency = factors
    moved = {key: score * factors.get(key, 1.0) for key, score in leg.head.items()}
    # Stable: equal scores stay in the leg's total order.
    leg.head = dict(sorted(moved.items(), key=itemgetter(1), reverse=True))


# -- vector -------------------------------------------------------------------------------------------------------


def _nearest(
    prepared: PreparedSearch,
    vector: Vector,
    reader: Reader,
    visible: Visibility,
    neighbours: Neighbours,
    diary: Diary,
) -> Nearest:
    """The nearest by cosine."""
    if id(prepared) in neighbours:
        nearest, milliseconds = neighbours[id(prepared)]
        diary.count(milliseconds)
        return nearest
    depth = prepared.request.nearest
    if prepared.by_field is None:
        return reader.nearest(vector, visible, depth)
    how = prepared.request.params.field_aggregation
    return nearest_by_fields(
        reader, prepared.by_field, visible, depth, how, lambda scores: in_total_order(scores, reader.places)
    )


def _vector_leg(prepared: PreparedSearch, nearest: Nearest, degradations: list[Degradation]) -> Leg:
    """The nearest, none below ``min_similarity``; and what could not be among them."""
    request = prepared.request
    _, pool = request.params.pools(request.k)
    if nearest.unembedded:
        degradations.append(
            Degradation(
                DegradationCode.VECTORS_PENDING,
                f"{nearest.unembedded} of the records searched have no vector yet; they are found by keyword only",
            )
        )
    if nearest.fell_back is not None:
        degradations.append(Degradation(DegradationCode.EXACT_FALLBACK, nearest.fell_back))
    leg = Leg(by_key(nearest.candidates[:pool]), by_key(nearest.candidates[pool:]), pool)
    _leave_out_the_distant(leg, request.params.min_similarity)
    return leg


def _leave_out_the_distant(leg: Leg, least: float | None) -> None:
    if least is None:
        return
    for part in (leg.head, leg.tail):
        for key, score in list(part.items()):
            if score < least:
                leg.dropped[key] = f"its cosine, {score:.4g}, is below min_similarity"
                del part[key]


def _add_cosines(prepared: PreparedSearch, vector: Vector, reader: Reader, leg: Leg, found: Iterable[int]) -> None:
    """Put what the keyword leg alone found in its place behind what this one found, by its true score."""
    extras = [key for key in found if key not in leg.head and key not in leg.dropped]
    if not extras:
        return
    params = prepared.request.params
    if prepared.by_field is None:
        scores = reader.cosines(vector, extras)
    else:
        scores = combined_cosines(reader, prepared.by_field, extras, params.field_aggregation)
    leg.head |= _in_order(scores, reader)
    _leave_out_the_distant(leg, params.min_similarity)


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


def _refuse(prepared: PreparedSearch, failures: Sequence[Exception]) -> None:
    mode = prepared.request.mode
    reasons = "; ".join(str(failure) for failure in failures)
    if KEYWORD in prepared.configured and not prepared.query:
        # Keywords could have answered but there were none to look for: the missing vector is then all that was left.
        raise SearchUnavailableError(f"the text has no keywords and could not be embedded: {reasons}") from failures[0]
    what = f"mode={mode.value!r} cannot answer" if mode is not Mode.HYBRID else "neither leg can answer"
    raise SearchUnavailableError(f"{what}: {reasons}") from failures[0]
