"""The parts of the benchmark that figures rest on: the data, what counts as found, and what counts as missed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks import stages
from tests.benchmarks.collection import Collection, best_cosines, recall, save_made_up
from tests.benchmarks.data import BLOCK, FUNCTION_WORDS, make_corpus
from tests.benchmarks.goals import GOALS, Goal
from tests.benchmarks.growth import write_growth
from tests.benchmarks.measuring import Taken, in_turns, row, times_faster
from tests.benchmarks.peers import PEERS
from tests.benchmarks.process import LeftOutError, PeerProcess
from tests.benchmarks.stores import open_store

from twofold import SearchParams

RECORDS = BLOCK + 50  # more than one block


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return save_made_up(tmp_path_factory.mktemp("collection"), RECORDS, 4, 6)


def test_a_collection_in_blocks_is_the_corpus_in_memory(collection: Collection) -> None:
    corpus = make_corpus(RECORDS, 4, 6)
    blocks = list(collection.blocks())
    assert [len(texts) for texts, _ in blocks] == [BLOCK, 50]
    assert [text for texts, _ in blocks for text in texts] == corpus.texts
    assert np.array_equal(np.concatenate([vectors for _, vectors in blocks]), corpus.vectors)
    assert np.array_equal(collection.vectors, corpus.vectors)
    assert [text for text, _ in collection.pairs()] == corpus.texts


def test_all_vectors_are_of_unit_length_and_texts_have_20_to_60_words(collection: Collection) -> None:
    for vectors in (collection.vectors, collection.query_vectors):
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert {len(text.split()) for text, _ in collection.pairs()} == set(range(20, 61))


def test_questions_are_of_the_words_that_they_are_said_to_be_of(collection: Collection) -> None:
    texts = [set(text.split()) for text, _ in collection.pairs()][:BLOCK]

    def holders(word: str) -> int:
        return sum(word in words for words in texts)

    asked = collection.questions
    assert [len(kind) for kind in (asked.mixed, asked.common, asked.function, asked.rare)] == [6, 6, 6, 6]
    assert all(holders(word) <= 5 for question in asked.rare for word in question.split())
    assert all(word in FUNCTION_WORDS for question in asked.function for word in question.split())
    assert min(holders(word) for question in asked.common for word in question.split()) > 5
    for question in asked.mixed:
        own = [word for word in question.split() if word not in FUNCTION_WORDS]
        assert 2 <= len(question.split()) <= 13
        assert any(words.issuperset(own) for words in map(set, (text.split() for text, _ in collection.pairs())))


def test_the_nearest_are_those_of_a_product_with_all_vectors(collection: Collection) -> None:
    products = collection.query_vectors @ collection.vectors.T
    assert np.allclose(best_cosines(collection, 10), -np.sort(-products, axis=1)[:, :10])
    among = np.arange(0, RECORDS, 100)
    assert np.allclose(best_cosines(collection, 10, among), -np.sort(-products[:, among], axis=1)[:, :10])


def test_recall_is_the_share_of_the_nearest_that_were_found(collection: Collection) -> None:
    order = np.argsort(-(collection.query_vectors @ collection.vectors.T), axis=1)
    best = best_cosines(collection, 10)
    found = {number: nearest[:10].tolist() for number, nearest in enumerate(order)}
    assert recall(collection, found, best) == 1.0
    assert recall(collection, {number: nearest[:7] for number, nearest in found.items()}, best) == 7 / 10
    assert recall(collection, {number: order[number][-10:].tolist() for number in found}, best) == 0.0
    assert recall(collection, {number: [nearest[0]] * 10 for number, nearest in found.items()}, best) == 1 / 10


def test_contestants_take_turns_and_their_first_answer_does_not_count() -> None:
    asked: list[tuple[str, int]] = []

    def contestant(name: str) -> object:
        return lambda number: asked.append((name, number)) or Taken(0.002, 0.001 * (1 + number), [number])

    taken = in_turns({"a": contestant("a"), "b": contestant("b")}, 3)  # type: ignore[dict-item]
    assert asked[:2] == [("a", 0), ("b", 0)]
    assert [{name for name, _ in asked[place : place + 2]} for place in (2, 4, 6)] == [{"a", "b"}] * 3
    assert [each.found for each in taken["a"]] == [[0], [1], [2]]
    assert row(taken["a"]) == {
        "p50, ms": pytest.approx(2), "p95, ms": pytest.approx(2),
        "CPU p50, ms": pytest.approx(2), "CPU p95, ms": pytest.approx(2 + 0.9 * (3 - 2)),
    }  # fmt: skip
    assert times_faster([Taken(1, 0.5, [])], taken["b"]) == pytest.approx(0.5 / 0.002)


@pytest.mark.parametrize(
    ("is_least", "value", "missed"),
    [(True, 6.0, (8 - 6) / 8), (True, 9.0, 0), (False, 10.0, (10 - 8) / 8), (False, 7.0, 0)],
)
def test_a_goal_is_missed_by_a_share_of_its_bound(is_least: bool, value: float, missed: float) -> None:
    goal = Goal("", "", "", is_least, (8, None, None))
    assert goal.missed_by(value, 10_000) == missed
    assert goal.missed_by(value, 100_000) is None
    assert goal.missed_by(value, 20_000) is None


def test_every_goal_has_a_row_of_its_own() -> None:
    assert len({(goal.row, goal.column) for goal in GOALS}) == len(GOALS)
    assert {goal.row for goal in GOALS if "LangChain" in goal.what or "LanceDB" in goal.what} <= PEERS.keys()


@pytest.mark.skipif(importlib.util.find_spec("lancedb") is not None, reason="the rival is installed here")
def test_a_rival_that_is_not_installed_is_left_out_and_says_so(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(LeftOutError, match="not installed: No module named 'lancedb'"):
        PeerProcess("LanceDB hybrid", collection, tmp_path / "files", sys.executable, 60)


def test_a_rival_whose_python_is_not_there_is_left_out(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(LeftOutError, match="cannot be started"):
        PeerProcess("LanceDB hybrid", collection, tmp_path / "files", str(tmp_path / "python"), 60)


def test_a_page_without_marks_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    page, run = tmp_path / "page.md", tmp_path / "run.json"
    page.write_text("nothing", encoding="utf-8")
    run.write_text('{"about": {"data": "made up", "records": 10000}, "rows": {}}', encoding="utf-8")
    with pytest.raises(SystemExit, match="has no"):
        write_growth([run], page)
    with pytest.raises(SystemExit, match="one of each size"):
        write_growth([run, run], page)
    assert page.read_text(encoding="utf-8") == "nothing"


def test_a_turn_may_be_of_several_questions() -> None:
    asked: list[int] = []

    def contestant(number: int) -> Taken:
        asked.append(number)
        return Taken(1.0, 1.0, [number])

    taken = in_turns({"a": contestant}, 5, at_a_turn=2)
    assert asked == [0, 1, 0, 1, 2, 3, 4]
    assert [each.found for each in taken["a"]] == [[0], [1], [2], [3], [4]]


def test_measuring_leaves_the_store_as_it_was_asked_before(tmp_path: Path) -> None:
    (tmp_path / "collection").mkdir()
    small = save_made_up(tmp_path / "collection", 60, 4, 3)
    path = tmp_path / "store.db"
    stages.adding(small, path)

    def terms() -> list[tuple[str, ...]]:
        with open_store(path, small) as store:
            trace = [store.search(text, params=SearchParams(trace=True)).trace or () for text in small.questions.mixed]
        told = [{stage.name: stage.detail for stage in each}["keyword"]["terms"] for each in trace]
        return [term.tokens for asked in told for term in asked]

    before = terms()
    stages.keyword_leg(small, path)  # which asks for stop words too
    assert terms() == before
