"""The reranker that loads weights into this process.

What the library is told is tested with a stand-in for it; what it then gives, with the library itself and a small model
that the test makes, where that is installed: ``pip install sentence-transformers``.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import twofold
from twofold import CrossEncoderReranker, SearchParams
from twofold.errors import ConfigurationError, EmbedderUnreachableError, MissingExtraError
from twofold.rerankers import Reranker, resolve_reranker

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"


class CrossEncoder:
    """What is used of sentence-transformers' class of this name."""

    made: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - each test has a fresh list
    asked: list[tuple[list[tuple[str, str]], dict[str, Any]]] = []  # noqa: RUF012 - likewise
    num_labels = 1
    refuses = False

    def __init__(self, name: str, **options: Any) -> None:
        self.made.append((name, options))
        if self.refuses:
            raise OSError(f"We couldn't connect to 'https://huggingface.co' to load {name}")

    def predict(self, pairs: list[tuple[str, str]], **options: Any) -> Any:
        self.asked.append((pairs, options))
        return [options["activation_fn"](float(len(text))) for _, text in pairs]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[CrossEncoder]:
    made = type("CrossEncoder", (CrossEncoder,), {"made": [], "asked": []})
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=made))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Sigmoid=lambda: sigmoid)))
    return made


def test_it_reads_the_question_with_each_text(library: Any) -> None:
    reranker = CrossEncoderReranker(device="cpu", batch_size=4)
    assert reranker("q", ["a", "abc"]) == [sigmoid(1), sigmoid(3)]
    assert reranker("q", ["ab"]) == [sigmoid(2)]
    assert reranker("q", []) == []
    assert library.made == [(DEFAULT, {"device": "cpu", "local_files_only": False})], "loaded once"
    pairs, options = library.asked[0]
    assert pairs == [("q", "a"), ("q", "abc")]
    assert options == {
        "batch_size": 4, "activation_fn": sigmoid, "show_progress_bar": False, "convert_to_numpy": True
    }  # fmt: skip


def test_where_weights_come_from(library: Any, tmp_path: Path) -> None:
    CrossEncoderReranker("mine", path=tmp_path)("q", ["a"])
    CrossEncoderReranker("mine", download=False)("q", ["a"])
    assert library.made == [
        (str(tmp_path), {"device": None, "local_files_only": True}),
        ("mine", {"device": None, "local_files_only": True}),
    ]


def test_a_model_of_several_labels_is_no_reranker(library: Any) -> None:
    library.num_labels = 3
    with pytest.raises(ConfigurationError, match="'nli' gives 3 labels"):
        CrossEncoderReranker("nli")("q", ["a"])
    with twofold.open(":memory:", reranker="cross-encoder:nli") as store:
        store.add("kettle")
        with pytest.raises(ConfigurationError, match="3 labels"):
            store.search("kettle")


def test_a_refused_download_says_what_is_missing_and_the_search_goes_on(library: Any) -> None:
    library.refuses = True
    with pytest.raises(EmbedderUnreachableError, match="the weights of 'm' are not on this machine and could not"):
        CrossEncoderReranker("m")("q", ["a"])
    with twofold.open(":memory:", reranker=CrossEncoderReranker("m", download=False)) as store:
        store.add("kettle", id="a")
        result = store.search("kettle")
        assert result.ids == ("a",)
        assert result.has("reranker_failed")
        assert "download=False forbids to download them" in result.degradations[0].message
        assert "path= of a folder that holds them (OSError" in result.degradations[0].message


def test_without_the_library_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with twofold.open(":memory:", reranker=CrossEncoderReranker()) as store:
        store.add("kettle")
        with pytest.raises(MissingExtraError, match=r"pip install 'twofold\[sentence-transformers\]'"):
            store.search("kettle")
        assert len(store.search("kettle", params=SearchParams(rerank=0))) == 1


def test_nothing_is_loaded_before_it_is_needed(library: Any) -> None:
    with twofold.open(":memory:", reranker="cross-encoder") as store:
        store.add("kettle")
        store.search("teapot")
        assert library.made == []
        store.search("kettle")
        assert len(library.made) == 1


def test_several_threads_load_it_once_and_take_turns(library: Any) -> None:
    reranker, at_once, most = CrossEncoderReranker(), [0], [0]
    predict = library.predict

    def counting(self: Any, pairs: Any, **options: Any) -> Any:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        try:
            return predict(self, pairs, **options)
        finally:
            at_once[0] -= 1

    library.predict = counting
    threads = [threading.Thread(target=reranker, args=("q", ["a"] * 50)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(library.made) == 1
    assert most == [1]


def test_what_stands_for_a_reranker() -> None:
    assert resolve_reranker(None) is None
    for form, name in (("cross-encoder", f"cross-encoder:{DEFAULT}"), ("cross-encoder:x/y", "cross-encoder:x/y")):
        found = resolve_reranker(form)
        assert isinstance(found, CrossEncoderReranker)
        assert isinstance(found, Reranker)
        assert found.name == name
    own = lambda query, texts: [0.0] * len(texts)  # noqa: E731
    assert resolve_reranker(own) is own
    with pytest.raises(ConfigurationError, match="pass 'cross-encoder', 'cross-encoder:<model>', or a function"):
        resolve_reranker("cohere")
    with pytest.raises(ConfigurationError, match=r"e\.g\. CrossEncoderReranker\(\.\.\.\)"):
        resolve_reranker(CrossEncoderReranker)


@pytest.mark.parametrize(
    "wrong", [{"model": ""}, {"model": 5}, {"path": 5}, {"download": "no"}, {"device": ""}, {"batch_size": 0}]
)
def test_arguments_that_cannot_be_used(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CrossEncoderReranker(**wrong)


# -- the library itself ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of a few thousand random weights, saved as the library saves one."""
    for name in ("sentence_transformers", "transformers", "torch"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "kettle", "teapot", "red", "where"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32, num_labels=1, initializer_range=1.0,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_the_library_itself_reads_and_judges(small_model: Path) -> None:
    from sentence_transformers import CrossEncoder as Real

    texts = ["red kettle", "teapot", "kettle " * 100]
    reranker = CrossEncoderReranker("small", path=small_model, device="cpu")
    scores = reranker("where kettle", texts)
    raw = Real(str(small_model), device="cpu", local_files_only=True).predict(
        [("where kettle", text) for text in texts], activation_fn=lambda logits: logits
    )
    assert scores == pytest.approx([sigmoid(float(logit)) for logit in raw], abs=1e-6)
    assert len(set(scores)) == 3
    with twofold.open(":memory:", reranker=reranker) as store:
        store.add_many([{"id": str(place), "text": text} for place, text in enumerate(texts)])
        found = store.search("where kettle teapot")
        assert not found.degraded
        expected = reranker("where kettle teapot", texts)
        assert {hit.id: hit.score for hit in found} == pytest.approx({str(n): s for n, s in enumerate(expected)})
        assert "reranked by cross-encoder:small" in found[0].why


def test_the_library_itself_says_what_is_missing(small_model: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnreachableError, match="could not be read from"):
        CrossEncoderReranker("small", path=tmp_path / "nowhere")("q", ["a"])
    with pytest.raises(EmbedderUnreachableError, match="download=False forbids to download them"):
        CrossEncoderReranker("nobody/has-this", download=False)("q", ["a"])
