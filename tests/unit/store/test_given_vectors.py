"""Vectors that the caller brings for records without text, such as images."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import twofold
from twofold import DegradationCode, GivenVectors, HybridStore, InvalidRecordError, Outcome, StoreSettings


@pytest.fixture
def store() -> Iterator[HybridStore]:
    with twofold.open(":memory:", embedder=GivenVectors("clip", 2)) as store:
        store.add(fields={}, id="image", tags=("photo",), vector=[0, 1])
        store.add("   ", id="blank", vector=[1, 1])
        store.add("a text", id="text", vector=[1, 0])
        yield store


def found(store: HybridStore, *numbers: float) -> tuple[str, ...]:
    return store.search("", vector=list(numbers), mode="vector").ids


def test_a_record_without_text_is_found_by_its_vector(store: HybridStore) -> None:
    assert found(store, 0, 1) == ("image", "blank", "text")
    assert store.search("photo", vector=[0, 1]).ids[0] == "image"
    assert store.info().pending == 0
    assert store.check().ok


def test_it_follows_every_change(store: HybridStore) -> None:
    assert store.add(fields={}, id="image", tags=("photo",), vector=[0, 1]).outcome is Outcome.UNCHANGED
    store.update("image", metadata={"width": 3})
    assert found(store, 0, 1)[0] == "image"
    store.update("image", vector=[2, 0])
    assert found(store, 0, 1) == ("blank", "text", "image") or found(store, 0, 1) == ("blank", "image", "text")
    store.archive("image")
    assert found(store, 0, 1) == ("blank", "text")
    store.restore("image")
    store.delete("image")
    assert found(store, 0, 1) == ("blank", "text")
    assert store.check().ok


def test_text_that_is_given_later_waits_for_its_vector(store: HybridStore) -> None:
    assert store.update("image", text="now there is text").pending
    result = store.search("text", vector=[0, 1])
    assert result.has(DegradationCode.VECTORS_PENDING)
    assert found(store, 0, 1) == ("blank", "text")
    store.add(fields={}, id="image", vector=[0, 1])
    assert found(store, 0, 1)[0] == "image"
    assert store.info().pending == 0
    assert store.check().ok


def test_records_without_text_are_no_copies_of_each_other(store: HybridStore) -> None:
    assert store.add(fields={}, id="other", vector=[1, 2], duplicates="skip").outcome is Outcome.ADDED
    assert store.add(fields={}, vector=[1, 3], duplicates="update").outcome is Outcome.ADDED


def test_a_field_without_text_may_have_a_vector() -> None:
    settings = StoreSettings(fields=("caption", "image"))
    with twofold.open(":memory:", embedder=GivenVectors("clip", 2), settings=settings) as store:
        store.add(fields={"caption": "a cat"}, id="1", vector={"image": [[0, 1], [1, 1]]})
        assert found(store, 0, 1) == ("1",)
        with pytest.raises(InvalidRecordError, match="'sound'"):
            store.add(fields={}, vector={"sound": [0, 1]})
        with pytest.raises(InvalidRecordError, match="holds none"):
            store.add(fields={"caption": "x"}, vector={})
        assert store.check().ok
