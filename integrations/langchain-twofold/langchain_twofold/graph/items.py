"""Values going in, items coming out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import Item, SearchItem

from twofold import Record

__all__ = ["as_json", "item", "search_item"]


def as_json(value: Any) -> Any:
    """A copy with each mapping a dict and each tuple a list, all the way down; the store refuses what else is no
    JSON.
    """
    if isinstance(value, str):  # first what there is most of: asking for Mapping takes its time
        return value
    if isinstance(value, (dict, Mapping)):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return value


def item(record: Record) -> Item:
    """A record as an item, with a value of its own."""
    return Item(
        value=as_json(record.metadata),
        key=record.id,
        namespace=record.namespace,
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
    )


def search_item(record: Record, score: float | None) -> SearchItem:
    """A record as an item that was searched for, with a value of its own."""
    return SearchItem(
        namespace=record.namespace,
        key=record.id,
        value=as_json(record.metadata),
        created_at=record.created_at,
        updated_at=record.event_at or record.updated_at,
        score=score,
    )
