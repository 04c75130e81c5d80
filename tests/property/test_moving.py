"""Whatever is in a store: what is exported, imported and exported again is the same, byte for byte."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, Owner
from twofold.backends.protocol import LinkWrite
from twofold.testing import FakeEmbedder
from twofold.testing.records import NEW_YEAR, make_record, make_vectors

EVERYTHING = Access.everything()
OWNERS = (Owner.everybody(), Owner.user("ann"), Owner.user("ben"), Owner.room("r1"))
ASKERS = (Access(), Access(user="ann"), Access(user="ben", rooms=("r1",)), Access(rooms=("r1", "r2")))

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
anything = st.text(st.characters(exclude_categories=[]), max_size=12)
times = st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the bounds
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(words, each, max_size=3),
    max_leaves=5,
)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "kind": words,
        "namespace": st.lists(words.filter(lambda word: "\x1f" not in word), max_size=2).map(tuple),
        "project": words | st.just(""),
        "source": words,
        "tags": st.lists(words, max_size=3, unique=True).map(tuple),
        "metadata": st.dictionaries(words, values, max_size=3),
        "payload": values,
        "importance": st.floats(0, 1),
        "strength": st.floats(0, exclude_min=True, allow_infinity=False),
        "access_count": st.integers(0, 2**40),
        "last_accessed": times,
        "event_at": times,
        "valid_from": times,
        "valid_to": times,
        "expires_at": times,
        "archived_at": times,
        "superseded_by": words,
        "revision": st.integers(1, 2**40),
    },
)
texts = st.fixed_dictionaries({}, optional={"text": anything | st.lists(anything, max_size=3).map(tuple)})


@st.composite
def stores(draw: st.DrawFn) -> twofold.HybridStore:
    """A store with records of several owners, some with vectors, some linked."""
    store = twofold.open(":memory:", embedder=FakeEmbedder(2))
    with store._backend.write() as writer:
        writer.adopt("fake:2", 2)
        keys = []
        for number in range(draw(st.integers(0, 6))):
            given_attributes: dict[str, Any] = draw(attributes)
            record = make_record(
                f"id{number % 4}",
                draw(texts),
                owner=OWNERS[number // 4 if number % 4 == 0 else number % 4],
                at=draw(times) if draw(st.booleans()) else NEW_YEAR + timedelta(microseconds=number),
                attributes=given_attributes,
            )
            if writer.find(record.id, record.namespace, (record.belongs_to,)):
                continue
            vector = np.array(draw(st.lists(st.floats(1, 9, width=32), min_size=2, max_size=2)), dtype=np.float32)
            keys.append(writer.insert(record, make_vectors(record, vector.tolist()) if draw(st.booleans()) else None))
        for source in keys:
            for target in draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)):
                if source != target:
                    link = LinkWrite(source, target, draw(words), draw(st.floats(0, 1, exclude_min=True)))
                    writer.put_links([link], draw(times))
    return store


def exported(store: twofold.HybridStore, access: Access = EVERYTHING, *, vectors: bool = True) -> list[bytes]:
    """The lines of an export, without the first, which tells the time."""
    out = io.BytesIO()
    store.export_jsonl(out, access=access, vectors=vectors)
    return out.getvalue().splitlines(keepends=True)[1:]


def moved(
    store: twofold.HybridStore, into: twofold.HybridStore, access: Access, **options: Any
) -> twofold.ImportReport:
    out = io.BytesIO()
    store.export_jsonl(out, access=access, vectors=True)
    out.seek(0)
    return into.import_jsonl(out, access=EVERYTHING, **options)


@settings(max_examples=60, deadline=None)
@given(stores(), st.integers(1, 5))
def test_out_in_and_out_again_is_the_same(store: twofold.HybridStore, batch_size: int) -> None:
    with store, twofold.open(":memory:") as other:
        assert moved(store, other, EVERYTHING, dry_run=True).ok
        assert exported(other) == [b'{"type":"end","records":0,"links":0}\n']
        first = moved(store, other, EVERYTHING, batch_size=batch_size)
        assert first.ok, first.problems
        assert exported(other) == exported(store)
        again = moved(store, other, EVERYTHING)
        assert (again.unchanged, again.added, again.updated) == (first.added, 0, 0)
        assert exported(other) == exported(store)
        report = other.check()
        assert report.ok, report.damage


@settings(max_examples=60, deadline=None)
@given(stores(), st.sampled_from(ASKERS))
def test_an_export_is_what_its_asker_would_see_if_there_were_nothing_else(
    store: twofold.HybridStore, access: Access
) -> None:
    with store:
        seen = exported(store, access)
        for record in store.list(access=EVERYTHING, include_archived=True):
            if not access.can_read(record.belongs_to):
                store.delete(record.id, owner=record.belongs_to, namespace=record.namespace, access=EVERYTHING)
        assert exported(store, EVERYTHING) == seen
