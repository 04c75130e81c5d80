"""FAISS, if it is there: loaded by name, only when an index needs it, and kept from spinning.

FAISS shares work among OpenMP threads that wait for each other actively, and how many is a setting of the calling
thread. Two threads of one process that search at once would take four times as long as one after the other, so every
call is made with a thread count of its own. The environment is never touched.
"""

from __future__ import annotations

import functools
import importlib
import os
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from twofold.errors import MissingExtraError
from twofold.vectors.protocol import Floats, Rows

__all__ = ["BUILD_THREADS", "FaissKernel", "bitmap_selector", "faiss_problem", "load_faiss", "threads"]

BUILD_THREADS: Final = 2
"""How many threads build a structure; a search has one."""


def load_faiss() -> ModuleType:
    """The library.

    Raises:
        MissingExtraError: it is not installed, or cannot be loaded on this machine.
    """
    return _loaded()[0]


@functools.cache
def _loaded() -> tuple[ModuleType, int]:
    """The library, and the process that loaded it."""
    try:
        return importlib.import_module("faiss"), os.getpid()
    except (ImportError, OSError) as error:  # OSError: a shared library that it needs
        raise MissingExtraError("faiss", extra="faiss") from error


def faiss_problem() -> str | None:
    """Why FAISS cannot be used; None if it can."""
    try:
        load_faiss()
    except MissingExtraError as error:
        return f"{error}; until then an exact scan stands in for it"
    return None


class threads:  # noqa: N801 - it reads as what is done
    """Let FAISS use so many threads for the calls that this thread makes; in a forked child always one, as the
    others of the pool do not live on in it (facebookresearch/faiss#5206).
    """

    __slots__ = ("_before", "_count")

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> None:
        faiss, loaded_by = _loaded()
        self._before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(self._count if os.getpid() == loaded_by else 1)

    def __exit__(self, *_: object) -> None:
        _loaded()[0].omp_set_num_threads(self._before)


def bitmap_selector(among: npt.NDArray[np.bool_], count: int) -> Any:
    """FAISS's word for some of its vectors.

    Args:
        among: by number, whether a vector counts; those behind do not.
        count: how many vectors there are.
    """
    # FAISS takes the length for bytes in some releases and for bits in others: room for all suits both.
    bits = np.zeros(count + 8, dtype=np.uint8)
    packed = np.packbits(among, bitorder="little")
    bits[: len(packed)] = packed
    faiss: Any = load_faiss()
    return faiss.IDSelectorBitmap(bits)


class FaissKernel:
    """The products of a float32 scan by FAISS's own loops: the same work as its flat index does, without a copy of
    the vectors, without threads, and for chosen rows alone as well.
    """

    gather_share: Final = 0.4

    def __init__(self) -> None:
        faiss: Any = load_faiss()
        self._pointer = faiss.swig_ptr
        self._all = faiss.fvec_inner_products_ny
        self._some = faiss.fvec_inner_products_by_idx

    def products(self, rows: Floats, unit: Floats) -> Floats:
        """See :class:`twofold.vectors.protocol.Kernel`."""
        count, dimension = rows.shape
        found = np.empty(count, dtype=np.float32)
        if count:
            pointer = self._pointer
            with threads(1):
                self._all(pointer(found), pointer(unit), pointer(rows), dimension, count)
        return found

    def products_at(self, rows: Floats, at: Rows, unit: Floats) -> Floats:
        """See :class:`twofold.vectors.protocol.Kernel`."""
        found = np.empty(len(at), dtype=np.float32)
        if len(at):
            pointer, wanted = self._pointer, np.ascontiguousarray(at, dtype=np.int64)
            dimension = rows.shape[1]
            with threads(1):  # it would share the work of a single query among threads
                self._some(pointer(found), pointer(unit), pointer(rows), pointer(wanted), dimension, 1, len(wanted))
        return found
