"""Words as one text: no object a word, and what it is saved as."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Vocabulary"]


class Vocabulary:
    """Distinct words, found by halving.

    Args:
        text: shape (n,), all words in UTF-8, one after the other, by their bytes ascending.
        ends: shape (words,), where each ends.

    Raises:
        ValueError: the two do not belong together.
    """

    def __init__(self, text: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> None:
        if (np.diff(ends, prepend=0) < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(text):
            raise ValueError("ends do not fit the text")
        self.text = text
        self.ends = ends
        self._bytes = text.tobytes()
        self._ends = memoryview(np.concatenate([[0], ends]).astype(np.int64).tobytes()).cast("q")

    @classmethod
    def of(cls, words: Sequence[bytes]) -> Vocabulary:
        """The words, which are distinct and ascending."""
        ends = np.cumsum(np.fromiter(map(len, words), dtype=np.int64, count=len(words)), dtype=np.int64)
        return cls(np.frombuffer(b"".join(words), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def find(self, word: str) -> int | None:
        """Which one it is, from 0; None if it is not there."""
        wanted = word.encode(errors="surrogatepass")
        text, ends = self._bytes, self._ends
        low, high = 0, len(self.ends)
        while low < high:  # bisect_left, without a call at each step
            middle = (low + high) // 2
            if text[ends[middle] : ends[middle + 1]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.ends) and text[ends[low] : ends[low + 1]] == wanted else None
