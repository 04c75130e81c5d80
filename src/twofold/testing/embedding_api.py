"""Stand-ins for OpenAI and Voyage: they speak their protocols on this machine, and fail as they do when told to."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np

from twofold.testing.embedders import FakeEmbedder
from twofold.testing.serving import Answer, LoopbackServer, unit

__all__ = ["ApiFault", "ApiRequest", "FakeOpenAI", "FakeVoyage"]

RETRY_AFTER: Final = 20
"""Seconds that a server asks for which limits the rate."""
_SLOW_SECONDS: Final = 0.2


class ApiFault(StrEnum):
    """What goes wrong with one request, or is merely unusual."""

    BAD_KEY = "bad_key"
    """401, and the key that is not taken, in full."""
    NO_MODEL = "no_model"
    """404: there is no such model."""
    BAD_REQUEST = "bad_request"
    """400, without a known reason."""
    TOO_LONG = "too_long"
    """400: a text is longer than the model's context."""
    RATE_LIMITED = "rate_limited"
    """429, and the header Retry-After."""
    ERROR = "error"
    """500."""
    BUSY = "busy"
    """503."""
    ELSEWHERE = "elsewhere"
    """307, to the address in ``elsewhere``."""
    SLOW = "slow"
    """The right answer, after 0.2 s."""
    WAITS = "waits"
    """No answer until ``release()``; then the right one."""
    DRIPS = "drips"
    """200, and the right answer, byte by byte; after ``release()`` the rest of it at once."""
    DROPPED = "dropped"
    """The connection is closed without an answer."""
    CUT = "cut"
    """200, and JSON that breaks off."""
    HTML = "html"
    """200, and a page, as a captive portal gives."""
    NO_FIELD = "no_field"
    """200, and JSON without data."""
    NO_VECTOR = "no_vector"
    """200, and items without an embedding."""
    NOT_BASE64 = "not_base64"
    """200, and a text for an embedding that is none."""
    EMPTY = "empty"
    """200, and no embeddings."""
    SHORT = "short"
    """200, and one embedding too few."""
    UNORDERED = "unordered"
    """200, and the right embeddings, the last first, each with its index."""
    UNNUMBERED = "unnumbered"
    """200, and the right embeddings in order, without an index."""
    SAME_NUMBER = "same_number"
    """200, and every embedding with the index 0."""
    FLOATS = "floats"
    """200, and the right embeddings as numbers, whatever was asked for."""
    NAN = "nan"
    """200, and NaN among the numbers."""
    NULL = "null"
    """200, and null among the numbers."""
    ZERO = "zero"
    """200, and all numbers zero."""
    OTHER_DIMENSION = "other_dimension"
    """200, and vectors one number shorter."""


Faults: TypeAlias = "ApiFault | Callable[[Sequence[str]], ApiFault | None] | None"

_REFUSALS: Final = {
    ApiFault.BAD_KEY: (401, "Incorrect API key provided: {key}."),
    ApiFault.NO_MODEL: (404, "The model `{model}` does not exist or you do not have access to it."),
    ApiFault.BAD_REQUEST: (400, "'$.input' is invalid: {text}"),
    ApiFault.TOO_LONG: (400, "This model's maximum context length is 8192 tokens. Please reduce the length."),
    ApiFault.RATE_LIMITED: (429, "Rate limit reached."),
    ApiFault.ERROR: (500, "The server had an error while processing your request."),
    ApiFault.BUSY: (503, "The engine is currently overloaded."),
}
_AS_NUMBERS: Final = {ApiFault.FLOATS, ApiFault.NULL}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request for embeddings, as it came."""

    model: str
    """The model asked for."""
    input: tuple[str, ...]
    """The texts, with their prefixes."""
    body: dict[str, Any]
    """All of it."""
    key: str = field(repr=False)
    """The key that was sent."""


class FakeOpenAI(LoopbackServer):
    """A server that speaks OpenAI's protocol for embeddings, for tests, for a ``with`` block.

    Example:
        ``with FakeOpenAI() as server: OpenAIEmbedder(base_url=server.base_url, api_key="any")``
    """

    name = "fake-openai"
    _asks_dimensions = "dimensions"

    def __init__(self, vectors: Callable[[str], Sequence[float]] | None = None, *, dimension: int = 1536) -> None:
        """Nothing listens yet.

        Args:
            vectors: makes a text's vector. Default: those of a :class:`FakeEmbedder`.
            dimension: with so many numbers. Default: 1536, as text-embedding-3-small.
        """
        super().__init__()
        fake = FakeEmbedder(dimension)
        self._vectors = vectors or (lambda text: fake.embed([text], "document")[0].tolist())
        self.fault: Faults = None
        """What goes wrong with the requests to come: one fault for all, or what a function says of the texts of
        each; None: nothing."""
        self.elsewhere = "http://127.0.0.1:9/v1/embeddings"
        """Where a request is sent on to."""
        self.requests: list[ApiRequest] = []
        """All requests for embeddings, in the order in which they came."""

    @property
    def base_url(self) -> str:
        """What to give to a client."""
        return f"{self.host}/v1"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:
        """The answer to one request; None: the connection is dropped."""
        if method != "POST" or path != "/v1/embeddings":
            return Answer.of(404, self._refusal("Not found"))
        asked = json.loads(body)
        given = asked["input"]
        texts = [given] if isinstance(given, str) else list(given)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        self.requests.append(ApiRequest(str(asked.get("model")), tuple(texts), asked, key))
        self.arrived.set()
        fault = self.fault(texts) if callable(self.fault) else self.fault
        if fault is ApiFault.WAITS:
            self.wait_for_release()
        elif fault is ApiFault.SLOW:
            self.wait_for_release(_SLOW_SECONDS)
        elif fault is ApiFault.DROPPED:
            return None
        elif fault is ApiFault.HTML:
            return Answer(200, b"<!doctype html><title>Sign in</title>", "text/html")
        elif fault is ApiFault.ELSEWHERE:
            return Answer(307, b"", headers=(("Location", self.elsewhere),))
        elif fault in _REFUSALS:
            return self._refused(fault, key, str(asked.get("model")), texts)
        return self._answered(asked, texts, fault)

    def _refused(self, fault: ApiFault, key: str, model: str, texts: Sequence[str]) -> Answer:
        status, said = _REFUSALS[fault]
        for name, value in {"key": key, "model": model, "text": texts[0] if texts else ""}.items():
            said = said.replace(f"{{{name}}}", value)
        if status == 429:
            return Answer.of(status, self._refusal(said), retry_after=str(RETRY_AFTER))
        return Answer.of(status, self._refusal(said))

    def _answered(self, asked: dict[str, Any], texts: Sequence[str], fault: ApiFault | None) -> Answer:
        rows: list[list[Any]] = [list(map(float, self._vectors(text))) for text in texts]
        dimensions = asked.get(self._asks_dimensions)
        if isinstance(dimensions, int):
            rows = [unit(row[:dimensions]) for row in rows]
        as_base64 = asked.get("encoding_format") == "base64" and fault not in _AS_NUMBERS
        data: list[dict[str, Any]] = [
            {"object": "embedding", "embedding": _base64(row) if as_base64 else row, "index": place}
            for place, row in enumerate(_spoilt(rows, fault))
        ]
        for item in data:
            if fault is ApiFault.NO_VECTOR:
                del item["embedding"]
            elif fault is ApiFault.NOT_BASE64:
                item["embedding"] = "no!"
            elif fault is ApiFault.UNNUMBERED:
                del item["index"]
            elif fault is ApiFault.SAME_NUMBER:
                item["index"] = 0
        if fault is ApiFault.UNORDERED:
            data.reverse()
        answer = {"object": "list", "data": data, "model": asked.get("model"), "usage": {"total_tokens": 1}}
        if fault is ApiFault.NO_FIELD:
            del answer["data"]
        sent = json.dumps(answer).encode()
        return Answer(200, sent[: len(sent) // 2] if fault is ApiFault.CUT else sent, drips=fault is ApiFault.DRIPS)

    def _refusal(self, said: str) -> dict[str, Any]:
        return {"error": {"message": said, "type": "invalid_request_error", "param": None, "code": None}}


class FakeVoyage(FakeOpenAI):
    """A server that speaks Voyage's protocol for embeddings, for tests, for a ``with`` block.

    Example:
        ``with FakeVoyage() as server: VoyageEmbedder(base_url=server.base_url, api_key="any")``
    """

    name = "fake-voyage"
    _asks_dimensions = "output_dimension"

    def __init__(self, vectors: Callable[[str], Sequence[float]] | None = None, *, dimension: int = 1024) -> None:
        """Nothing listens yet.

        Args:
            vectors: makes a text's vector. Default: those of a :class:`FakeEmbedder`.
            dimension: with so many numbers. Default: 1024, as voyage-code-3.
        """
        super().__init__(vectors, dimension=dimension)

    def _refusal(self, said: str) -> dict[str, Any]:
        return {"detail": said}


def _base64(row: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()


def _spoilt(rows: list[list[Any]], fault: ApiFault | None) -> list[list[Any]]:
    if fault is ApiFault.EMPTY:
        return []
    if fault is ApiFault.SHORT:
        return rows[:-1]
    if fault is ApiFault.OTHER_DIMENSION:
        return [row[:-1] for row in rows]
    if fault is ApiFault.ZERO:
        return [[0.0] * len(row) for row in rows]
    if fault in {ApiFault.NAN, ApiFault.NULL}:
        return [[float("nan") if fault is ApiFault.NAN else None, *row[1:]] for row in rows]
    return rows
