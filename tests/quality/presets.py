"""How well each preset ranks the judged sets: ``python -m tests.quality.presets``, from the top of the repository.

Prints nDCG@10 (by ``ir-measures``) of each leg alone, of ``rrf`` and of other presets, a row a set. The sets, with
vectors made beforehand, are not part of the project: they are looked for where ``TWOFOLD_JUDGED_SETS`` says, else
beside the clone; a set that is not there is left out, and said to be.

``balanced`` owes something to these very sets: the vector leg's share of 0.6 was chosen in a comparison that they were
part of, and coverage was added when one of them showed a need for it. ``python -m tests.quality.held_out`` measures how
far it holds on queries that its constants were not chosen on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ir_measures
import numpy as np
import numpy.typing as npt
from ir_measures import Qrel, ScoredDoc, nDCG

import twofold
from twofold import PRESETS, A, GivenVectors, NewRecord, SearchParams, SearchResult, StoreSettings

DATA: Final = Path(os.environ.get("TWOFOLD_JUDGED_SETS", Path(__file__).resolve().parents[3] / "shared" / "data"))
Json = dict[str, Any]


def title_and_text(doc: Json) -> str:
    return f"{doc['title']}\n{doc['text']}" if doc.get("title") else str(doc["text"])


def turn(doc: Json) -> str:
    about = doc["metadata"]
    caption = f" [{about['caption']}]" if about["caption"] else ""
    return f"({about['date']}) {about['speaker']}: {doc['text']}{caption}"


@dataclass(frozen=True)
class JudgedSet:
    """A set, and how it is stored."""

    folder: str
    vectors: str
    language: str = "english"
    render: Callable[[Json], str] = title_and_text
    conversation: Callable[[Json], str | None] = lambda one: None
    """What a document and a query belong to, where each is searched by itself."""


SETS: Final[Mapping[str, JudgedSet]] = {
    "scifact": JudgedSet("scifact", "minilm"),
    "cranfield": JudgedSet("cranfield", "minilm"),
    "locomo": JudgedSet(
        "locomo", "minilm-date-speaker-caption", render=turn, conversation=lambda one: one["metadata"]["conv"]
    ),
    "ruff-rules": JudgedSet("ruff-rules", "minilm"),
    "xquad-en": JudgedSet("xquad-en", "minilm"),
    "xquad-en, e5": JudgedSet("xquad-en", "e5"),
    "xquad-ru, e5": JudgedSet("xquad-ru", "e5", "russian"),
    "xquad-ru2en, e5": JudgedSet("xquad-ru2en", "e5"),
}


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def qrels(path: Path) -> list[Qrel]:
    rows = [line.rstrip("\n").split("\t") for line in path.open(encoding="utf-8")][1:]
    return [Qrel(query, doc, int(grade)) for query, doc, grade in rows]


def matrix(path: Path) -> npt.NDArray[np.float32]:
    loaded: npt.NDArray[np.float32] = np.load(path, allow_pickle=False).astype(np.float32)
    return loaded


class Measured:
    """One set in a store, and its queries."""

    def __init__(self, judged: JudgedSet, path: Path, *, most: int | None = None) -> None:
        folder = DATA / judged.folder
        self._judged = judged
        self.qrels = qrels(folder / "qrels.tsv")
        wanted = {qrel.query_id for qrel in self.qrels}
        vectors = matrix(folder / f"{judged.vectors}.queries.f16.npy")
        asked = zip(lines(folder / "queries.jsonl"), vectors, strict=True)
        self.queries = [(query, vector) for query, vector in asked if query["_id"] in wanted][:most]
        kept = {query["_id"] for query, _ in self.queries}
        self.qrels = [qrel for qrel in self.qrels if qrel.query_id in kept]
        docs, vectors = lines(folder / "corpus.jsonl"), matrix(folder / f"{judged.vectors}.docs.f16.npy")
        settings = StoreSettings(language=judged.language)
        self.store = twofold.open(path, embedder=GivenVectors("judged", int(vectors.shape[1])), settings=settings)
        self.store.add_many(
            (
                NewRecord(text=judged.render(doc), id=doc["_id"], namespace=self._namespace(doc), vector=vector)
                for doc, vector in zip(docs, vectors, strict=True)
            ),
            batch_size=1000,
        )

    def _namespace(self, one: Json) -> tuple[str, ...]:
        conversation = self._judged.conversation(one)
        return () if conversation is None else (conversation,)

    def search(
        self, query: Json, vector: npt.NDArray[np.float32], params: SearchParams, mode: str = "hybrid"
    ) -> SearchResult:
        """What a query finds, in its conversation if it is of one."""
        within = self._namespace(query)
        where = (A.namespace == within) if within else None
        return self.store.search(query["text"], vector=vector, mode=mode, params=params, where=where)

    def ndcg(self, params: SearchParams, mode: str = "hybrid") -> float:
        def run() -> Iterator[ScoredDoc]:
            for query, vector in self.queries:
                for place, hit in enumerate(self.search(query, vector, params, mode)):
                    yield ScoredDoc(query["_id"], hit.id, -place)  # the order is what is judged

        return float(ir_measures.calc_aggregate([nDCG @ 10], self.qrels, run())[nDCG @ 10])


def measure(judged: JudgedSet, asked: Mapping[str, SearchParams], most: int | None = None) -> dict[str, float]:
    """nDCG@10 of both legs alone, and of what is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured(judged, Path(folder) / "judged.db", most=most)
        with measured.store:
            found = {mode: measured.ndcg(PRESETS["rrf"], mode) for mode in ("keyword", "vector")}
            return found | {name: measured.ndcg(params) for name, params in asked.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description="nDCG@10 of presets on judged sets.")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--presets", nargs="*", default=["rrf", "balanced"], choices=list(PRESETS))
    parser.add_argument("--most", type=int, default=None, help="so many queries of each set only")
    asked = parser.parse_args()
    presets = {name: PRESETS[name] for name in asked.presets}
    print(f"| set | keyword | vector | better leg | {' | '.join(presets)} |")
    print("|---" * (4 + len(presets)) + "|")
    rows = []
    for name in asked.sets:
        if not (DATA / SETS[name].folder).is_dir():
            print(f"{name} is left out: it is not in {DATA}", file=sys.stderr)
            continue
        found = measure(SETS[name], presets, most=asked.most)
        rows.append(
            [
                found["keyword"],
                found["vector"],
                max(found["keyword"], found["vector"]),
                *[found[each] for each in presets],
            ]
        )
        print(f"| {name} | {' | '.join(f'{value:.4f}' for value in rows[-1])} |", flush=True)
    if not rows:
        return 1
    print(f"| mean | {' | '.join(f'{value:.4f}' for value in np.mean(rows, axis=0))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
