"""How far ``balanced`` holds on queries that its constants were not chosen on: ``python -m tests.quality.held_out``,
from the top of the repository.

Its two free constants, the vector leg's share and how coverage acts, are chosen from a small grid by the mean
nDCG@10 over the sets, and judged where they were not chosen:

* **two halves**: the queries of each set are split in two by a hash of their ids; chosen on one, judged on the other,
  both ways;
* **a set left out**: chosen on all sets but one, judged on that one.

The legs are asked once a query, as ``balanced`` asks them; the grid is fused from what they found. A set must reach the
better of its own legs, less 0.005: that of the two legs which is better on what is judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from unittest import mock

import ir_measures
import numpy as np
import numpy.typing as npt
from ir_measures import ScoredDoc, nDCG
from tests.quality.presets import DATA, SETS, Measured

from twofold import PRESETS
from twofold.ranking import KEYWORD, VECTOR, Calibrated, Found, ReciprocalRank
from twofold.search import order

Floats: TypeAlias = npt.NDArray[np.float64]

TOLERANCE: Final = 0.005
"""How far below the better leg a set may be."""
GAIN: Final = 0.03
"""How far above reciprocal rank fusion the mean must be."""
SHARES: Final = (0.4, 0.5, 0.6, 0.7, 0.8)
"""The vector leg's."""
ACTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "not at all": lambda coverage: 1.0,
    "its root": lambda coverage: coverage**0.5,
    "as it is": lambda coverage: coverage,
    "squared": lambda coverage: coverage**2,
}
"""What the keyword part is multiplied with."""


class Choice(NamedTuple):
    """One point of the grid."""

    share: float
    action: str


GRID: Final = [Choice(share, action) for share in SHARES for action in ACTIONS]
AS_IS: Final = Choice(0.6, "as it is")
"""What ``balanced`` is."""


@dataclass(frozen=True)
class Asked:
    """What one query found, before fusion."""

    query: str
    legs: Mapping[str, Found]
    background: float
    coverage: float


@dataclass(frozen=True)
class Judged:
    """One set: nDCG@10 of each query, shape (queries,), by what ranked it."""

    first_half: npt.NDArray[np.bool_]
    legs: Mapping[str, Floats]
    rrf: Floats
    grid: Mapping[Choice, Floats]

    def better_leg(self, among: npt.NDArray[np.bool_]) -> float:
        return max(float(values[among].mean()) for values in self.legs.values())


class _Noting(Calibrated):
    """The fusion of ``balanced``, that notes what it was given."""

    __slots__ = ()
    noted: list[tuple[Mapping[str, Found], float, float]] = []  # noqa: RUF012 - one run at a time

    def fuse(self, legs: Mapping[str, Found]) -> dict[int, float]:
        self.noted.append(({name: list(found) for name, found in legs.items()}, self.background, self.coverage))
        return super().fuse(legs)


def judge(measured: Measured, pool: int = PRESETS["balanced"].pool) -> Judged:
    """Ask every query once, and judge all of the grid."""
    asked: list[Asked] = []
    with mock.patch.object(order, "Calibrated", _Noting):
        for query, vector in measured.queries:
            _Noting.noted.clear()
            measured.search(query, vector, PRESETS["balanced"])
            ((legs, background, coverage),) = _Noting.noted
            asked.append(Asked(query["_id"], legs, background, coverage))
    keys = {key for each in asked for found in each.legs.values() for key, _ in found}
    with measured.store._backend.read() as reader:  # keys are known by their ids nowhere else
        identities = reader.identities(sorted(keys))

    def ndcg(score: Callable[[Asked], Mapping[int, float]]) -> Floats:
        run = []
        for each in asked:
            scores = score(each)
            best = sorted(scores, key=lambda key: -scores[key])
            tied = [key for key in best if scores[key] >= scores[best[min(9, len(best) - 1)]]]
            tied.sort(key=lambda key: (-scores[key], identities[key].order))
            run += [ScoredDoc(each.query, identities[key].id, -place) for place, key in enumerate(tied[:10])]
        values = {each.query_id: each.value for each in ir_measures.iter_calc([nDCG @ 10], measured.qrels, run)}
        return np.array([values.get(each.query, 0.0) for each in asked])

    def alone(leg: str) -> Floats:
        return ndcg(lambda each: dict(each.legs.get(leg, ())))

    def pooled(each: Asked) -> dict[str, Found]:  # plain RRF does not see what a leg was rescored with
        return {name: found[:pool] for name, found in each.legs.items()}

    def calibrated(choice: Choice) -> Floats:
        shares = {KEYWORD: 1.0 - choice.share, VECTOR: choice.share}
        act = ACTIONS[choice.action]
        return ndcg(lambda each: Calibrated(shares, each.background, act(each.coverage)).fuse(each.legs))

    return Judged(
        np.array([zlib.crc32(each.query.encode()) % 2 == 0 for each in asked]),
        {leg: alone(leg) for leg in (KEYWORD, VECTOR)},
        ndcg(lambda each: ReciprocalRank({KEYWORD: 1.0, VECTOR: 1.0}).fuse(pooled(each))),
        {choice: calibrated(choice) for choice in GRID},
    )


def chosen(parts: Sequence[Mapping[Choice, float]]) -> Choice:
    """The best of the grid by the mean of these; of equals, the first."""
    return max(GRID, key=lambda choice: float(np.mean([part[choice] for part in parts])))


def _means(judged: Judged, among: npt.NDArray[np.bool_]) -> dict[Choice, float]:
    return {choice: float(values[among].mean()) for choice, values in judged.grid.items()}


def _say(choice: Choice) -> str:
    return f"{choice.share:g} vector, coverage {choice.action}"


def _row(name: str, *values: float) -> None:
    print(f"| {name} | {' | '.join(f'{value:.4f}' for value in values)} |")


def two_halves(sets: Mapping[str, Judged]) -> bool:
    """Print what is chosen on one half, judged on the other, a row a set; whether the gate holds."""
    rows: dict[str, list[list[float]]] = {name: [] for name in sets}
    for first in (True, False):
        picked = chosen([_means(each, each.first_half == first) for each in sets.values()])
        print(f"chosen on half {1 if first else 2}: {_say(picked)}")
        for name, each in sets.items():
            rest = each.first_half != first
            balanced = float(each.grid[picked][rest].mean())
            rows[name].append([each.better_leg(rest), float(each.rrf[rest].mean()), balanced])
    print("\n| set | better leg | rrf | held out | held out - better leg |\n|---|---|---|---|---|")
    means = {name: np.mean(halves, axis=0) for name, halves in rows.items()}
    for name, (leg, rrf, balanced) in means.items():
        _row(name, leg, rrf, balanced, balanced - leg)
    leg, rrf, balanced = np.mean(list(means.values()), axis=0)
    _row("mean", leg, rrf, balanced, balanced - leg)
    worst = min(float(mean[2] - mean[0]) for mean in means.values())
    print(f"\nworst against the better leg {worst:+.4f}; mean against rrf {balanced - rrf:+.4f}")
    return worst >= -TOLERANCE and float(balanced - rrf) >= GAIN


def a_set_left_out(sets: Mapping[str, Judged]) -> None:
    """Print what is chosen on all the other sets, judged on each; the share chosen too, and at 0.6."""
    print("\n| set left out | better leg | chosen on the others | held out | less leg | the same at 0.6 | held out "
          "| less leg |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, each in sets.items():
        everything = np.ones_like(each.first_half)
        others = [_means(other, np.ones_like(other.first_half)) for key, other in sets.items() if key != name]
        leg, cells = each.better_leg(everything), []
        at_share = [{c: value if c.share == AS_IS.share else -1.0 for c, value in part.items()} for part in others]
        for parts in (others, at_share):
            picked = chosen(parts)
            found = float(each.grid[picked].mean())
            cells += [_say(picked), f"{found:.4f}", f"{found - leg:+.4f}"]
        print(f"| {name} | {leg:.4f} | {' | '.join(cells)} |")


def whole_grid(sets: Mapping[str, Judged]) -> None:
    """Print the mean of each point of the grid over all queries, and the worst set against its better leg."""
    print("\n| vector share | coverage | mean | worst set | less its better leg |\n|---|---|---|---|---|")
    for choice in GRID:
        means = {name: float(each.grid[choice].mean()) for name, each in sets.items()}
        less = {name: means[name] - each.better_leg(np.ones_like(each.first_half)) for name, each in sets.items()}
        worst = min(less, key=less.__getitem__)
        mean = float(np.mean(list(means.values())))
        print(f"| {choice.share:g} | {choice.action} | {mean:.4f} | {worst} | {less[worst]:+.4f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description="nDCG@10 of balanced where its constants were not chosen.")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--most", type=int, default=None, help="so many queries of each set only")
    asked: Any = parser.parse_args()
    sets: dict[str, Judged] = {}
    for name in asked.sets:
        if not (DATA / SETS[name].folder).is_dir():
            print(f"{name} is left out: it is not in {DATA}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            measured = Measured(SETS[name], Path(folder) / "judged.db", most=asked.most)
            with measured.store:
                sets[name] = judge(measured)
        print(f"{name}: as it is {sets[name].grid[AS_IS].mean():.4f}", file=sys.stderr, flush=True)
    if not sets:
        return 1
    holds = two_halves(sets)
    a_set_left_out(sets)
    whole_grid(sets)
    print(f"\nthe gate {'holds' if holds else 'does not hold'} on the halves held out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
