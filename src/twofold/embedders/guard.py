"""What stands between a store and its embedder, so that nothing the embedder does can hold up or fail a call.

One :class:`Guard` a store: it waits for the embedder no longer than a deadline (:mod:`~twofold.embedders.deadline`),
leaves one that fails alone for a while (:mod:`~twofold.embedders.breaker`), checks what it gives
(:mod:`~twofold.embedders.checking`), asks again in smaller batches if one text may have spoilt a batch, and remembers
the vectors of the last queries.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.config import EmbeddingSettings
from twofold.embedders.breaker import Breaker, EmbedderState
from twofold.embedders.checking import checked_rows, name_of, of_one_length
from twofold.embedders.deadline import Threads
from twofold.embedders.given import GivenVectors
from twofold.embedders.protocol import Embedder, EmbeddingKind
from twofold.embedders.remembering import Remembered
from twofold.errors import EmbeddingError

__all__ = ["Guard"]

_Vector: TypeAlias = npt.NDArray[np.float32]
_Row: TypeAlias = "_Vector | EmbeddingError"

_THREADS: Final = {"query": 8, "document": 4}
"""How many calls of each kind may be under way; apart, so that writes in bulk do not keep searches waiting."""
_MOST_IN_VAIN: Final = 7
"""A batch, its halves and its quarters: if all of these fail, the embedder is to blame and not one text."""


class Guard:
    """Asks an embedder on behalf of a store. May be used from any number of threads.

    Every error that it raises is an :class:`~twofold.errors.EmbeddingError`, or the caller's own doing
    (:class:`~twofold.errors.ConfigurationError`, an interrupt, a cancellation), which does not count as a failure.
    """

    def __init__(
        self,
        embedder: Embedder,
        settings: EmbeddingSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet.

        Args:
            embedder: what makes the vectors.
            settings: deadlines, pauses, sizes.
            clock: gives seconds that only grow; what pauses are measured by.
        """
        self.embedder: Final = embedder
        self._settings = settings
        self._clock = clock
        self._breaker = Breaker(name_of(embedder), settings, clock)
        self._remembered: Remembered[_Vector] = Remembered(settings.query_cache_size)
        self._threads = {kind: Threads(most, name_of(embedder), self._breaker) for kind, most in _THREADS.items()}

    def __repr__(self) -> str:
        return f"Guard({self.embedder!r})"

    @property
    def fingerprint(self) -> str:
        """The embedder's."""
        return self.embedder.fingerprint

    @property
    def dimension(self) -> int | None:
        """The embedder's."""
        return self.embedder.dimension

    @property
    def embeds(self) -> bool:
        """Whether there is anything to ask; the caller brings the vectors of :class:`GivenVectors`."""
        return not isinstance(self.embedder, GivenVectors)

    @property
    def state(self) -> EmbedderState:
        """How the embedder does."""
        return self._breaker.state

    def when_recovered(self, callback: Callable[[], None] | None) -> None:
        """Have ``callback`` called once after each outage, instead of what was given before; None: nothing.

        It is called by the thread whose call succeeded, which waits for it: it must return soon, and not raise.
        """
        self._breaker.on_recovery = callback

    def when_first_answered(self, callback: Callable[[], None] | None) -> None:
        """Have ``callback`` called once, when the embedder answers for the first time; if that ends an outage, the
        other one is called instead. See :meth:`when_recovered`.
        """
        self._breaker.on_first_answer = callback

    def query(self, text: str) -> _Vector:
        """The vector of ``text`` as a query, shape (dimension,), finite, not all zero; not to be written to.

        Waits ``query_deadline`` at most, or ``warm_up`` before the first success; not at all for a query that is
        remembered, or while the embedder is left alone.

        Raises:
            EmbeddingError: there is none.
        """
        return self._queries([text])[0]

    def queries(self, texts: Sequence[str]) -> _Vector:
        """The vectors of ``texts`` as queries, all or none, shape (texts, dimension). See :meth:`query`; the deadline
        is that of each batch.

        Raises:
            EmbeddingError: one of them has none.
        """
        if not texts:
            return np.empty((0, self.dimension or 0), dtype=np.float32)
        return np.stack(self._queries(texts))

    def stand_ins(self, texts: Sequence[str]) -> list[_Vector]:
        """The vectors of texts that stand for a document in a search: embedded as documents, waited for as queries.

        Raises:
            EmbeddingError: one of them has none.
        """
        return self._queries(texts, as_="document")

    def documents(self, texts: Sequence[str]) -> list[_Row]:
        """For each of ``texts`` its vector as a document, shape (dimension,), or the error that it has none for.

        Waits ``document_deadline`` at most for each batch, smaller batches made of it included; after a batch that
        failed for no fault of its texts, the rest is not asked for.
        """
        rows: list[_Row] = []
        for batch in self._batches(texts):
            try:
                rows += self._asked(batch, "document", "document")
            except EmbeddingError as error:
                if error.text_at_fault is False:
                    rows += [error] * (len(texts) - len(rows))
                    break
                rows += [error] * len(batch)
        if self.dimension is not None:
            return rows
        try:
            return of_one_length(rows, name_of(self.embedder))
        except EmbeddingError as error:
            return [error] * len(texts)

    def _queries(self, texts: Sequence[str], as_: EmbeddingKind = "query") -> list[_Vector]:
        fingerprint = self.fingerprint
        found = {text: self._remembered.get(fingerprint, as_, text) for text in texts}
        for batch in self._batches([text for text, vector in found.items() if vector is None]):
            for text, row in zip(batch, self._asked(batch, "query", as_), strict=True):
                if isinstance(row, EmbeddingError):
                    raise row
                kept = row.copy()  # of its own: the embedder may go on to use what it gave
                kept.flags.writeable = False
                self._remembered.put(kept, fingerprint, as_, text)
                found[text] = kept
        return [vector for text in texts if (vector := found[text]) is not None]

    def _batches(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        size = getattr(self.embedder, "batch_size", None)
        if not isinstance(size, int) or size < 1:
            size = max(1, len(texts)) if self._in_process else self._settings.batch_size
        return (texts[start : start + size] for start in range(0, len(texts), size))

    @property
    def _in_process(self) -> bool:
        return getattr(self.embedder, "in_process", False) is True

    def _asked(self, texts: Sequence[str], kind: EmbeddingKind, as_: EmbeddingKind) -> list[_Row]:
        """A row for each text of one batch, if the breaker lets it be asked for.

        Args:
            texts: the batch.
            kind: which deadline, and whose threads.
            as_: what the embedder is told that they are.

        Raises:
            EmbeddingError: not one of them has a vector, and it is not known to be the texts' fault.
        """
        ticket = self._breaker.admit(kind)
        try:
            ends = self._clock() + self._deadline(kind)
            rows, failure = self._by_halves(texts, lambda part: self._call(part, kind, as_, ends))
        except EmbeddingError as error:
            self._breaker.failed(ticket, kind, error)
            raise
        except BaseException:  # the caller's error, an interrupt or a cancellation says nothing of the embedder
            self._breaker.given_up(ticket, kind)
            raise
        errors = [row for row in rows if isinstance(row, EmbeddingError)]
        if failure is None and len(errors) == len(rows):
            failure = next((error for error in errors if not error.text_at_fault), None)
        if failure is None:
            self._breaker.succeeded(ticket, kind)
        else:
            self._breaker.failed(ticket, kind, failure)
        return rows

    def _deadline(self, kind: EmbeddingKind) -> float:
        if kind == "document":
            return self._settings.document_deadline
        wait = self._settings.query_deadline
        return wait if self._breaker.ever_succeeded else max(wait, self._settings.warm_up)

    def _by_halves(
        self, texts: Sequence[str], call: Callable[[Sequence[str]], list[_Row]]
    ) -> tuple[list[_Row], EmbeddingError | None]:
        """A row for each text: if a batch fails and one text may be why, its halves are asked for, then theirs.

        Wide before deep, so that an embedder that refuses everything is found out after few calls.

        Returns:
            The rows, and the failure of the embedder itself that ended this early, if one did.

        Raises:
            EmbeddingError: nothing succeeded, and the embedder is to blame.
        """
        rows: dict[int, _Row] = {}
        parts = deque([(0, len(texts))])
        in_vain, failure = 0, None
        while parts:
            start, stop = parts.popleft()
            try:
                answer: list[_Row] = call(texts[start:stop])
            except EmbeddingError as error:
                in_vain += error.text_at_fault is None
                if error.text_at_fault is False or (in_vain >= _MOST_IN_VAIN and not _any_vector(rows)):
                    if not _any_vector(rows):
                        raise
                    failure = error
                    break
                if stop - start > 1:
                    middle = (start + stop) // 2
                    parts += [(start, middle), (middle, stop)]
                    continue
                answer = [error]
            rows.update(zip(range(start, stop), answer, strict=True))
        return [rows[place] if failure is None else rows.get(place, failure) for place in range(len(texts))], failure

    def _call(self, texts: Sequence[str], kind: EmbeddingKind, as_: EmbeddingKind, ends: float) -> list[_Row]:
        """One call of the embedder."""
        if self._in_process:
            return checked_rows(self.embedder, texts, as_)
        return self._threads[kind].call(lambda: checked_rows(self.embedder, texts, as_), ends - self._clock())


def _any_vector(rows: dict[int, _Row]) -> bool:
    return any(not isinstance(row, EmbeddingError) for row in rows.values())
