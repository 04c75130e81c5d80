"""The options of ``search`` that change how it ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command

import twofold
from twofold import SearchParams, StoreSettings
from twofold.cli.app import app
from twofold.cli.opening import opened
from twofold.cli.options import params_of
from twofold.testing import TableEmbedder

TABLE = {
    "late": [1.0, 0.0],
    "a late train": [1.0, 0.0],
    "a late train again": [1.0, 0.02],
    "snow on the rails": [0.6, 0.8],
    "snow": [0.6, 0.8],
}

COMMANDS = vars(get_command(app))["commands"]
OLD = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def trains(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command in a folder with a store of three records, and the embedder of its vectors."""
    monkeypatch.setattr("twofold.cli.opening.resolve_embedder", lambda value: TableEmbedder(TABLE))
    monkeypatch.setattr("twofold.store.opening.resolve_embedder", lambda value: value and TableEmbedder(TABLE))
    with twofold.open("twofold.db", embedder="local") as store:
        store.add_many(
            [
                {"id": "train", "text": "a late train"},
                {"id": "again", "text": "a late train again"},
                {"id": "snow", "text": "snow on the rails"},
            ]
        )
    return lambda *arguments: run("search", *arguments, "--embedder", "local")


def ids(found: Any) -> list[str]:
    assert found.code == 0, found.err
    return [row[-2] for row in found.cells]


def test_mmr_brings_other_hits_in(trains: Callable[..., Any]) -> None:
    assert set(ids(trains("late", "-k", 2))) == {"train", "again"}
    assert "snow" in ids(trains("late", "-k", 2, "--mmr", "0.3"))
    found = trains("late", "--mmr", "1.5")
    assert (found.code, found.err) == (2, "twofold: mmr_lambda is from 0 to 1, not 1.5\n")


def test_phrasings_are_asked_too(trains: Callable[..., Any]) -> None:
    assert set(ids(trains("late", "--mode", "keyword"))) == {"train", "again"}
    assert set(ids(trains("late", "--mode", "keyword", "--phrasing", "snow"))) == {"snow", "train", "again"}
    legs = trains("late", "--phrasing", "snow", "--json").json["hits"][0]["legs"]
    assert set(legs) <= {"keyword", "vector", "keyword[2]", "vector[2]"}
    assert "vector[2]" in legs


def test_a_text_that_an_answer_might_say_is_looked_for_by_meaning(trains: Callable[..., Any]) -> None:
    def cosine(*options: str) -> float:
        hits = trains("late", "--json", *options).json["hits"]
        (score,) = (hit["legs"]["vector"]["score"] for hit in hits if hit["record"]["id"] == "snow")
        return float(score)

    assert cosine() == pytest.approx(0.6)
    assert cosine("--hyde", "snow", "--set", "hyde_vector=replace") == pytest.approx(1.0)
    assert 0.6 < cosine("--hyde", "snow") < 1.0
    said = trains("late", "--hyde", "...")
    assert said.code == 0
    assert "hyde_failed" in said.err


def test_any_setting_by_its_name(trains: Callable[..., Any]) -> None:
    assert ids(trains("late", "--set", "vector_weight=0", "--set", "min_score=0.99")) == ["train"]
    alpha = trains("late", "--preset", "engram", "--set", "alpha=0.0", "--json").json["hits"]
    assert [set(hit["legs"]) for hit in alpha] == [{"keyword"}] * 2
    assert ids(trains("late", "--set", "fusion=additive"))
    assert trains("late", "--set", 'link_kinds=["related"]', "--expand", "1").code == 0
    for wrong, said in (
        ("pol=5", "pol: no such setting of a search"),
        ("pool=0", "pool is a whole number of at least 1, not 0"),
        ("pool", "--set is NAME=VALUE, e.g. min_score=0.5, not 'pool'"),
        ("fusion=borda", "fusion is one of"),
        ("trace=yes", "trace is True or False, not 'yes'"),
        ("rrf_k=NaN", "rrf_k is a finite number"),
        ("rrf_k=20", "rrf_k belongs to fusion='rrf': give both"),
    ):
        found = trains("late", "--set", wrong)
        assert found.code == 2
        assert said in found.err
    assert trains("late", "--set", "min_score=2").err.startswith("twofold: min_score is from 0 to 1")


def test_what_is_set_changes_the_preset_that_is_named_else_the_default() -> None:
    assert params_of(None, ["pool=5"]) == SearchParams(pool=5)
    assert params_of("rrf", ["rrf_k=20"]) == SearchParams.preset("rrf", rrf_k=20)


def test_context_takes_settings_too(run: Callable[..., Any], trains: Callable[..., Any]) -> None:
    told = run("context", "late", "--set", "keyword_weight=0", "--embedder", "local").out
    assert "snow on the rails" in told
    told = run("context", "late", "--set", "vector_weight=0", "--embedder", "local").out
    assert "snow on the rails" not in told


def test_a_trace_says_what_was_left_out_and_why(trains: Callable[..., Any]) -> None:
    found = trains("late", "-k", 1, "--mode", "keyword", "--trace")
    assert ids(found) == ["train"]
    stages = [line.split()[0] for line in found.err.splitlines() if not line.startswith("    ")]
    assert stages == ["keyword", "fuse", "hydrate"]
    assert "terms=late" in found.err
    assert "    left out again: behind the page: k is 1\n" in found.err
    told = trains("late", "-k", 1, "--trace", "--json", "--why")
    fuse = next(stage for stage in told.json["trace"] if stage["name"] == "fuse")
    assert fuse["output"] == ["train"]
    assert {"id": "again", "reason": "behind the page: k is 1"} in fuse["dropped"]
    assert told.json["hits"][0]["why"].startswith("keyword rank 1 (bm25 ")
    assert set(trains("late", "--json").json) == {"hits", "degradations"}


def test_a_trace_is_for_what_was_not_found_too(trains: Callable[..., Any]) -> None:
    found = trains("late", "--mode", "keyword", "--set", "min_score=0.99", "--trace")
    assert "    left out again: its score, " in found.err
    nothing = trains("steam", "--mode", "keyword", "--trace")
    assert nothing.code == 1
    assert "keyword" in nothing.err


def test_as_things_stood_then(run: Callable[..., Any], trains: Callable[..., Any]) -> None:
    with twofold.open("twofold.db", embedder=TableEmbedder(TABLE)) as store:
        store.add("a late train", id="gone", valid_to=datetime(2020, 2, 1, tzinfo=UTC), created_at=OLD, valid_from=OLD)
    assert "gone" not in ids(trains("late"))
    assert ids(trains("late", "--as-of", "2020-01-15T00:00:00Z")) == ["gone"]
    told = run("context", "late", "--as-of", "2020-01-15T00:00:00Z", "--embedder", "local", "--json").json
    assert [hit["record"]["id"] for hit in told["memories"]] == ["gone"]
    for wrong, said in (("yesterday", "a time is written"), ("2020-01-15T00:00:00", "time zone")):
        found = trains("late", "--as-of", wrong)
        assert (found.code, said in found.err) == (2, True), found.err


def test_context_searches_in_every_way_that_search_does(run: Callable[..., Any], trains: Callable[..., Any]) -> None:
    search, context = (
        {option for each in COMMANDS[name].params for option in each.opts} for name in ("search", "context")
    )
    assert search - context == {"text", "--offset", "--hops", "--why", "--trace"}

    def told(*more: str) -> list[str]:
        found = run("context", "late", "-k", 2, "--preset", "rrf", "--embedder", "local", "--json", *more).json
        return [hit["record"]["id"] for hit in found["memories"]]

    assert "snow" not in told()
    assert "snow" in told("--mmr", "0.3")
    assert "snow" in told("--mode", "keyword", "--phrasing", "snow")
    assert "snow" in told("--hyde", "snow", "--set", "hyde_vector=replace", "--mode", "vector")
    assert "there is no reranker called" in run("context", "late", "--reranker", "mine").err


def test_a_reranker_by_its_short_form(trains: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class CrossEncoder:
        num_labels = 1

        def __init__(self, name: str, **options: Any) -> None:
            assert name == "mine"

        def predict(self, pairs: list[tuple[str, str]], **options: Any) -> list[float]:
            return [1 / len(text) for _, text in pairs]

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=CrossEncoder))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Sigmoid=lambda: None)))
    found = trains("late", "--reranker", "cross-encoder:mine", "--json").json["hits"]
    assert [(hit["record"]["id"], hit["score"]) for hit in found] == [
        ("train", 1 / 12), ("snow", 1 / 17), ("again", 1 / 18)
    ]  # fmt: skip
    assert "there is no reranker called 'mine'" in trains("late", "--reranker", "mine").err


def test_a_reranker_without_its_library_names_the_extra(
    trains: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    found = trains("late", "--reranker", "cross-encoder")
    assert found.code == 2
    assert "pip install 'twofold[sentence-transformers]'" in found.err


def test_the_command_waits_for_its_reranker_to_be_loaded(
    trains: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace())
    with opened(Path("twofold.db"), None, reranker="cross-encoder") as it:
        assert it.store.settings.rerank_deadline > 60 > StoreSettings().rerank_deadline
