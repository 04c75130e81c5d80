"""Real text: the docstrings of Python's standard library, with vectors of the small model that the extra ``local``
brings. Some 5,500 records, and no more: repeating them would make every other hit a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.benchmarks.collection import Collection, save
from tests.benchmarks.data import BLOCK, Floats

from twofold.cli.corpus import standard_library
from twofold.embedders import LocalEmbedder

__all__ = ["save_real"]


def save_real(folder: Path, most: int, queries: int) -> Collection:
    """The docstrings, in an order drawn once, and the first lines of some of them as questions.

    Args:
        folder: is there, and empty.
        most: how many records are wanted; there may be fewer.
        queries: how many questions.
    """
    chance = np.random.default_rng(7)
    texts = [record.text for record in standard_library() if record.text]
    texts = [texts[place] for place in chance.permutation(len(texts))[:most]]
    embedder = LocalEmbedder()

    def blocks() -> Iterator[tuple[list[str], Floats]]:
        for first in range(0, len(texts), BLOCK):
            yield texts[first : first + BLOCK], embedder.embed(texts[first : first + BLOCK], "document")

    summaries = [line for text in texts if len((line := _summary(text)).split()) > 2]
    questions = [summaries[place] for place in chance.integers(0, len(summaries), queries)]
    return save(folder, "the standard library", blocks(), questions, embedder.embed(questions, "query"))


def _summary(text: str) -> str:
    """The first line of the docstring, behind the name and signature that head the text."""
    _, _, doc = text.partition("\n\n")
    return doc.strip().partition("\n")[0]
