"""Words to their stems, by Snowball (https://snowballstem.org, Porter's own algorithm for English)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

import Stemmer

__all__ = ["stem_languages", "stemmer", "stemmer_name"]

_SHORTEST = 3  # Porter's cuts "is" and "us" down to a letter


def stem_languages() -> frozenset[str]:
    """The languages that Snowball can stem."""
    return frozenset(Stemmer.algorithms()) - {"porter", "dutch_porter"}


def stemmer_name(language: str) -> str:
    """What stems ``language``, with its release, e.g. ``"porter 3.1.0"``; ``"none"`` for a language without."""
    algorithm = _algorithm(language)
    return "none" if algorithm is None else f"{algorithm} {Stemmer.version()}"


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """What takes a normalised word of ``language`` to its stem; words of one or two letters stay as they are.

    May be called from several threads. A language that Snowball does not know keeps its words.
    """
    algorithm = _algorithm(language)
    if algorithm is None:
        return lambda word: word
    own = _Own(algorithm)

    def stem(word: str) -> str:
        return word if len(word) < _SHORTEST else own.stemmed(word) or word

    return stem


class _Own(threading.local):
    """Snowball's stemmer of each thread: it holds the word that it works on, and a lock would cost as much as it."""

    def __init__(self, algorithm: str) -> None:
        self.stemmed: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord  # the analyser has the cache


def _algorithm(language: str) -> str | None:
    if language == "english":
        return "porter"
    return language if language in stem_languages() else None
