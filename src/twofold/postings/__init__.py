"""The keyword leg in memory: which records hold a word how often, and the best of them by BM25. Pure, no I/O."""

from twofold.postings.best import Postings, best_of_terms
from twofold.postings.bm25 import contributions, inverse_document_frequency, length_norms, weighted_frequencies

__all__ = [
    "Postings",
    "best_of_terms",
    "contributions",
    "inverse_document_frequency",
    "length_norms",
    "weighted_frequencies",
]
