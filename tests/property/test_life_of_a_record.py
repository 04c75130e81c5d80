"""What is shown when: every read path and every index against one plain predicate written here anew."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, SearchParams, StoreSettings
from twofold.errors import ConfigurationError
from twofold.store import Get, ListRecords, Search
from twofold.testing import FakeClock, FakeEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
MOST = 8
"""The days that things happen on."""
U1 = Access(user="u1")
ARCHIVED, SUPERSEDED = "archived", "superseded"

days = st.integers(0, MOST)
maybe = st.none() | days


@dataclass(frozen=True)
class Life:
    """A record and what happens to it, in days."""

    made: int
    mine: bool
    valid_from: int | None
    valid_to: int | None
    expires: int | None
    fate: str | None
    """Archived or superseded, on the day after all have been made."""
    restored: bool

    def seen_now(self, day: int) -> bool:
        """By a search on a day after all that."""
        return (
            self.mine
            and (self.fate is None or (self.fate == ARCHIVED and self.restored))
            and (self.valid_from is None or self.valid_from <= day)
            and (self.valid_to is None or day < self.valid_to)
            and (self.expires is None or day < self.expires)
        )

    def seen_as_of(self, day: int) -> bool:
        """By one that looks back to a day."""
        begins = self.made if self.valid_from is None else self.valid_from
        ends = [end for end in (self.valid_to, self.expires) if end is not None]
        if self.fate == SUPERSEDED or (self.fate == ARCHIVED and not self.restored):
            ends.append(MOST + 1)
        return self.mine and begins <= day and all(day < end for end in ends)


lives = st.lists(
    st.builds(
        Life,
        made=days,
        mine=st.integers(0, 3).map(bool),
        valid_from=maybe,
        valid_to=maybe,
        expires=maybe,
        fate=st.sampled_from((None, None, ARCHIVED, SUPERSEDED)),
        restored=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def maybe_day(number: int | None) -> datetime | None:
    return None if number is None else day(number)


def live(store: twofold.HybridStore, clock: FakeClock, records: list[Life]) -> None:
    """Let it all happen; the clock then stands on the day after the last."""
    for number, life in sorted(enumerate(records), key=lambda each: each[1].made):
        clock.advance(seconds=(day(life.made) - clock()).total_seconds())
        store.add(
            f"kettle n{number}",
            id=str(number),
            access=U1 if life.mine else Access(user="u2"),
            valid_from=maybe_day(life.valid_from),
            valid_to=maybe_day(life.valid_to),
            expires_at=maybe_day(life.expires),
        )
    clock.advance(seconds=(day(MOST + 1) - clock()).total_seconds())
    for access, mine in ((U1, True), (Access(user="u2"), False)):
        store.add("hub without that word", id="hub", access=access, valid_from=START - timedelta(days=99))
        for number, life in enumerate(records):
            if life.mine is not mine:
                continue
            store.link("hub", str(number), access=access)
            if life.fate == ARCHIVED:
                store.archive(str(number), access=access)
                if life.restored:
                    store.restore(str(number), access=access)
            elif life.fate == SUPERSEDED:
                store.supersede(str(number), "hub", access=access)


def check_now(store: twofold.HybridStore, records: list[Life], today: int) -> None:
    expected = {str(number) for number, life in enumerate(records) if life.seen_now(today)}
    ids = [str(number) for number in range(len(records))]
    for mode in ("keyword", "hybrid", "vector"):
        found = store.search("kettle", access=U1, mode=mode, k=50)
        assert set(found.ids) - {"hub"} == expected
        assert len(found.ids) == len(set(found.ids))
    assert {record.id for record in store.list(access=U1)} - {"hub"} == expected
    assert store.count(access=U1) == store.stats(access=U1).records == len(expected) + 1
    assert {record.id for record in store.get_many(ids, access=U1)} == expected
    assert {each.record.id for each in store.neighbors("hub", access=U1, limit=50)} == expected
    assert {link.target for link in store.links("hub", access=U1)} == expected
    linked = store.search("hub", access=U1, mode="keyword", params=SearchParams(expand=50)).linked
    assert {hit.id for hit in linked} == expected


def check_as_of(store: twofold.HybridStore, records: list[Life], then: int) -> None:
    expected = {str(number) for number, life in enumerate(records) if life.seen_as_of(then)}
    ids = [str(number) for number in range(len(records))]
    at = day(then)
    for mode in ("keyword", "hybrid", "vector"):
        assert set(store.search("kettle", access=U1, mode=mode, k=50, as_of=at).ids) - {"hub"} == expected
    linked = store.search("hub", access=U1, mode="keyword", params=SearchParams(expand=50), as_of=at).linked
    assert {hit.id for hit in linked} == expected
    assert {record.id for record in store.list(access=U1, as_of=at)} - {"hub"} == expected
    assert store.count(access=U1, as_of=at) == len(expected) + 1
    assert {record.id for record in store.get_many(ids, access=U1, as_of=at)} == expected
    for id_ in ids:
        assert (store.get(id_, access=U1, as_of=at) is not None) == (id_ in expected)
    found, listed, *got = store.batch(
        [Search("kettle", k=50, as_of=at), ListRecords(as_of=at), *(Get(id_, as_of=at) for id_ in ids)], access=U1
    )
    assert set(found.ids) - {"hub"} == {record.id for record in listed} - {"hub"} == expected
    assert {record.id for record in got if record is not None} == expected


def needs(name: str) -> Any:
    module = {"exact": "numpy", "auto": "numpy", "sqlite-vec": "sqlite_vec"}.get(name, "faiss")
    there = importlib.util.find_spec(module) is not None
    return pytest.param(name, marks=pytest.mark.skipif(not there, reason=f"{module} is not installed"))


@pytest.mark.parametrize("index", [needs(name) for name in twofold.config.INDEXES])
def test_what_is_shown_when(index: Any) -> None:
    @settings(max_examples=12, deadline=None)
    @given(records=lives, looks=st.lists(st.integers(-1, MOST + 3), min_size=1, max_size=4))
    def check(records: list[Life], looks: list[int]) -> None:
        clock = FakeClock(START)
        chosen = StoreSettings(index=index, clock=clock)
        with twofold.open(":memory:", embedder=FakeEmbedder(16), settings=chosen) as store:
            live(store, clock, records)
            check_now(store, records, MOST + 1)
            for then in looks:
                check_as_of(store, records, then)
                check_now(store, records, MOST + 1)
            for life, record in ((life, store.get(str(n), access=U1, include_archived=True))
                                 for n, life in enumerate(records)):  # fmt: skip
                assert (record is not None) == life.mine
                if record is not None:
                    for then in looks:
                        assert record.was_living(day(then)) == life.seen_as_of(then)
            expired = [life for life in records if life.expires is not None]
            assert store.stats(access=U1).expired == sum(life.mine for life in expired)
            assert store.sweep(access=U1) == sum(life.mine for life in expired)
            check_now(store, records, MOST + 1)
            assert store.stats(access=Access.everything()).expired == sum(not life.mine for life in expired)
            assert store.check().ok

    check()


def test_looking_back_touches_now_and_takes_no_archived_ones() -> None:
    clock = FakeClock(START)
    with twofold.open(":memory:", settings=StoreSettings(clock=clock)) as store:
        store.add("kettle", id="a")
        clock.advance(days=9)
        assert store.search("kettle", as_of=START, params=SearchParams(touch=True)).ids == ("a",)
        store.add("other")
        assert store.get("a").last_accessed == clock()  # type: ignore[union-attr]
        with pytest.raises(ConfigurationError, match="not both"):
            store.search("kettle", as_of=START, params=SearchParams(include_archived=True))
        with pytest.raises(ConfigurationError, match="not both"):
            store.list(as_of=START, include_archived=True)
        for wrong in (START.replace(tzinfo=None), "2026-01-01", 5):
            for call in (store.list, store.count, lambda **given: store.get("a", **given)):
                with pytest.raises(ConfigurationError, match="as_of"):
                    call(as_of=wrong)
            with pytest.raises(ConfigurationError, match="as_of"):
                store.search("kettle", as_of=wrong)  # type: ignore[arg-type]
