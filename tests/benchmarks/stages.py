"""What is measured of a store that holds a collection: rows of times, and single figures, by name.

All contestants of a stage answer the same questions in the same run and take turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeAlias

import numpy as np
from tests.benchmarks.baselines import BareFile
from tests.benchmarks.collection import Collection, best_cosines, recall
from tests.benchmarks.measuring import Contestant, Taken, in_turns, row, timed, times_faster, times_sooner
from tests.benchmarks.peers import APPROXIMATE, BESIDE, INDEXED_FROM, PEERS
from tests.benchmarks.pipeline import PlainPipeline, flat_index
from tests.benchmarks.stores import (
    HUNDREDTH,
    check_keys,
    hundredth,
    new_records,
    numbers_of,
    open_store,
    searching,
    settle,
)

from twofold import Access, HybridStore, SearchParams
from twofold.backends.protocol import Visibility
from twofold.backends.sqlite.keyword import match_expression
from twofold.text import Analyzer

__all__ = [
    "Report",
    "adding",
    "batches",
    "beside_rivals",
    "filtering",
    "hybrids",
    "keyword_leg",
    "one_by_one",
    "same_hits",
    "touching",
    "vector_leg",
    "words",
]

Report: TypeAlias = "dict[str, dict[str, Any]]"
"""Rows by name."""

_TOP: Final = 30
_NEAREST: Final = 10
_ROUNDS: Final = 10
"""How often a batch of all questions is asked."""
_POOL: Final = SearchParams().pool
"""What a leg gives by default."""
_TOUCHES: Final = 2000
_AT_A_TURN: Final = 5
"""Questions that a process answers before it is another's turn: one that has just been woken has cold caches, which
would count most against the quickest."""


def adding(collection: Collection, path: Path) -> Report:
    """Fill a store from a generator, and a bare file with the same; the store's file is what the other stages ask."""
    with open_store(path, collection) as store:
        own = timed(lambda _: store.add_many(new_records(collection), batch_size=1000), _nothing)(0)
        settling = settle(store, collection)
    with closing(BareFile(path.with_name("bare.db"))) as file:
        bare = timed(lambda _: file.add_all(collection.pairs()), _nothing)(0)
    beside = [file for file in path.parent.glob(f"{path.name}?*") if not file.name.endswith(("-wal", "-shm"))]
    records = collection.records
    return {
        "bulk add": {
            "records/s": records / own.wall,
            "records/s of CPU": records / own.cpu,
            "of a bare insert, records/s of CPU": records / bare.cpu,
            "times as long as bare": own.cpu / bare.cpu,
            "indexes ready after, s": settling,
        },
        "disk": {
            "file, bytes/record": path.stat().st_size / records,
            "of which vector, bytes/record": 4 * collection.dimension,
            "beside the file, bytes/record": sum(file.stat().st_size for file in beside) / records,
        },
    }


def hybrids(collection: Collection, path: Path) -> Report:
    """Hybrid search beside the plain pipeline, which fills the processor's caches; and with nobody beside."""
    questions, vectors = collection.questions.mixed, collection.query_vectors
    with ExitStack() as stack:
        store = stack.enter_context(open_store(path, collection))
        settle(store, collection)
        plain = stack.enter_context(closing(PlainPipeline(collection, path.with_name("plain.db"))))
        taken = in_turns(
            {
                "ours": timed(searching(store, collection), numbers_of),
                "theirs": timed(
                    lambda number: plain.search(questions[number], vectors[number]),
                    lambda hits: [key for key, _ in hits],
                ),
            },
            len(questions),
        )
        alone = in_turns({"ours": timed(searching(store, collection), numbers_of)}, len(questions))["ours"]
    own, other = taken["ours"], taken["theirs"]
    return {
        "hybrid": row(own),
        "hybrid, nobody beside": row(alone),
        "plain pipeline": row(other, **{"hybrid is faster, times": times_faster(other, own)}),
    }


def beside_rivals(collection: Collection, path: Path, rivals: Mapping[str, Contestant], questions: int) -> Report:
    """Hybrid search beside rivals of other processes, all answering the first so many questions; and from where on
    rivals take an index that may miss a neighbour, with such a one too.
    """
    contestants: dict[str, Contestant] = dict(rivals)
    with ExitStack() as stack:
        indexes = {BESIDE: "auto"} | ({APPROXIMATE: "faiss-ivf"} if collection.records >= INDEXED_FROM else {})
        for name, index in indexes.items():
            store = stack.enter_context(open_store(path, collection, index=index))
            settle(store, collection)
            contestants[name] = timed(searching(store, collection), numbers_of)
        taken = in_turns(contestants, questions, at_a_turn=_AT_A_TURN)
    report = {BESIDE: row(taken[BESIDE])}
    for name in contestants.keys() - {BESIDE}:
        report[name] = row(taken[name], **{"hybrid is faster, times": times_faster(taken[name], taken[BESIDE])})
        if name == APPROXIMATE:
            both = zip(taken[name], taken[BESIDE], strict=True)
            same = [len({*one.found} & {*other.found}) / len(other.found) for one, other in both]
            report[name]["the same hits, share"] = sum(same) / len(same)
        elif PEERS[name].by_vector_alone:
            report[name]["recall@10"] = recall(
                collection, _by_question(taken[name]), best_cosines(collection, _NEAREST)
            )
    return report


def batches(collection: Collection, path: Path) -> Report:
    """All questions in one call, beside one by one; the vectors alone too, for words share nothing."""
    questions, vectors = collection.questions.mixed, list(collection.query_vectors)
    report: Report = {}
    with open_store(path, collection) as store:
        settle(store, collection)
        for mode in ("hybrid", "vector"):

            def together(_: int, mode: str = mode) -> Any:
                return store.search_many(questions, vectors=vectors, mode=mode)

            def apart(_: int, mode: str = mode) -> Any:
                pairs = zip(questions, vectors, strict=True)
                return [store.search(text, vector=vector, mode=mode) for text, vector in pairs]

            taken = in_turns({"together": timed(together, _nothing), "apart": timed(apart, _nothing)}, _ROUNDS)
            one, other = taken["together"], taken["apart"]
            report[f"{mode}, all questions in one call"] = row(one)
            report[f"{mode}, a call for each"] = row(other, **{"one call is faster, times": times_faster(other, one)})
    return report


def same_hits(collection: Collection, path: Path) -> Report:
    """The share of the ten best that an exact scan of all vectors gives too."""
    numbers = range(len(collection.questions.mixed))
    with open_store(path, collection, index="exact") as exact:
        ask = searching(exact, collection)
        expected = [set(numbers_of(ask(number))) for number in numbers]
    with open_store(path, collection) as store:
        settle(store, collection)
        ask = searching(store, collection)
        found = [set(numbers_of(ask(number))) for number in numbers]
    shares = [len(one & other) / len(one) for one, other in zip(expected, found, strict=True)]
    return {"same hits as the exact scan": {"of the top 10": sum(shares) / len(shares)}}


def words(collection: Collection, path: Path) -> Report:
    """Hybrid search for common words, stop words alone, and rare words, each with the same vectors."""
    asked, vectors = collection.questions, collection.query_vectors
    kinds = {"rare words": asked.rare, "common words": asked.common, "stop words alone": asked.function}
    with open_store(path, collection) as store:
        settle(store, collection)

        def asking(texts: list[str]) -> Callable[[int], Any]:
            return lambda number: store.search(texts[number], vector=vectors[number])

        contestants = {f"hybrid, {name}": timed(asking(texts), numbers_of) for name, texts in kinds.items()}
        taken = in_turns(contestants, len(vectors))
    rare = taken["hybrid, rare words"]
    report = {name: row(each) for name, each in taken.items()}
    for name in list(taken)[1:]:
        report[name]["times as long as rare words"] = times_faster(taken[name], rare)
    return report


def keyword_leg(collection: Collection, path: Path) -> Report:
    """The 30 best by BM25, stop words and all, beside FTS5's own answer to the same OR on the same connection."""
    with open_store(path, collection) as store:
        settle(store, collection)
        backend: Any = store._parts.backend
        keeping = Analyzer(backend.analyzer.language, ())  # as a setting of the store the file would remember it
        queries = [keeping.query(text) for text in collection.questions.mixed]
        matches = [match_expression(query.terms) for query in queries]
        visible = Visibility(Access(), datetime.now(UTC))
        score = f"bm25(fts{', 1.0' * (len(backend.fields) + 1)})"  # the fields, and the tags
        best = f"SELECT rowid, {score} AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT {_TOP}"
        in_order = (
            f"SELECT r.key, -{score} AS score FROM fts CROSS JOIN records r ON r.key = fts.rowid WHERE fts MATCH ?"
            f" ORDER BY score DESC, r.created_at DESC, r.id, r.namespace, r.scope, r.owner LIMIT {_TOP}"
        )

        def ours(number: int) -> Any:
            with backend.read() as reader:
                return reader.keyword(queries[number], visible, _TOP)

        def theirs(number: int, sql: str = best) -> Any:
            with backend.read() as reader:
                return reader._connection.execute(sql, (matches[number],)).fetchall()

        def keys(rows: Any) -> list[int]:
            return [key - 1 for key, _ in rows]

        taken = in_turns({"ours": timed(ours, keys), "theirs": timed(theirs, keys)}, len(queries))
        equal = [
            list(map(tuple, ours(number))) == list(map(tuple, theirs(number, in_order)))
            for number in range(len(queries))
        ]
    own, other = taken["ours"], taken["theirs"]
    return {
        "keyword leg": row(own, **{"bit-equal, share": sum(equal) / len(equal)}),
        "FTS5 by bm25()": row(other, **{"keyword leg is faster, times": times_faster(other, own)}),
    }


def vector_leg(collection: Collection, path: Path) -> Report:
    """The leg with its default pool beside FAISS's exact scan on one thread."""
    index, asked = flat_index(collection), collection.query_vectors
    visible = Visibility(Access(), datetime.now(UTC))
    with open_store(path, collection) as store:
        settle(store, collection)
        check_keys(store)
        backend: Any = store._parts.backend
        kind = backend.info().details["vector_index"]

        def ours(number: int) -> Any:
            with backend.read() as reader:
                return reader.nearest(asked[number], visible, _POOL).candidates

        taken = in_turns(
            {
                "ours": timed(ours, lambda found: [key - 1 for key, _ in found]),
                "theirs": timed(
                    lambda number: index.search(asked[number : number + 1], _POOL)[1][0], np.ndarray.tolist
                ),
            },
            len(asked),
        )
    best = best_cosines(collection, _NEAREST)
    own, other = taken["ours"], taken["theirs"]
    return {
        "vector leg": row(own, **{"recall@10": recall(collection, _by_question(own), best), "index": kind}),
        "FAISS FlatIP, one thread": row(
            other,
            **{
                "recall@10": recall(collection, _by_question(other), best),
                "vector leg is faster, times": times_faster(other, own),
            },
        ),
    }


def filtering(collection: Collection, path: Path) -> Report:
    """A filter that lets 1 % through: the same one again and again, and one that the store has not seen yet."""
    numbers = range(len(collection.questions.mixed))
    questions, vectors = collection.questions.mixed, collection.query_vectors
    with open_store(path, collection) as store:
        settle(store, collection)
        taken = in_turns(
            {
                "hybrid, no filter": timed(searching(store, collection), numbers_of),
                "hybrid, filter of 1 %": timed(searching(store, collection, where=hundredth(0)), numbers_of),
            },
            len(numbers),
        )
        by_vector = searching(store, collection, mode="vector", where=hundredth(0))
        found = {number: numbers_of(by_vector(number)) for number in numbers}
        new = timed(
            lambda number: store.search(questions[number], vector=vectors[number], where=hundredth(number)), numbers_of
        )
        fresh = [new(number) for number in numbers[1:HUNDREDTH]]
    least = min(_NEAREST, -(-collection.records // HUNDREDTH))
    best = best_cosines(collection, least, np.arange(0, collection.records, HUNDREDTH))
    bare, own = taken["hybrid, no filter"], taken["hybrid, filter of 1 %"]
    return {
        "hybrid, no filter": row(bare),
        "hybrid, filter of 1 %": row(
            own,
            **{
                "recall@10": recall(collection, found, best),
                "times as long as without": times_faster(own, bare),
            },
        ),
        "hybrid, filter of 1 % not asked for before": row(
            fresh, **{"times as long as without": times_faster(fresh, bare)}
        ),
    }


def one_by_one(collection: Collection, path: Path, count: int) -> Report:
    """Single adds, each in a transaction of its own that survives a crash of the machine, to the filled store and to
    the filled bare file, by the clock: the disk is what they wait for. Changes both.
    """
    pairs = [pair for pair, _ in zip(collection.pairs(), range(count), strict=False)]
    with ExitStack() as stack:
        store: HybridStore = stack.enter_context(open_store(path, collection, synchronous="FULL"))
        bare = stack.enter_context(closing(BareFile(path.with_name("bare.db"), synchronous="FULL")))
        taken = in_turns(
            {
                "add": timed(lambda number: store.add(pairs[number][0], vector=pairs[number][1]), _nothing),
                "bare insert": timed(lambda number: bare.add(*pairs[number]), _nothing),
            },
            len(pairs),
        )
    own, other = taken["add"], taken["bare insert"]
    return {
        "add, one by one": row(
            own, **{"times as long as bare": times_sooner(own, other), "times its CPU": times_faster(own, other)}
        ),
        "bare insert, one by one": row(other),
    }


def touching(collection: Collection, path: Path) -> Report:
    """What it takes a search to note that its hits were used; they are written later."""
    with open_store(path, collection) as store:
        hits = store.search(collection.questions.mixed[0], vector=collection.query_vectors[0])
        keys, now = [int(number) + 1 for number in numbers_of(hits)], datetime.now(UTC)
        touches = store._parts.touches
        spent = []
        for _ in range(_TOUCHES):
            started = perf_counter()
            touches.add(keys, now)
            spent.append(perf_counter() - started)
    return {"touch of a search's hits": {"p50, µs": 1e6 * statistics.median(spent)}}


def _nothing(_: object) -> list[int]:
    """What is found where nothing is looked for."""
    return []


def _by_question(taken: list[Taken]) -> dict[int, list[int]]:
    return {number: each.found for number, each in enumerate(taken)}
