"""``twofold.open``."""

from __future__ import annotations

import os
from dataclasses import replace

from twofold.backends.sqlite import SqliteBackend
from twofold.config import SearchParams, StoreSettings
from twofold.embedders import Embedder, Guard, resolve_embedder
from twofold.errors import ConfigurationError
from twofold.extras import require_extra
from twofold.rerankers import Judge, Reranker, resolve_reranker
from twofold.search import Helpers, Hyde, HydeWriter
from twofold.store.backfilling import Backfill
from twofold.store.facade import HybridStore
from twofold.store.handle import Parts
from twofold.store.touching import Touches

__all__ = ["open_store"]


def open_store(
    path: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    embedder: Embedder | str | None = None,
    reranker: Reranker | str | None = None,
    hyde: HydeWriter | None = None,
    settings: StoreSettings | None = None,
    preset: str | None = None,
) -> HybridStore:
    """Open a store, made anew if the file is not there. Use it in a ``with`` block, or call its ``close()``.

    Args:
        path: a file, ``":memory:"``, or, with a tenant, an existing folder.
        tenant: whose file in that folder. Nothing is ever shared between two tenants.
        embedder: what turns text into vectors: an object with ``fingerprint``, ``dimension`` and ``embed``, a
            ``CallableEmbedder(function, name=...)``, ``GivenVectors(name, dimension)`` where you bring the vectors,
            ``"local"``, the model that the extra of this name installs, or ``"ollama"``, ``"fastembed"``,
            ``"sentence-transformers"``, ``"openai"`` or ``"voyage"``, each with its default model or with
            ``":<model>"`` behind it (extras of these names). Default: none, keywords answer alone.
        reranker: what puts the best of what a search finds in a better order: a function of the query and a list of
            texts, sync or async, that gives one score a text (:class:`Reranker`), ``"cross-encoder"`` or
            ``"cross-encoder:<model>"`` (extra ``sentence-transformers``). If it fails, hits keep the order that they
            have and the result says so. Default: none.
        hyde: what writes, for short questions (``SearchParams.hyde``), a text that might answer them, whose vector is
            then looked for: a function of the question, sync or async, or a language model with ``complete(prompt)`` or
            ``invoke(prompt)``. If it fails, the question's own vector is used and the result says so. Default: none.
        settings: everything else. Default: ``StoreSettings()``.
        preset: how searches rank where a call does not say, as a name: one of ``twofold.PRESETS``, e.g. ``"muninn"``;
            in place of ``settings.search``.

    Raises:
        StoreError: the file cannot be opened; the message says what to do.
        ConfigurationError: an argument cannot be used, or contradicts what the file was made with.
        MissingExtraError: a library is not installed; the message names the extra that brings it.
    """
    if settings is not None and not isinstance(settings, StoreSettings):
        raise ConfigurationError(f"settings is a StoreSettings, not {type(settings).__name__}")
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigurationError(f"path is the name of a file, or ':memory:', not {path!r}")
    settings = StoreSettings() if settings is None else settings
    if preset is not None:
        if settings.search != StoreSettings().search:
            raise ConfigurationError(
                "preset and settings.search both say how to rank: give one, "
                f"or StoreSettings(search=SearchParams.preset({preset!r}, ...)) with what is to differ"
            )
        settings = replace(settings, search=SearchParams.preset(preset))
    resolved, reorders = resolve_embedder(embedder), resolve_reranker(reranker)
    for short_form in (embedder, reranker):
        require_extra(short_form)
    helpers = Helpers(
        None if reorders is None else Judge(reorders, settings), None if hyde is None else Hyde(hyde, settings)
    )
    backend = SqliteBackend.open(path, tenant=tenant, settings=settings)
    guard = None if resolved is None else Guard(resolved, settings.embedding)
    touches, backfill = Touches(backend, settings), Backfill(backend, guard, settings)
    return HybridStore(Parts(backend, guard, settings, os.fspath(path), touches, backfill, helpers))
