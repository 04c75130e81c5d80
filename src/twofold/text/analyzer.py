"""The analyser: stored text and query text to the same tokens, by one set of rules.

A field's tokens are, in text order, its *parts* (words stemmed, unspaced scripts as overlapping bigrams, symbols):
their positions are what phrases and neighbours rely on. After them come the *wholes*: compounds as one token, the
words inside camelCase, and the last character of each unspaced run, so that every character begins a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final
from unicodedata import unidata_version

from twofold.errors import ConfigurationError
from twofold.text.query import KeywordQuery, Term
from twofold.text.stemming import stem_languages, stemmer, stemmer_name
from twofold.text.stopwords import bare, fold_stop_words, stop_word_languages, stop_words_of
from twofold.text.tokenise import MAX_TOKEN, Chunk, Kind, plain_word, scan

__all__ = ["Analyzer"]

_VERSION: Final = 1
"""Raised whenever the same text gives other tokens than before."""

_IDENTIFIER_WEIGHT: Final = 2
_LONGEST_PHRASE: Final = 64  # tokens; a longer passage is found by its words and their neighbours

_CACHED_PIECES: Final = 65_536  # some 20 MB
_CACHED_LENGTH: Final = 48  # code points; longer pieces seldom come again


class _Pieces(dict[str, str]):
    """What pieces of text between white space give: the parts with a space between them and, where there are any,
    a line end and the wholes likewise. A piece that is not there yet is analysed when it is looked up.
    """

    def __init__(self, stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stem = stem

    def __missing__(self, piece: str) -> str:
        word = plain_word(piece)
        found = _analysed(piece, self._stem) if word is None else _part(word, self._stem)
        if len(piece) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_PIECES:
                self.clear()  # the frequent ones are back at once
            self[piece] = piece if found == piece else found  # the same object twice is looked for in memory once
        return found


@dataclass(frozen=True)
class Analyzer:
    """Turns text into the tokens of one language. Analysers of equal settings are equal, and give equal tokens.

    Nothing it is given makes it raise, and it takes time linear in the length of the text. It may be used from
    several threads.

    Raises:
        ConfigurationError: no such language; the message names those that exist.
    """

    language: str
    """What words are stemmed for and whose stop words are dropped, e.g. ``"english"``; ``"none"``: neither."""
    stop_words: tuple[str, ...] | None = None
    """Words dropped from a query if others remain. Default: the language's list; ``()``: none."""
    _stem: Callable[[str], str] = field(init=False, repr=False, compare=False)
    _stop: frozenset[str] = field(init=False, repr=False, compare=False)
    _pieces: _Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = stem_languages() | stop_word_languages() | {"none"}
        if self.language not in known:
            raise ConfigurationError(f"language {self.language!r} is not known; choose from {', '.join(sorted(known))}")
        stop = stop_words_of(self.language) if self.stop_words is None else fold_stop_words(self.stop_words)
        object.__setattr__(self, "_stem", stemmer(self.language))
        object.__setattr__(self, "_stop", stop)
        object.__setattr__(self, "_pieces", _Pieces(self._stem))

    @cached_property
    def version(self) -> str:
        """What an index's tokens were made by: this module, Unicode's data and the stemmer, each with its release.

        Of another version, the tokens may differ. Stop words are not part of it: they only touch queries.
        """
        return f"{_VERSION} unicode {unidata_version} {stemmer_name(self.language)}"

    def tokens(self, text: str) -> list[str]:
        """The tokens that the index stores for one field.

        Each is 1 to 255 code points long and holds no white space, control character or surrogate, so that
        ``" ".join(tokens)`` splits back into them. Stop words are among them.
        """
        joined = self.joined(text)
        return joined.split(" ") if joined else []

    def joined(self, text: str) -> str:
        """The same tokens as one text, with a space between them: what the index is given."""
        found = list(filter(None, map(self._pieces.__getitem__, text.split())))
        joined = " ".join(found)
        if "\n" not in joined:
            return joined
        split = [piece.partition("\n") for piece in found]
        return " ".join([parts for parts, _, _ in split if parts] + [wholes for _, _, wholes in split if wholes])

    def query(self, text: str) -> KeywordQuery:
        """What to search for when asked for ``text``, all of which is taken as plain text.

        Words are single terms, of weight 2 if they look like an identifier; compounds are a term as a whole, and a
        phrase of their parts; a run of an unspaced script is its bigrams, and a phrase of them. Stop words are left
        out if anything else remains. False if there is nothing to search for.

        ``keyword.tokens`` are tokens that :meth:`tokens` gives for the same text (those of prefix terms begin one).
        """
        pieces = text.split()
        return self._ask(pieces, self._stop) or self._ask(pieces, frozenset())

    def _ask(self, pieces: Iterable[str], stop: frozenset[str]) -> KeywordQuery:
        asked = _Asked(self._stem, stop)
        for piece in pieces:
            word = plain_word(piece)  # of most pieces it is all that there is to know
            if stop and (bare(piece) if word is None else word) in stop:
                asked.interrupt()
            elif word is not None:
                asked.inline(self._pieces[word], 1)
            else:
                for chunk in scan(piece):
                    asked.add(chunk)
        return asked.query()


class _Asked:
    """The terms of a query while they are gathered."""

    def __init__(self, stem: Callable[[str], str], stop: frozenset[str]) -> None:
        self._stem = stem
        self._stop = stop
        self._weights: dict[tuple[tuple[str, ...], bool], int] = {}
        self._pairs: dict[tuple[str, str], None] = {}
        self._previous: str | None = None

    def query(self) -> KeywordQuery:
        terms = [Term(tokens, weight, prefix) for (tokens, prefix), weight in self._weights.items()]
        return KeywordQuery(tuple(terms), tuple(self._pairs))

    def interrupt(self) -> None:
        """Something was left out here: what follows is not next to what went before."""
        self._previous = None

    def add(self, chunk: Chunk) -> None:
        if self._stop.issuperset(chunk.parts):
            self.interrupt()
        elif chunk.kind is Kind.RUN:
            self._run(chunk.parts)
        elif chunk.kind is Kind.SYMBOL:
            self.inline(chunk.parts[0], 1)
        else:
            self._word(chunk)

    def _word(self, chunk: Chunk) -> None:
        capitals_inside = set(map("".join, chunk.inner))
        stems = [_part(part, self._stem) for part in chunk.parts]
        for part, stem in zip(chunk.parts, stems, strict=True):
            if part in self._stop:
                self.interrupt()
            else:
                identifier = part in capitals_inside or _mixes_letters_and_digits(part)
                self.inline(stem, _IDENTIFIER_WEIGHT if identifier else 1)
        if chunk.whole is not None:
            self._term((chunk.whole[:MAX_TOKEN],), _IDENTIFIER_WEIGHT)
        self._phrase(stems)
        for words in chunk.inner:
            inner = [_part(word, self._stem) for word in words]
            for word, stem in zip(words, inner, strict=True):
                if word not in self._stop:
                    self._term((stem,), 1)
            self._phrase(inner)

    def _run(self, parts: tuple[str, ...]) -> None:
        if len(parts) == 1:
            self.inline(parts[0][:MAX_TOKEN], 1, prefix=True)
            return
        bigrams = _bigrams(parts)
        for bigram in bigrams:
            self.inline(bigram, 1)
        self._phrase(bigrams)

    def inline(self, token: str, weight: int, *, prefix: bool = False) -> None:
        """The next token of the text."""
        self._term((token,), weight, prefix=prefix)
        if self._previous is not None:
            self._pairs[self._previous, token] = None
        self._previous = token

    def _phrase(self, tokens: list[str]) -> None:
        if 2 <= len(tokens) <= _LONGEST_PHRASE:
            self._term(tuple(tokens), 1)

    def _term(self, tokens: tuple[str, ...], weight: int, *, prefix: bool = False) -> None:
        known = self._weights.get((tokens, prefix), 0)
        self._weights[tokens, prefix] = max(known, weight)


def _analysed(piece: str, stem: Callable[[str], str]) -> str:
    """The tokens of one piece of text, as :class:`_Pieces` holds them."""
    inline: list[str] = []
    tail: list[str] = []
    for chunk in scan(piece):
        if chunk.kind is Kind.RUN:
            inline += _bigrams(chunk.parts)
            if len(chunk.parts) > 1:
                tail.append(chunk.parts[-1][:MAX_TOKEN])
        elif chunk.kind is Kind.SYMBOL:
            inline += chunk.parts
        else:
            inline += [_part(part, stem) for part in chunk.parts]
            if chunk.whole is not None:
                tail.append(chunk.whole[:MAX_TOKEN])
            for words in chunk.inner:
                tail += [_part(word, stem) for word in words]
    return " ".join(inline) + ("\n" + " ".join(tail) if tail else "")


def _part(part: str, stem: Callable[[str], str]) -> str:
    """One run of letters and digits as it is indexed: identifiers and numbers are never stemmed."""
    part = part[:MAX_TOKEN]
    return stem(part) if part.isalpha() or not any(map(str.isdigit, part)) else part


def _bigrams(parts: tuple[str, ...]) -> list[str]:
    """Overlapping pairs of characters; a lone character as it is."""
    if len(parts) == 1:
        return [parts[0][:MAX_TOKEN]]
    return [(first + second)[:MAX_TOKEN] for first, second in pairwise(parts)]


def _mixes_letters_and_digits(part: str) -> bool:
    return not part.isalpha() and any(map(str.isdigit, part)) and any(map(str.isalpha, part))
