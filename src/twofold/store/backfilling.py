"""Filling in vectors that are missing: when asked to, and by itself when an embedder is well again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from twofold.backends.protocol import Backend
from twofold.backfill import embed_pending
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
        self._closed = threading.Event()
        self._running = threading.Lock()
        if guard is not None and guard.embeds and settings.embedding.fill_in and not backend.read_only:
            guard.when_recovered(self._start)

    def run(
        self,
        access: Access,
        *,
        batch_size: int | None = None,
        retry_parked: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedReport:
        """See :meth:`HybridStore.embed_pending`. One at a time: another thread's is waited for."""
        with self._running:
            return self._run(access, batch_size, retry_parked, progress)

    def _run(
        self,
        access: Access,
        batch_size: int | None,
        retry_parked: bool,  # noqa: FBT001 - passed on
        progress: Callable[[Progress], None] | None,
    ) -> EmbedReport:
        embedding = self._settings.embedding
        return embed_pending(
            self._backend,
            self._guard,
            access,
            now=self._settings.clock,
            batch_size=embedding.batch_size if batch_size is None else batch_size,
            # A batch may have several pieces a record, and each of their batches its own deadline.
            claim_seconds=60.0 + 10 * embedding.document_deadline,
            retry_parked=retry_parked,
            progress=progress,
            stopped=self._closed.is_set,
        )

    def close(self) -> None:
        """Start nothing more; what runs ends with its batch."""
        self._closed.set()
        if self._guard is not None:
            self._guard.when_recovered(None)

    def _start(self) -> None:
        if not self._closed.is_set():
            threading.Thread(target=self._by_itself, name="twofold-backfill", daemon=True).start()

    def _by_itself(self) -> None:
        if not self._running.acquire(blocking=False):
            return  # one is at work already, and goes on until nothing is left
        try:
            report = self._run(Access.everything(), None, False, None)  # noqa: FBT003 - nothing parked
        except TwofoldError as error:  # closed, busy or full meanwhile: the next recovery, or the user, tries again
            _LOG.info("vectors could not be filled in: %s", error)
        else:
            if report.embedded:
                _LOG.info("vectors that were missing have been filled in")
        finally:
            self._running.release()
