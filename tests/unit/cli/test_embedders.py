"""Which embedder and which index a command works with, and what ``info`` says of them."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import pytest

import twofold
from twofold.config import INDEXES
from twofold.embedders import BreakerState, EmbedderState
from twofold.testing import FakeOllama, FakeOpenAI
from twofold.vectors import faiss_library

HAS_LOCAL = importlib.util.find_spec("wordllama") is not None
needs_local = pytest.mark.skipif(not HAS_LOCAL, reason="the extra 'local' is not installed")
needs_ollama = pytest.mark.skipif(
    importlib.util.find_spec("ollama") is None, reason="the extra 'ollama' is not installed"
)
NOMIC = twofold.OllamaEmbedder().fingerprint


@pytest.fixture
def ollama(monkeypatch):
    with FakeOllama(models=("nomic-embed-text", "all-minilm:33m")) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.host)
        yield server


@needs_ollama
@pytest.mark.parametrize(
    ("given", "fingerprint"),
    [("ollama", NOMIC), ("ollama:all-minilm:33m", twofold.OllamaEmbedder("all-minilm:33m").fingerprint)],
)
def test_a_file_made_with_ollama_is_opened_with_the_same_model_again(run, ollama, given, fingerprint):
    assert run("add", "a red apple", "a green pear", "--embedder", given).code == 0
    said = run("info", "--json").json
    assert said["embedder"] == said["vectors_of"] == fingerprint
    assert said["embedder_because"] == "the file's vectors are of it"
    asked = len(ollama.requests)
    (first, _) = run("search", "a red apple", "--why").cells
    assert first[1] == first[3] == "1"  # the rank in both legs
    assert len(ollama.requests) > asked


@needs_ollama
def test_without_ollama_s_library_keywords_answer_and_how_to_get_it_is_said(run, ollama, monkeypatch):
    run("add", "a red apple", "--embedder", "ollama")
    monkeypatch.setattr("twofold.cli.opening.has_extra", lambda provider: False)
    found = run("search", "apple")
    assert (found.code, len(found.lines)) == (0, 1)
    assert "keywords answered alone" in found.err
    assert "pip install 'twofold[ollama]'" in found.err


@needs_ollama
def test_an_ollama_model_with_prefixes_of_its_own_is_not_mistaken_for_the_usual_one(run, ollama):
    embedder = twofold.OllamaEmbedder(query_prefix="ask: ")
    with twofold.open("twofold.db", embedder=embedder) as store:
        store.add("a red apple")
    said = run("info", "--json").json
    assert said["embedder"] is None
    assert "cannot ask" in said["embedder_because"]


@pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="the extra 'openai' is not installed")
def test_a_file_made_with_an_openai_model_is_opened_with_it_again(run, monkeypatch):
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-shown")
        assert run("add", "a red apple", "--embedder", "openai").code == 0
        info = run("info", "--json")
        assert (info.json["embedder"], info.json["pending"]) == ("openai:text-embedding-3-small", 0)
        (first,) = run("search", "a red apple", "--why").cells
        assert first[1] == first[3] == "1"  # the rank in both legs
        assert {request.key for request in server.requests} == {"sk-not-shown"}
        assert "sk-not-shown" not in info.out + info.err
        with twofold.open("twofold.db") as store:
            assert "sk-not-shown" not in str(store.info())


@pytest.mark.parametrize("name", ["nonsense", "", "ollama:", "Local"])
@pytest.mark.parametrize("command", [("add", "x"), ("search", "x"), ("info",), ("embed-pending",), ("demo",)])
def test_an_unknown_embedder_is_refused_with_what_there_is(run, tmp_path, command, name):
    ran = run(*command, "--embedder", name)
    assert (ran.code, ran.out) == (2, "")
    assert " ".join(ran.err.split()) == (
        "twofold: --embedder is auto, none, local, ollama, ollama:<model>, fastembed, fastembed:<model>, "
        "sentence-transformers, sentence-transformers:<model>, openai, openai:<model>, voyage, voyage:<model>, "
        f"not {name!r}"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("add", "x"), ("search", "x"), ("info",), ("embed-pending",)])
def test_an_unknown_index_is_refused_with_what_there_is(run, tmp_path, command):
    ran = run(*command, "--index", "psychic")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"twofold: index is one of {', '.join(INDEXES)}, not 'psychic'\n"
    assert not list(tmp_path.iterdir())


@needs_local
@pytest.mark.parametrize("index", INDEXES)
def test_every_index_finds_the_same_and_info_names_it_or_its_problem(run, index):
    run("add", "a red apple", "a green pear", "--index", index)
    assert run("search", "a red apple", "--index", index, "--mode", "vector").cells[0][-1] == "a red apple"
    said = run("info", "--index", index, "--json").json
    expected = "exact" if index == "auto" else index
    assert said["vector_index"] == expected or said["vector_index_problem"]


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="the extra 'faiss' is not installed")
def test_info_names_the_index_in_use(run):
    run("add", "x", "--embedder", "none")
    assert ["vector_index", "faiss-flat"] in run("info", "--index", "faiss-flat").cells
    assert ["vector_index", "exact"] in run("info", "--index", "exact").cells


def test_info_names_what_is_wrong_with_the_index(run, monkeypatch):
    run("add", "x", "--embedder", "none")
    monkeypatch.setitem(sys.modules, "faiss", None)  # as if it were not installed
    faiss_library._loaded.cache_clear()
    said = run("info", "--index", "faiss-flat", "--json").json
    assert said["vector_index"] == "exact"
    assert "faiss" in said["vector_index_problem"]
    rows = dict(run("info", "--index", "faiss-flat").cells)
    assert rows["vector_index_problem"] == said["vector_index_problem"]


@needs_local
def test_info_tells_how_the_embedder_does_and_what_waits_for_it(run, monkeypatch):
    run("add", "one", "two", "--embedder", "none")
    said = run("info", "--embedder", "local", "--json").json
    assert said["embedder_state"] == {"breaker": "closed", "failures": 0, "last_error": None, "next_try": None}
    run("add", "three", "--embedder", "local")
    assert run("info", "--json").json["pending"] == 2
    info = twofold.HybridStore.info
    down = EmbedderState(BreakerState.OPEN, failures=3, last_error="connection refused", next_try=2.5)
    monkeypatch.setattr(
        twofold.HybridStore, "info", lambda store, **more: replace(info(store, **more), embedder_state=down)
    )
    rows = dict(run("info").cells)
    assert rows["embedder_state"] == "breaker open, failures 3, last_error connection refused, next_try 2.5"
    assert rows["pending"] == "2"
    state = run("info", "--json").json["embedder_state"]
    assert state == {"breaker": "open", "failures": 3, "last_error": "connection refused", "next_try": 2.5}


def test_without_an_embedder_there_is_no_state(run):
    run("add", "one", "--embedder", "none")
    assert run("info", "--json").json["embedder_state"] is None
    assert ["embedder_state", "-"] in run("info").cells
