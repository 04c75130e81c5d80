from __future__ import annotations

import unicodedata

import pytest

from twofold.text import normalise


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hello, World 42!", "hello, world 42!"),
        ("ＣＡＦÉ", "cafe"),
        ("Straße STRASSE ẞ", "strasse strasse ss"),
        ("ﬁle Ａ１ x² №", "file a1 x2 no"),
        ("smørrebrød Łódź đà þæœ ŁØĐ", "smorrebrod lodz da thaeoe lod"),
        ("İstanbul ılık", "istanbul ilik"),
        ("ёлка Ёлка йод ЙОД їжак", "елка елка йод йод іжак"),
        ("ΣΊΣΥΦΟΣ σίσυφος", "σισυφοσ σισυφοσ"),
        ("שָׁלוֹם كِتَابَة كتـــاب", "שלום كتابة كتاب"),
        ("ガ ｶﾞ か\u3099", "ガ ガ が"),
        ("don’t ‘x’", "don't 'x'"),
        ("٣ ३ ๓", "3 3 3"),
        ("ze\u200bro\u00adwidth\ufeff", "zerowidth"),
        ("❤\ufe0f 👍🏽 1\ufe0f\u20e3", "❤ 👍 1"),
        ("a\0b\tc\x1fd\u2028e\u00a0f\ud800g", "a b c d e f g"),
        ("s̶t̶r̶u̶c̶k̶", "struck"),
        ("non\u2011breaking − minus", "non-breaking - minus"),
        ("Foo™ bar", "foo  bar"),
    ],
)
def test_folds(text: str, folded: str) -> None:
    assert normalise(text) == folded


@pytest.mark.parametrize("word", ["เด็กน้อย", "ພາສາລາວ", "ខ្មែរ", "မြန်မာ", "हिन्दी", "தமிழ்", "ពណ៌"])
def test_vowel_signs_stay(word: str) -> None:
    marks = [c for c in unicodedata.normalize("NFKD", word) if unicodedata.category(c)[0] == "M"]
    kept = [c for c in unicodedata.normalize("NFKD", normalise(word)) if unicodedata.category(c)[0] == "M"]
    assert kept == marks


def test_every_character_is_folded_once_for_all() -> None:
    blocks = [*range(0x3000), *range(0xA000, 0xAC10), *range(0xD7A0, 0x11800), *range(0x1D000, 0x1FC00), 0xE0001]
    unstable = [hex(code) for code in blocks if normalise(normalise(chr(code))) != normalise(chr(code))]
    assert unstable == []
