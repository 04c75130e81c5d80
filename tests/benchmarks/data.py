"""Made-up data that behaves like text and embeddings: Zipf words with real function words on top, clustered vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Corpus", "make_corpus", "make_vectors"]

FUNCTION_WORDS = (  # noqa: SIM905 - a list of 64 quoted words would read worse
    "the of and to a in is it you that he was for on are with as his they be at this have from or had by but what "
    "some we can out other were all there when up use your how said an each she which do their if will way about many"
).split()


@dataclass(frozen=True)
class Corpus:
    """Records and queries; a query is about one of the records."""

    texts: list[str]
    vectors: npt.NDArray[np.float32]
    queries: list[str]
    query_vectors: npt.NDArray[np.float32]


def make_corpus(records: int, dimension: int, queries: int, seed: int = 7) -> Corpus:
    """The same for the same arguments.

    Args:
        records: how many.
        dimension: of the vectors, which are of unit length.
        queries: how many; each has 2 to 13 words, some of them function words.
        seed: of all chance.
    """
    chance = np.random.default_rng(seed)
    words = np.array([*FUNCTION_WORDS, *_invented_words(chance, 30_000)])
    frequency = 1.0 / np.arange(1, len(words) + 1)
    frequency /= frequency.sum()
    topics = max(20, records // 200)
    topic_words = chance.integers(len(FUNCTION_WORDS), len(words), (topics, 40))
    centres = chance.standard_normal((topics, dimension)).astype(np.float32)

    topic_of = chance.integers(0, topics, records)
    texts = []
    for topic in topic_of:
        length = int(chance.integers(20, 61))
        common = words[chance.choice(len(words), size=length, p=frequency)]
        topical = words[chance.choice(topic_words[topic], size=length)]
        texts.append(" ".join(np.where(chance.random(length) < 0.3, topical, common)))
    vectors = centres[topic_of] + 0.7 * chance.standard_normal((records, dimension)).astype(np.float32)

    asked = chance.integers(0, records, queries)
    questions = []
    for record in asked:
        mine = texts[record].split()
        length = int(chance.integers(2, 14))
        questions.append(" ".join(chance.choice(mine, size=min(length, len(mine)), replace=False)))
    query_vectors = vectors[asked] + 0.5 * chance.standard_normal((queries, dimension)).astype(np.float32)
    return Corpus(texts, _unit(vectors), questions, _unit(query_vectors))


def make_vectors(
    records: int, dimension: int, queries: int, seed: int = 7
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Vectors and queries alone, as :func:`make_corpus` clusters them; quick for many records."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((max(20, records // 200), dimension)).astype(np.float32)
    noise = chance.standard_normal((records, dimension), dtype=np.float32)
    vectors = centres[chance.integers(0, len(centres), records)] + np.float32(0.7) * noise
    asked = vectors[chance.integers(0, records, queries)]
    asked = asked + np.float32(0.5) * chance.standard_normal((queries, dimension), dtype=np.float32)
    return _unit(vectors), _unit(asked)


def _unit(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


def _invented_words(chance: np.random.Generator, count: int) -> list[str]:
    syllables = ["ka", "lo", "mi", "ren", "tos", "vel", "sha", "dri", "pon", "gar", "bez", "lin", "ful", "que", "wor"]
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(chance.choice(syllables, size=int(chance.integers(2, 6))))] = None
    return list(words)
