"""Something else than an embedder, a reranker or a language model, asked with the same care."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from twofold.config import EmbeddingSettings
from twofold.embedders.breaker import Breaker, EmbedderState
from twofold.embedders.callables import called
from twofold.embedders.checking import raise_named
from twofold.embedders.deadline import Threads
from twofold.errors import ConfigurationError, EmbeddingError

__all__ = ["Asker"]

_T = TypeVar("_T")

_THREADS: Final = 8
"""How many calls may be under way."""


class Asker:
    """Asks so that nothing that is done can hold up or fail a search: under a deadline, and not for a while after it
    failed. May be used from any number of threads.
    """

    def __init__(
        self,
        name: str,
        deadline: float,
        settings: EmbeddingSettings,
        meanwhile: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet.

        Args:
            name: what errors and the log call it.
            deadline: how many seconds a call may take.
            settings: after how many failures it is left alone, and how long for.
            meanwhile: what the log says that happens then.
            clock: gives seconds that only grow.
        """
        self.name: Final = name
        self._deadline = deadline
        self._breaker = Breaker(name, settings, clock, meanwhile)
        self._threads = Threads(_THREADS, name, self._breaker)

    @property
    def state(self) -> EmbedderState:
        """How it does."""
        return self._breaker.state

    def ask(self, work: Callable[[], _T]) -> _T:
        """What ``work()`` gives, in another thread.

        Raises:
            EmbeddingError: it raised, took too long, or is not asked now.
            ConfigurationError: it cannot be used like this at all.
        """
        ticket = self._breaker.admit("query")
        try:
            answer = self._threads.call(lambda: self._named(work), self._deadline)
        except EmbeddingError as error:
            if error.text_at_fault:  # it answered, and what one caller asks must not take it away from the others
                self._breaker.succeeded(ticket, "query")
            else:
                self._breaker.failed(ticket, "query", error)
            raise
        except BaseException:  # the caller's error, an interrupt or a cancellation says nothing of who was asked
            self._breaker.given_up(ticket, "query")
            raise
        self._breaker.succeeded(ticket, "query")
        return answer

    def call(self, function: Callable[..., Any], answer: Callable[[], Any]) -> Any:
        """What ``answer()``, a call of the foreign ``function``, gives; for the work that is given to :meth:`ask`.

        Raises:
            EmbeddingError: the function raised it; others are told of its kind alone, for it may repeat a text.
            ConfigurationError: the function is async, and this thread runs an event loop.
        """
        try:
            return called(function, answer, self.name)
        except EmbeddingError as error:
            if error.summary == str(error):
                error.summary = type(error).__name__
            raise

    def _named(self, work: Callable[[], _T]) -> _T:
        try:
            return work()
        except (ConfigurationError, EmbeddingError):
            raise  # says already what it is
        except Exception as error:  # noqa: BLE001 - whatever a foreign library raises, the search goes on
            raise_named(error, self.name)
