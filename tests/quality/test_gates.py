"""Retrieval is not broken: nDCG@10 and friends on judged sets, with vectors made beforehand.

The sets are not part of the project: they are looked for beside the clone, or in the folder that the environment
variable ``TWOFOLD_JUDGED_SETS`` names; where they are absent these tests are skipped. Metrics by ``ir-measures``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import numpy.typing as npt
import pytest
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

import twofold
from twofold import GivenVectors, NewRecord, StoreSettings

DATA = Path(os.environ.get("TWOFOLD_JUDGED_SETS", Path(__file__).resolve().parents[3] / "shared" / "data"))


@dataclass
class JudgedSet:
    """One set in BEIR's format, with one vector a document and a query."""

    docs: list[dict[str, Any]]
    queries: list[dict[str, Any]]
    qrels: list[Qrel]
    doc_vectors: npt.NDArray[np.float32] | None = None
    query_vectors: npt.NDArray[np.float32] | None = None
    stores: list[twofold.HybridStore] = field(default_factory=list)


def load(name: str, vectors: str | None = None) -> JudgedSet:
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"the judged set {name} is not on this machine")
    docs, queries = (
        [json.loads(line) for line in (folder / f).open(encoding="utf-8")] for f in ("corpus.jsonl", "queries.jsonl")
    )
    rows = [line.rstrip("\n").split("\t") for line in (folder / "qrels.tsv").open(encoding="utf-8")][1:]
    judged = JudgedSet(docs, queries, [Qrel(query, doc, int(grade)) for query, doc, grade in rows])
    if vectors is not None:
        judged.doc_vectors = np.load(folder / f"{vectors}.docs.f16.npy", allow_pickle=False).astype(np.float32)
        judged.query_vectors = np.load(folder / f"{vectors}.queries.f16.npy", allow_pickle=False).astype(np.float32)
    wanted = {qrel.query_id for qrel in judged.qrels}
    keep = [index for index, query in enumerate(queries) if query["_id"] in wanted]
    judged.queries = [queries[index] for index in keep]
    if judged.query_vectors is not None:
        judged.query_vectors = judged.query_vectors[keep]
    return judged


def title_and_text(doc: dict[str, Any]) -> str:
    return f"{doc['title']}\n{doc['text']}" if doc.get("title") else str(doc["text"])


def index(
    judged: JudgedSet,
    path: Path,
    render: Callable[[dict[str, Any]], str],
    *,
    language: str = "english",
    namespace: Callable[[dict[str, Any]], tuple[str, ...]] = lambda doc: (),
) -> twofold.HybridStore:
    vectors = judged.doc_vectors
    embedder = None if vectors is None else GivenVectors("judged", int(vectors.shape[1]))
    store = twofold.open(path, embedder=embedder, settings=StoreSettings(language=language))
    store.add_many(
        (
            NewRecord(
                text=render(doc),
                id=doc["_id"],
                namespace=namespace(doc),
                vector=None if vectors is None else vectors[row],
            )
            for row, doc in enumerate(judged.docs)
        ),
        batch_size=1000,
    )
    return store


def run(judged: JudgedSet, store: twofold.HybridStore, mode: str, k: int = 10, **search: Any) -> Iterator[ScoredDoc]:
    for row, query in enumerate(judged.queries):
        vector = None if mode == "keyword" or judged.query_vectors is None else judged.query_vectors[row]
        where = search["where"](query) if "where" in search else None
        found = store.search(query["text"], k=k, mode=mode, vector=vector, where=where, preset=search.get("preset"))
        for hit in found:
            yield ScoredDoc(query["_id"], hit.id, hit.score)


def measure(judged: JudgedSet, store: twofold.HybridStore, mode: str, what: Any, k: int = 10, **search: Any) -> float:
    return float(ir_measures.calc_aggregate([what], judged.qrels, run(judged, store, mode, k, **search))[what])


@pytest.fixture(scope="module")
def scifact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[JudgedSet, twofold.HybridStore]]:
    judged = load("scifact", "minilm")
    with index(judged, tmp_path_factory.mktemp("scifact") / "s.db", title_and_text) as store:
        yield judged, store


def test_keywords_alone_find_scientific_claims(scifact: tuple[JudgedSet, twofold.HybridStore]) -> None:
    assert measure(*scifact, "keyword", nDCG @ 10) >= 0.68


def test_hybrid_beats_both_legs_on_scientific_claims(scifact: tuple[JudgedSet, twofold.HybridStore]) -> None:
    keyword, vector, hybrid = (measure(*scifact, mode, nDCG @ 10) for mode in ("keyword", "vector", "hybrid"))
    assert hybrid > max(keyword, vector)


def test_without_a_preset_it_ranks_better_than_by_ranks_alone(scifact: tuple[JudgedSet, twofold.HybridStore]) -> None:
    by_rank, plain = (measure(*scifact, "hybrid", nDCG @ 10, preset=preset) for preset in ("rrf", None))
    assert plain >= by_rank + 0.02


def test_stemming_finds_inflected_russian(tmp_path: Path) -> None:
    judged = load("xquad-ru")
    with index(judged, tmp_path / "s.db", title_and_text, language="russian") as store:
        assert measure(judged, store, "keyword", nDCG @ 10) >= 0.945


def test_text_without_spaces_is_found(tmp_path: Path) -> None:
    judged = load("xquad-zh")
    with index(judged, tmp_path / "s.db", title_and_text, language="none") as store:
        assert measure(judged, store, "keyword", nDCG @ 10) >= 0.90


def test_an_error_code_within_a_sentence_is_found(tmp_path: Path) -> None:
    judged = load("ruff-rules")
    sentences = {query["_id"] for query in judged.queries if query["metadata"]["kind"] == "sentence"}
    judged.queries = [query for query in judged.queries if query["_id"] in sentences]
    judged.qrels = [qrel for qrel in judged.qrels if qrel.query_id in sentences]
    with index(judged, tmp_path / "s.db", title_and_text) as store:
        assert measure(judged, store, "keyword", RR @ 10) >= 0.90


def test_turns_of_a_conversation_are_found(tmp_path: Path) -> None:
    judged = load("locomo")

    def turn(doc: dict[str, Any]) -> str:
        about = doc["metadata"]
        caption = f" [{about['caption']}]" if about["caption"] else ""
        return f"({about['date']}) {about['speaker']}: {doc['text']}{caption}"

    with index(judged, tmp_path / "s.db", turn, namespace=lambda doc: (doc["metadata"]["conv"],)) as store:
        recall = measure(
            judged, store, "keyword", R @ 10,
            where=lambda query: twofold.A.namespace == (query["metadata"]["conv"],),
        )  # fmt: skip
    assert recall >= 0.64
