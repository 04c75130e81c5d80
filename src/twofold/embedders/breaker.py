"""When an embedder that failed is asked again.

::

                  enough failures, or one that cost its whole deadline
        closed ─────────────────────────────────────────────────────────► open ◄──┐
           ▲                                                               │      │
           │                                       after a pause one call  │      │ it fails: a longer pause
           │                                                               ▼      │
           └───────────────────────── it succeeds ───────────────────── half-open ┘

While it is open, or half-open and the one call under way, every other call is refused at once. With one exception: a
query that ran out of time while documents were being embedded tells that the embedder is busy with those, so it opens
for queries only, and the documents go on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from twofold.config import EmbeddingSettings
from twofold.embedders.protocol import EmbeddingKind
from twofold.errors import EmbedderTimeoutError, EmbedderUnreachableError, EmbeddingError

__all__ = ["Breaker", "BreakerState", "EmbedderState"]

logger = logging.getLogger("twofold.embedders")

_MOST_HANGING: Final = 2
"""With so many calls that have not come back, however long ago, no other one is made to see whether it would."""
_GROWTH: Final = 2.0
"""What the pause is multiplied by after each attempt in vain."""


class BreakerState(StrEnum):
    """Whether the embedder is asked; as of a fuse, closed is well."""

    CLOSED = "closed"
    """It is asked."""
    OPEN = "open"
    """It failed and is left alone for a while; keywords answer."""
    HALF_OPEN = "half_open"
    """One call finds out whether it is back; all others go on with keywords meanwhile."""


@dataclass(frozen=True, slots=True)
class EmbedderState:
    """How an embedder does."""

    breaker: BreakerState
    """Whether it is asked."""
    failures: int
    """Failed calls since the last that succeeded; calls that were not made do not count."""
    last_error: str | None
    """What the last of them said, without the texts it was about; None if the last call succeeded."""
    next_try: float | None
    """Seconds until it is asked again, 0 or more; None while it is asked anyway."""


class Breaker:
    """Counts failures, and says whether to ask. May be used from any number of threads."""

    def __init__(
        self,
        name: str,
        settings: EmbeddingSettings,
        clock: Callable[[], float],
        meanwhile: str = "keywords answer alone and new records wait for vectors",
    ) -> None:
        """Begin closed.

        Args:
            name: what errors and the log call the embedder.
            settings: after how many failures it opens, and how long for.
            clock: gives seconds that only grow.
            meanwhile: what the log says that happens while it is down.
        """
        self._meanwhile = meanwhile
        self._name = name
        self._settings = settings
        self._clock = clock
        self.on_recovery: Callable[[], None] | None = None
        """Called once after each outage, by the thread whose call succeeded, outside of any lock; must not raise."""
        self.on_first_answer: Callable[[], None] | None = None
        """Likewise, called at the very first success, unless that ends an outage."""
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._round = 0
        """Grows with every opening, so that what was asked before it has no say in what came after."""
        self._failures = 0
        self._error: EmbeddingError | None = None
        self._failed_at = 0.0
        self._pause = 0.0
        self._retry_at = 0.0
        self._for_queries_only = False
        self._documents = 0
        """How many calls for documents are under way."""
        self._hanging = 0
        self._hastened = False
        """Whether a late answer has led to an early attempt in this outage."""
        self._ever_succeeded = False

    @property
    def ever_succeeded(self) -> bool:
        """Whether the embedder has ever answered."""
        return self._ever_succeeded

    @property
    def state(self) -> EmbedderState:
        """As of now."""
        with self._lock:
            closed = self._state is BreakerState.CLOSED
            return EmbedderState(
                breaker=self._state,
                failures=self._failures,
                last_error=None if self._error is None else self._error.summary,
                next_try=None if closed else max(0.0, self._retry_at - self._clock()),
            )

    def admit(self, kind: EmbeddingKind) -> int:
        """Leave to make one call.

        Args:
            kind: what for.

        Returns:
            What the call's outcome is reported with, once: to :meth:`succeeded`, :meth:`failed` or :meth:`given_up`.

        Raises:
            EmbedderUnreachableError: the embedder is not to be asked now; the message says why, and until when.
        """
        with self._lock:
            now = self._clock()
            due = self._state is BreakerState.OPEN and now >= self._retry_at and self._hanging < _MOST_HANGING
            if due:
                self._state = BreakerState.HALF_OPEN
            documents_go_on = kind == "document" and self._for_queries_only
            if due or documents_go_on or self._state is BreakerState.CLOSED:
                self._documents += kind == "document"
                return self._round
            refusal = self._refusal(now)
        raise EmbedderUnreachableError(refusal, text_at_fault=False)

    def _refusal(self, now: float) -> str:
        said = "unknown" if self._error is None else self._error.summary
        if self._state is BreakerState.HALF_OPEN:
            then = "another call is trying it now"
        elif now < self._retry_at:
            then = f"next try in {self._retry_at - now:.1f} s"
        else:
            then = f"{self._hanging} calls to it have not come back yet"
        return f"{self._name} was not asked: it failed {now - self._failed_at:.1f} s ago ({said}); {then}"

    def succeeded(self, ticket: int, kind: EmbeddingKind) -> None:
        """The call gave vectors, or at least an answer that only the text is to blame for."""
        with self._lock:
            self._documents -= kind == "document"
            first = not self._ever_succeeded
            self._ever_succeeded = True
            if ticket != self._round:
                return
            recovered = self._error is not None
            self._state = BreakerState.CLOSED
            self._failures = 0
            self._error = None
            self._hastened = False
            self._for_queries_only = False
        if recovered:
            logger.info("%s answers again", self._name)
        callback = self.on_recovery if recovered else self.on_first_answer if first else None
        if callback is not None:
            callback()

    def failed(self, ticket: int, kind: EmbeddingKind, error: EmbeddingError) -> None:
        """The call gave nothing usable. One that ran out of time opens the breaker at once: the next would too."""
        with self._lock:
            self._documents -= kind == "document"
            if ticket != self._round:
                return
            begins = self._error is None
            self._failures += 1
            self._error = error
            self._failed_at = self._clock()
            if self._state is BreakerState.HALF_OPEN:
                self._open(min(self._pause * _GROWTH, self._settings.longest_pause))
            elif isinstance(error, EmbedderTimeoutError) or self._failures >= self._settings.failures_to_open:
                self._open(min(self._settings.first_pause, self._settings.longest_pause))
            self._for_queries_only = kind == "query" and isinstance(error, EmbedderTimeoutError) and self._documents > 0
        if begins:
            logger.warning("%s; %s until it is back", error, self._meanwhile)

    def _open(self, pause: float) -> None:
        self._state = BreakerState.OPEN
        self._round += 1
        self._pause = pause
        self._retry_at = self._failed_at + pause

    def given_up(self, ticket: int, kind: EmbeddingKind) -> None:
        """The call ended for reasons that say nothing of the embedder; the next one may try in its place."""
        with self._lock:
            self._documents -= kind == "document"
            if ticket == self._round and self._state is BreakerState.HALF_OPEN:
                self._state = BreakerState.OPEN

    def hangs(self) -> None:
        """A call is left behind that has not come back."""
        with self._lock:
            self._hanging += 1

    def came_back(self, *, answered: bool) -> None:
        """One of those has come back. If it answered, the embedder lives, perhaps after loading its model: it is
        tried at once, but only once an outage, lest one that is always slow be waited for again and again.
        """
        with self._lock:
            self._hanging -= 1
            if answered and self._state is BreakerState.OPEN and not self._hastened:
                self._hastened = True
                self._retry_at = self._clock()
