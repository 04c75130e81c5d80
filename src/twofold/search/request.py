"""What is asked: checked, and embedded before any lock or transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Backend, Visibility
from twofold.config import SearchParams
from twofold.embedders import Guard, degradation_of
from twofold.errors import ConfigurationError, EmbeddingError, SearchUnavailableError
from twofold.filters import A
from twofold.ranking import KEYWORD, VECTOR
from twofold.rerankers import Judge
from twofold.search.fields import Queries
from twofold.search.hyde import Hyde, Written, has_words, is_wanted
from twofold.text import KeywordQuery
from twofold.types import Degradation, DegradationCode, Mode, Vectors
from twofold.vectors import as_vector

__all__ = ["Helpers", "PreparedSearch", "SearchRequest", "prepare", "remember"]

_MOST_PHRASINGS: Final = 100
"""Each is a search of its own, in one snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is asked."""

    text: str
    seen: Visibility
    """What the caller may see and wants to; ``params`` may narrow it down."""
    at: datetime
    """Now."""
    k: int
    offset: int
    mode: Mode
    params: SearchParams
    vector: Vectors | None
    phrasings: tuple[str, ...] = ()
    """Other ways to ask the same."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConfigurationError(f"a search asks for text, not {type(self.text).__name__}")
        if self.phrasings:
            self._check_phrasings()
        for name, value in (("k", self.k), ("offset", self.offset)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} is a whole number of at least 0, not {value!r}")

    def _check_phrasings(self) -> None:
        if not all(isinstance(each, str) for each in self.phrasings):
            raise ConfigurationError("phrasings is a list of texts: write phrasings=['the same in other words']")
        if len(self.phrasings) > _MOST_PHRASINGS:
            raise ConfigurationError(
                f"phrasings holds {_MOST_PHRASINGS} texts at most, not {len(self.phrasings):,}: each is a search of its"
                " own; to ask several questions, use search_many"
            )

    @property
    def wanted(self) -> int:
        """How many places of the ranking must be right."""
        return self.offset + self.k

    @property
    def nearest(self) -> int:
        """How many the vector leg looks for: all of its pool, and of the places that must be right."""
        _, pool = self.params.pools(self.k)
        return max(pool, self.wanted)

    @property
    def visible(self) -> Visibility:
        """What may be found."""
        seen, params = self.seen, self.params
        if params.project_only:
            of_project = A.project == params.project
            seen = replace(seen, where=of_project if seen.where is None else seen.where & of_project)
        if params.include_archived:
            if seen.as_of:
                raise ConfigurationError("include_archived=True shows records of all times: give it or as_of, not both")
            seen = replace(seen, include_archived=True)
        return seen


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A request with its vector, ready to run in a snapshot."""

    request: SearchRequest
    query: KeywordQuery
    vector: npt.NDArray[np.float32] | None
    by_field: Queries | None
    """What each field is compared with, where that is not ``vector`` for all of them, or where it is not the best
    field that counts; else None."""
    fields: tuple[str, ...]
    """The store's."""
    fingerprint: str | None
    """Of the embedder that ``vector`` is of."""
    configured: tuple[str, ...]
    """The legs that would answer if nothing were missing: what scores are scaled by."""
    degradations: tuple[Degradation, ...]
    failure: EmbeddingError | None
    embed_milliseconds: float
    others: tuple[PreparedSearch, ...] = ()
    """The other phrasings, each as if it were asked alone."""
    judge: Judge | None = None
    """The reranker that is asked."""
    written: Written | None = None
    """What came of HyDE, where that was wanted."""

    @property
    def reorders(self) -> bool:
        """Whether what fusion ranks is put in another order afterwards, so that all of it must stand in order."""
        return self.judge is not None or self.request.params.mmr_lambda is not None


@dataclass(frozen=True, slots=True)
class Helpers:
    """What may help a search besides the embedder."""

    judge: Judge | None = None
    """The reranker."""
    hyde: Hyde | None = None
    """What writes for questions."""


NO_HELPERS: Final = Helpers()


def prepare(
    request: SearchRequest, backend: Backend, guard: Guard | None, helpers: Helpers = NO_HELPERS
) -> PreparedSearch:
    """Check the request and embed its texts. No snapshot is open meanwhile.

    Raises:
        InvalidVectorError: the vector given is zero, not finite or of the wrong length.
        ConfigurationError: the store has no embedder that a given vector could be of, or no writer for HyDE, which is
            asked for always.
        SearchUnavailableError: vectors were asked for by mode and cannot be had.
    """
    if request.params.hyde == "always" and helpers.hyde is None:
        raise ConfigurationError("hyde='always' needs who writes: twofold.open(..., hyde=...)")
    if not request.phrasings:
        return _prepare_one(request, backend, guard, helpers)
    started = perf_counter()
    texts = list(dict.fromkeys((request.text, *request.phrasings)))
    asked = [text for text in texts if has_words(text) or backend.analyzer.query(text)]
    if request.vector is not None and request.text not in asked:
        asked.insert(0, request.text)
    if guard is not None and request.mode is not Mode.KEYWORD:
        _embed_ahead(guard, [text for text in asked if request.vector is None or text != request.text])
    first, *others = [
        _prepare_one(
            replace(request, text=text, phrasings=(), vector=request.vector if text == request.text else None),
            backend,
            guard,
            helpers if text == request.text else Helpers(helpers.judge),
        )
        for text in asked or [request.text]
    ]
    taken = (perf_counter() - started) * 1000 if any(each.embed_milliseconds for each in (first, *others)) else 0.0
    return replace(first, others=tuple(others), embed_milliseconds=taken)


def remember(requests: Sequence[SearchRequest], guard: Guard | None, helpers: Helpers) -> None:
    """Have made together what searches are going to ask for, vectors and what HyDE writes; if that fails each finds out
    by itself.
    """
    waiting = [each for each in requests if each.vector is None and each.mode is not Mode.KEYWORD]
    if guard is None or len(waiting) < 2:
        return
    _embed_ahead(guard, [each.text for each in waiting])
    if helpers.hyde is not None and guard.embeds:
        wanting = [each for each in waiting if has_words(each.text) and is_wanted(each.params, each.text)]
        helpers.hyde.write_ahead([(each.seen.access, each.text) for each in wanting], guard)


def _embed_ahead(guard: Guard, texts: Sequence[str]) -> None:
    wanted = list(dict.fromkeys(filter(has_words, texts)))
    if guard.embeds and len(wanted) > 1:
        with suppress(EmbeddingError):
            guard.queries(wanted)


def _prepare_one(request: SearchRequest, backend: Backend, guard: Guard | None, helpers: Helpers) -> PreparedSearch:
    mode, (keyword_share, vector_share) = request.mode, request.params.shares
    wants_keyword = mode is Mode.KEYWORD or (mode is Mode.HYBRID and keyword_share > 0)
    wants_vector = mode is Mode.VECTOR or (mode is Mode.HYBRID and vector_share > 0)
    fields = backend.fields
    given_by_field = None if request.vector is None else _given_vectors(request.vector, guard, fields)
    given = None if given_by_field is None else next(iter(given_by_field.values()))
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
    if wants_vector and given is None and can_embed and guard is not None and (query or has_words(request.text)):
        started = perf_counter()
        try:
            vector = guard.query(request.text)
        except EmbeddingError as error:
            failure, degradations = error, (degradation_of(error),)
        taken = (perf_counter() - started) * 1000
    written: Written | None = None
    if helpers.hyde is not None and guard is not None and vector is not None and given is None:
        written = _written(helpers.hyde, request, vector, guard)
    if written is not None:
        vector = written.vector
        if written.failure is not None:
            said = f"{written.failure}; the question's own vector was used"
            degradations = (*degradations, Degradation(DegradationCode.HYDE_FAILED, said))
    configured = [KEYWORD] if wants_keyword else []
    if wants_vector and (given is not None or can_embed):
        configured.append(VECTOR)
    return PreparedSearch(
        request=request,
        query=query,
        vector=vector if wants_vector else None,
        by_field=_by_field(request, vector, given_by_field, fields),
        fields=fields,
        fingerprint=None if guard is None else guard.fingerprint,
        configured=tuple(configured),
        degradations=degradations,
        failure=failure,
        embed_milliseconds=taken,
        judge=helpers.judge if request.params.rerank else None,
        written=written,
    )


def _written(hyde: Hyde, request: SearchRequest, vector: npt.NDArray[np.float32], guard: Guard) -> Written | None:
    """What HyDE makes of the question and its vector; None if that is not wanted for it."""
    if not is_wanted(request.params, request.text):
        return None
    return hyde.improve(request.seen.access, request.text, vector, guard, request.params)


def _given_vectors(vector: Vectors, guard: Guard | None, fields: tuple[str, ...]) -> dict[str, npt.NDArray[np.float32]]:
    """By field; one vector is for all of them."""
    if guard is None:
        raise ConfigurationError(
            "search(..., vector=...) needs to know what made the vector: "
            "twofold.open(..., embedder=GivenVectors(name, dimension))"
        )
    if isinstance(vector, np.ndarray) or not isinstance(vector, Mapping):  # an array is told from a dict at once
        return dict.fromkeys(fields, as_vector(vector, guard.dimension, "the query's vector"))
    if not vector or not set(vector) <= set(fields):
        raise ConfigurationError(f"vector is one vector, or {{field: vector}} for some of the fields {fields}")
    return {
        field: as_vector(each, guard.dimension, f"the query's vector for {field!r}") for field, each in vector.items()
    }


def _by_field(
    request: SearchRequest,
    vector: npt.NDArray[np.float32] | None,
    given: Queries | None,
    fields: tuple[str, ...],
) -> Queries | None:
    """What each field is compared with, unless the index can do without: it finds the best field by one vector."""
    if vector is None or len(fields) == 1:
        return None
    if isinstance(request.vector, Mapping):
        return given
    return None if request.params.field_aggregation == "best" else dict.fromkeys(fields, vector)
