"""Taking times on a machine that is not quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from time import perf_counter

__all__ = ["interleaved"]


def interleaved(
    contestants: dict[str, Callable[[int], object]],
    numbers: Iterable[int],
    clock: Callable[[], float] = perf_counter,
) -> dict[str, list[float]]:
    """Seconds by ``clock`` that each contestant took for each query. They take turns in an order that is drawn anew for
    each round, so that what one does to the processor's caches hits all the others alike: if they only moved up by one,
    each would always come after the same other. The first query of each is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for ask in contestants.values():
        ask(0)
    names, chance = list(contestants), Random(7)
    for number in numbers:
        chance.shuffle(names)
        for name in names:
            started = clock()
            contestants[name](number)
            times[name].append(clock() - started)
    return times
