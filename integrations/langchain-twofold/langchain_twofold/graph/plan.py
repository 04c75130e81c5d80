"""What a batch comes to: which operations are carried out, and whose results they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from langgraph.store.base import GetOp, ListNamespacesOp, Op, Result, SearchOp

from langchain_twofold.graph.items import Values, as_json, item, search_item
from langchain_twofold.graph.namespaces import matching
from langchain_twofold.graph.operations import Asked, minutes_to_live
from twofold import Hit, Record, SearchResult
from twofold.store import Add, Operation

__all__ = ["Plan"]

_REFRESHING: Final = (GetOp, SearchOp)
"""What may make what it reads live longer."""


class Plan:
    """A batch. Of several puts of one key the last counts; an operation that stands there several times is done once.

    Args:
        asked: in order.
    """

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._asked = asked
        self._reads = [each for each in dict.fromkeys(asked) if each.written is None]
        writes = {each.written: each.operation for each in asked if each.written is not None}
        # No two writes are of one key, so that their order is free: additions in a row are written together.
        self.operations: Sequence[Operation] = [
            *(each.operation for each in self._reads),
            *sorted(writes.values(), key=lambda operation: not isinstance(operation, Add)),
        ]
        """What is carried out."""

    def results(self, found: Sequence[Any], *, cosines: bool) -> list[Result]:
        """One an operation that was asked for, in order; no two have an object in common.

        Args:
            found: the results of :attr:`operations`.
            cosines: whether a hit's score is its raw cosine.
        """
        if not self._reads:
            return [None] * len(self._asked)
        given = Values()
        answers = dict(zip(self._reads, found, strict=False))  # of a write there is none
        return [
            _result(each.op, answer, given, cosines=cosines)
            if (answer := answers.get(each))
            else (None if answer is None else [])
            for each in self._asked
        ]

    def to_refresh(self, found: Sequence[Any]) -> Iterator[Record]:
        """The records that were read and live longer for it, each once."""
        seen = set()
        for each, answer in zip(self._reads, found, strict=False):
            if not answer or not isinstance(each.op, _REFRESHING) or not each.op.refresh_ttl:
                continue
            for record in (answer,) if isinstance(each.op, GetOp) else map(_record, answer):
                if minutes_to_live(record) is None:
                    continue
                name = (record.belongs_to, record.namespace, record.id)
                if name not in seen:
                    seen.add(name)
                    yield record


def _record(found: Record | Hit) -> Record:
    return found.record if isinstance(found, Hit) else found


def _result(op: Op, answer: Any, values: Values, *, cosines: bool) -> Result:
    if isinstance(op, GetOp):
        return item(answer, values(answer))
    if isinstance(op, ListNamespacesOp):
        return matching(op, answer)
    if isinstance(answer, SearchResult):
        return [search_item(hit.record, as_json(hit.record.metadata), _score(hit, cosines=cosines)) for hit in answer]
    return [search_item(record, values(record), None) for record in answer]


def _score(hit: Hit, *, cosines: bool) -> float:
    vector = hit.explanation.legs.get("vector")
    return vector.raw if cosines and vector is not None else hit.score
