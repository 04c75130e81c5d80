"""The keyword leg in memory: which records hold a word how often, and the best of them by BM25. Pure, no I/O."""

from twofold.postings.best import Among, Best, Postings, Weighted, best_of_terms, holds_any, scores_of
from twofold.postings.bm25 import contributions, inverse_document_frequency, length_norms, weighted_frequencies
from twofold.postings.index import IndexBuilder, WordIndex

__all__ = [
    "Among",
    "Best",
    "IndexBuilder",
    "Postings",
    "Weighted",
    "WordIndex",
    "best_of_terms",
    "contributions",
    "holds_any",
    "inverse_document_frequency",
    "length_norms",
    "scores_of",
    "weighted_frequencies",
]
