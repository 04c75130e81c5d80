"""One query, from its text to its hits.

:func:`prepare` checks what was asked and has it embedded, before any lock or transaction; :func:`answer` does the
rest within one snapshot. A batch runs several answers in one snapshot.

=============  =====================================================================================================
``request``    what is asked, checked and embedded
``legs``       what each leg finds, and the scores that one leg has of what the other found
``order``      fusion, priors, and the total order of all that was found
``answering``  the line through all of it, from the legs to the result
``explain``    why each hit is there, and what each stage did
=============  =====================================================================================================
"""

from twofold.search.answering import answer
from twofold.search.request import PreparedSearch, SearchRequest, prepare

__all__ = ["PreparedSearch", "SearchRequest", "answer", "prepare"]
