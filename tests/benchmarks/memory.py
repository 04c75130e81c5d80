"""What a process of its own holds in memory that searches, over what it held with all libraries loaded.

``python -m tests.benchmarks.memory WHAT FILE COLLECTION`` is such a process; WHAT is ``twofold`` or ``pipeline``.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before anything loads OpenMP

from tests.benchmarks.collection import Collection
from tests.benchmarks.measuring import resident
from tests.benchmarks.pipeline import PlainPipeline
from tests.benchmarks.stores import open_store, searching, settle

__all__ = ["memory"]

_MEGABYTE = 1_000_000


def memory(collection: Collection, path: Path) -> dict[str, dict[str, Any]]:
    """Megabytes that the store takes, and the plain pipeline over its file ``plain.db`` beside it, once each has
    answered all questions.
    """
    rows = {}
    for name, what, file in (("twofold", "twofold", path), ("plain pipeline", "pipeline", path.with_name("plain.db"))):
        command = [sys.executable, "-m", "tests.benchmarks.memory", what, str(file), str(collection.folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows[f"memory, {name}"] = json.loads(done.stdout)
    return rows


def _main(what: str, path: Path, collection: Collection) -> None:
    if importlib.util.find_spec("faiss") is not None:
        importlib.import_module("faiss")
    questions, vectors = collection.questions.mixed, collection.query_vectors
    bare = resident()
    ask: Callable[[int], object]
    opened: AbstractContextManager[Any]
    if what == "twofold":
        opened = store = open_store(path, collection)
        settle(store, collection)
        ask = searching(store, collection)
    else:
        pipeline = PlainPipeline(collection, path)
        opened = closing(pipeline)
        ask = lambda number: pipeline.search(questions[number], vectors[number])  # noqa: E731
    with opened:
        for number in range(len(questions)):
            ask(number)
        gc.collect()
        print(json.dumps({"MB": (resident() - bare) / _MEGABYTE, "bare process, MB": bare / _MEGABYTE}))


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), Collection.load(Path(sys.argv[3])))
