"""Embedders for tests: no model, no network, the same vectors on every machine and in every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from twofold.embedders import Embedder, EmbeddingKind, Embeddings
from twofold.errors import ConfigurationError
from twofold.vectors import as_vector

__all__ = ["FailingEmbedder", "FakeEmbedder", "FlakyEmbedder", "TableEmbedder"]

_WORD = re.compile(r"\w+")
_GRAM_WEIGHT = 0.5
"""How much such a piece counts beside a whole word."""


class FakeEmbedder:
    """Texts that share words are near each other, and those that share parts of words a little; it knows no meaning.

    A text is the sum of pseudo-random directions, one for each distinct word and, with less weight, for each run of
    three characters in it, of unit length. Case does not count, nor does the order of words. A text without words
    has a direction of its own. Directions come from BLAKE2, so they are the same everywhere.
    """

    def __init__(self, dimension: int = 64, *, name: str = "fake") -> None:
        """Fix the directions.

        Args:
            dimension: how many numbers a vector has, at least 1. With fewer than some 32, unrelated texts come near
                each other by chance.
            name: another name gives other directions and another fingerprint, as another model would.
        """
        if dimension < 1:
            raise ConfigurationError(f"dimension must be at least 1, not {dimension}")
        self._dimension = dimension
        self._name = name
        self._directions: dict[str, npt.NDArray[np.float64]] = {}

    def __repr__(self) -> str:
        return f"FakeEmbedder({self._dimension}, name={self._name!r})"

    @property
    def fingerprint(self) -> str:
        """``<name>:<dimension>``."""
        return f"{self._name}:{self._dimension}"

    @property
    def dimension(self) -> int:
        """As given."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> npt.NDArray[np.float32]:  # noqa: ARG002 - one for both
        """Shape (texts, dimension), of unit length; queries and documents alike."""
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            vectors[place] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> npt.NDArray[np.float64]:
        words = sorted(set(_WORD.findall(text.casefold())))  # sorted: equal sets give equal bits
        total = np.zeros(self._dimension)
        for word in words:
            total += self._direction(word)
        framed = [f"#{word}#" for word in words]
        for gram in sorted({word[i : i + 3] for word in framed for i in range(len(word) - 2)}):
            total += _GRAM_WEIGHT * self._direction(f"#{gram}")
        length = np.linalg.norm(total)
        # Without words, or in one dimension, where directions may cancel out.
        return total / length if length > 1e-9 else self._direction(f"text:{text}")

    def _direction(self, piece: str) -> npt.NDArray[np.float64]:
        """The unit vector of a word or a piece of one."""
        known = self._directions.get(piece)
        if known is None:
            seed = f"{self._name}\0{piece}".encode("utf-8", "surrogatepass")
            stream = hashlib.shake_128(seed).digest(4 * self._dimension)
            # Whole numbers from 1 away from zero: never a zero vector.
            numbers = np.frombuffer(stream, dtype="<i4").astype(np.float64)
            numbers[numbers == 0] = 1.0
            known = self._directions[piece] = numbers / np.linalg.norm(numbers)
        return known


class TableEmbedder:
    """Looks vectors up: for tests that say which text is how near to which."""

    def __init__(self, table: Mapping[str, Sequence[float]], *, name: str = "table") -> None:
        """Take the table.

        Args:
            table: a vector for each text that may be embedded, all of one length, at least one.
            name: another name gives another fingerprint.

        Raises:
            ConfigurationError: the table is empty.
            InvalidVectorError: a vector is zero, not finite or of another length than the first.
        """
        if not table:
            raise ConfigurationError("the table is empty; give the vector of at least one text")
        self._table: dict[str, npt.NDArray[np.float32]] = {}
        self._dimension = len(next(iter(table.values())))
        self._name = name
        for text, vector in table.items():
            self._table[text] = as_vector(vector, self._dimension, f"the vector of {text!r}")

    def __repr__(self) -> str:
        return f"TableEmbedder({len(self._table)} texts, dimension={self._dimension})"

    @property
    def fingerprint(self) -> str:
        """``<name>:<dimension>``."""
        return f"{self._name}:{self._dimension}"

    @property
    def dimension(self) -> int:
        """That of the table's vectors."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> npt.NDArray[np.float32]:  # noqa: ARG002 - one for both
        """The vectors as the table has them, of any length.

        Raises:
            KeyError: a text is not in the table.
        """
        for text in texts:
            if text not in self._table:
                raise KeyError(f"no vector for {text!r} in the table of this TableEmbedder")
        return np.array([self._table[text] for text in texts], dtype=np.float32).reshape(len(texts), self._dimension)


class FailingEmbedder:
    """Raises, always."""

    def __init__(
        self, error: BaseException | None = None, *, fingerprint: str = "failing", dimension: int | None = None
    ) -> None:
        """Take what is raised.

        Args:
            error: what it raises. Default: ``ConnectionError``.
            fingerprint: so that it can stand for a model that was well before.
            dimension: likewise.
        """
        self.error = ConnectionError("connection refused") if error is None else error
        self.calls = 0
        self._fingerprint = fingerprint
        self._dimension = dimension

    @property
    def fingerprint(self) -> str:
        """As given."""
        return self._fingerprint

    @property
    def dimension(self) -> int | None:
        """As given."""
        return self._dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:  # noqa: ARG002 - it never embeds
        """Raise; ``calls`` counts how often."""
        self.calls += 1
        raise self.error


class FlakyEmbedder:
    """Another embedder with a switch: with ``down = True`` every call raises ConnectionError."""

    def __init__(self, inner: Embedder | None = None, *, down: bool = False) -> None:
        """Put a switch before ``inner``.

        Args:
            inner: what answers while it is up. Default: a :class:`FakeEmbedder`.
            down: how the switch stands at first.
        """
        self.inner: Embedder = FakeEmbedder() if inner is None else inner
        self.down = down
        self.calls = 0
        """How often it was asked, up or down."""
        self.texts: list[str] = []
        """Every text that it gave a vector for, in order."""

    @property
    def fingerprint(self) -> str:
        """That of the inner one."""
        return self.inner.fingerprint

    @property
    def dimension(self) -> int | None:
        """That of the inner one."""
        return self.inner.dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """What the inner one gives.

        Raises:
            ConnectionError: it is down.
        """
        self.calls += 1
        if self.down:
            raise ConnectionError("switched off by the test")
        vectors = self.inner.embed(texts, kind)
        self.texts.extend(texts)
        return vectors
