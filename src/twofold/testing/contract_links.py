"""What every backend must do with links and touches: a part of :mod:`twofold.testing.backend_contract`."""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta

import pytest

from twofold.backends.protocol import Backend, Capability, LinkWrite, Touch, Visibility
from twofold.errors import ConfigurationError, RecordNotFoundError, UnsupportedOperationError
from twofold.filters import A, F
from twofold.ranking import Edge
from twofold.testing.contract_rows import TIED_IDS, ids_of, seen_by, stored, ties
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Direction, Owner

__all__ = ["LinkContract"]

SECOND = timedelta(seconds=1)
OUT, IN = Direction.OUT, Direction.IN


def _linked(backend: Backend, *links: tuple[int, int, str, float]) -> int:
    with backend.write() as writer:
        return writer.put_links([LinkWrite(*link) for link in links], NEW_YEAR)


def _neighbors(backend: Backend, key: int, visible: Visibility, limit: int = 100) -> list[str]:
    with backend.read() as reader:
        edges = reader.neighbors([key], visible, limit=limit).get(key, [])
    return ids_of(backend, [edge.key for edge in edges])


def _found(
    backend: Backend,
    key: int,
    direction: Direction = Direction.BOTH,
    kinds: Sequence[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[tuple[int, int, str, float]]:
    with backend.read() as reader:
        links = reader.links(key, seen_by(), direction=direction, kinds=kinds, limit=limit, offset=offset)
    return [(link.source, link.target, link.kind, link.weight) for link in links]


class LinkContract:
    """Links from both ends, strongest first; what is not visible does not count; deletes; touches."""

    @pytest.fixture(autouse=True)
    def _keeps_links(self, request: pytest.FixtureRequest) -> None:
        if "link" not in request.node.name or "backend" not in request.fixturenames:
            return
        if Capability.LINKS not in request.getfixturevalue("backend").capabilities:
            pytest.skip("the backend does not declare LINKS")

    def test_a_backend_that_keeps_none_says_so(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "x"))
        declared = Capability.LINKS in backend.capabilities
        with nullcontext() if declared else pytest.raises(UnsupportedOperationError), backend.read() as reader:
            assert reader.links(key, seen_by()) == []
        with nullcontext() if declared else pytest.raises(UnsupportedOperationError), backend.write() as writer:
            assert writer.put_links([], NEW_YEAR) == 0

    def test_links_are_there_from_both_ends(self, backend: Backend) -> None:
        a, b, c = stored(backend, *(make_record(id_, "x") for id_ in "abc"))
        assert _linked(backend, (a, b, "k", 0.5), (c, a, "k", 1.0), (a, b, "other", 0.25)) == 3
        assert _found(backend, a) == [(c, a, "k", 1.0), (a, b, "k", 0.5), (a, b, "other", 0.25)]
        assert _found(backend, a, OUT) == [(a, b, "k", 0.5), (a, b, "other", 0.25)]
        assert _found(backend, a, IN) == [(c, a, "k", 1.0)]
        assert _found(backend, a, kinds=["other", "none"]) == [(a, b, "other", 0.25)]
        assert _found(backend, a, kinds=[]) == []
        assert _found(backend, a, limit=1, offset=1) == [(a, b, "k", 0.5)]
        assert _found(backend, b) == [(a, b, "k", 0.5), (a, b, "other", 0.25)]
        with backend.read() as reader:
            assert reader.neighbors([a, b, 10**9], seen_by(), limit=1) == {
                a: [Edge(c, "k", 1.0, forward=False)],
                b: [Edge(a, "k", 0.5, forward=False)],
            }
            assert reader.neighbors([a], seen_by(), direction=OUT, kinds=["other"], limit=9) == {
                a: [Edge(b, "other", 0.25, forward=True)]
            }
            assert reader.neighbors([], seen_by(), limit=9) == {}

    def test_linking_again_changes_the_weight_and_keeps_the_time_of_a_link(self, backend: Backend) -> None:
        a, b = stored(backend, make_record("a", "x"), make_record("b", "x"))
        with backend.write() as writer:
            start = writer.generation
            assert writer.put_links([LinkWrite(a, b, "k", 0.5)], NEW_YEAR) == 1
            assert writer.generation == start + 1
        with backend.write() as writer:
            assert writer.put_links([LinkWrite(a, b, "k", 0.5)], NEW_YEAR + SECOND) == 0
            assert writer.generation == start + 1, "nothing was changed"
            assert writer.put_links([LinkWrite(a, b, "k", 0.75)], NEW_YEAR + SECOND) == 0
            assert writer.generation == start + 2
        with backend.read() as reader:
            (link,) = reader.links(a, seen_by())
        assert (link.weight, link.created_at) == (0.75, NEW_YEAR)

    def test_a_link_has_two_ends(self, backend: Backend) -> None:
        (a,) = stored(backend, make_record("a", "x"))
        for target, error in ((a, ConfigurationError), (a + 1, RecordNotFoundError)):
            with pytest.raises(error), backend.write() as writer:
                writer.put_links([LinkWrite(a, target, "k", 1.0)], NEW_YEAR)
        with pytest.raises(ConfigurationError), backend.write() as writer:
            writer.delete_links()

    def test_links_of_equal_weight_are_ordered_by_the_other_end(self, backend: Backend) -> None:
        (hub,) = stored(backend, make_record("hub", "x"))
        keys = stored(backend, *ties("x"))
        _linked(backend, *((hub, key, "k", 0.5) for key in keys[:3]), *((key, hub, "k", 0.5) for key in keys[3:]))
        for limit in range(1, len(TIED_IDS) + 1):
            assert _neighbors(backend, hub, seen_by(), limit) == TIED_IDS[:limit]

    def test_links_to_what_is_not_visible_do_not_count(self, backend: Backend) -> None:
        u1, u2 = Owner.user("u1"), Owner.user("u2")
        records = [
            make_record("secret", "x", owner=u2),
            make_record("archived", "x", owner=u1, attributes={"archived_at": NEW_YEAR}),
            make_record("superseded", "x", owner=u1, attributes={"superseded_by": "mine"}),
            make_record("expired", "x", owner=u1, attributes={"expires_at": NEW_YEAR}),
            make_record("russian", "x", owner=u1, attributes={"metadata": {"lang": "ru"}}),
            make_record("mine", "x", owner=u1),
        ]
        (hub,) = stored(backend, make_record("hub", "x"))
        keys = stored(backend, *records)
        _linked(backend, *((hub, key, "k", 1.0 - place / 10) for place, key in enumerate(keys)))
        me = Access(user="u1")
        assert _neighbors(backend, hub, seen_by(me), 1) == ["russian"]
        assert _neighbors(backend, hub, seen_by(me)) == ["russian", "mine"]
        assert _neighbors(backend, hub, seen_by(me, ~(F("lang") == "ru")), 1) == ["mine"]
        assert _neighbors(backend, hub, seen_by(me, A.id == "nothing")) == []
        assert _neighbors(backend, hub, seen_by(me, include_archived=True)) == [each.id for each in records[1:]]
        assert _neighbors(backend, hub, seen_by(Access())) == []
        with backend.read() as reader:
            assert [link.target for link in reader.links(hub, seen_by(Access(user="u2")))] == keys[:1]

    def test_links_are_removed(self, backend: Backend) -> None:
        a, b, c = stored(backend, *(make_record(id_, "x") for id_ in "abc"))
        made = [(a, b, "k", 1.0), (a, b, "other", 1.0), (b, a, "k", 1.0), (a, c, "k", 1.0), (c, b, "k", 1.0)]
        _linked(backend, *made)
        with backend.write() as writer:
            start = writer.generation
            assert writer.delete_links(source=c, target=a) == 0
            assert writer.generation == start, "nothing was changed"
            assert writer.delete_links(source=a, target=b, kinds=["k"]) == 1
            assert writer.delete_links(target=b, kinds=["k", "other"]) == 2
            assert writer.generation == start + 1
        assert _found(backend, a) == [(b, a, "k", 1.0), (a, c, "k", 1.0)]

    def test_a_deleted_record_leaves_no_links(self, backend: Backend) -> None:
        a, b, c = stored(backend, *(make_record(id_, "x") for id_ in "abc"))
        _linked(backend, (a, b, "k", 1.0), (c, a, "k", 1.0), (b, c, "k", 1.0))
        with backend.write() as writer:
            writer.delete([a])
        assert _found(backend, b) == _found(backend, c) == [(b, c, "k", 1.0)]
        assert _found(backend, a) == []
        assert backend.check().ok

    def test_links_outlive_a_new_text(self, backend: Backend) -> None:
        a, b = stored(backend, make_record("a", "x"), make_record("b", "x"))
        _linked(backend, (a, b, "k", 1.0))
        with backend.write() as writer:
            writer.replace(a, make_record("a", "y"), None)
        assert _found(backend, b) == [(a, b, "k", 1.0)]

    def test_touches_count_and_change_nothing_else(self, backend: Backend) -> None:
        a, b, c = stored(
            backend,
            make_record("a", "x"),
            make_record("b", "x", attributes={"strength": 50.0}),
            make_record("c", "x", attributes={"strength": 250.0}),
        )
        with backend.read() as reader:
            before, generation = reader.records([a, b, c]), reader.generation
        later = NEW_YEAR + SECOND
        with backend.write() as writer:
            writer.touch({a: Touch(2, later), b: Touch(10**6, NEW_YEAR - SECOND), c: Touch(1, later)}, 1.5)
            writer.touch({c + 1: Touch(1, later)}, 1.5)
        with backend.write() as writer:
            writer.touch({a: Touch(1, NEW_YEAR)})
            assert writer.generation == generation
        with backend.read() as reader:
            after = reader.records([a, b, c])
            assert reader.generation == generation
        told = {key: (each.access_count, each.last_accessed, each.strength) for key, each in after.items()}
        assert told == {a: (2 + 1, later, 1.5**2), b: (10**6, NEW_YEAR, 100.0), c: (1, later, 250.0)}
        for key, record in after.items():
            assert (record.revision, record.updated_at) == (before[key].revision, before[key].updated_at)

    def test_what_was_touched_is_seen_by_filters_at_once(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "kettle"))
        where = [A.access_count >= 1, A.last_accessed > NEW_YEAR, A.strength > 1.0]
        query = backend.analyzer.query("kettle")

        def found() -> list[int]:
            with backend.read() as reader:
                if Capability.KEYWORD not in backend.capabilities:
                    return [reader.count(seen_by(where=each)) for each in where]
                return [len(reader.keyword(query, seen_by(where=each), 5)) for each in where]

        assert found() == [0, 0, 0]
        with backend.write() as writer:
            writer.touch({key: Touch(1, NEW_YEAR + SECOND)}, 1.5)
        assert found() == [1, 1, 1]
