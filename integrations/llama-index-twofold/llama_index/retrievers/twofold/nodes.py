"""What a hit looks like as a LlamaIndex node."""

from __future__ import annotations

import copy
from collections.abc import Container

from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from twofold import Hit

__all__ = ["as_node"]

_LEAST_SCORE = 1e-9
"""LlamaIndex reads a score of 0 as "no score" and puts 1 in its place."""


def as_node(hit: Hit, *, followed: Container[str] = ()) -> NodeWithScore:
    """A new node of ``hit``, which shares nothing with the store.

    Args:
        hit: what a search found.
        followed: ids of the records that stand for another object; they become an ``IndexNode`` of this ``index_id``.

    Returns:
        ``id_`` is the record's, ``text`` its text (a lone surrogate, which pydantic refuses, is U+FFFD there),
        ``metadata`` exactly its metadata, so that ``node.hash`` is that of the node that went in, and
        ``ref_doc_id`` its source. The score is above 0.
    """
    record = hit.record
    node = (
        IndexNode(id_=record.id, index_id=record.id, text=_well_formed(record.text))
        if record.id in followed
        else TextNode(id_=record.id, text=_well_formed(record.text))
    )
    node.metadata = copy.deepcopy(dict(record.metadata))
    if record.source is not None:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=record.source)
    return NodeWithScore(node=node, score=max(hit.score, _LEAST_SCORE))


def _well_formed(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
