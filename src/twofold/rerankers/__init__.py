"""Rerankers: what reads a question and the texts found for it side by side, and puts them in a better order.

=================  =================================================================================================
``protocol``       what a reranker is
``cross_encoder``  the one that ships, a cross-encoder of sentence-transformers
``judging``        the one place where a reranker is asked, under a deadline, and what it gives is checked
``resolve``        what may stand for a reranker where a store is opened
=================  =================================================================================================
"""

from twofold.rerankers.cross_encoder import CrossEncoderReranker
from twofold.rerankers.judging import Judge
from twofold.rerankers.protocol import Reranker
from twofold.rerankers.resolve import resolve_reranker

__all__ = ["CrossEncoderReranker", "Judge", "Reranker", "resolve_reranker"]
