"""How long a new process takes from opening a store to its first answer: with what is saved beside the file, and
without.

``python -m tests.benchmarks.opening STORE COLLECTION`` is such a process.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before anything loads OpenMP

from tests.benchmarks.collection import Collection
from tests.benchmarks.stores import open_store, searching, settle

__all__ = ["opening"]


def opening(collection: Collection, path: Path, times: int) -> dict[str, dict[str, Any]]:
    """Medians of so many processes each; the file is in the system's cache, and importing is not counted."""
    known = [_first(path, collection) for _ in range(times)]
    anew = []
    for number in range(times):
        folder = path.parent / f"opened {number}"
        folder.mkdir()
        anew.append(_first(Path(shutil.copy(path, folder)), collection))
        shutil.rmtree(folder)
    return {
        "open to first answer": {
            "with sidecars, s": statistics.median(each["first"] for each in known),
            "with sidecars, s of CPU": statistics.median(each["cpu"] for each in known),
            "without, s": statistics.median(each["first"] for each in anew),
            "without, s of CPU": statistics.median(each["cpu"] for each in anew),
            "all indexes ready without, s": statistics.median(each["settled"] for each in anew),
            "first answer without": anew[0]["degradations"],
        }
    }


def _first(path: Path, collection: Collection) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.opening", str(path), str(collection.folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _main(path: Path, collection: Collection) -> None:
    started, cpu = perf_counter(), process_time()
    with open_store(path, collection) as store:
        result = searching(store, collection)(0)
        first, cpu = perf_counter() - started, process_time() - cpu
        if not result.hits:
            raise RuntimeError("the first search found nothing")
        settle(store, collection)
        settled = perf_counter() - started
    degradations = ", ".join(each.code.value for each in result.degradations) or "complete"
    print(json.dumps({"first": first, "cpu": cpu, "settled": settled, "degradations": degradations}))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Collection.load(Path(sys.argv[2])))
