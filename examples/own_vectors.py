"""Vectors that are made elsewhere: records and queries bring theirs, and nothing is embedded here."""

from __future__ import annotations

import numpy as np

import twofold
from twofold import GivenVectors


def elsewhere(text: str) -> np.ndarray:
    """Stands for another program's model: it knows two topics."""
    topics = (("apple", "pear", "fruit", "orchard"), ("whale", "shark", "sea", "fish"))
    return np.array([sum(word in text.lower() for word in words) + 0.01 for words in topics])


TEXTS = ["A ripe pear.", "An apple a day.", "The whale sings.", "A shark passes by."]

with twofold.open("vectors.db", embedder=GivenVectors("two-topics-v1", 2)) as store:
    store.add_many({"text": text, "vector": elsewhere(text)} for text in TEXTS)

    result = store.search("what lives in the sea?", vector=elsewhere("what lives in the sea?"), k=2)
    print("with a vector:   ", [hit.text for hit in result])
    assert {hit.text for hit in result} == {"The whale sings.", "A shark passes by."}

    result = store.search("whale")  # no vector: keywords, and nothing is amiss
    print("without a vector:", [hit.text for hit in result], "degraded:", result.degraded)
    assert not result.degraded
