"""What a LlamaIndex node looks like as a record, and a record as a node.

A record's text is what LlamaIndex embeds of a node, its metadata included, so that keywords, vectors and vectors made
later are all of one text. Its metadata is the node's own and nothing else. What else makes the node whole (class,
relationships, templates, the keys that are left out) lies in the record's payload.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from llama_index.core.constants import DATA_KEY, TYPE_KEY
from llama_index.core.schema import (
    BaseNode,
    MediaResource,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.utils import json_to_doc
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from llama_index.vector_stores.twofold.vectors import as_vector
from twofold import InvalidRecordError, NewRecord, Record

__all__ = ["as_record", "node_of"]

_PAYLOAD: Final = "llama_index"
_NODE, _TYPE, _START, _DIGEST = "node", "type", "start", "digest"
_NOT_JSON: Final = (PydanticSerializationError, ValueError, RecursionError)


def as_record(node: BaseNode, namespace: tuple[str, ...]) -> NewRecord:
    """``node``, to be stored; it is not changed, and nothing of it is kept.

    Args:
        node: any node. Its embedding is left out unless it can be one: empty, zero and non-finite ones cannot.
        namespace: where the record goes.

    Raises:
        InvalidRecordError: its id, text or metadata cannot be stored; the message says why. Metadata is JSON; what
            JSON has no word for becomes what LlamaIndex itself makes of it: a date its ISO text, a tuple a list.
    """
    if not isinstance(node, BaseNode):
        raise InvalidRecordError(f"nodes is a list of LlamaIndex's nodes, and {type(node).__name__} is none of them")
    try:
        text = node.get_content(metadata_mode=MetadataMode.EMBED)
        return NewRecord(
            text=text,
            id=node.node_id,
            namespace=namespace,
            source=node.ref_doc_id,
            metadata=to_jsonable_python(node.metadata),
            payload={_PAYLOAD: _payload(node, text)},
            vector=as_vector(node.embedding),
        )
    except InvalidRecordError as error:
        raise InvalidRecordError(f"node {node.node_id!r} cannot be stored: {error}") from None
    except _NOT_JSON as error:
        raise InvalidRecordError(f"node {node.node_id!r} cannot be stored as JSON: {error}") from None


def node_of(record: Record) -> BaseNode:
    """A new node of ``record``, which shares nothing with the store.

    Args:
        record: of a node, or of anything else: then it becomes a ``TextNode`` of the record's id, text and metadata,
            whose source is the record's.

    Returns:
        The node as it was added, without its embedding: its class is that of LlamaIndex which it derives from, and
        ``node.hash`` is unchanged. If the record's text has been changed since, the node has the new text as it is.
    """
    payload = record.payload.get(_PAYLOAD) if isinstance(record.payload, Mapping) else None
    if payload is None:
        return _plain(record)
    try:
        return _whole(record, payload)
    except (KeyError, TypeError, ValueError):  # it says something else than what is written here
        return _plain(record)


def _whole(record: Record, payload: Any) -> BaseNode:
    data = json.loads(payload[_NODE]) | {"id_": record.id, "metadata": _metadata(record)}
    if payload[_DIGEST] != _digest(record.text):
        _put_text(data, record.text)
    elif payload[_START] is not None:
        _put_text(data, record.text[payload[_START] :])
    return json_to_doc({DATA_KEY: data, TYPE_KEY: payload[_TYPE]})


def _plain(record: Record) -> TextNode:
    node = TextNode(id_=record.id, text=_well_formed(record.text))
    node.metadata = _metadata(record)
    if record.source is not None:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=record.source)
    return node


def _metadata(record: Record) -> dict[str, Any]:
    return copy.deepcopy(dict(record.metadata))


def _payload(node: BaseNode, text: str) -> dict[str, Any]:
    """The node without what the record has already: its metadata, and its text where that ends the record's."""
    # The last is a misspelt twin of metadata_separator, which it would overwrite on the way back (older cores).
    data = node.to_dict(exclude={"embedding", "metadata", "metadata_seperator"})
    for name, value in node:
        if isinstance(value, MediaResource) and value.data is not None:
            data[name]["data"] = value.data.decode()  # base64; LlamaIndex leaves it out
    own = _own_text(data)
    start = None
    if own is not None and text.endswith(own):
        start = len(text) - len(own)
        _put_text(data, "")
    told = to_json(data, inf_nan_mode="constants").decode()  # one text is checked and copied faster than many
    return {_NODE: told, _TYPE: ObjectType(node.get_type()).value, _START: start, _DIGEST: _digest(text)}


def _own_text(data: dict[str, Any]) -> str | None:
    """The text in a node's dict: of its own, or of the resource that a node of several media has it in."""
    resource = data.get("text_resource")
    found = resource.get("text") if isinstance(resource, dict) else data.get("text")
    return found if isinstance(found, str) else None


def _put_text(data: dict[str, Any], text: str) -> None:
    """Write ``text`` to each place where :func:`_own_text` may look."""
    resource = data.get("text_resource")
    if isinstance(resource, dict):
        data["text_resource"] = resource | {"text": text}
    if "text" in data:
        data["text"] = text
    elif not isinstance(resource, dict):
        data["text_resource"] = {"text": text}


def _digest(text: str) -> str:
    """Tells whether a record's text is still the one that was made of its node."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _well_formed(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
