"""Embedding with OpenAI, or any server that speaks its protocol, through the official client."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn

import numpy as np

from twofold.embedders.answers import in_order, refusal_of
from twofold.embedders.bridging import calling_loop, run_awaitable
from twofold.embedders.callables import checked_dimension
from twofold.embedders.clients import (
    Clients,
    Secret,
    asked_in_batches,
    checked_address,
    checked_batch_size,
    checked_key,
    checked_model,
    checked_prefixes,
    checked_timeout,
    imported,
    is_this_machine,
    read_while_waited_for,
)
from twofold.embedders.families import known_dimension, prefixes_for
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
)

__all__ = ["OpenAIEmbedder"]

_OPENAI: Final = "https://api.openai.com/v1"
_NO_KEY: Final = "none"
"""What the client, which insists on a key, sends to a server that was given none."""


class OpenAIEmbedder:
    """Asks OpenAI, or a server that speaks its protocol (vLLM, llama.cpp, LM Studio, gateways …), for embeddings.

    Safe to be used from several threads; nothing is asked before the first text. In the async methods of a store it
    uses the async client on the caller's event loop, else the synchronous one. The client repeats no request and
    follows no redirect: a store has one deadline for all, and a text goes where it was meant to go, or nowhere.

    Example:
        ``twofold.open("memory.db", embedder=OpenAIEmbedder("text-embedding-3-small"))``
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        dimensions: int | None = None,
        batch_size: int = 32,
        encoding_format: Literal["base64", "float"] = "base64",
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        """Nothing is imported or asked here.

        Args:
            model: as the server calls it. Default: text-embedding-3-small, of 1536 numbers.
            api_key: shown nowhere. Default: the environment variable ``OPENAI_API_KEY`` if ``base_url`` is not given
                here; a server that is named here gets no key but one that is given here.
            base_url: where the server is, e.g. ``"http://gpu-box:8000/v1"``. Default: the environment variable
                ``OPENAI_BASE_URL``, else OpenAI's own. Proxies named in the environment are not used for this
                machine itself.
            timeout: seconds after which the client gives a request up, above 0. A store has its own, shorter
                deadline for queries. Default: 60.
            dimensions: ask for vectors of so many numbers, if the model is made for that. Default: the model's own.
            batch_size: how many texts go into one request, at least 1. Default: 32.
            encoding_format: how numbers travel: ``"base64"``, which is a third of the size, or ``"float"`` for
                servers that refuse that. Default: ``"base64"``.
            query_prefix: what is put before each query. Default: what the model's card says, for the families that
                need it; nothing for OpenAI's own.
            document_prefix: likewise, before each document.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        self._model = checked_model(model, "text-embedding-3-small")
        self._key = checked_key(api_key)
        self._base_url = checked_address("base_url", base_url, "http://127.0.0.1:8000/v1")
        self._timeout = checked_timeout(timeout)
        self._dimensions = None if dimensions is None else checked_dimension(dimensions)
        self._learnt: int | None = None
        self._batch_size = checked_batch_size(batch_size)
        if encoding_format not in {"base64", "float"}:
            raise ConfigurationError(f"encoding_format is 'base64' or 'float', not {encoding_format!r}")
        self._format = encoding_format
        checked_prefixes(query_prefix, document_prefix)
        self._prefixes = prefixes_for(self._model, query=query_prefix, document=document_prefix)
        self._lock = threading.Lock()
        self._clients: Clients | None = None

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """Model, the dimensions asked for, prefixes. Neither the server nor the key: the model makes the vectors."""
        cut = "" if self._dimensions is None else f" dimensions={self._dimensions}"
        prefixes = "".join(f" {kind}={prefix!r}" for kind, prefix in self._prefixes.items() if prefix)
        return f"openai:{self._model}{cut}{prefixes}"

    @property
    def dimension(self) -> int | None:
        """As asked for, or as OpenAI's own models have; else learnt from the first answer, None before."""
        if self._dimensions is not None:
            return self._dimensions
        return known_dimension(self._model) if self._address == _OPENAI else self._learnt

    @property
    def batch_size(self) -> int:
        """As given."""
        return self._batch_size

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, after putting the prefix of its ``kind`` before it.

        A text that is too long for the model is cut to its beginning.

        Raises:
            MissingExtraError: the client is not installed.
            ConfigurationError: there is no key for OpenAI.
            EmbedderUnreachableError: nothing answers there, or it answers with an error.
            EmbedderTimeoutError: it took longer than ``timeout``.
            EmbedderOutputError: it gave something else than one vector a text.
        """
        prefix = self._prefixes[kind]
        vectors = asked_in_batches(self._request, [prefix + text for text in texts], self._batch_size)
        if vectors and self._learnt is None:
            self._learnt = len(vectors[0]) or None
        return vectors

    def _request(self, batch: list[str]) -> list[Any]:
        """One request, in the way that suits the caller."""
        library = imported("openai", "openai", "openai")
        clients = self._clients_of(library)
        asked: dict[str, Any] = {"model": self._model, "input": batch, "encoding_format": self._format}
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        try:
            loop = calling_loop.get()
            if loop is None:
                answer = clients.synchronous().embeddings.create(**asked)
            else:
                client = clients.of_loop(loop)
                answer = run_awaitable(lambda: client.embeddings.create(**asked), f"the embedder {self.fingerprint!r}")
        except library.APITimeoutError as error:
            raise EmbedderTimeoutError(
                f"{self._shown} did not answer within its client's time-out of {self._timeout:g} s"
            ) from error
        except library.APIConnectionError as error:
            raise self._lost(error) from error
        except library.APIStatusError as error:
            self._raise_refusal(error)
        except ConfigurationError:
            raise  # a ValueError too
        except ValueError as error:  # no JSON
            raise EmbedderOutputError(
                f"what {self._shown} gave is no answer to a request for embeddings ({type(error).__name__})",
                text_at_fault=False,
            ) from error
        return in_order(getattr(answer, "data", None), len(batch), self._shown, self._numbers)

    def _numbers(self, item: Any) -> Any:
        """The vector of one item of an answer; servers may send numbers where base64 was asked for."""
        sent = item.embedding
        if isinstance(sent, str):
            return np.frombuffer(base64.b64decode(sent, validate=True), dtype="<f4")
        return sent

    def _lost(self, error: Any) -> EmbeddingError:
        """The error for a connection that could not be made, or broke off; the client says only that there is none."""
        cause = type(error.__cause__).__name__
        if "Connect" in cause:
            return EmbedderUnreachableError(
                f"nothing answers at {self._shown}: check that it runs, or pass another base_url", text_at_fault=False
            )
        return EmbedderUnreachableError(f"the connection to {self._shown} broke off ({cause})", text_at_fault=False)

    def _raise_refusal(self, error: Any) -> NoReturn:
        body = error.body
        said = body.get("message") if isinstance(body, dict) else None
        status = error.status_code
        if status in {401, 403}:
            advice = "set OPENAI_API_KEY" if self._base_url is None else "pass api_key= for that server"
        elif status == 404:
            advice = f"does it have the model {self._model!r}, and does its address end in /v1?"
        else:
            advice = None
        refusal = refusal_of(
            self._shown,
            status,
            (self._secret() or Secret("")).hidden_in(str(said if said is not None else error.message)),
            retry_after=error.response.headers.get("retry-after"),
            advice=advice,
        )
        raise refusal from None  # the client's error may repeat the key

    @property
    def _address(self) -> str:
        named = self._base_url or checked_address("OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL") or None, _OPENAI)
        return named or _OPENAI

    @property
    def _shown(self) -> str:
        return "OpenAI" if self._address == _OPENAI else self._address

    def _secret(self) -> Secret | None:
        if self._key is None and self._base_url is None:
            return checked_key(os.environ.get("OPENAI_API_KEY") or None)
        return self._key

    def _clients_of(self, library: Any) -> Clients:
        """The clients, made with the address and the key of the first request."""
        with self._lock:
            if self._clients is None:
                self._clients = self._made(library)
            return self._clients

    def _made(self, library: Any) -> Clients:
        address, secret = self._address, self._secret()
        if secret is None and address == _OPENAI:
            raise ConfigurationError(
                "OpenAI wants a key: set the environment variable OPENAI_API_KEY, or pass api_key="
            )
        known: dict[str, Any] = {
            "api_key": _NO_KEY if secret is None else secret.reveal(),
            "base_url": address,
            "timeout": self._timeout,
            "max_retries": 0,
        }
        shared: dict[str, Any] = {"follow_redirects": False, "trust_env": not is_this_machine(address)}
        no_idle = type(library.DEFAULT_CONNECTION_LIMITS)(max_keepalive_connections=0)
        hooks = {"response": [read_while_waited_for]}
        return Clients(
            lambda: library.OpenAI(http_client=library.DefaultHttpxClient(event_hooks=hooks, **shared), **known),
            lambda: library.AsyncOpenAI(http_client=library.DefaultAsyncHttpxClient(limits=no_idle, **shared), **known),
        )
