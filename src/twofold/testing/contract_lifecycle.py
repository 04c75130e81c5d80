"""What every backend must do with the life of records and with a second set of vectors: a part of
:mod:`twofold.testing.backend_contract`.
"""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from twofold.backends.protocol import Backend, Candidate, Capability, Space, Tally, Visibility
from twofold.errors import ConfigurationError, InvalidVectorError
from twofold.filters import A
from twofold.testing.contract_rows import ids_of, seen_by, stored
from twofold.testing.contract_vectors import embed, found_by_vector, vector
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access, Owner, Record

__all__ = ["LifecycleContract"]

DAY = timedelta(days=1)
OTHER = Space("other", 3)


def _as_of(at: datetime, access: Access | None = None) -> Visibility:
    return Visibility(Access.everything() if access is None else access, at, as_of=True)


def _lives() -> list[Record]:
    """Records of every kind of life, each from some days after the new year to some days later."""
    return [
        make_record("always", "kettle", at=NEW_YEAR),
        make_record("later", "kettle", at=NEW_YEAR + 2 * DAY),
        make_record("dated back", "kettle", at=NEW_YEAR + 9 * DAY, attributes={"valid_from": NEW_YEAR + DAY}),
        make_record("archived", "kettle", attributes={"archived_at": NEW_YEAR + 3 * DAY}),
        make_record("expired", "kettle", attributes={"expires_at": NEW_YEAR + 2 * DAY}),
        make_record("over", "kettle", attributes={"valid_to": NEW_YEAR + DAY}),
        make_record("replaced", "kettle", attributes={"superseded_by": "x", "valid_to": NEW_YEAR + 4 * DAY}),
        make_record("replaced some time", "kettle", attributes={"superseded_by": "x"}),
    ]


class LifecycleContract:
    """Things as they stood, counts of what is seen, vectors of a second embedder."""

    def test_things_are_seen_as_they_stood(self, backend: Backend) -> None:
        records = _lives()
        embed(backend, *((record, (1, 0)) for record in records))
        query = backend.analyzer.query("kettle")
        for hours in range(0, 11 * 24, 12):
            at = NEW_YEAR + timedelta(hours=hours - 12)
            expected = sorted(record.id for record in records if record.was_living(at))
            visible = _as_of(at)
            assert sorted(found_by_vector(backend, (1, 0), visible)) == expected
            with backend.read() as reader:
                assert reader.count(visible) == len(expected)
                found = [reader.scan(visible, (), None, 0)]
                if Capability.KEYWORD in backend.capabilities:
                    found.append([each.key for each in reader.keyword(query, visible, 100)])
            assert [sorted(ids_of(backend, keys)) for keys in found] == [expected] * len(found)

    def test_the_past_changes_with_what_is_written(self, backend: Backend) -> None:
        (key,) = embed(backend, (make_record("a", "kettle"), (1, 0)))
        past, now = _as_of(NEW_YEAR + DAY), seen_by(at=NEW_YEAR + DAY)
        assert found_by_vector(backend, (1, 0), past) == found_by_vector(backend, (1, 0), now) == ["a"]
        with backend.write() as writer:
            writer.set_archived([key], NEW_YEAR + 2 * DAY)
        assert found_by_vector(backend, (1, 0), past) == ["a"]
        assert found_by_vector(backend, (1, 0), now) == []
        with backend.write() as writer:
            writer.delete([key])
        assert found_by_vector(backend, (1, 0), past) == []

    def test_a_tally_is_of_what_is_seen(self, backend: Backend) -> None:
        mine, theirs = Owner.user("u1"), Owner.user("u2")
        late = make_record("b", "bb", owner=mine, at=NEW_YEAR + DAY, attributes={"kind": "insight"})
        pairs = [(make_record("a", "a", owner=mine), (1, 0)), (late, (0, 1)), (make_record("c", "c"), (1, 1))]
        embed(backend, *pairs, (make_record("d", "secret", owner=theirs), (1, 0)))
        hidden: dict[str, dict[str, object]] = {
            "archived": {"archived_at": NEW_YEAR},
            "expired": {"expires_at": NEW_YEAR},
            "superseded": {"superseded_by": "a", "valid_to": NEW_YEAR},
            "over": {"valid_to": NEW_YEAR},
            "to come": {"valid_from": NEW_YEAR + 9 * DAY},
        }
        for owner in (mine, theirs):
            stored(backend, *(make_record(id_, owner=owner, attributes=given) for id_, given in hidden.items()))
        with backend.read() as reader:
            found = reader.tally(seen_by(Access(user="u1"), at=NEW_YEAR + DAY))
            nothing = reader.tally(seen_by(Access(user="u1"), A.id == "none"))
        assert set(found.groups) == {("semantic", mine, 1), ("insight", mine, 1), ("semantic", Owner.everybody(), 1)}
        sizes = found.text_bytes
        assert sizes > 0
        assert found == Tally(
            groups=found.groups,
            oldest=NEW_YEAR,
            newest=NEW_YEAR + DAY,
            text_bytes=sizes,
            vectors=3,
            vector_bytes=3 * 2 * 4,
            links=0,
            archived=1,
            superseded=1,
            expired=1,
            out_of_date=1,
            not_yet_valid=1,
        )
        assert nothing == replace(
            found, groups=(), oldest=None, newest=None, text_bytes=0, vectors=0, vector_bytes=0,
            archived=0, superseded=0, expired=0, out_of_date=0, not_yet_valid=0,
        )  # fmt: skip

    def test_a_next_space_shows_only_when_it_takes_the_place_of_the_one_in_use(self, backend: Backend) -> None:
        a, b = (make_record(id_, id_) for id_ in "ab")
        first, second = embed(backend, (a, (1, 0)), (b, (0, 1)))
        with backend.write() as writer:
            start = writer.generation
            writer.begin_space(OTHER)
            writer.begin_space(OTHER)
            assert writer.next_space == OTHER
            assert writer.keys_lacking("other", 0, None) == [first, second]
            assert writer.put_next(first, make_vectors(a, (0, 0, 1)))
            assert not writer.put_next(first, make_vectors(a, (0, 1, 0))), "it has some"
            assert not writer.put_next(second, make_vectors(make_record("b", "another text"), (1, 0, 0)))
            assert not writer.put_next(second + 1, make_vectors(a, (1, 0, 0)))
            assert writer.keys_lacking("other", 0, 1) == writer.keys_lacking("other", first, None) == [second]
            assert (writer.count_lacking("other"), writer.count_lacking("fake")) == (1, 0)
            with pytest.raises(InvalidVectorError):
                writer.put_next(second, make_vectors(b, (1, 0)))
            assert writer.generation == start
        assert found_by_vector(backend, (1, 0)) == ["a", "b"]
        assert backend.check().ok
        with backend.write() as writer:
            writer.swap_space({second: "refused"})
            assert (writer.fingerprint, writer.dimension, writer.next_space) == ("other", 3, None)
        assert found_by_vector(backend, (0, 0, 1)) == ["a"]
        with backend.read() as reader:
            assert reader.generation == start + 1
            assert reader.vectors([first, second])[first].by_field["text"].tolist() == [[0, 0, 1]]
            assert reader.pending(seen_by()) == 1
        with backend.write() as writer:
            assert writer.claim_pending(seen_by(), 9, NEW_YEAR, NEW_YEAR + DAY) == {}, "it is parked"
            assert writer.drop_former(1) == 1
            assert writer.drop_former(9) == 1
            assert writer.drop_former(9) == 0
        assert backend.check().ok

    def test_what_is_written_meanwhile_lacks_its_next_vector(self, backend: Backend) -> None:
        a = make_record("a", "old")
        (key,) = embed(backend, (a, (1, 0)))
        new = make_record("a", "new")
        with backend.write() as writer:
            writer.begin_space(OTHER)
            writer.put_next(key, make_vectors(a, (0, 0, 1)))
            writer.replace(key, new, make_vectors(new, (0, 1)))
            added = writer.insert(make_record("b", "b"), None)
            writer.insert(make_record("c", {}), None)
            assert writer.keys_lacking("other", 0, None) == [key, added]
            writer.delete([key])
            assert writer.keys_lacking("other", 0, None) == [added]
            writer.drop_next()
            assert writer.next_space is None
            writer.drop_former(100)
        assert backend.check().ok

    def test_there_is_one_next_space_at_most_and_it_is_another(self, backend: Backend) -> None:
        embed(backend, (make_record("a", "a"), (1, 0)))
        for wrong in (Space("fake", 2), Space("fake", 3), Space("none", 0)):
            with pytest.raises(ConfigurationError), backend.write() as writer:
                writer.begin_space(wrong)
        with pytest.raises(ConfigurationError), backend.write() as writer:
            writer.swap_space({})
        with pytest.raises(ConfigurationError), backend.write() as writer:
            writer.put_next(1, make_vectors(make_record("a", "a"), (1, 0)))
        with backend.write() as writer:
            writer.begin_space(OTHER)
        for wrong in (Space("third", 3), Space("other", 4)):
            with pytest.raises(ConfigurationError), backend.write() as writer:
                writer.begin_space(wrong)

    def test_an_index_of_before_an_earlier_move_is_not_used(self, backend: Backend) -> None:
        a = make_record("a", "a")
        (key,) = embed(backend, (a, (1, 0)))
        assert found_by_vector(backend, (1, 0)) == ["a"]
        for space, numbers in ((OTHER, (0.0, 0.0, 1.0)), (Space("fake", 2), (0.0, 1.0))):
            with backend.write() as writer:
                writer.begin_space(space)
                writer.put_next(key, make_vectors(a, numbers))
                writer.swap_space({})
                writer.drop_former(9)
        with backend.read() as reader:
            assert reader.nearest(vector(0, 1), seen_by(), 9).candidates == (Candidate(key, 1.0),)
        assert backend.check().ok

    def test_vectors_that_no_text_stands_behind_are_counted(self, backend: Backend) -> None:
        image, caption = make_record("image", {}), make_record("caption", "a cat")
        embed(backend, (caption, (1, 0)))
        with backend.write() as writer:
            assert writer.count_only_given() == 0
            writer.insert(image, make_vectors(image, (0, 1)))
            assert writer.count_only_given() == 1
