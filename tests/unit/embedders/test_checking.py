"""Whatever an embedder does comes out as checked vectors or a named error."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from twofold.embedders import CallableEmbedder, Embedder, degradation_of, embed_checked, embed_documents
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
)
from twofold.testing import FailingEmbedder, FakeEmbedder, FlakyEmbedder
from twofold.types import DegradationCode


class Answering:
    """Gives whatever ``answer`` says."""

    fingerprint = "answering"

    def __init__(self, answer: Callable[[Sequence[str]], Any], dimension: int | None = 2) -> None:
        self.answer = answer
        self.dimension = dimension

    def embed(self, texts: Sequence[str], kind: str) -> Any:
        return self.answer(texts)


def always(answer: Any, dimension: int | None = 2) -> Embedder:
    return Answering(lambda texts: answer, dimension)


class ReadTimeout(Exception):  # noqa: N818 - called as they call it
    """As HTTP libraries have it: no TimeoutError."""


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        [np.array([1.0, 2.0]), [3, 4]],
    ],
)
@pytest.mark.parametrize("dimension", [2, None])
def test_usable_vectors_come_out_as_float32(answer: Any, dimension: int | None) -> None:
    vectors = embed_checked(always(answer, dimension), ["a", "b"], "query")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4]]


def test_an_iterator_of_vectors_is_taken() -> None:
    embedder = Answering(lambda texts: ([float(len(text)), 1.0] for text in texts))
    assert embed_checked(embedder, ["a", "bb"], "query").tolist() == [[1, 1], [2, 1]]


def test_no_texts_no_call() -> None:
    embedder = FlakyEmbedder(FakeEmbedder(8), down=True)
    assert embed_checked(embedder, [], "query").shape == (0, 8)
    assert embed_documents(embedder, []) == []
    assert embed_checked(always([], None), [], "query").shape == (0, 0)
    assert embedder.calls == 0


def test_the_kind_and_a_list_are_handed_on() -> None:
    seen: list[Any] = []

    class Recording(FakeEmbedder):
        def embed(self, texts: Sequence[str], kind: Any) -> Any:
            seen.append((texts, kind))
            return super().embed(texts, kind)

    embed_checked(Recording(), ("a",), "query")
    embed_documents(Recording(), ("b",))
    assert seen == [(["a"], "query"), (["b"], "document")]


@pytest.mark.parametrize("raised", [ConnectionError("no"), RuntimeError("boom"), KeyError(), ValueError("x" * 5000)])
def test_what_it_raises_is_the_cause(raised: Exception) -> None:
    with pytest.raises(EmbedderUnreachableError, match=r"'failing' failed .*" + type(raised).__name__) as caught:
        embed_checked(FailingEmbedder(raised), ["a"], "query")
    assert caught.value.__cause__ is raised
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("raised", [TimeoutError(), TimeoutError("slow"), ReadTimeout("slow")])
def test_time_outs_of_every_library_are_told_apart(raised: Exception) -> None:
    with pytest.raises(EmbedderTimeoutError, match="did not answer in time") as caught:
        embed_checked(FailingEmbedder(raised), ["a"], "query")
    assert caught.value.__cause__ is raised


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("ask", [lambda e: embed_checked(e, ["a"], "query"), lambda e: embed_documents(e, ["a"])])
def test_what_stops_the_program_passes(raised: BaseException, ask: Callable[[Embedder], Any]) -> None:
    with pytest.raises(type(raised)) as caught:
        ask(FailingEmbedder(raised))
    assert caught.value is raised


@pytest.mark.parametrize("raised", [ConfigurationError("use asearch"), EmbedderTimeoutError("deadline")])
def test_errors_of_twofold_pass_as_they_are(raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught:
        embed_checked(FailingEmbedder(raised), ["a"], "query")
    assert caught.value is raised


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "gave a NoneType; it must give one vector a text"),
        (7, "gave a int"),
        (np.float64(1.0), "gave a float64"),
        (np.array(1.0), "gave a ndarray"),
        ([], "gave 0 vectors for 1 texts"),
        ([[1, 2], [3, 4]], "gave more than 1 vectors for 1 texts"),
        ([1.0, 2.0], "gave more than 1 vectors for 1 texts"),
        ([[1, 2, 3]], "text 1 of 1: its vector has 3 numbers, 2 are expected"),
        ([[]], "its vector is empty"),
        ([[0, 0]], "all zeros"),
        ([[float("nan"), 1]], "NaN"),
        ([[float("inf"), 1]], "infinity"),
        ([["a", "b"]], "real numbers"),
        ([None], "real numbers"),
        (["ab"], "real numbers"),
        ({"a": [1, 2]}, "real numbers"),
    ],
)
def test_bad_output_is_named(answer: Any, said: str) -> None:
    with pytest.raises(EmbedderOutputError, match=said):
        embed_checked(always(answer), ["the secret text"], "query")
    [error] = embed_documents(always(answer), ["the secret text"])
    assert isinstance(error, EmbedderOutputError)
    assert "secret" not in str(error)


def test_an_answer_without_an_end_is_not_waited_for() -> None:
    with pytest.raises(EmbedderOutputError, match="gave more than 2 vectors for 2 texts"):
        embed_checked(always(itertools.repeat([1.0, 2.0])), ["one", "two"], "query")


def test_an_answer_that_breaks_off_is_a_failure_of_the_embedder() -> None:
    def answer(texts: Sequence[str]) -> Any:
        yield [1.0, 2.0]
        raise ConnectionResetError("gone")

    with pytest.raises(EmbedderUnreachableError, match="gone"):
        embed_checked(Answering(answer), ["a", "b"], "query")


def test_one_bad_vector_leaves_the_others_be() -> None:
    answer = [[1, 2], [0, 0], [3, 4], [float("nan"), 1], [1, 2, 3], None]
    got = embed_documents(always(answer), list("abcdef"))
    assert [row.tolist() for row in got if isinstance(row, np.ndarray)] == [[1, 2], [3, 4]]
    assert [isinstance(row, EmbedderOutputError) for row in got] == [False, True, False, True, True, True]
    assert "text 2 of 6" in str(got[1])
    with pytest.raises(EmbedderOutputError, match="text 2 of 6"):
        embed_checked(always(answer), list("abcdef"), "document")


@pytest.mark.parametrize("answer", [[[1, 2]], [[1, 2]] * 3, []])
def test_nothing_is_attached_by_position_if_the_count_differs(answer: Any) -> None:
    got = embed_documents(always(answer), ["a", "b"])
    assert [type(row) for row in got] == [EmbedderOutputError, EmbedderOutputError]


def test_a_failure_concerns_every_document() -> None:
    got = embed_documents(FailingEmbedder(TimeoutError()), ["a", "b"])
    assert [type(row) for row in got] == [EmbedderTimeoutError, EmbedderTimeoutError]


def test_with_unknown_dimension_the_odd_length_out_is_bad() -> None:
    got = embed_documents(always([[1, 2], [1, 2, 3], [3, 4]], None), list("abc"))
    assert [row.tolist() if isinstance(row, np.ndarray) else type(row) for row in got] == [
        [1, 2],
        EmbedderOutputError,
        [3, 4],
    ]
    with pytest.raises(EmbedderOutputError, match="of 3 numbers beside others of 2"):
        embed_checked(always([[1, 2], [1, 2, 3], [3, 4]], None), list("abc"), "query")


def test_with_unknown_dimension_no_length_is_guessed() -> None:
    got = embed_documents(always([[1, 2], [1, 2, 3]], None), list("ab"))
    assert [type(row) for row in got] == [EmbedderOutputError, EmbedderOutputError]
    assert "state its dimension" in str(got[0])


def test_the_dimension_is_asked_after_the_answer() -> None:
    embedder = Answering(lambda texts: [[1.0, 2.0, 3.0]], None)

    def learn(texts: Sequence[str]) -> Any:
        embedder.dimension = 3
        return [[1.0, 2.0]]

    embedder.answer = learn
    with pytest.raises(EmbedderOutputError, match="2 numbers, 3 are expected"):
        embed_checked(embedder, ["a"], "query")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EmbedderUnreachableError("said"), DegradationCode.EMBEDDER_UNREACHABLE),
        (EmbedderTimeoutError("said"), DegradationCode.EMBEDDER_TIMEOUT),
        (EmbedderOutputError("said"), DegradationCode.EMBEDDER_BAD_OUTPUT),
        (EmbeddingError("said"), DegradationCode.EMBEDDER_UNREACHABLE),
    ],
)
def test_each_error_has_its_degradation(error: EmbeddingError, code: DegradationCode) -> None:
    assert (degradation_of(error).code, degradation_of(error).message) == (code, "said")


def test_lone_surrogates_do_not_reach_the_embedder() -> None:
    seen: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0] for _ in texts]

    embed_checked(CallableEmbedder(embed, "m"), ["a\ud800b", "\U0001f534 plain"], "query")
    assert seen == ["a\ufffdb", "\U0001f534 plain"]
