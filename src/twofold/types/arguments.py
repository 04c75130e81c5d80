"""What the arguments of calls are held to, before anything is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from twofold.errors import ConfigurationError

__all__ = ["checked_count", "checked_flag", "checked_items"]

_T = TypeVar("_T")


def checked_count(value: object, name: str, least: int = 0) -> int:
    """``value``, if it is a whole number of at least ``least``.

    Raises:
        ConfigurationError: it is something else, a bool too.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} is a whole number of at least {least}, not {value!r}")
    return value


def checked_flag(value: object, name: str) -> bool:
    """``value``, if it is True or False: of a text such as ``"no"`` Python would make a yes.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is True or False, not {value!r}")
    return value


def checked_items(value: Iterable[_T], name: str, example: str) -> list[_T]:
    """The items of a list, tuple, set or generator; a text is not taken for a list of its letters.

    Args:
        value: the argument.
        name: how the error calls it.
        example: what to write instead, e.g. ``"ids=['a', 'b']"``.

    Raises:
        ConfigurationError: it is a text, a dict, or nothing that has items.
    """
    if type(value) is tuple or type(value) is list:  # as nearly all are
        return list(value)
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} is a list, not a {type(value).__name__}: write {example}")
    return list(value)
