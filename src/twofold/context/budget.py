"""How many tokens a context counts, and what goes first if it counts too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from twofold.errors import BudgetTooSmallError, ConfigurationError

__all__ = [
    "MESSAGE_TOKENS",
    "REPLY_TOKENS",
    "CountTokens",
    "count_messages",
    "counted",
    "estimate_tokens",
    "first_that_fits",
]

CountTokens: TypeAlias = Callable[[str], int]
"""Gives the number of tokens of a text."""

MESSAGE_TOKENS: Final = 4
"""What a chat format adds to each message: its role and what sets it apart (ChatML: 4)."""
REPLY_TOKENS: Final = 3
"""What it adds for the start of the answer (ChatML: 3)."""

_SIXTHS: Final = ((0x800, 6), (0x10000, 15), (0x110000, 24))
"""Sixths of a token that a character below each code point counts; ASCII letters and spaces count two."""

_T = TypeVar("_T")


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` has for a language model; rather more than fewer.

    The sum, rounded up, of: 1/3 for each ASCII letter or space; 1 for any other ASCII character, and for one below
    U+0800 (accented, Cyrillic, Greek, Hebrew, Arabic); 2.5 for one below U+10000 (Chinese, Japanese, Korean, Thai,
    Hindi); 4 for the rest (emoji). Tokenisers that work on bytes count at most 1, 2, 3 and 4 for these, the length in
    UTF-8, and far less for most text.
    """
    sixths = 0
    for character in text:
        if character == " " or (character.isascii() and character.isalpha()):
            sixths += 2
        else:
            code = ord(character)
            sixths += next(weight for below, weight in _SIXTHS if code < below)
    return -(-sixths // 6)


def counted(text: str, count: CountTokens) -> int:
    """What ``count`` says of ``text``.

    Raises:
        ConfigurationError: it says something that is no number of tokens.
    """
    tokens = count(text)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise ConfigurationError(f"count_tokens gives a whole number of at least 0, not {tokens!r}")
    return tokens


def count_messages(contents: Iterable[str], count: CountTokens) -> int:
    """What a chat of these messages counts: their contents, ``MESSAGE_TOKENS`` for each, and ``REPLY_TOKENS``."""
    return sum(counted(content, count) + MESSAGE_TOKENS for content in contents) + REPLY_TOKENS


def first_that_fits(steps: int, build: Callable[[int], tuple[_T, int]], budget: int | None) -> tuple[_T, int]:
    """The fullest of several makings that keeps to the budget, and its tokens.

    Args:
        steps: how many things there are that can be left out, one after another.
        build: makes it with so many left out, and counts it.
        budget: how many tokens at most; None: any number.

    Raises:
        BudgetTooSmallError: it does not fit even with all of them left out.
    """
    fullest = build(0)
    if budget is None or fullest[1] <= budget:
        return fullest
    barest = build(steps)
    if barest[1] > budget:
        raise BudgetTooSmallError(needed=barest[1], budget=budget)
    low, high, best = 0, steps, barest  # low does not fit, high does
    while high - low > 1:
        middle = (low + high) // 2
        made = build(middle)
        if made[1] <= budget:
            high, best = middle, made
        else:
            low = middle
    return best
