"""The stand-in for an Ollama server, asked without a client of Ollama's."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from twofold.testing import FakeOllama, OllamaFault


def get(url: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def embed(server: FakeOllama, **body: Any) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{server.host}/api/embed", json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_it_says_what_it_is() -> None:
    with FakeOllama(models=["all-minilm"]) as server:
        assert get(server.host) == (200, "Ollama is running")
        assert get(server.host, "HEAD") == (200, "")
        assert "version" in json.loads(get(f"{server.host}/api/version")[1])
        assert json.loads(get(f"{server.host}/api/tags")[1])["models"][0]["name"] == "all-minilm:latest"
        assert get(f"{server.host}/api/other") == (404, "404 page not found")


def test_it_embeds_one_text_or_several() -> None:
    with FakeOllama(lambda text: [float(len(text)), 0.0, 3.0]) as server:
        assert embed(server, model="nomic-embed-text", input="ab")[1]["embeddings"] == [[2, 0, 3]]
        assert embed(server, model="NOMIC-embed-text:latest", input=["a", ""])[1]["embeddings"] == [
            [1, 0, 3],
            [0, 0, 3],
        ]
        assert embed(server, model="nomic-embed-text", input="")[1]["embeddings"] == []
        cut = embed(server, model="nomic-embed-text", input=["abcd"], dimensions=1)[1]["embeddings"]
        assert cut == [[4 / 4]], "cut, and of unit length again"
        assert [request.input for request in server.requests] == [("ab",), ("a", ""), (), ("abcd",)]


def test_errors_are_worded_as_the_servers() -> None:
    with FakeOllama() as server:
        assert embed(server, model="x", input="a") == (404, {"error": 'model "x" not found, try pulling it first'})
        server.fault = OllamaFault.BUSY
        assert embed(server, model="nomic-embed-text", input="a")[0] == 503
        server.fault = lambda texts: OllamaFault.ERROR if "bad" in texts else None
        assert embed(server, model="nomic-embed-text", input=["bad"])[0] == 500
        assert embed(server, model="nomic-embed-text", input=["good"])[0] == 200


def test_stopped_it_refuses_and_comes_back_where_it_was() -> None:
    with FakeOllama() as server:
        host = server.host
        server.stop()
        with pytest.raises(urllib.error.URLError):
            get(host)
        server.start()
        assert (server.host, get(host)[0]) == (host, 200)
