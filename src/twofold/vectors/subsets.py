"""Codes of few records, made for the callers who see but these."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.vectors.codes import Codes
from twofold.vectors.protocol import Keys

__all__ = ["Searched", "Subsets"]

_KEPT: Final = 8
"""How many times such codes are kept."""


class Searched(NamedTuple):
    """What a search looks through."""

    codes: Codes
    keys: Keys
    """By code, its record."""
    among: npt.NDArray[np.bool_] | None = None
    """By code, whether it counts; None: all do."""

    @property
    def size(self) -> int:
        """How many count."""
        return len(self.keys) if self.among is None else int(np.count_nonzero(self.among))

    @property
    def visible_keys(self) -> Keys:
        """The records of those."""
        return self.keys if self.among is None else self.keys[self.among]


class Subsets:
    """Codes of few records each, for the callers that asked last; each is known by its own list of keys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[weakref.ref[Keys], Searched]] = OrderedDict()  # the last used last

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        with self._lock:
            return sum(each.codes.nbytes + each.keys.nbytes for _, each in self._kept.values())

    def of(self, visible_keys: Keys, make: Callable[[Keys], Searched]) -> Searched:
        """Those of these records, from before or made now."""
        with self._lock:
            kept = self._kept.get(id(visible_keys))
            if kept is not None and kept[0]() is visible_keys:
                self._kept.move_to_end(id(visible_keys))
                return kept[1]
        made = make(visible_keys)
        with self._lock:
            self._kept[id(visible_keys)] = weakref.ref(visible_keys), made
            self._kept.move_to_end(id(visible_keys))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made
