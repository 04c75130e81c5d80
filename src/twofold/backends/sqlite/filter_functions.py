"""What compiled filters ask of Python, because SQLite cannot say it exactly; see :mod:`.filter_sql`."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final

from twofold.filters.matching import like
from twofold.filters.values import strict_key
from twofold.types.json import dump_json

__all__ = ["FUNCTIONS"]


@lru_cache(maxsize=64)  # they may be long
def _strict_keys(values: str) -> frozenset[Hashable]:
    """The strict keys of a JSON list of operands: the same for every row of a statement."""
    return frozenset(map(strict_key, json.loads(values)))


@lru_cache(maxsize=256)
def _path(path: str) -> tuple[str, ...]:
    return tuple(json.loads(path))


@lru_cache(maxsize=4)  # one condition asks for type, value and text of the same one after another
def _json_get(document: str, path: str) -> str | None:
    """The value at a path of keys, as JSON text; None if it is missing."""
    value = json.loads(document)
    for key in _path(path):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return dump_json(value)


def _json_in(value: str, operands: str) -> int:
    return strict_key(json.loads(value)) in _strict_keys(operands)


def _json_any(elements: str, wanted: str) -> int:
    return not _strict_keys(wanted).isdisjoint(map(strict_key, json.loads(elements)))


def _json_all(elements: str, wanted: str) -> int:
    return _strict_keys(wanted).issubset(map(strict_key, json.loads(elements)))


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()


def _like(text: str | None, pattern: str) -> int | None:
    return None if text is None else like(text, pattern)


FUNCTIONS: Final[tuple[tuple[str, int, Callable[..., Any]], ...]] = (
    ("twofold_casefold", 1, _casefold),
    ("twofold_json_all", 2, _json_all),
    ("twofold_json_any", 2, _json_any),
    ("twofold_json_get", 2, _json_get),
    ("twofold_json_in", 2, _json_in),
    ("twofold_like", 2, _like),
    ("twofold_real", 1, float),
)
"""Name, number of arguments, function: what a connection registers, each as deterministic."""
