"""The Ollama embedder: the real client against a server that speaks the real protocol."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from twofold.config import EmbeddingSettings
from twofold.embedders import Guard, OllamaEmbedder, calling_loop, embed_checked, resolve_embedder
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
    MissingExtraError,
)
from twofold.testing import FakeOllama, OllamaFault

pytest.importorskip("ollama", reason="the extra 'ollama' is not installed")


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama() as fake:
        yield fake


@pytest.fixture
def embedder(server: FakeOllama) -> OllamaEmbedder:
    return OllamaEmbedder(host=server.host)


# What is asked for


def test_the_default_is_nomic_with_its_prefixes(server: FakeOllama, embedder: OllamaEmbedder) -> None:
    """alphaonedev/ai-memory-mcp#1520"""
    assert embedder.dimension == 768, "known before the first answer"
    assert embed_checked(embedder, ["y"], "query").shape == (1, 768)
    assert embed_checked(embedder, ["x", "z"], "document").shape == (2, 768)
    assert [request.input for request in server.requests] == [
        ("search_query: y",),
        ("search_document: x", "search_document: z"),
    ]
    assert (server.requests[0].model, embedder.dimension) == ("nomic-embed-text", 768)
    assert set(server.requests[0].body) == {"model", "input"}, "nothing is sent that was not asked for"


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("all-minilm", "", ""),
        ("bge-m3", "", ""),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("Somebody/Nomic-Embed-Text", "search_query: ", "search_document: "),
        ("jeffh/e5-base-v2", "query: ", "passage: "),
        ("yxchia/multilingual-e5-base:latest", "query: ", "passage: "),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed:22m", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
        (
            "qwen3-embedding:0.6b",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
            "",
        ),
        ("never-heard-of", "", ""),
    ],
)
def test_prefixes_go_by_the_family(server: FakeOllama, model: str, query: str, document: str) -> None:
    server.models.append(model.lower() if ":" in model else f"{model.lower()}:latest")
    embedder = OllamaEmbedder(model, host=server.host)
    embedder.embed(["x"], "query")
    embedder.embed(["x"], "document")
    assert [request.input for request in server.requests] == [(f"{query}x",), (f"{document}x",)]


def test_prefixes_can_be_given(server: FakeOllama) -> None:
    embedder = OllamaEmbedder(host=server.host, query_prefix="", document_prefix="d: ")
    embedder.embed(["x"], "query")
    embedder.embed(["x"], "document")
    assert [request.input for request in server.requests] == [("x",), ("d: x",)]


@pytest.mark.parametrize(
    ("embedder", "fingerprint"),
    [
        (OllamaEmbedder("all-minilm"), "ollama:all-minilm:latest"),
        (OllamaEmbedder("All-MiniLM:33m"), "ollama:all-minilm:33m"),
        (OllamaEmbedder("localhost:5000/me/model"), "ollama:localhost:5000/me/model:latest"),
        (OllamaEmbedder("all-minilm", dimensions=128), "ollama:all-minilm:latest dimensions=128"),
        (OllamaEmbedder("all-minilm", query_prefix="q: "), "ollama:all-minilm:latest query='q: '"),
        (OllamaEmbedder("all-minilm", host="http://gpu-box", timeout=3, keep_alive=-1), "ollama:all-minilm:latest"),
        (
            OllamaEmbedder(),
            "ollama:nomic-embed-text:latest query='search_query: ' document='search_document: '",
        ),
    ],
)
def test_the_fingerprint_is_what_changes_vectors(embedder: OllamaEmbedder, fingerprint: str) -> None:
    assert embedder.fingerprint == fingerprint


@pytest.mark.parametrize(
    ("model", "dimension"),
    [
        ("all-minilm", 384),
        ("all-minilm:33m", 384),
        ("BGE-M3", 1024),
        ("mxbai-embed-large:335m", 1024),
        ("embeddinggemma", 768),
        ("snowflake-arctic-embed", 1024),
        ("snowflake-arctic-embed:latest", 1024),
        ("snowflake-arctic-embed:22m", 384),
        ("snowflake-arctic-embed:137m", 768),
        ("snowflake-arctic-embed2", 1024),
        ("qwen3-embedding", None),
        ("qwen3-embedding:4b", 2560),
        ("somebody/all-minilm", None),
        ("never-heard-of", None),
    ],
)
def test_dimensions_of_the_library_are_known(model: str, dimension: int | None) -> None:
    assert OllamaEmbedder(model).dimension == dimension
    assert OllamaEmbedder(model, dimensions=128).dimension == 128


def test_another_dimension_is_learnt(server: FakeOllama) -> None:
    server.models.append("never-heard-of:latest")
    embedder = OllamaEmbedder("never-heard-of", host=server.host)
    embedder.embed(["x"], "query")
    assert embedder.dimension == 768


def test_the_fingerprint_stays_when_the_dimension_is_learnt(embedder: OllamaEmbedder) -> None:
    before = embedder.fingerprint
    embedder.embed(["x"], "query")
    assert embedder.fingerprint == before


def test_settings_reach_the_server(server: FakeOllama) -> None:
    embedder = OllamaEmbedder(host=server.host, keep_alive="10m", dimensions=64, batch_size=2)
    assert embedder.dimension == 64
    assert embed_checked(embedder, list("abc"), "document").shape == (3, 64)
    assert [len(request.input) for request in server.requests] == [2, 1]
    assert {(request.body["keep_alive"], request.body["dimensions"]) for request in server.requests} == {("10m", 64)}


def test_no_texts_no_request(server: FakeOllama, embedder: OllamaEmbedder) -> None:
    """ollama/ollama#5713"""
    assert list(embedder.embed([], "document")) == []
    assert server.requests == []


def test_short_form(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, model in (("ollama", "nomic-embed-text"), ("ollama:all-minilm:33m", "all-minilm:33m")):
        found = resolve_embedder(text)
        assert isinstance(found, OllamaEmbedder)
        assert repr(found) == f"OllamaEmbedder({model!r})"
    with pytest.raises(ConfigurationError, match="model is the name of one"):
        resolve_embedder("ollama:")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"model": None},
        {"host": ""},
        {"host": 11434},
        {"timeout": 0},
        {"timeout": None},
        {"timeout": float("nan")},
        {"keep_alive": True},
        {"keep_alive": []},
        {"dimensions": 0},
        {"batch_size": 0},
        {"query_prefix": 3},
        {"document_prefix": b""},
    ],
)
def test_arguments_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong)).removesuffix("s")):
        OllamaEmbedder(**wrong)


def test_an_address_that_is_none(embedder: OllamaEmbedder) -> None:
    with pytest.raises(ConfigurationError, match="no server can be asked at 'http://localhost:port'"):
        OllamaEmbedder(host="http://localhost:port").embed(["x"], "query")


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'twofold\[ollama\]'"):
        OllamaEmbedder().embed(["x"], "query")


def test_the_environment_names_the_host(server: FakeOllama, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.host.removeprefix("http://"))
    assert len(OllamaEmbedder().embed(["x"], "query")) == 1


# Proxies


@pytest.fixture
def dead_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_proxies_are_not_used_for_this_machine(
    server: FakeOllama, dead_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """run-llama/llama_index#14880"""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{dead_port}")
    before = dict(os.environ)
    for host in (
        server.host,
        server.host.replace("127.0.0.1", "localhost"),
        server.host.replace("127.0.0.1", "0.0.0.0"),
    ):
        assert len(OllamaEmbedder(host=host).embed(["x"], "query")) == 1
    assert dict(os.environ) == before


def test_proxies_are_used_for_others(server: FakeOllama, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.host)
    with pytest.raises(EmbedderUnreachableError, match="knows no /api/embed"):  # the stand-in is no proxy, and says so
        OllamaEmbedder(host="http://gpu-box.invalid").embed(["x"], "query")


# What goes wrong


@pytest.mark.parametrize(
    ("fault", "error", "said", "at_fault"),
    [
        (OllamaFault.NOT_PULLED, EmbedderUnreachableError, r"'nomic-embed-text': ollama pull nomic-embed-text$", False),
        (OllamaFault.BAD_REQUEST, EmbedderUnreachableError, r"refused \(400: invalid request\)", None),
        (OllamaFault.NAN_REFUSED, EmbedderOutputError, "made numbers that are none", None),
        (OllamaFault.ERROR, EmbedderUnreachableError, r"refused \(500: ", None),
        (OllamaFault.BUSY, EmbedderUnreachableError, r"refused \(503: server busy", False),
        (OllamaFault.DROPPED, EmbedderUnreachableError, r"broke off \(RemoteProtocolError\)", False),
        (OllamaFault.CUT, EmbedderOutputError, "no answer of Ollama's", False),
        (OllamaFault.HTML, EmbedderOutputError, "is it Ollama", False),
        (OllamaFault.NO_FIELD, EmbedderOutputError, "no answer of Ollama's", None),
        (OllamaFault.EMPTY, EmbedderOutputError, "gave 0 vectors of 'nomic-embed-text' for 2 texts", None),
        (OllamaFault.SHORT, EmbedderOutputError, "gave 1 vectors", None),
        (OllamaFault.NULL, EmbedderOutputError, "no answer of Ollama's", None),
    ],
)
def test_each_fault_has_a_name(
    server: FakeOllama,
    embedder: OllamaEmbedder,
    fault: OllamaFault,
    error: type[EmbeddingError],
    said: str,
    at_fault: bool | None,
) -> None:
    server.fault = fault
    with pytest.raises(error, match=said) as caught:
        embedder.embed(["x", "y"], "query")
    assert caught.value.text_at_fault is at_fault
    assert len(server.requests) == 1, "no retry of what will fail again"
    server.fault = None
    assert len(embedder.embed(["x", "y"], "query")) == 2


@pytest.mark.parametrize("fault", [OllamaFault.NAN, OllamaFault.ZERO, OllamaFault.OTHER_DIMENSION])
def test_numbers_that_cannot_be_used_are_named(
    server: FakeOllama, embedder: OllamaEmbedder, fault: OllamaFault
) -> None:
    embedder.embed(["x"], "query")
    server.fault = fault
    with pytest.raises(EmbedderOutputError, match="nothing usable for text 1 of 1"):
        embed_checked(embedder, ["x"], "query")


def test_nobody_there(server: FakeOllama, embedder: OllamaEmbedder) -> None:
    embedder.embed(["x"], "query")  # so that a connection is kept
    server.stop()
    with pytest.raises(EmbedderUnreachableError, match=f"{server.host}: start Ollama") as caught:
        embedder.embed(["x"], "query")
    assert caught.value.text_at_fault is False
    server.start()
    assert len(embedder.embed(["x"], "query")) == 1


def test_a_client_always_has_a_time_out(server: FakeOllama) -> None:
    server.fault = OllamaFault.WAITS
    with pytest.raises(EmbedderTimeoutError, match=r"time-out of 0\.05 s"):
        OllamaEmbedder(host=server.host, timeout=0.05).embed(["x"], "query")


def test_passwords_in_the_address_are_not_shown(dead_port: int) -> None:
    with pytest.raises(EmbedderUnreachableError) as caught:
        OllamaEmbedder(host=f"http://ann:sesame@127.0.0.1:{dead_port}").embed(["x"], "query")
    assert "sesame" not in str(caught.value)


def too_long(texts: Sequence[str]) -> OllamaFault | None:
    return OllamaFault.TOO_LONG if any(len(text) > 2000 for text in texts) else None


def test_what_is_too_long_is_shortened_and_the_others_are_as_they_were(
    server: FakeOllama, embedder: OllamaEmbedder
) -> None:
    """ollama/ollama#14186"""
    server.fault = too_long
    guard = Guard(embedder, EmbeddingSettings())
    texts = ["a" * 10, "b" * 1900, "c " * 25_000]
    rows = guard.documents(texts)
    assert all(isinstance(row, np.ndarray) for row in rows)
    (taken,) = server.requests[-1].input
    assert f"search_document: {texts[2]}".startswith(taken)
    assert 1000 < len(taken) <= 2000, "no more is cut off than half of what would fit"
    assert guard.query("d" * 50_000).shape == (768,)


def test_what_stays_too_long_is_that_texts_own_fault(server: FakeOllama, embedder: OllamaEmbedder) -> None:
    server.fault = lambda texts: OllamaFault.TOO_LONG if any(len(text) > 1000 for text in texts) else None
    guard = Guard(embedder, EmbeddingSettings(failures_to_open=1))
    rows = guard.documents(["short", "c" * 5000])
    assert [type(row) for row in rows] == [np.ndarray, EmbedderOutputError]
    with pytest.raises(EmbedderOutputError, match="too long"):
        guard.query("d" * 5000)
    assert guard.query("short").shape == (768,)


# Async


async def test_on_an_event_loop_the_async_client_asks(
    server: FakeOllama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ollama.Client.embed", None)  # calling it would fail
    token = calling_loop.set(asyncio.get_running_loop())
    try:
        vectors = await asyncio.to_thread(embed_checked, embedder, ["a", "b"], "query")
        server.fault = OllamaFault.ERROR
        with pytest.raises(EmbedderUnreachableError, match="500"):
            await asyncio.to_thread(embed_checked, embedder, ["a", "b"], "query")
    finally:
        calling_loop.reset(token)
    assert vectors.shape == (2, 768)


def test_one_embedder_serves_several_loops_and_threads(server: FakeOllama, embedder: OllamaEmbedder) -> None:
    async def ask() -> None:
        token = calling_loop.set(asyncio.get_running_loop())
        await asyncio.gather(*(asyncio.to_thread(embedder.embed, [str(n)], "query") for n in range(5)))
        calling_loop.reset(token)

    for _ in range(2):
        asyncio.run(ask(), debug=True)
    threads = [threading.Thread(target=embedder.embed, args=(["x"], "query")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(server.requests) == 14
