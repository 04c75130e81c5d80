"""How a store and its embedder behave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from twofold.config.checks import number, one_of, whole
from twofold.config.search import SearchParams
from twofold.errors import ConfigurationError
from twofold.types.arguments import checked_flag, checked_items

__all__ = [
    "DEFAULT_FIELDS",
    "DEFAULT_LANGUAGE",
    "HYDE_PROMPT",
    "INDEXES",
    "EmbeddingSettings",
    "StoreSettings",
    "utc_now",
]

DEFAULT_FIELDS: Final = ("text",)
"""The fields of a new file, where ``StoreSettings.fields`` is not set."""

DEFAULT_LANGUAGE: Final = "english"
"""The language of a new file, where ``StoreSettings.language`` is not set."""

HYDE_PROMPT: Final = (
    "Write one short passage, as it might stand in somebody's notes, that answers the question below. If you do not "
    "know the answer make one up. Write the passage alone.\n\nQuestion: {question}"
)
"""What a language model is told that writes for HyDE, where ``StoreSettings.hyde_prompt`` does not say otherwise."""

INDEXES: Final = ("auto", "exact", "sqlite-vec", "faiss-flat", "faiss-hnsw", "faiss-ivf")
"""What ``StoreSettings.index`` can be."""

_MOST_FIELDS: Final = 1000
"""Each is a column of the keyword index; SQLite has at most 2,000 in a table."""

_LONGEST_WAIT: Final = 86_400
"""A day, in seconds; some platforms cannot wait much longer."""


def utc_now() -> datetime:
    """The present instant, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """How long an embedder is waited for, and when one that failed is asked again. Give a store its own in
    ``StoreSettings(embedding=...)``.

    Deadlines do not hold for embedders that compute in this process, such as ``"local"``: those cannot hang.

    Raises:
        ConfigurationError: a value is outside of its range.
    """

    query_deadline: float = 2.0
    """Seconds that a search waits for its query's vector before keywords answer alone, above 0. Default: 2."""
    warm_up: float = 5.0
    """Seconds that it waits instead, if that is longer, until the embedder has first answered: a model may have to
    be loaded. 0 or more. Default: 5."""
    document_deadline: float = 60.0
    """Seconds that a write waits for a batch of vectors before its records are stored without, above 0.
    Default: 60."""
    batch_size: int = 32
    """How many texts are sent at a time, at least 1, where the embedder does not say itself. Default: 32."""
    failures_to_open: int = 3
    """After so many failures in a row the embedder is left alone for a while, at least 1. One that runs out of time
    is left alone at once. Default: 3."""
    first_pause: float = 1.0
    """Seconds that it is left alone for, above 0; each attempt in vain doubles them. Default: 1."""
    longest_pause: float = 60.0
    """The most that they grow to, above 0. Default: 60."""
    query_cache_size: int = 256
    """How many queries' vectors are kept, those asked for last, so that they need no embedder; 0 or more.
    Default: 256."""
    fill_in: bool = True
    """Whether vectors that are missing are made by themselves, in the background, when the embedder answers for
    the first time and when it is well again after it failed; ``embed_pending()`` makes them at any time.
    Default: True."""

    def __post_init__(self) -> None:
        checked_flag(self.fill_in, "fill_in")
        for name in ("query_deadline", "document_deadline", "first_pause", "longest_pause"):
            number(name, getattr(self, name), math.ulp(0.0), _LONGEST_WAIT)
        number("warm_up", self.warm_up, 0, _LONGEST_WAIT)
        whole("batch_size", self.batch_size, least=1)
        whole("failures_to_open", self.failures_to_open, least=1)
        whole("query_cache_size", self.query_cache_size, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """How a store behaves. What a file fixed at its creation is taken from the file where it is left unset.

    Raises:
        ConfigurationError: a value is outside of its range.
    """

    fields: tuple[str, ...] | None = None
    """The names of a record's pieces of text, fixed when the file is made. Default: the file's, or
    ``DEFAULT_FIELDS``."""
    language: str | None = None
    """The language of stemming and stop words, e.g. ``"english"``, ``"russian"``, or ``"none"`` for neither.
    Changing it indexes the file's text anew. Default: the file's, or ``DEFAULT_LANGUAGE``."""
    stop_words: tuple[str, ...] | None = None
    """Words dropped from a query if others remain. Default: the language's list; ``()``: none."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    """How much a word in a field counts in BM25, above 0. Default: 1 for each."""
    tag_weight: float = 1.0
    """How much a word among the tags counts in BM25, 0 or more. Default: 1."""
    search: SearchParams = field(default_factory=SearchParams)
    """How searches rank where a call does not say."""
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    """How long the embedder is waited for, and when it is asked again."""
    rerank_deadline: float = 5.0
    """Seconds that a search waits for its reranker before hits keep the order that they have, above 0; one that fails
    is left alone for a while as ``embedding`` says. Default: 5."""
    hyde_deadline: float = 10.0
    """Seconds that a search waits for its HyDE writer before the question's own vector is used, above 0; one that fails
    is left alone for a while as ``embedding`` says. Default: 10."""
    hyde_cache_size: int = 256
    """How many questions' written texts are kept, those asked for last, so that they are not written again; 0 or more.
    Default: 256."""
    hyde_prompt: str = HYDE_PROMPT
    """What a language model is told that writes for HyDE, with ``{question}`` where the question belongs. A function of
    the question is given that alone. Default: ``HYDE_PROMPT``."""
    index: Literal["auto", "exact", "sqlite-vec", "faiss-flat", "faiss-hnsw", "faiss-ivf"] = "auto"
    """What finds the nearest vectors; any file can be opened with any. ``exact``, ``sqlite-vec`` (extra
    ``sqlite-vec``) and ``faiss-flat`` (extra ``faiss``; but for a chance of one in a million searches) give the same
    hits; ``faiss-hnsw`` and ``faiss-ivf`` may miss a few. One that cannot be loaded is replaced by the exact scan, and
    each search says so.
    Default: ``auto``, ``exact`` and from 4,096 vectors on ``faiss-flat`` if FAISS is installed."""
    keyword_index_from: int | None = 2_000
    """How many records a file must have, at least 1, for its words to be kept in memory too: a second search begins to
    read them in the background, and answers are then the same ones many times sooner, at some ten bytes for each
    different word of a record. Default: 2,000, from where on it is quicker; None: never."""
    semantic_links: float | None = None
    """The cosine, above 0, at most 1, from which on a write links a record to the nearest three of the same owner and
    namespace, as kind ``semantic`` and with the cosine as weight. Default: no such links are made."""
    near_duplicates: float | None = None
    """The cosine, above 0, at most 1, from which on ``add`` names records of the same namespace in
    ``Added.near_duplicates``, the nearest three of those that who adds sees; nothing is kept from being stored. It
    takes as long as a search. Default: they are not looked for."""
    touch_flush_seconds: float = 5.0
    """How old touches grow in memory at most before they are written, above 0, where no other write and no ``close()``
    takes them along; a process that is killed loses those. Default: 5."""
    touch_growth: float = 1.0
    """What each touch multiplies a record's ``strength`` with, up to 100; 1 to 10. Default: 1."""
    driver: Literal["auto", "sqlite3", "pysqlite3"] = "auto"
    """The SQLite library: Python's own ``sqlite3``, or the drop-in ``pysqlite3`` (extra ``sqlite-vec``).
    Default: ``auto``, that by which this process has the file open already, else ``sqlite3``; with
    ``index="sqlite-vec"``, ``pysqlite3`` where ``sqlite3`` cannot load extensions."""
    read_only: bool = False
    """Whether the file is opened for reading only. A file that cannot be written is so anyway. Default: False."""
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    """SQLite's ``synchronous``: ``NORMAL`` survives a crash of the process, ``FULL`` of the machine too, at some
    2 ms a commit. Default: NORMAL."""
    busy_timeout: float = 30.0
    """Seconds to wait for another process's write lock, above 0. Default: 30."""
    max_readers: int = 8
    """How many connections may read at once, at least 1. Default: 8."""
    cache_mib: int = 64
    """MiB of SQLite's page cache for each connection, at least 1. Default: 64."""
    clock: Callable[[], datetime] = utc_now
    """Where the time comes from, with a time zone. Default: the system's."""

    def __post_init__(self) -> None:
        if self.fields is not None:
            _field_names(self.fields)
        if self.language is not None and (not isinstance(self.language, str) or not self.language):
            raise ConfigurationError(f"language is a word such as 'english', not {self.language!r}")
        self._check_helpers()
        if self.stop_words is not None:
            words = checked_items(self.stop_words, "stop_words", "stop_words=('the', 'a')")
            if not all(isinstance(word, str) for word in words):
                raise ConfigurationError("stop_words is a tuple of words: write stop_words=('the', 'a')")
            object.__setattr__(self, "stop_words", tuple(words))
        if not isinstance(self.field_weights, Mapping):
            raise ConfigurationError("field_weights is a dict: write field_weights={'text': 2.0}")
        checked_flag(self.read_only, "read_only")
        if not callable(self.clock):
            raise ConfigurationError("clock is a function that gives the time: write clock=lambda: datetime.now(UTC)")
        object.__setattr__(self, "field_weights", dict(self.field_weights))
        for name, weight in self.field_weights.items():
            number(f"field_weights[{name!r}]", weight, math.ulp(0.0), math.inf)
        number("tag_weight", self.tag_weight, 0, math.inf)
        number("busy_timeout", self.busy_timeout, math.ulp(0.0), 86_400)
        whole("max_readers", self.max_readers, least=1)
        whole("cache_mib", self.cache_mib, least=1)
        self._check_indexes()
        one_of("driver", self.driver, ("auto", "sqlite3", "pysqlite3"))
        one_of("synchronous", self.synchronous, ("NORMAL", "FULL"))
        if self.semantic_links is not None:
            number("semantic_links", self.semantic_links, math.ulp(0.0), 1)
        if self.near_duplicates is not None:
            number("near_duplicates", self.near_duplicates, math.ulp(0.0), 1)
        number("touch_flush_seconds", self.touch_flush_seconds, math.ulp(0.0), _LONGEST_WAIT)
        number("touch_growth", self.touch_growth, 1, 10)
        if not isinstance(self.search, SearchParams):
            raise ConfigurationError("search is a SearchParams")
        if not isinstance(self.embedding, EmbeddingSettings):
            raise ConfigurationError("embedding is an EmbeddingSettings")

    def _check_indexes(self) -> None:
        one_of("index", self.index, INDEXES)
        if self.keyword_index_from is not None:
            whole("keyword_index_from", self.keyword_index_from, least=1)

    def _check_helpers(self) -> None:
        for name in ("rerank_deadline", "hyde_deadline"):
            number(name, getattr(self, name), math.ulp(0.0), _LONGEST_WAIT)
        whole("hyde_cache_size", self.hyde_cache_size, least=0)
        if not isinstance(self.hyde_prompt, str) or "{question}" not in self.hyde_prompt:
            raise ConfigurationError("hyde_prompt is a text with {question} where the question belongs")


def _field_names(fields: object) -> None:
    if isinstance(fields, str) or not isinstance(fields, tuple) or not fields:
        raise ConfigurationError("fields is a tuple of names: write fields=('text',)")
    for name in fields:
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
            raise ConfigurationError(f"a field's name is a word of ASCII letters, digits and _, not {name!r}")
    if len(fields) > _MOST_FIELDS:
        raise ConfigurationError(f"a store has at most {_MOST_FIELDS} fields, not {len(fields)}")
    if len({name.lower() for name in fields}) != len(fields):
        raise ConfigurationError(f"two fields have the same name: {fields}")
