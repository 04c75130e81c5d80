"""Every setting, its range and its default; each default stands here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from twofold.errors import ConfigurationError

__all__ = ["DEFAULT_FIELDS", "DEFAULT_LANGUAGE", "SearchParams", "StoreSettings", "utc_now"]

DEFAULT_FIELDS: Final = ("text",)
"""The fields of a new file, where ``StoreSettings.fields`` is not set."""

DEFAULT_LANGUAGE: Final = "english"
"""The language of a new file, where ``StoreSettings.language`` is not set."""


def utc_now() -> datetime:
    """The present instant, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """How one search ranks. Give a store its own in ``StoreSettings(search=...)``, or one call its own in
    ``search(..., params=...)``.

    Raises:
        ConfigurationError: a value is outside of its range.
    """

    pool: int = 100
    """How many candidates each leg gives, at least 1. Default: 100, whatever k is."""
    rrf_k: float = 60.0
    """The constant of reciprocal rank fusion, 0 or more; a larger one flattens the ranks.
    Default: 60 (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    keyword_weight: float = 1.0
    """How much the keyword leg counts, 0 or more; 0 leaves it out. Default: 1."""
    vector_weight: float = 1.0
    """How much the vector leg counts, 0 or more; 0 leaves it out. Default: 1."""
    min_score: float | None = None
    """Hits below this score (0 to 1) are left out. Default: none are."""
    min_similarity: float | None = None
    """Candidates of the vector leg below this cosine (-1 to 1) are left out. Default: none are."""
    adjacency: float = 0.2
    """How far the keyword leg moves up a record that holds words side by side as the query does: its BM25 is
    multiplied by 1 + adjacency · (share of the query's neighbouring pairs found). 0 to 1. Default: 0.2."""
    include_archived: bool = False
    """Whether archived records are searched too. Default: False."""
    trace: bool = False
    """Whether the result tells what each stage took in and gave out. Default: False."""

    def __post_init__(self) -> None:
        _whole("pool", self.pool, least=1)
        _number("rrf_k", self.rrf_k, 0, math.inf)
        _number("keyword_weight", self.keyword_weight, 0, math.inf)
        _number("vector_weight", self.vector_weight, 0, math.inf)
        _number("adjacency", self.adjacency, 0, 1)
        if self.min_score is not None:
            _number("min_score", self.min_score, 0, 1)
        if self.min_similarity is not None:
            _number("min_similarity", self.min_similarity, -1, 1)
        if self.keyword_weight == 0 and self.vector_weight == 0:
            raise ConfigurationError("keyword_weight and vector_weight are both 0: nothing would be searched")


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
    driver: Literal["auto", "sqlite3", "pysqlite3"] = "auto"
    """The SQLite library: Python's own ``sqlite3``, or the drop-in ``pysqlite3`` (extra ``sqlite-vec``).
    Default: ``auto``, that by which this process has the file open already, else ``sqlite3``."""
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
        if self.stop_words is not None:
            if isinstance(self.stop_words, str) or not all(isinstance(word, str) for word in self.stop_words):
                raise ConfigurationError("stop_words is a tuple of words")
            object.__setattr__(self, "stop_words", tuple(self.stop_words))
        object.__setattr__(self, "field_weights", dict(self.field_weights))
        for name, weight in self.field_weights.items():
            _number(f"field_weights[{name!r}]", weight, math.ulp(0.0), math.inf)
        _number("tag_weight", self.tag_weight, 0, math.inf)
        _number("busy_timeout", self.busy_timeout, math.ulp(0.0), 86_400)
        _whole("max_readers", self.max_readers, least=1)
        _whole("cache_mib", self.cache_mib, least=1)
        _one_of("driver", self.driver, ("auto", "sqlite3", "pysqlite3"))
        _one_of("synchronous", self.synchronous, ("NORMAL", "FULL"))
        if not isinstance(self.search, SearchParams):
            raise ConfigurationError("search is a SearchParams")


def _field_names(fields: object) -> None:
    if isinstance(fields, str) or not isinstance(fields, tuple) or not fields:
        raise ConfigurationError("fields is a tuple of names: write fields=('text',)")
    for name in fields:
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
            raise ConfigurationError(f"a field's name is a word of ASCII letters, digits and _, not {name!r}")
    if len({name.lower() for name in fields}) != len(fields):
        raise ConfigurationError(f"two fields have the same name: {fields}")


def _number(name: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigurationError(f"{name} is a finite number, not {value!r}")
    if not least <= value <= most:
        limits = f"from {least:g} to {most:g}" if math.isfinite(most) else f"at least {least:g}"
        raise ConfigurationError(f"{name} is {limits}, not {value!r}")


def _whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} is a whole number of at least {least}, not {value!r}")


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigurationError(f"{name} is one of {', '.join(choices)}, not {value!r}")
