"""Vectors in an eighth of their size: codes of 4 bits a number, scanned by FAISS 32 at a time.

The codes only propose. How far a cosine can be from what they say is known, so who could be among the nearest, and who
could not, is known too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.vectors.coding import LEVELS, Coding, Losses, Question, levels_of
from twofold.vectors.faiss_library import bitmap_selector, load_faiss, threads
from twofold.vectors.gate import Gate
from twofold.vectors.protocol import Floats

__all__ = ["TOGETHER", "Codes", "Nodes", "Proposed"]

Nodes = npt.NDArray[np.int64]
"""Numbers of vectors, in the order they came."""

TOGETHER: Final = 32
"""How many codes FAISS interleaves; behind a smaller group nothing can be appended."""
_ALONE: Final = 11
"""FAISS's number for the scan that is quickest for one query; one in the midst of a call is not changed by it."""
_IN_COMPANY: Final = 13
"""And for several: they share what is read."""
_BLOCK: Final = 256
"""How many are coded at a time: so many take a few hundred KB."""


class Proposed(NamedTuple):
    """What the codes propose for a query."""

    nodes: Nodes
    """The one that seems nearest first."""
    products: npt.NDArray[np.float32]
    """With these, descending."""
    rest: float
    """The most that any other one's can be."""
    question: Question
    step: float
    """What a product counts in the cosine."""
    across: float
    """See :meth:`Coding.across`."""
    losses: Losses

    @property
    def most(self) -> float:
        """The most that the cosine of any other can be."""
        seems = self.rest * self.step + self.across
        share = 1.0 - self.losses.short if seems > 0 else 1.0 + self.losses.beyond
        return self.question.offset + seems / share

    def at_least(self, cosine: float, after: int) -> Nodes:
        """Those behind the first ``after`` whose cosine can be so large."""
        return self.nodes[after:][self.products[after:] >= self._least_product(cosine)]

    def expected(self, cosine: float) -> float:
        """About how many there are whose cosine can be so large, those included that were not fetched: as if behind the
        last there were as many more again for each further step down in which the last half of them came.
        """
        count = len(self.nodes)
        last, missing = self.rest, self._least_product(cosine)
        step = float(self.products[count // 2]) - last if count else 0.0
        return count * 2.0 ** min(64.0, (last - missing) / step) if step > 0 else math.inf

    def _least_product(self, cosine: float) -> float:
        own = cosine - self.question.offset
        share = 1.0 - self.losses.short if own > 0 else 1.0 + self.losses.beyond
        return (own * share - self.across) / self.step


class Codes:
    """Vectors of length 1 as codes. Safe to be searched by several threads while another adds: FAISS alone is not.

    Args:
        coding: how they are written.

    Raises:
        MissingExtraError: FAISS is not installed.
        RuntimeError: FAISS fails, or does not count right.
    """

    def __init__(self, coding: Coding) -> None:
        if not _counts_right(coding.dimension):
            raise RuntimeError("its sums of 4-bit codes are not right on this machine")
        self._coding = coding
        self._faiss = _packed(np.empty((0, coding.dimension), dtype=np.uint8))
        self._losses = Losses.none()
        self._across = 0.0
        self._gate = Gate()

    @classmethod
    def restored(cls, dimension: int, parts: Mapping[str, npt.NDArray[np.generic]]) -> Codes:
        """What :meth:`parts` gave.

        Raises:
            ValueError: they are of another dimension.
            RuntimeError: they are of another release of FAISS.
        """
        centre = parts["centre"].astype(np.float32, copy=False)
        if len(centre) != dimension:
            raise ValueError(f"codes of {len(centre)} numbers")
        count, spread, *rest = map(float, parts["numbers"].astype(np.float64))
        made = cls(Coding(centre, spread, int(parts["seed"][0])))
        made._faiss = load_faiss().deserialize_index(parts["codes"].astype(np.uint8, copy=False))
        made._faiss.invlists.resize(0, int(count))
        made._faiss.ntotal = int(count)
        made._losses = Losses(parts["lost_lengths"].astype(np.int64), *rest)
        made._across = made._losses.across(dimension)
        return made

    def parts(self, count: int) -> dict[str, npt.NDArray[np.generic]]:
        """The first ``count``, to be saved."""
        with self._gate.together():
            return {
                "codes": load_faiss().serialize_index(self._faiss),
                "centre": self._coding.centre,
                "seed": np.array([self._coding.seed], dtype=np.int64),
                "lost_lengths": self._losses.lengths,
                "numbers": np.array([count, self._coding.spread, *self._losses[1:]]),
            }

    @property
    def coding(self) -> Coding:
        """How vectors are written."""
        return self._coding

    @property
    def all_fit(self) -> bool:
        """Whether no vector is farther from the centre than the coding is made for: then it suits them."""
        return self._losses.farthest <= self._coding.reach

    @property
    def count(self) -> int:
        """How many vectors there are."""
        count: int = self._faiss.ntotal
        return count

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.count * (-(-self._coding.dimension // 2) + 8)

    def add(self, after: int, units: Floats) -> bool:
        """Append vectors of length 1 behind the first ``after``; False if somebody else has taken that place, or those
        are no whole groups of ``TOGETHER``.
        """
        with self._gate.alone():
            if self.count != after or after % TOGETHER:
                return False
            for start in range(0, len(units), _BLOCK):
                coded = self._coding.coded(units[start : start + _BLOCK])
                _append(self._faiss, _packed(coded.codes, self.count))
                self._losses = self._losses.and_of(coded.losses)
            self._across = self._losses.across(self._coding.dimension)
            return True

    def search(
        self, queries: Sequence[Floats], known: int, among: npt.NDArray[np.bool_] | None, limit: int
    ) -> list[Proposed]:
        """For each query the vectors whose codes are nearest to it.

        Args:
            queries: each of shape (dimension,), of any length above 0.
            known: how many vectors the caller knows of; those that came later do not count.
            among: by known number, whether a vector counts; None: all of them.
            limit: how many, at least 1.

        Returns:
            At most ``limit`` of them each.
        """
        asked = [self._coding.question(query) for query in queries]
        numbers = np.concatenate([each.numbers for each in asked]).reshape(len(asked), -1)
        with self._gate.together():
            if among is None and self.count > known:
                among = np.ones(known, dtype=np.bool_)
            products, nodes = _nearest(self._faiss, numbers, among, limit)
            losses, lost = self._losses, self._across
        return [self._proposed(*each, losses, lost) for each in zip(asked, nodes, products, strict=True)]

    def _proposed(self, question: Question, nodes: Nodes, products: Floats, losses: Losses, lost: float) -> Proposed:
        across = self._coding.across(lost, _grain(question.numbers))
        if nodes[-1] >= 0:
            return Proposed(nodes, products, float(products[-1]), question, self._coding.step, across, losses)
        # Behind, it is all -1: there are no more, but for those with the least product that there can be, whom FAISS
        # leaves out.
        there = int(np.count_nonzero(nodes >= 0))
        least = -(LEVELS - 1) / 2 * float(np.abs(question.numbers).sum())
        return Proposed(nodes[:there], products[:there], least, question, self._coding.step, across, losses)


@functools.cache
def _counts_right(width: int) -> bool:
    """Whether FAISS's sums of codes are what they should be, where they are largest and else: instructions that
    overflow would be wrong there.
    """
    chance = np.random.default_rng(width)
    codes = chance.integers(0, LEVELS, (3 * TOGETHER, width)).astype(np.uint8)
    codes[:2] = [[LEVELS - 1], [0]]
    numbers = np.stack([np.ones(width), chance.standard_normal(width)]).astype(np.float32)
    products, nodes = _nearest(_packed(codes), numbers, None, TOGETHER)
    truth = np.take_along_axis(numbers @ levels_of(codes).T, nodes, axis=1)
    roundings = np.array([[width / 2 * _grain(row)] for row in numbers])
    return bool((np.abs(products - truth) <= roundings + 1e-3).all())


def _grain(numbers: Floats) -> float:
    """To what FAISS rounds the products of each of these numbers with all levels: those of the largest number become
    0 to 255, unless their sums would then go beyond 16 bits.
    """
    amounts = np.abs(numbers)
    return (LEVELS - 1) * max(float(amounts.max()) / 255, float(amounts.sum()) / 65535)


def _nearest(
    index: Any, numbers: Floats, among: npt.NDArray[np.bool_] | None, limit: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Products and numbers of the codes with the largest products, by FAISS's own function, without what its wrapper in
    Python does around it.
    """
    faiss: Any = load_faiss()
    pointer = faiss.swig_ptr
    products = np.empty((len(numbers), limit), dtype=np.float32)
    nodes = np.empty((len(numbers), limit), dtype=np.int64)
    params = None
    if among is not None:
        params = faiss.SearchParametersIVF(nprobe=1, sel=bitmap_selector(among, index.ntotal))
    with threads(1):
        index.implem = _ALONE if len(numbers) == 1 else _IN_COMPANY
        index.search_c(len(numbers), pointer(numbers), limit, pointer(products), pointer(nodes), params)
    return products, nodes


def _packed(codes: npt.NDArray[np.uint8], first: int = 0) -> Any:
    """An index of these codes, which are numbered from ``first`` on. FAISS interleaves them itself where an index of
    plain codes becomes one for its fast scan; of all its fast indexes those with lists alone can be told which codes
    count, so it is one with a single list.
    """
    faiss: Any = load_faiss()
    count, width = codes.shape
    centre = faiss.IndexFlatIP(width)
    centre.add(np.zeros((1, width), dtype=np.float32))
    plain = faiss.IndexIVFPQ(centre, width, 1, width, 4, faiss.METRIC_INNER_PRODUCT)
    plain.by_residual = False
    levels = np.arange(LEVELS, dtype=np.float32) - np.float32((LEVELS - 1) / 2)
    faiss.copy_array_to_vector(np.tile(levels, width), plain.pq.centroids)
    plain.is_trained = True
    pairs = np.zeros((count, -(-width // 2)), dtype=np.uint8)
    pairs |= codes[:, 0::2]
    pairs[:, : width // 2] |= codes[:, 1::2] << 4
    numbers = np.arange(first, first + count)
    plain.invlists.add_entries(0, count, faiss.swig_ptr(numbers), faiss.swig_ptr(pairs))
    plain.ntotal = count
    made = faiss.IndexIVFPQFastScan(plain, TOGETHER)
    centre.this.disown()
    made.own_fields = True  # of the centre
    return made


def _append(index: Any, more: Any) -> None:
    """Put the codes of another index behind those of one that has whole groups. FAISS has a function for that, which
    copies one code at a time, and too many bytes if there are as many codes as a group has bytes.
    """
    faiss: Any = load_faiss()
    lists, others = faiss.downcast_InvertedLists(index.invlists), faiss.downcast_InvertedLists(more.invlists)
    before, after = index.ntotal, index.ntotal + more.ntotal
    lists.resize(0, after)
    start, stop = (-(-count // TOGETHER) * lists.block_size for count in (before, after))
    faiss.rev_swig_ptr(lists.get_codes(0), stop)[start:] = faiss.rev_swig_ptr(others.get_codes(0), stop - start)
    faiss.rev_swig_ptr(lists.get_ids(0), after)[before:] = faiss.rev_swig_ptr(others.get_ids(0), more.ntotal)
    index.ntotal = after
