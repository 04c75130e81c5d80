from __future__ import annotations

import time
from unicodedata import unidata_version

import pytest
import Stemmer

from twofold.errors import ConfigurationError
from twofold.text import Analyzer, KeywordQuery, Term

ENGLISH = Analyzer("english")
PLAIN = Analyzer("none")


def asked(text: str, analyzer: Analyzer = PLAIN) -> dict[str, int]:
    """What is searched, terms as text, with their weights."""
    return {" ".join(term.tokens) + "*" * term.prefix: term.weight for term in analyzer.query(text).terms}


class TestTokens:
    @pytest.mark.parametrize(
        ("text", "tokens"),
        [
            ("", []),
            ("The quick, brown (fox)!", "the quick brown fox"),
            ("atomic_write_json now", "atomic write json now atomic_write_json"),
            ("/etc/nginx/nginx.conf.", "etc nginx nginx conf etc/nginx/nginx.conf"),
            ("see v1.2.3, v2.0.", "see v1 2 3 v2 0 v1.2.3 v2.0"),
            ("C++ C# .NET, F#.", "c c net f c++ c# .net f#"),
            ("end...next ...net", "end next net"),
            ("https://host:8080/x", "https host 8080 x host:8080/x"),
            ("std::vector __init__", "std vector init std::vector"),
            ("low-dose state-of-the-art IL-6", "low dose state of the art il 6 state-of-the-art il-6"),
            ("don't don’t user's", "don t don t user s"),
            ("getUserById HTTPServer IPv4", "getuserbyid httpserver ipv4 get user by id http server"),
            ("WORD Word word", "word word word"),
            ("a.getUserById", "a getuserbyid a.getuserbyid get user by id"),
            ("部署方案", "部署 署方 方案 案"),
            ("部署 署", "部署 署 署"),
            ("GPT模型v2版", "gpt 模型 v2 版 型"),
            ("배포계획을", "배포 포계 계획 획을 을"),
            ("ชุมชน", "ชุม มช ชน น"),
            ("ok🔴🇩🇪🇫🇷🇩", "ok 🔴 🇩🇪 🇫🇷 🇩"),
            ("│──│ a ⣿", "a"),
            ("हिन्दी शक्ति", "हिन्दी शक्ति"),
        ],
    )
    def test_parts_in_text_order_then_wholes(self, text: str, tokens: str | list[str]) -> None:
        expected = tokens.split(" ") if isinstance(tokens, str) else tokens
        assert PLAIN.tokens(text) == expected

    def test_stems_words_but_not_identifiers(self) -> None:
        assert ENGLISH.tokens("running is us f841s run_jobs") == ["run", "is", "us", "f841s", "run", "job", "run_jobs"]

    def test_keeps_stop_words(self) -> None:
        assert ENGLISH.tokens("the of") == ["the", "of"]

    def test_cuts_at_255_code_points(self) -> None:
        for text in ("a" * 300, "é" * 300, "a_" * 200 + "b", "ก" + "่" * 600 + "ข"):
            tokens = PLAIN.tokens(text)
            assert max(map(len, tokens)) == 255
            assert set(PLAIN.query(text).tokens) <= set(tokens)

    def test_answers_the_same_when_its_cache_is_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("twofold.text.analyzer._CACHED_PIECES", 3)
        analyzer = Analyzer("english")
        text = "some running words, more words than it remembers: some running words"
        assert analyzer.tokens(text) == analyzer.tokens(text) == ENGLISH.tokens(text)


class TestQuery:
    def test_single_words(self) -> None:
        assert PLAIN.query("find this word").terms == (Term(("find",)), Term(("this",)), Term(("word",)))

    def test_words_asked_twice_are_one_term(self) -> None:
        assert asked("word Word WORD word") == {"word": 1}

    def test_identifiers_count_double(self) -> None:
        assert asked("silence F841 there") == {"silence": 1, "f841": 2, "there": 1}
        assert asked("2024") == {"2024": 1}

    def test_compounds_as_a_whole_in_parts_and_as_a_phrase(self) -> None:
        assert asked("write_json") == {"write": 1, "json": 1, "write_json": 2, "write json": 1}
        assert asked("low-dose") == {"low": 1, "dose": 1, "low dose": 1}
        assert asked("c++") == {"c": 1, "c++": 2}

    def test_camel_case(self) -> None:
        assert asked("getUser") == {"getuser": 2, "get": 1, "user": 1, "get user": 1}

    def test_unspaced_runs(self) -> None:
        assert asked("署") == {"署*": 1}
        assert asked("部署") == {"部署": 1}
        assert asked("部署方案") == {"部署": 1, "署方": 1, "方案": 1, "部署 署方 方案": 1}

    def test_a_passage_is_no_phrase(self) -> None:
        assert all(len(term.tokens) == 1 for term in PLAIN.query("部署方案" * 40).terms)

    def test_neighbours(self) -> None:
        assert PLAIN.query("one, two - three").pairs == (("one", "two"), ("two", "three"))
        assert PLAIN.query("a b a b").pairs == (("a", "b"), ("b", "a"))

    def test_a_dropped_stop_word_parts_neighbours(self) -> None:
        assert ENGLISH.query("capital of France today").pairs == (("franc", "todai"),)
        assert ENGLISH.query("keys don't rotate").pairs == ()

    def test_stop_words_go_if_others_remain(self) -> None:
        assert asked("what is the capital", ENGLISH) == {"capit": 1}
        assert asked("e.g. the capital, and/or don't", ENGLISH) == {"capit": 1}
        assert asked("to be or not to be", ENGLISH).keys() == {"to", "be", "or", "not"}
        assert asked("The!", ENGLISH) == {"the": 1}

    def test_a_stop_word_inside_a_compound_stays_in_its_phrase(self) -> None:
        assert asked("state-of-the-art", ENGLISH) == {
            "state": 1, "art": 1, "state-of-the-art": 2, "state of the art": 1,
        }  # fmt: skip

    def test_words_people_search_for_are_no_stop_words(self) -> None:
        found = ENGLISH.query("computer fire find first ok bill date error name value last won don it's")
        assert {"comput", "fire", "find", "first", "ok", "bill", "date", "won", "don"} <= set(found.tokens)

    @pytest.mark.parametrize("text", ["", " \n", "?!", "***", "()", '""', "\0", "\ud800", "\u200d", "'", "´"])
    def test_nothing_to_search_for(self, text: str) -> None:
        assert ENGLISH.query(text) == KeywordQuery()
        assert not ENGLISH.query(text)

    def test_case_does_not_matter(self) -> None:
        assert ENGLISH.query("DO NOT USE FIND /") == ENGLISH.query("do not use find /")

    def test_long_queries_take_linear_time(self) -> None:
        def seconds(words: int) -> float:
            text = " ".join(f"word{n}_x 部署方案{n}" for n in range(words))
            start = time.process_time()
            ENGLISH.query(text)
            return time.process_time() - start

        seconds(100)
        assert seconds(16_000) < 4 * 8 * seconds(2_000)  # 8 times the text; a quadratic one takes 64 times as long

    @pytest.mark.parametrize("unit", ["a", "a_", "__", ".", "部", "ก่", "aB", "c+", "\u0301", "a'", "🔴", "x::", "-"])
    def test_one_long_piece_takes_linear_time(self, unit: str) -> None:
        start = time.process_time()
        PLAIN.tokens(unit * 30_000)
        PLAIN.query(unit * 30_000)
        assert time.process_time() - start < 10  # a quadratic one takes minutes


class TestSettings:
    def test_unknown_language_names_the_known(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'klingon'.*english.*none.*russian"):
            Analyzer("klingon")

    def test_equal_settings_make_equal_analysers(self) -> None:
        assert Analyzer("english") == Analyzer("english")
        assert hash(Analyzer("english", ("a",))) == hash(Analyzer("english", ("a",)))
        assert Analyzer("english") != Analyzer("english", ())
        assert Analyzer("english") != Analyzer("none")

    def test_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            ENGLISH.language = "none"  # type: ignore[misc]

    def test_version_names_what_makes_the_tokens(self) -> None:
        version = ENGLISH.version
        assert unidata_version in version
        assert "porter" in version
        assert Stemmer.version() in version
        assert version != Analyzer("russian").version
        assert version == Analyzer("english", ("x",)).version
        assert Analyzer("none").version == Analyzer("korean").version  # neither stems

    def test_own_stop_words(self) -> None:
        analyzer = Analyzer("english", ("Foo", "don’t", "the"))
        assert asked("the foo FOO don't run", analyzer) == {"run": 1}
        assert asked("the of", Analyzer("english", ())) == {"the": 1, "of": 1}

    @pytest.mark.parametrize(
        ("language", "text", "stems"),
        [
            ("russian", "книги о кошках", ["книг", "кошк"]),
            ("german", "die Häuser und Katzen", ["haus", "katz"]),
            ("french", "les chats de l’école", ["chat", "ecol"]),
            ("ukrainian", "але книги", ["книги"]),
            ("chinese", "把 部署", ["部署"]),
            ("hebrew", "אבל שלום", ["שלום"]),
        ],
    )
    def test_languages(self, language: str, text: str, stems: list[str]) -> None:
        assert [" ".join(term.tokens) for term in Analyzer(language).query(text).terms] == stems

    def test_every_known_language_works(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            Analyzer("")
        known = str(caught.value).split("choose from ")[1].split(", ")
        assert len(known) > 40
        for language in known:
            analyzer = Analyzer(language)
            assert len(analyzer.tokens("Привет мир hello")) == 3
            assert analyzer.query("Привет мир hello")
