"""twofold's own part in the comparison: stores that hold a collection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from tests.benchmarks.collection import Collection

import twofold
from twofold import F, Filter, GivenVectors, HybridStore, NewRecord, StoreSettings
from twofold.types import SearchResult

__all__ = ["HUNDREDTH", "check_keys", "hundredth", "new_records", "numbers_of", "open_store", "searching", "settle"]

HUNDREDTH: Final = 100
"""A record's number modulo this is in its metadata, so that a filter may let 1 % through."""

_LONGEST_BUILD: Final = 3600
_WARM_UP: Final = 20


def open_store(path: Path, collection: Collection, **settings: Any) -> HybridStore:
    """The file, with these settings; it is made if it is not there."""
    embedder = GivenVectors("benchmark", collection.dimension)
    return twofold.open(path, embedder=embedder, settings=StoreSettings(**settings))


def new_records(collection: Collection) -> Iterator[NewRecord]:
    """The collection's records; their ids are their numbers."""
    for number, (text, vector) in enumerate(collection.pairs()):
        yield NewRecord(id=str(number), text=text, vector=vector, metadata={"hundredth": number % HUNDREDTH})


def hundredth(number: int) -> Filter:
    """A filter that lets 1 % through, one of a hundred."""
    return F("hundredth") == number % HUNDREDTH


def searching(store: HybridStore, collection: Collection, mode: str = "hybrid", **arguments: Any) -> Any:
    """Asks the question of a number."""
    questions, vectors = collection.questions.mixed, collection.query_vectors
    return lambda number: store.search(questions[number], vector=vectors[number], mode=mode, **arguments)


def numbers_of(result: SearchResult) -> list[int]:
    """Which records were found."""
    return [int(hit.id) for hit in result]


def settle(store: HybridStore, collection: Collection) -> float:
    """Search a little, then wait until what the store builds in the background is there. Gives the seconds.

    Raises:
        RuntimeError: it does not come to an end.
    """
    started = perf_counter()
    ask = searching(store, collection)
    for number in range(min(_WARM_UP, len(collection.questions.mixed))):
        ask(number)
    while builders := [thread for thread in threading.enumerate() if thread.name.startswith("twofold-background")]:
        builders[0].join(_LONGEST_BUILD)
        if builders[0].is_alive():
            raise RuntimeError("an index is still being built after an hour")
        ask(0)
    return perf_counter() - started


def check_keys(store: HybridStore) -> None:
    """Make sure that a record's key in the file is its number plus one, so that both legs can be asked by themselves.

    Raises:
        RuntimeError: it is not.
    """
    backend: Any = store._parts.backend
    with backend.read() as reader:
        rows = reader._connection.execute("SELECT count(*) FROM records WHERE key != CAST(id AS INTEGER) + 1")
        if rows.fetchall() != [(0,)]:
            raise RuntimeError("the keys of the records are not in the order in which they were added")
