"""Drafts and their vectors, stored in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from twofold.backends.protocol import VectorWrite, Writer
from twofold.errors import ConfigurationError
from twofold.ingest.drafts import Draft
from twofold.ingest.embedding import Embedded
from twofold.ingest.placing import Duplicates, Places
from twofold.links import Alike, Meaning, Together
from twofold.types import Added, Degradation, DegradationCode, LinkKind, Outcome

__all__ = ["write"]


def write(
    writer: Writer,
    drafts: Sequence[Draft],
    embedded: Embedded,
    duplicates: Duplicates,
    now: datetime,
    *,
    semantic_links: float | None = None,
    together: Together | None = None,
) -> list[Added]:
    """Store drafts in the writer's transaction, in order; of one id given twice the last wins.

    Args:
        writer: the transaction.
        drafts: what is stored.
        embedded: its vectors.
        duplicates: see :data:`Duplicates`.
        now: the time.
        semantic_links: see ``StoreSettings.semantic_links``.
        together: links the records of one call to each other. Default: they are not linked.
    """
    vectors, degradations = _comparable(writer, embedded, drafts)
    embeds = embedded.fingerprint is not None or writer.fingerprint is not None
    alike = None
    if semantic_links is not None:
        meanings = [Meaning(each.owner, each.new.namespace, made) for each, made in zip(drafts, vectors, strict=True)]
        alike = Alike(writer, meanings, semantic_links, now)
    places = Places(writer, drafts, duplicates, now)
    added = []
    for each, made in zip(drafts, vectors, strict=True):
        outcome, id_, key = places.put(each, made)
        waits = embeds and made is None and outcome is not Outcome.SKIPPED and bool(each.pieces)
        if key is not None and waits:
            waits = key not in writer.vectors((key,))
        if key is not None and alike is not None and outcome is Outcome.UPDATED and (waits or made is not None):
            writer.delete_links(source=key, kinds=(LinkKind.SEMANTIC,))  # its former text's
            writer.delete_links(target=key, kinds=(LinkKind.SEMANTIC,))
        added.append(Added(id_, outcome, waits, (), degradations if waits else ()))
    keys = places.keys()
    if alike is not None:
        written = [
            each.outcome in (Outcome.ADDED, Outcome.UPDATED) or key in places.attached
            for each, key in zip(added, keys, strict=True)
        ]
        writer.put_links(alike.links(keys, written), now)
    if together is not None:
        stored = zip(keys, (each.owner for each in drafts), strict=True)
        writer.put_links(together.links(writer, stored), now)
    return added


def _comparable(
    writer: Writer, embedded: Embedded, drafts: Sequence[Draft]
) -> tuple[tuple[VectorWrite | None, ...], tuple[Degradation, ...]]:
    """The vectors, if those in the file are of the same embedder; the first ones decide whose the file's are."""
    if embedded.fingerprint is None:
        return embedded.vectors, embedded.degradations
    if writer.fingerprint is None and embedded.dimension is not None:
        writer.adopt(embedded.fingerprint, embedded.dimension)
    same = writer.fingerprint == embedded.fingerprint and embedded.dimension in (None, writer.dimension)
    if writer.fingerprint is None or same:
        return embedded.vectors, embedded.degradations
    message = (
        f"the file's vectors are of {writer.fingerprint!r} ({writer.dimension} numbers), these are of "
        f"{embedded.fingerprint!r} ({embedded.dimension}); open the store with the embedder it was made with"
    )
    if any(each.vectors is not None for each in drafts):
        raise ConfigurationError(message)
    mismatch = Degradation(DegradationCode.SPACE_MISMATCH, message)
    return (None,) * len(embedded.vectors), (*embedded.degradations, mismatch)
