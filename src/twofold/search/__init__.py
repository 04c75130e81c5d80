"""One query, from its text to its hits.

:func:`prepare` checks what was asked and has it embedded, before any lock or transaction; :func:`answers` does the
rest within one snapshot, and asks the reranker, if there is one, when that is closed.

=============  =====================================================================================================
``request``    what is asked, checked and embedded
``hyde``       what is written that might answer a question, for the vector leg
``neighbours`` what is nearest to the vectors of several phrasings, looked up together
``legs``       what each leg finds, and the scores that one leg has of what the other found
``order``      fusion, priors, and the total order of all that was found
``reordering`` a reranker's order, and hits that differ from each other
``answering``  the line through all of it, from the legs to the result
``explain``    why each hit is there, and what each stage did
=============  =====================================================================================================
"""

from twofold.search.answering import answer, answers
from twofold.search.hyde import Hyde, HydeWriter, LanguageModel
from twofold.search.request import Helpers, PreparedSearch, SearchRequest, prepare, remember

__all__ = [
    "Helpers",
    "Hyde",
    "HydeWriter",
    "LanguageModel",
    "PreparedSearch",
    "SearchRequest",
    "answer",
    "answers",
    "prepare",
    "remember",
]
