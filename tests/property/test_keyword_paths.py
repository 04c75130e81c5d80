"""The keyword leg has three ways to the same answer: FTS5 joined with the rows, FTS5 with a look-up in the list of
visible keys, and postings in memory: as they were read, with changes beside them, and as they were saved. They give the
same records, in the same order, with the same scores to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.backends.protocol import Candidate, Visibility
from twofold.backends.sqlite import SqliteBackend, keyword, postings_reading
from twofold.backends.sqlite.postings_state import Changes, PostingsState
from twofold.config import StoreSettings
from twofold.filters import F
from twofold.postings import WordIndex
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
    st.tuples(
        st.sampled_from(("archive", "delete", "replace", "add", "anew", "saved")), st.integers(0, 40), texts, queries
    ),
    max_size=6,
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
        StoreSettings(tag_weight=1e-15, field_weights={"text": 1e6}),
        StoreSettings(fields=("question", "answer"), field_weights={"question": 0.7, "answer": 1.3}, tag_weight=0.1),
    )
)


def make_index(backend: SqliteBackend) -> None:
    """What the background does when it is asked for the postings."""
    backend._parts.postings._make(lambda: False)


def take_as_saved(backend: SqliteBackend, state: PostingsState) -> None:
    """Begin again with the index as it was made, given back by its bytes, and what changed since."""
    parts = {name: np.frombuffer(part.tobytes(), part.dtype) for name, part in state.index.parts().items()}
    with backend.read() as session:
        gone = state.changes.records.keys()
        changes = Changes()
        changes.update(backend._parts.postings._reader.records(session._connection, np.array(sorted(gone), np.int64)))
    index = WordIndex.restored(parts)
    backend._parts.postings._state = PostingsState(index, state.generation, state.totals, changes)


@contextmanager
def from_fts5(backend: SqliteBackend) -> Iterator[None]:
    """Nothing is answered from memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend._parts.postings, "holders", lambda *_: None)
        yield


def by_postings(backend: SqliteBackend, query: str, visible: Visibility, limit: int) -> list[Candidate]:
    """The answer from memory, which must be there."""
    asked = backend.analyzer.query(query)
    with backend.read() as session:
        tokens = backend._parts.postings._reader.totals(session._connection)
        holders = backend._parts.postings.holders(
            session._connection, session._head, asked.terms, keyword.match_expression
        )
        assert (holders is not None) == (tokens is not None)
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
    piece=st.sampled_from((1, 5, 50_000)),
)
def test_all_ways_agree(
    records: list[Any],
    steps: list[tuple[str, int, str, str]],
    access: Access,
    query: str,
    limit: int,
    filtered: bool,
    chosen: StoreSettings,
    piece: int,
) -> None:
    backend = SqliteBackend.open(":memory:", settings=replace(chosen, keyword_index_from=10**9))
    where = (F("n") == 1) if filtered else None
    visible = Visibility(access, NEW_YEAR + timedelta(days=1), where)
    everything = replace(visible, where=None)
    anything = replace(everything, access=Access.everything(), include_archived=True)

    def content(text: str) -> str | dict[str, str]:
        return {"question": text, "answer": text[len(text) // 2 :]} if chosen.fields else text

    def agree(*queries: str) -> None:
        for text in queries:
            asked = backend.analyzer.query(text)
            with from_fts5(backend):
                with backend.read() as session:
                    joined = backend._parts.keyword.search(session._connection, asked, visible, limit)
                    backend._parts.visible_keys.of(session._connection, session._head, visible)
                with backend.read() as session:
                    looked_up = session.keyword(asked, visible, limit)
                    scores = session.keyword_scores(asked, [key for key, _ in joined])
                    everybody = session.scan(anything, (), None, 0)
                    every_score = session.keyword_scores(asked, everybody)
                    covered = session.coverage(asked, everything)
            from_memory = by_postings(backend, text, visible, limit)
            with backend.read() as session:
                session.keyword(asked, visible, limit)
                rescored = session.keyword_scores(asked, [key for key, _ in joined])
                assert session.coverage(asked, everything) == covered
            with backend.read() as session:
                assert session.keyword(asked, visible, limit, also=everybody) == joined
                besides = session.keyword_scores(asked, everybody)
                assert besides == {key: score for key, score in every_score.items() if score > 0}
            assert looked_up == joined
            assert from_memory == joined
            assert scores == dict(joined)
            assert rescored == {key: score for key, score in joined if score > 0}

    try:
        with backend.write() as writer:
            keys = [
                writer.insert(
                    make_record(
                        str(number), content(text), owner=owner, at=NEW_YEAR + timedelta(hours=hour),
                        attributes={"metadata": {"n": hour}, "namespace": namespace, "tags": WORDS[:hour]},
                    ),
                    None,
                )
                for number, (text, owner, hour, namespace) in enumerate(records)
            ]  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postings_reading, "TOKENS_AT_A_TIME", piece)
            patch.setattr(postings_reading, "RECORDS_AT_A_TIME", piece)
            patch.setattr(postings_reading, "_TEXT_AT_A_TIME", piece)
            make_index(backend)
        agree(query)
        for number, (step, which, text, asked) in enumerate(steps):
            with backend.write() as writer:
                if step == "add":
                    keys.append(writer.insert(make_record(f"new{number}", content(text)), None))
                elif keys and step == "archive":
                    writer.set_archived([keys[which % len(keys)]], NEW_YEAR)
                elif keys and step == "delete":
                    writer.delete([keys.pop(which % len(keys))])
                elif keys:
                    writer.replace(keys[which % len(keys)], make_record(f"re{number}", content(text)), None)
            state = backend._parts.postings._state
            if step == "anew" or state is None:
                backend._parts.postings._state = None
                make_index(backend)
            elif step == "saved":
                take_as_saved(backend, state)
            agree(asked, query)
    finally:
        backend.close()
