"""A function as an embedder."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twofold.embedders.bridging import run_awaitable
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import ConfigurationError

__all__ = ["CallableEmbedder"]


class CallableEmbedder:
    """Makes an embedder of ``function(texts)`` or ``function(texts, kind=...)``, sync or async.

    Nothing is called until the first text is embedded. An async function runs on the caller's event loop under
    the async methods of a store (``await store.asearch(...)``), and on a loop of its own in synchronous code.

    Example:
        ``CallableEmbedder(client.embed, name="openai/text-embedding-3-small", dimension=1536)``
    """

    def __init__(self, function: Callable[..., Any], name: str, *, dimension: int | None = None) -> None:
        """Nothing is called here.

        Args:
            function: takes a list of texts and gives one vector a text, in order. If it has a parameter ``kind``,
                it is told ``"query"`` or ``"document"``.
            name: names the model, and whatever else changes its vectors (a prefix, say). It is stored with the
                vectors, and those of two names are never compared: give a new name to a new model.
            dimension: how many numbers a vector has. Default: learnt from the first answer.

        Raises:
            ConfigurationError: ``function`` cannot be called like that, ``name`` is empty, or ``dimension`` is not
                a whole number of at least 1.
        """
        if not callable(function):
            raise ConfigurationError(f"function must be callable, not a {type(function).__name__}")
        self._function = function
        self._name = checked_name(name)
        self._dimension = None if dimension is None else checked_dimension(dimension)
        self._takes_kind = _takes_kind(function)

    def __repr__(self) -> str:
        return f"CallableEmbedder({self._name!r}, dimension={self._dimension})"

    @property
    def fingerprint(self) -> str:
        """``callable:<name>``. The dimension is kept beside it in the file: stating it later changes no vector."""
        return f"callable:{self._name}"

    @property
    def dimension(self) -> int | None:
        """As given; None if it was not."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """What the function gives for a list of ``texts``.

        Raises:
            ConfigurationError: the function is async, and this thread runs an event loop.
        """

        def answer() -> Any:  # what a user's function gives is checked by the guard
            return self._function(list(texts), kind=kind) if self._takes_kind else self._function(list(texts))

        return called(self._function, answer, f"the embedder {self._name!r}")  # type: ignore[no-any-return]


def called(function: Callable[..., Any], answer: Callable[[], Any], what: str) -> Any:
    """What ``answer()``, a call of ``function``, gives; if that is async, when it is there.

    Args:
        function: sync or async.
        answer: calls it.
        what: it is, as errors say.

    Raises:
        ConfigurationError: it is async, and this thread runs an event loop.
    """
    result = run_awaitable(answer, what) if _is_async(function) else answer()
    if inspect.isawaitable(result):  # a plain function that hands on what an async one gave
        result = _awaited(result, what)
    return result


def checked_name(name: object) -> str:
    """``name``, for a fingerprint.

    Raises:
        ConfigurationError: it is no text, or empty.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(
            f"name must be a text that names the model, e.g. 'all-MiniLM-L6-v2', not {name!r}: "
            "vectors of two models are told apart by it"
        )
    return name


def checked_dimension(dimension: object) -> int:
    """``dimension``, at least 1.

    Raises:
        ConfigurationError: it is not a whole number, or less than 1.
    """
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
        raise ConfigurationError(f"dimension must be a whole number of at least 1, not {dimension!r}")
    return dimension


def _awaited(result: Awaitable[Any], what: str) -> Any:
    try:
        return run_awaitable(lambda: result, what)
    except ConfigurationError:
        if inspect.iscoroutine(result):
            result.close()  # it will not be awaited, and Python would warn of that
        raise


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is asked for, not whether it is there
    )


def _takes_kind(function: Callable[..., Any]) -> bool:
    """Whether ``function`` has a parameter ``kind``.

    Raises:
        ConfigurationError: it cannot be called with one list of texts.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some functions written in C do not tell
        return False
    kind = signature.parameters.get("kind")
    named = kind is not None and kind.kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)
    try:
        signature.bind([], kind="query") if named else signature.bind([])
    except TypeError as error:
        raise ConfigurationError(
            f"function must take a list of texts, and kind= if it likes: function(texts) or "
            f"function(texts, kind='query'); its signature is {signature}: {error}"
        ) from None
    return named
