"""All words of a corpus in arrays: what goes in comes out, whatever the pieces, and in few bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.postings import IndexBuilder, WordIndex, contributions, length_norms
from twofold.postings.vocabulary import Vocabulary

corpora = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.dictionaries(st.integers(1, 50), st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=20),
    max_size=12,
)


def ascending(corpus: dict[str, Any]) -> list[str]:
    return sorted(corpus, key=str.encode)


def built(corpus: dict[str, dict[int, float]], keys: list[int], piece: int = 100) -> WordIndex:
    """An index made of some words at a time; each record is as long as its key says."""
    lengths = np.array(keys, dtype=np.uint32)
    builder = IndexBuilder(np.array(keys, dtype=np.int64), lengths)
    words = ascending(corpus)
    for start in range(0, len(words), piece):
        own = words[start : start + piece]
        holders = [sorted(corpus[word].items()) for word in own]
        flat = [pair for each in holders for pair in each]
        builder.add(
            own,
            np.cumsum([len(each) for each in holders]),
            np.array([key for key, _ in flat], dtype=np.int64),
            np.array([times for _, times in flat], dtype=np.float64),
        )
    return builder.finish()


def read(index: WordIndex, word: str) -> dict[int, float]:
    """Who holds a word, and what it gains there to the last bit."""
    postings = index.of(word)
    if postings is None:
        return {}
    norms = length_norms(index.lengths[postings.slots].astype(np.float64), index.mean)
    exact = contributions(postings.values(np.arange(len(postings.slots))), norms, 1.0)
    np.testing.assert_allclose(postings.gains, exact, rtol=2**-23)
    assert postings.most == postings.gains.max()
    return dict(zip(index.keys[postings.slots].tolist(), exact.tolist(), strict=True))


@given(corpus=corpora, piece=st.integers(1, 5), unknown=st.sets(st.integers(1, 50), max_size=10))
def test_what_goes_in_comes_out(corpus: dict[str, dict[int, float]], piece: int, unknown: set[int]) -> None:
    keys = sorted(set(range(1, 51)) - unknown)
    made = built(corpus, keys, piece)
    saved = {name: np.frombuffer(part.tobytes(), dtype=part.dtype) for name, part in made.parts().items()}
    mean = sum(keys) / len(keys)
    for index in (made, WordIndex.restored(saved)):
        for word, holders in corpus.items():
            expected = {
                key: float(contributions(np.array([times]), length_norms(np.array([float(key)]), mean), 1.0)[0])
                for key, times in holders.items()
                if key in keys
            }
            assert read(index, word) == expected
        assert read(index, "a word that is longer than five") == {}
        assert read(index, "") == {}


def test_there_may_be_more_postings_than_the_lengths_say() -> None:
    keys = list(range(1, 4))  # 1 + 2 + 3 tokens
    corpus = {f"w{number}": dict.fromkeys(keys, 1.0 + number) for number in range(9)}
    index = built(corpus, keys, piece=2)
    assert {word: len(read(index, word)) for word in corpus} == dict.fromkeys(corpus, 3)


def test_a_posting_takes_nine_bytes() -> None:
    keys = list(range(1, 1001))
    index = built({"a": dict.fromkeys(keys, 1.0), "b": {key: 1.0 + key % 200 for key in keys}}, keys)
    assert index.codes.dtype == np.uint8
    assert index.slots.nbytes + index.gains.nbytes + index.codes.nbytes == 9 * 2 * len(keys)
    assert index.nbytes == sum(part.nbytes for part in index.parts().values())


@pytest.mark.parametrize(("distinct", "dtype"), [(256, np.uint8), (257, np.uint16), (65_537, np.uint32)])
def test_more_frequencies_take_wider_codes(distinct: int, dtype: type[Any]) -> None:
    keys = list(range(1, distinct + 1))
    index = built({"a": {key: float(key) for key in keys}, "b": {1: 1.0}}, keys, piece=1)
    assert index.codes.dtype == dtype
    assert len(read(index, "a")) == distinct


def test_parts_of_another_type_are_refused() -> None:
    parts = built({"a": {1: 1.0}}, [1, 2]).parts()
    with pytest.raises(ValueError, match="other types"):
        WordIndex.restored({**parts, "slots": parts["slots"].astype(np.int64)})
    with pytest.raises(KeyError):
        WordIndex.restored({name: part for name, part in parts.items() if name != "codes"})
    with pytest.raises(ValueError, match="do not fit"):
        WordIndex.restored({**parts, "text": parts["text"][:-1]})


@given(words=st.sets(st.text(max_size=6), max_size=30), absent=st.text(max_size=6))
def test_words_are_found(words: set[str], absent: str) -> None:
    ordered = sorted(word.encode() for word in words)
    vocabulary = Vocabulary.of(ordered)
    assert len(vocabulary) == len(words)
    for place, word in enumerate(ordered):
        assert vocabulary.find(word.decode()) == place
    assert (vocabulary.find(absent) is None) == (absent not in words)
