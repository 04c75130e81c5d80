"""What ranking asks of every backend: a part of :mod:`twofold.testing.backend_contract`."""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import numpy as np
import pytest

from twofold.backends.protocol import Backend, Candidate, Capability, Visibility
from twofold.errors import InvalidVectorError
from twofold.filters import F
from twofold.ranking import Standing, background_of, composite
from twofold.ranking.calibration import SAMPLES
from twofold.testing.contract_rows import seen_by, stored
from twofold.testing.contract_vectors import embed, vector
from twofold.testing.records import NEW_YEAR, make_record, make_vectors
from twofold.text import KeywordQuery, Term
from twofold.types import Access, Owner

__all__ = ["RankingContract"]

NO_KEY: Final = 999_999_999
"""A key that nothing has."""
MANY: Final = 1_000

TEXTS: Final = (
    "red fox", "a fox, big and red", "red dog", "the big red dog runs with a fox", "blue owl", "fox", "red red red fox",
)  # fmt: skip


def _keyword(
    backend: Backend,
    query: KeywordQuery,
    visible: Visibility | None = None,
    limit: int = MANY,
    *,
    every: bool = False,
    composite: bool = False,
) -> list[Candidate]:
    with backend.read() as reader:
        return reader.keyword(query, visible or seen_by(), limit, every=every, composite=composite)


def _holds(tokens: Sequence[str], term: Term) -> bool:
    """Whether a text of these tokens has the term."""
    last = len(term.tokens) - 1
    return any(
        all(
            tokens[start + place].startswith(token) if term.prefix and place == last else tokens[start + place] == token
            for place, token in enumerate(term.tokens)
        )
        for start in range(len(tokens) - last)
    )


class RankingContract:
    """Both legs' scores of any record, all of a query's terms, and what priors look at."""

    # -- the keyword leg ------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "terms",
        [
            (Term(("red",)), Term(("fox",))),
            (Term(("red",), weight=2), Term(("dog",))),
            (Term(("red", "fox")), Term(("fox",))),
            (Term(("fox",)), Term(("bi",), prefix=True)),
            (Term(("red",)), Term(("nowhere",))),
            (Term(("red",)),),
            (),
        ],
        ids=["two", "weighted", "a phrase", "a beginning", "one that is nowhere", "one", "none"],
    )
    def test_every_term_of_a_query_can_be_asked_for(self, backend: Backend, terms: tuple[Term, ...]) -> None:
        self._needs_keyword(backend)
        keys = stored(backend, *(make_record(f"{n}", text) for n, text in enumerate(TEXTS)))
        documents = dict(zip(keys, map(backend.analyzer.tokens, TEXTS), strict=True))
        query = KeywordQuery(terms)
        any_of_them = _keyword(backend, query)
        assert {key for key, _ in any_of_them} == {
            key for key, tokens in documents.items() if any(_holds(tokens, term) for term in terms)
        }
        all_of_them = [
            candidate for candidate in any_of_them if all(_holds(documents[candidate.key], term) for term in terms)
        ]
        assert _keyword(backend, query, every=True) == all_of_them, "with the same scores, in the same order"
        assert _keyword(backend, query, limit=1, every=True) == all_of_them[:1]

    def test_every_term_is_asked_of_the_visible_only(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        hidden, half, whole, filtered = stored(
            backend,
            make_record("hidden", "red fox", owner=Owner.user("u2")),
            make_record("half", "red"),
            make_record("whole", "a red fox that has more words"),
            make_record("filtered", "red fox", attributes={"metadata": {"n": 1}}),
        )
        query = KeywordQuery((Term(("red",)), Term(("fox",))))
        mine = seen_by(Access(user="u1"))
        assert {key for key, _ in _keyword(backend, query, every=True)} == {hidden, whole, filtered}
        assert [key for key, _ in _keyword(backend, query, mine, every=True)] == [filtered, whole]
        only = seen_by(Access(user="u1"), ~(F("n") == 1))
        assert [key for key, _ in _keyword(backend, query, only, 1, every=True)] == [whole]
        assert half not in {key for key, _ in _keyword(backend, query, every=True)}

    def test_a_composite_score_is_bm25_times_strength_and_importance(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        standing = [(1.0, 0.5), (0.25, 1.0), (2.0, 0.0), (100.0, 0.9), (1e9, 1.0), (1.0, 0.5), (0.5, 0.25)]
        keys = stored(
            backend,
            *(
                make_record(f"{n}", text, attributes={"strength": strength, "importance": importance})
                for n, (text, (strength, importance)) in enumerate(zip(TEXTS, standing, strict=True))
            ),
        )
        of = dict(zip(keys, standing, strict=True))
        query = backend.analyzer.query("red fox")
        plain = _keyword(backend, query)
        expected = {key: score * composite(*of[key]) for key, score in plain}
        ranked = _keyword(backend, query, composite=True)
        assert dict(ranked) == pytest.approx(expected)
        assert [key for key, _ in ranked] == sorted(expected, key=lambda key: -expected[key])
        assert _keyword(backend, query, limit=1, composite=True) == ranked[:1], "the cut comes after it"
        both = KeywordQuery((Term(("red",)), Term(("fox",))))
        with_all = {key for key, _ in _keyword(backend, both, every=True)}
        assert _keyword(backend, both, every=True, composite=True) == [
            candidate for candidate in _keyword(backend, both, composite=True) if candidate.key in with_all
        ]

    def test_equal_composite_scores_are_ordered_by_identity(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        strong = {"strength": 2.0}
        keys = stored(
            backend,
            make_record("b", "kettle", attributes=strong),
            make_record("a", "kettle", attributes=strong),
            make_record("new", "kettle", attributes=strong, at=NEW_YEAR + timedelta(seconds=1)),
            make_record("weak", "kettle", attributes={"strength": 0.5}),
        )
        ranked = _keyword(backend, backend.analyzer.query("kettle"), composite=True)
        assert [key for key, _ in ranked] == [keys[2], keys[1], keys[0], keys[3]]

    def test_keyword_scores_are_those_of_the_leg(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        keys = stored(
            backend,
            *(make_record(f"{n}", text) for n, text in enumerate(TEXTS)),
            make_record("hidden", "red fox of another", owner=Owner.user("u2")),
            make_record("old", "an old red fox", attributes={"archived_at": NEW_YEAR}),
            make_record("tagged", "words", attributes={"tags": ("fox",)}),
        )
        everything = seen_by(include_archived=True)
        for text in ("red fox", "big dogs", "owl", "nowhere"):
            query = backend.analyzer.query(text)
            found = dict(_keyword(backend, query, everything))
            with backend.read() as reader:
                assert reader.keyword_scores(query, [*keys, NO_KEY]) == found
                assert reader.keyword_scores(query, keys[::2]) == {key: found[key] for key in keys[::2] if key in found}
                assert reader.keyword_scores(query, []) == {}
                assert reader.keyword_scores(KeywordQuery(), keys) == {}
            with backend.read() as reader:
                best = reader.keyword(query, everything, 2)
                assert reader.keyword(query, everything, 2, also=[*keys, NO_KEY]) == best
                assert reader.keyword_scores(query, [*keys, NO_KEY]) == found
                assert reader.keyword_scores(query, keys[:1]) == {key: found[key] for key in keys[:1] if key in found}

    def test_coverage_is_the_share_of_words_that_are_there(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(
            backend,
            make_record("mine", "red fox", owner=Owner.user("u1")),
            make_record("other", "blue", owner=Owner.user("u2")),
            make_record("shared", "dog", attributes={"metadata": {"n": 1}, "tags": ("owl",)}),
            make_record("old", "green", attributes={"archived_at": NEW_YEAR}),
        )
        me = seen_by(Access(user="u1"))

        def covered(visible: Visibility, *terms: Term) -> float:
            with backend.read() as reader:
                return reader.coverage(KeywordQuery(terms), visible)

        red, dog, blue, green, owl = (Term((word,)) for word in ("red", "dog", "blue", "green", "owl"))
        assert covered(me, red, dog) == 1.0
        assert covered(me, red, Term(("nowhere",))) == 1 / 2
        assert covered(me, red, blue, green) == 1 / 3, "what is not visible does not count"
        assert covered(seen_by(Access(user="u2")), red, blue, green) == 1 / 3
        assert covered(seen_by(include_archived=True), red, blue, green) == 1.0
        assert covered(seen_by(Access(user="u1"), F("n") == 1), red, dog, owl) == 2 / 3
        assert covered(me, blue) == 0.0
        assert covered(me, Term(("red",), weight=2), Term(("nowhere",))) == 1 / 2, "a word counts once"
        assert covered(me, red, Term(("fox", "red")), Term(("no",), prefix=True)) == 1.0, (
            "phrases and beginnings do not"
        )
        assert covered(me, Term(("nowhere", "red"))) == covered(me) == 1.0

    # -- the vector leg -------------------------------------------------------------------------------------------

    def test_cosines_are_those_of_the_leg(self, backend: Backend) -> None:
        keys = embed(
            backend,
            *((make_record(f"{n}", f"t{n}"), (math.cos(n), math.sin(n), n / 10)) for n in range(20)),
            (make_record("hidden", "h", owner=Owner.user("u2")), (0.5, 0.5, -1)),
            (make_record("old", "o", attributes={"archived_at": NEW_YEAR}), (-1, 0, 0)),
        )
        parts = make_record("parts", {"text": ("one", "two", "three")})
        with backend.write() as writer:
            several = {"text": [[0, 0, 1], [3, 4, 0], [-1, 0, 0]]}
            keys.append(writer.insert(parts, make_vectors(parts, several)))
            waiting = writer.insert(make_record("waiting", "w"), None)
        with backend.read() as reader:
            for asked in (vector(1, 0, 0), vector(0.6, 0.8, 0), vector(-0.1, 0.2, 0.9)):
                found = dict(reader.nearest(asked, seen_by(include_archived=True), MANY).candidates)
                assert found.keys() == set(keys), "all that have a vector"
                assert reader.cosines(asked, [*keys, waiting, NO_KEY]) == found
                assert reader.cosines(asked, keys[::3]) == {key: found[key] for key in keys[::3]}
                assert reader.cosines(asked, [waiting]) == reader.cosines(asked, []) == {}
            assert reader.cosines(vector(3, 4, 0), keys[-1:]) == pytest.approx({keys[-1]: 1.0}), "its best part"

    @pytest.mark.parametrize("bad", [(0, 0), (math.nan, 1), (1, 2, 3)])
    def test_cosines_of_an_unusable_vector_are_refused(self, backend: Backend, bad: tuple[float, ...]) -> None:
        keys = embed(backend, (make_record("a", "x"), (1, 0)))
        with backend.read() as reader, pytest.raises(InvalidVectorError):
            reader.cosines(vector(*bad), keys)

    def test_before_an_embedder_there_are_no_cosines(self, backend: Backend) -> None:
        keys = stored(backend, make_record("a", "x"))
        with backend.read() as reader:
            assert reader.cosines(vector(1, 0), keys) == {}
            assert reader.background(seen_by()) == 0.0

    def test_the_background_is_of_the_visible_only(self, backend: Backend) -> None:
        mine = [(1.0, n / 10, 0.5) for n in range(12)]
        others = [(-1.0, n / 3, 2.0) for n in range(9)]
        embed(
            backend,
            *((make_record(f"m{n}", f"t{n}", owner=Owner.user("u1")), each) for n, each in enumerate(mine)),
            *((make_record(f"o{n}", f"u{n}", owner=Owner.user("u2")), each) for n, each in enumerate(others)),
        )

        def background(*users: str) -> float:
            access = Access.everything() if len(users) > 1 else Access(user=users[0])
            with backend.read() as reader:
                value = reader.background(seen_by(access))
                assert reader.background(seen_by(access)) == value
            with backend.read() as reader:
                assert reader.background(seen_by(access)) == value, "the same bits while nothing is written"
            return value

        assert background("u1") == pytest.approx(background_of(np.array(mine)), abs=1e-6)
        assert background("u2") == pytest.approx(background_of(np.array(others)), abs=1e-6)
        assert background("u1", "u2") == pytest.approx(background_of(np.array([*mine, *others])), abs=1e-6)
        assert background("nobody") == 0.0
        assert background("u1") != background("u2")

    def test_the_background_follows_what_is_written(self, backend: Backend) -> None:
        first, second = embed(backend, (make_record("a", "x"), (1, 0)), (make_record("b", "y"), (1, 1)))
        with backend.read() as reader:
            before = reader.background(seen_by())
        assert before == pytest.approx(2 / SAMPLES * math.sqrt(1 / 2)), "in proportion to how many they are"
        embed(backend, (make_record("c", "z"), (1, 0)))
        with backend.read() as reader:
            assert reader.background(seen_by()) == pytest.approx(3 / SAMPLES * (1 + 2 * math.sqrt(1 / 2)) / 3)
        with backend.write() as writer:
            writer.delete([first, second])
        with backend.read() as reader:
            assert reader.background(seen_by()) == 0.0, "one alone has none"

    def test_the_background_of_many_is_that_of_some(self, backend: Backend) -> None:
        vectors = [(1.0, math.cos(n), math.sin(n)) for n in range(3 * SAMPLES)]
        with backend.write() as writer:
            writer.adopt("fake", 3)
            records = [make_record(f"{n}", f"t{n}") for n in range(len(vectors))]
            pairs = zip(records, vectors, strict=True)
            writer.insert_many([(record, make_vectors(record, each)) for record, each in pairs])
        with backend.read() as reader:
            some = reader.background(seen_by())
        assert some == pytest.approx(background_of(np.array(vectors)), abs=0.1)

    # -- what priors look at --------------------------------------------------------------------------------------

    def test_standings(self, backend: Backend) -> None:
        at = NEW_YEAR + timedelta(microseconds=250_001)
        used = {
            "last_accessed": at + timedelta(hours=1),
            "kind": "insight",
            "project": "p",
            "metadata": {"confidence": 0.25},
        }
        keys = stored(
            backend,
            make_record("plain", "x", at=at),
            make_record("used", "y", at=at, attributes=used),
            make_record("strong", "z", owner=Owner.user("u2"), attributes={"strength": 3.375}),
            make_record("weighty", "", attributes={"importance": 0.75, "archived_at": NEW_YEAR}),
        )
        moment, start = at.timestamp(), NEW_YEAR.timestamp()
        plain = Standing(0.5, 1.0, moment, moment, "semantic", None, None)
        of_used = Standing(0.5, 1.0, moment, moment + 3600, "insight", "p", 0.25)
        strong = Standing(0.5, 3.375, start, start, "semantic", None, None)
        weighty = Standing(0.75, 1.0, start, start, "semantic", None, None)
        expected = dict(zip(keys, (plain, of_used, strong, weighty), strict=True))
        with backend.read() as reader:
            assert reader.standings([*keys, NO_KEY], confidence=True) == expected
            assert reader.standings(keys) == {**expected, keys[1]: of_used._replace(confidence=None)}
            assert reader.standings(keys, uncommon=True) == {keys[2]: strong, keys[3]: weighty}
            assert reader.standings(keys[:2], confidence=True, uncommon=True) == {}
            assert reader.standings(keys[1:2], confidence=True) == {keys[1]: of_used}
            assert reader.standings([]) == {}

    @staticmethod
    def _needs_keyword(backend: Backend) -> None:
        if Capability.KEYWORD not in backend.capabilities:
            pytest.skip("the backend does not declare KEYWORD; test_keyword_is_what_is_declared looks at that")
