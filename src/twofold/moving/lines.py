"""The lines of an export: JSON, one object each, in UTF-8.

::

    {"type": "twofold-export", "version": 1, "exported_at": "…", "fields": ["text"], "records": 2}
    {"type": "record", "id": "a", "scope": "global", "owner": null, "namespace": [], "fields": {"text": "…"}, …}
    {"type": "record", …}
    {"type": "link", "source": {"id": "a", …}, "target": {"id": "b", …}, "kind": "related", "weight": 1.0, …}
    {"type": "end", "records": 2, "links": 1}

The header of an export with vectors says what they are of: ``"fingerprint"`` and ``"dimension"``. A record's
``"vectors"`` are little-endian float32 in Base64, one text a part, by field; lists of numbers are read too. Text that
UTF-8 cannot hold (lone surrogates) stands in ``"fields_base64"`` instead of ``"fields"``: the same JSON in UTF-8 that
lets surrogates pass, in Base64. The last line tells a whole file from one that was cut off.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.types import Owner, Record
from twofold.types.json import dump_json

__all__ = [
    "GIVEN_TIMES",
    "HEADER",
    "OWN_TIMES",
    "VERSION",
    "End",
    "Header",
    "LinkLine",
    "Matrices",
    "RecordLine",
    "Reference",
    "end_line",
    "header_line",
    "link_line",
    "record_line",
]

VERSION: Final = 1
"""The version of the format that is written, and the newest that is read."""

HEADER: Final = "twofold-export"
"""The type of the first line."""

GIVEN_TIMES: Final = ("created_at", "event_at", "valid_from", "valid_to", "expires_at")
"""The times of a record that whoever adds it may set."""

OWN_TIMES: Final = ("updated_at", "last_accessed", "archived_at")
"""The times of a record that the store sets."""

Matrices: TypeAlias = Mapping[str, npt.NDArray[np.float32]]
"""A record's vectors by field, each of shape (parts, dimension)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line."""

    fields: tuple[str, ...]
    """The names of the pieces of text that the records have."""
    records: int | None = None
    """How many records follow; None if it does not say."""
    fingerprint: str | None = None
    """The embedder that the vectors are of; None: there are none."""
    dimension: int | None = None
    """Their length."""


class Reference(NamedTuple):
    """Which record a link leads from or to."""

    id: str
    """Its id."""
    namespace: tuple[str, ...]
    """Its namespace."""
    owner: Owner
    """Whose it is."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record, as complete as it was stored."""

    record: Record
    """The record."""
    vectors: Matrices | None
    """Its vectors, of the header's fingerprint; None if the line has none."""


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link."""

    source: Reference
    """The record that it leads from."""
    target: Reference
    """The record that it leads to."""
    kind: str
    """Its kind, not empty."""
    weight: float
    """Above 0, at most 1."""
    created_at: datetime
    """UTC."""


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    records: int
    """How many records the file has."""
    links: int
    """How many links the file has."""


def header_line(header: Header, at: datetime) -> bytes:
    """The first line of an export made at ``at``."""
    said: dict[str, Any] = {
        "type": HEADER,
        "version": VERSION,
        "exported_at": _time(at),
        "fields": list(header.fields),
        "records": header.records,
    }
    if header.fingerprint is not None:
        said |= {"fingerprint": header.fingerprint, "dimension": header.dimension}
    return _line(said)


def record_line(record: Record, vectors: Matrices | None = None) -> bytes:
    """The line of a record: every attribute but the content hash, which follows from the text."""
    fields = {name: text if isinstance(text, str) else list(text) for name, text in record.fields.items()}
    said: dict[str, Any] = {"type": "record", **_reference(record.id, record.namespace, record.belongs_to)}
    raw = dump_json(fields)
    try:
        raw.encode()
        said["fields"] = fields
    except UnicodeEncodeError:
        said["fields_base64"] = _base64(raw.encode("utf-8", "surrogatepass"))
    said |= {
        "kind": record.kind,
        "project": record.project,
        "source": record.source,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "payload": record.payload,
        "importance": record.importance,
        "strength": record.strength,
        "access_count": record.access_count,
        **{name: _time(getattr(record, name)) for name in (*GIVEN_TIMES, *OWN_TIMES)},
        "superseded_by": record.superseded_by,
        "revision": record.revision,
    }
    if vectors:
        said["vectors"] = {
            name: [_base64(np.ascontiguousarray(part, dtype="<f4").tobytes()) for part in parts]
            for name, parts in vectors.items()
        }
    return _line(said)


def link_line(link: LinkLine) -> bytes:
    """The line of a link."""
    return _line(
        {
            "type": "link",
            "source": _reference(*link.source),
            "target": _reference(*link.target),
            "kind": link.kind,
            "weight": link.weight,
            "created_at": _time(link.created_at),
        }
    )


def end_line(end: End) -> bytes:
    """The last line."""
    return _line({"type": "end", "records": end.records, "links": end.links})


def _reference(id_: str, namespace: Sequence[str], owner: Owner) -> dict[str, Any]:
    return {"id": id_, "scope": owner.scope.value, "owner": owner.name, "namespace": list(namespace)}


def _line(value: Mapping[str, Any]) -> bytes:
    return dump_json(value).encode() + b"\n"


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
