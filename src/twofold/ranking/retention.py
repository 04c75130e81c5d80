"""How much of a memory is left: the forgetting curve of Ebbinghaus, as a pure function of an age."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["DAY", "retention"]

DAY: Final = 86_400.0
"""Seconds; the default of ``half_life``."""


def retention(age_seconds: float, importance: float, strength: float, half_life: float = DAY) -> float:
    """The share of a record that is retained at an age: ``exp(-age / (half_life · importance · strength))``.

    After Ebbinghaus, *Über das Gedächtnis*, 1885. ``half_life`` is the name that memories know it by; to be exact, it
    is the age at which a record of importance 1 and strength 1 has faded to 1/e.

    Args:
        age_seconds: seconds since the record was last of use. A negative one, of a clock that was set back, counts
            as 0.
        importance: 0 to 1; 0 retains nothing.
        strength: above 0; 0 retains nothing.
        half_life: seconds, above 0. Default: a day.

    Returns:
        0 to 1, never NaN; 1 at age 0, and 0 at any age if the product of the last three is 0.
    """
    lasting = half_life * importance * strength
    if not lasting > 0.0:
        return 0.0
    age = max(0.0, age_seconds)  # in this order a NaN becomes 0
    if math.isinf(age):
        return 0.0
    return math.exp(-age / lasting)
