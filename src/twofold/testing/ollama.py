"""A stand-in for an Ollama server: speaks its protocol on this machine, and can be made to fail in its ways."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from twofold.testing.embedders import FakeEmbedder

__all__ = ["FakeOllama", "OllamaFault", "OllamaRequest"]

_DIMENSION: Final = 768
"""As nomic-embed-text has."""


class OllamaFault(StrEnum):
    """What goes wrong with one request."""

    NOT_PULLED = "not_pulled"
    """404: the model is not there."""
    BAD_REQUEST = "bad_request"
    """400, without a known reason."""
    TOO_LONG = "too_long"
    """400: the input is too long."""
    NAN_REFUSED = "nan_refused"
    """400: the model made NaN, and the server noticed."""
    ERROR = "error"
    """500."""
    BUSY = "busy"
    """503: the queue is full."""
    WAITS = "waits"
    """No answer until ``release()``; then the right one."""
    DROPPED = "dropped"
    """The connection is closed without an answer."""
    CUT = "cut"
    """200, and JSON that breaks off."""
    HTML = "html"
    """200, and a page, as a captive portal gives."""
    NO_FIELD = "no_field"
    """200, and JSON without embeddings."""
    EMPTY = "empty"
    """200, and no embeddings, as for a misspelt request."""
    SHORT = "short"
    """200, and one embedding too few."""
    NAN = "nan"
    """200, and NaN among the numbers."""
    NULL = "null"
    """200, and null among the numbers."""
    ZERO = "zero"
    """200, and all numbers zero."""
    OTHER_DIMENSION = "other_dimension"
    """200, and vectors one number shorter."""


Faults: TypeAlias = "OllamaFault | Callable[[Sequence[str]], OllamaFault | None] | None"

_REFUSALS: Final = {
    OllamaFault.NOT_PULLED: (404, 'model "{model}" not found, try pulling it first'),
    OllamaFault.BAD_REQUEST: (400, "invalid request"),
    OllamaFault.TOO_LONG: (400, "the input length exceeds the context length"),
    OllamaFault.NAN_REFUSED: (400, "embedding contains NaN or Inf values"),
    OllamaFault.ERROR: (500, "model runner has unexpectedly stopped"),
    OllamaFault.BUSY: (503, "server busy, please try again.  maximum pending requests exceeded"),
}


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """One request for embeddings, as it came."""

    model: str
    """The model asked for."""
    input: tuple[str, ...]
    """The texts, with their prefixes."""
    body: dict[str, Any]
    """All of it."""


class FakeOllama:
    """An Ollama server for tests, on a free port of this machine, for a ``with`` block.

    Example:
        ``with FakeOllama() as server: twofold.open(":memory:", embedder=OllamaEmbedder(host=server.host))``
    """

    def __init__(
        self,
        vectors: Callable[[str], Sequence[float]] | None = None,
        *,
        models: Sequence[str] = ("nomic-embed-text",),
    ) -> None:
        """Nothing listens yet.

        Args:
            vectors: makes a text's vector. Default: those of a :class:`FakeEmbedder` with 768 numbers.
            models: the models that are there; names without a tag are ``latest``.
        """
        fake = FakeEmbedder(_DIMENSION)
        self._vectors = vectors or (lambda text: fake.embed([text], "document")[0].tolist())
        self.models = [_tagged(model) for model in models]
        """The models that are there; may be changed."""
        self.fault: Faults = None
        """What goes wrong with the requests to come: one fault for all, or what a function says of the texts of
        each; None: nothing."""
        self.requests: list[OllamaRequest] = []
        """All requests for embeddings, in the order in which they came."""
        self.arrived = threading.Event()
        """Set when a request for embeddings has come; for the test to clear."""
        self._released = threading.Event()
        self._port = 0
        self._server: _Server | None = None

    @property
    def host(self) -> str:
        """Its address; the same after ``stop()`` and ``start()``."""
        return f"http://127.0.0.1:{self._port}"

    def release(self) -> None:
        """Let the requests go on that wait, those to come too."""
        self._released.set()

    def start(self) -> None:
        """Listen, on the same port as before if it did."""
        self._server = _Server(("127.0.0.1", self._port), _handler_of(self))
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), name="fake-ollama", daemon=True).start()

    def stop(self) -> None:
        """Stop listening: connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.hang_up()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        self.stop()

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes, str] | None:
        """Status, body and type of the answer to one request for embeddings; None: the connection is dropped."""
        model, given = str(body.get("model", "")), body.get("input", [])
        texts = [given] if isinstance(given, str) and given else list(given)
        self.requests.append(OllamaRequest(model, tuple(texts), body))
        self.arrived.set()
        fault = self.fault(texts) if callable(self.fault) else self.fault
        if fault is OllamaFault.WAITS:
            self._released.wait()
        if _tagged(model) not in self.models:
            fault = OllamaFault.NOT_PULLED
        if fault in _REFUSALS:
            status, said = _REFUSALS[fault]
            return status, json.dumps({"error": said.replace("{model}", model)}).encode(), "application/json"
        if fault is OllamaFault.DROPPED:
            return None
        if fault is OllamaFault.HTML:
            return 200, b"<!doctype html><title>Sign in</title>", "text/html"
        rows = [list(map(float, self._vectors(text))) for text in texts]
        dimensions = body.get("dimensions")
        if isinstance(dimensions, int) and rows and 0 < dimensions < len(rows[0]):
            rows = [_unit(row[:dimensions]) for row in rows]
        spoilt: dict[str, Any] = {"model": model, "embeddings": _spoilt(rows, fault), "total_duration": 1}
        if fault is OllamaFault.NO_FIELD:
            del spoilt["embeddings"]
        sent = json.dumps(spoilt).encode()
        return 200, sent[: len(sent) // 2] if fault is OllamaFault.CUT else sent, "application/json"

    def tags(self) -> dict[str, Any]:
        """What ``GET /api/tags`` gives."""
        return {"models": [{"name": model, "model": model, "size": 1, "details": {}} for model in self.models]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        """Close every connection, those that are only kept for later too."""
        for connection in self._connections:
            with suppress(OSError):  # it has gone already
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: clients that have gone are what some tests are about."""


def _handler_of(fake: FakeOllama) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else answers wait some 40 ms for an acknowledgement

        def do_GET(self) -> None:  # the name that http.server looks for
            if self.path == "/":
                self._send(200, b"Ollama is running", "text/plain")
            elif self.path == "/api/version":
                self._send(200, b'{"version": "0.12.0"}', "application/json")
            elif self.path == "/api/tags":
                self._send(200, json.dumps(fake.tags()).encode(), "application/json")
            else:
                self._send(404, b"404 page not found", "text/plain")

        do_HEAD = do_GET  # noqa: N815 - likewise

        def do_POST(self) -> None:  # likewise
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path != "/api/embed":
                self._send(404, b"404 page not found", "text/plain")
                return
            answer = fake.answer(json.loads(sent))
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._send(*answer)

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return Handler


def _tagged(model: str) -> str:
    name = model.lower()
    return name if ":" in name else f"{name}:latest"


def _unit(row: list[float]) -> list[float]:
    length = sum(number * number for number in row) ** 0.5
    return [number / length for number in row] if length else row


def _spoilt(rows: list[list[float]], fault: OllamaFault | None) -> list[list[Any]]:
    if fault is OllamaFault.EMPTY:
        return []
    if fault is OllamaFault.SHORT:
        return list(rows[:-1])
    if fault is OllamaFault.OTHER_DIMENSION:
        return [row[:-1] for row in rows]
    if fault is OllamaFault.ZERO:
        return [[0.0] * len(row) for row in rows]
    if fault in (OllamaFault.NAN, OllamaFault.NULL):
        return [[float("nan") if fault is OllamaFault.NAN else None, *row[1:]] for row in rows]
    return list(rows)
