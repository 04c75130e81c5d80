"""One operation of LangGraph's as one of twofold's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp

from langchain_twofold.graph.filters import as_filter
from langchain_twofold.graph.index import TextsOfItems
from langchain_twofold.graph.items import as_json
from langchain_twofold.graph.namespaces import checked_namespaces
from twofold import A, ConfigurationError, Filter, Mode, NewRecord, Record, SearchParams
from twofold.store import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search

__all__ = ["Asked", "Translation", "minutes_to_live"]

_TTL: Final = "ttl"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is asked for, in both languages. Each is equal to itself alone: whoever asks for the same shares one."""

    op: Op
    operation: Operation
    written: tuple[tuple[str, ...], str] | None
    """The namespace and the key that it writes; None of a read."""


class Translation:
    """Makes an operation of twofold's of one of LangGraph's.

    Args:
        texts: which texts of a value are searched.
        field: of the store, that they go to.
        mode: of searches.
        params: of searches.
        clock: tells the time.
    """

    def __init__(
        self,
        texts: TextsOfItems,
        *,
        field: str,
        mode: Mode | str,
        params: SearchParams | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._texts = texts
        self._field = field
        self._mode = mode
        self._params = params
        self._clock = clock

    def __call__(self, op: Op) -> Asked:
        """``op``, with what it comes to; it may be changed by the caller afterwards.

        Raises:
            ValueError: it cannot be carried out.
        """
        checked_namespaces(op)
        if not isinstance(op, PutOp):
            return Asked(op, self._read(op), None)
        written = (tuple(op.namespace), str(op.key))
        return Asked(op, self._write(op, *written), written)

    def _read(self, op: Op) -> Operation:
        if isinstance(op, GetOp):
            return Get(str(op.key), tuple(op.namespace))
        if isinstance(op, SearchOp):
            prefix = tuple(op.namespace_prefix)
            where = _both(_below(prefix) if prefix else None, as_filter(op.filter))
            if not op.query:
                return ListRecords(where, "-event_at", op.limit, op.offset)
            return Search(op.query, op.limit, op.offset, where, self._mode, self._params)
        if isinstance(op, ListNamespacesOp):
            begins, ends = _only(op, "prefix"), _only(op, "suffix")
            if begins is None or ends is None:  # several of a kind: looked at afterwards
                return ListNamespaces()
            return ListNamespaces(begins, ends, op.max_depth, op.limit, op.offset)
        raise ConfigurationError(f"an operation is a GetOp, SearchOp, PutOp or ListNamespacesOp, not {op!r}")

    def _write(self, op: PutOp, namespace: tuple[str, ...], key: str) -> Operation:
        if op.value is None:
            return Delete(key, namespace)
        if not isinstance(op.value, Mapping):
            raise ConfigurationError(f"a value is a dict, not {type(op.value).__name__}")
        value: dict[str, Any] = as_json(op.value)
        texts = self._texts(value, op.index)
        now = self._clock()
        return Add(
            NewRecord(
                fields={self._field: texts if len(texts) > 1 else texts[0]} if texts else {},
                id=key,
                namespace=namespace,
                metadata=value,
                payload=None if op.ttl is None else {_TTL: op.ttl},
                ttl=None if op.ttl is None else timedelta(minutes=op.ttl),
                created_at=now,
                event_at=now,  # when it was put: a read that makes it live longer changes updated_at, and not this
            )
        )


def minutes_to_live(record: Record) -> timedelta | None:
    """How long an item was put for, None if for ever."""
    payload = record.payload
    minutes = payload.get(_TTL) if isinstance(payload, dict) else None
    return None if minutes is None else timedelta(minutes=minutes)


@lru_cache(maxsize=1024)
def _below(prefix: tuple[str, ...]) -> Filter:
    """What is in a namespace and below it."""
    return A.namespace.prefix(prefix)


def _both(first: Filter | None, second: Filter | None) -> Filter | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _only(op: ListNamespacesOp, kind: str) -> tuple[str, ...] | None:
    """The one condition of a kind, () if there is none, None if there are several."""
    paths = [tuple(each.path) for each in op.match_conditions or () if each.match_type == kind]
    return paths[0] if len(paths) == 1 else (None if paths else ())
