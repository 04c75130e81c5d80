"""Records for tests, complete but for what a test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import VectorWrite
from twofold.errors import InvalidRecordError
from twofold.types import Owner, Record, content_hash

__all__ = ["NEW_YEAR", "make_record", "make_vectors"]

NEW_YEAR: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When everything happens unless a test says otherwise."""

_DEFAULTS: Final[Mapping[str, Any]] = {
    "kind": "semantic",
    "namespace": (),
    "project": None,
    "source": None,
    "tags": (),
    "metadata": {},
    "payload": None,
    "importance": 0.5,
    "strength": 1.0,
    "access_count": 0,
    "event_at": None,
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "archived_at": None,
    "superseded_by": None,
    "revision": 1,
}


def make_record(
    id: str,
    text: str | Mapping[str, str | tuple[str, ...]] = "",
    *,
    owner: Owner | None = None,
    at: datetime = NEW_YEAR,
    attributes: Mapping[str, Any] | None = None,
) -> Record:
    """A record as a backend stores it.

    Args:
        id: its id.
        text: the text of the field ``text``, or all fields by name. Default: none.
        owner: whose it is. Default: everybody's.
        at: when it was created, updated and last accessed.
        attributes: any other attribute of :class:`Record` by name.

    Raises:
        InvalidRecordError: an attribute that does not exist.
    """
    owner = Owner.everybody() if owner is None else owner
    fields = {"text": text} if isinstance(text, str) else dict(text)
    given = dict(attributes or {})
    unknown = sorted(given.keys() - Record.__dataclass_fields__.keys())
    if unknown:
        raise InvalidRecordError(f"a record has no attribute {', '.join(unknown)}")
    times = {"created_at": at, "updated_at": at, "last_accessed": at}
    whose = {"id": id, "fields": fields, "scope": owner.scope, "owner": owner.name}
    return Record(**{**_DEFAULTS, **times, **whose, "content_hash": content_hash(fields), **given})


def make_vectors(record: Record, vectors: Sequence[float] | Mapping[str, Any]) -> VectorWrite:
    """Vectors of a record's text.

    Args:
        record: the record.
        vectors: the vector of the field ``text``, or by field name a list of one vector a part.
    """
    by_field: Mapping[str, Any] = vectors if isinstance(vectors, Mapping) else {"text": [vectors]}
    arrays: dict[str, npt.NDArray[np.float32]] = {
        field: np.asarray(parts, dtype=np.float32) for field, parts in by_field.items()
    }
    return VectorWrite(record.content_hash, arrays)
