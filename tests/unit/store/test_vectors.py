"""``store.vectors``: the stored vectors of records."""

from __future__ import annotations

import numpy as np
import pytest

import twofold
from twofold import Access, GivenVectors, StoreSettings
from twofold.testing import FakeEmbedder


async def test_each_record_gets_its_own_in_order() -> None:
    embedder = FakeEmbedder()
    with twofold.open(":memory:", embedder=embedder) as store:
        store.add_many([{"id": "a", "text": "a kettle"}, {"id": "b", "text": "a door"}, {"id": "none", "fields": {}}])
        records = [record for id_ in ("b", "none", "a") if (record := store.get(id_)) is not None]
        door, nothing, kettle = store.vectors(records)
        for found, text in ((door, "a door"), (kettle, "a kettle")):
            expected = np.asarray(embedder.embed([text], "document"), np.float32)
            np.testing.assert_allclose(found["text"], expected / np.linalg.norm(expected), atol=1e-6)
        assert nothing == {}
        assert [set(each) for each in await store.avectors(records)] == [{"text"}, set(), {"text"}]
        store.delete("b")
        assert store.vectors(records)[0] == {}
        assert store.vectors([]) == []


def test_parts_and_fields_are_kept_apart() -> None:
    settings = StoreSettings(fields=("head", "body"))
    with twofold.open(":memory:", embedder=GivenVectors("mine", 2), settings=settings) as store:
        given = {"head": [1.0, 0.0], "body": [[0.0, 1.0], [0.6, 0.8]]}
        store.add(fields={"head": "x", "body": ["y", "z"]}, vector=given, id="a")
        record = store.get("a")
        assert record is not None
        (found,) = store.vectors([record])
        assert {name: parts.shape for name, parts in found.items()} == {"head": (1, 2), "body": (2, 2)}
        np.testing.assert_allclose(found["body"], given["body"], atol=1e-6)


def test_nobody_is_shown_what_is_not_theirs() -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder()) as store:
        ann, ben = Access(user="ann"), Access(user="ben")
        store.add("ann's kettle", id="x", access=ann)
        store.add("ben's kettle", id="x", access=ben)
        anns, bens = store.get("x", access=ann), store.get("x", access=ben)
        assert anns is not None
        assert bens is not None
        assert [bool(each) for each in store.vectors([anns, bens], access=ann)] == [True, False]
        assert [bool(each) for each in store.view(ben).vectors([anns, bens])] == [False, True]
        assert [bool(each) for each in store.vectors([anns, bens])] == [False, False]


def test_records_are_wanted() -> None:
    with twofold.open(":memory:") as store, pytest.raises(twofold.ConfigurationError, match="records"):
        store.vectors(["a"])  # type: ignore[list-item]


def test_the_settings_are_those_it_was_opened_with() -> None:
    with twofold.open(":memory:", settings=StoreSettings(language="german"), preset="muninn") as store:
        assert store.settings.language == "german"
        assert store.view(Access(user="ann")).settings.search == twofold.PRESETS["muninn"]
