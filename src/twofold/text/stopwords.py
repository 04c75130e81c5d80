"""Words that say little about what is asked, per language. Only queries drop them; the index holds every word."""

from __future__ import annotations

from functools import cache
from typing import Final

import stop_words

from twofold.text.normalise import normalise

__all__ = ["bare", "fold_stop_words", "stop_word_languages", "stop_words_of"]

# English gets a list of its own, of words that only hold a sentence together. The library's 1,333 for English hold
# computer, fire, bill, find, first, ok, no: words people search for.
_ENGLISH: Final = """
a an the
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves one's
this that these those such
who whom whose which what when where why how whether
am is are was were be been being do does did doing have has had having
can could may might must shall should will would ought cannot
and or but nor if then than so as because while until although though unless since
of at by for with about against between into through during before after above below to from in on onto upon
over under out off up down within without among across per via
not no only too very just also both each any some all more most other again further once here there
same own few many much ever please
s t d m ll re ve
e.g i.e etc
aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't shan't shouldn't
wasn't weren't won't wouldn't ain't let's
aren couldn didn doesn hadn hasn haven isn mightn mustn needn shan shouldn wasn weren wouldn
"""

_AROUND: Final = "\"',.;:!?()[]{}<>*«»…"


def stop_word_languages() -> frozenset[str]:
    """The languages that a list exists for."""
    return frozenset(stop_words.AVAILABLE_LANGUAGES) | {"english"}


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """The folded stop words of ``language``; none for a language without a list."""
    if language == "english":
        return fold_stop_words(tuple(_ENGLISH.split()))
    if language not in stop_word_languages():
        return frozenset()
    return fold_stop_words(tuple(stop_words.get_stop_words(language)))


def fold_stop_words(words: tuple[str, ...]) -> frozenset[str]:
    """The words as a query is compared with them: normalised, without punctuation around."""
    return frozenset(map(bare, words)) - {""}


def bare(piece: str) -> str:
    """A piece of text between white space, normalised and without the punctuation around it."""
    return normalise(piece).strip(_AROUND)
