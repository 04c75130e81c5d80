"""What the SQLite backend shows is what the plain predicates say: ``Access.can_read``, the lifecycle, the filter."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.filters import A, F, matches
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access, Owner, Record

NAMES = st.sampled_from(["a", "b", "A", "a'", "%", "é", " a"])
OWNERS = st.one_of(st.just(Owner.everybody()), NAMES.map(Owner.user), NAMES.map(Owner.room))
ACCESSES = st.one_of(
    st.just(Access.everything()),
    st.builds(Access, user=st.none() | NAMES, rooms=st.lists(NAMES, max_size=4).map(tuple)),
    st.builds(Access, rooms=st.just(("a", *(f"r{n}" for n in range(40))))),
)
INSTANTS = st.integers(-2, 2).map(lambda n: NEW_YEAR + timedelta(microseconds=n))
NAMESPACES = st.lists(st.sampled_from(["n", "m", "n!"]), max_size=2).map(tuple)
FILTERS = st.sampled_from(
    [None, F("n") == 1, ~(F("n") == 1), A.kind == "k", A.scope == "room", (A.importance > 0.5) | (F("n") > 1)]
)


@st.composite
def records(draw: st.DrawFn, number: int) -> Record:
    optional = st.none() | INSTANTS
    return make_record(
        f"id{number}",
        "word",
        owner=draw(OWNERS),
        at=draw(INSTANTS),
        attributes={
            "namespace": draw(NAMESPACES),
            "kind": draw(st.sampled_from(["k", "semantic"])),
            "importance": draw(st.sampled_from([0.0, 0.5, 1.0])),
            "metadata": draw(st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": True}])),
            "valid_from": draw(optional),
            "valid_to": draw(optional),
            "expires_at": draw(optional),
            "archived_at": draw(optional),
            "superseded_by": draw(st.none() | st.just("x")),
        },
    )


def is_alive(record: Record, at: datetime) -> bool:
    return (
        record.archived_at is None
        and record.superseded_by is None
        and (record.valid_from is None or record.valid_from <= at)
        and (record.valid_to is None or at < record.valid_to)
        and (record.expires_at is None or at < record.expires_at)
    )


def may_be_seen(record: Record, visible: Visibility) -> bool:
    return (
        visible.access.can_read(record.belongs_to)
        and (visible.include_archived or is_alive(record, visible.at))
        and (visible.where is None or matches(visible.where, record))
    )


VISIBILITIES = st.builds(Visibility, ACCESSES, INSTANTS, FILTERS, st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(VISIBILITIES, min_size=1, max_size=6))
def test_every_way_in_shows_exactly_what_may_be_seen(data: st.DataObject, asked: list[Visibility]) -> None:
    number = 0
    kept: dict[int, Record] = {}
    with closing(SqliteBackend.open(":memory:")) as backend:
        query = backend.analyzer.query("word")
        with backend.write() as writer:
            writer.adopt("fake", 1)
        for _ in range(2):  # the second time round the vector leg goes on from what it knows
            with backend.write() as writer:
                for _ in range(data.draw(st.integers(0, 6))):
                    number += 1
                    record = data.draw(records(number))
                    kept[writer.insert(record, make_vectors(record, (1,)))] = record
            with backend.read() as reader:
                for visible in asked:
                    expected = {key for key, record in kept.items() if may_be_seen(record, visible)}
                    found = reader.nearest(np.ones(1, np.float32), visible, 1_000)
                    in_order = [candidate.key for candidate in found.candidates]
                    assert set(in_order) == expected
                    assert in_order == [candidate.key for candidate in reader.keyword(query, visible, 1_000)]
                    assert in_order == reader.scan(visible, (), None, 0)
                    assert in_order == sorted(in_order, key=lambda key: reader.identities([key])[key].order)
                    assert reader.count(visible) == len(expected)
            if kept and data.draw(st.booleans()):
                gone = data.draw(st.sampled_from(sorted(kept)))
                with backend.write() as writer:
                    writer.delete([gone])
                del kept[gone]
