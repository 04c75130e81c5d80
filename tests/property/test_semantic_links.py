"""Links of meaning come of the vectors, whenever those are made: with the record, or filled in later."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, CallableEmbedder, EmbeddingSettings, Owner, StoreSettings

DEGREES = 7
"""Between one direction and the next: no two are as near as the threshold says, to within 2 degrees."""
THRESHOLD = 0.9
"""25.8 degrees: directions at most three steps apart."""
MOST = 3
"""To how many records one is linked."""

EVERYTHING = Access.everything()
USERS = (None, "ann")

added = st.tuples(st.sampled_from(USERS), st.integers(0, 12), st.booleans())
"""Whose a record is, the direction of its vector, and whether the embedder is down when it is added."""


class Directions:
    """An embedder of texts like ``m0 5``: their last word is the direction."""

    def __init__(self) -> None:
        self.down = False

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.down:
            raise ConnectionError("down")
        angles = [math.radians(DEGREES * int(text.split()[-1])) for text in texts]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]


@settings(max_examples=60, deadline=None)
@given(st.lists(added, max_size=12), st.integers(1, 5))
@example([(None, 0, True)] * 6, 5)
@example([("ann", 0, True), (None, 0, False), ("ann", 1, False), ("ann", 2, True)], 1)
def test_each_is_linked_to_the_nearest_of_those_embedded_before_it(
    records: list[tuple[str | None, int, bool]], batch_size: int
) -> None:
    embedder = Directions()
    quiet = EmbeddingSettings(failures_to_open=1_000_000, fill_in=False)
    with twofold.open(
        ":memory:",
        embedder=CallableEmbedder(embedder, "directions", dimension=2),
        settings=StoreSettings(semantic_links=THRESHOLD, embedding=quiet),
    ) as store:
        store.add("first 90", access=Access(user="nobody"))  # so that the file has an embedder
        for number, (user, direction, embedder.down) in enumerate(records):
            store.add(f"m{number} {direction}", id=f"m{number}", access=Access(user=user))
        embedder.down = False
        waiting = [number for number, (_, _, down) in enumerate(records) if down]
        assert store.embed_pending(access=EVERYTHING, batch_size=batch_size).embedded == len(waiting)

        in_order = [number for number in range(len(records)) if number not in waiting] + waiting
        for place, number in enumerate(in_order):
            user, direction, _ = records[number]
            owner = Owner.everybody() if user is None else Owner.user(user)
            links = store.links(f"m{number}", direction="out", owner=owner, access=EVERYTHING)
            apart = {
                f"m{before}": DEGREES * abs(direction - records[before][1])
                for before in in_order[:place]
                if records[before][0] == user
            }
            cosines = {id_: math.cos(math.radians(degrees)) for id_, degrees in apart.items()}
            near = sorted((cosine for cosine in cosines.values() if cosine >= THRESHOLD), reverse=True)
            assert [link.weight for link in links] == pytest.approx(near[:MOST], abs=1e-6)
            for link in links:
                assert (link.kind, link.owner, link.target_owner) == ("semantic", owner, owner)
                assert link.weight == pytest.approx(cosines[link.target], abs=1e-6)
        assert store.check().ok


def filled_in_later(**more: Any) -> tuple[twofold.HybridStore, Directions]:
    """A store in which ``a`` and ``b`` mean much the same and wait for their vectors."""
    embedder = Directions()
    store = twofold.open(
        ":memory:",
        embedder=CallableEmbedder(embedder, "directions", dimension=2),
        settings=StoreSettings(
            semantic_links=THRESHOLD, embedding=EmbeddingSettings(failures_to_open=1_000_000, fill_in=False), **more
        ),
    )
    store.add("first 90")
    embedder.down = True
    store.add_many([{"id": "a", "text": "a 0"}, {"id": "b", "text": "b 1"}])
    embedder.down = False
    return store, embedder


def test_what_is_filled_in_by_itself_is_linked_too(tmp_path: Path) -> None:
    embedder = Directions()
    settings = StoreSettings(semantic_links=THRESHOLD)

    def opened() -> twofold.HybridStore:
        made = CallableEmbedder(embedder, "directions", dimension=2)
        return twofold.open(tmp_path / "memory.db", embedder=made, settings=settings)

    with opened() as store:
        store.add("first 90")
        embedder.down = True
        store.add_many([{"id": "a", "text": "a 0"}, {"id": "b", "text": "b 1"}])
        embedder.down = False
    with opened() as store:
        store.search("anything 45")
        deadline = time.monotonic() + 60
        while store.info().pending:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [(link.source, link.target) for link in store.links("a")] == [("b", "a")]


def test_the_links_of_a_former_text_are_gone() -> None:
    store, embedder = filled_in_later()
    with store:
        store.embed_pending()
        assert [(link.source, link.target) for link in store.links("a")] == [("b", "a")]
        embedder.down = True
        store.add("a 60", id="a")
        store.add("c 61", id="c")
        embedder.down = False
        store.embed_pending()
        assert [(link.source, link.target) for link in store.links("a")] == [("c", "a")]
        assert store.links("b") == []


def test_what_changed_or_went_while_it_was_embedded_is_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    store, embedder = filled_in_later()
    with store:
        embedder.down = True
        store.add("c 2", id="c")
        embedder.down = False
        guard = store._parts.guard
        assert guard is not None
        inner = guard.documents

        def meanwhile(texts: Sequence[str]) -> Any:
            monkeypatch.undo()
            made = inner(texts)
            store.delete("a")
            embedder.down = True
            store.add("b 60", id="b")
            embedder.down = False
            return made

        monkeypatch.setattr(guard, "documents", meanwhile)
        assert store.embed_pending().embedded == 2, "c, and then b with its new text"
        assert [store.links(id_) for id_ in ("b", "c")] == [[], []]
        store.add("d 60", id="d")
        assert [(link.source, link.target) for link in store.links("b")] == [("d", "b")]
        assert store.check().ok


def test_without_the_setting_none_are_made() -> None:
    embedder = Directions()
    embedder.down = True
    quiet = StoreSettings(embedding=EmbeddingSettings(fill_in=False, failures_to_open=1_000_000))
    with twofold.open(":memory:", embedder=CallableEmbedder(embedder, "d", dimension=2), settings=quiet) as store:
        store.add_many([{"id": "a", "text": "a 0"}, {"id": "b", "text": "b 0"}])
        embedder.down = False
        assert store.embed_pending().embedded == 2
        assert store.links("a") == []


def linked(store: twofold.HybridStore, id_: str) -> list[str]:
    return sorted(({link.source, link.target} - {id_}).pop() for link in store.links(id_))


def test_a_record_that_waited_and_is_added_again_is_linked() -> None:
    embedder = Directions()
    quiet = EmbeddingSettings(failures_to_open=1_000_000, fill_in=False)
    with twofold.open(
        ":memory:",
        embedder=CallableEmbedder(embedder, "directions", dimension=2),
        settings=StoreSettings(semantic_links=THRESHOLD, embedding=quiet),
    ) as store:
        store.add("a 0", id="a")
        embedder.down = True
        store.add("b 1", id="b")
        assert linked(store, "b") == []
        embedder.down = False
        assert store.add("b 1", id="b").outcome is twofold.Outcome.UNCHANGED
        assert linked(store, "b") == ["a"]


def test_a_new_text_without_a_vector_leaves_no_link_of_the_former_text() -> None:
    embedder = Directions()
    quiet = EmbeddingSettings(failures_to_open=1_000_000, fill_in=False)
    with twofold.open(
        ":memory:",
        embedder=CallableEmbedder(embedder, "directions", dimension=2),
        settings=StoreSettings(semantic_links=THRESHOLD, embedding=quiet),
    ) as store:
        store.add_many([{"id": "a", "text": "a 0"}, {"id": "b", "text": "b 1"}])
        assert linked(store, "b") == ["a"]
        embedder.down = True
        store.add("b 12", id="b")
        assert linked(store, "b") == []
        embedder.down = False
        store.embed_pending()
        assert linked(store, "b") == []  # 84 degrees apart
