"""A rival in a process and an environment of its own, which times itself.

``python -m tests.benchmarks.process NAME COLLECTION FOLDER`` is such a process. It says when it is ready; then it
answers each line of its input, the number of a question, with a line of JSON, and at the end what it holds in memory.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TextIO

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before anything loads OpenMP

from tests.benchmarks.collection import Collection
from tests.benchmarks.data import Corpus
from tests.benchmarks.measuring import Taken, resident, timed
from tests.benchmarks.peers import PEERS

__all__ = ["LeftOutError", "PeerProcess"]

_SLOWEST: Final = 5.0
"""Seconds that a question may take; a rival that needs longer would hold up all the others."""
_MEGABYTE: Final = 1_000_000


class LeftOutError(Exception):
    """Why a rival takes no part."""


class PeerProcess:
    """Started with the data in it; a contestant.

    Args:
        name: of the rival.
        collection: what it is to hold.
        folder: an empty one, for its files.
        python: the interpreter of the environment that it is installed in.
        patience: how many seconds it may take to be ready.

    Raises:
        LeftOutError: it is not installed, fails, or takes too long.
    """

    def __init__(self, name: str, collection: Collection, folder: Path, python: str, patience: float) -> None:
        self._log = folder.with_suffix(".log")
        command = [python, "-m", "tests.benchmarks.process", name, str(collection.folder), str(folder)]
        try:
            with self._log.open("w", encoding="utf-8") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8"
                )
        except OSError as error:
            raise LeftOutError(f"its Python cannot be started: {error}") from error
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            ready = self._next(patience)
            if "left out" in ready:
                raise LeftOutError(ready["left out"])
            self.about: dict[str, Any] = {"ready after, s": ready["ready"]}
            first = self(0)
            if first.wall > _SLOWEST:
                raise LeftOutError(f"it takes {first.wall:.1f} s for a question")
        except BaseException:
            self.close()
            raise

    def __call__(self, number: int) -> Taken:
        """See :data:`tests.benchmarks.measuring.Contestant`."""
        self._say(str(number))
        return Taken(**self._next(20 * _SLOWEST))

    def finish(self) -> None:
        """Ask what it holds in memory, which is then in ``about``; and end it."""
        self._say("end")
        self.about["memory, MB"] = self._next(20 * _SLOWEST)["resident"] / _MEGABYTE
        self.close()

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            raise LeftOutError(f"it ended: {self._last_words()}") from None

    def _next(self, patience: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=patience)
        except queue.Empty:
            raise LeftOutError(f"it gave no answer in {patience:.0f} s") from None
        if not line:
            raise LeftOutError(f"it ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "without a word"


def _main(name: str, collection: Collection, folder: Path, questions: TextIO, answers: TextIO) -> None:
    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    peer = PEERS[name]
    try:
        for module in peer.modules:
            importlib.import_module(module)
    except ImportError as error:
        say({"left out": f"not installed: {error}"})
        return
    texts = [text for text, _ in collection.pairs()]
    corpus = Corpus(texts, collection.vectors[:].copy(), collection.questions.mixed, collection.query_vectors)
    gc.collect()
    bare = resident()
    started = perf_counter()
    contestant = timed(*peer.build(corpus, folder))
    say({"ready": perf_counter() - started})
    for line in questions:
        if line.strip() == "end":
            gc.collect()
            say({"resident": resident() - bare})
            return
        say(contestant(int(line))._asdict())


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as own:
        os.dup2(2, 1)  # what a library prints is not an answer
        _main(sys.argv[1], Collection.load(Path(sys.argv[2])), Path(sys.argv[3]), sys.stdin, own)
