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
    """Turns texts into vectors. What it gives is checked before it is used, so it need not check itself.

    A store asks it in a thread of its own and goes on without it at a deadline. Two more attributes it may have,
    and need not:

    * ``in_process: bool``, True if it only computes, here, and so cannot hang: it is then asked on the caller's
      thread, which saves starting one, and without a deadline. Default: False.
    * ``batch_size: int``, how many texts it is given at a time. Default: ``EmbeddingSettings.batch_size``, or all
      of them if it is in-process.
    """

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
