"""Made-up data that behaves like text and embeddings: Zipf words with real function words on top, clustered vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Corpus", "MadeUp", "ask_about", "make_corpus", "make_vectors", "question_vectors"]

FUNCTION_WORDS = (  # noqa: SIM905 - a list of 64 quoted words would read worse
    "the of and to a in is it you that he was for on are with as his they be at this have from or had by but what "
    "some we can out other were all there when up use your how said an each she which do their if will way about many"
).split()

BLOCK: Final = 10_000
"""How many records are made at a time: at 384 numbers a vector, some 50 MB."""

Floats: TypeAlias = npt.NDArray[np.float32]

_FUNCTION: Final = frozenset(FUNCTION_WORDS)
_FUNCTION_SHARES: Final = (1.0 / np.arange(1, len(FUNCTION_WORDS) + 1)) / sum(
    1.0 / rank for rank in range(1, len(FUNCTION_WORDS) + 1)
)
"""How often each stands in a question, by Zipf's law."""
_WORDS: Final = 30_000
_SHORTEST, _LONGEST = 20, 60
_TOPICAL: Final = 0.3
"""The share of a text's words that are its topic's."""
_OWN: Final = 0.4
"""The share of a question's words that are those of the record that it is about."""
_SPREAD: Final = 0.7
"""Of a topic's vectors around their centre: the deviation of each number, where that of a centre's is 1."""
_DRIFT: Final = 0.5
"""Of a question's vector from that of the record that it is about, on the same scale."""


@dataclass(frozen=True)
class Corpus:
    """Records and queries; a query is about one of the records."""

    texts: list[str]
    vectors: Floats
    queries: list[str]
    query_vectors: Floats


class MadeUp:
    """Records made up a block at a time, so that a million of them need not be in memory. The same for the same
    arguments, and each block by itself, whichever was made before.

    Args:
        records: how many.
        dimension: of the vectors, which are of unit length.
        seed: of all chance.
    """

    def __init__(self, records: int, dimension: int, seed: int = 7) -> None:
        chance = np.random.default_rng(seed)
        self._records, self._dimension, self._seed = records, dimension, seed
        self._words = [*FUNCTION_WORDS, *_invented_words(chance, _WORDS)]
        frequency = 1.0 / np.arange(1, len(self._words) + 1)  # Zipf's law
        self._cumulated = np.cumsum(frequency / frequency.sum())
        topics = max(20, records // 200)
        self._topic_words = chance.integers(len(FUNCTION_WORDS), len(self._words), (topics, 40))
        self._centres = chance.standard_normal((topics, dimension), dtype=np.float32)

    def blocks(self) -> Iterator[tuple[list[str], Floats]]:
        """Texts of 20 to 60 words and their vectors, up to ``BLOCK`` at a time."""
        for first in range(0, self._records, BLOCK):
            yield self._block(first // BLOCK, min(BLOCK, self._records - first))

    def _block(self, number: int, count: int) -> tuple[list[str], Floats]:
        chance = np.random.default_rng((self._seed, number))
        topics = chance.integers(0, len(self._centres), count)
        lengths = chance.integers(_SHORTEST, _LONGEST + 1, count)
        total = int(lengths.sum())
        drawn = np.searchsorted(self._cumulated, chance.random(total))
        drawn = np.minimum(drawn, len(self._words) - 1)  # the sum of all shares may be a little less than 1
        topical = self._topic_words[np.repeat(topics, lengths), chance.integers(0, self._topic_words.shape[1], total)]
        spoken = np.where(chance.random(total) < _TOPICAL, topical, drawn).tolist()
        words = [self._words[place] for place in spoken]
        ends = np.cumsum(lengths).tolist()
        texts = [" ".join(words[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
        vectors = self._centres[topics]
        vectors += np.float32(_SPREAD) * chance.standard_normal(vectors.shape, dtype=np.float32)
        return texts, _unit(vectors)


def make_corpus(records: int, dimension: int, queries: int, seed: int = 7) -> Corpus:
    """All of it in memory. The same for the same arguments.

    Args:
        records: how many.
        dimension: of the vectors, which are of unit length.
        queries: how many; each has 2 to 13 words, some of them function words.
        seed: of all chance.
    """
    blocks = list(MadeUp(records, dimension, seed).blocks())
    texts = [text for block, _ in blocks for text in block]
    vectors = np.concatenate([block for _, block in blocks])
    chance = np.random.default_rng((seed, records, queries))
    asked = chance.integers(0, records, queries)
    questions = [ask_about(texts[record], chance) for record in asked]
    return Corpus(texts, vectors, questions, question_vectors(vectors[asked], chance))


def ask_about(text: str, chance: np.random.Generator) -> str:
    """2 to 13 words in any order, as people ask: two in five are a text's own, the others function words, whether the
    text has them or not.
    """
    length = int(chance.integers(2, 14))
    own = [word for word in text.split() if word not in _FUNCTION] or text.split()
    count = min(len(own), max(1, round(_OWN * length)))
    words = [own[place] for place in chance.permutation(len(own))[:count]]
    words += chance.choice(FUNCTION_WORDS, length - count, p=_FUNCTION_SHARES).tolist()
    return " ".join(words[place] for place in chance.permutation(len(words)))


def question_vectors(about: Floats, chance: np.random.Generator) -> Floats:
    """Vectors of questions about the records that have the vectors ``about``; all are of unit length."""
    drift = _DRIFT / np.sqrt((1 + _SPREAD**2) * about.shape[1])  # a record's is as long as its centre and its noise
    return _unit(about + np.float32(drift) * chance.standard_normal(about.shape, dtype=np.float32))


def make_vectors(records: int, dimension: int, queries: int, seed: int = 7) -> tuple[Floats, Floats]:
    """Vectors and queries alone, as :func:`make_corpus` clusters them; quick for many records."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((max(20, records // 200), dimension)).astype(np.float32)
    noise = chance.standard_normal((records, dimension), dtype=np.float32)
    vectors = centres[chance.integers(0, len(centres), records)] + np.float32(_SPREAD) * noise
    asked = vectors[chance.integers(0, records, queries)]
    asked = asked + np.float32(_DRIFT) * chance.standard_normal((queries, dimension), dtype=np.float32)
    return _unit(vectors), _unit(asked)


def _unit(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: Floats = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _invented_words(chance: np.random.Generator, count: int) -> list[str]:
    """Different words of 2 to 5 syllables."""
    syllables = ["ka", "lo", "mi", "ren", "tos", "vel", "sha", "dri", "pon", "gar", "bez", "lin", "ful", "que", "wor"]
    words: dict[str, None] = {}
    while len(words) < count:
        lengths = chance.integers(2, 6, count).tolist()
        for places, length in zip(chance.integers(0, len(syllables), (count, 5)).tolist(), lengths, strict=True):
            words["".join(syllables[place] for place in places[:length])] = None
    return list(words)[:count]
