"""The public surface as a type checker sees it. Never run: ``mypy`` reads it with the rest."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

import numpy as np

import twofold
from twofold import (
    A,
    Access,
    Added,
    AddReport,
    CallableEmbedder,
    CheckReport,
    ContextBundle,
    ContextTemplate,
    CrossEncoderReranker,
    Degradation,
    Direction,
    Diversity,
    Embedder,
    Explanation,
    ExportReport,
    F,
    Filter,
    GivenVectors,
    Hit,
    HybridStore,
    ImportProblem,
    ImportReport,
    Info,
    LegScore,
    Link,
    LinkKind,
    LinkStep,
    LocalEmbedder,
    Message,
    Mode,
    Neighbor,
    NewRecord,
    Outcome,
    Owner,
    Record,
    Reranked,
    Reranker,
    Scope,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Add, Delete, Get, Search
from twofold.testing import FakeEmbedder


def opening() -> None:
    with twofold.open("memory.db") as store:
        assert_type(store, HybridStore)
    twofold.open(Path("folder"), tenant="acme", embedder="local", settings=StoreSettings(read_only=True))
    twofold.open(":memory:", embedder=GivenVectors("my-model", 3))
    twofold.open(":memory:", embedder=CallableEmbedder(lambda texts: [[1.0] for _ in texts], name="mine"))
    twofold.open("memory.db", read_only=True)  # type: ignore[call-arg]


def embedders() -> list[Embedder]:
    return [LocalEmbedder(), GivenVectors("my-model", 3), FakeEmbedder()]


def writing(store: HybridStore, record: Record) -> None:
    added = store.add(
        "text",
        id="1",
        scope="room",
        room="r1",
        namespace=("users", "u1"),
        tags=["a"],
        metadata={"lang": "en", "nested": {"n": 1}},
        importance=0.9,
        created_at=datetime.now(UTC),
        vector=np.ones(3, dtype=np.float32),
    )
    assert_type(added, Added)
    assert_type(added.outcome, Outcome)
    store.add(fields={"question": "why?", "answer": ["because", "of this"]}, scope=Scope.GLOBAL)
    store.add(b"bytes")  # type: ignore[arg-type]

    report = store.add_many(["text", {"text": "more", "id": "2"}, NewRecord(text="even more"), record])
    assert_type(report, AddReport)
    assert_type(report.ids, tuple[str, ...])
    assert_type(store.update("1", text="new", project=None), Added)
    assert_type(store.delete("1"), int)
    assert_type(store.delete(where=F("lang") == "en"), int)
    assert_type(store.archive(["1", "2"]), int)


def searching(store: HybridStore) -> None:
    result = store.search("query", k=5, mode="keyword", params=SearchParams(trace=True))
    assert_type(result, SearchResult)
    assert_type(result[0], Hit)
    assert_type(result[:3], tuple[Hit, ...])
    assert_type(result.degradations, tuple[Degradation, ...])
    for hit in result:
        assert_type(hit, Hit)
        assert_type(hit.score, float)
        assert_type(hit.text, str)
        assert_type(hit.why, str)
        assert_type(hit.explanation, Explanation)
        assert_type(hit.explanation.legs["keyword"], LegScore)
        assert_type(hit.explanation.reranked, Reranked | None)
        assert_type(hit.explanation.diversity, Diversity | None)
    store.search("query", vector=[0.1, 0.2], access=Access(user="u1", rooms=("r1",)))
    store.search("query", phrasings=["the same"], params=SearchParams(mmr_lambda=0.5, rerank=20, hyde="never"))
    store.search("query", params=SearchParams(hyde="now and then"))  # type: ignore[arg-type]
    store.search("query", limit=5)  # type: ignore[call-arg]


def helped() -> None:
    def lengths(query: str, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    async def later(query: str, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]

    class Model:
        def complete(self, prompt: str) -> str:
            return prompt

    own: Reranker = lengths
    twofold.open("memory.db", reranker=own, hyde=lambda question: question)
    twofold.open("memory.db", reranker=later, hyde=Model())
    twofold.open("memory.db", reranker=CrossEncoderReranker("m", device="cpu"))
    twofold.open("memory.db", reranker=5)  # type: ignore[arg-type]
    twofold.open("memory.db", hyde=5)  # type: ignore[arg-type]


def linking(store: HybridStore) -> None:
    assert_type(store.link("1", "2", kind=LinkKind.RELATED, weight=0.5), bool)
    assert_type(store.link("1", "2", kind="mine", owner=Owner.user("u1"), target_namespace=("n",)), bool)
    assert_type(store.unlink("1", "2"), int)
    assert_type(store.links("1", direction="out", kinds=["mine"]), Sequence[Link])
    found = store.neighbors("1", hops=2, direction=Direction.IN)
    assert_type(found, Sequence[Neighbor])
    assert_type(found[0].path, tuple[LinkStep, ...])
    result = store.search("query", params=SearchParams(expand=3, hops=2, touch=True))
    assert_type(result.linked, tuple[Hit, ...])
    assert_type(result.linked[0].explanation.path, tuple[LinkStep, ...])
    store.add_many(["one", "two"], extracted_together=True)
    store.link("1", "2", strength=0.5)  # type: ignore[call-arg]


def context(store: HybridStore) -> None:
    bundle = store.context(
        "query",
        access=Access(user="u1"),
        messages=[Message("user", "hello", datetime.now(UTC)), {"role": "assistant", "content": "hi"}],
        budget_tokens=1000,
        template="You.",
        zone="Europe/Berlin",
        count_tokens=len,
    )
    assert_type(bundle, ContextBundle)
    assert_type(bundle.as_text(), str)
    assert_type(bundle.as_messages(), list[dict[str, str]])
    assert_type(bundle.memories, tuple[Hit, ...])
    assert_type(bundle.left_out.messages, tuple[Message, ...])
    store.context("query", template=ContextTemplate("{memories}"), params=SearchParams(expand=3))
    store.context("query", messages=["hello"])  # type: ignore[list-item]
    store.context("query", budget=5)  # type: ignore[call-arg]


def moving(store: HybridStore) -> None:
    exported = store.export_jsonl("out.jsonl", access=Access.everything(), where=F("lang") == "en", vectors=True)
    assert_type(exported, ExportReport)
    report = store.import_jsonl(
        Path("out.jsonl"), existing="skip", dry_run=True, progress=lambda step: print(step.done)
    )
    assert_type(report, ImportReport)
    assert_type(report.problems, tuple[ImportProblem, ...])
    store.import_jsonl(io.BytesIO(), existing="replace")  # type: ignore[arg-type]
    assert_type(store.backup("copy.db", overwrite=True), Path)
    assert_type(store.purge("1", namespace=("n",)), int)
    assert_type(store.purge(user="u1"), int)


def filtering(store: HybridStore) -> Filter:
    where = (F("lang") == "en") & (A.kind.in_(["insight"]) | ~F("draft").exists())
    store.search("query", where=where)
    store.search("query", where={"lang": "en", "@kind": {"$in": ["insight"]}})
    assert_type(A(kind="insight", tags_any=["ops"], importance=(0.5, None)), Filter)
    A.colour  # type: ignore[attr-defined]  # noqa: B018
    return where


def looking_up(store: HybridStore) -> None:
    assert_type(store.get("1", owner=Owner.user("u1")), Record | None)
    assert_type(store.get_many(["1", "2"]), list[Record])
    assert_type(store.list(order="-importance", limit=3), list[Record])
    assert_type(store.count(), int)
    assert_type(store.namespaces(prefix=("users", "*")), Sequence[tuple[str, ...]])
    assert_type(store.info(), Info)
    assert_type(store.info().mode, Mode)
    assert_type(store.check(), CheckReport)
    assert_type(store.view(Access(user="u1")), HybridStore)
    store.batch([Get("1"), Search("query"), Add(NewRecord(text="text")), Delete("2")])


async def asynchronously(store: HybridStore) -> None:
    async with store:
        assert_type(await store.asearch("query", k=3), SearchResult)
        assert_type(await store.aadd("text"), Added)
        assert_type(await store.aget("1"), Record | None)
        await store.asearch("query", limit=3)  # type: ignore[call-arg]
