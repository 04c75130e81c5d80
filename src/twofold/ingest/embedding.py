"""Vectors for drafts, made outside of any transaction. An embedder that fails never stops a write: the record is stored
and its vector is pending.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import Backend, Reader, VectorWrite
from twofold.embedders import degradation_of
from twofold.errors import EmbeddingError, InvalidVectorError
from twofold.ingest.drafts import Draft, Ingest
from twofold.types import Degradation, DegradationCode

__all__ = ["Embedded", "embed"]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What became of embedding some drafts."""

    fingerprint: str | None
    """Of the vectors; None if there is no embedder."""
    dimension: int | None
    """The length of the vectors; None if there are none."""
    vectors: tuple[VectorWrite | None, ...]
    """One a draft, in order; None: nothing to embed, unchanged, or failed."""
    degradations: tuple[Degradation, ...]
    """Why some have no vector."""


def embed(drafts: Sequence[Draft], ingest: Ingest, *, anew: Collection[int] = ()) -> Embedded:
    """Vectors for those drafts that have none and whose text is not stored with one already.

    Args:
        drafts: in the order that they are written in.
        ingest: the store.
        anew: the places of those whose record, as it is stored now, is gone by the time that they are written.
    """
    guard = ingest.guard
    if guard is None:
        return Embedded(None, None, (None,) * len(drafts), ())
    given = [
        None if each.vectors is None else VectorWrite(each.content_hash, each.vectors, sound=True) for each in drafts
    ]
    wanted: Sequence[int] = [index for index, each in enumerate(drafts) if each.vectors is None and each.pieces]
    if wanted and guard.embeds:
        wanted = _not_embedded_yet(wanted, drafts, guard.fingerprint, ingest.backend, anew)
    if not guard.embeds or not wanted:
        return Embedded(guard.fingerprint, _length(given), tuple(given), ())

    pieces = [(index, name, text) for index in wanted for name, text in drafts[index].pieces]
    made = guard.documents([text for _, _, text in pieces])
    parts: dict[int, dict[str, list[npt.NDArray[np.float32]]]] = {index: {} for index in wanted}
    failed: dict[int, EmbeddingError] = {}
    for (index, name, _), vector in zip(pieces, made, strict=True):
        if isinstance(vector, EmbeddingError):
            failed[index] = vector
        else:
            parts[index].setdefault(name, []).append(vector)
    for index in wanted:
        if index not in failed:
            by_field = {name: np.stack(vectors) for name, vectors in parts[index].items()}
            given[index] = VectorWrite(drafts[index].content_hash, by_field, sound=True)
    return Embedded(guard.fingerprint, _length(given), tuple(given), _each_once(map(degradation_of, failed.values())))


def _not_embedded_yet(
    places: Sequence[int], drafts: Sequence[Draft], fingerprint: str, backend: Backend, anew: Collection[int]
) -> Sequence[int]:
    """Which of the drafts are not stored with the same text and a vector of this embedder: none is embedded twice."""
    if not any(drafts[index].has_own_id for index in places):
        return places
    anew = {*anew, *_after_another_text(drafts)}
    with backend.read() as reader:
        if reader.fingerprint != fingerprint:
            return places
        return [index for index in places if index in anew or not _is_embedded(drafts[index], reader)]


def _after_another_text(drafts: Sequence[Draft]) -> Iterator[int]:
    """The places of drafts whose record an earlier one of them gives another text, and so no vector of this one."""
    texts: dict[Hashable, set[str]] = {}
    for place, each in enumerate(drafts):
        if each.has_own_id:
            before = texts.setdefault(each.identity, set())
            if before - {each.content_hash}:
                yield place
            before.add(each.content_hash)


def _is_embedded(each: Draft, reader: Reader) -> bool:
    if not each.has_own_id:
        return False
    for key, _ in reader.find(each.id, each.new.namespace, (each.owner,)):
        stored = reader.records((key,)).get(key)
        return stored is not None and stored.content_hash == each.content_hash and key in reader.vectors((key,))
    return False


def _length(vectors: Iterable[VectorWrite | None]) -> int | None:
    lengths = {int(matrix.shape[1]) for each in vectors if each is not None for matrix in each.by_field.values()}
    if len(lengths) > 1:
        raise InvalidVectorError(f"vectors of one store have one length, not {sorted(lengths)}")
    return lengths.pop() if lengths else None


def _each_once(degradations: Iterable[Degradation]) -> tuple[Degradation, ...]:
    by_code: dict[DegradationCode, Degradation] = {}
    for degradation in degradations:
        by_code.setdefault(degradation.code, degradation)
    return tuple(by_code.values())
