"""The postings of every word of a corpus, at some ten bytes each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.postings.best import Floats, Postings, Slots
from twofold.postings.bm25 import contributions, length_norms
from twofold.postings.vocabulary import Vocabulary

__all__ = ["IndexBuilder", "WordIndex"]

Keys: TypeAlias = npt.NDArray[np.int64]

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "keys": ("<i8",),
    "lengths": ("<u4",),
    "text": ("|u1",),
    "word_ends": ("<i8",),
    "ends": ("<i8",),
    "slots": ("<u4",),
    "codes": ("|u1", "<u2", "<u4"),
    "frequencies": ("<f8",),
    "gains": ("<f4",),
    "most": ("<f4",),
}
"""What an index is saved as, and in which types."""


@dataclass(frozen=True, eq=False)
class WordIndex:
    """Who holds each word how often; never changed. A record is known by its slot, the place of its key."""

    keys: Keys
    """Shape (records,), ascending."""
    lengths: npt.NDArray[np.uint32]
    """Tokens of each record."""
    words: Vocabulary
    ends: Keys
    """Shape (words,): where each word's postings end."""
    slots: Slots
    """Shape (postings,), of each word ascending."""
    codes: npt.NDArray[np.unsignedinteger[Any]]
    """Shape (postings,): how often the record holds the word, as a place in ``frequencies``."""
    frequencies: Floats
    """The distinct weighted frequencies that occur."""
    gains: npt.NDArray[np.float32]
    """Shape (postings,): see :attr:`Postings.gains`, at the mean length of these records."""
    most: npt.NDArray[np.float32]
    """Shape (words,): the highest gain of each."""

    @property
    def tokens(self) -> int:
        """Of all records."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def mean(self) -> float:
        """Tokens of a record on average."""
        return self.tokens / len(self.keys)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(part.nbytes for part in self.parts().values())

    def of(self, word: str) -> Postings | None:
        """Who holds ``word``; None: nobody does."""
        place = self.words.find(word)
        if place is None:
            return None
        own = slice(int(self.ends[place - 1]) if place else 0, int(self.ends[place]))
        values = partial(_frequencies, self.frequencies, self.codes[own])
        return Postings(self.slots[own], self.gains[own], float(self.most[place]), values)

    def parts(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything, as arrays."""
        arrays = {name: getattr(self, name) for name in _PARTS if name not in ("text", "word_ends")}
        return {**arrays, "text": self.words.text, "word_ends": self.words.ends}

    @classmethod
    def restored(cls, parts: Mapping[str, npt.NDArray[np.generic]]) -> WordIndex:
        """The index that gave ``parts``.

        Raises:
            ValueError, KeyError: these are no parts of an index.
        """
        if any(parts[name].dtype.str not in dtypes or parts[name].ndim != 1 for name, dtypes in _PARTS.items()):
            raise ValueError("arrays of other types")
        arrays: dict[str, Any] = dict(parts)
        words = Vocabulary(arrays.pop("text"), arrays.pop("word_ends"))
        return cls(words=words, **arrays)


def _frequencies(frequencies: Floats, codes: npt.NDArray[Any], places: npt.NDArray[np.intp]) -> Floats:
    return frequencies.take(codes.take(places, mode="clip"))


class IndexBuilder:
    """Makes a :class:`WordIndex` piece by piece, each of some words.

    Args:
        keys: of the records, ascending.
        lengths: their tokens; not all 0.
    """

    def __init__(self, keys: Keys, lengths: npt.NDArray[np.uint32]) -> None:
        self._keys = keys
        self._lengths = lengths
        tokens = int(lengths.sum(dtype=np.int64))
        self._norms = length_norms(lengths.astype(np.float64), tokens / len(keys))
        self._words: list[bytes] = []
        self._holding: list[Keys] = []
        self._most: list[npt.NDArray[np.float32]] = []
        self._code_of: dict[float, int] = {}
        self._filled = 0
        # There are no more postings than tokens. Memory that is not written to is not taken.
        self._slots: Slots = np.empty(tokens, dtype=np.uint32)
        self._gains: npt.NDArray[np.float32] = np.empty(tokens, dtype=np.float32)
        self._codes: npt.NDArray[np.unsignedinteger[Any]] = np.empty(tokens, dtype=np.uint8)

    def add(self, words: Sequence[str], ends: Keys, keys: Keys, frequencies: Floats) -> None:
        """Take the postings of some words in; records that are not known are passed over.

        Args:
            words: distinct, ascending by their bytes, above all that came before.
            ends: shape (words,): where each word's postings end.
            keys: shape (postings,): who holds it, of each word ascending.
            frequencies: shape (postings,): how often, weighted.
        """
        slots = np.searchsorted(self._keys, keys)
        slots[slots == len(self._keys)] = 0
        known = self._keys[slots] == keys
        holding = np.diff(np.concatenate([[0], np.cumsum(known)])[ends], prepend=0)
        slots, frequencies = slots[known], frequencies[known]
        gains = contributions(frequencies, self._norms[slots], 1.0).astype(np.float32)
        there = holding > 0
        holding = holding[there]
        self._words += [word.encode() for word, held in zip(words, there.tolist(), strict=True) if held]
        self._holding.append(holding)
        if len(holding):
            self._most.append(np.maximum.reduceat(gains, np.cumsum(holding) - holding))
        codes = self._coded(frequencies)
        own = slice(self._filled, self._filled + len(slots))
        room = max(len(self._slots), 2 * own.stop if own.stop > len(self._slots) else 0)  # records may have grown
        self._slots = self._with_room(self._slots, room, self._slots.dtype)
        self._gains = self._with_room(self._gains, room, self._gains.dtype)
        self._codes = self._with_room(self._codes, room, np.dtype(np.min_scalar_type(max(0, len(self._code_of) - 1))))
        self._slots[own], self._gains[own], self._codes[own] = slots, gains, codes
        self._filled = own.stop

    def finish(self) -> WordIndex:
        """The index; the builder is used up."""
        return WordIndex(
            keys=self._keys,
            lengths=self._lengths,
            words=Vocabulary.of(self._words),
            ends=np.cumsum(np.concatenate([np.empty(0, dtype=np.int64), *self._holding])),
            slots=self._slots[: self._filled],
            codes=self._codes[: self._filled],
            frequencies=np.array(list(self._code_of), dtype=np.float64),
            gains=self._gains[: self._filled],
            most=np.concatenate([np.empty(0, dtype=np.float32), *self._most]),
        )

    def _coded(self, frequencies: Floats) -> npt.NDArray[np.int64]:
        values, which = np.unique(frequencies, return_inverse=True)
        codes = [self._code_of.setdefault(value, len(self._code_of)) for value in values.tolist()]
        return np.array(codes, dtype=np.int64)[which]

    def _with_room(self, array: npt.NDArray[Any], room: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """``array`` itself, or what there is of it in one that is longer or of a wider type."""
        if room <= len(array) and dtype.itemsize <= array.dtype.itemsize:
            return array
        larger = np.empty(room, dtype=dtype)
        larger[: self._filled] = array[: self._filled]
        return larger
