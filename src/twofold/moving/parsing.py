"""What the lines of an export say, checked: every line is judged by itself, and what is wrong with it is said."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from twofold.errors import ConfigurationError, InvalidRecordError, NewerFormatError
from twofold.moving.lines import (
    GIVEN_TIMES,
    HEADER,
    OWN_TIMES,
    VERSION,
    End,
    Header,
    LinkLine,
    Matrices,
    RecordLine,
    Reference,
)
from twofold.types import NewRecord, Owner, Record, Scope, content_hash
from twofold.types.access import checked_owner
from twofold.types.json import checked_text
from twofold.types.record import checked_namespace, checked_time
from twofold.vectors import as_vector

__all__ = ["parse_header", "parse_line"]

_BOM: Final = b"\xef\xbb\xbf"
"""What some editors put before the first line."""

_GIVEN: Final = ("id", "kind", "project", "source", "tags", "metadata", "payload", "importance", "strength")
_NAMES: Final = frozenset(
    {"scope", "owner", "namespace", "fields", "fields_base64", *_GIVEN, *GIVEN_TIMES, *OWN_TIMES, "vectors"}
    | {"access_count", "superseded_by", "revision"}
)
_MOST: Final = 2**63 - 1


def parse_header(raw: bytes) -> Header:
    """The header that a file begins with.

    Raises:
        ConfigurationError: it is no header, so the file is no export.
        NewerFormatError: a newer release wrote it.
    """
    try:
        said = _object(raw.removeprefix(_BOM))
    except InvalidRecordError:
        said = {}
    if said.get("type") != HEADER:
        raise ConfigurationError(
            'this is no export of twofold: its first line is not {"type": "twofold-export", …}. Other JSON Lines are '
            "taken by add_many(), and by: twofold add --jsonl"
        )
    version = said.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise NewerFormatError(
            f"the export was written by a newer release of twofold (its format is {version}, this one reads up to "
            f"{VERSION}); upgrade with: pip install --upgrade twofold"
        )
    try:
        if version != VERSION or isinstance(version, bool):
            raise InvalidRecordError(f"version is {VERSION}, not {version!r}")
        fields = said.get("fields")
        if not isinstance(fields, list) or not fields:
            raise InvalidRecordError("fields is a list of names")
        fingerprint, dimension, records = (said.get(name) for name in ("fingerprint", "dimension", "records"))
        return Header(
            fields=tuple(checked_text(name, "a field's name") for name in fields),
            records=None if records is None else _count(records, "records"),
            fingerprint=None if fingerprint is None else checked_text(fingerprint, "fingerprint"),
            dimension=None if fingerprint is None else _count(dimension, "dimension", least=1),
        )
    except InvalidRecordError as error:
        raise ConfigurationError(f"the first line of the export cannot be used: {error}") from error


def parse_line(raw: bytes, header: Header, fields: Sequence[str], now: datetime) -> RecordLine | LinkLine | End:
    """What a line after the first one says.

    Args:
        raw: the line.
        header: the first one.
        fields: the names that the store has, in its order.
        now: stands for times that a line without them would have.

    Raises:
        InvalidRecordError, InvalidVectorError, ConfigurationError: nothing that could be imported; the message says
            what is wrong.
    """
    said = _object(raw)
    match said.pop("type", None):
        case "record":
            return _record(said, header, fields, now)
        case "link":
            return _link(said, now)
        case "end":
            return End(_count(said.get("records"), "records"), _count(said.get("links"), "links"))
        case "twofold-export":
            raise InvalidRecordError("another export begins here: import each file by itself")
        case other:
            raise InvalidRecordError(f'"type" is "record", "link" or "end", not {other!r:.80}')


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InvalidRecordError(f"not UTF-8: byte {error.start + 1} cannot be read") from error
    except json.JSONDecodeError as error:
        raise InvalidRecordError(f"no valid JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise InvalidRecordError("no valid JSON: it is nested too deep") from error
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise InvalidRecordError(f"no valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidRecordError(f"a line is a JSON object, not a {type(value).__name__}")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _record(said: dict[str, Any], header: Header, names: Sequence[str], now: datetime) -> RecordLine:
    unknown = sorted(said.keys() - _NAMES)
    if unknown:
        raise InvalidRecordError(f"unknown names in a record: {', '.join(map(repr, unknown))}")
    if said.get("id") is None:
        raise InvalidRecordError("a record has an id")
    reference = _referred(said)
    text = _text(said)
    for name in text:
        if name not in names:
            raise InvalidRecordError(f"this store has the fields {', '.join(names)}, not {name!r}")
    given: dict[str, Any] = {name: said[name] for name in _GIVEN if said.get(name) is not None}
    given |= {name: _read_time(said[name], name) for name in GIVEN_TIMES if said.get(name) is not None}
    ordered = {name: text[name] for name in names if name in text}
    new = NewRecord(fields=ordered, namespace=reference.namespace, **given)
    created_at = now if new.created_at is None else new.created_at
    own = {name: _read_time(said[name], name) for name in OWN_TIMES if said.get(name) is not None}
    superseded_by = said.get("superseded_by")
    fields = {name: piece if isinstance(piece, str) else tuple(piece) for name, piece in (new.fields or {}).items()}
    record = Record(
        id=reference.id,
        fields=fields,
        kind=new.kind,
        scope=reference.owner.scope,
        owner=reference.owner.name,
        namespace=reference.namespace,
        project=new.project,
        source=new.source,
        tags=new.tags,
        metadata=new.metadata,
        payload=new.payload,
        importance=new.importance,
        strength=new.strength,
        access_count=_count(said.get("access_count", 0), "access_count"),
        created_at=created_at,
        updated_at=own.get("updated_at", created_at),
        last_accessed=own.get("last_accessed", created_at),
        event_at=new.event_at,
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        expires_at=new.expires_at,
        archived_at=own.get("archived_at"),
        superseded_by=None if superseded_by is None else checked_text(superseded_by, "superseded_by"),
        content_hash=content_hash(fields),
        revision=_count(said.get("revision", 1), "revision", least=1),
    )
    return RecordLine(record, _vectors(said.get("vectors"), header, names))


def _text(said: Mapping[str, Any]) -> Mapping[str, Any]:
    fields, encoded = said.get("fields"), said.get("fields_base64")
    if (fields is None) == (encoded is None):
        raise InvalidRecordError("a record has either fields or fields_base64")
    if encoded is not None:
        try:
            fields = json.loads(_bytes(encoded, "fields_base64").decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise InvalidRecordError(f"fields_base64 cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidRecordError(f"fields is an object with the text by name, not a {type(fields).__name__}")
    return fields


def _vectors(said: Any, header: Header, names: Sequence[str]) -> Matrices | None:
    if said is None:
        return None
    if header.fingerprint is None:
        raise InvalidRecordError("there are vectors, but the first line does not say what they are of (fingerprint)")
    if not isinstance(said, dict) or not said or not set(said) <= set(names):
        raise InvalidRecordError(f"vectors is an object with lists of vectors by field: {', '.join(names)}")
    return {name: _matrix(parts, header.dimension, name) for name, parts in said.items()}


def _matrix(parts: Any, dimension: int | None, name: str) -> npt.NDArray[np.float32]:
    what = f"the vector of field {name!r}"
    if not isinstance(parts, list) or not parts:
        raise InvalidRecordError(f"{what} is a list of Base64 texts, or of lists of numbers, one a part")
    rows: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            raw = _bytes(part, what)
            if len(raw) % 4:
                raise InvalidRecordError(f"{what} is float32, four bytes a number; {len(raw)} bytes cannot be that")
            rows.append(np.frombuffer(raw, dtype="<f4"))
        else:
            rows.append(part)
    return np.stack([as_vector(row, dimension, what) for row in rows])


def _bytes(value: Any, what: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidRecordError(f"{what} is Base64 text, not a {type(value).__name__}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRecordError(f"{what} is no valid Base64: {error}") from error


def _link(said: Mapping[str, Any], now: datetime) -> LinkLine:
    unknown = sorted(said.keys() - {"source", "target", "kind", "weight", "created_at"})
    if unknown:
        raise InvalidRecordError(f"unknown names in a link: {', '.join(map(repr, unknown))}")
    source, target = (_end_of(said.get(name), name) for name in ("source", "target"))
    if source == target:
        raise InvalidRecordError("a record is not linked to itself")
    kind = checked_text(said.get("kind"), "a link's kind")
    if not kind:
        raise InvalidRecordError("a link's kind is a word, not empty")
    weight = said.get("weight")
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight <= 1:
        raise InvalidRecordError(f"a link's weight is above 0 and at most 1, not {weight!r:.80}")
    created_at = said.get("created_at")
    at = now if created_at is None else _read_time(created_at, "created_at")
    return LinkLine(source, target, kind, float(weight), at)


def _end_of(said: Any, name: str) -> Reference:
    if not isinstance(said, dict):
        raise InvalidRecordError(f"a link has a {name}: an object with id, scope, owner and namespace")
    return _referred(said)


def _referred(said: Mapping[str, Any]) -> Reference:
    id_ = checked_text(said.get("id"), "id")
    if not id_:
        raise InvalidRecordError("id is not empty")
    scope, name = said.get("scope", Scope.GLOBAL.value), said.get("owner")
    if scope not in tuple(Scope):
        raise InvalidRecordError(f"scope is one of {', '.join(Scope)}, not {scope!r:.80}")
    return Reference(id_, checked_namespace(said.get("namespace", ())), checked_owner(Owner(Scope(scope), name)))


def _read_time(value: Any, name: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise InvalidRecordError(f"{name} is a time such as 2026-03-01T12:00:00Z, not {value!r:.80}") from error
    return checked_time(time, name)


def _count(value: Any, name: str, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise InvalidRecordError(f"{name} is a whole number of at least {least}, not {value!r:.80}")
    return value
