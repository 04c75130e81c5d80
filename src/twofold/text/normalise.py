"""One spelling for what readers take to be the same text.

Case, compatibility forms (full width, ligatures), accents, vowel points, curly quotes and invisible characters are
folded away; what makes another letter stays: Thai and Indic vowel signs, Japanese voicing marks, the breve of й.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["clean", "normalise"]

_ASCII_CONTROLS: Final = re.compile("[\x00-\x1f\x7f]")

_INVISIBLE: Final = frozenset(
    [
        *range(0xFE00, 0xFE10),  # variation selectors
        *range(0xE0100, 0xE01F0),
        *range(0x180B, 0x1810),
        *range(0x1F3FB, 0x1F400),  # skin tones
        *(0x034F, 0x17B4, 0x17B5),  # grapheme joiner, Khmer inherent vowels
        *(0x115F, 0x1160, 0x3164, 0xFFA0),  # Hangul fillers
        0x0640,  # the stroke that stretches an Arabic word
    ]
)

_SPELLED: Final = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u02b9\u2032"), "'"),  # curly quotes, primes
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-"),  # hyphens, dashes, minus
    0x2044: "/",  # of a fraction
    # Letters whose stroke or tie is no mark, so that decomposing them changes nothing.
    **{ord(letter): plain for letter, plain in zip("øłđıħŧðŀ", "oldihtdl", strict=True)},
    **{ord(letter): plain for letter, plain in zip("ØŁĐĦŦÐĿ", "OLDHTDL", strict=True)},
    **{ord(letter): plain for letter, plain in zip("æœþ", ("ae", "oe", "th"), strict=True)},
    **{ord(letter): plain for letter, plain in zip("ÆŒÞ", ("Ae", "Oe", "Th"), strict=True)},
}

_TRADE_MARKS: Final = re.compile("[™℠]")
_SHORT_I: Final = re.compile("([Ии])\u0306")


class _Folding(dict[int, str | int | None]):
    """What becomes of one decomposed code point, for ``str.translate``; worked out at first sight."""

    def __missing__(self, code: int) -> str | int | None:
        self[code] = folded = _fold_character(code)
        return folded


def _fold_character(code: int) -> str | int | None:
    if code in _SPELLED:
        return _SPELLED[code]
    if code in _INVISIBLE:
        return None
    character = chr(code)
    match unicodedata.category(character):
        case "Cf" | "Me":
            return None
        case "Cc" | "Cs" | "Zs" | "Zl" | "Zp":
            return " "
        case "Nd":
            return str(unicodedata.decimal(character))
        case "Mn" | "Mc" if _is_accent(unicodedata.combining(character)):
            return None
        case _:
            return code


def _is_accent(combining_class: int) -> bool:
    """Whether marks of this canonical combining class can go without making another letter.

    1 strikes a letter through, 10 to 36 are the points of Hebrew, Arabic and Syriac, 200 to 240 stand around a
    letter. The others (nukta, virama, voicing, tones and vowels of South and South-East Asia) stay.
    """
    return combining_class == 1 or 10 <= combining_class <= 36 or 200 <= combining_class <= 240


_FOLDING: Final = _Folding()


def clean(text: str) -> str:
    """Fold everything but case; :func:`normalise` does both.

    Apart, because a capital letter inside a word (``getUserById``) tells where its parts begin.
    """
    if text.isascii():
        return text if text.isprintable() else _ASCII_CONTROLS.sub(" ", text)
    text = _TRADE_MARKS.sub(" ", text)
    text = _SHORT_I.sub(lambda found: "й" if found[1] == "и" else "Й", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", text.translate(_FOLDING))


def normalise(text: str) -> str:
    """Fold ``text`` so that spellings readers take to be the same become equal; folding twice changes nothing.

    Compatibility decomposition (Unicode NFKD), accents and points dropped, full case folding, canonical composition.
    Control characters, lone surrogates and every kind of space become a plain space; format characters (joiners, soft
    hyphen, byte order mark), variation selectors and skin tones are dropped; digits of all scripts become ASCII's.

    >>> normalise("ＣＡＦÉ Straße ёлка")
    'cafe strasse елка'

    Never raises, whatever the string holds.
    """
    if text.isascii():
        return clean(text).lower()
    text = clean(text)
    while (folded := clean(text.casefold())) != text:
        text = folded
    return text
