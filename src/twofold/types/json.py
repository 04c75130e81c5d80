"""JSON that comes back exactly as it went in: what it may hold, and how it is written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from twofold.errors import InvalidRecordError

__all__ = ["MAX_DEPTH", "checked_json", "checked_text", "dump_json", "dump_texts", "is_storable", "load_json"]

MAX_DEPTH = 100
"""How deep JSON may nest; SQLite's own limit is 1,000, Python's recursion limit is close to it."""

_INT64 = range(-(2**63), 2**63)

_SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # it has
_QUOTE = json.encoder.encode_basestring
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def is_storable(text: str) -> bool:
    """Whether SQLite and JSON hold ``text`` unchanged: it has neither NUL nor a lone surrogate."""
    return "\0" not in text and (text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text))


def checked_text(value: object, what: str) -> str:
    """``value``, if it is text that SQLite and JSON hold unchanged.

    Raises:
        InvalidRecordError: it is no text, or holds NUL or a lone surrogate.
    """
    if _is_plain_text(value):
        return value
    if not isinstance(value, str):
        raise InvalidRecordError(f"{what} is text, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidRecordError(f"{what} holds a NUL character")
    if not is_storable(value):
        raise InvalidRecordError(f"{what} holds a lone surrogate, which UTF-8 cannot encode")
    return str.__str__(value)  # the text of an enum with text too, not its name


def checked_json(value: Any, what: str, _depth: int = 0) -> Any:
    """A deep copy of ``value``, if JSON and SQLite hold it unchanged.

    Args:
        value: None, bool, int of 64 bits, finite float, text, and lists and dicts of these.
        what: how an error message calls it, e.g. ``"metadata"``.

    Raises:
        InvalidRecordError: anything else, text with NUL or a lone surrogate included.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return checked_text(value, what)
    if isinstance(value, int):
        if value not in _INT64:
            raise InvalidRecordError(f"{what} holds an integer beyond 64 bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRecordError(f"{what} holds {value}, which JSON has no word for")
        return float(value)
    if _depth >= MAX_DEPTH:
        raise InvalidRecordError(f"{what.partition('[')[0]} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [
            item if _is_plain(item) else checked_json(item, f"{what}[{index}]", _depth + 1)
            for index, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return {
            key if _is_plain_text(key) else checked_text(key, f"a key of {what}"): item
            if _is_plain(item)
            else checked_json(item, f"{what}[{key!r}]", _depth + 1)
            for key, item in value.items()
        }
    raise InvalidRecordError(
        f"{what} holds a {type(value).__name__}; JSON has None, bool, int, float, str, list and dict"
    )


def _is_plain(value: object) -> bool:
    """Whether it is seen at once that ``value`` may be stored as it is, before its place in the whole is spelled."""
    kind = type(value)
    return (kind is str and is_storable(value)) or (kind is int and value in _INT64) or value is None or kind is bool  # type: ignore[arg-type]


def _is_plain_text(value: object) -> TypeGuard[str]:
    return type(value) is str and is_storable(value)


def dump_json(value: Any) -> str:
    """Compact UTF-8 JSON of what :func:`checked_json` let through."""
    return _ENCODE(value)


def dump_texts(texts: Mapping[str, str | tuple[str, ...]]) -> str:
    """The same of a dict of texts and of lists of texts, at a quarter of the price."""
    return "{" + ",".join([f"{_QUOTE(name)}:{_dump_text(text)}" for name, text in texts.items()]) + "}"


def _dump_text(text: str | tuple[str, ...]) -> str:
    if isinstance(text, str):
        return _QUOTE(str(text))
    return "[" + ",".join([_QUOTE(str(part)) for part in text]) + "]"


def load_json(text: str) -> Any:
    """The inverse of :func:`dump_json`: ``json.loads`` for text without white space around it, at half its price.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        value, end = _SCAN(text, 0)
    except StopIteration as stopped:
        raise ValueError(f"there is no JSON at character {stopped.value}") from None
    if end != len(text):
        raise ValueError(f"there is more after the JSON, from character {end} on")
    return value
