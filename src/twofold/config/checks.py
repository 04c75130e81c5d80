"""What the values of settings are checked with."""

from __future__ import annotations

import math

from twofold.errors import ConfigurationError

__all__ = ["number", "one_of", "whole"]


def number(name: str, value: object, least: float, most: float) -> None:
    """``value`` is a finite number within its limits.

    Raises:
        ConfigurationError: it is not; the message names the setting.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise ConfigurationError(f"{name} is a finite number, not {value!r}")
    if not least <= value <= most:
        limits = f"from {least:g} to {most:g}" if math.isfinite(most) else f"at least {least:g}"
        raise ConfigurationError(f"{name} is {limits}, not {value!r}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float is large enough for
        return False


def whole(name: str, value: object, *, least: int, most: int | None = None) -> None:
    """``value`` is a whole number within its limits; errors as for :func:`number`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigurationError(f"{name} is a whole number {limits}, not {value!r}")


def one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """``value`` is one of ``choices``; errors as for :func:`number`."""
    if value not in choices:
        raise ConfigurationError(f"{name} is one of {', '.join(choices)}, not {value!r}")
