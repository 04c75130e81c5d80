"""What of an item is searched, and by which model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from langchain_twofold.embedders import as_embedder
from twofold import CallableEmbedder, ConfigurationError, Embedder

__all__ = ["TextsOfItems", "embedder_of"]

_KNOWN: Final = frozenset({"dims", "embed", "fields", "text_fields"})


class TextsOfItems:
    """Which texts of a value are searched.

    Args:
        index: LangGraph's index configuration, or None.

    Raises:
        ConfigurationError: it has a key that means nothing.
    """

    def __init__(self, index: IndexConfig | None) -> None:
        if index is not None and (unknown := sorted(set(index) - _KNOWN)):
            raise ConfigurationError(f"unknown in index: {', '.join(unknown)}; there are {', '.join(sorted(_KNOWN))}")
        fields = None if index is None else index.get("fields") or index.get("text_fields") or ["$"]
        self._paths = None if fields is None else _tokenized(fields)  # type: ignore[arg-type]  # text_fields is untyped

    def __call__(self, value: Mapping[str, Any], index: Any) -> tuple[str, ...]:
        """The texts of ``value``, one vector each; none if it is not to be found by searching.

        Args:
            value: the item's.
            index: as ``put`` takes it: None for what the store is configured for, False, or a list of paths.
        """
        if index is False:
            return ()
        paths = self._paths if index is None else _tokenized(index)
        if paths is None:
            texts: Sequence[str] = list(_words(value))
        else:
            texts = [text for path in paths for text in get_text_at_path(value, path)]
        return tuple(text for text in texts if text.strip())


def _tokenized(fields: Sequence[str]) -> list[Any]:
    if isinstance(fields, str) or not all(isinstance(field, str) for field in fields):
        raise ConfigurationError(
            f"the fields of an index are a list of paths, e.g. ['text', 'facts[*]'], not {fields!r}"
        )
    return [path if path == "$" else tokenize_path(path) for path in fields]


def _words(value: Any) -> Iterator[str]:
    """All the text in a value, without the names of its keys."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, (int, float)):
            if not isinstance(each, bool):
                yield str(each)
        elif isinstance(each, (dict, Mapping)):
            pending.extend(reversed(list(each.values())))
        elif isinstance(each, (list, tuple)):
            pending.extend(reversed(each))


def embedder_of(index: IndexConfig | None, name: str | None) -> Embedder | None:
    """The embedder that an index configuration asks for.

    Args:
        index: the configuration, or None for keywords alone.
        name: names the model. Default: what the model says of itself, else the name of its function or class.
    """
    if index is None:
        if name is not None:
            raise ConfigurationError("embedding_name names the model of index={'embed': ...}, and there is no index")
        return None
    given, dims = index.get("embed"), index.get("dims")
    if given is None:
        raise ConfigurationError("index needs 'embed', a model or a function; for keywords alone leave index out")
    if callable(given) and not isinstance(given, Embeddings):
        return CallableEmbedder(given, name=f"langgraph:{name or _named(given)}", dimension=dims)
    embeddings = ensure_embeddings(given)
    try:
        return as_embedder(embeddings, name=name, dimension=dims)
    except ConfigurationError:
        if name is not None:
            raise
        return as_embedder(embeddings, name=_named(type(embeddings)), dimension=dims)


def _named(model: Any) -> str:
    return f"{getattr(model, '__module__', '')}.{getattr(model, '__qualname__', type(model).__qualname__)}"
