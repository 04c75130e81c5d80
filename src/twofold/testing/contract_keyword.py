"""What every backend's keyword leg must do: a part of :mod:`twofold.testing.backend_contract`."""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

import math

import pytest

from twofold.backends.protocol import Backend, Capability, Visibility
from twofold.errors import SearchUnavailableError
from twofold.filters import F
from twofold.testing.contract_rows import TIED_IDS, ids_of, seen_by, stored, ties
from twofold.testing.records import NEW_YEAR, make_record
from twofold.text import KeywordQuery, Term
from twofold.types import Access, Owner

__all__ = ["KeywordContract"]


def found_by_keyword(
    backend: Backend, query: str | KeywordQuery, visible: Visibility | None = None, limit: int = 100
) -> list[str]:
    """The ids that the keyword leg finds."""
    asked = backend.analyzer.query(query) if isinstance(query, str) else query
    with backend.read() as reader:
        candidates = reader.keyword(asked, visible or seen_by(), limit)
    assert all(math.isfinite(candidate.score) and candidate.score >= 0 for candidate in candidates)
    assert candidates == sorted(candidates, key=lambda candidate: -candidate.score)
    return ids_of(backend, [candidate.key for candidate in candidates])


class KeywordContract:
    """The keyword leg."""

    def test_keyword_is_what_is_declared(self, backend: Backend) -> None:
        stored(backend, make_record("a", "kettle"))
        if Capability.KEYWORD in backend.capabilities:
            assert found_by_keyword(backend, "kettle") == ["a"]
            assert backend.info().keyword_problem is None
            return
        with backend.read() as reader, pytest.raises(SearchUnavailableError):
            reader.keyword(backend.analyzer.query("kettle"), seen_by(), 10)
        assert backend.info().keyword_problem

    def test_better_matches_come_first_and_score_higher(self, backend: Backend) -> None:
        # openclaw/openclaw#5767: a clamp of the wrong sign made all scores 0.
        self._needs_keyword(backend)
        stored(
            backend,
            make_record("m2", "a long note that mentions backup once among many other words"),
            make_record("m1", "backup backup plan"),
            *(make_record(f"x{n}", f"unrelated number {n}") for n in range(18)),
        )
        with backend.read() as reader:
            best, second = reader.keyword(backend.analyzer.query("backup"), seen_by(), 10)
        assert ids_of(backend, [best.key, second.key]) == ["m1", "m2"]
        assert best.score > second.score > 0

    def test_bm25_parity_is_what_is_declared(self, backend: Backend) -> None:
        # FTS5's bm25(): k1 1.2, b 0.75, idf ln((N - n + 0.5) / (n + 0.5)), at least 1e-6; sqlite.org/fts5.html.
        if Capability.BM25_PARITY not in backend.capabilities:
            pytest.skip("the backend does not declare BM25_PARITY: its scores are its own")
        texts = ["red fox", "red red dog runs", "blue dog", "green bird sings of blue", "owl"]
        keys = stored(backend, *(make_record(f"{n}", text) for n, text in enumerate(texts)))
        documents = [backend.analyzer.tokens(text) for text in texts]
        query = backend.analyzer.query("red dog")
        mean = sum(map(len, documents)) / len(documents)
        expected: dict[int, float] = {}
        for token in query.tokens:
            holders = sum(token in document for document in documents)
            idf = max(1e-6, math.log((len(documents) - holders + 0.5) / (holders + 0.5)))
            for key, document in zip(keys, documents, strict=True):
                count = document.count(token)
                if count:
                    length = 1 - 0.75 + 0.75 * len(document) / mean
                    score = idf * count * (1.2 + 1) / (count + 1.2 * length)
                    expected[key] = expected.get(key, 0.0) + score
        with backend.read() as reader:
            assert dict(reader.keyword(query, seen_by(), 10)) == pytest.approx(expected)

    def test_terms_are_words_phrases_and_beginnings(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "alpha beta"), make_record("b", "beta alpha"), make_record("c", "alphabet"))
        assert found_by_keyword(backend, KeywordQuery((Term(("alpha", "beta")),))) == ["a"]
        assert sorted(found_by_keyword(backend, KeywordQuery((Term(("alph",), prefix=True),)))) == ["a", "b", "c"]
        assert found_by_keyword(backend, KeywordQuery((Term(("alph",)),))) == []
        assert found_by_keyword(backend, KeywordQuery()) == []

    def test_weight_counts(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "red"), make_record("b", "fox"), *(make_record(f"{n}", "x") for n in range(9)))

        def ask(red: int, fox: int) -> list[str]:
            return found_by_keyword(backend, KeywordQuery((Term(("red",), red), Term(("fox",), fox))))

        assert ask(2, 1) == ["a", "b"]
        assert ask(1, 2) == ["b", "a"]

    def test_nothing_in_a_token_is_an_operator(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "plain"))
        for token in ('"', "a\"b'c", "NEAR(", "*", "text:plain", "-", "^plain", "{", "OR", "AND", "NOT", "(", "+"):
            assert found_by_keyword(backend, KeywordQuery((Term((token,)),))) == []

    def test_very_many_terms(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "w511"))
        terms = tuple(Term((f"w{n}",), weight=2) for n in range(512))
        assert found_by_keyword(backend, KeywordQuery(terms)) == ["a"]

    def test_keyword_sees_only_the_visible_and_cuts_after_that(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        others = (make_record(f"o{n}", "kettle", owner=Owner.user("u2")) for n in range(30))
        stored(
            backend,
            *others,
            make_record("mine", "a kettle among many many other words", owner=Owner.user("u1")),
            make_record("old", "kettle", attributes={"archived_at": NEW_YEAR}),
            make_record("shared", "this kettle has metadata and even more words", attributes={"metadata": {"n": 1}}),
        )
        access = Access(user="u1")
        assert found_by_keyword(backend, "kettle", seen_by(access), limit=1) == ["mine"]
        assert found_by_keyword(backend, "kettle", seen_by(access)) == ["mine", "shared"]
        assert found_by_keyword(backend, "kettle", seen_by(access, F("n") == 1)) == ["shared"]
        assert found_by_keyword(backend, "kettle", seen_by(access, include_archived=True), limit=1) == ["old"]
        assert found_by_keyword(backend, "kettle", seen_by(access), limit=0) == []

    def test_equal_scores_are_ordered_by_identity(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, *ties("kettle"))
        assert found_by_keyword(backend, "kettle") == TIED_IDS
        assert found_by_keyword(backend, "kettle", limit=2) == TIED_IDS[:2]

    def test_tags_are_searched(self, backend: Backend) -> None:
        # susomejias/rembric#254: words of removed tags stayed in the index.
        self._needs_keyword(backend)
        (key,) = stored(backend, make_record("m1", "pager note", attributes={"tags": ("urgent", "ops")}))
        assert found_by_keyword(backend, "urgent") == ["m1"]
        with backend.write() as writer:
            writer.replace(key, make_record("m1", "pager note", attributes={"tags": ("done",)}), None)
        assert found_by_keyword(backend, "urgent") == []
        assert found_by_keyword(backend, "done") == ["m1"]
        with backend.write() as writer:
            writer.delete([key])
        assert found_by_keyword(backend, "done pager") == []
        assert backend.check().ok

    def test_replaced_words_are_gone(self, backend: Backend) -> None:
        # mareforma/mareforma#31: a stale row of the index still matched.
        self._needs_keyword(backend)
        (key,) = stored(backend, make_record("m1", "kettle"))
        with backend.write() as writer:
            writer.replace(key, make_record("m1", "teapot"), None)
            assert writer.keyword(backend.analyzer.query("kettle"), seen_by(), 10) == []
        assert found_by_keyword(backend, "kettle") == []
        assert found_by_keyword(backend, "teapot") == ["m1"]
        assert backend.check().ok

    def test_document_frequencies(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "red red fox"), make_record("b", "red dog", owner=Owner.user("u1")))
        with backend.read() as reader:
            assert reader.document_frequencies(["red", "fox", "absent", "q\"'"]) == {"red": 2, "fox": 1}
            assert reader.document_frequencies([]) == {}

    def test_adjacent(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        keys = stored(
            backend, make_record("a", "red fox red dog"), make_record("b", "fox red dog"), make_record("c", "dog red")
        )
        with backend.read() as reader:
            found = reader.adjacent([("red", "fox"), ("red", "dog")], [*keys, 999_999])
            assert found == {keys[0]: 2, keys[1]: 1}
            assert reader.adjacent([("red", "dog")], keys[:1]) == {keys[0]: 1}
            assert reader.adjacent([], keys) == {}
            assert reader.adjacent([("red", "dog")], []) == {}

    def test_keyword_fields(self, backend: Backend) -> None:
        """Each record names its fields that hold a word of the query; no other record is named."""
        self._needs_keyword(backend)
        keys = stored(backend, make_record("a", "a red fox"), make_record("b", "a dog"))
        (field,) = backend.fields
        with backend.read() as reader:
            query = backend.analyzer.query("red foxes")
            assert reader.keyword_fields(query, [*keys, 999_999]) == {keys[0]: (field,)}
            assert reader.keyword_fields(query, keys[1:]) == {}
            assert reader.keyword_fields(query, []) == {}

    def test_reindexing_changes_no_answer(self, backend: Backend) -> None:
        self._needs_keyword(backend)
        stored(backend, make_record("a", "kettle"), make_record("b", "kettle teapot"))
        before = found_by_keyword(backend, "kettle teapot")
        backend.reindex()
        backend.reindex()
        assert found_by_keyword(backend, "kettle teapot") == before
        assert backend.check().ok

    @staticmethod
    def _needs_keyword(backend: Backend) -> None:
        if Capability.KEYWORD not in backend.capabilities:
            pytest.skip("the backend does not declare KEYWORD; test_keyword_is_what_is_declared looks at that")
