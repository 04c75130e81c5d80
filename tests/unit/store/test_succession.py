"""One record in the place of others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import twofold
from twofold import Access, Owner, StoreSettings
from twofold.errors import AccessError, ConfigurationError, InvalidRecordError, RecordNotFoundError
from twofold.testing import FakeClock, FakeEmbedder, FlakyEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
U1, U2 = Access(user="u1"), Access(user="u2")


@pytest.fixture
def clock():
    return FakeClock(START)


@pytest.fixture
def embedder():
    return FlakyEmbedder(FakeEmbedder(16))


@pytest.fixture
def store(clock, embedder):
    with twofold.open(":memory:", embedder=embedder, settings=StoreSettings(clock=clock)) as store:
        yield store


# -- supersede ----------------------------------------------------------------------------------------------------


def test_the_old_one_is_hidden_and_still_shown_as_of_before(store, clock):
    store.add("Anna lives in Oslo", id="oslo")
    clock.advance(days=1)
    store.add("Anna lives in Bergen", id="bergen")
    clock.advance(days=1)
    assert store.supersede("oslo", "bergen") is True
    old = store.get("oslo", include_archived=True)
    assert (old.superseded_by, old.valid_to, old.revision) == ("bergen", START + 2 * DAY, 2)
    for mode in twofold.Mode:
        assert store.search("Anna lives", mode=mode).ids == ("bergen",)
        assert store.search("Anna lives", mode=mode, as_of=START).ids == ("oslo",)
        both = {"oslo", "bergen"}
        assert set(store.search("Anna lives", mode=mode, as_of=START + DAY).ids) == both
        assert store.search("Anna lives", mode=mode, as_of=START + 2 * DAY).ids == ("bergen",)
    assert store.get("oslo") is None
    assert store.get("oslo", as_of=START + DAY) == old
    (link,) = store.links("bergen", include_archived=True)
    assert (link.source, link.target, link.kind) == ("bergen", "oslo", "supersedes")
    assert store.links("bergen") == []
    assert store.check().ok


def test_it_is_not_embedded_again(store, embedder):
    store.add("old", id="old")
    store.add("new", id="new")
    before = len(embedder.texts)
    store.supersede("old", "new")
    assert len(embedder.texts) == before
    assert store.info().pending == 0


def test_saying_it_twice_changes_nothing(store):
    for id_ in ("old", "new", "other"):
        store.add(id_, id=id_)
    assert (store.supersede("old", "new"), store.supersede("old", "new")) == (True, False)
    assert store.get("old", include_archived=True).revision == 2
    with pytest.raises(ConfigurationError, match="superseded already, by 'new'"):
        store.supersede("old", "other")


def test_an_instant_in_the_past_leaves_no_gap(store, clock):
    store.add("Oslo", id="oslo")
    clock.advance(days=10)
    store.add("Bergen", id="bergen")
    store.supersede("oslo", "bergen", at=START + 4 * DAY)
    assert store.get("bergen").valid_from == START + 4 * DAY
    for days, expected in ((0, ["oslo"]), (3, ["oslo"]), (4, ["bergen"]), (10, ["bergen"])):
        assert [record.id for record in store.list(as_of=START + days * DAY)] == expected


def test_an_end_that_was_set_earlier_stays(store, clock):
    store.add("old", id="old", valid_to=START + DAY)
    store.add("new", id="new")
    clock.advance(days=5)
    store.supersede("old", "new")
    assert store.get("old", include_archived=True).valid_to == START + DAY


@pytest.mark.parametrize("at", [START + DAY, START.replace(tzinfo=None), "2026-01-01"])
def test_an_instant_to_come_or_without_a_zone_is_refused(store, at):
    store.add("old", id="old")
    store.add("new", id="new")
    with pytest.raises(ConfigurationError, match="at "):
        store.supersede("old", "new", at=at)
    assert store.get("old") is not None


def test_chains_go_on_and_circles_are_refused(store):
    for id_ in "abc":
        store.add(f"record {id_}", id=id_)
    store.supersede("a", "b")
    store.supersede("b", "c")
    assert store.search("record").ids == ("c",)
    for old, new in (("c", "a"), ("c", "b"), ("c", "c")):
        with pytest.raises(ConfigurationError):
            store.supersede(old, new)
    assert store.get("c") is not None


def test_adding_the_old_one_again_brings_it_back(store):
    store.add("old", id="old")
    store.add("new", id="new")
    store.supersede("old", "new")
    store.add("old", id="old")
    assert (store.get("old").superseded_by, store.get("old").valid_to) == (None, None)


def test_whose_they_are_counts(store):
    store.add("theirs", id="a", access=U2)
    store.add("theirs too", id="b", access=U2)
    store.add("shared", id="shared")
    store.add("mine", id="mine", access=U1)
    for old, new in (("a", "mine"), ("mine", "a"), ("a", "b"), ("mine", "shared"), ("none", "mine")):
        with pytest.raises(RecordNotFoundError):
            store.supersede(old, new, access=U1)
    with pytest.raises(AccessError):
        store.supersede("shared", "mine", access=U1)
    with pytest.raises(RecordNotFoundError):
        store.supersede("a", "b", access=U1, owner=Owner.user("u2"))
    assert store.count(access=Access.everything()) == 4
    assert store.supersede("a", "b", access=Access.everything(), owner=Owner.user("u2"))


# -- consolidate --------------------------------------------------------------------------------------------------


def test_several_become_one(store, clock, embedder):
    store.add("red apple", id="a", tags=("fruit", "red"), importance=0.2, strength=3.0, metadata={"x": 1, "y": True})
    store.add("green apple", id="b", tags=("fruit", "green"), importance=0.9, metadata={"x": 1, "y": 1})
    clock.advance(days=1)
    added = store.consolidate(["a", "b"], "apples are red or green")
    new = store.get(added.id)
    assert new.text == "apples are red or green"
    assert (new.tags, new.importance, new.strength) == (("fruit", "red", "green"), 0.9, 3.0)
    assert new.metadata == {"x": 1}, "what they have in common; True is not 1"
    assert (new.created_at, new.revision) == (START + DAY, 1)
    assert store.search("apple").ids == (added.id,)
    assert {record.id for record in store.list(include_archived=True)} == {"a", "b", added.id}
    for id_ in "ab":
        assert store.get(id_, include_archived=True).archived_at == START + DAY
    links = store.links(added.id, include_archived=True)
    assert {(link.source, link.target, link.kind) for link in links} == {
        (added.id, "a", "consolidated"),
        (added.id, "b", "consolidated"),
    }
    assert set(store.search("apple", as_of=START).ids) == {"a", "b"}
    assert embedder.texts.count("apples are red or green") == 1
    assert store.check().ok
    store.restore(["a", "b"])
    assert {record.id for record in store.list()} == {"a", "b", added.id}


def test_what_is_given_comes_before_what_they_have_in_common(store):
    for id_ in "ab":
        store.add(id_, id=id_, kind="episodic", project="p", source="s", event_at=START, tags=("t",), importance=0.1)
    one = store.get(store.consolidate(["a", "b"], "both").id)
    assert (one.kind, one.project, one.source, one.event_at, one.tags) == ("episodic", "p", "s", START, ("t",))
    store.restore(["a", "b"])
    added = store.consolidate(
        ["a", "b"],
        fields={"text": "both"},
        id="new",
        kind="insight",
        project="q",
        source="r",
        tags=(),
        metadata={"n": 1},
        importance=0.0,
        strength=9.0,
        event_at=START + DAY,
    )
    new = store.get("new")
    assert added.id == "new"
    assert (new.kind, new.project, new.source, new.event_at) == ("insight", "q", "r", START + DAY)
    assert (new.tags, new.metadata, new.importance, new.strength) == ((), {"n": 1}, 0.0, 9.0)


def test_kinds_that_differ_make_a_semantic_one(store):
    store.add("a", id="a", kind="episodic", project="p")
    store.add("b", id="b", kind="insight")
    new = store.get(store.consolidate(["a", "b"], "both").id)
    assert (new.kind, new.project) == ("semantic", None)


def test_only_of_one_owner_and_only_what_is_seen(store):
    store.add("mine", id="mine", access=U1)
    store.add("mine too", id="mine too", access=U1)
    store.add("in the room", id="room", access=Access(rooms=("r",)))
    store.add("theirs", id="theirs", access=U2)
    store.add("shared", id="shared")
    store.add("shared too", id="shared too")
    me = Access(user="u1", rooms=("r",))
    with pytest.raises(ConfigurationError, match="of one owner"):
        store.consolidate(["mine", "room"], "x", access=me)
    for ids in (["mine", "theirs"], ["theirs", "mine"], ["mine", "none"]):
        with pytest.raises(RecordNotFoundError):
            store.consolidate(ids, "x", access=me)
    with pytest.raises(AccessError):
        store.consolidate(["shared", "shared too"], "x", access=me)
    assert store.count(access=Access.everything()) == 6
    added = store.consolidate(["mine", "mine too"], "x", access=me)
    assert store.get(added.id, access=U1).belongs_to == Owner.user("u1")
    assert store.get(added.id, access=U2) is None


@pytest.mark.parametrize("hidden", ["archived", "superseded", "expired"])
def test_what_a_search_does_not_show_is_not_there(store, clock, hidden):
    store.add("a", id="a", ttl=DAY if hidden == "expired" else None)
    store.add("b", id="b")
    if hidden == "archived":
        store.archive("a")
    if hidden == "superseded":
        store.supersede("a", "b")
    clock.advance(days=1)
    with pytest.raises(RecordNotFoundError):
        store.consolidate(["a", "b"], "x")


def test_it_takes_two_and_an_id_of_its_own(store):
    store.add("a", id="a")
    store.add("b", id="b")
    for ids in ([], ["a"], ["a", "a"]):
        with pytest.raises(ConfigurationError, match="two or more"):
            store.consolidate(ids, "x")
    with pytest.raises(ConfigurationError, match="a list"):
        store.consolidate("ab", "x")
    with pytest.raises(ConfigurationError, match="id of its own"):
        store.consolidate(["a", "b"], "x", id="a")
    for wrong in ({}, {"text": "x", "fields": {"text": "y"}}, {"text": "x", "importance": 2.0}):
        with pytest.raises(InvalidRecordError):
            store.consolidate(["a", "b"], **wrong)
    assert {record.id for record in store.list()} == {"a", "b"}


def test_while_the_embedder_is_down_it_waits_for_its_vector(store, embedder):
    store.add("a", id="a")
    store.add("b", id="b")
    embedder.down = True
    assert store.consolidate(["a", "b"], "both").pending


def test_one_that_is_changed_meanwhile_is_looked_at_again(store, embedder, monkeypatch):
    store.add("a", id="a")
    store.add("b", id="b", tags=("old",))
    embed, calls = embedder.embed, []

    def changing(texts, kind):
        if "both" in texts and not calls:
            calls.append(1)
            store.update("b", tags=("new",))
        return embed(texts, kind)

    monkeypatch.setattr(embedder, "embed", changing)
    assert store.get(store.consolidate(["a", "b"], "both").id).tags == ("new",)
    assert store.count() == 1


def test_the_async_twins(store):
    async def both():
        return await store.asupersede("a", "b"), await store.aconsolidate(["b", "c"], "x")

    for id_ in "abc":
        store.add(id_, id=id_)
    new, added = asyncio.run(both())
    assert (new, [record.id for record in store.list()]) == (True, [added.id])


# -- update, duplicates, near-duplicates --------------------------------------------------------------------------


def test_an_update_embeds_only_a_text_that_changes(store, embedder):
    store.add("kettle", id="a")
    asked = len(embedder.texts)
    store.update("a", importance=0.9, tags=("x",), metadata={"n": 1}, text="kettle", ttl=DAY)
    assert len(embedder.texts) == asked
    store.update("a", text="pager")
    assert embedder.texts[asked:] == ["pager"]
    assert store.search("pager", mode="vector")[0].score == pytest.approx(1.0, abs=1e-6)


def test_only_equal_texts_are_duplicates_and_near_ones_are_named():
    # buildingjoshbetter/TrueMemory#687: "October 15th" and "October 16th" have a cosine of 0.991.
    near = [0.991, (1 - 0.991**2) ** 0.5]
    settings = StoreSettings(near_duplicates=0.95)
    with twofold.open(":memory:", embedder=twofold.GivenVectors("given", 2), settings=settings) as store:
        first = store.add("review is on October 15th", id="m1", vector=[1, 0], duplicates="skip")
        second = store.add("review is on October 16th", id="m2", vector=near, duplicates="skip")
        again = store.add("review is on October 15th", vector=[1, 0], duplicates="skip")
        assert (first.outcome, first.near_duplicates) == ("added", ())
        assert second.outcome == "added"
        ((id_, similarity, owner),) = [(n.id, n.similarity, n.owner) for n in second.near_duplicates]
        assert (id_, owner) == ("m1", Owner.everybody())
        assert similarity == pytest.approx(0.991, abs=1e-6)
        assert (again.outcome, again.id) == ("skipped", "m1")
        assert [n.id for n in again.near_duplicates] == ["m2"], "itself is not near itself"
        assert store.count() == 2
        changed = store.add("review is on October 15th!", id="m1", vector=[1, 0])
        assert (changed.outcome, [n.id for n in changed.near_duplicates]) == ("updated", ["m2"])
        assert store.add("other", vector=[0, -1]).near_duplicates == ()
        assert store.add("review", vector=[1, 0], namespace=("n",)).near_duplicates == ()


def test_what_is_near_is_named_only_to_who_sees_it():
    settings = StoreSettings(near_duplicates=0.9)
    with twofold.open(":memory:", embedder=FakeEmbedder(16), settings=settings) as store:
        store.add("the kettle is hot", id="secret", access=U2)
        store.add("the kettle is hot", id="archived", access=U1)
        store.archive("archived", access=U1)
        assert store.add("the kettle is hot", access=U1).near_duplicates == ()
        store.add("the kettle is hot", id="shared")
        found = store.add("the kettle is hot", access=Access(user="u3")).near_duplicates
        assert [(each.id, each.owner) for each in found] == [("shared", Owner.everybody())]


def test_near_duplicates_are_not_looked_for_by_default_and_never_without_a_vector():
    with twofold.open(":memory:", embedder=FakeEmbedder(16)) as store:
        store.add("kettle")
        assert store.add("kettle").near_duplicates == ()
    settings = StoreSettings(near_duplicates=0.5)
    with twofold.open(":memory:", settings=settings) as store:
        store.add("long technical text of many common terms")
        # AVIDS2/memorix#94: raw keyword scores pass every threshold.
        assert store.add("other technical text of many common terms").near_duplicates == ()
    for wrong in (0, 1.1, True, "0.9"):
        with pytest.raises(ConfigurationError):
            StoreSettings(near_duplicates=wrong)
