"""How a search ranks: one value that says it all, and the presets, values that have a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from twofold.config.checks import number, one_of, whole
from twofold.errors import ConfigurationError
from twofold.types.arguments import checked_flag, checked_items
from twofold.types.json import is_storable

__all__ = ["PRESETS", "FusionFunction", "SearchParams"]

FusionFunction: TypeAlias = Callable[[Mapping[str, Sequence[tuple[int, float]]]], Mapping[int, float]]
"""A fusion of your own: given ``{"keyword": ((key, bm25), ...), "vector": ((key, cosine), ...)}``, best first, without
a leg that did not answer, it returns a finite score for each key that it wants ranked; what it leaves out is dropped.
Scores below 0 are shown as 0, those above 1 as 1. Of what it is given
and nothing else, for else pages overlap."""

_FUSIONS: Final = ("rrf", "additive", "alpha", "relative", "dbsf", "calibrated")
_ALPHAS: Final = MappingProxyType({"alpha": 0.7, "relative": 0.5, "dbsf": 0.5, "calibrated": 0.6})
"""The fusions that have an alpha, and its default there."""

_MOST: Final = 1e6
"""How large the numbers of fusion may be: beyond it sums overflow, and ranks are no longer told apart."""

_RRF_K: Final = 60.0
_SPAN: Final = 0.1
"""How far a prior goes from 1 under fusions by score."""

_DAY: Final = 86_400.0
_LONGEST: Final = 1e12
"""Some thirty thousand years, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """How one search ranks. Give a store its own in ``StoreSettings(search=...)``, or one call its own in
    ``search(..., params=...)``; :meth:`preset` gives one of a known system.

    Raises:
        ConfigurationError: a value is outside of its range.
    """

    fusion: Literal["rrf", "additive", "alpha", "relative", "dbsf", "calibrated"] | FusionFunction = "calibrated"
    """How the two rankings become one: by rank (``rrf``), by score (the others), or by a function of yours, see
    :data:`FusionFunction`. Reciprocal rank fusion as others have it, without ``rescore``, is ``preset="rrf"``.
    Default: ``calibrated``."""
    alpha: float | None = None
    """The vector leg's share of the sum, 0 to 1, with ``alpha``, ``relative``, ``dbsf`` and ``calibrated``: 1 leaves
    the keyword leg out, 0 the vector leg. Default: 0.7, 0.5, 0.5 and 0.6."""
    bonus: float = 0.25
    """What the best keyword match adds to a cosine with ``fusion="additive"``, 0 to 10. Default: 0.25."""
    rrf_k: float | None = None
    """The constant of reciprocal rank fusion, 0 to 1,000,000, with ``fusion="rrf"``; a larger one flattens the ranks.
    Default: 60 (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    keyword_weight: float = 1.0
    """How much the keyword leg counts, up to 1,000,000; what it adds is multiplied by this, 0 leaves it out.
    Default: 1."""
    vector_weight: float = 1.0
    """How much the vector leg counts, up to 1,000,000; what it adds is multiplied by this, 0 leaves it out.
    Default: 1."""
    field_aggregation: Literal["best", "mean", "sum"] = "best"
    """How the cosines of a record's fields become its one score in the vector leg, where a store has several: the
    ``best`` of them; the ``mean`` of those that the record has; or the ``sum``, divided by how many were asked, so that
    a field which it has not counts 0. ``mean`` and ``sum`` look at the 4,096 records at most that are nearest by their
    best field. Default: ``best``."""
    rescore: bool = True
    """Whether a candidate that one leg found gets its true score from the other one too. Default: True."""
    pool: int = 40
    """How many candidates each leg gives, at least 1. Default: 40, whatever k is: with ``rescore`` more have ranked no
    better on any judged set."""
    pool_per_k: int | None = None
    """How many candidates each leg gives for each hit asked for, in place of ``pool``: pages of one size then still
    neither overlap nor skip, but a longer page may begin with other hits. At least 1. Default: ``pool`` holds."""
    keyword_pool: int | None = None
    """How many candidates the keyword leg gives, at least 1, in place of the two above. Default: they hold."""
    vector_pool: int | None = None
    """How many candidates the vector leg gives, at least 1, in place of the two above. Default: they hold."""
    keyword_operator: Literal["or", "and_or"] = "or"
    """What a keyword match is: ``or``, any of the words, or ``and_or``, all of them, and after those any. Default:
    ``or``."""
    adjacency: float = 0.2
    """How far the keyword leg moves up a record that holds words side by side as the query does: its BM25 is
    multiplied by 1 + adjacency · (share of the query's neighbouring pairs found). 0 to 1. Default: 0.2."""
    prior: Literal["after", "keyword", "none"] = "after"
    """Where what a record carries whatever the query counts: ``after`` fusion, as a bounded factor that is 1 for
    default attributes; inside the ``keyword`` leg, where BM25 is multiplied by strength · (1 + importance); or
    nowhere. Default: ``after``."""
    prior_span: float | None = None
    """How far the factor after fusion may go from 1, 0 to 0.5. Default: 0.1; with ``rrf`` a little less than what
    lies between the first two ranks, 1 / (2 · rrf_k + 4), so that it decides between equals and never passes over a
    better match."""
    importance_weight: float = 1.0
    """How much importance counts in that factor, 0 to 1,000. Default: 1."""
    strength_weight: float = 1.0
    """How much strength counts in it, 0 to 1,000. Default: 1."""
    recency_weight: float = 0.0
    """How much it counts how new a record is, 0 to 1,000. Default: 0."""
    retention_weight: float = 0.0
    """How much it counts how much of a record is retained since it was last of use, 0 to 1,000. Default: 0."""
    recency_half_life: float = 30 * _DAY
    """Seconds after which a record counts as half as new, above 0. Default: 30 days."""
    retention_half_life: float = _DAY
    """Seconds since its last use after which 1/e of a record of importance 1 and strength 1 is retained, above 0.
    Default: a day."""
    confidence: bool = False
    """Whether ``metadata["confidence"]``, 0 to 1 where it is there, multiplies the score: by 0.5 + 0.5 · confidence.
    Default: False."""
    project: str | None = None
    """The project that is asked about: its records and insights of any count in full, all others less. Default: none,
    projects do not count."""
    project_weight: float = 0.5
    """What the score of all others is multiplied with, above 0, at most 1. Default: 0.5."""
    project_only: bool = False
    """Whether records of other projects, insights too, are not searched at all. Default: False."""
    min_score: float | None = None
    """Hits below this score (0 to 1) are left out. Default: none are."""
    min_similarity: float | None = None
    """Candidates of the vector leg below this cosine (-1 to 1) are left out. Default: none are."""
    hyde: Literal["never", "short", "always"] = "short"
    """For which questions the store's HyDE writer, where it was opened with one (``twofold.open(..., hyde=...)``),
    writes a text that might answer them, whose vector the vector leg looks for: ``never``, ``short`` ones, or
    ``always``; keywords are those of the question. A ready ``vector`` is used as it is. Default: ``short`` (Gao et al.,
    "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023)."""
    hyde_words: int = 5
    """How many words a short question has at most, at least 1; two characters of a script without spaces count as a
    word. Default: 5."""
    hyde_vector: Literal["join", "replace"] = "join"
    """What is done with that vector: ``join``, the mean of its direction and of the question's own is looked for, or
    ``replace``, it alone is. Default: ``join``."""
    mmr_lambda: float | None = None
    """Chooses hits that also differ from each other, by maximal marginal relevance: 1 is for the most relevant alone, 0
    for the most different. It chooses among all candidates and not only the best k, so other hits come in; a hit keeps
    its score, by which they are then not in order. 0 to 1; 0.5 is usual. Default: none (Carbonell and Goldstein, SIGIR
    1998)."""
    mmr_pool: int | None = None
    """Among how many of the best it chooses, at least 1; the legs' pools then hold so many at least. Default: among all
    that the pools hold."""
    mmr_relevance: Literal["score", "cosine"] = "score"
    """What is relevant to it: the ``score`` that hits have anyway, or the ``cosine`` to the query alone, as in vector
    stores that know nothing else. Default: ``score``."""
    rerank: int = 50
    """How many of the best candidates the store's reranker judges, 0 to 1,000, where it was opened with one
    (``twofold.open(..., reranker=...)``); pages are cut of those in its order, what it did not judge follows, and a
    hit's score is the reranker's. 0: it is not asked. Default: 50."""
    expand: int = 0
    """How many records that links lead to from the hits are added in ``SearchResult.linked``, apart from the hits and
    scored below them; 0 to 100. Default: 0."""
    hops: int = 1
    """How many links away from a hit they may be, 1 to 5. Default: 1."""
    link_kinds: tuple[str, ...] | Mapping[str, float] | None = None
    """The kinds of link that are followed; or a dict of them, with what the weights of their links are multiplied with,
    above 0, at most 1: ``{"related": 1.0, "semantic": 0.5}``. Default: all, as they are."""
    link_decay: float = 0.5
    """What each link on the way takes off, above 0, at most 1: the value of a path is the product of its links'
    weights, and of this once a link. Default: 0.5."""
    link_fan_out: int = 32
    """How many links of one record are followed, the strongest first; 1 to 1,000. Default: 32."""
    touch: bool = False
    """Whether the records returned count as used: ``access_count`` grows by one and ``last_accessed`` is now.
    Default: False."""
    touch_growth: float | None = None
    """What such a use multiplies a record's ``strength`` with, up to 100; 1 to 10. Default:
    ``StoreSettings.touch_growth``."""
    include_archived: bool = False
    """Whether archived records are searched too. Default: False."""
    trace: bool = False
    """Whether the result tells what each stage took in and gave out. Default: False."""

    def __post_init__(self) -> None:
        self._check_fusion()
        self._check_legs()
        self._check_priors()
        self._check_links()
        for name in ("touch", "include_archived", "trace"):
            checked_flag(getattr(self, name), name)
        if self.touch_growth is not None:
            number("touch_growth", self.touch_growth, 1, 10)
        if self.min_score is not None:
            number("min_score", self.min_score, 0, 1)
        if self.min_similarity is not None:
            number("min_similarity", self.min_similarity, -1, 1)
        self._check_reordering()

    @classmethod
    def preset(cls, name: str, **changes: Any) -> SearchParams:
        """What a name stands for, with changes: ``SearchParams.preset("muninn", rrf_k=20)``.

        Args:
            name: one of :data:`PRESETS`.
            changes: settings, by the names of this class.

        Raises:
            ConfigurationError: there is no such preset or setting, or a value is outside of its range.
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise ConfigurationError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        unknown = sorted(changes.keys() - {each.name for each in fields(cls)})
        if unknown:
            raise ConfigurationError(f"{', '.join(unknown)}: no such setting of a search, see SearchParams")
        return replace(PRESETS[name], **changes) if changes else PRESETS[name]

    @property
    def shares(self) -> tuple[float, float]:
        """What the keyword leg and the vector leg count in the fusion; a leg that counts 0 is left out."""
        if self.fusion == "additive":
            return self.keyword_weight * self.bonus, self.vector_weight
        default = _ALPHAS.get(self.fusion) if isinstance(self.fusion, str) else None
        if default is None:
            return self.keyword_weight, self.vector_weight
        alpha = default if self.alpha is None else self.alpha
        return self.keyword_weight * (1.0 - alpha), self.vector_weight * alpha

    @property
    def span(self) -> float:
        """How far the factor after fusion goes from 1."""
        if self.prior != "after":
            return 0.0
        if self.prior_span is not None:
            return self.prior_span
        return 1.0 / (2.0 * (_RRF_K if self.rrf_k is None else self.rrf_k) + 4.0) if self.fusion == "rrf" else _SPAN

    def pools(self, k: int) -> tuple[int, int]:
        """How many candidates the keyword leg and the vector leg give where ``k`` hits are asked for."""
        common = self.pool if self.pool_per_k is None else max(1, self.pool_per_k * k)
        least = 1 if self.mmr_lambda is None or self.mmr_pool is None else self.mmr_pool
        return (
            max(least, common if self.keyword_pool is None else self.keyword_pool),
            max(least, common if self.vector_pool is None else self.vector_pool),
        )

    def _check_fusion(self) -> None:
        if isinstance(self.fusion, str):
            one_of("fusion", self.fusion, _FUSIONS)
        elif not callable(self.fusion):
            raise ConfigurationError(f"fusion is one of {', '.join(_FUSIONS)}, or a function, not {self.fusion!r}")
        if self.alpha is not None:
            number("alpha", self.alpha, 0, 1)
            if not isinstance(self.fusion, str) or self.fusion not in _ALPHAS:
                raise ConfigurationError(
                    f"alpha belongs to fusion={', '.join(map(repr, _ALPHAS))}; the others take keyword_weight and "
                    "vector_weight"
                )
        number("bonus", self.bonus, 0, 10)
        if self.rrf_k is not None:
            number("rrf_k", self.rrf_k, 0, _MOST)
            if self.fusion != "rrf":
                raise ConfigurationError("rrf_k belongs to fusion='rrf': give both, or leave it out")
        for name in ("keyword_weight", "vector_weight"):
            weight = getattr(self, name)
            number(name, weight, 0, _MOST)
            if 0 < weight < 1 / _MOST:
                raise ConfigurationError(f"{name} is 0, or at least {1 / _MOST:g}, not {weight!r}")
        if not any(self.shares):
            raise ConfigurationError(
                "keyword_weight and vector_weight, as alpha or bonus share them out, are both 0: nothing would be "
                "searched"
            )

    def _check_legs(self) -> None:
        checked_flag(self.rescore, "rescore")
        whole("pool", self.pool, least=1)
        for name in ("pool_per_k", "keyword_pool", "vector_pool"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=1)
        one_of("keyword_operator", self.keyword_operator, ("or", "and_or"))
        one_of("field_aggregation", self.field_aggregation, ("best", "mean", "sum"))
        number("adjacency", self.adjacency, 0, 1)

    def _check_priors(self) -> None:
        one_of("prior", self.prior, ("after", "keyword", "none"))
        if self.prior_span is not None:
            number("prior_span", self.prior_span, 0, 0.5)
        for name in ("importance_weight", "strength_weight", "recency_weight", "retention_weight"):
            number(name, getattr(self, name), 0, 1000)
        for name in ("recency_half_life", "retention_half_life"):
            number(name, getattr(self, name), 1 / _MOST, _LONGEST)
        checked_flag(self.confidence, "confidence")
        if self.project is not None and not (isinstance(self.project, str) and is_storable(self.project)):
            raise ConfigurationError(f"project is the name of one, not {self.project!r}")
        number("project_weight", self.project_weight, 1 / _MOST, 1)
        checked_flag(self.project_only, "project_only")
        if self.project_only and self.project is None:
            raise ConfigurationError("project_only needs to know of which: project='...'")

    def _check_reordering(self) -> None:
        if self.mmr_lambda is not None:
            number("mmr_lambda", self.mmr_lambda, 0, 1)
        if self.mmr_pool is not None:
            whole("mmr_pool", self.mmr_pool, least=1)
        one_of("mmr_relevance", self.mmr_relevance, ("score", "cosine"))
        whole("rerank", self.rerank, least=0, most=1000)
        one_of("hyde", self.hyde, ("never", "short", "always"))
        whole("hyde_words", self.hyde_words, least=1)
        one_of("hyde_vector", self.hyde_vector, ("join", "replace"))

    def _check_links(self) -> None:
        whole("expand", self.expand, least=0, most=100)
        whole("hops", self.hops, least=1, most=5)
        if self.link_kinds is not None:
            self._check_link_kinds(self.link_kinds)
        number("link_decay", self.link_decay, math.ulp(0.0), 1)
        whole("link_fan_out", self.link_fan_out, least=1, most=1000)

    def _check_link_kinds(self, given: Sequence[str] | Mapping[str, float]) -> None:
        names = checked_items(
            list(given) if isinstance(given, Mapping) else given, "link_kinds", "link_kinds=('related',)"
        )
        if not all(isinstance(kind, str) and is_storable(kind) for kind in names):
            raise ConfigurationError("link_kinds is a tuple of words: write link_kinds=('related',)")
        kinds = list(map(str.__str__, names))
        if not isinstance(given, Mapping):
            object.__setattr__(self, "link_kinds", tuple(kinds))
            return
        weights = list(given.values())
        for kind, weight in zip(kinds, weights, strict=True):
            number(f"link_kinds[{kind!r}]", weight, math.ulp(0.0), 1)
        object.__setattr__(self, "link_kinds", dict(zip(kinds, weights, strict=True)))


_BY_RANK: Final = SearchParams(fusion="rrf", rescore=False, pool=100)

PRESETS: Final[Mapping[str, SearchParams]] = MappingProxyType(
    {
        "balanced": SearchParams(),
        "rrf": _BY_RANK,
        "muninn": replace(_BY_RANK, prior="keyword", pool_per_k=3, expand=3, touch=True),
        "localmem": SearchParams(fusion="additive", prior="none", keyword_pool=50, pool=100),
        "engram": SearchParams(fusion="alpha", prior="none", rescore=False, pool=100),
        "ariadne": replace(
            _BY_RANK,
            prior="none",
            confidence=True,
            pool_per_k=2,
            keyword_operator="and_or",
            touch=True,
            touch_growth=1.5,
        ),
    }
)
"""What a preset's name stands for: ``twofold.open(..., preset=...)``, ``store.search(..., preset=...)``. Presets choose
how is searched and never what a file looks like; each setting can be changed, see :meth:`SearchParams.preset`.

``balanced``, the default, ranks by score, with both legs' true scores; ``rrf`` by reciprocal rank fusion alone; the
others rank as the memory systems do whose names they bear."""
