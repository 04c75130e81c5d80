"""The context that a store assembles: whose memories are in it, how they were found, and what of it counts as used."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import twofold
from twofold import (
    A,
    Access,
    AccessError,
    BudgetTooSmallError,
    ConfigurationError,
    ContextTemplate,
    Message,
    SearchParams,
    SearchUnavailableError,
    StoreSettings,
)
from twofold.testing import FailingEmbedder, FakeEmbedder

NOW = datetime(2026, 3, 2, 8, 5, tzinfo=UTC)
ANN, BEN = Access(user="ann", rooms=("kitchen",)), Access(user="ben")
SETTINGS = StoreSettings(clock=lambda: NOW)


@pytest.fixture
def store():
    with twofold.open(":memory:", settings=SETTINGS) as store:
        yield store


def ids(hits):
    return [hit.id for hit in hits]


def test_the_memories_are_those_of_a_search(store):
    for n in range(8):
        store.add("kettle " * (n + 1), id=f"k{n}")
    bundle = store.context("kettle")
    assert bundle.memories == store.search("kettle", k=5).hits
    assert list(bundle.result.ids) == ids(bundle.memories)
    assert ids(store.context("kettle", k=3).memories) == list(store.search("kettle", k=3).ids)
    assert store.context("kettle", k=0).memories == ()
    assert bundle.at == NOW
    assert "It is Monday, 2026-03-02 08:05 (UTC)." in bundle.system


def test_nobody_is_told_what_is_not_theirs(store):
    secret = "the kettle code is 4711"
    store.add(secret, id="mine", access=ANN)
    store.add(secret, id="ours", access=ANN, scope="room")
    store.add("the kettle is red", id="all")
    store.link(
        "all",
        "mine",
        access=Access.everything(),
        owner=twofold.Owner.everybody(),
        target_owner=twofold.Owner.user("ann"),
    )
    params = SearchParams(expand=5, touch=True)
    assert set(ids(store.context("kettle code", access=ANN, params=params).memories)) == {"mine", "ours", "all"}
    for asker in (BEN, Access(), Access(rooms=("garden",))):
        bundle = store.context("kettle code 4711", access=asker, params=params, budget_tokens=5000)
        assert ids(bundle.memories) == ["all"]
        assert bundle.left_out.memories == ()
        assert bundle.result.linked == ()
        assert secret not in bundle.as_text()
        assert secret not in repr(bundle)


def test_a_view_asks_as_it_is_bound(store):
    store.add("a kettle of ann's", id="mine", access=ANN)
    view = store.view(ANN)
    assert ids(view.context("kettle").memories) == ["mine"]
    assert ids(view.context("kettle", access=ANN).memories) == ["mine"]
    with pytest.raises(AccessError):
        view.context("kettle", access=BEN)


def test_filter_mode_and_params_are_those_of_the_search(store):
    store.add("a red kettle", id="red", kind="insight")
    store.add("a kettle", id="plain")
    assert ids(store.context("kettle", where=A.kind == "insight").memories) == ["red"]
    store.archive("plain")
    assert ids(store.context("red kettle").memories) == ["red"]
    assert ids(store.context("red kettle", params=SearchParams(include_archived=True)).memories) == ["red", "plain"]
    assert store.context("kettle", params=SearchParams(trace=True)).result.trace is not None
    with pytest.raises(SearchUnavailableError):
        store.context("kettle", mode="vector")
    with pytest.raises(ConfigurationError, match="params is a SearchParams"):
        store.context("kettle", params={"k": 3})


def test_a_preset_says_how_to_rank_and_whether_to_touch(tmp_path):
    path = tmp_path / "memory.db"
    with twofold.open(path, settings=SETTINGS) as store:
        for id_, text in (("hit", "a red kettle"), ("near", "a pear")):
            store.add(text, id=id_)
        store.link("hit", "near")
        assert ids(store.context("kettle", preset="muninn").memories) == ["hit", "near"]
        assert ids(store.context("kettle", preset="ariadne").memories) == ["hit"]
        with pytest.raises(ConfigurationError, match="no preset 'mine'"):
            store.context("kettle", preset="mine")
        with pytest.raises(ConfigurationError, match="give one"):
            store.context("kettle", preset="muninn", params=SearchParams())
    with twofold.open(path) as store:
        assert (store.get("hit").access_count, store.get("near").access_count) == (2, 1)
        assert (store.get("hit").strength, store.get("near").strength) == (1.5, 1.0)  # ariadne's growth


def test_a_ready_vector_is_used():
    with twofold.open(":memory:", embedder=twofold.GivenVectors("v", 2)) as store:
        store.add("one", id="east", vector=[1.0, 0.0])
        store.add("two", id="north", vector=[0.0, 1.0])
        assert ids(store.context("?", vector=[0.1, 1.0], k=1, mode="vector").memories) == ["north"]


def test_linked_records_follow_the_hits(store):
    for id_, text in (("hit", "a red kettle"), ("near", "a pear"), ("far", "a fig")):
        store.add(text, id=id_)
    store.link("hit", "near", weight=0.5)
    store.link("near", "far")
    bundle = store.context("kettle", params=SearchParams(expand=3, hops=2))
    assert ids(bundle.memories) == ["hit", "near", "far"]
    assert ids(store.context("kettle").memories) == ["hit"]
    tight = store.context("kettle", params=SearchParams(expand=3, hops=2), budget_tokens=bundle.tokens - 1)
    assert (ids(tight.memories), ids(tight.left_out.memories)) == (["hit", "near"], ["far"])


def test_only_what_the_model_is_shown_counts_as_used(tmp_path):
    path = tmp_path / "memory.db"
    params = SearchParams(touch=True, expand=1)
    with twofold.open(path, settings=SETTINGS) as store:
        for id_, text in (("first", "red kettle"), ("second", "kettle"), ("linked", "a pear"), ("other", "a fig")):
            store.add(text, id=id_, access=ANN, namespace=("n",))
        store.link("first", "linked", access=ANN, namespace=("n",))
        whole = store.context("red kettle", access=ANN, params=params)
        assert ids(whole.memories) == ["first", "second", "linked"]
        store.context("red kettle", access=ANN, params=params, budget_tokens=whole.tokens - 1)
        store.context("red kettle", access=ANN)
    with twofold.open(path) as store:
        counts = {record.id: record.access_count for record in store.list(access=ANN)}
        assert counts == {"first": 2, "second": 2, "linked": 1, "other": 0}
        assert store.get("first", access=ANN, namespace=("n",)).last_accessed == NOW


def test_the_touch_of_the_stores_own_settings_is_obeyed(tmp_path):
    path = tmp_path / "memory.db"
    with twofold.open(path, settings=replace(SETTINGS, search=SearchParams(touch=True))) as store:
        store.add("kettle", id="a")
        store.context("kettle")
        store.context("kettle", params=SearchParams())
        with pytest.raises(BudgetTooSmallError):
            store.context("kettle", budget_tokens=1)
    with twofold.open(path) as store:
        assert store.get("a").access_count == 1


def test_the_conversation_is_told_in_the_users_zone(store):
    said = [
        Message("user", "hello", datetime(2026, 7, 1, 22, 30, tzinfo=UTC)),
        {"role": "assistant", "content": "hi", "at": "2026-07-01T22:31:00+00:00"},
        {"role": "user", "content": "no time"},
    ]
    text = store.context("x", messages=said, zone="Europe/Berlin").as_text()
    assert "[2026-07-02 00:30] user: hello\n[2026-07-02 00:31] assistant: hi\nuser: no time\n" in text
    assert "(Europe/Berlin)" in text
    assert [message.content for message in store.context("x", messages=said, last=1).messages] == ["no time"]


def test_the_last_ten_messages_are_taken(store):
    said = [Message("user", str(n)) for n in range(13)]
    bundle = store.context("x", messages=iter(said))
    assert (bundle.messages, bundle.left_out.earlier) == (tuple(said[3:]), 3)


def test_a_budget_is_kept_by_the_counter_that_is_given(store):
    store.add("one two three four five kettle")
    whole = store.context("kettle", template="Be brief.", count_tokens=lambda text: len(text.split()))
    assert whole.tokens == max(
        len(whole.as_text().split()), sum(len(each["content"].split()) + 4 for each in whole.as_messages()) + 3
    )
    assert store.context("kettle", template="Be brief.").tokens > whole.tokens
    less = store.context(
        "kettle", template="Be brief.", budget_tokens=whole.tokens - 1, count_tokens=lambda text: len(text.split())
    )
    assert len(less.left_out.memories) == 1
    with pytest.raises(BudgetTooSmallError, match="give at least 14, or a shorter template"):
        store.context("kettle", template="Be brief.", budget_tokens=13, count_tokens=lambda text: len(text.split()))


def test_what_the_search_lacked_is_passed_on():
    with twofold.open(":memory:", embedder=FailingEmbedder()) as store:
        store.add("kettle", id="a")
        bundle = store.context("kettle")
        assert ids(bundle.memories) == ["a"]
        assert [each.code for each in bundle.degradations] == ["embedder_unreachable"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"budget_tokens": 0}, "budget_tokens is a whole number of at least 1"),
        ({"budget_tokens": 1.5}, "budget_tokens is a whole number"),
        ({"last": -1}, "last is a whole number"),
        ({"k": -1}, "k is a whole number"),
        ({"zone": "Europe/Berlim"}, "there is no time zone"),
        ({"template": "{memory}"}, "no slot {memory}"),
        ({"template": 3}, "template is a ContextTemplate"),
        ({"messages": "hello"}, "messages is a list"),
        ({"messages": [("user", "hello")]}, r"messages\[0\]"),
        ({"messages": [{"role": "user", "content": "x", "at": datetime(2026, 1, 1)}]}, "has a zone"),  # noqa: DTZ001
        ({"count_tokens": 3}, "count_tokens is a function"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused(store, more, said):
    with pytest.raises(ConfigurationError, match=said):
        store.context("kettle", **more)


def test_the_question_is_text(store):
    with pytest.raises(ConfigurationError, match="asks for text"):
        store.context(None)
    assert store.context("").as_messages()[-1] == {"role": "user", "content": ""}


async def test_the_async_twin_gives_the_same():
    with twofold.open(":memory:", embedder=FakeEmbedder(), settings=SETTINGS) as store:
        store.add("a red kettle", access=ANN)
        arguments = {"access": ANN, "messages": [Message("user", "hi", NOW)], "zone": "Europe/Berlin"}
        one, *others = await asyncio.gather(*(store.acontext("kettle", **arguments) for _ in range(5)))
        assert one.as_text() == store.context("kettle", **arguments).as_text()
        assert all(other.as_text() == one.as_text() for other in others)


def test_a_file_that_cannot_be_written_gives_context_too(tmp_path):
    path = tmp_path / "memory.db"
    with twofold.open(path) as store:
        store.add("kettle")
    with twofold.open(path, settings=StoreSettings(read_only=True)) as store:
        bundle = store.context("kettle", params=SearchParams(touch=True), template=ContextTemplate("{memories}"))
        assert len(bundle.memories) == 1
