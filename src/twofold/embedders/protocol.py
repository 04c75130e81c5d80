"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Embedder", "EmbeddingKind", "Embeddings"]

EmbeddingKind: TypeAlias = Literal["query", "document"]
"""What a text is embedded as; some models treat the two differently."""

Embeddings: TypeAlias = "Sequence[Sequence[float]] | npt.NDArray[np.floating[Any]]"
"""One vector a text, in order: shape (texts, dimension)."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. What it gives is checked before it is used, so it need not check itself."""

    @property
    def fingerprint(self) -> str:
        """What makes its vectors comparable: provider, model, dimension, prefixes. Stored in the file."""
        ...

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; None until the first success if it is not known before."""
        ...

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, in order. May raise anything: the caller goes on with keywords."""
        ...
