"""A session that writes: one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from twofold.backends.protocol.reader import Reader
from twofold.backends.protocol.values import (
    LinkWrite,
    Mark,
    Space,
    Touch,
    VectorWrite,
    Visibility,
)
from twofold.types import Owner, Record

__all__ = ["Writer"]


class Writer(Reader, Protocol):
    """One transaction; it sees its own writes."""

    def adopt(self, fingerprint: str, dimension: int) -> None:
        """Make this the embedder that vectors are of, if there is none yet; every record with text is then pending.

        Raises:
            ConfigurationError: another fingerprint or dimension is there.
        """
        ...

    def begin_space(self, space: Space) -> None:
        """Begin to make the vectors anew with another embedder; if these are under way, nothing. Nothing that is
        found changes until :meth:`swap_space`, and this counts as no write, nor does :meth:`put_next`.

        Raises:
            ConfigurationError: another one's are under way, they are in use already, or the dimension is below 1.
        """
        ...

    def put_next(self, key: int, vectors: VectorWrite) -> bool:
        """Keep vectors of the next space, if the record's text is still the one that they were made of and it has
        none there; whether it was so.

        Raises:
            ConfigurationError: there is no next space.
            InvalidVectorError: as for :meth:`insert`.
        """
        ...

    def swap_space(self, refused: Mapping[int, str]) -> None:
        """Let the next space be the one in use. Records with text that have no vector there are pending, those in
        ``refused`` parked for the reason given.

        Raises:
            ConfigurationError: there is no next space.
        """
        ...

    def drop_next(self) -> None:
        """Give the next space up."""
        ...

    def drop_former(self, limit: int) -> int:
        """Remove up to ``limit`` vectors of embedders that are neither in use nor next; how many were."""
        ...

    def insert(self, record: Record, vectors: VectorWrite | None) -> int:
        """Add a record with its tokens and vectors, or marked as pending if it has text, the file has a
        fingerprint and ``vectors`` is None. Gives its key.
        """
        ...

    def insert_many(self, new: Sequence[tuple[Record, VectorWrite | None]]) -> list[int]:
        """:meth:`insert` of each, and their keys in order; none is added if one is refused."""
        ...

    def replace(self, key: int, record: Record, vectors: VectorWrite | None) -> None:
        """Put ``record`` in the place of the one at ``key``. Tokens, vectors and the pending mark follow the text:
        if that is unchanged and ``vectors`` is None, the vectors stay.
        """
        ...

    def attach(self, key: int, vectors: VectorWrite) -> bool:
        """Attach vectors to a pending record if its text is still the one they were made of; whether it was."""
        ...

    def claim_pending(self, visible: Visibility, limit: int, now: datetime, until: datetime) -> dict[int, Record]:
        """Some of the visible records that wait for a vector and that nobody else has claimed, now claimed until
        ``until``; none that is parked.
        """
        ...

    def release(self, keys: Sequence[int]) -> None:
        """Give claims back."""
        ...

    def park(self, key: int, reason: str) -> None:
        """Leave a waiting record out of claims, for its text was refused, until that changes or it is unparked."""
        ...

    def unpark(self, visible: Visibility) -> int:
        """Take visible parked records in again; how many there were."""
        ...

    def set_archived(self, keys: Sequence[int], at: datetime | None) -> None:
        """Archive (or, with None, restore) records; tokens and vectors stay."""
        ...

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows, tokens, vectors, pending marks and all links from or to them; unknown keys are passed over."""
        ...

    def put_links(self, links: Sequence[LinkWrite], at: datetime) -> int:
        """Make links; one that is there gets the new weight and keeps its time. How many are new.

        Raises:
            RecordNotFoundError: an end does not exist.
            ConfigurationError: both ends are one record.
        """
        ...

    def delete_links(
        self, *, source: int | None = None, target: int | None = None, kinds: Sequence[str] | None = None
    ) -> int:
        """Remove the links from ``source``, to ``target``, or of both; of these kinds, or of all. How many there were.

        Raises:
            ConfigurationError: neither end is given.
        """
        ...

    def touch(self, touches: Mapping[int, Touch], growth: float = 1.0) -> None:
        """Count uses of records: access_count grows by ``times``, last_accessed is the later time, strength is
        multiplied with growth^times, up to 100 and never to less than it was. Not a write otherwise: generation,
        revision, updated_at, tokens and vectors stay. Unknown keys are passed over.

        Args:
            touches: by key.
            growth: at least 1.
        """
        ...

    def put_marks(self, owner: Owner, namespace: str, marks: Sequence[Mark]) -> None:
        """Write marks; the same key again replaces it."""
        ...

    def delete_marks(self, owner: Owner, namespace: str, keys: Sequence[str]) -> None:
        """Remove marks; unknown keys are passed over."""
        ...

    def forget_marks(self, owner: Owner, keys: Sequence[str] | None = None) -> int:
        """Remove an owner's marks in every namespace, those of ``keys`` or all. How many there were."""
        ...
