"""Namespaces are boundaries."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

import twofold
from langchain_twofold import TwofoldStore
from twofold import Access

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
