"""What holds of text analysis whatever the text."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.text import Analyzer, normalise

ANALYZERS = [Analyzer("english"), Analyzer("russian"), Analyzer("chinese"), Analyzer("none")]

# Any code point at all, and mixtures of those that the rules are about.
TRICKY = "aAbZ0 9_-./\\:@+#&~'’\"*()^ \t\n\0\x1f\u00a0\u00ad\u200b\u200d\u2028\ufe0f\u0301\u0306\u0308\u0323\u3099"
TRICKY += "éßİıŁæийёΣςﬁ²½™№שָׁكِـหนี้ក្ខမ်हि中文の東々ガー각가각🔴👍🏽🇩🇪\ud800\udfff\ue000\uffff\U000e0041\U0010ffff"
TEXTS = st.text(st.characters(codec=None) | st.sampled_from(TRICKY), max_size=60) | st.text(
    st.sampled_from(TRICKY), max_size=60
)
ANY = settings(max_examples=400, deadline=None)


@ANY
@given(TEXTS)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@ANY
@given(TEXTS)
def test_composed_and_decomposed_text_is_one(text: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert normalise(composed) == normalise(decomposed)
    assert ANALYZERS[0].tokens(composed) == ANALYZERS[0].tokens(decomposed)


@ANY
@given(st.text(st.sampled_from("aAbBzZ019_-. éÉßЖжёЙйΣσ中の"), max_size=30))
def test_case_does_not_matter(text: str) -> None:
    lower = text.lower()
    assert normalise(text.upper()) == normalise(lower)
    assert ANALYZERS[0].tokens(lower.upper()) == ANALYZERS[0].tokens(lower)


@ANY
@given(TEXTS, st.sampled_from(ANALYZERS))
def test_tokens_survive_being_joined_by_spaces(text: str, analyzer: Analyzer) -> None:
    tokens = analyzer.tokens(text)
    assert " ".join(tokens).split() == tokens
    for token in tokens:
        assert 1 <= len(token) <= 255
        assert not any(unicodedata.category(character) in {"Cc", "Cs"} for character in token)
        assert not any("A" <= character <= "Z" for character in token)


@ANY
@given(TEXTS, st.sampled_from(ANALYZERS))
def test_a_text_holds_what_is_searched_for_it(text: str, analyzer: Analyzer) -> None:
    tokens = analyzer.tokens(text)
    query = analyzer.query(text)
    for term in query.terms:
        width = len(term.tokens)
        places = [tuple(tokens[at : at + width]) for at in range(len(tokens) - width + 1)]
        if term.prefix:
            assert any(token.startswith(term.tokens[-1]) for token in tokens)
        else:
            assert term.tokens in places
    assert bool(query) == bool(tokens)
    assert set(query.pairs) <= set(pairwise(tokens))
    assert len({(term.tokens, term.prefix) for term in query.terms}) == len(query.terms)


@ANY
@given(st.text(st.sampled_from("aB9.,:;!?'\"()[]-#+"), max_size=12))
def test_the_short_way_for_plain_words_cuts_like_the_long_one(piece: str) -> None:
    # A no-break joiner is dropped, but keeps a piece from going the short way.
    assert ANALYZERS[3].tokens(piece) == ANALYZERS[3].tokens(piece + "\u2060")


@ANY
@given(st.lists(TEXTS, max_size=4))
def test_pieces_between_white_space_do_not_touch_each_other(texts: list[str]) -> None:
    analyzer = Analyzer("none")
    together = analyzer.tokens("\n".join(texts))
    apart = [token for text in texts for token in analyzer.tokens(text)]
    assert sorted(together) == sorted(apart)


@ANY
@given(st.text(st.sampled_from("部署方案のガー가각เด็กนี့မြန်"), min_size=1, max_size=20), st.data())
def test_every_character_of_an_unspaced_run_is_found(text: str, data: st.DataObject) -> None:
    analyzer = ANALYZERS[0]
    character = data.draw(st.sampled_from([c for c in text if unicodedata.category(c)[0] == "L"] or ["\0"]))
    if character != "\0":
        (term,) = analyzer.query(character).terms
        assert term.prefix
        assert any(token.startswith(term.tokens[0]) for token in analyzer.tokens(text))
