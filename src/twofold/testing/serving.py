"""What the servers that stand in for embedding services have in common: a port of this machine, and ways to fail."""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

__all__ = ["Answer", "LoopbackServer", "unit"]

_DRIP_SECONDS: Final = 0.01
"""Between one byte and the next."""


class Answer(NamedTuple):
    """One answer, before it is sent."""

    status: int
    """HTTP's."""
    body: bytes
    """What is sent."""
    type: str = "application/json"
    """Of the body."""
    drips: bool = False
    """Whether it is sent byte by byte."""
    headers: tuple[tuple[str, str], ...] = ()
    """More of them."""

    @classmethod
    def of(cls, status: int, value: Any, **headers: str) -> Self:
        """``value`` as JSON; the names of ``headers`` with underscores for dashes."""
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return cls(status, json.dumps(value).encode(), headers=more)


class LoopbackServer(ABC):
    """A server for tests, on a free port of this machine, for a ``with`` block."""

    name = "loopback-server"
    """What its thread is called."""

    def __init__(self) -> None:
        """Nothing listens yet."""
        self.arrived = threading.Event()
        """Set when a request for embeddings has come; for the test to clear."""
        self.hung_up = threading.Event()
        """Set when a client has hung up on an answer that drips; for the test to clear."""
        self._released = threading.Event()
        self._port = 0
        self._server: _Server | None = None

    @abstractmethod
    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:
        """The answer to one request, whose headers have small letters; None: the connection is dropped."""

    @property
    def host(self) -> str:
        """Its address; the same after ``stop()`` and ``start()``."""
        return f"http://127.0.0.1:{self._port}"

    def release(self) -> None:
        """Let the requests go on that wait, those to come too."""
        self._released.set()

    def wait_for_release(self, seconds: float | None = None) -> None:
        """Until :meth:`release` was called, or so many seconds have gone."""
        self._released.wait(seconds)

    def start(self) -> None:
        """Listen, on the same port as before if it did."""
        self._server = _Server(("127.0.0.1", self._port), _handler_of(self))
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), name=self.name, daemon=True).start()

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

    def drip(self, body: bytes, send: Callable[[bytes], object]) -> None:
        """Send ``body`` slowly, unless ``release()`` was called, or the client hangs up."""
        for place in range(len(body)):
            if self._released.wait(_DRIP_SECONDS):
                send(body[place:])
                return
            try:
                send(body[place : place + 1])
            except OSError:
                self.hung_up.set()
                raise


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


def _handler_of(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else answers wait some 40 ms for an acknowledgement

        def do_POST(self) -> None:  # the name that http.server looks for
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.respond(self.command, self.path, headers, sent)
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self._send(answer)

        do_GET = do_HEAD = do_POST  # noqa: N815 - likewise

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            if answer.drips:
                server.drip(answer.body, self.wfile.write)
            elif self.command != "HEAD":
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return Handler


def unit(row: list[float]) -> list[float]:
    """``row`` of length 1, if it has one."""
    length = sum(number * number for number in row) ** 0.5
    return [number / length for number in row] if length else row
