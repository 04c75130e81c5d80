"""Filling in vectors that are missing: when asked to, and by itself when an embedder is well.

Calls run side by side, for claims keep them apart. What happens by itself runs in one thread at most, and begins only
when no call of this store is at work: that would only leave less for the call to do and to report.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from twofold.backends.protocol import Backend, Visibility
from twofold.backfill import Claims, embed_pending
from twofold.config import StoreSettings
from twofold.embedders import Guard
from twofold.errors import TwofoldError
from twofold.types import Access, EmbedReport, Progress

__all__ = ["Backfill"]

_LOG = logging.getLogger("twofold.store")


class Backfill:
    """The back-fill of one store, for all its views.

    Args:
        backend: where the records are.
        guard: what the embedder is asked through; None: there is none.
        settings: the clock, the batch size and the deadline.
    """

    def __init__(self, backend: Backend, guard: Guard | None, settings: StoreSettings) -> None:
        self._backend = backend
        self._guard = guard
        self._settings = settings
        self._claims = Claims(backend)
        self._lock = threading.Lock()  # of what follows
        self._calls = 0
        """How many calls are at work."""
        self._by_itself_at_work = False
        self._wanted = False
        """Whether it is to happen by itself, as soon as it may."""
        self._outage_over = False
        """Whether the embedder has come back from an outage: then a file that has no vectors yet is filled too."""
        self._listen(guard)

    def use(self, guard: Guard) -> None:
        """Ask another embedder from now on, and listen to it."""
        self._hear_no_more()
        self._guard = guard
        self._listen(guard)

    def run(
        self,
        access: Access,
        *,
        batch_size: int | None = None,
        retry_parked: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedReport:
        """See :meth:`HybridStore.embed_pending`."""
        with self._lock:
            self._calls += 1
        try:
            return self._run(access, batch_size=batch_size, retry_parked=retry_parked, progress=progress)
        finally:
            with self._lock:
                self._calls -= 1
            self._start_if_wanted()

    def close(self) -> None:
        """Start nothing more, and give back what is claimed; before the backend is closed. The embedder is not waited
        for: what it answers later finds the store closed.
        """
        self._hear_no_more()
        self._claims.close()

    def _listen(self, guard: Guard | None) -> None:
        if guard is not None and guard.embeds and self._settings.embedding.fill_in and not self._backend.read_only:
            guard.when_first_answered(self._answered)
            guard.when_recovered(self._recovered)

    def _hear_no_more(self) -> None:
        if self._guard is not None:
            self._guard.when_first_answered(None)
            self._guard.when_recovered(None)

    def _run(
        self,
        access: Access,
        *,
        batch_size: int | None = None,
        retry_parked: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedReport:
        embedding = self._settings.embedding
        return embed_pending(
            self._backend,
            self._guard,
            self._claims,
            access,
            now=self._settings.clock,
            batch_size=embedding.batch_size if batch_size is None else batch_size,
            # A batch may have several pieces a record, and each of their batches its own deadline.
            claim_seconds=60.0 + 10 * embedding.document_deadline,
            retry_parked=retry_parked,
            semantic_links=self._settings.semantic_links,
            progress=progress,
        )

    def _answered(self) -> None:
        with self._lock:
            self._wanted = True
        self._start_if_wanted()

    def _recovered(self) -> None:
        with self._lock:
            self._outage_over = True
        self._answered()

    def _start_if_wanted(self) -> None:
        with self._lock:
            if not self._wanted or self._calls or self._by_itself_at_work or self._claims.closed:
                return
            self._wanted, self._by_itself_at_work = False, True
        try:
            threading.Thread(target=self._by_itself, name="twofold-backfill", daemon=True).start()
        except RuntimeError:  # no thread can be had, at the end of the interpreter say: the next recovery tries again
            self._by_itself_at_work = False

    def _by_itself(self) -> None:
        try:
            if self._anything_waits() and self._run(Access.everything()).embedded:
                _LOG.info("vectors that were missing have been filled in")
        except TwofoldError as error:  # closed, busy or full meanwhile: the next recovery, or the user, tries again
            _LOG.info("vectors could not be filled in: %s", error)
        finally:
            with self._lock:
                self._by_itself_at_work = False
            self._start_if_wanted()

    def _anything_waits(self) -> bool:
        """Whether the file waits for vectors of this embedder. One that has none yet is not taken over just because
        the embedder answers: that is for a write, or the user, to do.
        """
        visible = Visibility(Access.everything(), self._settings.clock(), include_archived=True)
        with self._backend.read() as reader:
            known = reader.fingerprint
            if known is None and not self._outage_over:
                return False
            mine = self._guard is not None and known in (None, self._guard.fingerprint)
            return mine and reader.pending(visible) > 0
