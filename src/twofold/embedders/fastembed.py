"""Embedding in this process with fastembed: ONNX models, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twofold.embedders.clients import checked_batch_size, checked_model, checked_prefixes, imported
from twofold.embedders.families import known_dimension, prefixes_for
from twofold.embedders.loading import LoadedOnce
from twofold.embedders.protocol import EmbeddingKind, Embeddings
from twofold.errors import ConfigurationError

__all__ = ["FastEmbedEmbedder"]


class FastEmbedEmbedder:
    """Runs a model of fastembed's list on the CPU. Safe to be used from several threads.

    The weights are read on first use, and downloaded from the Hugging Face hub if they are not on this machine;
    searches go on with keywords meanwhile. It is asked under a store's deadlines like a server: what takes longer goes
    on in a thread of its own, and its result is not waited for.

    Example:
        ``twofold.open("memory.db", embedder=FastEmbedEmbedder("BAAI/bge-small-en-v1.5"))``
    """

    def __init__(
        self,
        model: str = "BAAI/bge-small-en-v1.5",
        *,
        path: str | Path | None = None,
        download: bool = True,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        """Nothing is imported, read or downloaded here.

        Args:
            model: as ``fastembed.TextEmbedding.list_supported_models()`` calls it. Default: BAAI/bge-small-en-v1.5,
                of 384 numbers.
            path: a folder with the model's files, which are read instead of a download. Default: fastembed's cache.
            download: whether weights that are missing may be downloaded. Default: True.
            batch_size: how many texts are embedded at a time, at least 1. Default: 32.
            query_prefix: what is put before each query. Default: what the model's card says, for the families that
                need it; nothing for bge.
            document_prefix: likewise, before each document.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        self._model = checked_model(model, "BAAI/bge-small-en-v1.5")
        self._path = checked_path(path)
        self._download = checked_download(download)
        self._batch_size = checked_batch_size(batch_size)
        checked_prefixes(query_prefix, document_prefix)
        self._prefixes = prefixes_for(self._model, query=query_prefix, document=document_prefix)
        self._learnt: int | None = None
        self._loaded = LoadedOnce(self._load, weights_missing(self._model, self._path, download=download))

    def __repr__(self) -> str:
        return f"FastEmbedEmbedder({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """Model and prefixes. Not the folder: the weights make the vectors."""
        prefixes = "".join(f" {kind}={prefix!r}" for kind, prefix in self._prefixes.items() if prefix)
        return f"fastembed:{self._model}{prefixes}"

    @property
    def dimension(self) -> int | None:
        """As the model is known to have; else learnt from the first text, None before."""
        return known_dimension(self._model) or self._learnt

    @property
    def batch_size(self) -> int:
        """As given."""
        return self._batch_size

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Embeddings:
        """One vector a text, as fastembed embeds queries or passages, after putting the prefix before it.

        Raises:
            MissingExtraError: fastembed is not installed.
            ConfigurationError: fastembed does not know the model.
            EmbedderUnreachableError: the weights are not here and could not be downloaded.
        """
        if not texts:
            return []
        model = self._loaded.get()
        prefixed = [self._prefixes[kind] + text for text in texts]
        ask = model.query_embed if kind == "query" else model.passage_embed
        vectors = list(ask(prefixed, batch_size=self._batch_size))
        if vectors and self._learnt is None:
            self._learnt = len(vectors[0])
        return vectors

    def _load(self) -> Any:
        text_embedding = imported("fastembed", "fastembed", "fastembed").TextEmbedding
        known = {each["model"].lower() for each in text_embedding.list_supported_models()}
        if self._model.lower() not in known:
            raise ConfigurationError(
                f"fastembed does not know the model {self._model!r}; "
                "fastembed.TextEmbedding.list_supported_models() names those it does"
            )
        # What decides where files come from is only said where it differs from the default.
        options: dict[str, Any] = {} if self._download else {"local_files_only": True}
        if self._path is not None:
            options["specific_model_path"] = str(self._path)
        return text_embedding(self._model, **options)


def checked_path(path: object) -> Path | None:
    """``path``, which may be None.

    Raises:
        ConfigurationError: it is no path.
    """
    if path is None:
        return None
    if not isinstance(path, (str, Path)) or not str(path):
        raise ConfigurationError(f"path is a folder with the model's files, not {path!r}")
    return Path(path)


def checked_download(download: object) -> bool:
    """``download``.

    Raises:
        ConfigurationError: it is neither True nor False.
    """
    if not isinstance(download, bool):
        raise ConfigurationError(f"download is True or False, not {download!r}")
    return download


def weights_missing(
    model: str, path: Path | None, *, download: bool, instead: str = "; embedder='local' needs no download"
) -> str:
    """What an error says if the weights of ``model`` could not be read, and what there is ``instead``."""
    if path is not None:
        return f"the weights of {model!r} could not be read from {path}: it must hold all files of the model"
    tried = "could not be downloaded" if download else "download=False forbids to download them"
    return (
        f"the weights of {model!r} are not on this machine and {tried}: run once where huggingface.co, or a mirror "
        f"named by HF_ENDPOINT, can be reached, or pass path= of a folder that holds them{instead}"
    )
