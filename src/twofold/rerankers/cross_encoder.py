"""A cross-encoder of sentence-transformers, which needs torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twofold.embedders.clients import checked_batch_size, checked_model, imported
from twofold.embedders.fastembed import checked_download, checked_path, weights_missing
from twofold.embedders.loading import LoadedOnce
from twofold.errors import ConfigurationError

__all__ = ["CrossEncoderReranker"]

_EXTRA = "sentence-transformers"


class CrossEncoderReranker:
    """Runs a cross-encoder of sentence-transformers, which reads the question and a text together. Safe to be used from
    several threads, which take turns.

    A score is the sigmoid of what the model gives, above 0, below 1. The weights are read on first use, and downloaded
    from the Hugging Face hub if they are not on this machine; searches go on without meanwhile. Code that comes with a
    model is never run.

    Example:
        ``twofold.open("memory.db", reranker=CrossEncoderReranker("BAAI/bge-reranker-base"))``
    """

    def __init__(
        self,
        model: str = "cross-encoder/ms-marco-MiniLM-L6-v2",
        *,
        path: str | Path | None = None,
        download: bool = True,
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        """Nothing is imported, read or downloaded here.

        Args:
            model: its name on the hub; one with a single label. Default: cross-encoder/ms-marco-MiniLM-L6-v2, for
                English.
            path: a folder with the model's files, which are read instead of a download; ``model`` then only names it.
                Default: the hub's cache.
            download: whether weights that are missing may be downloaded. Default: True.
            device: where it computes, e.g. ``"cpu"`` or ``"cuda"``. Default: the best there is.
            batch_size: how many texts are read at a time, at least 1. Default: 32.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        self._model = checked_model(model, "cross-encoder/ms-marco-MiniLM-L6-v2")
        self._path = checked_path(path)
        self._download = checked_download(download)
        if device is not None and (not isinstance(device, str) or not device):
            raise ConfigurationError(f"device is a name like 'cpu' or 'cuda', not {device!r}")
        self._device = device
        self._batch_size = checked_batch_size(batch_size)
        self._turn = threading.Lock()
        self._loaded = LoadedOnce(self._load, weights_missing(self._model, self._path, download=download, instead=""))

    def __repr__(self) -> str:
        return f"CrossEncoderReranker({self._model!r})"

    @property
    def name(self) -> str:
        """``cross-encoder:<model>``."""
        return f"cross-encoder:{self._model}"

    def __call__(self, query: str, texts: Sequence[str], /) -> list[float]:
        """One score a text, above 0, below 1.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ConfigurationError: the model gives several labels, so it is no reranker.
            EmbedderUnreachableError: the weights are not here and could not be downloaded.
        """
        if not texts:
            return []
        model, sigmoid = self._loaded.get()
        with self._turn:  # tokenizers that pad and cut refuse two callers at a time
            scores = model.predict(
                [(query, text) for text in texts],
                batch_size=self._batch_size,
                activation_fn=sigmoid,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return [float(score) for score in scores]

    def _load(self) -> Any:
        library = imported("sentence_transformers", _EXTRA, _EXTRA)
        torch = imported("torch", "torch", _EXTRA)
        model = library.CrossEncoder(
            self._model if self._path is None else str(self._path),
            device=self._device,
            local_files_only=self._path is not None or not self._download,
        )
        if model.num_labels != 1:
            raise ConfigurationError(
                f"{self._model!r} gives {model.num_labels} labels; a reranker is a cross-encoder with a single one"
            )
        return model, torch.nn.Sigmoid()
