"""The keyword leg has three ways to the same answer: FTS5 joined with the rows, FTS5 with a look-up in the list of
visible keys, and postings in memory. They give the same records, in the same order, with the same scores to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite import SqliteBackend, keyword, keyword_leg, postings
from twofold.config import StoreSettings
from twofold.filters import F
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Owner

WORDS = ("kettle", "teapot", "broker", "pager", "atomic_write_json", "東京タワー", "C++", "E4021", "low-dose", "🔥")
ASKED = (*WORDS, "京", "write", "the", "absent")
OWNERS = (Owner.everybody(), Owner.user("u1"), Owner.user("u2"), Owner.room("r1"))

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
queries = st.lists(st.sampled_from(ASKED), min_size=1, max_size=5).map(" ".join)
stored = st.lists(
    st.tuples(texts, st.sampled_from(OWNERS), st.integers(0, 2), st.sampled_from(((), ("a",), ("a", "b")))), max_size=30
)
steps = st.lists(
    st.tuples(st.sampled_from(("archive", "delete", "replace", "add")), st.integers(0, 40), texts, queries), max_size=6
)
accesses = st.sampled_from(
    (Access(), Access(user="u1"), Access(user="u2", rooms=("r1",)), Access(rooms=("r1",)), Access.everything())
)
weights = st.sampled_from(
    (
        StoreSettings(),
        StoreSettings(tag_weight=0.0),
        StoreSettings(tag_weight=0.1, field_weights={"text": 0.7}),
        StoreSettings(tag_weight=3.0, field_weights={"text": 2.0}),
    )
)


def by_postings(backend: SqliteBackend, query: str, visible: Visibility, limit: int) -> list[Candidate]:
    """The answer from memory, which must be there."""
    asked = backend.analyzer.query(query)
    index = backend._parts.keyword
    with backend.read() as session:
        if session.count(Visibility(Access.everything(), visible.at, include_archived=True)) and asked:
            holders = index.postings.holders(session._connection, session._head, asked.terms, keyword.match_expression)
            assert (
                holders is not None or not session._connection.execute("SELECT sum(parts) FROM records").fetchone()[0]
            )
        return session.keyword(asked, visible, limit)


@settings(max_examples=120, deadline=None)
@given(
    records=stored,
    steps=steps,
    access=accesses,
    query=queries,
    limit=st.integers(0, 12),
    filtered=st.booleans(),
    chosen=weights,
)
def test_all_ways_agree(
    records: list[Any],
    steps: list[tuple[str, int, str, str]],
    access: Access,
    query: str,
    limit: int,
    filtered: bool,
    chosen: StoreSettings,
) -> None:
    backend = SqliteBackend.open(":memory:", settings=chosen)
    where = (F("n") == 1) if filtered else None
    visible = Visibility(access, NEW_YEAR + timedelta(days=1), where)
    everything = replace(visible, where=None)

    def agree(*queries: str) -> None:
        for text in queries:
            asked = backend.analyzer.query(text)
            with backend.read() as session:
                joined = backend._parts.keyword.search(session._connection, asked, visible, limit)
                backend._parts.visible_keys.of(session._connection, session._head, visible)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(keyword_leg, "POSTINGS_FROM", 10**9)
                with backend.read() as session:
                    looked_up = session.keyword(asked, visible, limit)
                    scores = session.keyword_scores(asked, [key for key, _ in joined])
                    covered = session.coverage(asked, everything)
                patch.setattr(keyword_leg, "POSTINGS_FROM", 0)
                from_memory = by_postings(backend, text, visible, limit)
                with backend.read() as session:
                    session.keyword(asked, visible, limit)
                    rescored = session.keyword_scores(asked, [key for key, _ in joined])
                    assert session.coverage(asked, everything) == covered
            assert looked_up == joined
            assert from_memory == joined
            assert scores == dict(joined)
            assert rescored == {key: score for key, score in joined if score > 0}

    try:
        with backend.write() as writer:
            keys = [
                writer.insert(
                    make_record(
                        str(number), text, owner=owner, at=NEW_YEAR + timedelta(hours=hour),
                        attributes={"metadata": {"n": hour}, "namespace": namespace, "tags": WORDS[:hour]},
                    ),
                    None,
                )
                for number, (text, owner, hour, namespace) in enumerate(records)
            ]  # fmt: skip
        agree(query)
        for number, (step, which, text, asked) in enumerate(steps):
            with backend.write() as writer:
                if step == "add":
                    keys.append(writer.insert(make_record(f"new{number}", text), None))
                elif keys and step == "archive":
                    writer.set_archived([keys[which % len(keys)]], NEW_YEAR)
                elif keys and step == "delete":
                    writer.delete([keys.pop(which % len(keys))])
                elif keys:
                    writer.replace(keys[which % len(keys)], make_record(f"re{number}", text), None)
            agree(asked, query)
    finally:
        backend.close()


def test_more_changes_than_are_noted_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_CHANGES", 3)
    monkeypatch.setattr(keyword_leg, "POSTINGS_FROM", 0)
    backend = SqliteBackend.open(":memory:", settings=StoreSettings())
    visible = Visibility(Access(), NEW_YEAR + timedelta(days=1))
    try:
        for round_ in range(6):
            with backend.write() as writer:
                for number in range(round_):
                    writer.insert(make_record(f"{round_}-{number}", f"kettle number {number}"), None)
            asked = backend.analyzer.query("kettle 2")
            with backend.read() as session:
                backend._parts.visible_keys.of(session._connection, session._head, visible)
                found = session.keyword(asked, visible, 50)
                assert found == backend._parts.keyword.search(session._connection, asked, visible, 50)
                assert len(found) == sum(range(round_ + 1))
    finally:
        backend.close()


def test_postings_that_take_too_much_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_CACHED_BYTES", 24 * 3)
    monkeypatch.setattr(keyword_leg, "POSTINGS_FROM", 0)
    backend = SqliteBackend.open(":memory:", settings=StoreSettings())
    visible = Visibility(Access(), NEW_YEAR + timedelta(days=1))
    try:
        with backend.write() as writer:
            for number in range(4):
                writer.insert(make_record(str(number), " ".join(WORDS[: number + 1])), None)
        for word in WORDS[:4]:
            asked = backend.analyzer.query(word)
            with backend.read() as session:
                found = session.keyword(asked, visible, 10)
                assert found == backend._parts.keyword.search(session._connection, asked, visible, 10)
        kept = backend._parts.keyword.postings
        assert list(kept._kept) == [(("broker",), False), (("pager",), False)]
    finally:
        backend.close()
