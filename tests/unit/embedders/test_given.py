"""Vectors that the caller brings."""

from __future__ import annotations

from typing import Any

import pytest

from twofold.embedders import Embedder, GivenVectors, embed_checked
from twofold.errors import ConfigurationError


def test_it_names_model_and_dimension() -> None:
    given = GivenVectors("e5", 384)
    assert isinstance(given, Embedder)
    assert (given.fingerprint, given.dimension) == ("given:e5:384", 384)
    assert given.fingerprint != GivenVectors("e5", 768).fingerprint


def test_it_does_not_embed_and_says_what_helps() -> None:
    with pytest.raises(ConfigurationError, match=r"given:e5:384.* pass a vector of 384 numbers"):
        embed_checked(GivenVectors("e5", 384), ["a"], "query")


@pytest.mark.parametrize(("name", "dimension"), [("", 3), (None, 3), ("e5", 0), ("e5", None), ("e5", True)])
def test_it_needs_both(name: Any, dimension: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        GivenVectors(name, dimension)
