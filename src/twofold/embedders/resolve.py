"""What may stand for an embedder where a store is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twofold.embedders.fastembed import FastEmbedEmbedder
from twofold.embedders.local import LocalEmbedder
from twofold.embedders.ollama import OllamaEmbedder
from twofold.embedders.openai import OpenAIEmbedder
from twofold.embedders.protocol import Embedder
from twofold.embedders.sentence_transformers import SentenceTransformersEmbedder
from twofold.embedders.voyage import VoyageEmbedder
from twofold.errors import ConfigurationError

__all__ = ["PROVIDERS", "SHORT_FORMS", "resolve_embedder"]

_PARTS = ("fingerprint", "dimension", "embed")
PROVIDERS: Final[dict[str, Callable[..., Embedder]]] = {
    "ollama": OllamaEmbedder,
    "fastembed": FastEmbedEmbedder,
    "sentence-transformers": SentenceTransformersEmbedder,
    "openai": OpenAIEmbedder,
    "voyage": VoyageEmbedder,
}
"""By the part of a short form before the colon: what is made with the model behind it, or with its own default."""
SHORT_FORMS: Final = ("local", *(form for name in PROVIDERS for form in (name, f"{name}:<model>")))
"""The texts that stand for an embedder."""


def resolve_embedder(value: Embedder | str | None) -> Embedder | None:
    """The embedder that ``value`` stands for.

    Args:
        value: an embedder, ``"local"`` for :class:`~twofold.embedders.LocalEmbedder`, the name of a provider, with its
            default model, or ``"<provider>:<model>"``, where the provider is ``ollama``, ``fastembed``,
            ``sentence-transformers``, ``openai`` or ``voyage``; or None for keywords only.

    Raises:
        ConfigurationError: it is none of these; the message says what to pass instead.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if value == "local":
            return LocalEmbedder()
        provider, colon, model = value.partition(":")
        if provider in PROVIDERS:
            make = PROVIDERS[provider]
            return make(model) if colon else make()
        forms = ", ".join(repr(form) for form in SHORT_FORMS)
        raise ConfigurationError(
            f"there is no embedder called {value!r}; pass {forms}, an embedder object "
            "(CallableEmbedder, GivenVectors or one of your own), or None for keywords only"
        )
    if isinstance(value, type):
        raise ConfigurationError(f"{value.__name__} is a class; pass an instance, e.g. {value.__name__}(...)")
    missing = [part for part in _PARTS if not _has(value, part)]
    if not missing:
        if not isinstance(value.fingerprint, str) or not value.fingerprint:
            raise ConfigurationError(
                f"the fingerprint of {type(value).__name__} must be a text that names the model, not "
                f"{value.fingerprint!r}"
            )
        return value
    raise ConfigurationError(_advice(value, missing))


def _has(value: object, part: str) -> bool:
    """Whether ``part`` is there; looked up on the type first, so that no property is worked out."""
    found = hasattr(type(value), part) or hasattr(value, part)
    return found and (part != "embed" or callable(getattr(value, part)))


def _advice(value: object, missing: list[str]) -> str:
    name = type(value).__name__
    if hasattr(value, "embed_query") and hasattr(value, "embed_documents"):
        return f"{name} is a LangChain embedding model; use the package langchain-twofold, which takes it as it is"
    if hasattr(value, "get_text_embedding") and hasattr(value, "get_query_embedding"):
        return f"{name} is a LlamaIndex embedding model; use the package llama-index-twofold, which takes it as it is"
    if callable(value) and missing == list(_PARTS):
        return (
            "a function does not say which model it is, and vectors of two models must never be compared; "
            "wrap it: CallableEmbedder(function, name='the model')"
        )
    return f"{name} is no embedder: it lacks {', '.join(missing)}; see twofold.embedders.Embedder for what each is"
