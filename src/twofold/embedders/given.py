"""Vectors that the caller brings."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.embedders.callables import checked_dimension, checked_name
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import ConfigurationError

__all__ = ["GivenVectors"]


class GivenVectors:
    """Stands for a model that runs elsewhere: records and queries come with their vectors, nothing is embedded.

    Whoever embeds asks ``isinstance(embedder, GivenVectors)`` first: a query without a vector is answered from
    keywords, a record without one has none.
    """

    def __init__(self, name: str, dimension: int) -> None:
        """Says which model's vectors will come.

        Args:
            name: names the model. It is stored with the vectors, and those of two names are never compared.
            dimension: how many numbers a vector has, at least 1.

        Raises:
            ConfigurationError: ``name`` is empty or ``dimension`` less than 1.
        """
        self._name = checked_name(name)
        self._dimension = checked_dimension(dimension)

    def __repr__(self) -> str:
        return f"GivenVectors({self._name!r}, {self._dimension})"

    @property
    def fingerprint(self) -> str:
        """``given:<name>:<dimension>``."""
        return f"given:{self._name}:{self._dimension}"

    @property
    def dimension(self) -> int:
        """As given."""
        return self._dimension

    @property
    def in_process(self) -> bool:
        """True: nothing is asked of it."""
        return True

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:  # noqa: ARG002 - it never embeds
        """Never embeds.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(
            f"this store takes its vectors from the caller ({self.fingerprint}) and cannot embed; "
            f"pass a vector of {self._dimension} numbers, or open the store with an embedder"
        )
