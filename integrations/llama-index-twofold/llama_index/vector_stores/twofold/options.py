"""What a vector store and its queries take besides what LlamaIndex's own do, and whether it can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, TypeVar

from llama_index.vector_stores.twofold.filters import narrowed
from twofold import Access, ConfigurationError, Filter, SearchParams

__all__ = ["QueryOptions", "checked_namespace", "checked_options", "of_kind", "ranked_by", "refused"]

_T = TypeVar("_T")


class QueryOptions(TypedDict, total=False):
    """What ``TwofoldVectorStore.query`` takes by name; an index hands it on:
    ``index.as_retriever(vector_store_kwargs={...})``.
    """

    access: Access | None
    """Who asks. Default: the vector store's own."""
    where: Filter | dict[str, Any] | None
    """A filter of twofold's besides LlamaIndex's ``filters``, for attributes say: ``A.importance > 0.5``, or its
    spelling as a dict. Default: none."""
    params: SearchParams | None
    """How to rank. Default: the vector store's own, else the store's settings. The options below change parts of it."""
    preset: str | None
    """The same as a name, one of ``twofold.PRESETS``; in place of ``params``."""
    rrf_k: float | None
    """Rank by reciprocal rank fusion, with this constant, whatever ``params`` say of fusion. Default: as ``params``."""
    expand: int | None
    """How many nodes that links lead to from those found come too, after them and beyond ``similarity_top_k``.
    Default: as the call's own ``params`` or ``preset``, else none."""
    mmr_threshold: float | None
    """Of mode ``mmr``: 1 is for the most fitting, 0 for the most different. Default: the query's, else 0.5."""
    mmr_prefetch_k: int | None
    """Of mode ``mmr``: among how many of the most fitting it chooses. Default: as many as the vector leg's
    pool holds, 40 unless ``params`` say otherwise."""
    mmr_prefetch_factor: float | None
    """The same as a multiple of ``similarity_top_k``, at least 1; in place of ``mmr_prefetch_k``."""


def checked_options(kwargs: Mapping[str, Any]) -> QueryOptions:
    """``kwargs``, if each of them is known.

    Raises:
        TypeError: one is not, for an option that does nothing is worse than an error.
    """
    if unknown := sorted(set(kwargs) - set(QueryOptions.__annotations__)):
        known = ", ".join(QueryOptions.__annotations__)
        raise TypeError(f"unknown options of a query: {', '.join(unknown)}; there are {known}")
    options: QueryOptions = kwargs  # type: ignore[assignment]  # its names are those
    return options


def refused(kwargs: Mapping[str, Any]) -> None:
    """Raise a TypeError that names ``kwargs``, if there are any."""
    if kwargs:
        raise TypeError(f"unknown arguments: {', '.join(sorted(kwargs))}")


def checked_namespace(namespace: Sequence[str]) -> tuple[str, ...]:
    """``namespace``, if it is one.

    Raises:
        ConfigurationError: it is a text.
        TwofoldError: it is no namespace.
    """
    if isinstance(namespace, str):
        raise ConfigurationError(f"namespace is a tuple of words, e.g. ({namespace!r},), not {namespace!r}")
    words = tuple(namespace)
    narrowed(words)  # refuses what is no namespace
    return words


def of_kind(name: str, value: _T | None, kind: type[_T]) -> _T | None:
    """``value``, if it is a ``kind`` or None; else a ConfigurationError that names it."""
    if value is None or isinstance(value, kind):
        return value
    raise ConfigurationError(f"{name}: pass a {kind.__name__}, not {type(value).__name__}")


def ranked_by(options: QueryOptions, own: SearchParams | None, settings: SearchParams) -> SearchParams:
    """The parameters of one query.

    Args:
        options: of the query.
        own: the vector store's.
        settings: the store's. Its links and touches are for memories, not for documents.
    """
    params, preset = options.get("params"), options.get("preset")
    of_kind("params", params, SearchParams)
    if preset is not None:
        if params is not None:
            raise ConfigurationError("preset and params both say how to rank: give one")
        params = SearchParams.preset(preset)
    if params is None:
        params = replace(settings, expand=0, touch=False) if own is None else own
    changes: dict[str, Any] = {name: value for name in ("rrf_k", "expand") if (value := options.get(name)) is not None}
    if "rrf_k" in changes and params.fusion != "rrf":
        changes.update(fusion="rrf", alpha=None, rescore=False)  # as in the preset "rrf"
    return replace(params, **changes) if changes else params
