"""Where keys are among those that are kept, with and without gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.backends.sqlite.visible_keys import places_in

small = st.integers(1, 60)


def ascending(keys: set[int], dtype: type[np.integer]) -> np.ndarray:
    return np.array(sorted(keys), dtype=dtype)


@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
@given(
    kept=st.one_of(
        st.sets(small, min_size=1), st.tuples(small, small).map(lambda ends: {*range(min(ends), max(ends) + 1)})
    ),
    sought=st.lists(small, max_size=20),
)
def test_what_is_there_is_found_and_nothing_else(dtype: type[np.integer], kept: set[int], sought: list[int]) -> None:
    keys = ascending(kept, dtype)
    places = places_in(keys, np.array(sought, dtype=dtype))
    found = keys.take(places, mode="clip") == np.array(sought, dtype=dtype)
    assert found.tolist() == [key in kept for key in sought]
    listed = keys.tolist()
    assert [listed[place] for place in places[found].tolist()] == [key for key in sought if key in kept]


def test_among_nothing_nothing_is_looked_for() -> None:
    nothing = np.empty(0, dtype=np.int64)
    assert places_in(nothing, nothing).tolist() == []
