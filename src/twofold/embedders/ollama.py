"""Embedding with an Ollama server, through its official client."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from twofold.embedders.bridging import calling_loop, run_awaitable
from twofold.embedders.callables import checked_dimension
from twofold.embedders.clients import (
    Clients,
    asked_in_batches,
    checked_batch_size,
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
)

__all__ = ["OllamaEmbedder"]

_DEFAULT_HOST: Final = "http://127.0.0.1:11434"
_SHOWN: Final = 200
"""How much of what a server says is handed on, in characters."""


class OllamaEmbedder:
    """Asks an Ollama server. Safe to be used from several threads; nothing is asked before the first text.

    In the async methods of a store it uses Ollama's async client on the caller's event loop, so that a search that
    is cancelled, or runs out of time, ends its request; else the synchronous client.

    Example:
        ``twofold.open("memory.db", embedder=OllamaEmbedder("nomic-embed-text", host="http://gpu-box:11434"))``
    """

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        host: str | None = None,
        timeout: float = 60.0,
        keep_alive: float | str | None = None,
        dimensions: int | None = None,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        """Nothing is imported or asked here.

        Args:
            model: as ``ollama list`` calls it; without a tag its ``latest``. Default: nomic-embed-text, of 768
                numbers.
            host: where the server is, e.g. ``"http://gpu-box:11434"``. Default: the environment variable
                ``OLLAMA_HOST``, else this machine's port 11434. Proxies named in the environment are not used for
                this machine itself.
            timeout: seconds after which the client gives a request up, above 0. A store has its own, shorter
                deadline for queries. Default: 60.
            keep_alive: how long the server keeps the model in memory after it: seconds, or a text like ``"10m"``;
                negative: for good. Default: the server's, 5 minutes.
            dimensions: cut vectors to so many numbers, if the model is made for that. Default: the model's own.
            batch_size: how many texts go into one request, at least 1. Default: 32.
            query_prefix: what is put before each query. Default: what the model's card says, for the families of
                nomic-embed-text, e5, mxbai-embed-large, snowflake-arctic-embed and embeddinggemma; else nothing.
            document_prefix: likewise, before each document.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        if host is not None and (not isinstance(host, str) or not host.strip()):
            raise ConfigurationError(f"host is an address, e.g. 'http://127.0.0.1:11434', not {host!r}")
        if isinstance(keep_alive, bool) or not isinstance(keep_alive, (int, float, str, type(None))):
            raise ConfigurationError(f"keep_alive is seconds, or a text like '10m', not {keep_alive!r}")
        checked_prefixes(query_prefix, document_prefix)
        self._model = checked_model(model, "nomic-embed-text")
        self._host = host
        self._timeout = checked_timeout(timeout)
        self._keep_alive = keep_alive
        self._dimensions = None if dimensions is None else checked_dimension(dimensions)
        self._learnt: int | None = None
        self._batch_size = checked_batch_size(batch_size)
        self._prefixes = prefixes_for(self._model, query=query_prefix, document=document_prefix)
        self._clients = Clients(self._synchronous, self._asynchronous)

    def __repr__(self) -> str:
        return f"OllamaEmbedder({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """Model with tag, the dimensions asked for, prefixes. Not the server: the model makes the vectors."""
        name = self._model.lower()  # as the server compares them
        tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        cut = "" if self._dimensions is None else f" dimensions={self._dimensions}"
        prefixes = "".join(f" {kind}={prefix!r}" for kind, prefix in self._prefixes.items() if prefix)
        return f"ollama:{tagged}{cut}{prefixes}"

    @property
    def dimension(self) -> int | None:
        """As asked for, or as a model of Ollama's library has; else learnt from the first answer, None before."""
        return self._dimensions or known_dimension(self._model) or self._learnt

    @property
    def batch_size(self) -> int:
        """As given."""
        return self._batch_size

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, of unit length, after putting the prefix of its ``kind`` before it.

        The server cuts a text that is too long for the model; if one refuses it instead, its beginning is embedded.

        Raises:
            MissingExtraError: the client is not installed.
            EmbedderUnreachableError: nothing answers there, or it answers with an error.
            EmbedderTimeoutError: it took longer than ``timeout``.
            EmbedderOutputError: it gave something else than one vector a text.
        """
        prefix = self._prefixes[kind]
        vectors = asked_in_batches(self._request, [prefix + text for text in texts], self._batch_size)
        if vectors and self._learnt is None:
            self._learnt = len(vectors[0]) or None
        return vectors

    def _request(self, batch: list[str]) -> Sequence[Sequence[float]]:
        """One request, in the way that suits the caller."""
        library = _import("ollama")
        asked = {
            "model": self._model,
            "input": batch,
            "keep_alive": self._keep_alive,
            "dimensions": self._dimensions,
        }
        try:
            loop = calling_loop.get()
            if loop is None:
                answer = self._clients.synchronous().embed(**asked)
            else:
                client = self._clients.of_loop(loop)
                answer = run_awaitable(lambda: client.embed(**asked), f"the embedder {self.fingerprint!r}")
        except library.ResponseError as error:
            self._raise_refusal(error)
        except ConnectionError as error:
            raise EmbedderUnreachableError(
                f"nothing answers at {self._shown_host}: start Ollama there (ollama serve), or pass another host",
                text_at_fault=False,
            ) from error
        except _import("httpx").TimeoutException as error:
            raise EmbedderTimeoutError(
                f"Ollama at {self._shown_host} did not answer within its client's time-out of {self._timeout:g} s"
            ) from error
        except _import("httpx").HTTPError as error:
            raise EmbedderUnreachableError(
                f"the connection to {self._shown_host} broke off ({type(error).__name__})", text_at_fault=False
            ) from error
        except ConfigurationError:
            raise  # a ValueError too
        except ValueError as error:  # no JSON, or not of the shape that the client expects
            raise EmbedderOutputError(
                f"what {self._shown_host} gave is no answer of Ollama's ({type(error).__name__}); is it Ollama?",
                text_at_fault=False if isinstance(error, json.JSONDecodeError) else None,
            ) from error
        vectors: Sequence[Sequence[float]] = answer.embeddings
        if len(vectors) != len(batch):
            raise EmbedderOutputError(f"Ollama gave {len(vectors)} vectors of {self._model!r} for {len(batch)} texts")
        return vectors

    def _raise_refusal(self, error: Any) -> NoReturn:
        said, status = str(error.error)[:_SHOWN], error.status_code
        lowered = said.lower()
        if status == 404 and "not found" in lowered and "page" not in lowered:
            raise EmbedderUnreachableError(
                f"Ollama at {self._shown_host} does not have the model {self._model!r}: ollama pull {self._model}",
                text_at_fault=False,
            ) from error
        if status == 404:
            raise EmbedderUnreachableError(
                f"{self._shown_host} knows no /api/embed: is it Ollama, 0.3 or newer?", text_at_fault=False
            ) from error
        if status == 400 and ("exceeds" in lowered or "context length" in lowered):
            raise EmbedderOutputError(f"a text is too long for {self._model!r} ({said})", text_at_fault=True) from error
        if "nan" in lowered.replace(":", " ").split() or " inf " in lowered:
            raise EmbedderOutputError(f"{self._model!r} made numbers that are none ({status}: {said})") from error
        raise EmbedderUnreachableError(
            f"Ollama at {self._shown_host} refused ({status}: {said})",
            text_at_fault=None if status in {400, 500} else False,
        ) from error

    @property
    def _address(self) -> str:
        return self._host or os.environ.get("OLLAMA_HOST") or _DEFAULT_HOST

    @property
    def _shown_host(self) -> str:
        """Without user and password, if it has those."""
        return self._address.rpartition("@")[2]

    def _synchronous(self) -> Any:
        return self._made(_import("ollama").Client, event_hooks={"response": [read_while_waited_for]})

    def _asynchronous(self) -> Any:
        limits = _import("httpx").Limits(max_keepalive_connections=0)
        return self._made(_import("ollama").AsyncClient, limits=limits)

    def _made(self, client: Any, **more: Any) -> Any:
        """A client that has a time-out, which Ollama's own default has not, and no proxy for this machine."""
        try:
            return client(self._address, timeout=self._timeout, trust_env=not is_this_machine(self._address), **more)
        except ValueError as error:
            raise ConfigurationError(f"no server can be asked at {self._shown_host!r}: {error}") from error


def _import(name: str) -> Any:
    """The client, or what it stands on."""
    return imported(name, "ollama", "ollama")
