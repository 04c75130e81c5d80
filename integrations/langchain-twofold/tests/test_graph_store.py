"""``TwofoldStore`` of LangGraph: what its own stores do, and what they get wrong."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp

import twofold
from langchain_twofold import TwofoldStore
from twofold import Access
from twofold.testing import FakeClock

MODES = ("hybrid", "vector", "keyword")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(texts: Sequence[str]) -> list[list[float]]:
    """How often each letter is in a text, and one more number so that none is all zero."""
    return [[0.01, *(float(text.lower().count(letter)) for letter in LETTERS)] for text in texts]


def cosine(one: str, other: str) -> float:
    a, b = (np.array(vector) for vector in letters([one, other]))
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def index(**more: Any) -> Any:
    return {"dims": 27, "embed": letters, **more}


@pytest.fixture
def store() -> Iterator[TwofoldStore]:
    with TwofoldStore() as store:
        yield store


@pytest.fixture
def vectors() -> Iterator[TwofoldStore]:
    with TwofoldStore(index=index(fields=["text"]), search_mode="vector") as store:
        yield store


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


# Items


def test_an_item_comes_back_as_it_was_put(store: TwofoldStore) -> None:
    value = {"text": "a kettle", "n": 1, "one": 1.0, "yes": True, "no": None, "deep": {"list": [1, {"é": []}]}}
    store.put(("users", "ann"), "k", value)
    item = store.get(("users", "ann"), "k")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "k", value)
    assert [type(item.value[key]) for key in ("n", "one", "yes")] == [int, float, bool]
    item.value["deep"].clear()
    value["deep"].clear()  # type: ignore[attr-defined]
    again = store.get(("users", "ann"), "k")
    assert again is not None
    assert again.value["deep"] == {"list": [1, {"é": []}]}
    assert store.get(("users", "ann"), "other") is None
    assert store.get(("users", "ben"), "k") is None
    store.delete(("users", "ann"), "k")
    store.delete(("users", "ann"), "never there")
    assert store.get(("users", "ann"), "k") is None


def test_times_have_a_zone_and_an_update_keeps_the_first(tmp_path: Path) -> None:
    """langgraph's SQLite store resets ``created_at`` and counts in naive seconds."""
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with TwofoldStore(clock=clock) as store:
        store.put(("a",), "k", {"n": 1})
        began = clock()
        clock.advance(seconds=0.25)
        store.put(("a",), "k", {"n": 1})  # the same again is a put all the same
        item = store.get(("a",), "k")
        assert item is not None
        assert (item.created_at, item.updated_at) == (began, began + timedelta(milliseconds=250))


def test_what_is_no_json_is_refused_and_nothing_written(store: TwofoldStore) -> None:
    for value in ({"x": math.nan}, {"x": {1, 2}}, {"x": datetime.now(UTC)}, {"x": 2**63}, {1: "x"}):
        with pytest.raises(ValueError, match="metadata"):
            store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", value)])
    assert store.search(()) == []


def test_a_tuple_becomes_a_list(store: TwofoldStore) -> None:
    store.put(("a",), "k", {"pair": (1, 2)})
    assert keys(store.search(("a",), filter={"pair": (1, 2)})) == ["k"]
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"pair": [1, 2]}


# Batches


def test_results_stand_in_the_order_of_operations(store: TwofoldStore) -> None:
    store.put(("a",), "there", {"n": 1})
    results = store.batch(
        [
            PutOp(("a",), "new", {"n": 2}),
            GetOp(("a",), "there"),
            SearchOp(("a",)),
            ListNamespacesOp(),
            GetOp(("a",), "new"),
            PutOp(("a",), "there", None),
        ]
    )
    assert results[0] is results[4] is results[5] is None
    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert keys(results[2]) == ["there"]  # type: ignore[arg-type]
    assert results[3] == [("a",)]
    assert store.get(("a",), "there") is None
    assert store.get(("a",), "new") is not None
    assert store.batch([]) == []


def test_of_several_puts_of_a_key_the_last_counts(store: TwofoldStore) -> None:
    store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", None), PutOp(("a",), "k", {"n": 2})])
    assert store.get(("a",), "k").value == {"n": 2}  # type: ignore[union-attr]
    store.batch([PutOp(("a",), "k", {"n": 3}), PutOp(("a",), "k", None)])
    assert store.get(("a",), "k") is None


def test_a_failed_batch_changes_nothing(store: TwofoldStore) -> None:
    """langgraph's SQLite store commits the first half."""
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match="JSON"):
        store.batch([PutOp(("a",), "k", None), PutOp(("a",), "bad", {"x": {1}})])
    assert store.get(("a",), "k").value == {"n": 1}  # type: ignore[union-attr]


async def test_batches_are_alike_in_async(store: TwofoldStore) -> None:
    await store.abatch([PutOp(("a",), "1", {"n": 1}), PutOp(("a",), "2", {"n": 2})])
    found, listed, missing = await store.abatch(
        [GetOp(("a",), "1"), SearchOp(("a",), filter={"n": 2}), GetOp(("a",), "3")]
    )
    assert (found.key, keys(listed), missing) == ("1", ["2"], None)  # type: ignore[union-attr, arg-type]
    with pytest.raises(ValueError, match="JSON"):
        await store.abatch([PutOp(("a",), "1", None), PutOp(("a",), "bad", {"x": {1}})])
    assert await store.aget(("a",), "1") is not None


# Namespaces


PATHS = [
    ("users", "ann"), ("users", "ann", "notes"), ("users", "anna"), ("users", "malice"), ("Users", "ann"),
    ("usersx",), ("docs", "ann"), ("users", "%"), ("users", "a_n"), ("users", "*"), ("users", "[ab]"),
    ("users", "ann\n"),
]  # fmt: skip


@pytest.fixture
def filled(store: TwofoldStore) -> TwofoldStore:
    for path in PATHS:
        store.put(path, "k", {"text": "a kettle", "at": list(path)})
    return store


@pytest.mark.parametrize("query", [None, "", "kettle"])
@pytest.mark.parametrize("prefix", [(), *PATHS, ("users",), ("user",), ("users", "an"), ("nobody",)])
def test_a_search_stays_below_its_prefix(filled: TwofoldStore, prefix: tuple[str, ...], query: str | None) -> None:
    """langchain-ai/langgraph#8300, CVE-2026-71433: whole words, as they are written, whatever they hold."""
    found = filled.search(prefix, query=query, limit=100)
    assert {item.namespace for item in found} == {path for path in PATHS if path[: len(prefix)] == prefix}


def test_a_list_is_a_namespace_too(filled: TwofoldStore) -> None:
    assert len(filled.search(["users", "ann"])) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"prefix": ("users", "ann")}, [("users", "ann"), ("users", "ann", "notes")]),
        ({"suffix": ("ann",)}, [("Users", "ann"), ("docs", "ann"), ("users", "ann")]),
        ({"prefix": ("*", "ann"), "suffix": ("notes",)}, [("users", "ann", "notes")]),
        ({"prefix": ("use",)}, []),
        ({"prefix": ("users", "%")}, [("users", "%")]),
        ({"prefix": ("users", "a_n")}, [("users", "a_n")]),
        ({"suffix": ("*", "notes")}, [("users", "ann", "notes")]),
        ({"max_depth": 1}, [("Users",), ("docs",), ("users",), ("usersx",)]),
        ({"max_depth": 1, "limit": 2, "offset": 1}, [("docs",), ("users",)]),
    ],
)
async def test_listing_namespaces(filled: TwofoldStore, arguments: dict[str, Any], expected: list[Any]) -> None:
    assert filled.list_namespaces(**arguments) == expected
    assert await filled.alist_namespaces(**arguments) == expected


def test_several_conditions_of_a_kind_must_all_hold(filled: TwofoldStore) -> None:
    conditions = (MatchCondition("prefix", ("users",)), MatchCondition("prefix", ("*", "ann")))
    (found,) = filled.batch([ListNamespacesOp(conditions, limit=1, offset=1)])
    assert found == [("users", "ann", "notes")]


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("a\0",), (1,), "users", ("langgraph", "x")])
def test_namespaces_that_are_none(store: TwofoldStore, namespace: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        store.put(namespace, "k", {})
    if namespace not in ((), ("langgraph", "x")):
        for op in (GetOp(namespace, "k"), PutOp(namespace, "k", {}), SearchOp(namespace)):
            with pytest.raises(ValueError, match="namespace"):
                store.batch([op])
    assert store.search(()) == []


def test_an_access_keeps_users_apart() -> None:
    with twofold.open(":memory:") as shared:
        anns, bens = (TwofoldStore(shared, access=Access(user=user)) for user in ("ann", "ben"))
        anns.put(("notes",), "k", {"text": "ann's kettle"})
        assert bens.get(("notes",), "k") is None
        assert bens.search((), query="kettle") == bens.search(()) == []
        assert bens.list_namespaces() == []
        bens.delete(("notes",), "k")
        assert anns.get(("notes",), "k") is not None


# Filters


ITEMS: dict[str, dict[str, Any]] = {
    "one": {"n": 1, "word": "a", "tags": ["x", "y"], "deep": {"er": 1, "more": 2}, "kebab-case": 1, "1st": 1},
    "two": {"n": 2, "word": "it's", "tags": ["y"], "deep": {"er": 2}},
    "half": {"n": 0.5, "word": "b"},
    "true": {"n": True},
    "null": {"n": None},
    "none": {"other": 1},
}


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({}, set(ITEMS)),
        ({"n": 1}, {"one"}),
        ({"n": 1.0}, {"one"}),
        ({"n": True}, {"true"}),
        ({"n": {"$eq": 1}}, {"one"}),
        ({"n": {"$ne": 1}}, set(ITEMS) - {"one"}),
        ({"n": {"$gt": 0.5}}, {"one", "two"}),
        ({"n": {"$gte": 0.5, "$lt": 2}}, {"half", "one"}),
        ({"n": {"$lte": 1}}, {"half", "one"}),
        ({"n": {"$in": [1, True]}}, {"one", "true"}),
        ({"n": {"$in": []}}, set()),
        ({"n": {"$nin": [1, 2]}}, {"half", "true", "null", "none"}),
        ({"n": {"$exists": True}}, {"one", "two", "half", "true", "null"}),
        ({"n": None}, {"null", "none"}),
        ({"n": {"$ne": None}}, {"one", "two", "half", "true"}),
        ({"tags": ["y"]}, {"two"}),
        ({"tags": {"$eq": ["y"]}}, {"two"}),
        ({"tags": {"$contains": "x"}}, {"one"}),
        ({"deep": {"er": 1}}, {"one"}),
        ({"deep": {"er": {"$gt": 1}}}, {"two"}),
        ({"deep.er": 2}, {"two"}),
        ({"kebab-case": 1, "1st": 1}, {"one"}),
        ({"n": 1, "word": "b"}, set()),
        ({"$or": [{"n": 1}, {"word": "b"}]}, {"one", "half"}),
        ({"$and": [{"n": {"$gt": 0}}, {"$not": {"n": 1}}]}, {"half", "two"}),
        ({"$or": []}, set()),
        ({"$and": []}, set(ITEMS)),
        ({"word": "it's"}, {"two"}),
        ({"word": "' UNION SELECT 1 --"}, set()),
        ({"word": "a\0"}, set()),
        ({"word": {"$gt": "a"}}, {"half", "two"}),
        ({"n": math.nan}, set()),
        ({"n": {"$ne": math.nan}}, set(ITEMS)),
        ({"n": {"$gt": math.nan}}, set()),
        ({"n": {"$lt": math.inf}}, {"one", "two", "half"}),
        ({"n": {"$gt": math.inf}}, set()),
        ({"n": {"$gte": -math.inf}}, {"one", "two", "half"}),
        ({"n": {"$lt": -math.inf}}, set()),
        ({"n": {"$lt": 10**100}}, {"one", "two", "half"}),
        ({"n": {"$gt": -(10**400)}}, {"one", "two", "half"}),
        ({"n": 10**100}, set()),
        ({"n": {"$gt": [1]}}, set()),
        ({"n": {"$lt": True}}, set()),
    ],
)
async def test_filters(store: TwofoldStore, filter: dict[str, Any], expected: set[str]) -> None:
    """langchain-ai/langgraph#8759: a list is equal to itself in either spelling."""
    store.batch([PutOp(("a",), key, {"text": "kettle", **value}) for key, value in ITEMS.items()])
    for query in (None, "kettle"):
        assert set(keys(store.search(("a",), query=query, filter=filter))) == expected
        assert set(keys(await store.asearch(("a",), query=query, filter=filter))) == expected


@pytest.mark.parametrize("key", ["x' OR 1=1 --", 'a"b', "a[0]", "", "a..b", "a b", "$.a", 1])
def test_a_key_that_is_none_is_refused(store: TwofoldStore, key: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ii]nvalid filter key"):
        store.search((), filter={key: 1})


@pytest.mark.parametrize(
    "filter",
    [
        {"$nor": []}, {"n": {"$near": 1}}, {"n": {"$gt": 1, "plain": 2}}, {"$or": {"n": 1}}, {"n": {"$in": 1}},
        {"$not": 1}, {"n": {"$exists": 1}}, "n = 1",
    ],
)  # fmt: skip
def test_an_operator_that_is_none_is_refused(store: TwofoldStore, filter: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        store.search((), filter=filter)


# Listing and paging


@pytest.mark.parametrize("query", [None, "note"])
def test_pages_are_exact(store: TwofoldStore, query: str | None) -> None:
    """langchain-ai/langgraph#8977."""
    store.batch([PutOp(("a",), str(n), {"text": f"note {'x' * n}"}) for n in range(10)])
    whole = keys(store.search(("a",), query=query, limit=100))
    assert len(whole) == 10
    for limit in (1, 2, 3, 7):
        pages = [keys(store.search(("a",), query=query, limit=limit, offset=at)) for at in range(0, 12, limit)]
        assert [key for page in pages for key in page] == whole
    assert store.search(("a",), query=query, offset=10) == []
    assert store.search(("a",), query=query, limit=0) == []


def test_without_a_query_the_latest_put_comes_first() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with TwofoldStore(clock=clock, ttl={"refresh_on_read": True}) as store:
        for key in ("first", "second", "third"):
            store.put(("a",), key, {"n": 1}, ttl=60)
            clock.advance(seconds=1)
        store.put(("a",), "first", {"n": 2}, ttl=60)
        for query in (None, ""):
            found = store.search(("a",), query=query)
            assert keys(found) == ["first", "third", "second"]  # and reading does not change it
            assert [item.score for item in found] == [None] * 3


def test_a_backend_that_pages_to_the_end(store: TwofoldStore) -> None:
    """As deepagents does it: a listing in pages of a hundred, then one batch of deletions."""
    store.batch([PutOp(("files",), f"/f{n}", {"content": "x"}) for n in range(250)])
    seen: list[str] = []
    while page := store.search(("files",), query=None, limit=100, offset=len(seen)):
        seen += keys(page)
    assert len(seen) == len(set(seen)) == 250
    store.batch([PutOp(("files",), key, None) for key in seen])
    assert store.search(("files",)) == []


# Searching


@pytest.mark.parametrize("mode", MODES)
async def test_what_fits_best_comes_first(mode: Any) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "kettle", {"text": "a red kettle"})
        store.put(("a",), "door", {"text": "the blue door"})
        found = store.search(("a",), query="red kettle")
        assert found[0].key == "kettle"
        assert isinstance(found[0], SearchItem)
        scores = [item.score for item in found]
        assert all(score is not None and 0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
        assert await store.asearch(("a",), query="red kettle") == found
        assert keys(store.search(("a",), query="red kettle", filter={"text": "the blue door"})) in (["door"], [])


def test_the_score_of_vector_mode_is_the_cosine(vectors: TwofoldStore) -> None:
    texts = {"1": "a red kettle", "2": "zzz", "3": "the door"}
    vectors.batch([PutOp(("a",), key, {"text": text}) for key, text in texts.items()])
    found = {item.key: item.score for item in vectors.search(("a",), query="red door")}
    assert found == pytest.approx({key: cosine("red door", text) for key, text in texts.items()}, abs=1e-3)


def test_a_cosine_below_0_is_shown_as_it_is() -> None:
    def signed(texts: Sequence[str]) -> list[list[float]]:
        return [[-1.0 if "not" in text else 1.0, 0.5] for text in texts]

    with TwofoldStore(index={"dims": 2, "embed": signed, "fields": ["text"]}, search_mode="vector") as store:
        store.put(("a",), "k", {"text": "not so"})
        (found,) = store.search(("a",), query="so")
        assert found.score == pytest.approx((-1 * 1 + 0.5 * 0.5) / (1 + 0.5 * 0.5))


@pytest.mark.parametrize("key", ["fields", "text_fields"])
def test_only_the_configured_fields_are_indexed(key: str) -> None:
    """langchain-ai/langgraph#8808: a secret beside them is neither embedded nor found."""
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return letters(texts)

    with TwofoldStore(index={"dims": 27, "embed": embed, key: ["text", "facts[*].text"]}) as store:  # type: ignore[misc]
        value = {"text": "a kettle", "secret": "swordfish", "facts": [{"text": "it is red"}, {"text": "it whistles"}]}
        store.put(("a",), "k", value)
        assert embedded == ["a kettle", "it is red", "it whistles"]
        store.put(("a",), "k2", {"text": "door"}, index=["secret"])
        assert embedded[3:] == []
    with TwofoldStore(index=index(**{key: ["text"]}), search_mode="keyword") as store:
        store.put(("a",), "k", {"text": "a kettle", "secret": "swordfish"})
        assert store.search(("a",), query="swordfish") == []


def test_the_whole_value_is_indexed_by_default() -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return letters(texts)

    with TwofoldStore(index={"dims": 27, "embed": embed}) as store:
        store.put(("a",), "k", {"b": "ü", "a": 1})
    assert embedded == ['{"a": 1, "b": "ü"}']


@pytest.mark.parametrize("mode", MODES)
def test_a_put_says_what_is_indexed(mode: Any) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "off", {"text": "zebra"}, index=False)
        store.put(("a",), "other", {"text": "kettle", "title": "zebra"}, index=["title"])
        assert keys(store.search(("a",), query="zebra")) == ["other"]
        assert set(keys(store.search(("a",)))) == {"off", "other"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", ["fewer", "off", "deleted", "deleted and put"])
def test_old_text_is_never_found_again(mode: Any, after: str) -> None:
    """langchain-ai/langgraph#8757."""
    with TwofoldStore(index=index(fields=["parts[*]"]), search_mode=mode) as store:
        store.put(("a",), "k", {"parts": ["kettle", "zebra"]})
        assert keys(store.search(("a",), query="zebra")) == ["k"]
        if "deleted" in after:
            store.delete(("a",), "k")
        if after != "deleted":
            store.put(("a",), "k", {"parts": ["kettle"]}, index=False if after == "off" else None)
        found = store.search(("a",), query="zebra")
        if mode == "keyword" or after in ("off", "deleted"):
            assert found == []
        elif mode == "vector":
            assert [item.score for item in found] == [pytest.approx(cosine("zebra", "kettle"), abs=1e-3)]
        assert store.store.check().ok


@pytest.mark.parametrize("mode", MODES)
def test_an_item_of_many_parts_takes_one_place(mode: Any) -> None:
    """langgraph's SQLite store cuts before it pools."""
    with TwofoldStore(index=index(fields=["parts[*]"]), search_mode=mode) as store:
        store.put(("a",), "many", {"parts": ["red kettle"] * 10})
        for n in range(4):
            store.put(("a",), str(n), {"parts": [f"red kettle {'z' * (n + 1)}"]})
        found = store.search(("a",), query="red kettle", limit=3)
        assert len(set(keys(found))) == 3
        assert len(store.search(("a",), query="red kettle", limit=3, offset=3)) == 2


def test_an_item_is_as_near_as_its_nearest_part() -> None:
    with TwofoldStore(index=index(fields=["parts[*]"]), search_mode="vector") as store:
        store.put(("a",), "k", {"parts": ["zebra", "kettle"]})
        (found,) = store.search(("a",), query="kettle")
        assert found.score == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_an_update_is_searched_anew(mode: Any) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "k", {"text": "zebra"})
        (before,) = store.search(("a",), query="zebra")
        store.put(("a",), "k", {"text": "kettle"})
        after = store.search(("a",), query="zebra")
        assert [item for item in after if item.score >= before.score] == []  # type: ignore[operator]


TONGUES = ["这是中文", "これは日本語です", "한국어 문장", "Русский текст", "हिन्दी पाठ", "naïve café"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_every_tongue_finds_itself_first(mode: Any) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.batch([PutOp(("a",), text, {"text": text}) for text in TONGUES])
        for text in TONGUES:
            assert store.search(("a",), query=text)[0].key == text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " ", "!!!", "'; DROP TABLE records; --", "x" * 10_000, "a AND", '"', "%", "\0"])
def test_any_query_may_be_asked(mode: Any, query: str) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "k", {"text": "kettle"})
        assert set(keys(store.search(("a",), query=query))) <= {"k"}


def test_without_an_index_keywords_find_whatever_text_there_is(store: TwofoldStore) -> None:
    store.put(("a",), "k", {"title": "ERR_CONN_REFUSED_7", "parts": [{"body": "the proxy is down"}]})
    store.put(("a",), "other", {"title": "all is well"})
    assert keys(store.search(("a",), query="err_conn_refused_7")) == ["k"]
    assert keys(store.search(("a",), query="proxy")) == ["k"]
    assert store.search(("a",), query="title") == []  # a key's name is no text
    assert store.search(("a",), query="zzzz") == []


def test_queries_are_embedded_as_queries() -> None:
    """langchain-ai/langgraph#9007."""
    from langchain_core.embeddings import Embeddings

    class TwoSided(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[0.6, 0.8] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            return [1.0, 0.0]

    with TwofoldStore(index={"dims": 2, "embed": TwoSided()}, search_mode="vector") as store:
        store.put(("a",), "k", {"text": "x"})
        (found,) = store.search(("a",), query="x")
        assert found.score == pytest.approx(1.0 * 0.6)


# The model


class Down:
    """A model that can be turned off."""

    def __init__(self) -> None:
        self.down = False
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.gate.set()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.down:
            raise ConnectionError("connection refused")
        self.entered.set()
        self.gate.wait(60)
        return letters(texts)


async def test_a_model_that_is_down_costs_no_item() -> None:
    model = Down()
    patient = twofold.EmbeddingSettings(failures_to_open=100)
    with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}, embedding=patient) as store:
        model.down = True
        store.put(("a",), "k", {"text": "a kettle"})
        assert keys(store.search(("a",), query="kettle")) == keys(await store.asearch(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.degraded
        model.down = False
        store.store.embed_pending()
        assert store.store.info().pending == 0
    with TwofoldStore(index={"dims": 27, "embed": model}, search_mode="vector") as store:
        model.down = True
        with pytest.raises(twofold.SearchUnavailableError):
            store.search(("a",), query="kettle")


def test_nobody_waits_for_a_model_that_thinks() -> None:
    """langgraph's SQLite store embeds while it holds its lock."""
    model = Down()
    with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}) as store:
        store.put(("a",), "there", {"text": "x"})
        model.entered.clear()
        model.gate.clear()
        putting = threading.Thread(target=store.put, args=(("a",), "slow", {"text": "y"}))
        putting.start()
        assert model.entered.wait(60)
        assert store.get(("a",), "there") is not None
        store.put(("a",), "quick", {"n": 1}, index=False)
        assert store.get(("a",), "slow") is None
        model.gate.set()
        putting.join(60)
        assert store.get(("a",), "slow") is not None


async def test_the_loop_and_other_reads_go_on_meanwhile() -> None:
    model = Down()
    async with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}) as store:
        await store.aput(("a",), "there", {"text": "x"})
        model.entered.clear()
        model.gate.clear()
        putting = asyncio.ensure_future(store.aput(("a",), "slow", {"text": "y"}))
        ticks = 0
        while not (model.entered.is_set() and ticks >= 20):
            ticks += 1
            await asyncio.sleep(0.001)
        assert await store.aget(("a",), "there") is not None
        assert not putting.done()
        model.gate.set()
        await putting
        assert await store.aget(("a",), "slow") is not None


async def test_an_async_function_is_a_model() -> None:
    loops = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        return letters(texts)

    async with TwofoldStore(index={"dims": 27, "embed": embed, "fields": ["text"]}, search_mode="vector") as store:
        await store.aput(("a",), "k", {"text": "kettle"})
        assert keys(await store.asearch(("a",), query="kettle")) == ["k"]
        assert set(loops) == {asyncio.get_running_loop()}
        await asyncio.to_thread(store.put, ("a",), "k2", {"text": "kettles"})
        assert len(await store.asearch(("a",), query="kettle")) == 2


def test_dimensions_that_are_wrong_are_told() -> None:
    with TwofoldStore(index={"dims": 3, "embed": letters, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "kettle"})
        assert keys(store.search(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.has(twofold.DegradationCode.EMBEDDER_BAD_OUTPUT)


def test_vectors_of_two_models_are_not_compared(tmp_path: Path) -> None:
    with TwofoldStore(tmp_path / "s.db", index=index(fields=["text"])) as store:
        store.put(("a",), "k", {"text": "kettle"})
    with TwofoldStore(tmp_path / "s.db", index=index(fields=["text"]), embedding_name="other") as store:
        assert keys(store.search(("a",), query="kettle")) == ["k"]
        assert store.last_result is not None
        assert store.last_result.has(twofold.DegradationCode.SPACE_MISMATCH)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"search_mode": "both"}, "search_mode"),
        ({"search_mode": "vector"}, "model"),
        ({"index": {"dims": 3}}, "embed"),
        ({"index": {"dims": 3, "embed": letters, "distance": "l2"}}, "distance"),
        ({"index": {"dims": 0, "embed": letters}}, "dimension"),
        ({"index": {"dims": 3, "embed": letters, "fields": "text"}}, "fields"),
        ({"embedding_name": "m"}, "no index"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_arguments_that_cannot_be_used_say_why(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TwofoldStore(**arguments)


# Living and expiring


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, tzinfo=UTC))


def test_what_has_expired_is_not_shown_and_can_be_swept(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock) as store:
        store.put(("a",), "short", {"text": "kettle"}, ttl=1)
        store.put(("a",), "long", {"text": "kettle"}, ttl=None)
        clock.advance(minutes=1, seconds=1)
        assert store.get(("a",), "short") is None
        for query in (None, "kettle"):
            assert keys(store.search(("a",), query=query, limit=1)) == ["long"]
        assert store.get(("a",), "short", refresh_ttl=True) is None  # and nothing brings it back
        assert store.sweep_ttl() == 1
        assert store.sweep_ttl() == 0
        assert store.get(("a",), "long") is not None


async def test_reading_lets_an_item_live_longer(clock: FakeClock) -> None:
    reads: list[Callable[[TwofoldStore], Any]] = [
        lambda store: store.get(("a",), "k"),
        lambda store: store.search(("a",)),
        lambda store: store.search(("a",), query="kettle"),
    ]
    for read in reads:
        with TwofoldStore(clock=clock) as store:
            store.put(("a",), "k", {"text": "kettle"}, ttl=1)
            put_at = clock()
            for _ in range(3):
                clock.advance(minutes=0.75)
                assert read(store)
            clock.advance(minutes=0.75)
            item = await store.aget(("a",), "k")
            assert item is not None
            assert (item.created_at, item.updated_at) == (put_at, put_at)
            clock.advance(minutes=0.75)
            assert await store.asearch(("a",), query="kettle")
            clock.advance(minutes=1.25)
            assert await store.aget(("a",), "k") is None


def test_reading_without_letting_it_live_longer(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock, ttl={"refresh_on_read": False, "default_ttl": 1}) as store:
        store.put(("a",), "k", {"n": 1})
        store.put(("a",), "own", {"n": 1}, ttl=3)
        store.put(("a",), "ever", {"n": 1}, ttl=None)
        clock.advance(minutes=0.75)
        assert store.get(("a",), "k") is not None
        clock.advance(minutes=0.5)
        assert set(keys(store.search(("a",)))) == {"own", "ever"}
        clock.advance(minutes=3)
        assert keys(store.search(("a",))) == ["ever"]
        store.put(("a",), "own", {"n": 2}, ttl=1)
        assert store.get(("a",), "own", refresh_ttl=True) is not None


def test_the_sweeper_sweeps_and_stops(clock: FakeClock) -> None:
    with TwofoldStore(clock=clock, ttl={"sweep_interval_minutes": 0.0005}) as store:  # type: ignore[typeddict-item]
        store.put(("a",), "k", {"n": 1}, ttl=1)
        clock.advance(minutes=2)
        ended = store.start_ttl_sweeper()
        assert store.start_ttl_sweeper() is ended
        waited = threading.Event()
        for _ in range(400):
            if store.store.count(include_archived=True) == 0:
                break
            waited.wait(0.01)
        assert store.store.count(include_archived=True) == 0
        assert store.stop_ttl_sweeper(timeout=60)
        assert ended.done()
        assert store.stop_ttl_sweeper()
        with pytest.raises(ValueError, match="sweep_interval_minutes"):
            store.start_ttl_sweeper(-1)


# Async


async def test_thousands_of_operations_at_once(tmp_path: Path) -> None:
    async with TwofoldStore.from_conn_string(tmp_path / "s.db") as store:
        await store.setup()
        count = 600
        await asyncio.gather(*(store.aput(("a", str(n % 7)), str(n), {"n": n}) for n in range(count)))
        found = await asyncio.gather(*(store.aget(("a", str(n % 7)), str(n)) for n in range(count)))
        assert [item.value["n"] for item in found if item is not None] == list(range(count))
        await asyncio.gather(*(store.adelete(("a", str(n % 7)), str(n)) for n in range(0, count, 2)))
        assert len(await store.asearch(("a",), limit=count)) == count // 2


async def test_the_last_put_of_a_tick_counts(store: TwofoldStore) -> None:
    await asyncio.gather(*(store.aput(("a",), "k", {"n": n}) for n in range(20)))
    assert (await store.aget(("a",), "k")).value == {"n": 19}  # type: ignore[union-attr]


async def test_one_that_fails_fails_alone(store: TwofoldStore) -> None:
    good, bad, also = await asyncio.gather(
        store.aput(("a",), "1", {"n": 1}),
        store.aput(("a",), "2", {"n": {1, 2}}),
        store.aput(("a",), "3", {"n": 3}),
        return_exceptions=True,
    )
    assert good is also is None
    assert isinstance(bad, ValueError)
    assert set(keys(await store.asearch(("a",)))) == {"1", "3"}


async def test_what_fails_on_its_way_fails_alone() -> None:
    """What only shows while a batch runs: in vector mode with the model down, searches fail and nothing else."""
    model = Down()
    async with TwofoldStore(index={"dims": 27, "embed": model, "fields": ["text"]}, search_mode="vector") as store:
        await store.aput(("a",), "k", {"text": "x"})
        model.down = True
        searched, got = await asyncio.gather(
            store.asearch(("a",), query="x"), store.aget(("a",), "k"), return_exceptions=True
        )
        assert isinstance(searched, twofold.SearchUnavailableError)
        assert got.key == "k"  # type: ignore[union-attr]


async def test_whoever_is_cancelled_takes_nobody_along(store: TwofoldStore) -> None:
    tasks = [asyncio.ensure_future(store.aput(("a",), str(n), {"n": n})) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    await store.aput(("a",), "after", {"n": 9})
    assert {"0", "2", "after"} <= set(keys(await store.asearch(("a",))))


def test_one_object_serves_several_loops_and_threads(tmp_path: Path) -> None:
    """langchain-ai/langgraph#7857."""
    with TwofoldStore(tmp_path / "s.db") as store:

        async def work(name: str) -> None:
            await asyncio.gather(*(store.aput((name,), str(n), {"n": n}) for n in range(20)))
            store.put((name,), "sync", {"n": 1})  # in a running loop too

        threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(store.search((), limit=1000)) == 3 * 21


# Opening, closing, and who uses it


async def test_from_conn_string(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with TwofoldStore.from_conn_string(path, index=index(fields=["text"]), ttl={"default_ttl": 5}) as store:
        store.setup()
        store.put(("a",), "k", {"text": "kettle"})
    async with TwofoldStore.from_conn_string(path, search_mode="keyword") as store:
        await store.setup()
        assert keys(await store.asearch(("a",), query="kettle")) == ["k"]
    with pytest.raises(twofold.StoreClosedError):
        store.get(("a",), "k")
    with pytest.raises(twofold.StoreClosedError):
        await store.aget(("a",), "k")


def test_a_store_of_yours_stays_open() -> None:
    with twofold.open(":memory:") as own:
        with TwofoldStore(own, index={"fields": ["text"]}) as store:  # type: ignore[typeddict-item]
            store.put(("a",), "k", {"text": "kettle", "secret": "swordfish"})
            assert store.search(("a",), query="swordfish") == []
        assert own.search("kettle").ids == ("k",)
        with pytest.raises(ValueError, match="open already"):
            TwofoldStore(own, index=index())


async def test_a_graph_remembers(store: TwofoldStore) -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime
    from typing_extensions import TypedDict

    class State(TypedDict):
        said: str
        known: int

    def remember(state: State, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        known = runtime.store.search(("said",), query=state["said"])
        runtime.store.put(("said",), state["said"], {"text": state["said"]})
        return {"known": len(known)}

    builder = StateGraph(State)
    builder.add_node("remember", remember)  # type: ignore[arg-type]
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    graph = builder.compile(store=store)
    assert graph.invoke({"said": "a red kettle", "known": 0})["known"] == 0
    assert (await graph.ainvoke({"said": "which kettle", "known": 0}))["known"] == 1


async def test_langmems_tools_run_on_it(store: TwofoldStore) -> None:
    langmem = pytest.importorskip("langmem", reason="langmem is not installed")
    namespace = ("memories", "{langgraph_user_id}")
    config = {"configurable": {"langgraph_user_id": "ann"}}
    manage = langmem.create_manage_memory_tool(namespace, store=store)
    search = langmem.create_search_memory_tool(namespace, store=store)
    manage.invoke({"content": "Ann prefers green tea.", "action": "create"}, config)
    (item,) = store.search(("memories", "ann"))
    assert item.value == {"content": "Ann prefers green tea."}
    assert "green tea" in str(await search.ainvoke({"query": "which tea"}, config))
    assert "green tea" not in str(
        await search.ainvoke({"query": "which tea"}, {"configurable": {"langgraph_user_id": "b"}})
    )
    await manage.ainvoke({"content": "Ann prefers black tea.", "action": "update", "id": item.key}, config)
    assert [each.value["content"] for each in store.search(("memories", "ann"))] == ["Ann prefers black tea."]
    manage.invoke({"action": "delete", "id": item.key}, config)
    assert store.search(("memories",)) == []
