"""What every backend's vector leg must do: a part of :mod:`twofold.testing.backend_contract`."""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pytest

from twofold.backends.protocol import Backend, Candidate, Capability, Nearest, VectorWrite, Visibility
from twofold.errors import ConfigurationError, InvalidVectorError
from twofold.filters import F
from twofold.testing.contract_rows import TIED_IDS, ids_of, seen_by, stored, ties
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.types import Access, Owner, Record

__all__ = ["VectorContract", "embed", "found_by_vector", "vector"]

SECOND = timedelta(seconds=1)
MANY = 1_000_000_000


def vector(*numbers: float) -> npt.NDArray[np.float32]:
    """A vector of these numbers."""
    return np.array(numbers, dtype=np.float32)


def embed(backend: Backend, *pairs: tuple[Record, Sequence[float]]) -> list[int]:
    """Store records with the vector of their text; their keys."""
    with backend.write() as writer:
        writer.adopt("fake", len(pairs[0][1]))
        return [writer.insert(record, make_vectors(record, numbers)) for record, numbers in pairs]


def _nearest(backend: Backend, asked: Sequence[float], visible: Visibility | None = None, limit: int = 100) -> Nearest:
    with backend.read() as reader:
        return reader.nearest(vector(*asked), visible or seen_by(), limit)


def found_by_vector(
    backend: Backend, asked: Sequence[float], visible: Visibility | None = None, limit: int = 100
) -> list[str]:
    """The ids that the vector leg finds."""
    return ids_of(backend, [candidate.key for candidate in _nearest(backend, asked, visible, limit).candidates])


class VectorContract:
    """The vector leg, and what waits for it."""

    def test_similarity_is_the_cosine(self, backend: Backend) -> None:
        # obra/episodic-memory#55: distances of vectors that were not of unit length passed for cosines.
        embed(backend, (make_record("m1", "a"), (0.1, 0)), (make_record("m2", "b"), (0.5, 0.5)))
        found = _nearest(backend, (1, 0)).candidates
        assert ids_of(backend, [candidate.key for candidate in found]) == ["m1", "m2"]
        assert [candidate.score for candidate in found] == pytest.approx([1.0, 1 / math.sqrt(2)], abs=1e-6)

    def test_any_limit(self, backend: Backend) -> None:
        # basicmachines-co/basic-memory#604: a limit above 4,096 was refused.
        embed(backend, *((make_record(f"{n}", f"t{n}"), (1, n / 100)) for n in range(20)))
        for limit in (0, 1, 20, 21, 4096, 4097, MANY):
            assert len(found_by_vector(backend, (1, 0), limit=limit)) == min(limit, 20)

    def test_the_nearest_among_the_visible_are_found(self, backend: Backend) -> None:
        # asg017/sqlite-vec#152: the nearest were chosen first, and then filtered.
        if Capability.EXACT_FILTERED_VECTORS not in backend.capabilities:
            pytest.skip("the backend does not declare EXACT_FILTERED_VECTORS")
        other, me = Owner.user("other"), Owner.user("me")
        embed(
            backend,
            *((make_record(f"o{n}", f"t{n}", owner=other), (1, n / 1000)) for n in range(30)),
            *((make_record(f"m{n}", f"u{n}", owner=me, attributes={"metadata": {"n": n}}), (0.5, 1)) for n in range(5)),
        )
        mine = seen_by(Access(user="me"))
        assert found_by_vector(backend, (1, 0), mine, limit=5) == ["m0", "m1", "m2", "m3", "m4"]
        assert found_by_vector(backend, (1, 0), seen_by(Access(user="me"), F("n") == 3), limit=5) == ["m3"]
        assert found_by_vector(backend, (1, 0), seen_by(Access()), limit=5) == []

    def test_the_dead_crowd_nobody_out(self, backend: Backend) -> None:
        # oceanbase/powercontext#1469: vectors of deleted records took the places of living ones.
        keys = embed(
            backend,
            *((make_record(f"n{n}", f"t{n}"), (1, n / 1000)) for n in range(50)),
            *((make_record(f"g{n}", f"u{n}"), (1, 1 + n)) for n in range(5)),
        )
        assert len(found_by_vector(backend, (1, 0), limit=5)) == 5
        with backend.write() as writer:
            writer.delete(keys[:50])
        assert found_by_vector(backend, (1, 0), limit=5) == ["g0", "g1", "g2", "g3", "g4"]
        with backend.read() as reader:
            assert set(reader.vectors(keys)) == set(keys[50:])
        assert backend.check().ok

    def test_a_record_is_as_near_as_its_best_part(self, backend: Backend) -> None:
        long = make_record("long", {"text": ("one", "two", "three")})
        short = make_record("short", "four")
        with backend.write() as writer:
            writer.adopt("fake", 2)
            key = writer.insert(long, make_vectors(long, {"text": [[0, 1], [1, 0], [-1, 0]]}))
            writer.insert(short, make_vectors(short, (1, 0.1)))
        found = _nearest(backend, (1, 0), limit=1).candidates
        assert found == (Candidate(key, 1.0),)
        assert found_by_vector(backend, (1, 0)) == ["long", "short"]
        with backend.read() as reader:
            (parts,) = reader.vectors([key])[key].by_field.values()
        assert parts.tolist() == [[0, 1], [1, 0], [-1, 0]]

    def test_a_record_without_text_is_found_by_the_vector_it_was_given(self, backend: Backend) -> None:
        image, bare = make_record("image", {}), make_record("bare", {})
        with backend.write() as writer:
            writer.adopt("fake", 2)
            writer.insert(image, VectorWrite(image.content_hash, {"text": np.array([[0, 1]], dtype=np.float32)}))
            writer.insert(bare, None)
        found = _nearest(backend, (0, 1))
        assert ids_of(backend, [candidate.key for candidate in found.candidates]) == ["image"]
        assert found.unembedded == 0
        assert backend.check().ok

    def test_equal_cosines_are_ordered_by_identity(self, backend: Backend) -> None:
        embed(backend, *((record, (1, 0)) for record in ties("kettle")))
        assert found_by_vector(backend, (1, 0)) == TIED_IDS
        assert found_by_vector(backend, (1, 0), limit=2) == TIED_IDS[:2]

    def test_before_an_embedder_there_is_nothing_near(self, backend: Backend) -> None:
        stored(backend, make_record("a", "text"), make_record("b", " "), make_record("c", {}))
        with backend.read() as reader:
            assert (reader.fingerprint, reader.dimension) == (None, None)
            assert reader.nearest(vector(1, 0), seen_by(), 5) == Nearest((), unembedded=1)
            assert reader.pending(seen_by()) == 1, "all that has text"

    def test_adopting_makes_what_has_text_pending(self, backend: Backend) -> None:
        keys = stored(backend, make_record("a", "text"), make_record("b", " "), make_record("c", {}))
        with backend.write() as writer:
            writer.adopt("fake", 2)
            assert (writer.fingerprint, writer.dimension) == ("fake", 2)
            writer.adopt("fake", 2)
            keys.append(writer.insert(make_record("d", "later", owner=Owner.user("u1")), None))
        with backend.read() as reader:
            assert (reader.fingerprint, reader.dimension) == ("fake", 2)
            assert (reader.pending(seen_by()), reader.pending(seen_by(Access()))) == (2, 1)
            assert reader.nearest(vector(1, 0), seen_by(), 5).unembedded == 2
            assert reader.nearest(vector(1, 0), seen_by(Access()), 5).unembedded == 1
            assert reader.vectors(keys) == {}
        assert backend.check().ok

    @pytest.mark.parametrize(("fingerprint", "dimension"), [("other", 2), ("fake", 3)])
    def test_a_second_embedder_is_refused(self, backend: Backend, fingerprint: str, dimension: int) -> None:
        embed(backend, (make_record("a", "x"), (1, 0)))
        with pytest.raises(ConfigurationError, match="fake"), backend.write() as writer:
            writer.adopt(fingerprint, dimension)

    def test_attach_fills_in_what_was_pending(self, backend: Backend) -> None:
        record = make_record("a", "x")
        (key,) = stored(backend, record)
        with backend.write() as writer:
            writer.adopt("fake", 2)
        with backend.write() as writer:
            assert writer.attach(key, make_vectors(record, (1, 0)))
            assert not writer.attach(key, make_vectors(record, (0, 1))), "it waits no more"
            assert not writer.attach(key + 1, make_vectors(record, (1, 0)))
        with backend.read() as reader:
            assert reader.pending(seen_by()) == 0
            assert reader.nearest(vector(1, 0), seen_by(), 5) == Nearest((Candidate(key, 1.0),), 0)
        assert backend.check().ok

    def test_who_claims_a_waiting_record_has_it_until_the_claim_lapses(self, backend: Backend) -> None:
        later, latest = NEW_YEAR + timedelta(hours=1), NEW_YEAR + timedelta(hours=2)
        with backend.write() as writer:
            writer.adopt("fake", 2)
            keys = [writer.insert(make_record(id_, id_), None) for id_ in "abc"]
        with backend.write() as writer:
            assert list(writer.claim_pending(seen_by(), 2, NEW_YEAR, later)) == keys[:2]
            assert list(writer.claim_pending(seen_by(), 9, NEW_YEAR, later)) == keys[2:], "not those of others"
            assert writer.claim_pending(seen_by(), 9, NEW_YEAR, later) == {}
            assert (writer.claimed(seen_by(), NEW_YEAR), writer.claimed(seen_by(), later)) == (3, 0)
            writer.release(keys[:1])
            assert (writer.claimed(seen_by(), NEW_YEAR), writer.pending(seen_by())) == (2, 3)
            assert list(writer.claim_pending(seen_by(), 9, NEW_YEAR, latest)) == keys[:1]
        with backend.write() as writer:
            assert list(writer.claim_pending(seen_by(), 9, later, latest)) == keys[1:], "a claim lapses by itself"
            assert writer.claim_pending(seen_by(Access(user="u")), 0, latest, latest) == {}

    def test_a_parked_record_is_left_out_until_its_text_changes(self, backend: Backend) -> None:
        with backend.write() as writer:
            writer.adopt("fake", 2)
            keys = [writer.insert(make_record(id_, id_), None) for id_ in "abc"]
            for key in keys:
                writer.park(key, "no words")
            assert writer.pending(seen_by()) == 3
            assert writer.claim_pending(seen_by(), 9, NEW_YEAR, NEW_YEAR) == {}
            writer.replace(keys[0], make_record("a", "other words"), None)
            assert list(writer.claim_pending(seen_by(), 9, NEW_YEAR, NEW_YEAR)) == keys[:1]
            assert writer.unpark(seen_by()) == 2
            assert list(writer.claim_pending(seen_by(), 9, NEW_YEAR, NEW_YEAR)) == keys
            record = make_record("b", "b")
            assert writer.attach(keys[1], make_vectors(record, (1, 0))), "who is parked may still be given one"
        assert backend.check().ok

    def test_vectors_of_an_earlier_text_are_not_attached(self, backend: Backend) -> None:
        old, new = make_record("a", "old"), make_record("a", "new")
        with backend.write() as writer:
            writer.adopt("fake", 2)
            key = writer.insert(new, make_vectors(old, (1, 0)))
            assert writer.pending(seen_by()) == 1
            assert not writer.attach(key, make_vectors(old, (1, 0)))
        assert _nearest(backend, (1, 0)) == Nearest((), 1)

    def test_vectors_follow_the_text(self, backend: Backend) -> None:
        # asg017/sqlite-vec#259: a known id could not be embedded again.
        old, new = make_record("m1", "old"), make_record("m1", "new")
        (key,) = embed(backend, (old, (1, 0)))
        assert found_by_vector(backend, (1, 0)) == ["m1"]
        tagged = make_record("m1", "old", attributes={"tags": ("t",)})
        with backend.write() as writer:
            writer.replace(key, tagged, None)
        assert _nearest(backend, (1, 0)) == Nearest((Candidate(key, 1.0),), 0), "the text is as it was"
        with backend.write() as writer:
            writer.replace(key, tagged, make_vectors(tagged, (0, 1)))
        assert _nearest(backend, (0, 1)) == Nearest((Candidate(key, 1.0),), 0)
        with backend.write() as writer:
            writer.replace(key, new, None)
            assert writer.pending(seen_by()) == 1
        assert _nearest(backend, (0, 1)) == Nearest((), 1)
        with backend.write() as writer:
            writer.replace(key, make_record("m1", " "), None)
        assert _nearest(backend, (0, 1)) == Nearest((), 0)
        assert backend.check().ok

    @pytest.mark.parametrize("bad", [(0, 0), (math.nan, 1), (math.inf, 1), (1, 2, 3), (1,)])
    def test_an_unusable_vector_is_refused_and_nothing_is_written(
        self, backend: Backend, bad: tuple[float, ...]
    ) -> None:
        embed(backend, (make_record("a", "x"), (1, 0)))
        record = make_record("b", "y")
        with pytest.raises(InvalidVectorError), backend.write() as writer:
            writer.insert(record, make_vectors(record, bad))
        with pytest.raises(InvalidVectorError), backend.read() as reader:
            reader.nearest(vector(*bad), seen_by(), 5)
        with pytest.raises(InvalidVectorError), backend.read() as reader:
            reader.nearest_many([vector(1, 0), vector(*bad)], seen_by(), 5)
        with backend.read() as reader:
            assert reader.count(seen_by()) == 1

    def test_a_vector_of_an_unknown_field_is_refused(self, backend: Backend) -> None:
        embed(backend, (make_record("a", "x"), (1, 0)))
        record = make_record("b", "y")
        with pytest.raises(InvalidVectorError, match="nope"), backend.write() as writer:
            writer.insert(record, make_vectors(record, {"nope": [[1, 0]]}))

    def test_vectors_need_an_embedder(self, backend: Backend) -> None:
        record = make_record("a", "x")
        with pytest.raises(ConfigurationError, match="adopt"), backend.write() as writer:
            writer.insert(record, make_vectors(record, (1, 0)))

    def test_several_at_once_find_what_each_finds_alone(self, backend: Backend) -> None:
        ann = Access(user="ann")
        embed(
            backend,
            *((make_record(f"r{number}", "x"), (number, 10 - number)) for number in range(11)),
            *((make_record(f"twin{number}", "x"), (1, 0)) for number in range(3)),
            (make_record("hers", "x", owner=Owner.user("ann")), (5, 5)),
        )
        asked = [vector(1, 0), vector(5, 5), vector(-1, 0.5), vector(1, 0)]
        for access in (Access(), ann):
            for limit in (0, 1, 4, 100):
                with backend.read() as reader:
                    together = reader.nearest_many(asked, seen_by(access), limit)
                    assert together == [reader.nearest(each, seen_by(access), limit) for each in asked]
                    assert reader.nearest_many([], seen_by(access), limit) == []

    def test_time_passes_for_the_vector_leg_too(self, backend: Backend) -> None:
        until = make_record("until", "x", attributes={"valid_to": NEW_YEAR + SECOND})
        since = make_record("since", "y", attributes={"valid_from": NEW_YEAR + 2 * SECOND})
        embed(backend, (until, (1, 0)), (since, (1, 0)))
        seen = [found_by_vector(backend, (1, 0), seen_by(at=NEW_YEAR + n * SECOND)) for n in (0, 1, 2, 0, 3, 1)]
        assert seen == [["until"], [], ["since"], ["until"], ["since"], []]

    def test_filters_of_equal_but_different_values_are_told_apart(self, backend: Backend) -> None:
        one, true = ({"metadata": {"n": value}} for value in (1, True))
        embed(
            backend,
            (make_record("one", "x", attributes=one), (1, 0)),
            (make_record("true", "y", attributes=true), (1, 0)),
        )
        for value, ids in ((1, ["one"]), (True, ["true"]), (1.0, ["one"])):
            assert found_by_vector(backend, (1, 0), seen_by(where=F("n") == value)) == ids
