"""The embedders that ship for tests."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from twofold.embedders import Embedder, embed_checked
from twofold.errors import ConfigurationError, InvalidVectorError
from twofold.testing import FailingEmbedder, FakeEmbedder, FlakyEmbedder, TableEmbedder


def test_texts_that_share_words_are_near() -> None:
    texts = ["the cat sat on the mat", "The CAT on a mat!", "stock prices fell sharply", "stocks and their price"]
    vectors = embed_checked(FakeEmbedder(256), texts, "document")
    cosines = vectors @ vectors.T
    assert np.diag(cosines) == pytest.approx(np.ones(4), abs=1e-6)
    assert cosines[0, 1] > 0.6
    assert cosines[2, 3] > max(cosines[0, 2], cosines[1, 3])  # parts of words
    assert abs(cosines[0, 2]) < 0.3


def test_order_case_and_kind_do_not_count() -> None:
    embedder = FakeEmbedder(16)
    one, other = embedder.embed(["Blue sky", "sky, blue blue"], "query")
    assert (one == other).all()
    assert (embedder.embed(["blue SKY"], "document")[0] == one).all()


@pytest.mark.parametrize("dimension", [1, 2, 64, 384])
@pytest.mark.parametrize("text", ["", " ", "?!", "a", "\ud800", "я b c", "\x00"])
def test_every_text_has_a_usable_vector(text: str, dimension: int) -> None:
    assert embed_checked(FakeEmbedder(dimension), [text], "query").shape == (1, dimension)


def test_another_name_is_another_model() -> None:
    one, other = FakeEmbedder(), FakeEmbedder(name="other")
    assert (one.fingerprint, other.fingerprint) == ("fake:64", "other:64")
    assert abs(float(one.embed(["cat"], "query")[0] @ other.embed(["cat"], "query")[0])) < 0.5


def test_the_same_in_every_process() -> None:
    code = (
        "from twofold.testing import FakeEmbedder; import hashlib; "
        "print(hashlib.sha256(FakeEmbedder().embed(['red green blue'], 'query').tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_table_gives_what_it_holds_and_nothing_else() -> None:
    table = TableEmbedder({"a": [3.0, 4.0], "b": [0.0, 1.0]})
    assert table.embed(["b", "a", "b"], "query").tolist() == [[0, 1], [3, 4], [0, 1]]
    assert table.embed([], "query").shape == (0, 2)
    assert (table.dimension, table.fingerprint) == (2, "table:2")
    with pytest.raises(KeyError, match="no vector for 'c'"):
        table.embed(["a", "c"], "query")


def test_a_bad_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="empty"):
        TableEmbedder({})
    with pytest.raises(InvalidVectorError, match="the vector of 'b' has 3 numbers, 2 are expected"):
        TableEmbedder({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(InvalidVectorError, match="the vector of 'a' is all zeros"):
        TableEmbedder({"a": [0, 0]})


def test_the_switch_and_the_counts() -> None:
    flaky = FlakyEmbedder(FakeEmbedder(8))
    assert flaky.embed(["a"], "query").shape == (1, 8)  # type: ignore[union-attr]
    flaky.down = True
    with pytest.raises(ConnectionError):
        flaky.embed(["b"], "query")
    flaky.down = False
    flaky.embed(["c", "d"], "document")
    assert (flaky.calls, flaky.texts) == (3, ["a", "c", "d"])
    assert (flaky.fingerprint, flaky.dimension) == ("fake:8", 8)


def test_the_failing_one_raises_what_it_was_given() -> None:
    failing = FailingEmbedder(RuntimeError("boom"), fingerprint="fake:8", dimension=8)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="boom"):
            failing.embed(["a"], "query")
    assert (failing.calls, failing.fingerprint, failing.dimension) == (2, "fake:8", 8)
    with pytest.raises(ConnectionError):
        FailingEmbedder().embed(["a"], "query")


@pytest.mark.parametrize("embedder", [FakeEmbedder(), TableEmbedder({"a": [1]}), FailingEmbedder(), FlakyEmbedder()])
def test_all_are_embedders(embedder: object) -> None:
    assert isinstance(embedder, Embedder)


def test_nothing_of_pytest_is_needed() -> None:
    code = "import sys, twofold.testing; print('pytest' in sys.modules, 'hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
