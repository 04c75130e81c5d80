"""OpenAI and Voyage: the real clients against servers that speak the real protocols."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from twofold.config import EmbeddingSettings
from twofold.embedders import (
    Guard,
    OpenAIEmbedder,
    VoyageEmbedder,
    calling_loop,
    embed_checked,
    resolve_embedder,
)
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
    MissingExtraError,
)
from twofold.testing import ApiFault, FakeOpenAI, FakeVoyage

Make = Callable[..., Any]
KEY = "sk-do-not-show-me-4711"
LIBRARIES = {"openai": "openai", "voyage": "voyageai"}
PATIENT = 30.0


@pytest.fixture(params=["openai", "voyage"])
def provider(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(LIBRARIES[request.param], reason=f"the extra {request.param!r} is not installed")
    return str(request.param)


@pytest.fixture(autouse=True)
def _no_keys_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(provider: str) -> Iterator[FakeOpenAI]:
    with FakeOpenAI() if provider == "openai" else FakeVoyage() as fake:
        yield fake


@pytest.fixture
def make(provider: str, server: FakeOpenAI) -> Make:
    """Makes an embedder that asks the server."""
    kind = OpenAIEmbedder if provider == "openai" else VoyageEmbedder

    def made(*model: str, **options: Any) -> Any:
        return kind(*model, **{"api_key": KEY, "base_url": server.base_url, **options})

    return made


@pytest.fixture
def embedder(make: Make) -> Any:
    return make()


def dead_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


# What is asked for


def test_vectors_come_as_the_server_made_them(server: FakeOpenAI, embedder: Any) -> None:
    texts = ["the first text", "another one", "and a third"]
    found = embed_checked(embedder, texts, "document")
    expected = np.array([server._vectors(text) for text in texts], dtype=np.float32)
    np.testing.assert_array_equal(found, expected)
    assert embedder.dimension == found.shape[1]
    assert (server.requests[0].key, server.requests[0].input) == (KEY, tuple(texts))


def test_batches(server: FakeOpenAI, make: Make) -> None:
    assert len(make(batch_size=2).embed(list("abcde"), "document")) == 5
    assert [len(request.input) for request in server.requests] == [2, 2, 1]


def test_no_texts_no_request(server: FakeOpenAI, embedder: Any) -> None:
    assert list(embedder.embed([], "document")) == []
    assert server.requests == []


def test_dimensions_are_asked_for(server: FakeOpenAI, make: Make) -> None:
    embedder = make(dimensions=64)
    assert embedder.dimension == 64
    assert embed_checked(embedder, ["x"], "query").shape == (1, 64)


@pytest.mark.parametrize("fault", [ApiFault.UNORDERED, ApiFault.UNNUMBERED, ApiFault.FLOATS, ApiFault.SLOW])
def test_what_is_unusual_but_right(server: FakeOpenAI, embedder: Any, fault: ApiFault) -> None:
    server.fault = fault
    texts = ["one", "two", "three"]
    expected = np.array([server._vectors(text) for text in texts], dtype=np.float32)
    np.testing.assert_allclose(embed_checked(embedder, texts, "document"), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": 7}, "api_key"),
        ({"api_key": f"{KEY}\nX-Header: 1"}, "api_key"),
        ({"base_url": "gpu-box:8000"}, "base_url"),
        ({"base_url": "http://gpu-box:port"}, "base_url"),
        ({"base_url": "ftp://gpu-box"}, "base_url"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"dimensions": 0}, "dimension"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
@pytest.mark.parametrize("kind", [OpenAIEmbedder, VoyageEmbedder])
def test_arguments_are_checked(kind: Any, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        kind(**wrong)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"encoding_format": "int8"}, {"query_prefix": 3}, {"document_prefix": b""}], ids=str)
def test_arguments_of_openai_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        OpenAIEmbedder(**wrong)


# OpenAI


@pytest.fixture
def openai_server() -> Iterator[FakeOpenAI]:
    pytest.importorskip("openai", reason="the extra 'openai' is not installed")
    with FakeOpenAI() as fake:
        yield fake


@pytest.mark.parametrize("encoding_format", ["base64", "float"])
def test_openai_is_told_how_numbers_travel(openai_server: FakeOpenAI, encoding_format: Any) -> None:
    embedder = OpenAIEmbedder(base_url=openai_server.base_url, encoding_format=encoding_format)
    assert embed_checked(embedder, ["x"], "query").shape == (1, 1536)
    assert openai_server.requests[0].body == {
        "model": "text-embedding-3-small",
        "input": ["x"],
        "encoding_format": encoding_format,
    }, "nothing is sent that was not asked for"


def test_openai_prefixes_go_by_the_family(openai_server: FakeOpenAI) -> None:
    at = {"base_url": openai_server.base_url}
    for embedder in (
        OpenAIEmbedder(**at),
        OpenAIEmbedder("nomic-ai/nomic-embed-text-v1.5", **at),
        OpenAIEmbedder("mine", query_prefix="q: ", document_prefix="d: ", **at),
    ):
        embedder.embed(["x"], "query")
        embedder.embed(["x"], "document")
    assert [request.input[0] for request in openai_server.requests] == [
        *("x", "x"),
        *("search_query: x", "search_document: x"),
        *("q: x", "d: x"),
    ]


def test_openai_dimensions_are_known_at_openai_and_learnt_elsewhere(openai_server: FakeOpenAI) -> None:
    assert OpenAIEmbedder().dimension == 1536
    assert OpenAIEmbedder("text-embedding-3-large").dimension == 3072
    elsewhere = OpenAIEmbedder(base_url=openai_server.base_url)
    assert elsewhere.dimension is None, "a gateway may call any model so"
    elsewhere.embed(["x"], "query")
    assert elsewhere.dimension == 1536


def too_long(texts: Any) -> ApiFault | None:
    return ApiFault.TOO_LONG if any(len(text) > 6000 for text in texts) else None


def test_what_is_too_long_is_cut_and_the_others_are_as_they_were(openai_server: FakeOpenAI) -> None:
    openai_server.fault = too_long
    guard = Guard(OpenAIEmbedder(base_url=openai_server.base_url), EmbeddingSettings())
    texts = ["short", "c " * 5_000]
    assert all(isinstance(row, np.ndarray) for row in guard.documents(texts))
    taken = [request.input for request in openai_server.requests if too_long(request.input) is None]
    assert taken == [("short",), (texts[1][: len(texts[1]) // 2],)], "no more is cut off than must be"


# Voyage


@pytest.fixture
def voyage_server() -> Iterator[FakeVoyage]:
    pytest.importorskip("voyageai", reason="the extra 'voyage' is not installed")
    with FakeVoyage() as fake:
        yield fake


def test_voyage_is_told_what_a_text_is(voyage_server: FakeVoyage) -> None:
    embedder = VoyageEmbedder(base_url=voyage_server.base_url, api_key=KEY)
    assert embedder.dimension == 1024
    for kind in ("query", "document"):
        assert embed_checked(embedder, ["def f(): ..."], kind).shape == (1, 1024)  # type: ignore[arg-type]
    assert [(request.model, request.body["input_type"]) for request in voyage_server.requests] == [
        ("voyage-code-3", "query"),
        ("voyage-code-3", "document"),
    ]


def test_voyage_in_a_thread_that_runs_a_loop(voyage_server: FakeVoyage) -> None:
    """As in a notebook, where synchronous code runs on a loop's thread."""
    embedder = VoyageEmbedder(base_url=voyage_server.base_url, api_key=KEY)
    guard = Guard(embedder, EmbeddingSettings())

    async def cell() -> tuple[Any, Any]:
        return guard.query("x"), embedder.embed(["x"], "query")

    first, second = asyncio.run(cell())
    np.testing.assert_array_equal(first, second[0])


def test_voyages_small_model_is_not_computed_here(voyage_server: FakeVoyage) -> None:
    embedder = VoyageEmbedder("voyage-4-nano", base_url=voyage_server.base_url, api_key=KEY)
    assert len(embedder.embed(["x"], "query")) == 1
    assert [request.model for request in voyage_server.requests] == ["voyage-4-nano"]


# Names


@pytest.mark.parametrize(
    ("embedder", "fingerprint"),
    [
        (OpenAIEmbedder(), "openai:text-embedding-3-small"),
        (OpenAIEmbedder(dimensions=256), "openai:text-embedding-3-small dimensions=256"),
        (OpenAIEmbedder("m", query_prefix="q: "), "openai:m query='q: '"),
        (
            OpenAIEmbedder("m", base_url="http://gpu-box/v1", api_key=KEY, timeout=3, encoding_format="float"),
            "openai:m",
        ),
        (VoyageEmbedder(), "voyage:voyage-code-3 input_type"),
        (VoyageEmbedder("voyage-3-large", dimensions=256), "voyage:voyage-3-large dimensions=256 input_type"),
        (VoyageEmbedder(base_url="http://gpu-box", api_key=KEY), "voyage:voyage-code-3 input_type"),
    ],
)
def test_the_fingerprint_is_what_changes_vectors(embedder: Any, fingerprint: str) -> None:
    assert embedder.fingerprint == fingerprint


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("openai", "OpenAIEmbedder('text-embedding-3-small')"),
        ("openai:text-embedding-3-large", "OpenAIEmbedder('text-embedding-3-large')"),
        ("voyage", "VoyageEmbedder('voyage-code-3')"),
        ("voyage:voyage-3.5", "VoyageEmbedder('voyage-3.5')"),
    ],
)
def test_short_forms(text: str, shown: str) -> None:
    assert repr(resolve_embedder(text)) == shown


@pytest.mark.parametrize(("kind", "library"), [(OpenAIEmbedder, "openai"), (VoyageEmbedder, "voyageai")])
def test_without_the_client_the_extra_is_named(kind: Any, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    extra = library.removesuffix("ai") if library == "voyageai" else library
    with pytest.raises(MissingExtraError, match=rf"pip install 'twofold\[{extra}\]'"):
        kind(api_key=KEY).embed(["x"], "query")


# Keys and hosts


@pytest.mark.parametrize(
    ("kind", "library", "variable"),
    [(OpenAIEmbedder, "openai", "OPENAI_API_KEY"), (VoyageEmbedder, "voyageai", "VOYAGE_API_KEY")],
)
def test_without_a_key_nothing_is_asked(kind: Any, library: str, variable: str) -> None:
    pytest.importorskip(library, reason="the client is not installed")
    with pytest.raises(ConfigurationError, match=f"set the environment variable {variable}"):
        kind().embed(["x"], "query")


def test_the_key_of_the_environment_is_for_the_host_of_the_environment(
    openai_server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    OpenAIEmbedder(base_url=openai_server.base_url).embed(["x"], "query")
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    OpenAIEmbedder().embed(["x"], "query")
    assert [request.key for request in openai_server.requests] == ["none", KEY]


def test_voyages_key_of_the_environment_goes_to_voyage_only(
    voyage_server: FakeVoyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    with pytest.raises(ConfigurationError, match="gets no key from the environment: pass api_key="):
        VoyageEmbedder(base_url=voyage_server.base_url).embed(["x"], "query")
    assert voyage_server.requests == []


@pytest.mark.parametrize("fault", [None, *ApiFault])
async def test_the_key_is_shown_nowhere(
    server: FakeOpenAI, make: Make, caplog: pytest.LogCaptureFixture, fault: ApiFault | None, provider: str
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = make(timeout=0.3)
    guard = Guard(embedder, EmbeddingSettings(failures_to_open=1, query_deadline=0.5, warm_up=0))
    server.fault = fault
    said = [repr(embedder), str(vars(embedder)), embedder.fingerprint, repr(guard)]
    for _ in range(2):
        try:
            await asyncio.to_thread(guard.query, "x")
        except EmbeddingError as error:
            said += [str(error), error.summary, *traceback.format_exception(error)]
    said.append(str(guard.state))
    # A client writes into its own log what a server says, here the key that it refuses.
    own = "twofold" if fault is ApiFault.BAD_KEY else ""
    said += [record.getMessage() for record in caplog.records if record.name.startswith(own)]
    assert [text for text in said if KEY in text] == []


def test_a_refused_key(server: FakeOpenAI, embedder: Any, provider: str) -> None:
    server.fault = ApiFault.BAD_KEY
    with pytest.raises(EmbedderUnreachableError, match=r"refused \(401: .*\[key\].*pass api_key= for that") as caught:
        embedder.embed(["x"], "query")
    assert caught.value.text_at_fault is False


@pytest.mark.parametrize("on_a_loop", [False, True])
async def test_no_redirect_is_followed(server: FakeOpenAI, embedder: Any, provider: str, on_a_loop: bool) -> None:
    """A text goes to the host that was named, or nowhere."""
    with FakeOpenAI() as other:
        server.elsewhere = f"{other.base_url}/embeddings"
        server.fault = ApiFault.ELSEWHERE
        token = calling_loop.set(asyncio.get_running_loop()) if on_a_loop else None
        with pytest.raises(EmbedderUnreachableError, match="not followed: pass the address that is meant") as caught:
            await asyncio.to_thread(embedder.embed, ["secret"], "query")
        if token is not None:
            calling_loop.reset(token)
    assert caught.value.text_at_fault is False
    assert (len(server.requests), other.requests) == (1, [])


def test_proxies_are_not_used_for_this_machine(embedder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{dead_port()}")
    before = dict(os.environ)
    assert len(embedder.embed(["x"], "query")) == 1
    assert dict(os.environ) == before


def test_proxies_are_used_for_others(server: FakeOpenAI, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.host)
    monkeypatch.setenv("http_proxy", server.host)
    with pytest.raises(EmbedderUnreachableError, match="404"):  # the stand-in is no proxy, and says so
        make(base_url="http://gpu-box.invalid/v1").embed(["x"], "query")


# What goes wrong


@pytest.mark.parametrize("on_a_loop", [False, True])
@pytest.mark.parametrize(
    ("fault", "error", "said", "at_fault"),
    [
        (ApiFault.NO_MODEL, EmbedderUnreachableError, r"refused \(404: ", False),
        (ApiFault.BAD_REQUEST, EmbedderUnreachableError, r"refused \(400: ", None),
        (ApiFault.TOO_LONG, EmbedderOutputError, "a text is too long for the model", True),
        (ApiFault.RATE_LIMITED, EmbedderUnreachableError, r"refused \(429: .*it asks to wait 20 s", False),
        (ApiFault.ERROR, EmbedderUnreachableError, r"refused \(500: ", None),
        (ApiFault.BUSY, EmbedderUnreachableError, r"refused \(503: ", False),
        (ApiFault.DROPPED, EmbedderUnreachableError, "broke off", False),
        (ApiFault.CUT, EmbedderOutputError, "no answer to a request for embeddings", False),
        (ApiFault.HTML, EmbedderOutputError, "no answer to a request for embeddings", False),
        (ApiFault.NO_FIELD, EmbedderOutputError, "no answer to a request for embeddings", False),
        (ApiFault.NO_VECTOR, EmbedderOutputError, "no answer to a request for embeddings", None),
        (ApiFault.NOT_BASE64, EmbedderOutputError, "no answer to a request for embeddings", None),
        (ApiFault.EMPTY, EmbedderOutputError, "gave 0 vectors for 2 texts", None),
        (ApiFault.SHORT, EmbedderOutputError, "gave 1 vectors for 2 texts", None),
        (ApiFault.SAME_NUMBER, EmbedderOutputError, r"numbered its vectors \[0, 0\] for 2 texts", None),
    ],
)
async def test_each_fault_has_a_name(
    server: FakeOpenAI,
    embedder: Any,
    fault: ApiFault,
    error: type[EmbeddingError],
    said: str,
    at_fault: bool | None,
    on_a_loop: bool,
    provider: str,
) -> None:
    server.fault = fault
    token = calling_loop.set(asyncio.get_running_loop()) if on_a_loop else None
    try:
        with pytest.raises(error, match=said) as caught:
            await asyncio.to_thread(embedder.embed, ["x", "y"], "query")
        server_said = str(caught.value)
        assert len(server.requests) == 1, "no retry: the guard has one deadline for all"
        server.fault = None
        assert len(await asyncio.to_thread(embedder.embed, ["x", "y"], "query")) == 2
    finally:
        if token is not None:
            calling_loop.reset(token)
    if not (provider == "voyage" and fault in {ApiFault.NO_VECTOR, ApiFault.NOT_BASE64}):
        assert caught.value.text_at_fault is at_fault
    assert server.host.removeprefix("http://") in server_said, "it says who"


@pytest.mark.parametrize("fault", [ApiFault.NAN, ApiFault.NULL, ApiFault.ZERO, ApiFault.OTHER_DIMENSION])
def test_numbers_that_cannot_be_used_are_named(server: FakeOpenAI, embedder: Any, fault: ApiFault) -> None:
    embedder.embed(["x"], "query")
    server.fault = fault
    with pytest.raises(EmbedderOutputError, match="nothing usable for text 1 of 1"):
        embed_checked(embedder, ["x"], "query")


def test_a_text_that_a_server_repeats_is_not_handed_on(server: FakeOpenAI, embedder: Any) -> None:
    server.fault = ApiFault.BAD_REQUEST
    with pytest.raises(EmbedderUnreachableError, match="the secret of ann") as caught:
        embedder.embed(["the secret of ann"], "query")
    assert "ann" not in caught.value.summary


def test_nobody_there(server: FakeOpenAI, embedder: Any) -> None:
    embedder.embed(["x"], "query")  # so that a connection is kept
    server.stop()
    with pytest.raises(EmbedderUnreachableError, match=r"nothing answers at|broke off"):
        embedder.embed(["x"], "query")
    with pytest.raises(EmbedderUnreachableError, match=f"nothing answers at {server.base_url}") as caught:
        embedder.embed(["x"], "query")
    assert caught.value.text_at_fault is False
    server.start()
    assert len(embedder.embed(["x"], "query")) == 1


def test_a_client_always_has_a_time_out(server: FakeOpenAI, make: Make) -> None:
    server.fault = ApiFault.WAITS
    with pytest.raises(EmbedderTimeoutError, match=r"time-out of 0\.05 s"):
        make(timeout=0.05).embed(["x"], "query")


@pytest.mark.parametrize("kind", [OpenAIEmbedder, VoyageEmbedder])
def test_passwords_in_the_address_are_refused_and_not_shown(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="base_url takes no user and password: pass api_key=") as caught:
        kind(base_url="http://ann:sesame@127.0.0.1/v1")
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("fault", [ApiFault.WAITS, ApiFault.DRIPS])
def test_the_deadline_is_the_guards_and_total(server: FakeOpenAI, embedder: Any, fault: ApiFault) -> None:
    guard = Guard(embedder, EmbeddingSettings(query_deadline=0.3, warm_up=0))
    server.fault = fault
    with pytest.raises(EmbedderTimeoutError, match=r"no answer within 0\.\d+ s"):
        guard.query("x")
    if fault is ApiFault.DRIPS:
        assert server.hung_up.wait(PATIENT), "the request ends with the wait for it"


def test_the_guard_remembers_queries_by_model_and_text(server: FakeOpenAI, make: Make) -> None:
    guard = Guard(make(), EmbeddingSettings(query_cache_size=2))
    for text in ("a", "a", "b", "a", "c", "a", "b"):
        guard.query(text)
    assert [request.input[0] for request in server.requests] == ["a", "b", "c", "b"], (
        "two are kept, of those asked last"
    )
    server.fault = ApiFault.BUSY
    assert guard.query("a").shape == guard.query("b").shape


# Async


async def test_on_an_event_loop_the_call_can_be_cancelled(server: FakeOpenAI, embedder: Any) -> None:
    """The request runs on the caller's loop, and ends with the call at its deadline."""
    guard = Guard(embedder, EmbeddingSettings(query_deadline=0.3, warm_up=0))
    server.fault = ApiFault.DRIPS
    token = calling_loop.set(asyncio.get_running_loop())
    try:
        with pytest.raises(EmbedderTimeoutError):
            await asyncio.to_thread(guard.query, "x")
    finally:
        calling_loop.reset(token)
    assert await asyncio.to_thread(server.hung_up.wait, PATIENT)


def test_one_embedder_serves_several_loops_and_threads(server: FakeOpenAI, embedder: Any) -> None:
    async def ask() -> None:
        token = calling_loop.set(asyncio.get_running_loop())
        await asyncio.gather(*(asyncio.to_thread(embedder.embed, [str(n)], "query") for n in range(5)))
        calling_loop.reset(token)

    for _ in range(2):
        asyncio.run(ask())
    threads = [threading.Thread(target=embedder.embed, args=(["x"], "query")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert len(server.requests) == 14


def test_every_fault_is_tried() -> None:
    marks = {
        fault
        for name, value in vars(importlib.import_module(__name__)).items()
        if name.startswith("test_")
        for mark in getattr(value, "pytestmark", ())
        if mark.name == "parametrize"
        for row in mark.args[1]
        for fault in (row if isinstance(row, tuple) else (row,))
        if isinstance(fault, ApiFault)
    }
    assert marks == set(ApiFault)
