"""What every backend must do with rows, whoever asks: a part of :mod:`twofold.testing.backend_contract`."""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from twofold.backends.protocol import Backend, Mark, Order, Visibility
from twofold.errors import ConfigurationError, RecordNotFoundError
from twofold.filters import A, F, Filter
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Owner, Record, Scope

__all__ = ["TIED_IDS", "RowContract", "ids_of", "seen_by", "stored", "ties"]

EVERYTHING = Access.everything()
U1, U2, R1, ALL = Owner.user("u1"), Owner.user("u2"), Owner.room("r1"), Owner.everybody()
SECOND = timedelta(seconds=1)


def seen_by(
    access: Access = EVERYTHING,
    where: Filter | None = None,
    *,
    at: datetime = NEW_YEAR,
    include_archived: bool = False,
) -> Visibility:
    """A visibility with defaults."""
    return Visibility(access, at, where, include_archived)


def stored(backend: Backend, *records: Record) -> list[int]:
    """Store records without vectors; their keys."""
    with backend.write() as writer:
        return [writer.insert(record, None) for record in records]


def ids_of(backend: Backend, keys: Iterable[int]) -> list[str]:
    """The ids of keys, in their order."""
    keys = list(keys)
    with backend.read() as reader:
        records = reader.records(keys)
    return [records[key].id for key in keys]


TIED_IDS = ["newest", "a", "a-room", "b", "oldest"]
"""The ids of :func:`ties` in the order of ties."""


def ties(text: str) -> tuple[Record, ...]:
    """Records alike in all but what breaks ties, in no order."""
    return (
        make_record("b", text),
        make_record("a-room", text, owner=Owner.room("r")),
        make_record("newest", text, at=NEW_YEAR + SECOND),
        make_record("a", text),
        make_record("oldest", text, at=NEW_YEAR - SECOND),
    )


class RowContract:
    """Rows, visibility, order, marks."""

    def test_a_record_comes_back_exactly(self, backend: Backend) -> None:
        at = NEW_YEAR + timedelta(microseconds=1)
        record = make_record(
            "ä/1 '\"%_",
            {"text": ("one", "two \x00 \ud800 \udc00", "")},
            owner=R1,
            at=at,
            attributes={
                "kind": "my kind",
                "namespace": ("users", "ü 1"),
                "project": "p",
                "source": "s",
                "tags": ("b", "a", "schön"),
                "metadata": {"z": [1, 1.0, True, None, {"é": -0.5}], "a": 2**63 - 1, "": "", "x.y": "'"},
                "payload": [1, {"k": None}],
                "importance": 0.1,
                "strength": 3.375,
                "access_count": 7,
                "updated_at": at + SECOND,
                "last_accessed": at + 2 * SECOND,
                "event_at": datetime.min.replace(tzinfo=at.tzinfo),
                "valid_from": at - SECOND,
                "valid_to": datetime.max.replace(tzinfo=at.tzinfo),
                "expires_at": at + 5 * SECOND,
                "archived_at": at,
                "superseded_by": "other",
                "revision": 3,
            },
        )
        (key,) = stored(backend, record)
        with backend.read() as reader:
            found = reader.records([key])[key]
        assert found == record
        assert list(found.metadata) == ["z", "a", "", "x.y"]
        assert [type(value) for value in found.metadata["z"][:3]] == [int, float, bool]

    def test_records_leaves_out_what_is_gone(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "x"))
        with backend.read() as reader:
            assert set(reader.records([key, key + 1])) == {key}
            assert reader.records([]) == {}

    def test_an_id_is_one_owners_in_one_namespace(self, backend: Backend) -> None:
        in_notes = {"namespace": ("notes",)}
        keys = stored(
            backend,
            make_record("a", "1", owner=U1),
            make_record("a", "2", owner=U2),
            make_record("a", "3"),
            make_record("a", "4", owner=R1),
            make_record("a", "5", owner=U1, attributes=in_notes),
            make_record("a", "6", owner=Owner.room("u1")),
        )
        with backend.read() as reader:
            assert reader.find("a", (), (R1, U1, ALL)) == [(keys[3], R1), (keys[0], U1), (keys[2], ALL)]
            assert reader.find("a", (), (Owner.user("nobody"),)) == []
            assert reader.find("a", (), ()) == []
            assert {key for key, _ in reader.find("a", (), None)} == {*keys[:4], keys[5]}
            assert reader.find("a", ("notes",), None) == [(keys[4], U1)]
            assert reader.find("A", (), None) == []

    def test_many_ids_are_found_as_each_of_them_is(self, backend: Backend) -> None:
        in_notes = {"namespace": ("notes",)}
        names = ("a", "b", 'say "b"\n', "é\U0001f600", "7")
        for owner in (U1, R1, ALL):
            stored(backend, *(make_record(name, f"{name} of {owner}", owner=owner) for name in names[1:]))
        stored(backend, make_record("a", "only here", owner=U2), make_record("b", "x", owner=U1, attributes=in_notes))
        asked = ("b", "missing", *names, "b", 7 * "7")
        rooms = tuple(Owner.room(f"r{number}") for number in range(40))
        with backend.read() as reader:
            for owners in (None, (), (U1,), (R1, U1, ALL), (U2, *rooms, ALL, U1), (U1, U1, Owner.user("nobody"))):
                one_by_one = {id_: found for id_ in asked if (found := reader.find(id_, (), owners))}
                assert reader.find_many(asked, (), owners) == one_by_one
            assert reader.find_many((), (), (U1,)) == {}
            assert set(reader.find_many(names, (), None)) == set(names)
            assert set(reader.find_many(names, ("notes",), (U1,))) == {"b"}

    def test_find_sees_archived_records(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "x", attributes={"archived_at": NEW_YEAR}))
        with backend.read() as reader:
            assert reader.find("a", (), (ALL,)) == [(key, ALL)]

    def test_replace_keeps_the_key(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "old"))
        new = make_record("a", "new", attributes={"metadata": {"n": 1}, "revision": 2})
        with backend.write() as writer:
            writer.replace(key, new, None)
        with backend.read() as reader:
            assert reader.records([key]) == {key: new}

    def test_what_does_not_exist_cannot_be_replaced(self, backend: Backend) -> None:
        with pytest.raises(RecordNotFoundError), backend.write() as writer:
            writer.replace(1, make_record("a", "x"), None)

    def test_delete_leaves_nothing_and_no_key_comes_twice(self, backend: Backend) -> None:
        first, second = stored(backend, make_record("a", "x"), make_record("b", "y"))
        with backend.write() as writer:
            writer.delete([second, 999_999, second])
        (third,) = stored(backend, make_record("b", "z"))
        assert third not in (first, second)
        with backend.read() as reader:
            assert reader.count(seen_by()) == 2
            assert reader.find("b", (), None) == [(third, ALL)]
        assert backend.check().ok

    def test_archiving_hides_and_restoring_shows(self, backend: Backend) -> None:
        first, second = stored(backend, make_record("a", "x"), make_record("b", "y"))
        with backend.write() as writer:
            writer.set_archived([first, 999_999], NEW_YEAR + SECOND)
        with backend.read() as reader:
            assert reader.scan(seen_by(), (), None, 0) == [second]
            assert reader.count(seen_by(include_archived=True)) == 2
            assert reader.records([first])[first].archived_at == NEW_YEAR + SECOND
        with backend.write() as writer:
            writer.set_archived([first], None)
        with backend.read() as reader:
            assert reader.count(seen_by()) == 2

    @pytest.mark.parametrize(
        ("access", "ids"),
        [
            (Access(), "g"),
            (Access(user="u1"), "gp"),
            (Access(user="u1", rooms=("r1",)), "gpr"),
            (Access(rooms=("r1",)), "gr"),
            (Access(user="r1", rooms=("u1",)), "g"),
            (Access(rooms=tuple(f"r{n}" for n in range(5_000))), "gr"),
            (Access.everything(), "gpqr"),
        ],
    )
    def test_access_decides_what_is_seen(self, backend: Backend, access: Access, ids: str) -> None:
        owners = {"g": ALL, "p": U1, "q": U2, "r": R1}
        stored(backend, *(make_record(id_, "word", owner=owner) for id_, owner in owners.items()))
        with backend.read() as reader:
            keys = reader.scan(seen_by(access), [Order("id")], None, 0)
            assert reader.count(seen_by(access)) == len(keys)
        assert "".join(ids_of(backend, keys)) == ids

    @pytest.mark.parametrize(
        ("attributes", "before", "at", "after"),
        [
            ({"valid_from": NEW_YEAR}, False, True, True),
            ({"valid_to": NEW_YEAR}, True, False, False),
            ({"expires_at": NEW_YEAR}, True, False, False),
            ({"superseded_by": "b"}, False, False, False),
            ({"archived_at": NEW_YEAR + SECOND}, False, False, False),
        ],
    )
    def test_lifecycle_is_judged_at_an_instant(
        self,
        backend: Backend,
        attributes: dict[str, Any],
        before: bool,  # noqa: FBT001 - what a parametrised test expects
        at: bool,  # noqa: FBT001
        after: bool,  # noqa: FBT001
    ) -> None:
        stored(backend, make_record("a", "x", attributes=attributes))
        instants = [NEW_YEAR - timedelta(microseconds=1), NEW_YEAR, NEW_YEAR + SECOND]
        with backend.read() as reader:
            assert [reader.count(seen_by(at=instant)) for instant in instants] == [before, at, after]
            assert reader.count(seen_by(include_archived=True)) == 1

    def test_the_filter_is_applied(self, backend: Backend) -> None:
        stored(
            backend,
            make_record("a", "x", attributes={"metadata": {"n": 1}}),
            make_record("b", "x", attributes={"metadata": {"n": True}}),
            make_record("c", "x", attributes={"kind": "insight"}),
        )
        with backend.read() as reader:
            seen = [
                reader.scan(seen_by(where=where), [Order("id")], None, 0)
                for where in (F("n") == 1, F("n") == True, A.kind == "insight")  # noqa: E712 - True is not 1 here
            ]
        assert [ids_of(backend, keys) for keys in seen] == [["a"], ["b"], ["c"]]

    def test_scan_has_a_total_order(self, backend: Backend) -> None:
        stored(
            backend,
            make_record("b", "x", attributes={"importance": 0.9}),
            make_record("a", "x", attributes={"importance": 0.9, "project": "p"}),
            make_record("c", "x", at=NEW_YEAR - SECOND, attributes={"project": "q"}),
            make_record("a", "x", owner=U1),
            make_record("a", "x", owner=R1),
            make_record("a", "x", attributes={"namespace": ("n",)}),
        )

        def scan(*order: Order, limit: int | None = None, offset: int = 0) -> list[tuple[str, str, Scope]]:
            with backend.read() as reader:
                found = reader.records(keys := reader.scan(seen_by(), order, limit, offset))
            return [(found[key].id, "/".join(found[key].namespace), found[key].scope) for key in keys]

        default = [
            ("a", "", Scope.GLOBAL),
            ("a", "", Scope.PERSONAL),
            ("a", "", Scope.ROOM),
            ("a", "n", Scope.GLOBAL),
            ("b", "", Scope.GLOBAL),
            ("c", "", Scope.GLOBAL),
        ]
        assert scan() == default
        assert scan(Order("importance", descending=True)) == [default[0], default[4], *default[1:4], default[5]]
        assert scan(Order("created_at"))[0] == default[5]
        # What has no project comes last, in either direction.
        assert scan(Order("project"))[:2] == [default[0], default[5]]
        assert scan(Order("project", descending=True))[:2] == [default[5], default[0]]
        assert scan(limit=2, offset=1) == default[1:3]
        assert scan(limit=0) == []

    def test_an_unknown_order_is_refused(self, backend: Backend) -> None:
        with backend.read() as reader:
            with pytest.raises(ConfigurationError, match="no_such"):
                reader.scan(seen_by(), [Order("no_such")], None, 0)
            with pytest.raises(ConfigurationError, match="no_such"):
                reader.distinct("no_such", seen_by())

    def test_distinct_values(self, backend: Backend) -> None:
        stored(
            backend,
            make_record("a", "x", owner=U1, attributes={"tags": ("t", "s"), "namespace": ("n", "m"), "project": "p"}),
            make_record("b", "x", owner=U2, attributes={"tags": ("secret",), "project": "q"}),
            make_record("c", "x", attributes={"tags": ("t",), "namespace": ("n",), "kind": "insight"}),
        )
        mine = seen_by(Access(user="u1"))
        expected: dict[str, list[Any]] = {
            "tags": ["s", "t"],
            "namespace": [("n",), ("n", "m")],
            "project": ["p"],
            "kind": ["insight", "semantic"],
            "created_at": [NEW_YEAR],
            "scope": [Scope.GLOBAL, Scope.PERSONAL],
            "owner": ["u1"],
            "expires_at": [],
        }
        with backend.read() as reader:
            assert {name: reader.distinct(name, mine) for name in expected} == expected

    def test_equal_text_is_found_by_its_hash(self, backend: Backend) -> None:
        record = make_record("a", "same", owner=U1)
        keys = stored(
            backend,
            record,
            make_record("b", "same", owner=U1, at=NEW_YEAR + SECOND),
            make_record("c", "same", owner=U2),
            make_record("d", "same", owner=U1, attributes={"namespace": ("n",)}),
            make_record("e", "same", owner=U1, attributes={"archived_at": NEW_YEAR}),
            make_record("f", "other", owner=U1),
        )
        with backend.read() as reader:
            assert reader.with_equal_text(record.content_hash, U1, ()) == [keys[1], keys[0]]

    def test_identities(self, backend: Backend) -> None:
        (key,) = stored(backend, make_record("a", "x", owner=R1, attributes={"namespace": ("n", "m")}))
        with backend.read() as reader:
            assert reader.identities([key, 999_999]) == {key: (NEW_YEAR, "a", ("n", "m"), R1)}

    def test_places_are_in_the_order_of_equal_scores(self, backend: Backend) -> None:
        keys = stored(
            backend,
            make_record("b", "kettle"),
            make_record("a", "kettle", owner=U2),
            make_record("a", "kettle", attributes={"namespace": ("n",)}),
            make_record("a", "kettle", owner=U1),
            make_record("z", "kettle", at=NEW_YEAR + SECOND),
            make_record("c", "kettle", at=NEW_YEAR - SECOND),
        )
        with backend.read() as reader:
            known = reader.identities(keys)
            expected = sorted(keys, key=lambda key: known[key].order)
            assert expected[0] == keys[4]
            for some in (keys, keys[::-1], keys[4:], keys[:2], keys[:1], []):
                places = reader.places([*some, 999_999])
                assert sorted(places, key=places.__getitem__) == [key for key in expected if key in some]
            reader.nearest(np.ones(2, dtype=np.float32), seen_by(), 9)  # a leg has looked who may be seen
            for some in (keys, keys[::-1], keys[4:], keys[3:], keys[:2], keys[:1], []):
                places = reader.places(some)
                assert sorted(places, key=places.__getitem__) == [key for key in expected if key in some]
        with backend.write() as writer:
            new = writer.insert(make_record("y", "kettle", at=NEW_YEAR + 2 * SECOND), None)
            places = writer.places([*keys, new])
            assert sorted(places, key=places.__getitem__) == [new, *expected]

    def test_marks(self, backend: Backend) -> None:
        marks = [Mark("a", "g", 1.0), Mark("b", None, 2.0), Mark("c", "h", 2.0), Mark("d", "", 3.0)]
        with backend.write() as writer:
            writer.put_marks(U1, "ns", [Mark("a", "old", 0.5)])
            writer.put_marks(U1, "ns", marks)
            writer.put_marks(U2, "ns", [Mark("x", None, 1.0)])
            writer.put_marks(U1, "other", [Mark("y", None, 1.0)])
        with backend.read() as reader:
            assert reader.marks(U1, "ns") == marks
            assert reader.marks(U1, "ns", keys=["d", "a", "zz"]) == [marks[0], marks[3]]
            assert reader.marks(U1, "ns", keys=[]) == []
            assert reader.marks(U1, "ns", groups=["g", None]) == marks[:2]
            assert reader.marks(U1, "ns", groups=["h"]) == [marks[2]]
            assert reader.marks(U1, "ns", groups=[]) == []
            assert reader.marks(U1, "ns", after=1.0, before=3.0) == marks[1:3]
            assert reader.marks(U1, "ns", limit=2) == marks[:2]
            assert reader.marks(ALL, "ns") == []
        with backend.write() as writer:
            writer.delete_marks(U1, "ns", ["a", "zz"])
        with backend.read() as reader:
            assert reader.marks(U1, "ns") == marks[1:]
            assert reader.marks(U2, "ns") == [Mark("x", None, 1.0)]
