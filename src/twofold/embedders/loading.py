"""Models that are loaded into this process on first use, perhaps after a download."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from twofold.errors import ConfigurationError, EmbedderUnreachableError

__all__ = ["LoadedOnce"]

_AGAIN_AFTER: Final = 60.0
"""Seconds for which a model that could not be loaded is not tried again: libraries try a download for long."""
_SHOWN: Final = 200
"""How much of what a library says is handed on, in characters."""


class LoadedOnce:
    """Loads a model when it is first needed, once. May be used from any number of threads."""

    def __init__(self, load: Callable[[], Any], advice: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Load nothing yet.

        Args:
            load: gives the model, or raises anything.
            advice: what an error says to do if it cannot be loaded.
            clock: gives seconds that only grow.
        """
        self._load = load
        self._advice = advice
        self._clock = clock
        self._lock = threading.Lock()
        self._models: list[Any] = []
        self._failure: str | None = None
        self._retry_at = 0.0

    def get(self) -> Any:
        """The model.

        Raises:
            ConfigurationError: it never can be loaded like this.
            EmbedderUnreachableError: it could not be loaded now, or less than a minute ago.
        """
        if not self._models:
            with self._lock:
                if not self._models:
                    self._models.append(self._loaded())
        return self._models[0]

    def _loaded(self) -> Any:
        if self._failure is not None and self._clock() < self._retry_at:
            raise EmbedderUnreachableError(self._failure, text_at_fault=False)
        try:
            return self._load()
        except ConfigurationError:
            raise
        except Exception as error:  # whatever a library raises for a download that was refused
            said = " ".join(str(error).split())[:_SHOWN]
            self._failure = f"{self._advice} ({type(error).__name__}: {said})"
            self._retry_at = self._clock() + _AGAIN_AFTER
            raise EmbedderUnreachableError(self._failure, text_at_fault=False) from error
