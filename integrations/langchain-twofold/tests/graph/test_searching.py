"""Searching in the three modes: what is indexed, found and scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import PutOp, SearchItem

from langchain_twofold import TwofoldStore

MODES = ("hybrid", "vector", "keyword")


def keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


@pytest.mark.parametrize("mode", MODES)
async def test_what_fits_best_comes_first(mode: Any, index: Callable[..., Any]) -> None:
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


def test_the_score_of_vector_mode_is_the_cosine(vectors: TwofoldStore, cosine: Callable[[str, str], float]) -> None:
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
def test_only_the_configured_fields_are_indexed(
    key: str, index: Callable[..., Any], letters: Callable[[Sequence[str]], list[list[float]]]
) -> None:
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


def test_the_whole_value_is_indexed_by_default(letters: Callable[[Sequence[str]], list[list[float]]]) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return letters(texts)

    with TwofoldStore(index={"dims": 27, "embed": embed}) as store:
        store.put(("a",), "k", {"b": "ü", "a": 1})
    assert embedded == ['{"a": 1, "b": "ü"}']


@pytest.mark.parametrize("mode", MODES)
def test_a_put_says_what_is_indexed(mode: Any, index: Callable[..., Any]) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "off", {"text": "zebra"}, index=False)
        store.put(("a",), "other", {"text": "kettle", "title": "zebra"}, index=["title"])
        assert keys(store.search(("a",), query="zebra")) == ["other"]
        assert set(keys(store.search(("a",)))) == {"off", "other"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", ["fewer", "off", "deleted", "deleted and put"])
def test_old_text_is_never_found_again(
    mode: Any, after: str, index: Callable[..., Any], cosine: Callable[[str, str], float]
) -> None:
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
def test_an_item_of_many_parts_takes_one_place(mode: Any, index: Callable[..., Any]) -> None:
    """langgraph's SQLite store cuts before it pools."""
    with TwofoldStore(index=index(fields=["parts[*]"]), search_mode=mode) as store:
        store.put(("a",), "many", {"parts": ["red kettle"] * 10})
        for n in range(4):
            store.put(("a",), str(n), {"parts": [f"red kettle {'z' * (n + 1)}"]})
        found = store.search(("a",), query="red kettle", limit=3)
        assert len(set(keys(found))) == 3
        assert len(store.search(("a",), query="red kettle", limit=3, offset=3)) == 2


def test_an_item_is_as_near_as_its_nearest_part(index: Callable[..., Any]) -> None:
    with TwofoldStore(index=index(fields=["parts[*]"]), search_mode="vector") as store:
        store.put(("a",), "k", {"parts": ["zebra", "kettle"]})
        (found,) = store.search(("a",), query="kettle")
        assert found.score == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_an_update_is_searched_anew(mode: Any, index: Callable[..., Any]) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.put(("a",), "k", {"text": "zebra"})
        (before,) = store.search(("a",), query="zebra")
        store.put(("a",), "k", {"text": "kettle"})
        after = store.search(("a",), query="zebra")
        assert [item for item in after if item.score >= before.score] == []  # type: ignore[operator]


TONGUES = ["这是中文", "これは日本語です", "한국어 문장", "Русский текст", "हिन्दी पाठ", "naïve café"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_every_tongue_finds_itself_first(mode: Any, index: Callable[..., Any]) -> None:
    with TwofoldStore(index=index(fields=["text"]), search_mode=mode) as store:
        store.batch([PutOp(("a",), text, {"text": text}) for text in TONGUES])
        for text in TONGUES:
            assert store.search(("a",), query=text)[0].key == text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " ", "!!!", "'; DROP TABLE records; --", "x" * 10_000, "a AND", '"', "%", "\0"])
def test_any_query_may_be_asked(mode: Any, query: str, index: Callable[..., Any]) -> None:
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
