"""One question's time, by the wall and by the processor, and what it was answered with; and a process's memory.

Needs numpy alone: rivals have an environment of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from tests.benchmarks.timing import interleaved

__all__ = ["Contestant", "Taken", "in_turns", "resident", "row", "timed", "times_faster", "times_sooner"]

Answer = TypeVar("Answer")


class Taken(NamedTuple):
    """What one question cost."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of the processor, of all threads of the process together."""
    found: list[int]
    """The numbers of the records found, best first."""


Contestant: TypeAlias = Callable[[int], Taken]
"""Answers the question of a number."""


def timed(ask: Callable[[int], Answer], numbers_of: Callable[[Answer], list[int]]) -> Contestant:
    """A contestant in this process. ``numbers_of``, which tells the records of an answer, is not timed."""

    def answer(number: int) -> Taken:
        wall, cpu = perf_counter(), process_time()
        found = ask(number)
        cpu, wall = process_time() - cpu, perf_counter() - wall
        return Taken(wall, cpu, numbers_of(found))

    return answer


def in_turns(contestants: dict[str, Contestant], questions: int, at_a_turn: int = 1) -> dict[str, list[Taken]]:
    """What each contestant took for each question, as :func:`tests.benchmarks.timing.interleaved` has them take turns.
    Before that each has a turn that is not counted.

    Args:
        contestants: by name.
        questions: how many are answered, the first of them.
        at_a_turn: how many a contestant answers before it is the next one's turn.
    """
    taken: dict[str, list[Taken]] = {name: [] for name in contestants}

    def noting(name: str, ask: Contestant) -> Callable[[int], object]:
        return lambda first: taken[name].extend(map(ask, range(first, min(first + at_a_turn, questions))))

    turns = range(0, questions, at_a_turn)
    interleaved({name: noting(name, ask) for name, ask in contestants.items()}, turns)
    return {name: each[min(at_a_turn, questions) :] for name, each in taken.items()}


def row(taken: list[Taken], **more: Any) -> dict[str, Any]:
    """A row of the report: medians and 95 % quantiles in milliseconds, and what else is known."""
    wall, cpu = np.array([(each.wall, each.cpu) for each in taken]).T * 1000
    return {
        "p50, ms": float(np.median(wall)),
        "p95, ms": float(np.quantile(wall, 0.95)),
        "CPU p50, ms": float(np.median(cpu)),
        "CPU p95, ms": float(np.quantile(cpu, 0.95)),
        **more,
    }


def times_faster(slow: list[Taken], fast: list[Taken]) -> float:
    """How many times as much of the processor the median question of one costs as that of another."""
    return float(np.median([each.cpu for each in slow]) / np.median([each.cpu for each in fast]))


def times_sooner(slow: list[Taken], fast: list[Taken]) -> float:
    """The same by the clock."""
    return float(np.median([each.wall for each in slow]) / np.median([each.wall for each in fast]))


def resident() -> int:
    """Bytes of this process that are in memory now; the most that ever were, where the system does not tell."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # not on Windows

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
