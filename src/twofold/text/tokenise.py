"""Cut text into chunks: words and compounds, runs of unspaced scripts, symbols. No language is known here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from twofold.text.normalise import clean, normalise
from twofold.text.scripts import CLASSES, CONNECTORS

__all__ = ["MAX_TOKEN", "Chunk", "Kind", "plain_word", "scan"]

MAX_TOKEN: Final = 255
"""Code points that a token is cut at: enough for any identifier, and far below FTS5's own limit."""

_WORD: Final = "[a0][a0m]*"
_JOINT: Final = rf"(?:::|__|[{re.escape(CONNECTORS)}])"
# A leading dot belongs to a word only where nothing stands before it (.net, .gitignore, but not the end of "…net").
_CHUNK: Final = re.compile(
    rf"(?P<word>(?:(?<![^ ])\.(?=a))?{_WORD}(?:{_JOINT}{_WORD})*(?:\+\+|\#(?![a0]))?)"
    r"|(?P<run>c[cm]*)|(?P<symbol>rr?|s)"
)
# Most pieces of English: one word without capitals inside, in sentence punctuation. Cut the same by _CHUNK, slowly.
_PLAIN: Final = re.compile(r"""["'(\[]*([A-Za-z][a-z]*|[A-Z]+|[0-9]+)["')\],;:!?.]*""", re.ASCII)
_PART: Final = re.compile(_WORD)
_UNIT: Final = re.compile("cm*")

_HYPHENS_OF_A_NAME: Final = 2  # "mutable-argument-default" is a name more often than prose


class Kind(Enum):
    """What a chunk is."""

    WORD = "word"
    """A word, or a compound of several."""
    RUN = "run"
    """Characters of a script without spaces."""
    SYMBOL = "symbol"
    """An emoji, a flag, a sign."""


class Chunk(NamedTuple):
    """A piece of text with nothing but separators around it, folded but not stemmed."""

    kind: Kind
    """What it is."""
    parts: tuple[str, ...]
    """A word's runs of letters and digits; a run's characters, each with its marks; one symbol."""
    whole: str | None = None
    """A compound as one token; None of a single word, and of words that hyphens join (``low-dose``): those are
    prose, and counting them again costs SciFact and Cranfield .01 of nDCG@10. Their parts still make a phrase."""
    inner: tuple[tuple[str, ...], ...] = ()
    """For each part that has capitals inside (``getUserById``), the words it is made of; else nothing."""


def plain_word(piece: str) -> str | None:
    """The one folded word that :func:`scan` would find in ``piece``, if that is seen at once, as it is of most."""
    if piece.isascii() and piece.isalpha() and piece.islower():
        return piece
    plain = _PLAIN.fullmatch(piece)
    return plain[1].lower() if plain else None


def scan(piece: str) -> Iterator[Chunk]:
    """The chunks of ``piece`` in text order.

    A compound is a series of parts joined by one connector each (``atomic_write_json``, ``etc/nginx/nginx.conf``), or
    a word with a sign of its own (``c++``, ``c#``, ``.net``). No part is empty or holds white space; parts may be
    longer than :data:`MAX_TOKEN`. Takes time linear in the length of ``piece``.
    """
    if plain := plain_word(piece):
        yield Chunk(Kind.WORD, (plain,))
        return
    text = clean(piece)
    classes = text.translate(CLASSES)
    for found in _CHUNK.finditer(classes):
        start, end = found.span()
        if found.lastgroup == "word":
            yield _word(text[start:end], classes[start:end])
        elif found.lastgroup == "run":
            run = text[start:end]
            shape = classes[start:end]
            parts = tuple(run) if "m" not in shape else tuple(run[u.start() : u.end()] for u in _UNIT.finditer(shape))
            yield Chunk(Kind.RUN, parts)
        else:
            yield Chunk(Kind.SYMBOL, (text[start:end],))


def _word(text: str, shape: str) -> Chunk:
    folded = normalise(text)
    raw = [text[found.start() : found.end()] for found in _PART.finditer(shape)]
    parts = tuple(normalise(part) for part in raw) if len(raw) > 1 or len(raw[0]) < len(text) else (folded,)
    inner = () if folded == text else tuple(words for part in raw if len(words := _inner_words(part)) > 1)
    single = parts == (folded,)
    return Chunk(Kind.WORD, parts, None if single or _is_hyphenated_prose(folded) else folded, inner)


def _is_hyphenated_prose(compound: str) -> bool:
    return compound.replace("-", "").isalpha() and compound.count("-") < _HYPHENS_OF_A_NAME


def _inner_words(part: str) -> tuple[str, ...]:
    """``getUserById`` → get, user, by, id; ``HTTPServer`` → http, server; ``Word``, ``WORD``, ``IPv4`` → themselves."""
    if part.islower() or part.isupper() or part[1:].islower():
        return (part,)
    cuts = [0]
    for at in range(1, len(part)):
        after = part[at + 1 : at + 3]
        if part[at].isupper() and (
            not part[at - 1].isupper() or (len(after) > 1 and after.isalpha() and after.islower())
        ):
            cuts.append(at)
    return tuple(normalise(part[start:end]) for start, end in zip(cuts, [*cuts[1:], len(part)], strict=True))
