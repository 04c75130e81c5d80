"""What kind of character each one is to a tokeniser, as a letter that a regular expression can match.

``str.translate`` with :data:`CLASSES` turns a text into its classes, position for position.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["CLASSES", "CONNECTORS", "is_unspaced"]

CONNECTORS: Final = r"_-./\:@+#&~"
"""Characters that may join two parts to a compound; each is its own class."""

_UNSPACED: Final = (
    (0x0E01, 0x0E5B),  # Thai
    (0x0E81, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAD),  # Tai Tham
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # ideographic marks and zero
    (0x3021, 0x3029),
    (0x3031, 0x303C),
    (0x3041, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x31BF),  # Bopomofo, Hangul letters
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xA9E0, 0xA9FF),  # Burmese, extended
    (0xAA60, 0xAA7F),
    (0xAA80, 0xAADF),  # Tai Viet
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0x16FE0, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # Kana, Nushu
    (0x20000, 0x3FFFD),  # Han, further planes
)

_REGIONAL: Final = (0x1F1E6, 0x1F1FF)
_DRAWN: Final = ((0x2500, 0x259F), (0x2800, 0x28FF))  # lines, blocks and Braille: how a terminal draws, not text


def is_unspaced(code: int) -> bool:
    """Whether the code point belongs to a script written without spaces (or with glued particles, as Hangul)."""
    return any(first <= code <= last for first, last in _UNSPACED)


def _class_of(code: int) -> str:
    """The class of one cleaned character.

    ``a`` letter, ``0`` digit, ``m`` mark that stays with its base, ``c`` letter of an unspaced script, ``r`` half of
    a flag, ``s`` any other symbol, a connector itself, and a space for everything that separates.
    """
    character = chr(code)
    if character in CONNECTORS:
        return character
    if code < 0x80:
        return "a" if character.isalpha() else "0" if character.isdigit() else " "
    if _REGIONAL[0] <= code <= _REGIONAL[1]:
        return "r"
    if any(first <= code <= last for first, last in _DRAWN):
        return " "
    category = unicodedata.category(character)
    if category[0] == "M":
        return "m"
    if category[0] in "LN" or (category == "Cn" and is_unspaced(code)):
        return "c" if is_unspaced(code) else "0" if category[0] == "N" else "a"
    if category in {"So", "Sm", "Sc"} or (category == "Cn" and not _is_noncharacter(code)):
        return "s"  # unassigned: most likely an emoji newer than this Python
    return " "


def _is_noncharacter(code: int) -> bool:
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


class _Classes(dict[int, str]):
    """The class of a code point, for ``str.translate``; worked out at first sight."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(code)
        return found


CLASSES: Final = _Classes()
"""Code point → class, as a table for ``str.translate``; the result is as long as the text."""
