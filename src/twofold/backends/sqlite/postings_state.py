"""The postings of a file at one generation: an index of what there was once, and what changed since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.postings_reading import ChangedRecord, Totals
from twofold.backends.sqlite.visible_keys import Keys, Seen, places_in
from twofold.postings import (
    Among,
    Postings,
    Weighted,
    WordIndex,
    contributions,
    inverse_document_frequency,
    length_norms,
)

__all__ = ["Changes", "PostingsState"]

MAX_CACHED_BYTES: Final = 32 * 1024 * 1024
"""How much what was found out about words and phrases may take."""

_NOTHING: Final = Weighted((), 1.0)
_NO_KEYS: Final = np.empty(0, dtype=np.int64)
_NO_TIMES: Final = np.empty(0, dtype=np.float64)
_TERM_BYTES: Final = 512

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Slots: TypeAlias = npt.NDArray[np.uint32]

Asked: TypeAlias = tuple[tuple[str, ...], bool]
"""The tokens of a term, and whether the last is only the beginning of one."""


class Changes:
    """What records hold that were written after an index was made; those that are gone hold nothing."""

    def __init__(self) -> None:
        self.records: Final[dict[int, ChangedRecord | None]] = {}
        self._holders: dict[str, dict[int, float]] = {}

    def update(self, records: Mapping[int, ChangedRecord | None]) -> None:
        """Take in what changed again."""
        for key, record in records.items():
            before = self.records.get(key)
            for word in () if before is None else before.frequencies:
                del self._holders[word][key]
            for word, frequency in () if record is None else record.frequencies.items():
                self._holders.setdefault(word, {})[key] = frequency
            self.records[key] = record

    def holding(self, word: str) -> tuple[Keys, Floats]:
        """Who holds a word, by key, and how often."""
        held = self._holders.get(word)
        if not held:
            return _NO_KEYS, _NO_TIMES
        keys = sorted(held)
        return np.array(keys, dtype=np.int64), np.array([held[key] for key in keys])


class PostingsState:
    """The postings at one generation. Slots are the index's, and those of changed records after them.

    Args:
        index: of an earlier generation.
        generation: the one that this is.
        totals: of this generation.
        changes: all that changed in between; they are not looked at any more once the next state is made.

    Raises:
        ValueError: these contradict each other.
    """

    def __init__(self, index: WordIndex, generation: int, totals: Totals, changes: Changes) -> None:
        self.index: Final = index
        self.generation: Final = generation
        self.totals: Final = totals
        self.changes: Final = changes
        here = sorted((key, record.length) for key, record in changes.records.items() if record is not None)
        self._own_keys = np.array([key for key, _ in here], dtype=np.int64)
        changed = np.array(sorted(changes.records), dtype=np.int64)
        places, known = _places(index.keys, changed)
        self._dead = places[known].astype(np.uint32)
        if len(index.keys) - len(self._dead) + len(here) != totals.records:
            raise ValueError("the keyword index holds other records than the file")
        self.keys: Final = np.concatenate([index.keys, self._own_keys]) if here else index.keys
        """By slot."""
        lengths = np.array([length for _, length in here], dtype=np.uint32)
        self._lengths = np.concatenate([index.lengths, lengths]) if here else index.lengths
        self._mean = totals.tokens / totals.records
        self.drift: Final = max(self._mean / index.mean, index.mean / self._mean)
        """What scores may differ by from what the index's gains say."""
        self._alive: Mask | None = None
        if len(self._dead):
            self._alive = np.ones(len(self.keys), dtype=np.bool_)
            self._alive[self._dead] = False
        self._terms: dict[Asked, Weighted] = {}
        self._bytes = 0
        self._seen: WeakKeyDictionary[Seen, Among] = WeakKeyDictionary()

    # -- records --------------------------------------------------------------------------------------------------

    def slots_of(self, keys: Keys) -> tuple[Slots, Mask]:
        """The slots of records, and which of them have one; those of the others mean nothing."""
        slots, known = _places(self.index.keys, keys)
        if len(self._dead):
            known &= ~np.isin(slots, self._dead)
        if len(self._own_keys):
            places, own = _places(self._own_keys, keys)
            slots[own] = len(self.index.keys) + places[own]
            known |= own
        return slots.astype(np.uint32), known

    def norms(self, slots: Slots) -> Floats:
        """The length norms of records."""
        return length_norms(self._lengths.take(slots).astype(np.float64), self._mean)

    def among(self, seen: Seen) -> Among:
        """Whom the caller may see; of the same generation."""
        among = self._seen.get(seen)
        if among is None:
            mask = np.concatenate([_among(seen, self.index.keys), seen.among(self._own_keys)])
            if self._alive is not None:
                mask &= self._alive
            among = self._seen[seen] = Among(None if mask.all() else mask, len(seen.keys))
        return among

    # -- terms ----------------------------------------------------------------------------------------------------

    def known(self, asked: Asked) -> Weighted | None:
        """A term that was asked for before."""
        return self._terms.get(asked)

    def word(self, word: str) -> Weighted:
        """Who holds a word.

        Raises:
            ValueError: more than there are.
        """
        stretches: list[Postings] = []
        holding = 0
        old = self.index.of(word)
        if old is not None:
            stretches.append(old)
            holding += len(old.slots)
            if len(self._dead):
                holding -= int(np.count_nonzero(_places(old.slots, self._dead)[1]))
        keys, frequencies = self.changes.holding(word)
        if len(keys):
            slots = (len(self.index.keys) + np.searchsorted(self._own_keys, keys)).astype(np.uint32)
            saturated = contributions(frequencies, self.norms(slots), 1.0)
            stretches.append(_stretch(slots, saturated, frequencies))
            holding += len(keys)
        if holding > self.totals.records:
            raise ValueError("more records hold a word than there are")
        weighted = _NOTHING
        if holding:
            weighted = Weighted(stretches, inverse_document_frequency(self.totals.records, holding))
        return self._keep(((word,), False), weighted, 16 * len(keys))

    def phrase(self, asked: Asked, keys: Keys, scores: Floats) -> Weighted:
        """Who holds a phrase, as FTS5 says.

        Args:
            asked: the phrase.
            keys: ascending.
            scores: what each gains.

        Raises:
            ValueError: of a record that there is not.
        """
        slots, known = self.slots_of(keys)
        if not known.all():
            raise ValueError("the keyword index holds other records than the file")
        order = np.argsort(slots, kind="stable")
        scores = scores[order]
        weighted = Weighted((_stretch(slots[order], scores, scores),), 1.0, scored=True) if len(keys) else _NOTHING
        return self._keep(asked, weighted, 16 * len(keys))

    def _keep(self, asked: Asked, weighted: Weighted, size: int) -> Weighted:
        self._bytes += _TERM_BYTES + size
        if self._bytes > MAX_CACHED_BYTES:
            self._terms, self._bytes = {}, _TERM_BYTES + size
        self._terms[asked] = weighted
        return weighted


def _stretch(slots: Slots, scores: Floats, values: Floats) -> Postings:
    gains = scores.astype(np.float32)
    return Postings(slots, gains, float(gains.max()), lambda places: values.take(places, mode="clip"))


def _places(ascending: npt.NDArray[np.integer], wanted: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.intp], Mask]:
    """Where each of ``wanted`` is in ``ascending``, and whether it is there at all."""
    if not len(ascending):
        return np.zeros(len(wanted), dtype=np.intp), np.zeros(len(wanted), dtype=np.bool_)
    places = places_in(ascending, wanted)
    known = ascending.take(places, mode="clip") == wanted
    places *= known
    return places, known


def _among(seen: Seen, keys: Keys) -> Mask:
    """Which of ``keys``, ascending, are visible; where keys are dense by a table, which is many times quicker."""
    highest = int(keys[-1]) if len(keys) else 0
    if highest > 8 * (len(keys) + 1) or len(seen.keys) < len(keys) // 64:
        return seen.among(keys)
    table = np.zeros(highest + 1, dtype=np.bool_)
    table[seen.keys[: np.searchsorted(seen.keys, highest, side="right")]] = True
    return table[keys]
