"""An embedder that needs no server and no download: the static vectors that the package wordllama ships.

Its two files are read directly. Importing wordllama itself would configure the application's logging, load what only
training needs, and could reach for the network.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.embedders.protocol import EmbeddingKind
from twofold.errors import ConfigurationError, MissingExtraError

__all__ = ["LocalEmbedder"]

_MODEL = "l2_supercat"
_DIMENSION = 256
_BATCH = 256
"""Texts that are cut into tokens at a time."""
_SPACE = "▁"
"""What the tokens write for a space."""
_BYTE = re.compile("<0x[0-9A-F]{2}>")
"""A token that spells one byte of a character which has no token of its own."""


class LocalEmbedder:
    """Static token vectors of 256 numbers, averaged: fast, offline, good enough to find paraphrases in English.

    The model is read from the installed package ``wordllama`` on first use (about 0.3 s and 60 MB), once for the
    whole process. Nothing is ever downloaded. Safe to be used from several threads.
    """

    def __repr__(self) -> str:
        return "LocalEmbedder()"

    @property
    def fingerprint(self) -> str:
        """Names the model, not the package's release: the weights make the vectors."""
        return f"wordllama:{_MODEL}:{_DIMENSION}"

    @property
    def in_process(self) -> bool:
        """True: it computes on the caller's thread."""
        return True

    @property
    def dimension(self) -> int:
        """256, known without loading the model."""
        return _DIMENSION

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> npt.NDArray[np.float32]:  # noqa: ARG002 - one for both
        """The mean of each text's token vectors, of unit length.

        Returns:
            Shape (texts, 256). All zeros, which is no usable vector, for a text of which the model knows no token:
            an empty one, or one of characters that it can only spell byte by byte.

        Raises:
            MissingExtraError: wordllama is not installed.
            ConfigurationError: the installed wordllama does not hold the model.
        """
        model = _model()
        vectors = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [_encodable(text) for text in texts[start : start + _BATCH]]
            for place, encoding in enumerate(model.tokenizer.encode_batch(batch, add_special_tokens=False), start):
                tokens = np.asarray(encoding.ids, dtype=np.intp)
                if model.known[tokens].any():
                    vectors[place] = model.weights[tokens].mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors


class _Model(NamedTuple):
    tokenizer: Any
    """A ``tokenizers.Tokenizer``."""
    weights: npt.NDArray[np.float32]
    """One vector a token, shape (tokens, 256)."""
    known: npt.NDArray[np.bool_]
    """Which tokens stand for text that the model has seen as such."""


_loading = threading.Lock()
_loaded: list[_Model] = []


def _model() -> _Model:
    """The model, read once."""
    if not _loaded:
        with _loading:
            if not _loaded:
                _loaded.append(_load())
    return _loaded[0]


def _load() -> _Model:
    spec = importlib.util.find_spec("wordllama")  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("wordllama", "local")
    folder = Path(spec.submodule_search_locations[0])
    weights_file = folder / "weights" / f"{_MODEL}_{_DIMENSION}.safetensors"
    tokenizer_file = folder / "tokenizers" / f"{_MODEL}_tokenizer_config.json"
    if not (weights_file.is_file() and tokenizer_file.is_file()):
        raise ConfigurationError(
            f"the installed wordllama does not hold the model {_MODEL} of {_DIMENSION} numbers; "
            "install it anew: pip install --force-reinstall 'twofold[local]'"
        )
    try:
        safetensors = importlib.import_module("safetensors")
        tokenizers = importlib.import_module("tokenizers")
    except ImportError as error:  # wordllama needs both, so it was installed without what it needs
        raise MissingExtraError(error.name or "wordllama", "local") from error
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with safetensors.safe_open(weights_file, framework="np") as tensors:
        weights = np.ascontiguousarray(tensors.get_tensor("embedding.weight"), dtype=np.float32)
    known = np.ones(len(weights), dtype=np.bool_)
    for token, place in tokenizer.get_vocab().items():
        if place < len(known) and (token == "<unk>" or not token.strip(_SPACE) or _BYTE.fullmatch(token)):  # noqa: S105
            known[place] = False
    return _Model(tokenizer, weights, known)


def _encodable(text: str) -> str:
    """``text`` without lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
