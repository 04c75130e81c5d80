"""What a batch comes to: which operations are carried out, and whose results they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Result, SearchOp

from langchain_twofold.graph.items import Values, as_json, item, search_item
from langchain_twofold.graph.namespaces import matching
from langchain_twofold.graph.operations import Asked, minutes_to_live
from twofold import Hit, Record, SearchResult
from twofold.store import Add, Operation

__all__ = ["Plan"]


class Plan:
    """A batch. Of several puts of one key the last counts; an operation that stands there several times is done once.

    Args:
        asked: in order.
    """

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._asked = asked
        self._reads: list[tuple[int, int]] = []  # the places of the reads, and those of their answers
        reads: dict[int, tuple[int, Operation]] = {}
        writes: dict[Hashable, Operation] = {}
        for place, (_, operation, written) in enumerate(asked):
            if written is not None:
                writes[written] = operation
            else:
                answer, _ = reads.setdefault(id(operation), (len(reads), operation))
                self._reads.append((place, answer))
        # No two writes are of one key, so that their order is free: additions in a row are written together.
        self.operations: Sequence[Operation] = [
            *(operation for _, operation in reads.values()),
            *sorted(writes.values(), key=lambda operation: not isinstance(operation, Add)),
        ]
        """What is carried out."""

    def results(self, found: Sequence[Any], *, cosines: bool) -> list[Result]:
        """One an operation that was asked for, in order; no two have an object in common.

        Args:
            found: the results of :attr:`operations`.
            cosines: whether a hit's score is its raw cosine.
        """
        results: list[Result] = [None] * len(self._asked)
        given = Values()
        for place, answer in self._reads:
            results[place] = _result(self._asked[place], found[answer], given, cosines=cosines)
        return results

    def to_refresh(self, found: Sequence[Any]) -> Iterator[Record]:
        """The records that were read and live longer for it, each once."""
        seen = set()
        for place, answer in self._reads:
            op = self._asked[place].op
            if not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl:
                continue
            if not found[answer]:
                continue
            read = [found[answer]] if isinstance(op, GetOp) else found[answer]
            records = [each.record if isinstance(each, Hit) else each for each in read]
            for record in records:
                if record is None or minutes_to_live(record) is None:
                    continue
                name = (record.belongs_to, record.namespace, record.id)
                if name not in seen:
                    seen.add(name)
                    yield record


def _result(asked: Asked, answer: Any, values: Values, *, cosines: bool) -> Result:
    if isinstance(asked.op, GetOp):
        return None if answer is None else item(answer, values(answer))
    if isinstance(asked.op, ListNamespacesOp):
        return matching(asked.op, answer)
    if isinstance(answer, SearchResult):
        return [search_item(hit.record, as_json(hit.record.metadata), _score(hit, cosines=cosines)) for hit in answer]
    return [search_item(record, values(record), None) for record in answer]


def _score(hit: Hit, *, cosines: bool) -> float:
    vector = hit.explanation.legs.get("vector")
    return vector.raw if cosines and vector is not None else hit.score
