"""Vectors for records that were stored without one.

A batch is claimed in a short transaction, embedded outside of any, and attached in another. While a claim lasts nobody
else embeds the same records. It is given back however the batch ends, and when the store is closed meanwhile; that of a
process that dies lapses by itself. A vector is attached only to the text that it was made of, and only to a record that
still waits for one; with it come the ``semantic`` links that a write would have made.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Backend, Reader, VectorWrite, Visibility, Writer
from twofold.embedders import Guard, degradation_of
from twofold.errors import ConfigurationError, EmbeddingError
from twofold.ingest import pieces_of
from twofold.links import Alike, Meaning
from twofold.types import Access, Degradation, EmbedReport, LinkKind, Progress, Record

__all__ = ["Claims", "embed_pending", "embed_records"]

_LOG = logging.getLogger("twofold.store")

_LOOKED_AT: Final = 1_000
"""How many records are looked through for a text, to learn the length of an embedder's vectors."""
_TRIED: Final = 10
"""How many texts are tried for that."""


class Claims:
    """What the batches under way in one store have claimed, whichever threads they run in.

    Args:
        backend: where the records are.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._keys: set[int] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether nothing more can be claimed."""
        return self._closed

    @contextmanager
    def batch(self, visible: Visibility, limit: int, now: datetime, until: datetime) -> Iterator[Mapping[int, Record]]:
        """Records that are the caller's to embed within the block, none if there are none left or all is closed.

        The block gives them back in its own last transaction; if it raises, that is done here.
        """
        claimed: dict[int, Record] = {}
        try:
            # Noted before it is committed, so that close() misses none: its own transaction comes after this one.
            with self._backend.write() as writer, self._lock:
                if not self._closed:
                    claimed = writer.claim_pending(visible, limit, now, until)
                    self._keys.update(claimed)
            yield claimed
        except BaseException:
            self._give_back(claimed)
            raise
        finally:
            with self._lock:
                self._keys.difference_update(claimed)

    def close(self) -> None:
        """Let nothing more be claimed, and give back what is, without waiting for the embedder; before the backend is
        closed.
        """
        with self._lock:
            self._closed = True
            left, self._keys = self._keys, set()
        self._give_back(left)

    def _give_back(self, keys: Iterable[int]) -> None:
        given = list(keys)
        if not given:
            return
        try:
            with self._backend.write() as writer:
                writer.release(given)
        except Exception as error:  # noqa: BLE001 - what ended the batch must not be masked, and a claim lapses anyway
            _LOG.info("claims could not be given back, and lapse by themselves: %s", error)


def embed_pending(
    backend: Backend,
    guard: Guard | None,
    claims: Claims,
    access: Access,
    *,
    now: Callable[[], datetime],
    batch_size: int,
    claim_seconds: float,
    retry_parked: bool,
    semantic_links: float | None,
    progress: Callable[[Progress], None] | None,
) -> EmbedReport:
    """Embed what waits for a vector and ``access`` may see, a batch at a time, until nothing waits that nobody else
    is at work on, or the embedder fails.

    A text that the embedder refuses parks its record and does not stop the others; an embedder that is down ends the
    work, and what was claimed waits again.

    Raises:
        ConfigurationError: there is no embedder, or not the one that the file's vectors are of.
        StoreError: the store cannot be written, or has been closed meanwhile.
    """
    if guard is None or not guard.embeds:
        raise ConfigurationError("there is no embedder to make vectors with: twofold.open(..., embedder=...)")
    visible = Visibility(access, now(), include_archived=True)
    trouble = _adopted(backend, guard, visible)
    done = parked = 0
    with backend.read() as reader:
        total = reader.pending(visible)
    if retry_parked and total:
        with backend.write() as writer:
            writer.unpark(visible)
    while trouble is None:
        at = now()
        with claims.batch(visible, batch_size, at, at + timedelta(seconds=claim_seconds)) as claimed:
            if not claimed:
                break
            made, failed, trouble = _embedded(guard, claimed)
            with backend.write() as writer:
                if made:
                    _refuse_another(writer.fingerprint, guard)  # reembed() may have swapped embedders meanwhile
                done += _attached(writer, claimed, made, semantic_links, now())
                for key, error in failed.items():
                    writer.park(key, error.summary)
                writer.release(list(claimed))
        parked += len(failed)
        if progress is not None:
            progress(Progress(done + parked, total))
    with backend.read() as reader:
        remaining, elsewhere = reader.pending(visible), reader.claimed(visible, now())
    return EmbedReport(done, parked, remaining, () if trouble is None else (trouble,), elsewhere)


def _attached(
    writer: Writer,
    claimed: Mapping[int, Record],
    made: Mapping[int, VectorWrite],
    semantic_links: float | None,
    at: datetime,
) -> int:
    """How many of the records now have the vectors that were made for them, and the links that come of those."""
    there = writer.records(list(made))
    keys = [key for key, vectors in made.items() if key in there and there[key].content_hash == vectors.content_hash]
    if semantic_links is None:
        return sum(writer.attach(key, made[key]) for key in keys)
    meanings = [Meaning(claimed[key].belongs_to, claimed[key].namespace, made[key]) for key in keys]
    alike = Alike(writer, meanings, semantic_links, at)
    attached = [writer.attach(key, made[key]) for key in keys]
    for key, is_new in zip(keys, attached, strict=True):
        if is_new and there[key].revision > 1:  # its former text's
            writer.delete_links(source=key, kinds=(LinkKind.SEMANTIC,))
            writer.delete_links(target=key, kinds=(LinkKind.SEMANTIC,))
    writer.put_links(alike.links(keys, attached), at)
    return sum(attached)


def _adopted(backend: Backend, guard: Guard, visible: Visibility) -> Degradation | None:
    """See to it that the file's vectors are the embedder's; why they cannot be, if it does not answer."""
    with backend.read() as reader:
        known = reader.fingerprint
        texts = [] if known is not None else _first_texts(reader, visible)
    if known is None:
        vector: npt.NDArray[np.float32] | EmbeddingError | None = None
        for text in texts:
            (vector,) = guard.documents([text])
            if not isinstance(vector, EmbeddingError) or vector.text_at_fault is False:
                break
        if vector is None:
            return None
        if isinstance(vector, EmbeddingError):
            return degradation_of(vector)
        with backend.write() as writer:
            if writer.fingerprint is None:
                writer.adopt(guard.fingerprint, int(vector.size))
            known = writer.fingerprint
    _refuse_another(known, guard)
    return None


def _refuse_another(known: str | None, guard: Guard) -> None:
    if known != guard.fingerprint:
        raise ConfigurationError(
            f"the file's vectors are of {known!r}, not of {guard.fingerprint!r}; open the store with the embedder "
            "it was made with"
        )


def _first_texts(reader: Reader, visible: Visibility) -> list[str]:
    """A few texts to learn the length of an embedder's vectors by: it may refuse the first."""
    records = reader.records(reader.scan(visible, (), _LOOKED_AT, 0)).values()
    return [text for record in records for _, text in pieces_of(record.fields)][:_TRIED]


def _embedded(
    guard: Guard, claimed: Mapping[int, Record]
) -> tuple[dict[int, VectorWrite], dict[int, EmbeddingError], Degradation | None]:
    """What :func:`embed_records` gives; if not one of several texts got a vector, that is the embedder's doing."""
    vectors, failed, trouble = embed_records(guard, claimed)
    if trouble is None and failed and not vectors and len(failed) == len(claimed) > 1:
        return {}, {}, degradation_of(next(iter(failed.values())))
    return vectors, failed, trouble


def embed_records(
    guard: Guard, claimed: Mapping[int, Record]
) -> tuple[dict[int, VectorWrite], dict[int, EmbeddingError], Degradation | None]:
    """Vectors by key, what cannot be embedded by key, and why the embedder is not to be asked further."""
    pieces = [(key, name, text) for key, record in claimed.items() for name, text in pieces_of(record.fields)]
    made: dict[int, dict[str, list[npt.NDArray[np.float32]]]] = {key: {} for key in claimed}
    failed: dict[int, EmbeddingError] = {}
    trouble: Degradation | None = None
    untouched: set[int] = set()
    rows: Sequence[npt.NDArray[np.float32] | EmbeddingError] = guard.documents([text for _, _, text in pieces])
    for (key, name, _), row in zip(pieces, rows, strict=True):
        if not isinstance(row, EmbeddingError):
            made[key].setdefault(name, []).append(row)
        elif row.text_at_fault is False:
            trouble = trouble or degradation_of(row)
            untouched.add(key)
        else:
            failed.setdefault(key, row)
    vectors = {
        key: VectorWrite(claimed[key].content_hash, {name: np.stack(parts) for name, parts in by_field.items()})
        for key, by_field in made.items()
        if by_field and key not in failed and key not in untouched
    }
    return vectors, failed, trouble
