"""A library that is missing is told where the store is opened, and not at the first text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import twofold
from twofold import MissingExtraError
from twofold.embedders import PROVIDERS
from twofold.extras import has_extra
from twofold.testing import FakeEmbedder

MODULES = {
    "local": "wordllama",
    "ollama": "ollama",
    "fastembed": "fastembed",
    "sentence-transformers": "sentence_transformers",
    "openai": "openai",
    "voyage": "voyageai",
}


def test_all_providers_are_here() -> None:
    assert set(MODULES) == {"local", *PROVIDERS}


@pytest.mark.parametrize("model", ["", ":a-model"])
@pytest.mark.parametrize("provider", MODULES)
def test_an_embedder_whose_library_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str, model: str
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[provider], None)
    assert not has_extra(provider)
    if provider == "local" and model:
        return  # there is but one
    path = tmp_path / "a.db"
    with pytest.raises(MissingExtraError, match=rf"pip install 'twofold\[{provider}\]'"):
        twofold.open(path, embedder=f"{provider}{model}")
    assert not path.exists()
    with twofold.open(path, embedder=FakeEmbedder()) as store:
        store.add("kettle", id="a")
        with pytest.raises(MissingExtraError):
            store.reembed(f"{provider}{model}")
        assert store.search("kettle", mode="vector").ids == ("a",)


@pytest.mark.parametrize("short_form", ["cross-encoder", "cross-encoder:a-model"])
def test_a_reranker_whose_library_is_missing(monkeypatch: pytest.MonkeyPatch, short_form: str) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"sentence-transformers is not .*'twofold\[sentence-transformers\]'"):
        twofold.open(":memory:", reranker=short_form)


def test_what_is_no_short_form_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with twofold.open(":memory:", embedder=FakeEmbedder(), reranker=lambda _, texts: [0.0] * len(texts)) as store:
        assert store.add("kettle").pending is False
