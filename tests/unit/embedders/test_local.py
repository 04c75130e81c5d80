"""The embedder that needs neither server nor network."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from twofold.embedders import LocalEmbedder, embed_checked, embed_documents, local
from twofold.errors import ConfigurationError, EmbedderOutputError, MissingExtraError

needs_wordllama = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None, reason="the extra 'local' (wordllama) is not installed"
)


def run(code: str) -> str:
    """What a fresh Python prints."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "TRANSFORMERS_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=clean, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_wordllama
def test_paraphrases_are_near_and_vectors_are_of_unit_length() -> None:
    texts = ["A cat sat on the mat", "a kitten was sitting on the rug", "quarterly revenue rose by nine percent"]
    vectors = embed_checked(LocalEmbedder(), texts, "document")
    assert vectors.shape == (3, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > far + 0.2


@needs_wordllama
def test_a_text_has_the_same_vector_in_any_batch() -> None:
    texts = [f"note {number} about " + "long " * (number % 40) + "things" for number in range(600)]
    together = LocalEmbedder().embed(texts, "document")
    for place in (0, 255, 256, 599):
        assert (LocalEmbedder().embed([texts[place]], "query")[0] == together[place]).all()


@needs_wordllama
@pytest.mark.parametrize("text", ["", " ", "  \n \t        ", "𓂀", "\x00"])
def test_a_text_of_unknown_tokens_is_never_ranked(text: str) -> None:
    good, bad, other = embed_documents(LocalEmbedder(), ["hello", text, "world"])
    assert isinstance(good, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert isinstance(bad, EmbedderOutputError)
    assert "text 2 of 3" in str(bad)


@needs_wordllama
def test_a_text_may_hold_anything() -> None:
    vectors = embed_checked(LocalEmbedder(), ["hello \ud800 world", "\U0001f642 smile", "x" * 200_000], "document")
    assert np.isfinite(vectors).all()


def test_what_is_known_without_loading() -> None:
    code = (
        "import sys; from twofold.embedders import LocalEmbedder; e = LocalEmbedder(); "
        "print(e.dimension, e.fingerprint, any(m in sys.modules for m in ('wordllama', 'tokenizers', 'safetensors')))"
    )
    assert run(code) == "256 wordllama:l2_supercat:256 False"


@needs_wordllama
def test_no_network_no_environment_no_logging() -> None:
    code = """
import logging, os, socket, sys
def refuse(*arguments, **options):
    raise AssertionError("it reached for the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
before = dict(os.environ), logging.root.level, list(logging.root.handlers)
from twofold.embedders import LocalEmbedder
vectors = LocalEmbedder().embed(["hello world"], "query")
assert (dict(os.environ), logging.root.level, list(logging.root.handlers)) == before
assert "wordllama" not in sys.modules
print(vectors.shape)
"""
    assert run(code) == "(1, 256)"


@needs_wordllama
def test_the_vectors_are_those_of_wordllama() -> None:
    code = """
import os, numpy as np, wordllama
from twofold.embedders import LocalEmbedder
texts = ["hello world", "the quick brown fox", "Größe \\u4e2d\\u6587 mixed"]
model = wordllama.WordLlama.load(cache_dir=os.path.dirname(wordllama.__file__), disable_download=True)
print(np.abs(model.embed(texts, norm=True) - LocalEmbedder().embed(texts, "query")).max() < 1e-6)
"""
    assert run(code) == "True"


@needs_wordllama
def test_many_threads_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    real = local._load

    def counted() -> local._Model:
        loads.append(1)
        return real()

    monkeypatch.setattr(local, "_loaded", [])
    monkeypatch.setattr(local, "_load", counted)
    threads = [threading.Thread(target=LocalEmbedder().embed, args=(["a"], "query")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert loads == [1]


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_loaded", [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"twofold\[local\]"):
        embed_checked(LocalEmbedder(), ["a"], "query")


def test_a_package_without_the_model_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spec = importlib.machinery.ModuleSpec("wordllama", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(local, "_loaded", [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ConfigurationError, match="does not hold the model l2_supercat"):
        embed_checked(LocalEmbedder(), ["a"], "query")
