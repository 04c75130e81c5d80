"""What a search and a write give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

from twofold.types.access import Owner
from twofold.types.degradation import Degradation, DegradationCode
from twofold.types.link import LinkStep
from twofold.types.record import Record

__all__ = [
    "AddReport",
    "Added",
    "Diversity",
    "Dropped",
    "EmbedReport",
    "Explanation",
    "Hit",
    "LegScore",
    "Mode",
    "NearDuplicate",
    "Outcome",
    "Progress",
    "Reranked",
    "SearchResult",
    "Stage",
]


class Mode(StrEnum):
    """Which legs a search uses."""

    HYBRID = "hybrid"
    """Both, as far as they are available."""
    KEYWORD = "keyword"
    """Keywords only."""
    VECTOR = "vector"
    """Vectors only; an error where there are none."""


@dataclass(frozen=True, slots=True)
class LegScore:
    """What one leg said of a record."""

    rank: int
    """From 1."""
    raw: float
    """Higher is better: the keyword leg's BM25 (0 or more, comparable within one query), the vector leg's cosine
    (-1 to 1)."""
    adjacency: float
    """The factor, 1 or more, that words standing side by side as in the query moved it up by; 1 in the vector leg."""
    prior: float
    """The factor that strength and importance multiplied it with inside of the keyword leg
    (``SearchParams(prior="keyword")``); else 1."""
    contribution: float | None
    """What it added to the fused score before that was scaled to 0..1; None where that is no sum, and past the pool."""
    fields: tuple[str, ...] = ()
    """In a store of several fields, those that matched: of the keyword leg those that hold a word of the query, in the
    store's order; of the vector leg those that have a vector, the nearest first. Else empty."""

    @property
    def field(self) -> str | None:
        """The field that matched, or that matched best; None in a store of one field."""
        return self.fields[0] if self.fields else None


@dataclass(frozen=True, slots=True)
class Reranked:
    """What the reranker said of a hit, see ``SearchParams.rerank``."""

    rank: int
    """Its place before that, by its fused score; from 1."""
    score: float
    """The reranker's; the hit's own is this from 0 to 1."""
    by: str
    """Who judged."""

    def __str__(self) -> str:
        return f"reranked by {self.by} from rank {self.rank}: {self.score:.4g}"


@dataclass(frozen=True, slots=True)
class Diversity:
    """How maximal marginal relevance chose a hit, see ``SearchParams.mmr_lambda``."""

    rank: int
    """Its place before that, by its score, the reranker's if there is one; from 1."""
    similarity: float | None
    """The largest cosine to a hit chosen before it; None for the first, and for one without a vector."""
    balance: float
    """``mmr_lambda``."""

    def __str__(self) -> str:
        alike = "" if self.similarity is None else f", cosine {self.similarity:.3g} to the nearest before it"
        return f"chosen by mmr(lambda={self.balance:g}) from rank {self.rank}{alike}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit is where it is."""

    legs: Mapping[str, LegScore]
    """By leg, ``"keyword"`` and ``"vector"``, those of a second phrasing being ``"keyword[2]"`` and ``"vector[2]"``;
    only those that found the record."""
    answered: tuple[str, ...]
    """The legs that answered this search at all."""
    fused: float
    """The fused score before it was scaled; the sum of the contributions."""
    factors: Mapping[str, float]
    """What that was multiplied with whatever the query: ``"prior"`` for importance, strength and age,
    ``"confidence"``, ``"project"``; those that are not 1."""
    best_possible: float
    """What the fused score is divided by: its maximum over the configured legs."""
    formula: str
    """How the legs were made one, in short, e.g. ``"0.6 · cosine + 0.4 · bm25 / best"`` or ``"rrf(k=60)"``."""
    path: tuple[LinkStep, ...] = ()
    """Of a linked record, the way to it from a hit, one step a hop; its score is made of that. Empty for a hit."""
    reranked: Reranked | None = None
    """What the reranker said of it; None where none was asked, and of what it did not judge."""
    diversity: Diversity | None = None
    """How maximal marginal relevance chose it; None where that was not asked for, and past what it chose among."""

    def __str__(self) -> str:
        if self.path:
            return f"linked: {', '.join(map(str, self.path))}"
        scales = {"keyword": "bm25", "vector": "cosine"}
        found = [
            f"{leg} rank {score.rank} ({scales.get(leg.partition('[')[0], 'score')} {score.raw:.4g}"
            + (f", words side by side x{score.adjacency:.3g}" if score.adjacency > 1 else "")
            + (f", strength and importance x{score.prior:.3g}" if score.prior != 1 else "")
            + (f", in {score.field}" if score.field is not None else "")
            + ")"
            for leg, score in self.legs.items()
        ]
        missing = [f"not in {leg}" for leg in self.answered if leg not in self.legs]
        words = {"prior": "what it carries", "confidence": "confidence", "project": "project"}
        times = "".join(f", {words.get(name, name)} x{factor:.3g}" for name, factor in self.factors.items())
        fused = f"{self.formula}: {self.fused:.4g} of at most {self.best_possible:.4g}"
        decided = "".join(f"; {each}" for each in (self.reranked, self.diversity) if each is not None)
        return f"{', '.join(found + missing)}; {fused}{times}{decided}"


class _ExplainedLater:
    """A hit that :func:`unexplained_hit` made has no explanation until somebody looks at it."""

    __slots__ = ("_explain",)

    if not TYPE_CHECKING:  # it answers for one name alone, and would else be taken to answer for all

        def __getattr__(self, name: str) -> object:
            if name != "explanation":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            explanation = self._explain()
            object.__setattr__(self, "explanation", explanation)
            return explanation


@dataclass(frozen=True, slots=True)
class Hit(_ExplainedLater):
    """One record that answers a search."""

    record: Record
    """The record."""
    score: float
    """0 to 1, higher is better; what it means depends on the mode and the fusion, see the docs on scores. Of a hybrid
    search, by default, meaning gives 0.6 at most and words 0.4, which is the most while the embedder is down."""
    explanation: Explanation
    """Where it comes from."""

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    @property
    def text(self) -> str:
        """The record's text."""
        return self.record.text

    @property
    def why(self) -> str:
        """The explanation in one line."""
        return str(self.explanation)


def unexplained_hit(record: Record, score: float, explain: Callable[[], Explanation]) -> Hit:
    """A hit like any other, whose explanation is made when it is first looked at.

    Args:
        record: the record.
        score: its score.
        explain: makes the explanation, the same whenever it is asked.
    """
    hit = object.__new__(Hit)
    object.__setattr__(hit, "record", record)
    object.__setattr__(hit, "score", score)
    object.__setattr__(hit, "_explain", explain)
    return hit


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that a stage of a search did not give on."""

    id: str
    """Its id."""
    reason: str
    """Why, in plain words."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a search, for those who ask why."""

    name: str
    """E.g. ``"keyword"``, ``"fuse"``."""
    milliseconds: float
    """Wall time it took."""
    detail: Mapping[str, Any]
    """What went in and came out, in numbers."""
    output: tuple[str, ...] = ()
    """The ids that it gave on, best first: the next stage's input. Of visible records only, as all of this."""
    dropped: tuple[Dropped, ...] = ()
    """What it did not give on, and why."""


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """The answer: a sequence of hits that also says what it could not do."""

    hits: tuple[Hit, ...] = ()
    """At most k, best first."""
    linked: tuple[Hit, ...] = ()
    """Records linked to the hits, apart from them; empty unless expansion is asked for."""
    degradations: tuple[Degradation, ...] = ()
    """Why this is less than a full answer; empty if it is not."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of wall time by stage."""
    trace: tuple[Stage, ...] | None = None
    """Each stage's input and output, if asked for; else None."""

    @property
    def degraded(self) -> bool:
        """Whether anything was missing."""
        return bool(self.degradations)

    @property
    def ids(self) -> tuple[str, ...]:
        """The hits' ids, best first."""
        return tuple(hit.id for hit in self.hits)

    def has(self, code: DegradationCode | str) -> bool:
        """Whether this degradation is among those named."""
        return any(degradation.code == code for degradation in self.degradations)

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]


class Outcome(StrEnum):
    """What became of a record that was added."""

    ADDED = "added"
    """It is new."""
    UPDATED = "updated"
    """It replaced the one of the same id."""
    UNCHANGED = "unchanged"
    """The one of the same id is equal; nothing was written."""
    SKIPPED = "skipped"
    """Another record has the same text, and ``duplicates="skip"`` was asked for; the id is the other's."""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """A record that is much like one that was added."""

    id: str
    """Its id."""
    similarity: float
    """The best cosine of any two of their vectors, up to 1."""
    owner: Owner
    """Whose it is. Its namespace is that of the record that was added."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one record."""

    id: str
    """Its id."""
    outcome: Outcome
    """Whether it is new."""
    pending: bool = False
    """Whether its vector is still to be made."""
    near_duplicates: tuple[NearDuplicate, ...] = ()
    """Records much like it, the nearest first; see ``StoreSettings.near_duplicates``. Empty for a record whose vector
    is pending or has not changed, and where many are added at once."""
    degradations: tuple[Degradation, ...] = ()
    """Why the write is less than it could be."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come."""

    done: int
    """Records finished and committed."""
    total: int | None
    """Records in all; None where the input does not say."""


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What became of records that waited for a vector."""

    embedded: int = 0
    """How many have one now."""
    parked: int = 0
    """How many the embedder refused; they are left out until their text changes or they are asked for."""
    remaining: int = 0
    """How many still wait, parked ones included."""
    degradations: tuple[Degradation, ...] = ()
    """Why the work ended before all was done; empty if it did not."""
    elsewhere: int = 0
    """How many of those that still wait another call or process is embedding just now."""


@dataclass(frozen=True, slots=True)
class AddReport:
    """What became of many records."""

    ids: tuple[str, ...] = ()
    """One a record, in the order given."""
    added: int = 0
    """How many are new."""
    updated: int = 0
    """How many replaced another."""
    unchanged: int = 0
    """How many were there already, equal."""
    skipped: int = 0
    """How many were left out as duplicates."""
    pending: int = 0
    """How many still wait for a vector."""
    degradations: tuple[Degradation, ...] = ()
    """Why the write is less than it could be; each reason once."""
