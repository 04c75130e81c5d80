"""Embedding with Voyage AI, through the official client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from twofold.embedders.answers import in_order, refusal_of
from twofold.embedders.bridging import calling_loop, run_apart, run_awaitable
from twofold.embedders.callables import checked_dimension
from twofold.embedders.clients import (
    Secret,
    asked_in_batches,
    checked_address,
    checked_batch_size,
    checked_key,
    checked_model,
    checked_timeout,
    imported,
    is_this_machine,
)
from twofold.embedders.families import known_dimension
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
)

__all__ = ["VoyageEmbedder"]

_STATUS_OF: Final = {"ServerError": 500, "ServiceUnavailableError": 503}
"""Errors of the client that may come without a status."""


class VoyageEmbedder:
    """Asks Voyage AI, and tells it whether a text is a query or a document. Safe to be used from several threads.

    Each request has a connection of its own, is made on the caller's event loop where it has one, and ends when
    nobody waits for it any more. No request is repeated and no redirect followed: a store has one deadline for all,
    and a text goes where it was meant to go, or nowhere.

    Example:
        ``twofold.open("memory.db", embedder=VoyageEmbedder("voyage-code-3"))``
    """

    def __init__(
        self,
        model: str = "voyage-code-3",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        dimensions: int | None = None,
        batch_size: int = 32,
    ) -> None:
        """Nothing is imported or asked here.

        Args:
            model: as Voyage calls it. Default: voyage-code-3, of 1024 numbers.
            api_key: shown nowhere. Default: the environment variable ``VOYAGE_API_KEY`` if ``base_url`` is not given.
            base_url: where the server is. Default: Voyage's own, as the client knows it. Proxies named in the
                environment are not used for this machine itself.
            timeout: seconds after which a request is given up, above 0. A store has its own, shorter deadline for
                queries. Default: 60.
            dimensions: ask for vectors of so many numbers, if the model is made for that. Default: the model's own.
            batch_size: how many texts go into one request, at least 1. Default: 32.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        self._model = checked_model(model, "voyage-code-3")
        self._key = checked_key(api_key)
        self._base_url = checked_address("base_url", base_url, "https://api.voyageai.com/v1")
        self._timeout = checked_timeout(timeout)
        self._dimensions = None if dimensions is None else checked_dimension(dimensions)
        self._learnt: int | None = None
        self._batch_size = checked_batch_size(batch_size)

    def __repr__(self) -> str:
        return f"VoyageEmbedder({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """Model, the dimensions asked for, and that it is told what a text is. Neither the server nor the key."""
        cut = "" if self._dimensions is None else f" dimensions={self._dimensions}"
        return f"voyage:{self._model}{cut} input_type"

    @property
    def dimension(self) -> int | None:
        """As asked for, or as the model is known to have; else learnt from the first answer, None before."""
        return self._dimensions or known_dimension(self._model) or self._learnt

    @property
    def batch_size(self) -> int:
        """As given."""
        return self._batch_size

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, made for texts of its ``kind``. Voyage cuts a text that is too long for the model.

        Raises:
            MissingExtraError: the client is not installed.
            ConfigurationError: there is no key.
            EmbedderUnreachableError: nothing answers there, or it answers with an error.
            EmbedderTimeoutError: it took longer than ``timeout``.
            EmbedderOutputError: it gave something else than one vector a text.
        """
        vectors = asked_in_batches(lambda batch: self._request(batch, kind), texts, self._batch_size)
        if vectors and self._learnt is None:
            self._learnt = len(vectors[0]) or None
        return vectors

    def _request(self, batch: list[str], kind: EmbeddingKind) -> list[Any]:
        library, transport = imported("voyageai", "voyageai", "voyage"), imported("aiohttp", "voyageai", "voyage")
        secret = self._secret()
        what = f"the embedder {self.fingerprint!r}"

        async def ask() -> Any:
            return await self._asked(library, transport, secret, batch, kind)

        try:
            answer = run_apart(ask) if calling_loop.get() is None else run_awaitable(ask, what)
        except (library.error.Timeout, TimeoutError) as error:
            raise EmbedderTimeoutError(
                f"{self._shown} did not answer within its client's time-out of {self._timeout:g} s"
            ) from error
        except library.error.VoyageError as error:
            self._raise_named(error, secret)
        except transport.ClientError as error:  # while the body is read, which the client does not translate
            raise self._broken_off(error) from error
        except ConfigurationError:
            raise  # a ValueError too
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # not of the shape that the client expects
            raise EmbedderOutputError(
                f"what {self._shown} gave is no answer to a request for embeddings ({type(error).__name__})",
                text_at_fault=False,
            ) from error
        return in_order(getattr(answer, "data", None), len(batch), self._shown, lambda item: item.embedding)

    async def _asked(self, library: Any, transport: Any, secret: Secret, batch: list[str], kind: EmbeddingKind) -> Any:
        """The answer. The client takes its session from a context variable, which is this task's own.

        ``Embedding.acreate`` and not ``AsyncClient.embed``: that one drops the numbers that say whose a vector is, and
        computes some models here, from weights that it downloads.
        """
        tracing = transport.TraceConfig()
        tracing.on_request_redirect.append(self._refuse_redirect)
        async with transport.ClientSession(trace_configs=[tracing], proxy=_proxy_for(self._base_url)) as session:
            token = library.aiosession.set(session)
            try:
                return await library.Embedding.acreate(
                    input=batch,
                    model=self._model,
                    input_type=kind,
                    truncation=True,
                    output_dimension=self._dimensions,
                    api_key=secret.reveal(),
                    base_url=self._base_url,
                    request_timeout=self._timeout,
                )
            finally:
                library.aiosession.reset(token)

    async def _refuse_redirect(self, session: Any, context: Any, params: Any) -> None:  # noqa: ARG002 - as aiohttp calls it
        raise refusal_of(self._shown, params.response.status, "it sends elsewhere", retry_after=None, advice=None)

    def _broken_off(self, error: BaseException) -> EmbedderUnreachableError:
        kind = type(error).__name__
        if "Connector" in kind:
            message = f"nothing answers at {self._shown}: check the network, or pass another base_url"
        else:
            message = f"the connection to {self._shown} broke off ({kind})"
        return EmbedderUnreachableError(message, text_at_fault=False)

    def _raise_named(self, error: Any, secret: Secret) -> NoReturn:
        status = error.http_status or _STATUS_OF.get(type(error).__name__)
        if status is None:
            raise self._broken_off(error.__cause__ or error) from error
        if status < 300:
            raise EmbedderOutputError(
                f"what {self._shown} gave is no answer to a request for embeddings (no JSON)", text_at_fault=False
            ) from None
        body = error.json_body
        said = body.get("detail") if isinstance(body, dict) else None
        advice = None
        if status in {401, 403}:
            advice = "set VOYAGE_API_KEY" if self._base_url is None else "pass api_key= for that server"
        raise refusal_of(
            self._shown,
            status,
            secret.hidden_in(str(said or error.user_message)),
            retry_after=error.headers.get("retry-after"),
            advice=advice,
        ) from None  # the client's error repeats all of the answer

    @property
    def _shown(self) -> str:
        return "Voyage" if self._base_url is None else self._base_url

    def _secret(self) -> Secret:
        secret = self._key
        if secret is None and self._base_url is None:
            secret = checked_key(os.environ.get("VOYAGE_API_KEY") or None)
        if secret is None:
            raise ConfigurationError(
                "Voyage wants a key: set the environment variable VOYAGE_API_KEY, or pass api_key="
                if self._base_url is None
                else "a server named by base_url gets no key from the environment: pass api_key="
            )
        return secret


def _proxy_for(address: str | None) -> str | None:
    """The proxy that the environment names for ``address``, or for Voyage's own, which is elsewhere.

    Not by the session's ``trust_env``: that also reads passwords from ``.netrc``, and refuses them beside a key.
    """
    parts = urlsplit(address or "https://api.voyageai.com")
    if (address is not None and is_this_machine(address)) or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
