"""Which optional libraries are installed, seen without importing them."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from twofold.errors import MissingExtraError

__all__ = ["has_extra", "require_extra"]

_BROUGHT_BY: Final = {
    "local": ("wordllama", "local"),
    "ollama": ("ollama", "ollama"),
    "fastembed": ("fastembed", "fastembed"),
    "sentence-transformers": ("sentence_transformers", "sentence-transformers"),
    "openai": ("openai", "openai"),
    "voyage": ("voyageai", "voyage"),
    "cross-encoder": ("sentence_transformers", "sentence-transformers"),
}
"""By provider of embeddings or scores, the module that it needs, and the extra that brings it."""


def has_extra(provider: str) -> bool:
    """Whether the library is there that a provider needs."""
    module, _ = _BROUGHT_BY[provider]
    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None


def require_extra(short_form: object) -> None:
    """See that what a store is opened with can be used, now rather than at the first text.

    Args:
        short_form: ``"<provider>"`` or ``"<provider>:<model>"``; of anything else nothing is asked.

    Raises:
        MissingExtraError: its library is not installed.
    """
    provider = short_form.partition(":")[0] if isinstance(short_form, str) else ""
    if provider in _BROUGHT_BY and not has_extra(provider):
        module, extra = _BROUGHT_BY[provider]
        raise MissingExtraError(module.replace("_", "-"), extra)
