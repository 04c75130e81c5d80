"""The keyword leg has two ways to keep to what is visible; they give the same records, in the same order, with the
same scores: a join with the rows, and a look-up in the list of visible keys.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.backends.protocol import Visibility
from twofold.backends.sqlite import SqliteBackend
from twofold.config import StoreSettings
from twofold.filters import F
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Access, Owner

WORDS = ("kettle", "teapot", "broker", "pager")
OWNERS = (Owner.everybody(), Owner.user("u1"), Owner.user("u2"), Owner.room("r1"))

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
stored = st.lists(
    st.tuples(texts, st.sampled_from(OWNERS), st.integers(0, 2), st.sampled_from(((), ("a",), ("a", "b")))), max_size=30
)
steps = st.lists(st.tuples(st.sampled_from(("archive", "delete", "replace", "add")), st.integers(0, 40)), max_size=6)
accesses = st.sampled_from(
    (Access(), Access(user="u1"), Access(user="u2", rooms=("r1",)), Access(rooms=("r1",)), Access.everything())
)


@settings(max_examples=60, deadline=None)
@given(records=stored, steps=steps, access=accesses, query=texts, limit=st.integers(0, 12), filtered=st.booleans())
def test_both_ways_agree(
    records: list[Any],
    steps: list[tuple[str, int]],
    access: Access,
    query: str,
    limit: int,
    filtered: bool,
) -> None:
    backend = SqliteBackend.open(":memory:", settings=StoreSettings())
    try:
        where = (F("n") == 1) if filtered else None
        visible = Visibility(access, NEW_YEAR + timedelta(days=1), where)

        def agree() -> None:
            asked = backend.analyzer.query(query)
            index = backend._parts.keyword
            with backend.read() as reader:
                seen = backend._parts.visible_keys.of(reader._connection, reader._head, visible)
                found = [
                    index.search(reader._connection, asked, visible, limit, each, reader._in_order)
                    for each in (None, seen)
                ]
            assert found[0] == found[1]

        with backend.write() as writer:
            keys = [
                writer.insert(
                    make_record(
                        str(number), text, owner=owner, at=NEW_YEAR + timedelta(hours=hour),
                        attributes={"metadata": {"n": hour}, "namespace": namespace},
                    ),
                    None,
                )
                for number, (text, owner, hour, namespace) in enumerate(records)
            ]  # fmt: skip
        agree()
        for number, (step, which) in enumerate(steps):
            with backend.write() as writer:
                if step == "add":
                    keys.append(writer.insert(make_record(f"new{number}", WORDS[which % 4]), None))
                elif keys and step == "archive":
                    writer.set_archived([keys[which % len(keys)]], NEW_YEAR)
                elif keys and step == "delete":
                    writer.delete([keys.pop(which % len(keys))])
                elif keys:
                    writer.replace(keys[which % len(keys)], make_record(f"re{number}", "pager kettle"), None)
            agree()
    finally:
        backend.close()
