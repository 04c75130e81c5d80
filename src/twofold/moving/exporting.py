"""One snapshot of what a caller sees, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import BinaryIO, Final

from twofold.backends.protocol import Backend, Capability, Identity, Order, Reader, Visibility
from twofold.moving.lines import End, Header, LinkLine, Reference, end_line, header_line, link_line, record_line
from twofold.types import Direction, ExportReport, Progress

__all__ = ["export_records"]

_BATCH: Final = 500
_OLDEST_FIRST: Final = (Order("created_at"),)


def export_records(
    backend: Backend,
    visible: Visibility,
    out: BinaryIO,
    *,
    at: datetime,
    with_vectors: bool,
    progress: Callable[[Progress], None] | None,
) -> ExportReport:
    """Write what is visible to ``out``: records, oldest first, then the links of which both ends are written.

    The order does not depend on the file, so that the same records make the same lines wherever they are kept.

    Args:
        backend: where the records are.
        visible: which.
        out: takes bytes.
        at: the time that the header says.
        with_vectors: whether vectors are written too.
        progress: called after each batch of records.

    Raises:
        OSError: it cannot be written.
    """
    with backend.read() as reader:
        keys = reader.scan(visible, _OLDEST_FIRST, None, 0)
        with_vectors = with_vectors and reader.fingerprint is not None
        header = Header(
            fields=backend.fields,
            records=len(keys),
            fingerprint=reader.fingerprint if with_vectors else None,
            dimension=reader.dimension if with_vectors else None,
        )
        out.write(header_line(header, at))
        embedded = _write_records(reader, keys, out, with_vectors=with_vectors, progress=progress)
        links = _write_links(reader, keys, visible, out) if Capability.LINKS in backend.capabilities else 0
        out.write(end_line(End(len(keys), links)))
    return ExportReport(records=len(keys), links=links, vectors=embedded)


def _write_records(
    reader: Reader,
    keys: Sequence[int],
    out: BinaryIO,
    *,
    with_vectors: bool,
    progress: Callable[[Progress], None] | None,
) -> int:
    """How many of them have vectors that were written."""
    done = embedded = 0
    for batch in _batches(keys):
        records = reader.records(batch)
        vectors = reader.vectors(batch) if with_vectors else {}
        for key in batch:
            stored = vectors.get(key)
            out.write(record_line(records[key], None if stored is None else stored.by_field))
        done += len(batch)
        embedded += len(vectors)
        if progress is not None:
            progress(Progress(done, len(keys)))
    return embedded


def _write_links(reader: Reader, keys: Sequence[int], visible: Visibility, out: BinaryIO) -> int:
    written = 0
    for batch in _batches(keys):
        links = [link for key in batch for link in reader.links(key, visible, direction=Direction.OUT)]
        ends = reader.identities(list({end for link in links for end in (link.source, link.target)}))
        for link in links:
            source, target = _reference(ends[link.source]), _reference(ends[link.target])
            out.write(link_line(LinkLine(source, target, link.kind, link.weight, link.created_at)))
        written += len(links)
    return written


def _reference(identity: Identity) -> Reference:
    return Reference(identity.id, identity.namespace, identity.owner)


def _batches(keys: Sequence[int]) -> Iterable[Sequence[int]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
