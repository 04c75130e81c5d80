from __future__ import annotations

import os
from pathlib import Path

import pytest

from twofold import BudgetTooSmallError, ConfigurationError, estimate_tokens
from twofold.context.budget import MESSAGE_TOKENS, REPLY_TOKENS, count_messages, counted, first_that_fits

PROSE = {
    "english": "The deploy key lives in the vault; ask Mara, who leads the platform team, before you rotate it.",
    "german": "Die Überprüfung der Donaudampfschifffahrtsgesellschaft müßte größtenteils abgeschlossen sein.",
    "russian": "Ключ развёртывания хранится в сейфе, спросите Мару, прежде чем его менять.",
    "chinese": "部署密钥保存在保险库中，更换之前请先询问平台团队的负责人。她更喜欢喝茶而不是咖啡。",
    "japanese": "彼女はコーヒーより紅茶が好きです。デプロイの鍵は金庫にあります。",
    "korean": "그녀는 커피보다 차를 좋아합니다. 배포 키는 금고에 있습니다.",
    "thai": "ฉันชอบดื่มชามากกว่ากาแฟ และกุญแจอยู่ในห้องนิรภัย",
    "code": "def add(first: int, second: int) -> int:\n    return first + second  # the sum\n",
    "emoji": "👍🏽👨‍👩‍👧🎉🇩🇪🔥",
}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("abc", 3 * 1 / 3),
        ("ab c", 4 / 3),
        ("a,1\n", 1 / 3 + 3),
        ("é", 1),
        ("\u07ff", 1),
        ("\u0800", 2.5),
        ("茶茶", 2 * 2.5),
        ("\ud800", 2.5),
        ("\U00010000", 4),
        ("👍", 4),
    ],
)
def test_the_estimate_is_its_formula_rounded_up(text, tokens):
    assert estimate_tokens(text) == -int(-tokens // 1)


@pytest.mark.parametrize("language", PROSE)
def test_the_estimate_is_at_least_what_gpt_4_counts(language, monkeypatch):
    tiktoken = pytest.importorskip("tiktoken")
    core = pytest.importorskip("llama_index.core")
    ships = Path(core.__file__).parent / "_static" / "tiktoken_cache"
    if not ships.is_dir():
        pytest.skip("this llama-index-core ships no tokeniser")
    monkeypatch.setitem(os.environ, "TIKTOKEN_CACHE_DIR", str(ships))
    tokens = len(tiktoken.get_encoding("cl100k_base").encode(PROSE[language]))
    assert tokens <= estimate_tokens(PROSE[language]) <= 3 * tokens


@pytest.mark.parametrize("language", PROSE)
def test_the_estimate_is_at_least_what_llama_2_counts(language):
    tokenizers = pytest.importorskip("tokenizers")
    wordllama = pytest.importorskip("wordllama")
    file = Path(wordllama.__file__).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    found = tokenizers.Tokenizer.from_file(str(file)).encode(PROSE[language], add_special_tokens=False)
    assert len(found.ids) <= estimate_tokens(PROSE[language])


@pytest.mark.parametrize("said", [-1, 1.0, None, True, "3"])
def test_a_counter_counts(said):
    with pytest.raises(ConfigurationError, match="count_tokens gives a whole number"):
        counted("x", lambda text: said)


def test_messages_count_more_than_their_contents():
    assert count_messages(["ab", "c"], len) == 2 + 1 + 2 * MESSAGE_TOKENS + REPLY_TOKENS
    assert count_messages([], len) == REPLY_TOKENS


@pytest.mark.parametrize("budget", range(3, 14))
def test_no_more_is_left_out_than_must_be(budget):
    made, tokens = first_that_fits(10, lambda dropped: (dropped, 13 - dropped), budget)
    assert (made, tokens) == (max(0, 13 - budget), min(13, budget))


def test_with_no_budget_nothing_is_left_out():
    assert first_that_fits(10, lambda dropped: (dropped, 10**9), None) == (0, 10**9)


def test_what_can_never_fit_says_what_it_needs():
    with pytest.raises(BudgetTooSmallError, match="give at least 3") as refused:
        first_that_fits(10, lambda dropped: (dropped, 13 - dropped), 2)
    assert (refused.value.needed, refused.value.budget) == (3, 2)


@pytest.mark.parametrize("budget", range(1, 12))
def test_a_counter_that_goes_up_and_down_keeps_to_the_budget_all_the_same(budget):
    sizes = [12, 3, 11, 2, 9, 8, 1]
    _, tokens = first_that_fits(6, lambda dropped: (dropped, sizes[dropped]), budget)
    assert tokens <= budget
