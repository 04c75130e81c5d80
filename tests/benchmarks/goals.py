"""What twofold's speed is to be, at three sizes, and what a run says of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

__all__ = ["GOALS", "SIZES", "Goal"]

SIZES: Final = (10_000, 100_000, 1_000_000)
"""Records for which there are goals."""


class Goal(NamedTuple):
    """One line of the table."""

    what: str
    row: str
    """Of the report."""
    column: str
    is_least: bool
    """Whether the bound is the least that will do, or the most."""
    bounds: tuple[float | None, float | None, float | None]
    """By size; None: there is none."""

    def measured(self, rows: Mapping[str, Mapping[str, Any]]) -> float | None:
        """What a run found; None if it did not measure that."""
        value = rows.get(self.row, {}).get(self.column)
        return None if value is None else float(value)

    def bound(self, records: int) -> float | None:
        """The goal for so many records, if there is one."""
        return self.bounds[SIZES.index(records)] if records in SIZES else None

    def said(self, records: int) -> str:
        """The goal in a few signs, e.g. ``≥ 8``; a dash where there is none."""
        bound = self.bound(records)
        return "–" if bound is None else f"{'≥' if self.is_least else '≤'} {bound:,g}"

    def missed_by(self, value: float, records: int) -> float | None:
        """The share of the bound that is lacking or too much, 0 where the goal is met; None where there is none."""
        bound = self.bound(records)
        if bound is None or math.isnan(value):
            return None
        lacking = bound - value if self.is_least else value - bound
        return max(0.0, lacking / bound)


GOALS: Final = (
    Goal("hybrid against the plain pipeline, times faster", "plain pipeline", "hybrid is faster, times", True,
         (8, 25, 50)),
    Goal("hybrid against LangChain's EnsembleRetriever, times faster", "LangChain EnsembleRetriever",
         "hybrid is faster, times", True, (20, 80, None)),
    Goal("hybrid against LanceDB's hybrid, times faster", "LanceDB hybrid", "hybrid is faster, times", True,
         (8, 4, None)),
    Goal("keyword leg against FTS5 by `bm25()`, times faster", "FTS5 by bm25()", "keyword leg is faster, times", True,
         (12, 45, 110)),
    Goal("its 30 best bit-equal, share of the questions", "keyword leg", "bit-equal, share", True, (1, 1, 1)),
    Goal("vector leg against FAISS FlatIP, times faster", "FAISS FlatIP, one thread", "vector leg is faster, times",
         True, (1, 4, 4)),
    Goal("its recall@10", "vector leg", "recall@10", True, (0.99, 0.99, 0.99)),
    Goal("common words against rare ones, times as long", "hybrid, common words", "times as long as rare words", False,
         (3, 5, 10)),
    Goal("stop words alone against rare ones, times as long", "hybrid, stop words alone",
         "times as long as rare words", False, (3, 5, 10)),
    Goal("hybrid with nobody beside, median ms by the clock", "hybrid, nobody beside", "p50, ms", False,
         (1.2, 3.5, 25)),
    Goal("same hits as the exact scan, share of the top 10", "same hits as the exact scan", "of the top 10", True,
         (0.998, 0.99, 0.985)),
    Goal("filter of 1 %: recall@10", "hybrid, filter of 1 %", "recall@10", True, (1, 1, 1)),
    Goal("filter of 1 %, times as long as without", "hybrid, filter of 1 %", "times as long as without", False,
         (1, 0.5, 0.3)),
    Goal("open to first answer, s", "open to first answer", "with sidecars, s", False, (0.3, 1, 5)),
    Goal("resident memory over the bare process, MB", "memory, twofold", "MB", False, (60, 250, 1600)),
    Goal("touch of a search's hits, µs", "touch of a search's hits", "p50, µs", False, (5, 5, 5)),
    Goal("bulk add, records a second of the processor", "bulk add", "records/s of CPU", True, (10_000, 10_000, 10_000)),
    Goal("one add against a bare insert, times as long", "add, one by one", "times as long as bare", False, (2, 2, 2)),
)  # fmt: skip
"""All of them. Times are the processor's, of median questions, unless it says otherwise."""
