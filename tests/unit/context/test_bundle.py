from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from twofold import BudgetTooSmallError, ConfigurationError, ContextTemplate, Message, SearchResult
from twofold.context import assemble
from twofold.context.budget import count_messages


@pytest.fixture
def make(hit_of, now):
    """A bundle of memories h1, h2 and linked l1, messages m1 to m3, and the question "Why?"."""
    found = SearchResult(
        hits=(hit_of("h1" * 9, id="h1"), hit_of("h2" * 9, id="h2")), linked=(hit_of("l1" * 9, id="l1"),)
    )
    said = [Message(("user", "assistant")[n % 2], f"m{n + 1}" * 9, now + timedelta(minutes=n)) for n in range(3)]

    def made(query="Why?", *, found=found, said=said, **more):
        given = {"at": now, "zone": UTC, "zone_name": "UTC", "template": ContextTemplate("You."), "last": 10, **more}
        return assemble(query, found, said, count=given.pop("count", len), **given)

    return made


def size_of(bundle):
    chat = count_messages([message["content"] for message in bundle.as_messages()], len)
    return max(len(bundle.as_text()), chat)


def ids(hits):
    return [hit.id for hit in hits]


def test_it_is_written_as_text_and_as_messages(make):
    bundle = make()
    assert (
        bundle.as_text()
        == str(bundle)
        == (
            "You.\n\nRelevant memories:\n<memories>\n"
            "[1] (2026-03-02) h1h1h1h1h1h1h1h1h1\n"
            "[2] (2026-03-02) h2h2h2h2h2h2h2h2h2\n[3] (2026-03-02) l1l1l1l1l1l1l1l1l1\n"
            "</memories>\n\nConversation so far:\n<conversation>\n"
            "[2026-03-02 08:05] user: m1m1m1m1m1m1m1m1m1\n"
            "[2026-03-02 08:06] assistant: m2m2m2m2m2m2m2m2m2\n"
            "[2026-03-02 08:07] user: m3m3m3m3m3m3m3m3m3\n"
            "</conversation>\n\nWhy?"
        )
    )
    assert bundle.as_messages() == [
        {"role": "system", "content": bundle.system},
        {"role": "user", "content": "[2026-03-02 08:05] m1m1m1m1m1m1m1m1m1"},
        {"role": "assistant", "content": "[2026-03-02 08:06] m2m2m2m2m2m2m2m2m2"},
        {"role": "user", "content": "[2026-03-02 08:07] m3m3m3m3m3m3m3m3m3"},
        {"role": "user", "content": "Why?"},
    ]
    assert ids(bundle.memories) == ["h1", "h2", "l1"]
    assert not bundle.left_out
    assert bundle.tokens == size_of(bundle)


def test_with_nothing_to_tell_the_question_stands_alone(make):
    bundle = make(found=SearchResult(), said=[], template=ContextTemplate("{memories}"))
    assert bundle.as_text() == "Why?"
    assert bundle.as_messages() == [{"role": "user", "content": "Why?"}]


def test_the_oldest_messages_go_first_then_the_weakest_memories(make):
    everything, bare = make().tokens, make(found=SearchResult(), said=[]).tokens
    seen = []
    for budget in range(everything, bare - 1, -1):
        bundle = make(budget=budget)
        assert bundle.tokens == size_of(bundle) <= budget
        state = ([message.content[:2] for message in bundle.messages], ids(bundle.memories))
        if not seen or seen[-1] != state:
            seen.append(state)
        assert [message.content[:2] for message in (*bundle.left_out.messages, *bundle.messages)] == ["m1", "m2", "m3"]
        assert ids((*bundle.memories, *bundle.left_out.memories)) == ["h1", "h2", "l1"]
        assert bundle.budget == budget
    assert seen == [
        (["m1", "m2", "m3"], ["h1", "h2", "l1"]),
        (["m2", "m3"], ["h1", "h2", "l1"]),
        (["m3"], ["h1", "h2", "l1"]),
        ([], ["h1", "h2", "l1"]),
        ([], ["h1", "h2"]),
        ([], ["h1"]),
        ([], []),
    ]
    with pytest.raises(BudgetTooSmallError) as refused:
        make(budget=bare - 1)
    assert refused.value.needed == bare


def test_a_long_conversation_keeps_to_the_budget_with_few_counts(make, now):
    counts = []

    def count(text):
        counts.append(text)
        return len(text)

    said = [Message("user", f"message {n}", now) for n in range(1000)]
    bundle = make(said=said, last=1000, budget=20_000, count=count)
    assert bundle.tokens <= 20_000 < bundle.tokens + len("[2026-03-02 08:05] user: message 999\n")
    assert len(bundle.messages) + len(bundle.left_out.messages) == 1000
    texts = sum(text == "Why?" for text in counts)  # once a making
    assert texts <= 2 + 10  # the fullest, the barest, and log2 of 1003 between


def test_the_last_messages_are_considered_and_the_earlier_counted(make):
    bundle = make(last=2)
    assert [message.content[:2] for message in bundle.messages] == ["m2", "m3"]
    assert (bundle.left_out.earlier, bundle.left_out.messages, bool(bundle.left_out)) == (1, (), True)
    nothing = make(last=0)
    assert (nothing.messages, nothing.left_out.earlier) == ((), 3)


def test_the_question_is_not_told_twice(make):
    said = [Message("user", "Why?"), Message("assistant", "Because."), Message("user", "Why?")]
    assert make(said=said).messages == tuple(said[:2])
    assert make(said=said, last=1).messages == (said[1],)
    echo = [Message("assistant", "Why?")]
    assert make(said=echo).messages == tuple(echo)


def test_the_template_is_filled_in(make):
    bundle = make(template=ContextTemplate("{weekday} {now} {zone}"), zone_name="Mars/Base")
    assert bundle.system.startswith("Monday 2026-03-02 08:05 Mars/Base\n\nRelevant")


def test_lone_surrogates_come_out_as_text_that_has_an_encoding(make, hit_of):
    bundle = make("a\ud800", said=[Message("user", "b\udfff")], found=SearchResult(hits=(hit_of("c\ud8ff"),)))
    bundle.as_text().encode()
    for message in bundle.as_messages():
        message["content"].encode()
    assert bundle.query == "a\ud800"


def test_a_counter_is_held_to_its_word(make):
    with pytest.raises(ConfigurationError, match="count_tokens gives a whole number"):
        make(count=lambda text: len(text) / 4)
    with pytest.raises(ZeroDivisionError):
        make(count=lambda text: 1 // 0)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_memory_that_has_no_room_by_itself_keeps_nothing_else_out(make, hit_of, place):
    hits = [hit_of("short " * 2, id="a"), hit_of("brief " * 2, id="b")]
    hits.insert(place, hit_of("long " * 1_000, id="huge"))
    found = SearchResult(hits=tuple(hits[:2]), linked=tuple(hits[2:]))
    without = SearchResult(hits=tuple(hit for hit in hits if hit.id != "huge"))
    budget = size_of(make(found=without))  # all but the huge one
    bundle = make(found=found, budget=budget)
    assert ids(bundle.memories) == ["a", "b"]
    assert ids(bundle.left_out.memories) == ["huge"]
    assert len(bundle.messages) == 3
    assert size_of(bundle) == bundle.tokens == budget
    tighter = make(found=found, budget=size_of(make(found=without, said=[])) - 1)
    assert ids(tighter.memories) == ["a"]
    assert ids(tighter.left_out.memories) == [each for each in ids(hits) if each != "a"]
