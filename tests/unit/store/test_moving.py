"""What is exported by one store and imported by another is the same; and only what its asker sees."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold
from twofold import (
    Access,
    ConfigurationError,
    DegradationCode,
    F,
    InvalidRecordError,
    NewerFormatError,
    Owner,
    Progress,
    ReadOnlyStoreError,
    Record,
    SearchParams,
    StoreSettings,
)
from twofold.testing import FakeEmbedder

EVERYTHING = Access.everything()
ANN, BEN = Access(user="ann", rooms=("r",)), Access(user="ben")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
AT_NEW_YEAR = StoreSettings(clock=lambda: NEW_YEAR)


def filled(path: str | Path = ":memory:") -> twofold.HybridStore:
    """A store with something of everything."""
    store = twofold.open(path, embedder=FakeEmbedder(8), settings=AT_NEW_YEAR)
    store.add(
        "everybody's kettle \0 \u2028 é",
        id="a",
        kind="insight",
        namespace=("n", "m"),
        project="p",
        source="s",
        tags=("t", "u"),
        metadata={"b": [1, 1.0, True, None], "a": {"ü": "x"}},
        payload={"_node": 1},
        importance=0.25,
        strength=2.5,
        created_at=NEW_YEAR - timedelta(days=3, microseconds=1),
        event_at=NEW_YEAR,
        valid_from=NEW_YEAR - timedelta(days=2),
        valid_to=NEW_YEAR + timedelta(days=2),
        expires_at=NEW_YEAR + timedelta(days=9),
    )
    store.add(fields={"text": ["one part", "another \ud83d\ude00 part"]}, id="parts")
    store.add(fields={"text": ""}, id="empty", vector=np.ones(8))
    store.add("ann's own", id="own", access=ANN)
    store.add("ben's own", id="own", access=BEN)
    store.add("of the room", id="room", access=ANN, scope="room", room="r")
    store.add("no more", id="old", access=ANN)
    store.update("own", text="ann's own, changed", access=ANN)
    store.archive("old", access=ANN)
    store.link("own", "a", kind="mine", weight=0.5, access=ANN, target_namespace=("n", "m"))
    store.link("own", "room", access=ANN)
    store.link("own", "parts", access=BEN)
    store.link("parts", "empty", weight=0.125)
    store.link("parts", "own", access=EVERYTHING, target_owner=Owner.user("ben"))
    store.search("kettle", params=SearchParams(touch=True))
    return store


def everything_of(store: twofold.HybridStore) -> list[tuple[Record, Sequence[twofold.Link]]]:
    """Records with the links that lead from them."""
    return [
        (
            record,
            store.links(
                record.id,
                access=EVERYTHING,
                owner=record.belongs_to,
                namespace=record.namespace,
                direction="out",
                include_archived=True,
            ),
        )
        for record in store.list(access=EVERYTHING, include_archived=True)
    ]


def exported(store: twofold.HybridStore, access: Access = EVERYTHING, **options: Any) -> bytes:
    out = io.BytesIO()
    store.export_jsonl(out, access=access, **options)
    return out.getvalue()


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def full() -> Iterator[twofold.HybridStore]:
    with filled() as store:
        yield store


@pytest.fixture
def empty() -> Iterator[twofold.HybridStore]:
    with twofold.open(":memory:", settings=AT_NEW_YEAR) as store:
        yield store


def imported(store: twofold.HybridStore, data: bytes, access: Access = EVERYTHING, **options: Any) -> Any:
    return store.import_jsonl(io.BytesIO(data), access=access, **options)


# -- there and back -----------------------------------------------------------------------------------------------


def test_everything_comes_back_as_it_was(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    data = exported(full, vectors=True)
    report = imported(empty, data)
    assert (report.added, report.links, report.vectors, report.pending, report.failed) == (7, 5, 7, 0, 0)
    assert report.ok
    assert everything_of(empty) == everything_of(full)
    record = empty.get("a", namespace=("n", "m"))
    assert record is not None
    assert repr(record.metadata) == repr({"b": [1, 1.0, True, None], "a": {"ü": "x"}})
    assert (record.access_count, record.payload) == (1, {"_node": 1})
    assert exported(empty, vectors=True).splitlines()[1:] == data.splitlines()[1:]
    assert empty.check().ok
    assert empty.search("kettle", mode="keyword").ids == ("a",)


def test_again_changes_nothing(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    data = exported(full, vectors=True)
    imported(empty, data)
    generation = _generation(empty)
    for options in ({}, {"existing": "skip"}, {"dry_run": True}, {"batch_size": 1}):
        report = imported(empty, data, **options)
        assert (report.added, report.updated, report.unchanged, report.links) == (0, 0, 7, 5)
    assert _generation(empty) == generation
    assert imported(full, data).unchanged == 7


def _generation(store: twofold.HybridStore) -> int:
    with store._backend.read() as reader:
        return reader.generation


def test_the_lines_are_as_documented(full: twofold.HybridStore) -> None:
    header, *records, end = lines(exported(full, vectors=True))
    assert header == {
        "type": "twofold-export",
        "version": 1,
        "exported_at": "2026-01-01T00:00:00.000000Z",
        "fields": ["text"],
        "records": 7,
        "fingerprint": "fake:8",
        "dimension": 8,
    }
    assert end == {"type": "end", "records": 7, "links": 5}
    assert [each["type"] for each in records] == ["record"] * 7 + ["link"] * 5
    first = records[0]
    assert (first["id"], first["created_at"]) == ("a", "2025-12-28T23:59:59.999999Z")
    assert np.frombuffer(base64.b64decode(first["vectors"]["text"][0]), "<f4").shape == (8,)
    plain = lines(exported(full))
    assert "fingerprint" not in plain[0]
    assert not any("vectors" in each for each in plain)


def test_every_attribute_is_written() -> None:
    """One that is added to records must not be lost on the way."""
    with filled() as store:
        written = set(lines(exported(store))[1]) - {"type"}
    assert written == set(Record.__dataclass_fields__) - {"content_hash"}


def test_filters_and_lifecycle(full: twofold.HybridStore) -> None:
    kinds = [each["type"] for each in lines(exported(full, include_archived=False))]
    assert kinds.count("record") == 6
    only = lines(exported(full, where=F("a.ü") == "x"))
    assert [each.get("id") for each in only] == [None, "a", None]
    assert only[-1] == {"type": "end", "records": 1, "links": 0}, "no link leads out of what is written"


# -- who sees what ------------------------------------------------------------------------------------------------


def test_an_export_has_only_what_its_asker_sees(full: twofold.HybridStore) -> None:
    for access, ids, links in (
        (ANN, {"a", "parts", "empty", "own", "room", "old"}, 3),
        (BEN, {"a", "parts", "empty", "own"}, 3),
        (Access(), {"a", "parts", "empty"}, 1),
    ):
        said = lines(exported(full, access, vectors=True))
        assert {each["id"] for each in said if each["type"] == "record"} == ids
        assert said[-1] == {"type": "end", "records": len(ids), "links": links}
        assert said[0]["records"] == len(ids)
    data = exported(full, ANN)
    assert b"ben" not in data
    assert exported(full.view(ANN), ANN) == data


def test_an_import_writes_only_where_its_asker_may(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    empty.add("theirs", id="a", namespace=("n", "m"))
    report = imported(empty, exported(full), BEN)
    assert (report.added, report.links) == (1, 0)
    assert {problem.reason for problem in report.problems} >= {
        "this access may not add records for global",
        "this access may not add records for personal:ann",
        "this access may not add records for room:r",
    }
    assert {(record.id, record.text) for record in empty.list(access=EVERYTHING)} == {
        ("a", "theirs"),
        ("own", "ben's own"),
    }


def test_a_link_to_what_is_hidden_is_one_to_nothing(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    """Whether somebody else's record exists cannot be told from the answer."""
    empty.add("ann's own", id="own", access=ANN)
    empty.add("mine", id="x", access=BEN)
    before = exported(empty)

    def link(source: tuple[str, str | None], target: tuple[str, str | None]) -> dict[str, Any]:
        ends = [
            {"id": id_, "scope": "personal" if owner else "global", "owner": owner} for id_, owner in (source, target)
        ]
        return {"type": "link", "source": ends[0], "target": ends[1], "kind": "k", "weight": 1}

    for dry_run in (False, True):
        reasons = [
            [
                problem.reason.replace("nothing", "own")
                for problem in imported(empty, made(each), BEN, dry_run=dry_run).problems
            ]
            for each in (
                link(("x", "ben"), ("own", "ann")),
                link(("x", "ben"), ("nothing", "ann")),
                link(("own", "ann"), ("x", "ben")),
                link(("nothing", "ann"), ("x", "ben")),
            )
        ]
        assert len(reasons[0]) == 1
        assert reasons[0] == reasons[1] == reasons[2] == reasons[3]
    assert exported(empty).splitlines()[1:] == before.splitlines()[1:]


def made(*items: dict[str, Any], header: dict[str, Any] | None = None, end: bool = True) -> bytes:
    """An export by hand."""
    first = {"type": "twofold-export", "version": 1, "fields": ["text"], **(header or {})}
    counts = {"records": 0, "links": 0}
    last = [{"type": "end", **counts}] if end else []
    return b"".join(json.dumps(each).encode() + b"\n" for each in (first, *items, *last))


def record(id_: str = "x", **more: Any) -> dict[str, Any]:
    return {"type": "record", "id": id_, "fields": {"text": "kettle"}, **more}


# -- what is there already ----------------------------------------------------------------------------------------


def test_the_file_wins_or_the_store_does(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    data = exported(full)
    empty.add("older words", id="own", access=ANN)
    before = empty.get("own", access=ANN)
    assert before is not None
    kept = imported(empty, data, existing="skip")
    assert (kept.added, kept.skipped) == (6, 1)
    assert empty.get("own", access=ANN) == before
    taken = imported(empty, data)
    assert (taken.updated, taken.unchanged) == (1, 6)
    after = empty.get("own", access=ANN)
    assert after is not None
    assert (after.text, after.created_at) == ("ann's own, changed", before.created_at)
    assert after.revision > before.revision, "who is changing it meanwhile must notice"
    assert imported(empty, data).unchanged == 7
    assert empty.search("older", access=ANN).ids == ()
    assert empty.check().ok


def test_twice_in_one_file(empty: twofold.HybridStore) -> None:
    data = made(record(), record(), record(fields={"text": "other"}))
    for dry_run in (True, False):
        report = imported(empty, data, dry_run=dry_run)
        assert (report.added, report.unchanged, report.updated) == (1, 1, 1)
    stored = empty.get("x")
    assert stored is not None
    assert stored.text == "other"


def test_a_dry_run_says_what_would_be_and_writes_nothing(tmp_path: Path, full: twofold.HybridStore) -> None:
    data = exported(full, vectors=True) + b"broken\n"
    with twofold.open(tmp_path / "store.db") as store:
        store.add("older words", id="own", access=ANN)
        generation, before = _generation(store), exported(store).splitlines()[1:]
        said = imported(store, data, dry_run=True)
        assert (_generation(store), exported(store).splitlines()[1:]) == (generation, before)
        done = imported(store, data)
        assert said.dry_run
        assert not done.dry_run
        for name in ("added", "updated", "unchanged", "skipped", "links", "vectors", "pending", "failed", "problems"):
            assert getattr(said, name) == getattr(done, name), name
    with twofold.open(tmp_path / "store.db", settings=StoreSettings(read_only=True)) as store:
        assert imported(store, data, dry_run=True).unchanged == 7
        with pytest.raises(ReadOnlyStoreError):
            imported(store, data)


# -- vectors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("embedder", "taken"),
    [(None, True), (FakeEmbedder(8), True), (FakeEmbedder(4), False)],
)
def test_vectors_are_taken_if_they_can_be_compared(
    full: twofold.HybridStore, embedder: Any, taken: bool, dry_run: bool
) -> None:
    with twofold.open(":memory:", embedder=embedder, settings=AT_NEW_YEAR) as store:
        report = imported(store, exported(full, vectors=True), dry_run=dry_run)
        assert report.added == 7
        assert (report.vectors, report.pending) == ((7, 0) if taken else (0, 6))
        codes = [degradation.code for degradation in report.degradations]
        assert codes == ([] if taken else [DegradationCode.SPACE_MISMATCH])
        if embedder is not None and not dry_run:
            assert store.embed_pending(access=EVERYTHING).embedded == report.pending


def test_without_vectors_they_wait_and_are_made_later(full: twofold.HybridStore) -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder(8), settings=AT_NEW_YEAR) as store:
        report = imported(store, exported(full))
        assert (report.vectors, report.pending) == (0, 6)
        assert store.embed_pending(access=EVERYTHING).embedded == 6, "the import itself asks no embedder"
        assert store.search("ann's own, changed", mode="vector", access=ANN, k=1).ids == ("own",)
        again = imported(store, exported(full))
        assert (again.unchanged, again.pending) == (7, 0)
        assert store.info(access=EVERYTHING).pending == 0, "unchanged text keeps its vectors"


def test_vectors_come_to_records_that_wait_for_them(full: twofold.HybridStore) -> None:
    with twofold.open(":memory:", embedder=FakeEmbedder(8), settings=AT_NEW_YEAR) as store:
        imported(store, exported(full))
        report = imported(store, exported(full, vectors=True))
        assert (report.unchanged + report.updated, report.vectors, report.pending) == (7, 7, 0)
        assert exported(store, vectors=True).splitlines()[1:] == exported(full, vectors=True).splitlines()[1:]


def test_vectors_as_numbers(empty: twofold.HybridStore) -> None:
    header = {"fingerprint": "mine", "dimension": 2}
    assert imported(empty, made(record(vectors={"text": [[0.5, 1]]}), header=header)).vectors == 1
    with empty._backend.read() as reader:
        (stored,) = reader.vectors([1]).values()
    assert stored.by_field["text"].tolist() == [[0.5, 1.0]]


# -- lines that cannot be used ------------------------------------------------------------------------------------

BROKEN: list[tuple[bytes | dict[str, Any], str]] = [
    (b"{", "no valid JSON"),
    (b"\xff\xfe", "not UTF-8: byte 1"),
    (b"[1]", "a JSON object"),
    (b'{"type": "record", "importance": NaN}', "NaN is not JSON"),
    (b'{"type": "record", "id": ' + b"9" * 5000 + b"}", "no valid JSON"),
    (b"[" * 100_000, "nested too deep"),
    ({"type": "recrod"}, "not 'recrod'"),
    ({"type": "twofold-export", "version": 1}, "another export begins here"),
    (record(""), "id is not empty"),
    (record(None), "has an id"),  # type: ignore[arg-type]
    (record("a\0b"), "NUL"),
    (record("\ud800"), "lone surrogate"),
    (record(5), "id is text"),  # type: ignore[arg-type]
    (record(importanse=1), "unknown names in a record: 'importanse'"),
    (record(importance=2), "importance"),
    (record(strength=0), "strength"),
    (record(kind=""), "kind"),
    (record(tags="one"), "tags"),
    (record(metadata=[]), "metadata"),
    (record(metadata={"x": "\0"}), "NUL"),
    (record(metadata={"x": 2**70}), "64 bits"),
    (record(namespace="n"), "namespace"),
    (record(scope="planet"), "scope"),
    (record(scope="personal"), "user"),
    (record(scope="global", owner="ann"), "no such owner"),
    (record(created_at="yesterday"), "created_at is a time"),
    (record(updated_at="2026-01-01T00:00:00"), "no time zone"),
    (record(archived_at=5), "archived_at is a time"),
    (record(access_count=-1), "access_count"),
    (record(access_count=True), "access_count"),
    (record(revision=0), "revision"),
    (record(superseded_by=1), "superseded_by"),
    (record(fields=None), "either fields or fields_base64"),
    (record(fields="text"), "fields is an object"),
    (record(fields={"text": 5}), "text or a list"),
    (record(fields={"other": "x"}), "not 'other'"),
    (record(fields_base64="e30="), "either fields or fields_base64"),
    (record(fields=None, fields_base64="%%%"), "no valid Base64"),
    (record(fields=None, fields_base64="e30"), "no valid Base64"),
    (record(fields=None, fields_base64="fw=="), "cannot be read"),
    (record(vectors={"text": ["AACAPw=="]}), "has 1 numbers, 2 are expected"),
    (record(vectors={"text": ["AAAA"]}), "four bytes a number"),
    (record(vectors={"text": [[0, 0]]}), "all zeros"),
    (record(vectors={"text": []}), "a list of Base64 texts"),
    (record(vectors={"other": [[1, 0]]}), "vectors is an object"),
    (record(vectors={"text": [{"x": 1}]}), "vector"),
    ({"type": "link", "source": {"id": "ok"}}, "a link has a target"),
    ({"type": "link", "source": {"id": "ok"}, "target": {"id": "ok"}, "kind": "k", "weight": 1}, "to itself"),
    ({"type": "link", "source": {"id": "ok"}, "target": {"id": "z"}, "kind": "", "weight": 1}, "kind"),
    ({"type": "link", "source": {"id": "ok"}, "target": {"id": "z"}, "kind": "k", "weight": 2}, "weight"),
    ({"type": "link", "source": {"id": "ok"}, "target": {"id": "z"}, "kind": "k", "weight": 1, "x": 1}, "unknown"),
    ({"type": "link", "source": {"id": "ok"}, "target": {"id": "z"}, "kind": "k", "weight": 1}, "no record 'z'"),
    ({"type": "end", "records": -1, "links": 0}, "records is a whole number"),
]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_broken_line_is_told_and_stops_no_other(empty: twofold.HybridStore, dry_run: bool) -> None:
    header = {"fingerprint": "mine", "dimension": 2}
    first, end = made(header=header).splitlines(keepends=True)
    rows = [first, json.dumps(record("ok")).encode() + b"\r\n"]
    for broken, _ in BROKEN:
        rows += [b"\n", (broken if isinstance(broken, bytes) else json.dumps(broken).encode()) + b"\n"]
    report = imported(empty, b"".join([*rows, json.dumps(record("ok too")).encode() + b"\n", end]), dry_run=dry_run)
    assert [problem.line for problem in report.problems] == [2 * number + 4 for number in range(len(BROKEN))]
    for problem, (broken, reason) in zip(report.problems, BROKEN, strict=True):
        assert reason in problem.reason, broken
        assert len(problem.reason) < 500
    assert (report.added, report.failed, report.ok) == (2, len(BROKEN), False)
    assert empty.count() == (0 if dry_run else 2)


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        json.dumps({"type": "link", "source": {"id": "a"}, "target": {"id": "z"}, "kind": "k", "weight": 1}).encode(),
    ],
)
def test_strict_ends_with_the_first(empty: twofold.HybridStore, broken: bytes) -> None:
    rows = made(record("a"), record("b"), record("c")).splitlines(keepends=True)
    rows.insert(3, broken + b"\n")
    with pytest.raises(InvalidRecordError, match=r"^line 4: "):
        imported(empty, b"".join(rows), strict=True, batch_size=1)
    assert {each.id for each in empty.list()} == {"a", "b"}
    rows[3:4] = []
    assert imported(empty, b"".join(rows), strict=True).unchanged == 2


def test_a_file_that_was_cut_off(full: twofold.HybridStore, empty: twofold.HybridStore) -> None:
    data = exported(full)
    whole = data.splitlines(keepends=True)
    report = imported(empty, b"".join(whole[:-1]))
    assert [(problem.line, "cut off" in problem.reason) for problem in report.problems] == [(len(whole), True)]
    assert report.added == 7
    report = imported(empty, b"".join(whole[:2] + whole[3:]))
    assert "11 lines are left of them" in report.problems[0].reason
    assert imported(empty, data[:-3]).failed == 2, "half a last line"


def test_many_problems_are_counted_and_the_first_kept(empty: twofold.HybridStore) -> None:
    first, end = made().splitlines(keepends=True)
    report = imported(empty, first + b"x\n" * 1_500 + end)
    assert (report.failed, len(report.problems)) == (1_500, 1_000)


def test_a_long_line_is_passed_by(empty: twofold.HybridStore) -> None:
    long = record("long", fields={"text": "x" * 5_000_000})
    report = imported(empty, made(long, record("short")), max_line_bytes=1_000)
    assert [problem.line for problem in report.problems] == [2]
    assert "raise max_line_bytes" in report.problems[0].reason
    assert report.added == 1
    assert imported(empty, made(long)).added == 1


@pytest.mark.parametrize(
    ("data", "error", "reason"),
    [
        (b"", ConfigurationError, "no export of twofold"),
        (b"\0\x01binary" * 10, ConfigurationError, "no export of twofold"),
        (b'{"text": "a line of add"}\n', ConfigurationError, "twofold add --jsonl"),
        (made(header={"version": 2}), NewerFormatError, "its format is 2, this one reads up to 1"),
        (made(header={"version": 0}), ConfigurationError, "version is 1"),
        (made(header={"version": True}), ConfigurationError, "version is 1"),
        (made(header={"fields": []}), ConfigurationError, "fields is a list"),
        (
            made(header={"fields": ["text", "title"]}),
            ConfigurationError,
            r"StoreSettings\(fields=\('text', 'title'\)\)",
        ),
        (made(header={"fingerprint": "x"}), ConfigurationError, "dimension"),
    ],
)
def test_what_is_no_export_is_refused(
    empty: twofold.HybridStore, data: bytes, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        imported(empty, data)
    assert _generation(empty) == 0


def test_a_mark_of_the_encoding_before_the_first_line(empty: twofold.HybridStore) -> None:
    assert imported(empty, b"\xef\xbb\xbf" + made(record())).added == 1


def test_several_fields() -> None:
    settings = StoreSettings(fields=("title", "body"))
    with twofold.open(":memory:", settings=settings, embedder=FakeEmbedder(4)) as store:
        store.add(fields={"body": ["x", "y"], "title": "t"}, id="a")
        store.add(fields={"body": "only"}, id="b")
        data = exported(store, vectors=True)
        with twofold.open(":memory:", settings=settings) as other:
            assert imported(other, data).added == 2
            assert exported(other, vectors=True).splitlines()[1:] == data.splitlines()[1:]
            assert other.check().ok


# -- files and streams --------------------------------------------------------------------------------------------


def test_a_file_appears_whole_and_replaces_nothing_in_silence(tmp_path: Path) -> None:
    with filled(tmp_path / "store.db") as store:
        target = tmp_path / "out.jsonl"
        assert store.export_jsonl(target, access=EVERYTHING).records == 7
        whole = target.read_bytes()
        with pytest.raises(ConfigurationError, match="is there already"):
            store.export_jsonl(target)
        assert target.read_bytes() == whole
        store.export_jsonl(target, overwrite=True)
        assert len(lines(target.read_bytes())) == 1 + 3 + 1 + 1

        def stop(_: Progress) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.export_jsonl(target, overwrite=True, access=EVERYTHING, progress=stop)
        assert len(lines(target.read_bytes())) == 1 + 3 + 1 + 1
        for own in ("store.db", "store.db-wal", "store.db-shm"):
            with pytest.raises(ConfigurationError, match="belongs to the store itself"):
                store.export_jsonl(tmp_path / own, overwrite=True)
        for wrong in (tmp_path, tmp_path / "missing" / "out.jsonl", ""):
            with pytest.raises(ConfigurationError):
                store.export_jsonl(wrong, overwrite=True)
        assert store.check().ok
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.jsonl", "store.db"]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.export_jsonl(io.StringIO()),
        lambda store: store.import_jsonl(io.StringIO("x")),
        lambda store: store.export_jsonl(5),
        lambda store: store.import_jsonl(5),
        lambda store: store.import_jsonl(io.BytesIO(), existing="replace"),
        lambda store: store.import_jsonl(io.BytesIO(), batch_size=0),
        lambda store: store.import_jsonl(io.BytesIO(), max_line_bytes=0),
        lambda store: store.import_jsonl(io.BytesIO(), dry_run="no"),
        lambda store: store.import_jsonl(io.BytesIO(), strict=1),
        lambda store: store.import_jsonl(io.BytesIO(), progress=1),
        lambda store: store.export_jsonl(io.BytesIO(), vectors="yes"),
        lambda store: store.export_jsonl(io.BytesIO(), progress=1),
    ],
)
def test_mistakes(empty: twofold.HybridStore, call: Callable[[twofold.HybridStore], object]) -> None:
    with pytest.raises(ConfigurationError):
        call(empty)


def test_progress_and_batches(empty: twofold.HybridStore) -> None:
    with twofold.open(":memory:") as store:
        store.add_many([{"id": f"{number:04}", "text": f"text {number}"} for number in range(1_200)])
        told: list[Progress] = []
        data = exported(store, progress=told.append)
        assert told == [Progress(done, 1_200) for done in (500, 1_000, 1_200)]
        told.clear()
        seen: list[int] = []

        def step(progress: Progress) -> None:
            told.append(progress)
            seen.append(empty.count())

        imported(empty, data, batch_size=400, progress=step)
        assert told == [Progress(done, 1_200) for done in (400, 800, 1_200)]
        assert seen == [400, 800, 1_200], "told after the commit"


async def test_the_async_twins(tmp_path: Path) -> None:
    with filled() as store:
        await store.aexport_jsonl(tmp_path / "out.jsonl", access=EVERYTHING)
        async with twofold.open(":memory:") as other:
            report = await other.aimport_jsonl(tmp_path / "out.jsonl", access=EVERYTHING)
            assert report.added == 7
            assert await other.apurge(user="ann") == 2
            assert other.get("own", access=EVERYTHING, owner=Owner.user("ben")) is not None
