"""The options that a call of the vector store takes besides what LangChain's own signatures have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

from twofold import A, Access, ConfigurationError, F, Filter, Mode, SearchParams

__all__ = ["DiverseOptions", "SearchOptions", "as_where", "checked_options", "ranked_by"]


class DiverseOptions(TypedDict, total=False):
    """What a search by maximal marginal relevance takes by name besides ``fetch_k``, for this one call."""

    filter: Filter | dict[str, Any] | None
    """Which documents may be found: an expression of ``F`` and ``A``, or a dict such as
    ``{"year": {"$gte": 2020}, "lang": "en"}``, whose keys must all hold. Default: all."""
    access: Access | None
    """Who asks. Default: the vector store's own."""
    mode: Mode | str | None
    """``"hybrid"``, ``"keyword"`` or ``"vector"``. Default: the vector store's own."""
    offset: int
    """How many of the best to leave out. Default: 0."""
    params: SearchParams | None
    """How to rank. Default: the vector store's own, else the store's settings. The options below change parts of it."""
    weights: Sequence[float] | None
    """What the keyword leg and the vector leg count, e.g. ``(0.3, 0.7)``. Default: as ``params``."""
    rrf_k: float | None
    """Rank by reciprocal rank fusion, with this constant, whatever ``params`` say of fusion. Default: as ``params``."""
    expand: int | None
    """How many documents that links lead to from the hits come too, after them and beyond ``k``. Default: as the
    call's own ``params``, else none."""


class SearchOptions(DiverseOptions, total=False):
    """What every other search of a :class:`~langchain_twofold.TwofoldVectorStore` takes by name, for this one call."""

    fetch_k: int | None
    """How many candidates each leg gives, at least 1. Default: as ``params``."""


def checked_options(
    options: Any, kind: type[DiverseOptions] = SearchOptions, *, without: str | None = None
) -> SearchOptions:
    """``options``, if each of them is known.

    Args:
        options: as given.
        kind: the options there are.
        without: one of them that this call does not take.

    Raises:
        TypeError: one is not, for an option that does nothing is worse than an error.
    """
    known = set(kind.__annotations__) - {without}
    if unknown := sorted(set(options) - known):
        raise TypeError(f"unknown options of a search: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    checked: SearchOptions = options
    return checked


def ranked_by(options: SearchOptions, own: SearchParams) -> SearchParams:
    """The parameters of one search.

    Args:
        options: of the call.
        own: what holds where they say nothing.
    """
    params = options.get("params")
    if params is not None and not isinstance(params, SearchParams):
        raise ConfigurationError(f"params is a SearchParams, not {type(params).__name__}")
    base = own if params is None else params
    changes: dict[str, Any] = {}
    if (fetch_k := options.get("fetch_k")) is not None:
        changes.update(pool=fetch_k, pool_per_k=None, keyword_pool=None, vector_pool=None)
    if (weights := options.get("weights")) is not None:
        if isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != 2:
            raise ConfigurationError(f"weights is a pair, (keyword, vector), e.g. (0.3, 0.7), not {weights!r}")
        changes.update(keyword_weight=weights[0], vector_weight=weights[1])
    if (rrf_k := options.get("rrf_k")) is not None:
        if base.fusion != "rrf":
            changes.update(fusion="rrf", alpha=None, rescore=False)  # as in the preset "rrf"
        changes["rrf_k"] = rrf_k
    if (expand := options.get("expand")) is not None or params is None:
        changes["expand"] = expand or 0
    return replace(base, **changes)


def as_where(filter: Filter | dict[str, Any] | None, namespace: tuple[str, ...]) -> Filter:
    """``filter``, and that a document is in ``namespace`` itself, neither above nor below."""
    here = A.namespace == namespace
    if filter is None:
        return here
    return here & (filter if isinstance(filter, Filter) else Filter.from_dict(_spelled(filter)))


def _spelled(filter: object) -> Any:
    if isinstance(filter, dict):
        return filter
    raise ConfigurationError(f"filter is a dict, or made of F(...) and A, e.g. {F('lang') == 'en'!r}; not {filter!r}")
