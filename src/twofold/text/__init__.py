"""Text analysis: the same tokens from stored text and from a query, whatever the language. Pure functions."""

from __future__ import annotations

from twofold.text.analyzer import Analyzer
from twofold.text.normalise import normalise
from twofold.text.query import MAX_TERMS, KeywordQuery, Term

__all__ = ["MAX_TERMS", "Analyzer", "KeywordQuery", "Term", "normalise"]
