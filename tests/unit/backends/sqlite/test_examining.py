"""Which vectors a backend looks at before it stores them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twofold.backends.protocol import VectorWrite
from twofold.backends.sqlite.examining import all_sound


def write(*rows: list[float], sound: bool = False) -> VectorWrite:
    return VectorWrite("hash", {"text": np.array(rows, dtype=np.float32)}, sound)


@pytest.mark.parametrize("bad", [[math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0]])
def test_each_number_is_looked_at_unless_it_was_before(bad: list[float]) -> None:
    assert all_sound([write([1.0, 2.0]), None, write([3.0, 4.0], [5.0, 6.0])], 2)
    assert not all_sound([write([1.0, 2.0]), write([3.0, 4.0], bad)], 2)
    assert all_sound([write([1.0, 2.0], sound=True), write([3.0, 4.0])], 2)
    assert not all_sound([write([1.0, 2.0], sound=True), write(bad)], 2)


@pytest.mark.parametrize("sound", [False, True])
def test_the_shape_is_always_looked_at(sound: bool) -> None:
    assert all_sound([write([1.0, 2.0], sound=sound)], 2)
    assert not all_sound([write([1.0, 2.0], sound=sound)], 3)
    assert not all_sound([VectorWrite("hash", {"text": np.empty((0, 2), dtype=np.float32)}, sound)], 2)
    assert not all_sound([VectorWrite("hash", {"text": np.ones(2, dtype=np.float32)}, sound)], 2)
    assert not all_sound([VectorWrite("hash", {"text": np.ones((1, 2))}, sound)], 2)
    assert all_sound([], 2)
