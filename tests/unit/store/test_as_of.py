"""What a call that takes ``as_of`` gives is what it would have given then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import twofold
from twofold import ConfigurationError, HybridStore, RecordNotFoundError, StoreSettings
from twofold.store import ListNamespaces
from twofold.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def store() -> Iterator[HybridStore]:
    """On the first day a kettle, on the second a teapot; on the third the kettle is archived. They are linked."""
    clock = FakeClock(START)
    with twofold.open(":memory:", settings=StoreSettings(clock=clock)) as store:
        store.add("kettle", id="kettle", kind="old", namespace=("a",))
        clock.advance(days=1)
        store.add("teapot of the kettle", id="teapot", kind="new", namespace=("b",))
        store.link("kettle", "teapot", namespace=("a",), target_namespace=("b",))
        clock.advance(days=1)
        store.archive("kettle", namespace=("a",))
        yield store


def test_listing_and_counting(store: HybridStore) -> None:
    asked: list[tuple[Callable[..., Any], dict[timedelta | None, Any]]] = [
        (lambda **at: list(store.distinct("kind", **at)), {None: ["new"], 0 * DAY: ["old"], DAY: ["new", "old"]}),
        (lambda **at: list(store.namespaces(**at)), {None: [("b",)], 0 * DAY: [("a",)], DAY: [("a",), ("b",)]}),
        (
            lambda **at: list(store.batch([ListNamespaces(**at)])[0]),
            {None: [("b",)], 0 * DAY: [("a",)], DAY: [("a",), ("b",)]},
        ),
        (store.count, {None: 1, 0 * DAY: 1, DAY: 2}),
    ]
    for call, expected in asked:
        for after, result in expected.items():
            assert call(**({} if after is None else {"as_of": START + after})) == result


def test_links_of_what_was_there(store: HybridStore) -> None:
    assert store.links("teapot", namespace=("b",)) == []
    assert store.neighbors("teapot", namespace=("b",)) == []
    (link,) = store.links("teapot", namespace=("b",), as_of=START + DAY)
    (near,) = store.neighbors("teapot", namespace=("b",), as_of=START + DAY)
    assert (link.source, near.record.id) == ("kettle", "kettle")
    for call in (store.links, store.neighbors):
        with pytest.raises(RecordNotFoundError):
            call("kettle", namespace=("a",))
        assert call("kettle", namespace=("a",), as_of=START + DAY)
        with pytest.raises(RecordNotFoundError):
            call("teapot", namespace=("b",), as_of=START)


def test_the_context_of_then(store: HybridStore) -> None:
    def told(**options: Any) -> set[str]:
        return {hit.id for hit in store.context("kettle", **options).memories}

    assert told() == {"teapot"}
    assert told(as_of=START) == {"kettle"}
    assert told(as_of=START + DAY) == {"kettle", "teapot"}
    assert told(as_of=START + DAY, phrasings=["of the"]) == {"kettle", "teapot"}


async def test_twins_take_it_too(store: HybridStore) -> None:
    assert list(await store.adistinct("kind", as_of=START)) == ["old"]
    assert list(await store.anamespaces(as_of=START)) == [("a",)]
    assert {hit.id for hit in (await store.acontext("kettle", as_of=START)).memories} == {"kettle"}


def test_an_instant_without_a_zone_is_refused(store: HybridStore) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is refused
    calls: list[Callable[..., Any]] = [
        lambda **at: store.distinct("kind", **at),
        store.namespaces,
        lambda **at: store.links("teapot", namespace=("b",), **at),
        lambda **at: store.neighbors("teapot", namespace=("b",), **at),
        lambda **at: store.context("kettle", **at),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="as_of"):
            call(as_of=naive)
    with pytest.raises(ConfigurationError, match="give it or as_of"):
        store.links("teapot", namespace=("b",), include_archived=True, as_of=START)
