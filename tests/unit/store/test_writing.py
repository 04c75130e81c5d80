"""What becomes of what is written: outcomes, times, text and vectors together, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import (
    A,
    Access,
    AccessError,
    AmbiguousIdError,
    ConfigurationError,
    EmbeddingSettings,
    F,
    GivenVectors,
    HybridStore,
    InvalidRecordError,
    InvalidVectorError,
    NewRecord,
    Outcome,
    Owner,
    Progress,
    RecordNotFoundError,
    StoreSettings,
)
from twofold.store import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search
from twofold.testing import FakeClock, FakeEmbedder, FlakyEmbedder

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def embedder() -> FlakyEmbedder:
    return FlakyEmbedder(FakeEmbedder(16))


@pytest.fixture
def store(clock: FakeClock, embedder: FlakyEmbedder) -> Iterator[HybridStore]:
    settings = StoreSettings(clock=clock, embedding=EmbeddingSettings(fill_in=False))
    with twofold.open(":memory:", embedder=embedder, settings=settings) as store:
        yield store


def test_a_record_comes_back_whole(store: HybridStore) -> None:
    metadata = {"z": 1, "a": [True, None, 1.0, {"deep": "x"}], "n": 2**63 - 1}
    added = store.add(
        "the kettle\0boils \ud800",
        id="doc-1",
        kind="episodic",
        namespace=("users", "u1"),
        project="p",
        source="file.txt",
        tags=("one", "two", "one"),
        metadata=metadata,
        payload={"adapter": [1]},
        importance=0.75,
        strength=2.5,
        created_at=START - HOUR,
        event_at=START - 2 * HOUR,
        access=Access(user="u1"),
    )
    assert (added.id, added.outcome, added.pending, added.degradations) == ("doc-1", Outcome.ADDED, False, ())
    record = store.get("doc-1", namespace=("users", "u1"), access=Access(user="u1"))
    assert record is not None
    assert record.text == "the kettle\0boils \ud800"
    assert dict(record.fields) == {"text": record.text}
    assert (record.kind, record.project, record.source, record.tags) == ("episodic", "p", "file.txt", ("one", "two"))
    assert (record.scope, record.owner, record.namespace) == ("personal", "u1", ("users", "u1"))
    assert repr(record.metadata) == repr(metadata)
    assert record.payload == {"adapter": [1]}
    assert (record.importance, record.strength, record.access_count, record.revision) == (0.75, 2.5, 0, 1)
    assert (record.created_at, record.updated_at, record.event_at) == (START - HOUR, START, START - 2 * HOUR)
    assert record.last_accessed == record.created_at


def test_generated_ids_are_unique_and_sort_by_time(store: HybridStore) -> None:
    ids = [store.add("kettle").id for _ in range(20)]
    assert len(set(ids)) == 20
    assert ids == sorted(ids)


def test_adding_an_id_again_replaces_all_but_its_creation(store: HybridStore, clock: FakeClock) -> None:
    """mareforma/mareforma#31."""
    store.add("kettle", id="m1", tags=("urgent",), metadata={"a": 1})
    clock.advance(seconds=60)
    assert store.add("teapot", id="m1").outcome is Outcome.UPDATED
    record = store.get("m1")
    assert record is not None
    assert (record.text, record.tags, dict(record.metadata), record.revision) == ("teapot", (), {}, 2)
    assert (record.created_at, record.updated_at) == (START, START + timedelta(minutes=1))
    for gone in ("kettle", "urgent"):
        assert store.search(gone, mode="keyword").ids == ()
    assert store.search("teapot", mode="keyword").ids == ("m1",)
    assert store.search("teapot", mode="vector")[0].score == pytest.approx(1.0)
    assert store.count() == 1
    assert store.check().ok


def test_adding_the_same_again_writes_and_embeds_nothing(store: HybridStore, embedder: FlakyEmbedder) -> None:
    """simonw/sqlite-utils#149."""
    store.add("kettle", id="m1", metadata={"a": 1})
    before, asked = store.get("m1"), embedder.calls
    again = store.add("kettle", id="m1", metadata={"a": 1})
    assert (again.outcome, again.pending) == (Outcome.UNCHANGED, False)
    assert store.get("m1") == before
    assert embedder.calls == asked
    assert store.add("kettle", id="m1", metadata={"a": True}).outcome is Outcome.UPDATED
    assert store.add("kettle", id="m1", metadata={"a": 1.0}).outcome is Outcome.UPDATED
    assert embedder.calls == asked


def test_adding_an_archived_id_again_brings_it_back_but_changing_it_does_not(store: HybridStore) -> None:
    store.add("kettle", id="m1")
    assert store.archive("m1") == 1
    assert store.get("m1") is None
    store.update("m1", metadata={"a": 1})
    assert store.get("m1") is None
    archived = store.get("m1", include_archived=True)
    assert archived is not None
    assert archived.archived_at == START
    assert dict(archived.metadata) == {"a": 1}
    store.add("kettle", id="m1")
    assert store.get("m1") is not None


def test_an_update_changes_what_is_named(store: HybridStore, embedder: FlakyEmbedder, clock: FakeClock) -> None:
    store.add("kettle", id="m1", tags=("ops",), metadata={"a": 1}, project="p", importance=0.9)
    asked = embedder.calls
    clock.advance(seconds=1)
    assert store.update("m1", project=None, metadata={"b": 2}).outcome is Outcome.UPDATED
    record = store.get("m1")
    assert record is not None
    assert (record.text, record.tags, record.project, dict(record.metadata)) == ("kettle", ("ops",), None, {"b": 2})
    assert (record.importance, record.revision, record.updated_at) == (0.9, 2, START + timedelta(seconds=1))
    assert embedder.calls == asked
    store.update("m1", text="teapot")
    assert embedder.calls == asked + 1
    assert store.search("teapot", mode="vector")[0].score == pytest.approx(1.0)
    assert store.search("kettle", mode="keyword").ids == ()
    assert store.update("m1", text="teapot").outcome is Outcome.UNCHANGED
    with pytest.raises(RecordNotFoundError):
        store.update("nothing", text="x")
    with pytest.raises(InvalidRecordError):
        store.update("m1", text="x", fields={"text": "y"})
    with pytest.raises(InvalidRecordError):
        store.update("m1", importance=2)
    assert store.check().ok


def test_an_update_that_meets_another_one_keeps_both(tmp_path: Any) -> None:
    """The text is embedded outside of the transaction; what others change meanwhile is not undone."""
    path = tmp_path / "s.db"
    meanwhile: list[str] = []

    def embed(texts: list[str], kind: str) -> list[list[float]]:
        if meanwhile:
            store.update("m1", **{meanwhile.pop(): ("changed",)})  # type: ignore[arg-type]
        return [[1.0, float(len(text))] for text in texts]

    with twofold.open(path, embedder=twofold.CallableEmbedder(embed, name="m")) as store:
        store.add("kettle", id="m1")
        meanwhile.append("tags")
        store.update("m1", text="teapot")
        record = store.get("m1")
        assert record is not None
        assert (record.text, record.tags) == ("teapot", ("changed",))
        assert store.check().ok


def test_old_tags_are_not_found(store: HybridStore) -> None:
    """susomejias/rembric#254."""
    store.add("pager note", id="m1", tags=("urgent", "ops"))
    assert store.search("urgent", mode="keyword").ids == ("m1",)
    store.update("m1", tags=("done",))
    assert store.search("urgent", mode="keyword").ids == ()
    assert store.search("done", mode="keyword").ids == ("m1",)
    store.delete("m1")
    assert store.search("done", mode="keyword").ids == ()
    assert store.check().ok


def test_text_without_words_is_stored_and_never_pending(store: HybridStore, embedder: FlakyEmbedder) -> None:
    for text in ("", "  \n"):
        added = store.add(text)
        assert (added.pending, added.degradations) == (False, ())
    assert store.add(fields={}).pending is False
    assert embedder.calls == 0
    assert store.count() == 3
    assert store.search("anything").degraded is False
    with pytest.raises(InvalidRecordError, match="text="):
        store.add()


def test_duplicates_of_a_text(store: HybridStore) -> None:
    first = store.add("the port is 8080", tags=("old",)).id
    assert store.add("the port is 8080").outcome is Outcome.ADDED
    skipped = store.add("the port is 8080", duplicates="skip")
    assert (skipped.outcome, skipped.id) == (Outcome.SKIPPED, first)
    store.delete(where=~(A.id == first))
    updated = store.add("the port is 8080", tags=("new",), duplicates="update")
    assert (updated.outcome, updated.id) == (Outcome.UPDATED, first)
    assert store.add("the port is 8081", duplicates="skip").outcome is Outcome.ADDED
    assert store.add("the port is 8080", duplicates="skip", access=Access(user="u1")).outcome is Outcome.ADDED
    assert store.add("the port is 8080", duplicates="skip", namespace=("n",)).outcome is Outcome.ADDED
    with pytest.raises(ConfigurationError, match="add, skip, update"):
        store.add("x", duplicates="merge")  # type: ignore[arg-type]


def test_an_embedder_that_fails_never_stops_a_write(store: HybridStore, embedder: FlakyEmbedder) -> None:
    store.add("kettle", id="m1")
    embedder.down = True
    report = store.add_many(["teapot", "broker"])
    assert (report.added, report.pending) == (2, 2)
    assert [each.code for each in report.degradations] == ["embedder_unreachable"]
    replaced = store.add("changed text", id="m1")
    assert (replaced.outcome, replaced.pending) == (Outcome.UPDATED, True)
    embedder.down = False
    assert store.search("kettle", mode="vector").ids == ()  # the old text's vector went with the text
    assert store.info().pending == 3
    assert store.add("changed text", id="m1").pending is False
    assert store.info().pending == 2
    assert store.check().ok


def test_one_bad_text_does_not_spoil_its_batch() -> None:
    def embed(texts: list[str], kind: str) -> list[list[float]]:
        return [[0.0, 0.0] if text == "bad" else [1.0, 0.0] for text in texts]

    with twofold.open(":memory:", embedder=twofold.CallableEmbedder(embed, name="m", dimension=2)) as store:
        report = store.add_many([{"text": "good", "id": "g"}, {"text": "bad", "id": "b"}, {"text": "fine", "id": "f"}])
        assert (report.added, report.pending) == (3, 1)
        assert [each.code for each in report.degradations] == ["embedder_bad_output"]
        assert set(store.search("x", mode="vector").ids) == {"g", "f"}
        assert store.check().ok


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0], [1.0, 2.0, 3.0], []])
def test_a_vector_that_cannot_be_ranked_is_refused_and_nothing_is_written(vector: list[float]) -> None:
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add("kettle", id="m1", vector=[1.0, 0.0])
        with pytest.raises(InvalidVectorError):
            store.add("teapot", id="m1", vector=vector)
        with pytest.raises(InvalidVectorError):
            store.add_many([NewRecord(text="a", vector=[1.0, 0.0]), NewRecord(text="b", vector=vector)])
        record = store.get("m1")
        assert record is not None
        assert record.text == "kettle"
        assert store.count() == 1


def test_given_vectors_are_neither_kept_nor_changed() -> None:
    mine = np.array([3.0, 4.0])
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add("kettle", id="m1", vector=mine)
        mine[:] = [0.0, 1.0]
        hit = store.search("", vector=[3.0, 4.0], mode="vector")[0]
        assert hit.score == pytest.approx(1.0)


def test_several_parts_score_by_their_best() -> None:
    with twofold.open(":memory:", embedder=GivenVectors("v", 2)) as store:
        store.add(fields={"text": ["a", "b"]}, id="two", vector={"text": [[1.0, 0.0], [0.0, 1.0]]})
        store.add("c", id="one", vector=[0.6, 0.8])
        hits = store.search("", vector=[0.0, 1.0], mode="vector")
        assert [(hit.id, pytest.approx(hit.score)) for hit in hits] == [("two", 1.0), ("one", 0.8)]
        record = store.get("two")
        assert record is not None
        assert record.fields == {"text": ("a", "b")}


def test_a_store_with_several_fields() -> None:
    settings = StoreSettings(fields=("context", "action", "result"), field_weights={"action": 2.0})
    with twofold.open(":memory:", embedder=FakeEmbedder(16), settings=settings) as store:
        store.add(fields={"result": "it boiled", "context": "in the kitchen"}, id="m1")
        store.add(fields={"action": "boiled the kettle"}, id="m2")
        record = store.get("m1")
        assert record is not None
        assert record.fields == {"context": "in the kitchen", "result": "it boiled"}
        assert store.search("boiled", mode="keyword").ids == ("m2", "m1")
        assert store.search("in the kitchen", mode="vector")[0].score == pytest.approx(1.0)
        store.update("m1", fields={"result": "it froze"})
        record = store.get("m1")
        assert record is not None
        assert record.fields == {"context": "in the kitchen", "result": "it froze"}
        with pytest.raises(InvalidRecordError, match="context"):
            store.add("text")
        with pytest.raises(InvalidRecordError, match="weather"):
            store.add(fields={"weather": "fine"})
        assert store.check().ok


# -- add_many --------------------------------------------------------------------------------------------------------


def test_many_records_of_every_form(store: HybridStore) -> None:
    stored = store.get(store.add("from elsewhere", id="copy", tags=("t",)).id)
    assert stored is not None
    progress: list[Progress] = []
    records = ["plain text", {"text": "a dict", "id": "d", "tags": ("x",)}, NewRecord(text="a record", id="n"), stored]
    report = store.add_many(records, batch_size=3, progress=progress.append)
    assert report.ids[1:] == ("d", "n", "copy")
    assert (report.added, report.updated, report.unchanged, report.skipped, report.pending) == (3, 0, 1, 0, 0)
    assert progress == [Progress(3, 4), Progress(4, 4)]
    assert store.add_many([]).ids == ()


def test_within_one_call_the_last_of_an_id_wins(store: HybridStore) -> None:
    report = store.add_many([{"text": "first", "id": "m"}, {"text": "second", "id": "m"}])
    assert (report.added, report.updated, report.ids) == (1, 1, ("m", "m"))
    record = store.get("m")
    assert record is not None
    assert record.text == "second"
    assert store.search("second", mode="vector")[0].score == pytest.approx(1.0)
    assert store.check().ok


def test_a_list_is_checked_as_a_whole_before_anything_is_written(store: HybridStore) -> None:
    wrong: list[Any] = ["fine"] * 5 + [{"text": "x", "importance": 7}]
    with pytest.raises(InvalidRecordError, match="importance") as raised:
        store.add_many(wrong, batch_size=2)
    assert raised.value.__notes__ == ["This is record 5 of those given, counted from 0."]
    assert store.count() == 0
    for mistaken in ("one text", {"text": "x"}, NewRecord(text="x")):
        with pytest.raises(ConfigurationError, match="for one use add"):
            store.add_many(mistaken)
    with pytest.raises(ConfigurationError, match="batch_size"):
        store.add_many(["x"], batch_size=0)


def test_a_stream_is_resumed_by_adding_the_same_ids_again(store: HybridStore, embedder: FlakyEmbedder) -> None:
    def stream(stop: int) -> Iterator[dict[str, Any]]:
        for number in range(20):
            if number == stop:
                raise ConnectionError("the source went away")
            yield {"text": f"kettle {number}", "id": f"m{number}"}

    with pytest.raises(ConnectionError):
        store.add_many(stream(11), batch_size=5)
    assert store.count() == 10
    asked = len(embedder.texts)
    report = store.add_many(stream(20), batch_size=5)
    assert (report.unchanged, report.added) == (10, 10)
    assert len(embedder.texts) == asked + 10


def test_stored_records_go_back_to_their_owner_only(store: HybridStore) -> None:
    store.add("secret", id="s", access=Access(user="u1"))
    secret = store.get("s", access=Access(user="u1"))
    assert secret is not None
    with pytest.raises(AccessError):
        store.add_many([secret], access=Access(user="u2"))
    with twofold.open(":memory:") as other:
        other.add_many([secret], access=Access.everything())
        assert other.get("s", access=Access(user="u2")) is None
        assert other.get("s", access=Access(user="u1")) is not None


# -- delete, clear, archive ------------------------------------------------------------------------------------------


def test_deleting_leaves_nothing_behind(store: HybridStore) -> None:
    """oceanbase/powercontext#1469, Synaptic-Labs-AI/PACT-Plugin#1278."""
    for number in range(10):
        store.add(f"kettle {number}", id=f"near{number}")
    store.add("kettle far away", id="g")
    assert store.delete([*(f"near{number}" for number in range(10)), "unknown"]) == 10
    assert store.search("kettle", mode="vector", k=5).ids == ("g",)
    assert store.search("kettle 3", mode="keyword").ids == ("g",)
    assert store.count(include_archived=True) == 1
    assert store.check().ok


def test_deleting_by_source_document_and_by_filter(store: HybridStore) -> None:
    store.add_many([{"text": f"part {n}", "id": f"p{n}", "source": "doc-a" if n < 3 else "doc-b"} for n in range(5)])
    assert store.delete(where=A.source == "doc-a") == 3
    assert [record.id for record in store.list(order="id")] == ["p3", "p4"]
    assert store.delete(where={"x": 1}) == 0
    for wrong in ({}, {"ids": ["p3"], "where": F("x") == 1}):
        with pytest.raises(ConfigurationError):
            store.delete(**wrong)  # type: ignore[arg-type]
    assert store.delete([]) == 0
    assert store.count() == 2


def test_clearing_a_namespace_leaves_its_siblings(store: HybridStore) -> None:
    for namespace in ((), ("a",), ("a", "b"), ("ab",), ("A",)):
        store.add("kettle", namespace=namespace)
    assert store.clear(namespace=("a",)) == 2
    assert store.namespaces() == [(), ("A",), ("ab",)]
    assert store.clear() == 3
    assert store.count() == 0


def test_what_may_be_seen_but_not_written(store: HybridStore) -> None:
    store.add("shared", id="g")
    me = Access(user="u1")
    store.add("mine", id="m", access=me)
    calls: list[Any] = [
        lambda: store.update("g", text="x", access=me),
        lambda: store.delete(["m", "g"], access=me),
        lambda: store.archive(["m", "g"], access=me),
    ]
    for call in calls:
        with pytest.raises(AccessError):
            call()
        assert {record.text for record in store.list(access=me)} == {"shared", "mine"}
    assert store.delete(where=A.kind == "semantic", access=me) == 1
    assert [record.id for record in store.list(access=me)] == ["g"]


# -- list, distinct, namespaces --------------------------------------------------------------------------------------


def test_listing_orders_and_pages(store: HybridStore, clock: FakeClock) -> None:
    for id_, importance in (("a", 0.2), ("b", 0.9), ("c", 0.2)):
        store.add("x", id=id_, importance=importance)
        clock.advance(seconds=1)
    assert [record.id for record in store.list()] == ["c", "b", "a"]
    assert [record.id for record in store.list(order="-importance")] == ["b", "c", "a"]
    assert [record.id for record in store.list(order=("importance", "created_at"))] == ["a", "c", "b"]
    assert [record.id for record in store.list(order="id", limit=1, offset=1)] == ["b"]
    assert store.list(limit=0) == []
    with pytest.raises(ConfigurationError):
        store.list(order="nonsense")
    with pytest.raises(ConfigurationError):
        store.list(limit=-1)


def test_distinct_values_and_namespaces(store: HybridStore) -> None:
    for path in (("users", "u1", "notes"), ("users", "u2", "notes"), ("users", "u1"), ("usersx",), ("a*",)):
        store.add("x", namespace=path, tags=(path[-1],), kind="note")
    store.add("y", namespace=("secret",), access=Access(user="u9"))
    assert list(store.distinct("kind")) == ["note"]
    assert list(store.distinct("tags")) == ["a*", "notes", "u1", "usersx"]
    assert store.namespaces(prefix=("users",)) == [
        ("users", "u1"), ("users", "u1", "notes"), ("users", "u2", "notes"),
    ]  # fmt: skip
    assert store.namespaces(prefix=("users", "*", "notes")) == [("users", "u1", "notes"), ("users", "u2", "notes")]
    assert store.namespaces(suffix=("notes",), limit=1, offset=1) == [("users", "u2", "notes")]
    assert store.namespaces(max_depth=1) == [("a*",), ("users",), ("usersx",)]


# -- batch -----------------------------------------------------------------------------------------------------------


def test_a_batch_reads_the_state_before_it_and_answers_in_order(store: HybridStore) -> None:
    store.add("kettle", id="m1")
    results = store.batch(
        [
            Add(NewRecord(text="teapot", id="m1")),
            Get("m1"),
            Search("kettle", mode="keyword"),
            Delete("m1"),
            ListRecords(),
            Add(NewRecord(text="broker", id="m2")),
            Add(NewRecord(text="broker again", id="m2")),
            Delete("unknown"),
        ]
    )
    assert results[0].outcome is Outcome.UPDATED
    assert results[1].text == "kettle"
    assert results[2].ids == ("m1",)
    assert results[3] is True
    assert [record.id for record in results[4]] == ["m1"]
    assert [results[5].outcome, results[6].outcome] == [Outcome.ADDED, Outcome.UPDATED]
    assert results[7] is False
    assert {record.id: record.text for record in store.list()} == {"m2": "broker again"}
    assert store.search("broker again", mode="vector")[0].score == pytest.approx(1.0)
    assert store.check().ok


def test_namespaces_in_a_batch_are_those_of_before_it(store: HybridStore) -> None:
    paths = [("users", "a", "notes"), ("users", "b", "notes"), ("users", "b", "facts"), ("rooms", "r", "notes")]
    store.add_many([{"text": "kettle", "id": str(number), "namespace": path} for number, path in enumerate(paths)])
    store.add("secret", namespace=("users", "c", "notes"), access=Access(user="u1"))
    asked: list[dict[str, Any]] = [
        {},
        {"prefix": ("users", "*"), "suffix": ("notes",)},
        {"max_depth": 2},
        {"max_depth": 2, "limit": 1, "offset": 1},
        {"prefix": ("none",)},
        {"limit": 0},
    ]
    writes: list[Operation] = [Add(NewRecord(text="pager", id="new", namespace=("new",))), Delete("0", paths[0])]
    reads = [ListNamespaces(**each) for each in asked]
    for access in (Access(), Access(user="u1")):
        expected = [store.namespaces(access=access, **each) for each in asked]
        assert store.batch(reads, access=access) == expected
    before = [store.namespaces(**each) for each in asked]
    assert before[3] == [("users", "a")]
    assert store.batch([*writes, *reads])[2:] == before
    assert store.batch([ListNamespaces()]) == [sorted([("new",), *paths[1:]])]
    mistaken: list[dict[str, Any]] = [{"limit": -1}, {"offset": True}, {"max_depth": "2"}, {"prefix": "users"}]
    for wrong in mistaken:
        with pytest.raises((ConfigurationError, InvalidRecordError)):
            store.batch([ListNamespaces(**wrong)])


def test_a_batch_that_fails_changes_nothing(store: HybridStore) -> None:
    store.add("shared", id="g")
    me = Access(user="u1")
    with pytest.raises(AccessError):
        store.batch([Add(NewRecord(text="mine", id="m")), Delete("g")], access=me)
    assert [record.id for record in store.list(access=me)] == ["g"]
    with pytest.raises(InvalidRecordError):
        store.batch([Add(NewRecord(text="x", id="m")), Add(NewRecord(fields={"other": "y"}))])
    with pytest.raises(ConfigurationError, match="an operation is"):
        store.batch([Add(NewRecord(text="x", id="m")), "delete everything"])  # type: ignore[list-item]
    assert store.count() == 1
    assert store.batch([]) == []


def test_deletes_in_a_row_happen_one_after_the_other(store: HybridStore) -> None:
    """An id may be there of several owners, and each delete takes the first that is left."""
    me = Access(user="u1", rooms=("r1",), write_global=True)
    for scope in ("personal", "room", "global"):
        store.add("kettle", id="a", scope=scope, access=me)
        store.add("teapot", id="a", scope=scope, namespace=("notes",), access=me)
    store.add("broker", id="b", access=me)
    deletes = [Delete("a"), Delete("a", ["notes"]), Delete("b"), Delete("a"), Delete("b"), Delete("a"), Delete("a")]
    assert store.batch(deletes, access=me) == [True, True, True, True, False, True, False]
    left = [(record.id, record.namespace, record.scope) for record in store.list(access=Access.everything())]
    assert sorted(left) == [("a", ("notes",), "global"), ("a", ("notes",), "room")]
    assert store.check().ok


def test_deletes_in_a_row_are_refused_together(store: HybridStore) -> None:
    store.add("shared", id="g")
    me = Access(user="u1")
    store.add("kettle", id="a", access=me)
    with pytest.raises(AccessError, match="'g'"):
        store.batch([Delete("a"), Delete("g")], access=me)
    assert store.count(access=me) == 2
    everything = Access.everything()
    store.add("mine too", id="g", access=me)
    with pytest.raises(AmbiguousIdError, match="2 owners hold the id 'g'"):
        store.batch([Delete("a"), Delete("g")], access=everything)
    assert store.batch([Delete("g", owner=Owner.user("u1")), Delete("g")], access=everything) == [True, True]


# -- marks -----------------------------------------------------------------------------------------------------------


def test_marks_remember_what_was_written_when(store: HybridStore, clock: FakeClock) -> None:
    marks = store.marks
    marks.set("index", ["a", "b"], groups=["x", None])
    first = marks.now()
    clock.advance(seconds=10)
    marks.set("index", ["b", "c"], groups=["x", "y"])
    assert marks.exists("index", ["c", "a", "z"]) == [True, True, False]
    assert marks.exists("other", ["a"]) == [False]
    assert [mark.key for mark in marks.list("index")] == ["a", "b", "c"]
    assert [mark.key for mark in marks.list("index", before=first + 5)] == ["a"]
    assert [mark.key for mark in marks.list("index", after=first)] == ["b", "c"]
    assert [mark.key for mark in marks.list("index", groups=["x"], limit=1)] == ["a"]
    marks.delete("index", ["a", "unknown"])
    assert [mark.key for mark in marks.list("index")] == ["b", "c"]
    mine = store.view(Access(user="u1")).marks
    assert list(mine.list("index")) == []
    mine.set("index", ["b"], time=1.0)
    assert [mark.time for mark in mine.list("index")] == [1.0]
    assert [mark.key for mark in marks.list("index")] == ["b", "c"]
    with pytest.raises(ConfigurationError, match="2 keys but 1 groups"):
        marks.set("index", ["a", "b"], groups=["x"])
