"""Values going in, items coming out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import Item, SearchItem

from twofold import Record

__all__ = ["Values", "as_json", "item", "search_item"]


def as_json(value: Any) -> Any:
    """A copy with each mapping a dict and each tuple a list, all the way down; the store refuses what else is no
    JSON.
    """
    if isinstance(value, (str, int, float)):  # first what there is most of: asking for Mapping takes its time
        return value
    if isinstance(value, (dict, Mapping)):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return value


class Values:
    """The values of records, for callers who may change them: a record's own the first time, then copies of it.

    None is asked for a second time after somebody had the first.
    """

    def __init__(self) -> None:
        self._given: set[int] = set()

    def __call__(self, record: Record) -> dict[str, Any]:
        """A dict that nobody else has. The record is kept alive by who asks."""
        own = record.metadata
        if id(own) in self._given or not isinstance(own, dict):
            copied: dict[str, Any] = as_json(own)
            return copied
        self._given.add(id(own))
        return own


def item(record: Record, value: dict[str, Any]) -> Item:
    """A record as an item with this value."""
    return Item(
        value=value,
        key=record.id,
        namespace=record.namespace,
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
    )


def search_item(record: Record, value: dict[str, Any], score: float | None) -> SearchItem:
    """A record as an item that was searched for, with this value."""
    return SearchItem(
        namespace=record.namespace,
        key=record.id,
        value=value,
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
        score=score,
    )
