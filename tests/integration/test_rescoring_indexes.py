"""Candidates rescored on both legs: the same hits with the same scores, whichever index found them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import Access, F, GivenVectors, HybridStore, NewRecord, SearchParams, SearchResult, StoreSettings

needs_sqlite_vec = pytest.mark.skipif(
    importlib.util.find_spec("sqlite_vec") is None or importlib.util.find_spec("pysqlite3") is None,
    reason="sqlite-vec and pysqlite3 (the extra sqlite-vec) are not installed",
)
needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="faiss-cpu (the extra faiss) is not installed"
)
INDEXES = [
    pytest.param({"index": "sqlite-vec", "driver": "pysqlite3"}, id="sqlite-vec", marks=needs_sqlite_vec),
    *(
        pytest.param({"index": index}, id=index, marks=needs_faiss)
        for index in ("faiss-flat", "faiss-hnsw", "faiss-ivf")
    ),
]
WORDS = ("kettle", "teapot", "broker", "pager", "vault", "deploy", "key", "door")
RECORDS, DIMENSION = 240, 16
ASKED = ("kettle vault", "deploy key door", "broker")


def filled(path: Path, **settings: Any) -> HybridStore:
    """Words by chance, with vectors that have nothing to do with them: most candidates are one leg's only."""
    chance = np.random.default_rng(7)
    store = twofold.open(path, embedder=GivenVectors("given", DIMENSION), settings=StoreSettings(**settings))
    store.add_many(
        NewRecord(
            text=" ".join(chance.choice(WORDS, size=int(chance.integers(2, 9)))),
            id=str(number),
            vector=chance.standard_normal(DIMENSION),
            metadata={"even": number % 2 == 0},
            importance=float(chance.random()),
        )
        for number in range(RECORDS)
    )
    store.add("kettle vault of another", vector=np.ones(DIMENSION), access=Access(user="u1"))
    return store


def shown(result: SearchResult) -> list[Any]:
    """Ids, scores, and what each leg gave."""
    return [(hit.id, hit.score, {leg: part.raw for leg, part in hit.explanation.legs.items()}) for hit in result]


@pytest.mark.parametrize("settings", INDEXES)
@pytest.mark.parametrize("fusion", ["rrf", "calibrated", "alpha", "additive", "relative", "dbsf"])
def test_rescored_hits_are_those_of_the_exact_index(tmp_path: Path, settings: dict[str, Any], fusion: str) -> None:
    params = SearchParams(fusion=fusion, rescore=True, pool=25)
    with filled(tmp_path / "exact.db", index="exact") as exact, filled(tmp_path / "other.db", **settings) as other:
        queries = np.random.default_rng(11).standard_normal((len(ASKED), DIMENSION))
        for text, vector in zip(ASKED, queries, strict=True):
            for where in (None, F("even") == True):  # noqa: E712 - a filter
                asked: dict[str, Any] = {"vector": vector, "k": 30, "where": where, "params": params}
                expected, found = exact.search(text, **asked), other.search(text, **asked)
                assert not found.degraded
                assert [id_ for id_, _, _ in shown(found)] == [id_ for id_, _, _ in shown(expected)]
                for (_, score, legs), (_, wanted, raw) in zip(shown(found), shown(expected), strict=True):
                    assert score == pytest.approx(wanted, abs=1e-6)
                    assert legs == pytest.approx(raw, abs=1e-6)
                by_one_leg_only = SearchParams(fusion=fusion, rescore=False, pool=25)
                plain = exact.search(text, vector=vector, k=30, where=where, params=by_one_leg_only)
                assert any(len(legs) < 2 for _, _, legs in shown(plain)), "there is something to rescore"
                assert all("vector" in legs for _, _, legs in shown(found))
