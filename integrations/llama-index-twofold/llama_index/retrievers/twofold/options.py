"""What may be said of a retrieval, for the retriever as a whole or for one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, TypedDict

from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.retrievers.twofold.scores import Scores, checked_scores
from llama_index.vector_stores.twofold import as_filter
from twofold import A, Access, ConfigurationError, Filter, Mode, SearchParams

__all__ = ["RetrieverOptions", "as_where", "checked_options", "ranked_by"]


class RetrieverOptions(TypedDict, total=False):
    """What :meth:`TwofoldRetriever.with_options` takes; each is explained at :class:`TwofoldRetriever`."""

    similarity_top_k: int
    access: Access | None
    where: Filter | dict[str, Any] | None
    filters: MetadataFilters | None
    namespace: Sequence[str] | None
    mode: Mode | str
    params: SearchParams | None
    preset: str | None
    use_bundle_embedding: bool
    include_linked: bool
    scores: Scores


def checked_options(options: Any) -> RetrieverOptions:
    """``options``, if each of them is known and can be used.

    Raises:
        TypeError: one is not known, for an option that does nothing is worse than an error.
        ConfigurationError: one is out of range.
    """
    if unknown := sorted(set(options) - set(RetrieverOptions.__annotations__)):
        known = ", ".join(RetrieverOptions.__annotations__)
        raise TypeError(f"unknown options of a retrieval: {', '.join(unknown)}; there are {known}")
    checked: RetrieverOptions = dict(options)  # type: ignore[assignment]  # its names are those, see above
    if "similarity_top_k" in checked:
        k = checked["similarity_top_k"]
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise ConfigurationError(f"similarity_top_k is a whole number of at least 0, not {k!r}")
    if "mode" in checked and checked["mode"] not in tuple(Mode):
        raise ConfigurationError(f"mode is one of {', '.join(Mode)}, not {checked['mode']!r}")
    if "scores" in checked:
        checked["scores"] = checked_scores(checked["scores"])
    if checked.get("access") is not None and not isinstance(checked["access"], Access):
        raise ConfigurationError(f"access is an Access, e.g. Access(user='u1'), not {checked['access']!r}")
    filters = checked.get("filters")
    if filters is not None and not isinstance(filters, MetadataFilters):
        raise ConfigurationError(
            f"filters is LlamaIndex's MetadataFilters, not {type(filters).__name__}; where=... takes twofold's own"
        )
    as_where(None, filters, checked.get("namespace"))  # refuses what cannot be asked
    return checked


def as_where(
    where: Filter | dict[str, Any] | None, filters: MetadataFilters | None, namespace: Sequence[str] | None
) -> Filter | None:
    """That ``where`` and ``filters`` apply, and that a record is in ``namespace`` itself, as far as they are given."""
    if isinstance(namespace, str):
        raise ConfigurationError(f"a namespace is a tuple of words, e.g. ({namespace!r},), not {namespace!r}")
    parts = (
        None if namespace is None else A.namespace == tuple(namespace),
        where if where is None or isinstance(where, Filter) else Filter.from_dict(where),
        as_filter(filters),
    )
    given = [part for part in parts if part is not None]
    return reduce(and_, given) if given else None


def ranked_by(
    params: SearchParams | None, preset: str | None, own: SearchParams, scores: Scores
) -> tuple[SearchParams | None, str | None]:
    """The parameters and the preset of one search.

    Args:
        params: as given.
        preset: as given.
        own: the store's.
        scores: what the nodes' scores say; for ``"similarity"`` each candidate is scored by both legs.
    """
    if scores == "rank" or (params is not None and preset is not None):  # the store refuses both
        return params, preset
    if params is None:
        params = own if preset is None else SearchParams.preset(preset)
    return replace(params, rescore=True), None
