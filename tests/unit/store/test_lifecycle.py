"""Fading, running out, and counting what there is."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest

import twofold
from twofold import Access, F, Owner, SearchParams, StoreSettings
from twofold.errors import ConfigurationError, InvalidRecordError
from twofold.testing import FakeClock, FakeEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
U1, U2 = Access(user="u1"), Access(user="u2")


@pytest.fixture
def clock():
    return FakeClock(START)


@pytest.fixture
def store(clock):
    with twofold.open(":memory:", embedder=FakeEmbedder(16), settings=StoreSettings(clock=clock)) as store:
        yield store


# -- prune --------------------------------------------------------------------------------------------------------


def test_prune_lists_what_has_faded_and_changes_nothing_until_it_is_told_to(store, clock):
    store.add("weak", id="weak", importance=0.5)
    store.add("important", id="important", importance=1.0)
    store.add("strong", id="strong", importance=0.5, strength=3.375)
    clock.advance(days=1)
    shares = {"weak": math.exp(-1 / 0.5), "important": math.exp(-1.0), "strong": math.exp(-1 / (0.5 * 3.375))}
    listed = store.prune(0.5)
    assert [each.id for each in listed.faded] == ["weak", "important"]
    assert [each.retention for each in listed.faded] == pytest.approx([shares["weak"], shares["important"]])
    assert (listed.archived, store.count()) == (0, 3)

    done = store.prune(0.5, dry_run=False)
    assert (done.faded, done.archived) == (listed.faded, 2)
    assert {record.id for record in store.list()} == {"strong"}
    assert store.count(include_archived=True) == 3, "nothing is deleted"
    assert store.get("weak", include_archived=True).archived_at == clock()
    assert store.prune(0.5, dry_run=False) == twofold.PruneReport((), 0)
    store.restore(["weak"])
    assert store.search("weak").ids[0] == "weak"


def test_the_bound_itself_has_not_faded(store, clock):
    store.add("x", id="x", importance=1.0)
    clock.advance(days=1)
    assert store.prune(math.exp(-1.0)).faded == ()
    assert [each.id for each in store.prune(math.nextafter(math.exp(-1.0), 1)).faded] == ["x"]


def test_what_is_of_use_does_not_fade_even_if_the_touch_is_not_written_yet(store, clock):
    store.add("kettle", id="a")
    store.add("pager", id="b")
    clock.advance(days=3)
    assert store.search("kettle", k=1, params=SearchParams(touch=True)).ids == ("a",)
    assert [each.id for each in store.prune(0.9).faded] == ["b"]


def test_prune_looks_at_what_the_filter_fits_and_takes_a_half_life(store, clock):
    store.add("x", id="en", metadata={"lang": "en"})
    store.add("y", id="ru", metadata={"lang": "ru"})
    clock.advance(days=1)
    assert [each.id for each in store.prune(1.0, where=F("lang") == "ru").faded] == ["ru"]
    assert store.prune(0.9, half_life=365 * 86400).faded == ()
    settings = StoreSettings(clock=clock, search=SearchParams(retention_half_life=365 * 86400))
    with twofold.open(":memory:", settings=settings) as patient:
        patient.add("x")
        clock.advance(days=1)
        assert patient.prune(0.9).faded == ()
        assert len(patient.prune(0.9, half_life=86400).faded) == 1


def test_prune_reaches_only_what_the_access_may_write(store, clock):
    store.add("mine", id="a", access=U1)
    store.add("theirs", id="a", access=U2)
    store.add("shared", id="a")
    clock.advance(days=10)
    assert [each.owner for each in store.prune(1.0, access=U1).faded] == [Owner.user("u1")]
    assert store.prune(1.0, access=U1, dry_run=False).archived == 1
    assert store.get("a", access=U2).text == "theirs"
    assert store.get("a").text == "shared"
    everything = store.prune(1.0, access=Access.everything())
    assert {each.owner for each in everything.faded} == {Owner.user("u2"), Owner.everybody()}


@pytest.mark.parametrize("value", [0, -0.1, 1.01, math.nan, True, "0.5", None])
def test_a_bound_that_is_none_is_refused(store, value):
    with pytest.raises(ConfigurationError, match="min_retention"):
        store.prune(value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "day"])
def test_a_half_life_that_is_none_is_refused(store, value):
    with pytest.raises(ConfigurationError, match="half_life"):
        store.prune(0.5, half_life=value)
    with pytest.raises(ConfigurationError, match="half_life"):
        store.stats(half_life=value)


# -- what runs out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [timedelta(days=2), 2 * 86400, 2 * 86400.0])
def test_a_ttl_is_counted_from_when_it_is_stored(store, clock, ttl):
    store.add("one", id="one", ttl=ttl)
    store.add_many([{"text": "two", "id": "two", "ttl": ttl}, twofold.NewRecord(text="three", id="three", ttl=ttl)])
    store.batch([twofold.store.Add({"text": "four", "id": "four", "ttl": ttl})])
    store.add("five", id="five")
    store.update("five", ttl=ttl)
    assert {record.expires_at for record in store.list()} == {START + 2 * DAY}
    clock.advance(days=1)
    store.add("one", id="one", ttl=ttl)
    clock.advance(days=1)
    assert {record.id for record in store.list()} == {"one"}, "to add it again begins anew"


@pytest.mark.parametrize("ttl", [0, -1, timedelta(0), True, "1", math.nan, math.inf])
def test_a_ttl_that_is_none_is_refused(store, ttl):
    with pytest.raises(InvalidRecordError, match="ttl"):
        store.add("x", ttl=ttl)
    assert store.count() == 0


def test_a_ttl_beyond_time_and_one_beside_an_end_are_refused(store):
    for wrong in ({"ttl": timedelta.max}, {"ttl": 1, "expires_at": START + DAY}):
        with pytest.raises(InvalidRecordError, match="ttl"):
            store.add("x", **wrong)
    store.add("x", id="x")
    with pytest.raises(InvalidRecordError, match="ttl"):
        store.update("x", ttl=1, expires_at=START)


def test_sweep_deletes_what_has_expired_and_is_hidden_already(store, clock):
    store.add("short", id="short", ttl=DAY)
    store.add("long", id="long", ttl=2 * DAY)
    store.add("for ever", id="ever")
    assert store.sweep() == 0
    clock.advance(days=1)
    assert {record.id for record in store.list()} == {"long", "ever"}
    assert store.get("short", include_archived=True) is not None
    assert store.sweep() == 1
    assert store.get("short", include_archived=True) is None
    assert store.check().ok
    assert store.sweep() == 0


def test_sweep_may_archive_instead(store, clock):
    store.add("short", id="short", ttl=DAY)
    clock.advance(days=1)
    assert (store.sweep(archive=True), store.sweep(archive=True)) == (1, 0)
    assert store.get("short", include_archived=True).archived_at == clock()
    assert store.sweep() == 1


def test_sweep_reaches_only_what_the_access_may_write_and_the_filter_fits(store, clock):
    for access in (U1, U2, Access()):
        store.add("x", id="x", ttl=DAY, access=access, metadata={"user": access.user})
    clock.advance(days=1)
    assert store.sweep(access=U1, where=F("user") == "u2") == 0
    assert store.sweep(access=U1) == 1
    assert store.stats(access=U2).expired == 2
    assert store.sweep(access=Access.everything()) == 2


# -- counts -------------------------------------------------------------------------------------------------------


def test_stats_count_what_the_access_sees(store, clock):
    store.add("aaaa", id="a", access=U1, kind="insight")
    clock.advance(days=1)
    store.add("b", id="b", access=U1)
    store.add("c", id="c")
    store.add("d", id="d", access=U2, ttl=DAY)
    store.link("a", "b", access=U1)
    store.link("a", "c", access=U1)
    store.link("d", "c", access=U2)
    mine = store.stats(access=U1)
    assert (mine.records, mine.vectors, mine.links) == (3, 3, 2)
    assert mine.by_kind == {"insight": 1, "semantic": 2}
    assert mine.by_scope == {"global": 1, "personal": 2}
    assert mine.by_owner == {Owner.everybody(): 1, Owner.user("u1"): 2}
    assert (mine.oldest, mine.newest) == (START, START + DAY)
    assert mine.text_bytes == len('{"text":"aaaa"}') + 2 * len('{"text":"b"}')
    assert mine.vector_bytes == 3 * 16 * 4
    # Of importance 0.5, a day old: exp(-2) = 0.135; the others are new.
    assert mine.retention == (0, 1, 0, 0, 0, 0, 0, 0, 0, 2)
    assert store.stats(access=U1, half_life=100 * 86400).retention == (0, 0, 0, 0, 0, 0, 0, 0, 0, 3)
    assert (mine.archived, mine.superseded, mine.expired, mine.out_of_date, mine.not_yet_valid) == (0,) * 5
    clock.advance(days=1)
    assert store.stats(access=U1) == twofold.Stats(
        **{
            **{name: getattr(mine, name) for name in twofold.Stats.__dataclass_fields__},
            "retention": (1, 2, 0, 0, 0, 0, 0, 0, 0, 0),
        }
    ), "what others have, expired or not, shows in no number"
    assert store.stats(access=U2).expired == 1
    assert store.stats(access=U1, where=F("x") == 1).records == 0
    assert store.stats(access=U1, where=F("x") == 1).oldest is None


def test_stats_say_what_hides_what_is_not_shown(store, clock):
    for id_ in ("living", "archived", "old"):
        store.add(id_, id=id_)
    store.add("expired", id="expired", ttl=DAY)
    store.add("over", id="over", valid_to=START + DAY)
    store.add("to come", id="to come", valid_from=START + 9 * DAY)
    store.archive("archived")
    store.supersede("old", "living")
    clock.advance(days=1)
    found = store.stats()
    assert (found.records, found.archived, found.superseded) == (1, 1, 1)
    assert (found.expired, found.out_of_date, found.not_yet_valid) == (1, 1, 1)


def test_stats_of_what_waits_for_a_vector(clock):
    with twofold.open(":memory:") as plain:
        plain.add("x")
        assert (plain.stats().pending, plain.stats().vectors) == (0, 0)


def test_the_async_twins(store, clock):
    async def all_of_them():
        return await store.astats(), await store.aprune(1.0), await store.asweep()

    store.add("x", ttl=DAY)
    clock.advance(days=1)
    stats, report, swept = asyncio.run(all_of_them())
    assert (stats.expired, report, swept) == (1, twofold.PruneReport((), 0), 1)
