"""Settings refuse what they cannot do."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from twofold import ConfigurationError, SearchParams, StoreSettings


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool": 0},
        {"pool": 1.5},
        {"pool": True},
        {"rrf_k": -1, "fusion": "rrf"},
        {"rrf_k": math.nan, "fusion": "rrf"},
        {"keyword_weight": -0.1},
        {"vector_weight": math.nan},
        {"vector_weight": math.inf},
        {"keyword_weight": 0, "vector_weight": 0},
        {"min_score": 1.1},
        {"min_score": math.nan},
        {"min_similarity": -1.5},
        {"adjacency": 2},
        {"expand": -1},
        {"expand": 101},
        {"expand": True},
        {"hops": 0},
        {"hops": 6},
        {"link_kinds": "related"},
        {"link_kinds": (1,)},
        {"link_kinds": ("\0",)},
        {"link_kinds": {1: 1.0}},
        {"link_kinds": {"related": 0}},
        {"link_kinds": {"related": 1.1}},
        {"link_kinds": {"related": "much"}},
        {"link_decay": 0},
        {"link_decay": 1.1},
        {"link_fan_out": 0},
        {"link_fan_out": 1001},
        {"touch": "no"},
        {"fusion": "borda"},
        {"fusion": 5},
        {"alpha": -0.1, "fusion": "alpha"},
        {"alpha": 1.1, "fusion": "alpha"},
        {"alpha": math.nan, "fusion": "alpha"},
        {"alpha": 0.5, "fusion": "rrf"},
        {"rrf_k": 20},
        {"rrf_k": 20, "fusion": "alpha"},
        {"alpha": 0.5, "fusion": "additive"},
        {"alpha": 0, "fusion": "alpha", "keyword_weight": 0},
        {"bonus": -1},
        {"rescore": "yes"},
        {"pool_per_k": 0},
        {"keyword_pool": 0},
        {"vector_pool": 1.5},
        {"keyword_operator": "and"},
        {"prior": "before"},
        {"prior_span": 0.6},
        {"importance_weight": -1},
        {"recency_half_life": 0},
        {"retention_half_life": math.inf},
        {"confidence": 1},
        {"project": 5},
        {"project_weight": 0},
        {"project_only": True},
        {"touch_growth": 0.5},
        {"mmr_lambda": 1.1},
        {"mmr_lambda": True},
        {"mmr_pool": 0},
        {"mmr_relevance": "distance"},
        {"rerank": -1},
        {"rerank": 1001},
        {"rerank": True},
        {"hyde": "sometimes"},
        {"hyde_words": 0},
        {"hyde_vector": "mean"},
    ],
    ids=repr,
)
def test_search_params_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        SearchParams(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fields": ()},
        {"fields": "text"},
        {"fields": ("a b",)},
        {"fields": ("text", "TEXT")},
        {"language": ""},
        {"stop_words": "the"},
        {"field_weights": {"text": 0}},
        {"tag_weight": -1},
        {"driver": "apsw"},
        {"synchronous": "OFF"},
        {"busy_timeout": 0},
        {"max_readers": 0},
        {"cache_mib": 0},
        {"keyword_index_from": 0},
        {"keyword_index_from": 1.5},
        {"search": {"pool": 5}},
        {"semantic_links": 0},
        {"semantic_links": 1.1},
        {"touch_flush_seconds": 0},
        {"touch_growth": 0.9},
        {"touch_growth": 11},
        {"rerank_deadline": 0},
        {"rerank_deadline": "long"},
        {"hyde_deadline": 0},
        {"hyde_cache_size": -1},
        {"hyde_prompt": "Write something."},
        {"hyde_prompt": None},
    ],
    ids=repr,
)
def test_store_settings_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        StoreSettings(**wrong)


def test_unknown_settings_are_errors() -> None:
    with pytest.raises(TypeError):
        SearchParams(pol=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        StoreSettings(feilds=("a",))  # type: ignore[call-arg]


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SearchParams().pool = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "values", [{"rrf_k": 1e308}, {"keyword_weight": 1e308}, {"vector_weight": 5e-324}, {"rrf_k": 10**400}]
)
def test_numbers_that_fusion_cannot_add_up_are_refused(values):
    with pytest.raises(ConfigurationError):
        SearchParams(**values)
