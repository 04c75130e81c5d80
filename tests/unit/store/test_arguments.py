"""Arguments of the wrong type: a clear error that says what to write, and nothing done or ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import twofold
from twofold import (
    Access,
    ConfigurationError,
    GivenVectors,
    HybridStore,
    NewRecord,
    Owner,
    Scope,
    SearchParams,
    StoreSettings,
    TwofoldError,
)
from twofold.store import Add, Delete, Get, ListNamespaces, ListRecords, Search

HUGE = 10**30
SURROGATE = "\ud800"
WRONG = [None, 5, -1, 2.5, True, "x", b"x", [], {}, (), object(), {"a"}, SURROGATE, "\0", HUGE, float("nan"), [5], [[]]]

Call = Callable[[HybridStore, Any], Any]

CALLS: dict[str, Call] = {
    "search": lambda s, v: s.search(v),
    **{f"search {name}": lambda s, v, name=name: s.search("hello", **{name: v})
       for name in ("access", "k", "offset", "where", "mode", "params", "vector")},
    **{f"add {name}": lambda s, v, name=name: s.add("t", **{name: v})
       for name in ("access", "id", "kind", "scope", "room", "namespace", "project", "source", "tags", "metadata",
                    "payload", "importance", "strength", "created_at", "vector", "duplicates")},
    "add fields": lambda s, v: s.add(fields=v),
    "add_many": lambda s, v: s.add_many(v),
    "add_many batch_size": lambda s, v: s.add_many(["q"], batch_size=v),
    "add_many progress": lambda s, v: s.add_many(["q"], progress=v),
    "update": lambda s, v: s.update(v),
    **{f"update {name}": lambda s, v, name=name: s.update("a", **{name: v})
       for name in ("access", "namespace", "owner", "text", "fields", "kind", "project", "source", "tags", "metadata",
                    "payload", "importance", "strength", "event_at", "vector")},
    **{f"{call}": lambda s, v, call=call: getattr(s, call)(v)
       for call in ("get", "get_many", "archive", "restore", "delete", "distinct", "embed_queries", "batch")},
    **{f"{call} {name}": lambda s, v, call=call, name=name: getattr(s, call)(["a"], **{name: v})
       for call in ("get_many", "archive", "restore", "delete") for name in ("access", "namespace", "owner")},
    "view": lambda s, v: s.view(v).count(),
    **{f"list {name}": lambda s, v, name=name: s.list(**{name: v})
       for name in ("access", "where", "order", "limit", "offset", "include_archived")},
    **{f"namespaces {name}": lambda s, v, name=name: s.namespaces(**{name: v})
       for name in ("access", "prefix", "suffix", "max_depth", "limit", "offset")},
    "batch add": lambda s, v: s.batch([Add(v)]),
    "batch get": lambda s, v: s.batch([Get(v)]),
    "batch get namespace": lambda s, v: s.batch([Get("a", v)]),
    "batch get owner": lambda s, v: s.batch([Get("a", (), v)]),
    "batch delete": lambda s, v: s.batch([Delete(v)]),
    "batch search": lambda s, v: s.batch([Search(v)]),
    **{f"batch list {name}": lambda s, v, name=name: s.batch([ListRecords(**{name: v})])
       for name in ("where", "order", "limit", "offset")},
    **{f"batch namespaces {name}": lambda s, v, name=name: s.batch([ListNamespaces(**{name: v})])
       for name in ("prefix", "suffix", "max_depth", "limit", "offset")},
    "marks.set": lambda s, v: s.marks.set(v, ["a"]),
    "marks.set keys": lambda s, v: s.marks.set("n", v),
    "marks.set groups": lambda s, v: s.marks.set("n", ["a"], groups=v),
    "marks.set time": lambda s, v: s.marks.set("n", ["a"], time=v),
    "marks.exists": lambda s, v: s.marks.exists(v, ["a"]),
    "marks.exists keys": lambda s, v: s.marks.exists("n", v),
    "marks.delete": lambda s, v: s.marks.delete(v, ["a"]),
    "marks.delete keys": lambda s, v: s.marks.delete("n", v),
    **{f"marks.list {name}": lambda s, v, name=name: s.marks.list("n", **{name: v})
       for name in ("before", "after", "groups", "limit", "access")},
    **{f"Access {name}": lambda s, v, name=name: s.count(access=Access(**{name: v}))
       for name in ("user", "rooms", "write_global")},
    "Owner.user": lambda s, v: Owner.user(v),
    **{f"open {name}": lambda s, v, name=name: twofold.open(":memory:", **{name: v}).close()
       for name in ("tenant", "embedder", "settings")},
    **{f"StoreSettings {name}":
       lambda s, v, name=name: twofold.open(":memory:", settings=StoreSettings(**{name: v})).close()
       for name in StoreSettings.__dataclass_fields__ if name != "cache_mib"},
    **{f"SearchParams {name}": lambda s, v, name=name: s.search("hello", params=SearchParams(**{name: v}))
       for name in SearchParams.__dataclass_fields__},
}  # fmt: skip


@pytest.fixture
def store() -> Iterator[HybridStore]:
    with twofold.open(":memory:", embedder=GivenVectors("given", 3)) as store:
        store.add("hello world", id="a", tags=("x",), vector=[1, 0, 0])
        yield store


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_whatever_is_passed_only_errors_of_our_own_come_back(store: HybridStore, call: Call) -> None:
    for value in WRONG:
        with suppress(TwofoldError):
            call(store, value)
    assert store.check().ok


@pytest.mark.parametrize("value", [None, 5, 2.5, True, b"x", [], object()])
def test_a_path_that_is_none(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="name of a file"):
        twofold.open(value)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.view("u1"),
        lambda s: s.view(None),
        lambda s: s.list(include_archived="no"),
        lambda s: s.get("a", include_archived=0),
        lambda s: s.search("x", params=SearchParams(trace="no")),
        lambda s: s.namespaces(limit=-1),
        lambda s: s.namespaces(offset=True),
        lambda s: s.namespaces(max_depth=-1),
        lambda s: s.batch([ListRecords(limit=-1)]),
        lambda s: s.batch([ListRecords(offset=True)]),
        lambda s: s.marks.set("n", "abc"),
        lambda s: s.marks.list("n", limit=-1),
        lambda s: s.get("a", owner="u1"),
        lambda s: s.add("t", tags={"k": "v"}),
        lambda s: s.add_many([], duplicates="nonsense"),
        lambda s: s.add_many(["t"], progress="p"),
        lambda s: Access(user="u", write_global="no"),
        lambda s: Access(rooms={"r": 1}),
        lambda s: StoreSettings(read_only="no"),
        lambda s: StoreSettings(clock=5),
        lambda s: StoreSettings(fields=tuple(f"f{n}" for n in range(1001))),
    ],
)
def test_what_python_would_let_pass_is_refused(store: HybridStore, call: Callable[[HybridStore], Any]) -> None:
    with pytest.raises(ConfigurationError):
        call(store)
    assert [record.id for record in store.list()] == ["a"]


def test_as_many_as_there_are_however_large_the_number(store: HybridStore) -> None:
    assert store.search("hello", k=HUGE, params=SearchParams(pool=HUGE)).ids == ("a",)
    assert store.search("hello", mode="keyword", k=HUGE).ids == ("a",)
    assert store.search("", vector=[1, 0, 0], mode="vector", k=HUGE).ids == ("a",)
    assert store.search("hello", offset=HUGE).ids == ()
    assert len(store.list(limit=HUGE)) == 1
    assert store.list(offset=HUGE) == []
    assert store.add_many(["one", "two"], batch_size=HUGE).added == 2


def test_ids_from_any_iterable(store: HybridStore) -> None:
    assert [record.id for record in store.get_many(id_ for id_ in ("a", "b"))] == ["a"]
    assert store.archive({"a"}) == 1
    assert store.restore(("a", "a")) == 1
    assert store.delete(iter(["a"])) == 1


@pytest.mark.parametrize("id_", [SURROGATE, "\0", "a\ud800"])
def test_an_id_that_cannot_be_is_one_that_is_not_there(store: HybridStore, id_: str) -> None:
    assert store.get(id_) is None
    assert store.delete(id_) == 0
    with pytest.raises(twofold.RecordNotFoundError):
        store.update(id_, text="x")
    assert store.batch([Get(id_), Delete(id_)]) == [None, False]


def test_an_empty_filter_deletes_nothing(store: HybridStore) -> None:
    with pytest.raises(ConfigurationError, match="clear"):
        store.delete(where={})
    assert store.count() == 1


def test_a_batch_takes_a_record_in_every_form(store: HybridStore) -> None:
    forms = (NewRecord(text="one", id="1"), {"text": "two", "id": "2"}, "three", store.get("a"))
    added = store.batch([Add(form) for form in forms])
    assert [each.outcome for each in added] == ["added", "added", "added", "unchanged"]
    with pytest.raises(TwofoldError, match="record"):
        store.batch([Add("four"), Add(5)])
    assert store.count() == 4


class Kind(str):
    """Text of a class of its own, which says something else of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"

    __format__ = None  # type: ignore[assignment]


def test_text_of_a_class_of_its_own_is_kept_as_the_text_it_is(store: HybridStore) -> None:
    store.add("t", id=Kind("id"), kind=Kind("kind"), namespace=(Kind("n"), Scope.ROOM), source=Kind("s"))
    record = store.get("id", namespace=("n", "room"))
    assert record is not None
    assert (record.kind, record.source) == ("kind", "s")
    assert [type(value) for value in (record.id, record.kind, *record.namespace)] == [str] * 4
