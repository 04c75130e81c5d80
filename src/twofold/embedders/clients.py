"""What embedders that ask a server through its official client have in common."""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, finalize

from twofold.cancellation import Cancellation, current_cancellation
from twofold.errors import ConfigurationError, EmbedderOutputError, MissingExtraError

__all__ = [
    "Clients",
    "Secret",
    "asked_in_batches",
    "checked_address",
    "checked_batch_size",
    "checked_key",
    "checked_model",
    "checked_prefixes",
    "checked_timeout",
    "imported",
    "is_this_machine",
    "read_while_waited_for",
]

_SAFE_LENGTH: Final = 1500
"""Characters, the prefix included, that the context of every usual model has room for."""


class Secret:
    """A text that shows itself to nobody who only prints what holds it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret()"

    def reveal(self) -> str:
        """The text."""
        return self._text

    def hidden_in(self, said: str) -> str:
        """``said`` without it: servers repeat a key that they do not take."""
        return said.replace(self._text, "[key]") if self._text else said


class Clients:
    """One synchronous client, made when it is first needed, and one for each event loop that asks."""

    def __init__(self, synchronous: Callable[[], Any], asynchronous: Callable[[], Any]) -> None:
        """Make nothing yet.

        Args:
            synchronous: makes the client for synchronous calls; it is closed when this is forgotten.
            asynchronous: makes one for an event loop. It must keep no idle connections: they would outlive the loop.
        """
        self._make_synchronous = synchronous
        self._make_asynchronous = asynchronous
        self._lock = threading.Lock()
        self._client: Any = None
        self._of_loops: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def synchronous(self) -> Any:
        """The client for synchronous calls, from any thread."""
        with self._lock:
            if self._client is None:
                self._client = self._make_synchronous()
                finalize(self, self._client.close)  # it keeps connections, which would otherwise be left open
            return self._client

    def of_loop(self, loop: asyncio.AbstractEventLoop) -> Any:
        """The client of this event loop."""
        with self._lock:
            if loop not in self._of_loops:
                self._of_loops[loop] = self._make_asynchronous()
            return self._of_loops[loop]


def asked_in_batches(ask: Callable[[list[str]], Sequence[Any]], texts: Sequence[str], batch_size: int) -> list[Any]:
    """One vector a text, from requests of at most ``batch_size`` texts.

    A text that is too long for the model is halved, to its beginning, until it is taken, if it was asked for alone.

    Raises:
        EmbeddingError: whatever ``ask`` raises.
    """
    vectors: list[Any] = []
    for start in range(0, len(texts), batch_size):
        batch = list(texts[start : start + batch_size])
        while True:
            try:
                vectors += ask(batch)
                break
            except EmbedderOutputError as error:
                if not error.text_at_fault or len(batch) > 1 or len(batch[0]) <= _SAFE_LENGTH:
                    raise
                batch = [batch[0][: max(_SAFE_LENGTH, len(batch[0]) // 2)]]
    return vectors


def read_while_waited_for(response: Any) -> None:
    """Let the body of httpx's ``response`` end, and its connection with it, once nobody waits for it any more.

    A client's time-out is that of each piece. An answer that comes byte by byte would have no end otherwise.
    """
    cancellation = current_cancellation.get()
    if cancellation is not None:
        response.stream = _unless_cancelled(response.stream, cancellation)


def _unless_cancelled(stream: Any, cancellation: Cancellation) -> Any:
    library: Any = importlib.import_module(type(stream).__module__.partition(".")[0])  # httpx, or a successor of it

    class Pieces(library.SyncByteStream):  # type: ignore[misc]  # the library is loaded by name
        def __iter__(self) -> Iterator[bytes]:
            for piece in stream:
                if cancellation.cancelled:
                    raise asyncio.CancelledError("called off while the embedder was asked")
                yield piece

        def close(self) -> None:
            stream.close()

    return Pieces()


def is_this_machine(address: str) -> bool:
    """Whether the server at ``address`` runs here; proxies are not asked for it."""
    name = urlsplit(address if "://" in address else f"http://{address}").hostname or "127.0.0.1"
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(name)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified


def imported(name: str, library: str, extra: str) -> Any:
    """The module ``name``.

    Raises:
        MissingExtraError: ``library``, which brings it, is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(library, extra) from error


def checked_model(model: object, example: str) -> str:
    """``model``, without space around it.

    Raises:
        ConfigurationError: it is no text, or empty.
    """
    if not isinstance(model, str) or not model.strip():
        raise ConfigurationError(f"model is the name of one, e.g. {example!r}, not {model!r}")
    return model.strip()


def checked_address(name: str, address: object, example: str) -> str | None:
    """``address``, which may be None.

    Raises:
        ConfigurationError: it is no text, not the address of a web server, or holds a password.
    """
    if address is None:
        return None
    if isinstance(address, str):
        try:
            parts = urlsplit(address.strip())
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if "@" in address:
            raise ConfigurationError(
                f"{name} takes no user and password: pass api_key=, and an address like {example!r}"
            )
        if usable:
            return address.strip().rstrip("/")
    raise ConfigurationError(f"{name} is an address, e.g. {example!r}, not {address!r}")


def checked_timeout(timeout: object) -> float:
    """``timeout``, in seconds.

    Raises:
        ConfigurationError: it is no number, or not above 0.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= 86_400:
        raise ConfigurationError(f"timeout is a number of seconds above 0, not {timeout!r}")
    return float(timeout)


def checked_batch_size(batch_size: object) -> int:
    """``batch_size``.

    Raises:
        ConfigurationError: it is not a whole number of at least 1.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ConfigurationError(f"batch_size is a whole number of at least 1, not {batch_size!r}")
    return batch_size


def checked_prefixes(query_prefix: object, document_prefix: object) -> None:
    """Nothing, if each is a text or None.

    Raises:
        ConfigurationError: one is neither.
    """
    for name, prefix in (("query_prefix", query_prefix), ("document_prefix", document_prefix)):
        if prefix is not None and not isinstance(prefix, str):
            raise ConfigurationError(f"{name} is a text, '' for none, not {prefix!r}")


def checked_key(api_key: object) -> Secret | None:
    """``api_key``, hidden; it may be None.

    Raises:
        ConfigurationError: it is no text, or empty, or could not stand in a header; the message does not show it.
    """
    if api_key is None:
        return None
    if not isinstance(api_key, str) or not api_key.strip():
        raise ConfigurationError("api_key is a text that is not empty, or None for that of the environment")
    if not api_key.isascii() or not api_key.strip().isprintable():
        raise ConfigurationError("api_key holds characters that no key has; was it copied whole?")
    return Secret(api_key.strip())
