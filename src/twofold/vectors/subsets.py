"""The vectors of few records in memory, for the callers who see but these."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from twofold.vectors.flat import FlatIndex
from twofold.vectors.protocol import Keys

__all__ = ["Subsets"]

_KEPT_BYTES: Final = 64 * 1024 * 1024
"""How much memory they may take together."""


class Subsets:
    """Indexes of few records each, for the callers that asked last; each is known by its own list of keys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[weakref.ref[Keys], FlatIndex]] = OrderedDict()  # the last used last

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        with self._lock:
            return sum(index.nbytes for _, index in self._kept.values())

    def of(self, visible_keys: Keys, make: Callable[[Keys], FlatIndex]) -> FlatIndex:
        """That of these records, from before or made now."""
        with self._lock:
            kept = self._kept.get(id(visible_keys))
            if kept is not None and kept[0]() is visible_keys:
                self._kept.move_to_end(id(visible_keys))
                return kept[1]
        made = make(visible_keys)
        with self._lock:
            self._kept[id(visible_keys)] = weakref.ref(visible_keys), made
            self._kept.move_to_end(id(visible_keys))
            left = sum(index.nbytes for _, index in self._kept.values())
            while left > _KEPT_BYTES:
                left -= self._kept.popitem(last=False)[1][1].nbytes
        return made
