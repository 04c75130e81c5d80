"""A stand-in for an Ollama server: speaks its protocol on this machine, and can be made to fail in its ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from twofold.embedders.families import known_dimension
from twofold.testing.embedders import FakeEmbedder
from twofold.testing.serving import Answer, LoopbackServer, unit

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
    DRIPS = "drips"
    """200, and the right answer, byte by byte and for minutes; after ``release()`` the rest of it at once."""
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


class FakeOllama(LoopbackServer):
    """An Ollama server for tests, on a free port of this machine, for a ``with`` block.

    Example:
        ``with FakeOllama() as server: twofold.open(":memory:", embedder=OllamaEmbedder(host=server.host))``
    """

    name = "fake-ollama"

    def __init__(
        self,
        vectors: Callable[[str], Sequence[float]] | None = None,
        *,
        models: Sequence[str] = ("nomic-embed-text",),
    ) -> None:
        """Nothing listens yet.

        Args:
            vectors: makes a text's vector. Default: those of a :class:`FakeEmbedder`, as long as the model's, or
                of 768 numbers if that is not known.
            models: the models that are there; names without a tag are ``latest``.
        """
        super().__init__()
        self._vectors = vectors
        self.models = [_tagged(model) for model in models]
        """The models that are there; may be changed."""
        self.fault: Faults = None
        """What goes wrong with the requests to come: one fault for all, or what a function says of the texts of
        each; None: nothing."""
        self.requests: list[OllamaRequest] = []
        """All requests for embeddings, in the order in which they came."""

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:  # noqa: ARG002 - as every server is asked
        """The answer to one request; None: the connection is dropped."""
        if (method, path) == ("POST", "/api/embed"):
            return self.answer(json.loads(body))
        if method != "POST" and path == "/":
            return Answer(200, b"Ollama is running", "text/plain")
        if method != "POST" and path == "/api/version":
            return Answer.of(200, {"version": "0.12.0"})
        if method != "POST" and path == "/api/tags":
            return Answer.of(200, self.tags())
        return Answer(404, b"404 page not found", "text/plain")

    def answer(self, body: dict[str, Any]) -> Answer | None:
        """The answer to one request for embeddings; None: the connection is dropped."""
        model, given = str(body.get("model", "")), body.get("input", [])
        texts = [given] if isinstance(given, str) and given else list(given)
        self.requests.append(OllamaRequest(model, tuple(texts), body))
        self.arrived.set()
        fault = self.fault(texts) if callable(self.fault) else self.fault
        if fault is OllamaFault.WAITS:
            self.wait_for_release()
        if _tagged(model) not in self.models:
            fault = OllamaFault.NOT_PULLED
        if fault in _REFUSALS:
            status, said = _REFUSALS[fault]
            return Answer(status, json.dumps({"error": said.replace("{model}", model)}).encode())
        if fault is OllamaFault.DROPPED:
            return None
        if fault is OllamaFault.HTML:
            return Answer(200, b"<!doctype html><title>Sign in</title>", "text/html")
        rows = [self._vector(model, text) for text in texts]
        dimensions = body.get("dimensions")
        if isinstance(dimensions, int) and rows and 0 < dimensions < len(rows[0]):
            rows = [unit(row[:dimensions]) for row in rows]
        spoilt: dict[str, Any] = {"model": model, "embeddings": _spoilt(rows, fault), "total_duration": 1}
        if fault is OllamaFault.NO_FIELD:
            del spoilt["embeddings"]
        sent = json.dumps(spoilt).encode()
        if fault is OllamaFault.CUT:
            sent = sent[: len(sent) // 2]
        return Answer(200, sent, drips=fault is OllamaFault.DRIPS)

    def _vector(self, model: str, text: str) -> list[float]:
        if self._vectors is not None:
            return list(map(float, self._vectors(text)))
        fake = FakeEmbedder(known_dimension(model) or _DIMENSION)
        return [float(number) for number in fake.embed([text], "document")[0]]

    def tags(self) -> dict[str, Any]:
        """What ``GET /api/tags`` gives."""
        return {"models": [{"name": model, "model": model, "size": 1, "details": {}} for model in self.models]}


def _tagged(model: str) -> str:
    name = model.lower()
    return name if ":" in name else f"{name}:latest"


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
