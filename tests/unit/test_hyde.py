"""HyDE in a search: for which questions something is written, what its vector does, and what happens when it fails."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import (
    Access,
    ConfigurationError,
    DegradationCode,
    EmbedderUnreachableError,
    EmbeddingSettings,
    GivenVectors,
    HybridStore,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.config import HYDE_PROMPT
from twofold.store import Search
from twofold.testing import FakeEmbedder, FlakyEmbedder, TableEmbedder

TABLE = {
    "why late?": [1.0, 0.0],
    "The train stood in the snow.": [0.0, 1.0],
    "a train that is late": [1.0, 0.1],
    "snow on the rails": [0.1, 1.0],
    "the timetable": [1.0, 1.0],
    "a somewhat longer question than that": [1.0, 0.0],
}
RECORDS = {"late": "a train that is late", "snow": "snow on the rails", "table": "the timetable"}
WRITES = {"why late?": "The train stood in the snow.", "a somewhat longer question than that": "snow on the rails"}


class Writer:
    """Writes what a table has, and remembers what it was asked."""

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table
        self.asked: list[str] = []

    def __call__(self, question: str) -> str:
        self.asked.append(question)
        return self.table[question]


@pytest.fixture
def writer() -> Writer:
    return Writer(dict(WRITES))


def open_with(writer: Any, embedder: Any = None, **settings: Any) -> HybridStore:
    store = twofold.open(
        ":memory:",
        embedder=TableEmbedder(TABLE) if embedder is None else embedder,
        hyde=writer,
        settings=StoreSettings(**settings),
    )
    store.add_many([{"id": id_, "text": text} for id_, text in RECORDS.items()])
    return store


def cosines(result: SearchResult) -> dict[str, float]:
    return {hit.id: hit.explanation.legs["vector"].raw for hit in result if "vector" in hit.explanation.legs}


def to(vector: Sequence[float]) -> dict[str, float]:
    """The cosine of each record to a vector."""

    def cosine(one: Sequence[float], other: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))

    return {id_: pytest.approx(cosine(vector, TABLE[text]), abs=1e-6) for id_, text in RECORDS.items()}


def never(question: str) -> str:
    raise AssertionError(question)


# -- what its vector does --------------------------------------------------------------------------------------------


def test_the_vector_leg_looks_for_the_mean_of_both_directions(writer: Writer) -> None:
    with open_with(writer) as store:
        assert cosines(store.search("why late?")) == to([1.0, 1.0])
        assert store.search("why late?", mode="vector")[0].id == "table"
        assert writer.asked == ["why late?"]


def test_or_for_what_was_written_alone(writer: Writer) -> None:
    with open_with(writer) as store:
        found = store.search("why late?", mode="vector", params=SearchParams(hyde_vector="replace"))
        assert cosines(found) == to([0.0, 1.0])
        assert found.ids == ("snow", "table", "late")


def test_the_length_of_a_vector_does_not_count(writer: Writer) -> None:
    table = {**TABLE, "The train stood in the snow.": [0.0, 100.0]}
    with open_with(writer, TableEmbedder(table)) as store:
        assert cosines(store.search("why late?")) == to([1.0, 1.0])


def test_where_the_two_are_opposite_it_is_the_questions_own(writer: Writer) -> None:
    table = {**TABLE, "The train stood in the snow.": [-1.0, 0.0]}
    with open_with(writer, TableEmbedder(table)) as store:
        assert cosines(store.search("why late?")) == to([1.0, 0.0])


def test_keywords_still_come_from_the_question(writer: Writer) -> None:
    with open_with(writer) as store:
        found = store.search("why late?", params=SearchParams(trace=True))
        assert found.trace is not None
        keyword = next(stage for stage in found.trace if stage.name == "keyword")
        assert keyword.output == ("late",)
        assert [term.tokens for term in keyword.detail["terms"]] == [("late",)]


def test_it_is_embedded_as_a_document(writer: Writer) -> None:
    asked: list[tuple[str, list[str]]] = []

    class Telling(FakeEmbedder):
        def embed(self, texts: Sequence[str], kind: Any) -> Any:
            asked.append((kind, list(texts)))
            return super().embed(texts, kind)

    with twofold.open(":memory:", embedder=Telling(), hyde=writer) as store:
        for _ in range(2):
            store.search("why late?")
    assert asked == [("query", ["why late?"]), ("document", ["The train stood in the snow."])]


def test_in_a_store_of_several_fields_it_is_compared_with_each(writer: Writer) -> None:
    for how in ("best", "mean"):
        settings = StoreSettings(fields=("head", "body"))
        with twofold.open(":memory:", embedder=TableEmbedder(TABLE), hyde=writer, settings=settings) as store:
            store.add(fields={"head": "a train that is late", "body": "the timetable"}, id="a")
            params = SearchParams(hyde_vector="replace", field_aggregation=how)  # type: ignore[arg-type]
            cosine = {"head": 0.1 / math.hypot(1, 0.1), "body": math.sqrt(0.5)}
            expected = cosine["body"] if how == "best" else sum(cosine.values()) / 2
            found = store.search("why late?", params=params)
            assert cosines(found) == {"a": pytest.approx(expected, abs=1e-6)}


# -- when it is asked ------------------------------------------------------------------------------------------------


def test_for_short_questions_or_always_or_never(writer: Writer) -> None:
    longer = "a somewhat longer question than that"
    with open_with(writer) as store:
        for hyde, words, asked in (
            ("short", 5, []),
            ("short", 6, [longer]),
            ("never", 6, []),
            ("always", 1, [longer]),
        ):
            writer.asked.clear()
            params = SearchParams(hyde=hyde, hyde_words=words)  # type: ignore[arg-type]
            store._parts.helpers.hyde._remembered._values.clear()  # type: ignore[union-attr]
            found = store.search(longer, params=params)
            assert writer.asked == asked
            assert ("hyde" in found.timings) is bool(asked)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("one two three", 3),
        ("one, two - three!", 3),
        ("what is ERR_CONN_REFUSED_7?", 3),
        ("電車はなぜ遅い", 4),  # seven characters
        ("電", 1),
        ("🙂 🙂 fine", 1),
    ],
)
def test_how_words_are_counted(question: str, words: int) -> None:
    asked: list[str] = []

    def writes(text: str) -> str:
        asked.append(text)
        return "an answer"

    with twofold.open(":memory:", embedder=FakeEmbedder(), hyde=writes) as store:
        store.search(question, params=SearchParams(hyde_words=words))
        assert asked == [question]
        if words > 1:
            store.search(f"{question} ", params=SearchParams(hyde_words=words - 1))
            assert asked == [question]


def test_presets_ask_it_for_short_questions(writer: Writer) -> None:
    with open_with(writer) as store:
        for name in twofold.PRESETS:
            assert "hyde" in store.search("why late?", preset=name).timings
    assert writer.asked == ["why late?"]


def test_it_is_not_asked_where_no_vector_is_looked_for(writer: Writer) -> None:
    with open_with(never) as store:
        store.search("why late?", mode="keyword")
        store.search("why late?", vector=[1.0, 0.0])
        store.search("why late?", params=SearchParams(vector_weight=0))
        store.search("?!")
    with twofold.open(":memory:", hyde=never) as store:
        store.add("late")
        assert store.search("why late?").ids
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), hyde=never) as store:
        store.add("late", vector=[1, 0])
        assert store.search("why late?").ids


def test_without_a_writer_short_means_nothing_and_always_is_an_error() -> None:
    with open_with(None) as store:
        assert not store.search("why late?").degraded
        with pytest.raises(ConfigurationError, match=r"hyde='always' needs who writes: twofold\.open\(\.\.\., hyde="):
            store.search("why late?", params=SearchParams(hyde="always"))


def test_the_embedder_that_is_down_is_found_out_first() -> None:
    embedder = FlakyEmbedder(TableEmbedder(TABLE))
    with open_with(never, embedder, embedding=EmbeddingSettings(fill_in=False)) as store:
        embedder.down = True
        found = store.search("why late?")
        assert [each.code for each in found.degradations] == [DegradationCode.EMBEDDER_UNREACHABLE]


def test_of_several_phrasings_it_writes_for_the_question(writer: Writer) -> None:
    with open_with(writer) as store:
        store.search("why late?", phrasings=["the timetable"])
        assert writer.asked == ["why late?"]
        found = store.search("why late?", phrasings=["the timetable"], params=SearchParams(hyde="always"))
        assert not found.degraded


# -- what is remembered ----------------------------------------------------------------------------------------------


def test_what_was_written_is_remembered_up_to_a_bound(writer: Writer) -> None:
    with open_with(writer, hyde_cache_size=1) as store:
        params = SearchParams(hyde="always")
        for question in ("why late?", "why late?", "a somewhat longer question than that", "why late?"):
            store.search(question, params=params)
        assert writer.asked == ["why late?", "a somewhat longer question than that", "why late?"]
    writer.asked.clear()
    with open_with(writer, hyde_cache_size=0) as store:
        for _ in range(2):
            store.search("why late?")
        assert writer.asked == ["why late?"] * 2


def test_what_was_written_for_one_asker_is_shown_to_no_other() -> None:
    asks: ContextVar[str] = ContextVar("asks")

    def knows_who_asks(question: str) -> str:
        return f"{asks.get()} lives at {asks.get()}'s address"

    def written(store: HybridStore, user: str) -> set[str]:
        asks.set(user)
        access, params = Access(user=user), SearchParams(trace=True)
        found = [store.search("my address?", access=access, params=params)]
        found += store.search_many(["my address?", "where do I live?"], access=access, params=params)
        return {stage.detail["written"] for each in found for stage in each.trace or () if stage.name == "hyde"}

    with open_with(knows_who_asks, FakeEmbedder()) as store:
        for user in ("ann", "ben", "ann"):
            assert written(store, user) == {f"{user} lives at {user}'s address"}


def test_a_failure_is_not_remembered() -> None:
    writer = Writer({})
    with open_with(writer) as store:
        assert store.search("why late?").has("hyde_failed")
        writer.table = dict(WRITES)
        assert not store.search("why late?").degraded


# -- when it fails ---------------------------------------------------------------------------------------------------


def refuses(question: str) -> str:
    raise ConnectionError("refused")


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        (refuses, "the HyDE writer 'refuses' failed (ConnectionError: refused)"),
        (lambda question: None, "gave a NoneType; it must give a text"),
        (lambda question: b"bytes", "gave a bytes; it must give a text"),
        (lambda question: "", "gave a text without words"),
        (lambda question: " ... ", "gave a text without words"),
        (lambda question: "x" * 20_001, "gave a text of 20,001 characters; it must give one of at most 20,000"),
        (lambda question: "not in the table", "no vector for"),
    ],
)
def test_its_failure_is_a_degradation_and_the_questions_own_vector_is_used(
    writes: Callable[[str], Any], said: str
) -> None:
    with open_with(writes) as store:
        found = store.search("why late?", params=SearchParams(trace=True))
        assert cosines(found) == to([1.0, 0.0])
        assert [each.code for each in found.degradations] == [DegradationCode.HYDE_FAILED]
        assert said in found.degradations[0].message
        assert found.degradations[0].message.endswith("; the question's own vector was used")
        assert found.trace is not None
        assert said in next(stage for stage in found.trace if stage.name == "hyde").detail["failed"]


@pytest.mark.parametrize("error", [ValueError, EmbedderUnreachableError])
def test_what_it_says_of_one_question_is_told_to_no_other(error: type[Exception]) -> None:
    def repeats(question: str) -> str:
        raise error(f"cannot write for {question}")

    embedding = EmbeddingSettings(failures_to_open=1, first_pause=3600, longest_pause=3600)
    with open_with(repeats, FakeEmbedder(), embedding=embedding) as store:
        assert "my secret" in store.search("my secret").degradations[0].message
        said = store.search("another").degradations[0].message
        assert "was not asked" in said
        assert "secret" not in said


@pytest.mark.parametrize("refusal", ["", "...", "x" * 20_001])
def test_a_question_that_it_refuses_takes_it_from_no_other(refusal: str) -> None:
    def writes(question: str) -> str:
        return refusal if question.startswith("bad") else "an answer"

    embedding = EmbeddingSettings(failures_to_open=1, first_pause=3600, longest_pause=3600)
    with open_with(writes, FakeEmbedder(), embedding=embedding) as store:
        assert all(store.search(f"bad {number}").has("hyde_failed") for number in range(3))
        assert not store.search("good").degraded


def test_one_that_hangs_is_not_waited_for_beyond_its_deadline_and_then_left_alone() -> None:
    gate, asked = threading.Event(), list[str]()

    def hangs(question: str) -> str:
        asked.append(question)
        gate.wait(30)
        return "an answer"

    embedding = EmbeddingSettings(first_pause=3600, longest_pause=3600)
    with twofold.open(
        ":memory:", embedder=FakeEmbedder(), hyde=hangs, settings=StoreSettings(hyde_deadline=0.05, embedding=embedding)
    ) as store:
        store.add("late", id="a")
        try:
            first, second = store.search("why late?"), store.search("who is late?")
        finally:
            gate.set()
        assert "gave no answer within 0.05 s" in first.degradations[0].message
        assert "was not asked" in second.degradations[0].message
        assert first.ids == second.ids == ("a",)
        assert asked == ["why late?"]


def test_an_async_one_is_refused_where_it_would_block_the_loop() -> None:
    async def later(question: str) -> str:
        return WRITES[question]

    async def asks(store: HybridStore) -> SearchResult:
        for call in (lambda: store.search("why late?"), lambda: store.search_many(["why late?", "late, why?"])):
            with pytest.raises(ConfigurationError, match=r"await store\.asearch"):
                call()
        return await store.asearch("why late?")

    with open_with(later, TableEmbedder({**TABLE, "late, why?": [1.0, 0.0]})) as store:
        assert cosines(asyncio.run(asks(store))) == to([1.0, 1.0])
        assert cosines(store.search("why late?")) == to([1.0, 1.0])


async def test_an_async_one_runs_on_the_callers_loop() -> None:
    loops = []

    async def later(question: str) -> str:
        loops.append(asyncio.get_running_loop())
        return "an answer"

    with twofold.open(":memory:", embedder=FakeEmbedder(), hyde=later) as store:
        await store.asearch("why late?")
        await store.asearch_many(["one", "two", "three"])
    assert loops == [asyncio.get_running_loop()] * 4


# -- who writes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["complete", "invoke"])
@pytest.mark.parametrize(
    "wrapped",
    [str, lambda text: SimpleNamespace(text=text), lambda text: SimpleNamespace(content=text, text=None)],
    ids=["text", "with text", "with content"],
)
def test_a_language_model_is_given_a_prompt_with_the_question(method: str, wrapped: Callable[[str], Any]) -> None:
    prompts: list[str] = []

    def answers(prompt: str) -> Any:
        prompts.append(prompt)
        return wrapped("The train stood in the snow.")

    model = SimpleNamespace(**{method: answers})
    with open_with(model) as store:
        assert cosines(store.search("why late?")) == to([1.0, 1.0])
    with open_with(model, hyde_prompt="Answer {question} {in braces}") as store:
        store.search("why late?")
    assert prompts == [HYDE_PROMPT.replace("{question}", "why late?"), "Answer why late? {in braces}"]


async def test_a_language_model_may_be_async() -> None:
    class Model:
        async def complete(self, prompt: str) -> Any:
            return SimpleNamespace(text="The train stood in the snow.")

    with open_with(Model()) as store:
        assert cosines(await store.asearch("why late?")) == to([1.0, 1.0])


@pytest.mark.parametrize("wrong", ["gpt", 5, Writer, {"a": 1}])
def test_what_is_no_writer_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"hyde is what writes|pass an instance"):
        twofold.open(":memory:", hyde=wrong)


# -- with the rest ---------------------------------------------------------------------------------------------------


def test_the_trace_shows_what_was_written(writer: Writer) -> None:
    with open_with(writer) as store:
        found = store.search("why late?", params=SearchParams(trace=True))
        assert found.trace is not None
        assert [stage.name for stage in found.trace][:3] == ["embed", "hyde", "vector"]
        assert found.trace[1].detail == {"written": "The train stood in the snow.", "vector": "join"}
        assert store.search("why late?").trace is None


def test_many_questions_are_written_for_at_the_same_time_and_embedded_in_one_call() -> None:
    calls: list[tuple[str, int]] = []
    together = threading.Barrier(3)

    class Telling(FakeEmbedder):
        def embed(self, texts: Sequence[str], kind: Any) -> Any:
            calls.append((kind, len(texts)))
            return super().embed(texts, kind)

    def writes(question: str) -> str:
        together.wait(30)
        return f"an answer to {question}"

    questions = ["one", "two", "three", "a question of more words than five"]
    with twofold.open(":memory:", embedder=Telling(), hyde=writes) as store:
        store.add("something")
        calls.clear()
        found = store.search_many(questions)
        assert sorted(calls) == [("document", 3), ("query", 4)]
        assert ["hyde" in each.timings for each in found] == [True, True, True, False]
        for question, each in zip(questions, found, strict=True):
            alone = store.search(question)
            assert cosines(alone) == cosines(each)


def test_of_many_one_may_fail(writer: Writer) -> None:
    table = {**TABLE, "late?": [1.0, 0.0]}
    with open_with(writer, TableEmbedder(table)) as store:
        good, bad = store.search_many(["why late?", "late?"])
        assert (good.degraded, bad.degraded) == (False, True)
        assert cosines(good) == to([1.0, 1.0])
        assert cosines(bad) == to([1.0, 0.0])


async def test_every_way_to_search_uses_it(writer: Writer) -> None:
    with open_with(writer) as store:
        expected = cosines(store.search("why late?"))
        assert cosines(await store.asearch("why late?")) == expected
        assert cosines(store.search_many(["why late?"])[0]) == expected
        assert cosines(store.batch([Search("why late?")])[0]) == expected
        assert np.argmax(list(expected.values())) == list(expected).index("table")
