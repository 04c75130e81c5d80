"""What a vector store opens, and what opens the same again elsewhere."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, NamedTuple

from llama_index.core.base.embeddings.base import BaseEmbedding

import twofold
from llama_index.embeddings.twofold.choosing import store_embedder
from llama_index.vector_stores.twofold.vectors import IndexVectors
from twofold import ConfigurationError, Embedder, HybridStore, StoreSettings

__all__ = ["Opened", "opened"]

_VECTORS_OF_THE_INDEX: Final = "llama-index"
"""What the model is called that an index brings vectors of, where nobody names it."""


class Opened(NamedTuple):
    """A store to work on."""

    store: HybridStore
    here: bool
    """Whether it was opened here, and so is closed here."""
    recipe: dict[str, Any] | None
    """The arguments that open it again elsewhere; None if only whoever opened it knows."""


def opened(
    store: HybridStore | str | PathLike[str],
    *,
    embed_model: BaseEmbedding | Embedder | str | None,
    embed_model_name: str | None,
    tenant: str | None,
    settings: dict[str, Any],
) -> Opened:
    """The store that the arguments of ``TwofoldVectorStore``, which explains them, stand for.

    Raises:
        ConfigurationError: an argument cannot be used, or is for a store that is not opened here.
        StoreError: the file cannot be opened.
    """
    opening = {"embed_model": embed_model, "embed_model_name": embed_model_name, "tenant": tenant}
    if isinstance(store, HybridStore):
        if given := [*(name for name, value in opening.items() if value is not None), *sorted(settings)]:
            raise ConfigurationError(
                f"{', '.join(given)}: the store is open already, with its own; "
                "give them to twofold.open(...), or a path in place of the store"
            )
        return Opened(store, here=False, recipe=None)
    embedder = (
        IndexVectors(_VECTORS_OF_THE_INDEX if embed_model_name is None else embed_model_name)
        if embed_model is None
        else store_embedder(embed_model, embed_model_name)
    )
    made = twofold.open(store, tenant=tenant, embedder=embedder, settings=_settings(settings))
    in_memory = fspath(store) == ":memory:"
    recipe = None if in_memory else {"store": str(Path(store).absolute()), **opening, **settings}
    return Opened(made, here=True, recipe=recipe)


def _settings(given: dict[str, Any]) -> StoreSettings:
    if "embedder" in given:
        raise ConfigurationError("embedder: here it is called embed_model, and takes LlamaIndex's models too")
    known = {each.name for each in fields(StoreSettings)}
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(
            f"unknown arguments: {', '.join(unknown)}; the settings of a store are {', '.join(sorted(known))}"
        )
    return StoreSettings(**given)
