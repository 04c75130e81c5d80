"""One write, from what the caller gave to what is committed.

:class:`Draft` is a record that has been checked. Drafts are embedded outside of any transaction (:func:`embed`), then
written in one (:func:`write`).
"""

from twofold.ingest.drafts import Draft, Ingest, batches, draft, pieces_of
from twofold.ingest.embedding import Embedded, embed
from twofold.ingest.placing import Duplicates
from twofold.ingest.writing import write

__all__ = ["Draft", "Duplicates", "Embedded", "Ingest", "batches", "draft", "embed", "pieces_of", "write"]
