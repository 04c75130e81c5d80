"""Embedding in this process with sentence-transformers, which needs torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from twofold.embedders.callables import checked_dimension
from twofold.embedders.clients import checked_batch_size, checked_model, checked_prefixes, imported
from twofold.embedders.families import known_dimension, prefixes_for
from twofold.embedders.fastembed import checked_download, checked_path, weights_missing
from twofold.embedders.loading import LoadedOnce
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import ConfigurationError

__all__ = ["SentenceTransformersEmbedder"]

_PROMPTS: Final[dict[EmbeddingKind, tuple[str, ...]]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}
"""What models call their own prompts, as the library looks for them."""


class SentenceTransformersEmbedder:
    """Runs a model of sentence-transformers. Safe to be used from several threads, which take turns.

    The weights are read on first use, and downloaded from the Hugging Face hub if they are not on this machine;
    searches go on with keywords meanwhile. It is asked under a store's deadlines like a server: what takes longer goes
    on in a thread of its own, and its result is not waited for. Code that comes with a model is never run.

    Example:
        ``twofold.open("memory.db", embedder=SentenceTransformersEmbedder("all-MiniLM-L6-v2"))``
    """

    def __init__(
        self,
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        path: str | Path | None = None,
        download: bool = True,
        device: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        """Nothing is imported, read or downloaded here.

        Args:
            model: its name on the hub. Default: sentence-transformers/all-MiniLM-L6-v2, of 384 numbers.
            path: a folder with the model's files, which are read instead of a download; ``model`` then only names it.
                Default: the hub's cache.
            download: whether weights that are missing may be downloaded. Default: True.
            device: where it computes, e.g. ``"cpu"`` or ``"cuda"``. Default: the best there is.
            dimensions: cut vectors to so many numbers, if the model is made for that. Default: the model's own.
            batch_size: how many texts are embedded at a time, at least 1. Default: 32.
            query_prefix: what is put before each query. Default: the model's own prompt, else what its card says, for
                the families that need it.
            document_prefix: likewise, before each document.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        self._model = checked_model(model, "all-MiniLM-L6-v2")
        self._path = checked_path(path)
        self._download = checked_download(download)
        if device is not None and (not isinstance(device, str) or not device):
            raise ConfigurationError(f"device is a name like 'cpu' or 'cuda', not {device!r}")
        self._device = device
        self._dimensions = None if dimensions is None else checked_dimension(dimensions)
        self._batch_size = checked_batch_size(batch_size)
        checked_prefixes(query_prefix, document_prefix)
        self._given: dict[EmbeddingKind, str | None] = {"query": query_prefix, "document": document_prefix}
        self._family = prefixes_for(self._model)
        self._learnt: int | None = None
        self._turn = threading.Lock()
        self._loaded = LoadedOnce(self._load, weights_missing(self._model, self._path, download=download))

    def __repr__(self) -> str:
        return f"SentenceTransformersEmbedder({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """Model, the dimensions asked for, the prefixes that were given. The model's own prompts belong to its name;
        neither folder nor device changes its vectors.
        """
        cut = "" if self._dimensions is None else f" dimensions={self._dimensions}"
        prefixes = "".join(f" {kind}={prefix!r}" for kind, prefix in self._given.items() if prefix is not None)
        return f"sentence-transformers:{self._model}{cut}{prefixes}"

    @property
    def dimension(self) -> int | None:
        """As asked for, or as the model is known to have; else learnt from the first text, None before."""
        return self._dimensions or known_dimension(self._model) or self._learnt

    @property
    def batch_size(self) -> int:
        """As given."""
        return self._batch_size

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, as the model encodes texts of its ``kind``.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            EmbedderUnreachableError: the weights are not here and could not be downloaded.
        """
        if not texts:
            return []
        model = self._loaded.get()
        encode = model.encode_query if kind == "query" else model.encode_document
        with self._turn:  # tokenizers that pad and cut refuse two callers at a time
            vectors: Embeddings = encode(
                list(texts),
                prompt=self._prompt(model, kind),
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        if self._learnt is None:
            self._learnt = len(vectors[0])
        return vectors

    def _prompt(self, model: Any, kind: EmbeddingKind) -> str | None:
        """What is put before a text; None: the model's own."""
        given = self._given[kind]
        if given is not None:
            return given
        own = getattr(model, "prompts", None) or {}
        return None if any(own.get(name) for name in _PROMPTS[kind]) else self._family[kind] or None

    def _load(self) -> Any:
        library = imported("sentence_transformers", "sentence-transformers", "sentence-transformers")
        return library.SentenceTransformer(
            self._model if self._path is None else str(self._path),
            device=self._device,
            truncate_dim=self._dimensions,
            local_files_only=self._path is not None or not self._download,
        )
