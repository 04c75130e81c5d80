"""What a hit looks like as a LlamaIndex node."""

from __future__ import annotations

from collections.abc import Container

from llama_index.core.schema import IndexNode, NodeWithScore

from llama_index.vector_stores.twofold.nodes import node_of
from twofold import Hit

__all__ = ["as_node"]

_LEAST_SCORE = 1e-9
"""LlamaIndex reads a score of 0 as "no score" and puts 1 in its place."""


def as_node(hit: Hit, score: float | None = None, *, followed: Container[str] = ()) -> NodeWithScore:
    """A new node of ``hit``, which shares nothing with the store.

    Args:
        hit: what a search found.
        score: what its score is to be, 0 to 1. Default: the hit's.
        followed: ids of the records that stand for another object; they become an ``IndexNode`` of this ``index_id``.

    Returns:
        The node that went into a vector store, whole, or else a ``TextNode``: ``id_`` is the record's, ``text`` its
        text (a lone surrogate, which pydantic refuses, is U+FFFD there), ``metadata`` exactly its metadata, so that
        ``node.hash`` is that of the node that went in, and ``ref_doc_id`` its source. The score is above 0.
    """
    node = node_of(hit.record)
    if hit.id in followed:
        standing = IndexNode(id_=hit.id, index_id=hit.id, text=node.get_content(), relationships=node.relationships)
        standing.metadata = node.metadata
        node = standing
    return NodeWithScore(node=node, score=max(hit.score if score is None else score, _LEAST_SCORE))
