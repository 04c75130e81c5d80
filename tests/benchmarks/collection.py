"""Records and questions in plain files, so that every contestant, in whichever process, reads the same, a block at a
time. Needs numpy alone: rivals have an environment of their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from tests.benchmarks.data import BLOCK, Floats, MadeUp, ask_about, question_vectors

__all__ = ["Collection", "Questions", "best_cosines", "recall", "save", "save_made_up"]

Numbers: TypeAlias = npt.NDArray[np.int64]

_SEED: Final = 7
"""The number that all chance in here begins with."""
_TOLERANCE: Final = 1e-6
"""Cosines so near to each other count as equal: contestants add up in different orders."""


@dataclass(frozen=True)
class Questions:
    """Several ways to ask; the nth of each comes with the same vector."""

    mixed: list[str]
    """About a record: some of its own words, and function words."""
    common: list[str]
    """Eight words, all among the 200 that the most records hold."""
    function: list[str]
    """Six words, all among the 20 that the most records hold: stop words."""
    rare: list[str]
    """Four words, each held by 5 records in 10,000 at most."""


@dataclass(frozen=True)
class Collection:
    """What :func:`save` wrote."""

    folder: Path
    name: str
    """What the data are, in a few words."""
    records: int
    dimension: int
    questions: Questions

    @classmethod
    def load(cls, folder: Path) -> Collection:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        return cls(folder, about["name"], about["records"], about["dimension"], Questions(**about["questions"]))

    @property
    def vectors(self) -> Floats:
        """All vectors, of unit length, shape (records, dimension): a window on the file."""
        shape = (self.records, self.dimension)
        return np.memmap(self.folder / "vectors.f32", dtype=np.float32, mode="r", shape=shape)

    @property
    def query_vectors(self) -> Floats:
        """Those of the questions, of unit length."""
        return np.fromfile(self.folder / "questions.f32", dtype=np.float32).reshape(-1, self.dimension)

    def blocks(self) -> Iterator[tuple[list[str], Floats]]:
        """Texts and vectors in order, up to 10,000 at a time."""
        with (
            (self.folder / "texts.jsonl").open(encoding="utf-8") as texts,
            (self.folder / "vectors.f32").open("rb") as vectors,
        ):
            for first in range(0, self.records, BLOCK):
                count = min(BLOCK, self.records - first)
                block = np.fromfile(vectors, dtype=np.float32, count=count * self.dimension)
                yield [json.loads(next(texts)) for _ in range(count)], block.reshape(count, self.dimension)

    def pairs(self) -> Iterator[tuple[str, Floats]]:
        """Each text with its vector, in order."""
        for texts, vectors in self.blocks():
            yield from zip(texts, vectors, strict=True)


def save_made_up(folder: Path, records: int, dimension: int, queries: int) -> Collection:
    """The data of :mod:`tests.benchmarks.data`, and questions about them."""
    chance = np.random.default_rng((_SEED, records, queries))
    asked = chance.integers(0, records, queries)
    texts: dict[int, str] = {}

    def blocks() -> Iterator[tuple[list[str], Floats]]:
        first = 0
        for block, vectors in MadeUp(records, dimension).blocks():
            texts.update({place: block[place - first] for place in asked.tolist() if 0 <= place - first < len(block)})
            first += len(block)
            yield block, vectors

    common_words = _write(folder, blocks())
    vectors = np.memmap(folder / "vectors.f32", dtype=np.float32, mode="r", shape=(records, dimension))[asked]
    mixed = [ask_about(texts[place], chance) for place in asked.tolist()]
    return _finish(folder, "made up", records, mixed, question_vectors(vectors, chance), common_words)


def save(
    folder: Path, name: str, records: Iterable[tuple[list[str], Floats]], questions: list[str], vectors: Floats
) -> Collection:
    """Write a collection.

    Args:
        folder: is there, and empty.
        name: what the data are, in a few words.
        records: texts and vectors of unit length, a block at a time.
        questions: what is asked; the words of the other kinds of question are drawn from the texts.
        vectors: of the questions, of unit length.
    """
    words = _write(folder, records)
    count = (folder / "vectors.f32").stat().st_size // (4 * vectors.shape[1])
    return _finish(folder, name, count, questions, vectors, words)


def best_cosines(collection: Collection, k: int, among: Numbers | None = None) -> npt.NDArray[np.float32]:
    """The cosine of each question's ``k`` nearest, descending, by comparing it with every vector.

    Args:
        collection: what is asked.
        k: how many neighbours, at least 1; fewer if there are fewer records.
        among: the numbers of the records that count, ascending. Default: all.
    """
    asked = collection.query_vectors
    best = np.empty((len(asked), 0), dtype=np.float32)
    first = 0
    for _, vectors in collection.blocks():
        last = first + len(vectors)
        own = vectors if among is None else vectors[among[(among >= first) & (among < last)] - first]
        best = -np.sort(-np.concatenate([best, asked @ own.T], axis=1), axis=1)[:, :k]
        first = last
    return best


def recall(collection: Collection, found: dict[int, list[int]], best: npt.NDArray[np.float32]) -> float:
    """The share of the nearest that were found, 0 to 1; what is as near as the last of them is as good.

    Args:
        collection: what was asked.
        found: by question, the numbers of the records that were found.
        best: see :func:`best_cosines`.
    """
    vectors, asked, k = collection.vectors, collection.query_vectors, int(best.shape[1])
    good = 0
    for number, records in found.items():
        cosines = vectors[list(dict.fromkeys(records))[:k]] @ asked[number]
        good += int(np.count_nonzero(cosines >= best[number, -1] - _TOLERANCE))
    return good / (k * len(found))


def _write(folder: Path, blocks: Iterable[tuple[list[str], Floats]]) -> list[tuple[str, int]]:
    """Write texts and vectors; gives the words of the first block, those of the most texts first, with how many that
    is.
    """
    counted: Counter[str] | None = None
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as texts, (folder / "vectors.f32").open("wb") as vectors:
        for block, numbers in blocks:
            texts.writelines(json.dumps(text) + "\n" for text in block)
            np.ascontiguousarray(numbers, dtype=np.float32).tofile(vectors)
            if counted is None:
                counted = Counter(word for text in block for word in set(text.lower().split()) if word.isalpha())
    return [] if counted is None else counted.most_common()


def _finish(
    folder: Path, name: str, records: int, mixed: list[str], vectors: Floats, words: list[tuple[str, int]]
) -> Collection:
    np.ascontiguousarray(vectors, dtype=np.float32).tofile(folder / "questions.f32")
    chance = np.random.default_rng(_SEED)
    frequent = [word for word, _ in words]
    seen = min(records, BLOCK)
    few = [word for word, count in words if count <= max(1, seen // 2000)] or frequent[-20:]

    def drawn(among: list[str], length: int) -> list[str]:
        return [" ".join(chance.choice(among, min(length, len(among)), replace=False)) for _ in mixed]

    questions = Questions(mixed, drawn(frequent[:200], 8), drawn(frequent[:20], 6), drawn(few, 4))
    about: dict[str, Any] = {"name": name, "records": records, "dimension": int(vectors.shape[1])}
    (folder / "about.json").write_text(json.dumps({**about, "questions": asdict(questions)}), encoding="utf-8")
    return Collection.load(folder)
