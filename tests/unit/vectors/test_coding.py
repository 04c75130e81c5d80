"""Codes of 4 bits: how far a cosine by them is from the true one, whatever the vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from twofold.vectors import codes as codes_module
from twofold.vectors import faiss_problem
from twofold.vectors.codes import TOGETHER, Codes
from twofold.vectors.coding import LEVELS, Coding, Losses, _Rotation, levels_of

Matrix = npt.NDArray[np.float32]
needs_faiss = pytest.mark.skipif(faiss_problem() is not None, reason="the extra faiss is not installed")


def units_of(vectors: Any) -> Matrix:
    wide = np.asarray(vectors, dtype=np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)


def normal(chance: np.random.Generator, count: int, dimension: int) -> Any:
    return chance.standard_normal((count, dimension))


def sparse(chance: np.random.Generator, count: int, dimension: int) -> Any:
    """A few numbers of a few values: bags of words."""
    return (
        np.where(chance.random((count, dimension)) < 4 / dimension, chance.integers(1, 4, (count, dimension)), 0)
        + (np.eye(dimension)[chance.integers(0, dimension, count)])
    )


def narrow(chance: np.random.Generator, count: int, dimension: int) -> Any:
    """All in one direction, more or less, as some models have it; the first lies in the very middle."""
    mean = 3 * chance.standard_normal(dimension)
    spread = chance.standard_normal((count, dimension))
    spread[0] = 0
    return mean + spread


def equal(chance: np.random.Generator, count: int, dimension: int) -> Any:
    return np.tile(chance.standard_normal(dimension), (count, 1))


def axes(chance: np.random.Generator, count: int, dimension: int) -> Any:
    return np.eye(dimension)[np.arange(count) % dimension] * chance.choice([-1, 1], (count, 1))


def uneven(chance: np.random.Generator, count: int, dimension: int) -> Any:
    """Most in the first numbers, as in models whose vectors may be cut short; a few of quite another kind."""
    vectors = chance.standard_normal((count, dimension)) / np.arange(1, dimension + 1)
    vectors[:3] = chance.standard_normal((3, dimension))[:, ::-1] * np.arange(1, dimension + 1)
    return vectors


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 7, 16, 65, 384, 769])
def test_a_rotation_keeps_products_and_spreads_numbers(dimension: int) -> None:
    rotation = _Rotation(dimension, 4)
    vectors = np.random.default_rng(1).standard_normal((20, dimension)).astype(np.float32)
    turned = rotation.turned(vectors)
    assert turned.dtype == np.float32
    assert turned @ turned.T == pytest.approx(vectors @ vectors.T, abs=1e-5 * dimension)
    assert rotation.turned(vectors[3]).tolist() == turned[3].tolist()
    assert rotation.turned(np.eye(dimension, dtype=np.float32)) @ turned.T == pytest.approx(vectors.T, abs=1e-4)
    for vector in (np.eye(dimension, dtype=np.float32)[0], np.full(dimension, dimension**-0.5, dtype=np.float32)):
        # Numbers of a normal distribution with the variance 1 / d have the fourth moment 3 / d², and none so large.
        spread = rotation.turned(vector) * dimension**0.5
        if dimension >= 65:
            assert np.mean(spread**4) == pytest.approx(3, abs=1.5)
            assert np.abs(spread).max() < 5


@needs_faiss
@pytest.mark.parametrize("kind", [normal, sparse, narrow, equal, axes, uneven])
@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 16, 64, 200, 384, 700])
def test_no_cosine_is_farther_off_than_is_said(
    kind: Callable[[np.random.Generator, int, int], Any], dimension: int
) -> None:
    chance = np.random.default_rng(dimension)
    units = units_of(kind(chance, 20 * TOGETHER, dimension))
    codes = Codes(Coding.for_such(units))
    assert codes.coding.fits(units).all()
    assert codes.add(0, units)
    others = units_of(normal(chance, 6, dimension))
    near = units_of(units[:6] + 0.3 * dimension**-0.5 * normal(chance, 6, dimension))
    queries = [*units[:3], *-units[:3], *others, *near]
    for query, proposed in zip(queries, codes.search(queries, len(units), None, len(units)), strict=True):
        cosines = units.astype(np.float64) @ (query / np.linalg.norm(query.astype(np.float64)))
        for wanted in np.quantile(cosines, [0, 0.1, 0.5, 0.9, 0.99, 1]):
            must = set(np.flatnonzero(cosines >= wanted)) & set(proposed.nodes)
            assert must <= set(proposed.at_least(float(wanted), 0))
        left_out = np.setdiff1d(np.arange(len(units)), proposed.nodes)  # FAISS leaves out who has the least product
        assert all(cosines[left_out] <= proposed.most)
    for query, proposed in zip(queries, codes.search(queries, len(units), None, 40), strict=True):
        cosines = units.astype(np.float64) @ (query / np.linalg.norm(query.astype(np.float64)))
        rest = np.setdiff1d(np.arange(len(units)), proposed.nodes)
        assert cosines[rest].max() <= proposed.most


@needs_faiss
def test_what_is_said_is_not_much_more_than_what_is() -> None:
    chance = np.random.default_rng(3)
    units = units_of(normal(chance, 3200, 384))
    codes = Codes(Coding.for_such(units))
    codes.add(0, units)
    query = units_of(normal(chance, 1, 384))[0]
    (proposed,) = codes.search([query], len(units), None, 3200)
    seems = proposed.products * proposed.step + proposed.question.offset
    off = seems - units[proposed.nodes] @ query
    assert abs(off.mean()) < 0.001
    # A vector loses about 12 % of its length, in any direction: 0.12 / √384 of a product with the query.
    assert float(off.std()) == pytest.approx(0.12 / 384**0.5, rel=0.15)
    assert np.abs(off).max() < proposed.across < 10 * off.std()
    assert 0.04 < proposed.across < 0.06  # docs/explanation/vector-codes.md says so, and the next two
    assert 0 < proposed.losses.short < 0.06
    assert (1 - 0.37**2) ** (382 / 2) < 1e-12


def test_few_that_lose_much_weigh_less_than_many_that_lose_little() -> None:
    def losses(**counts: int) -> float:
        lengths = Losses.none().lengths.copy()
        for name, count in counts.items():
            lengths[int(name[1:])] = count
        return Losses(lengths).across(384)

    assert Losses.none().across(384) == 0
    many, few = losses(b60=1_000_000), losses(b90=1)
    # The share of a sphere that lies so far towards a pole, by its formula: (1 - s²)^(382 / 2) = 10⁻⁶ / n.
    assert many == pytest.approx(61 * 4 / 2048 * (1 - 1e-12 ** (2 / 382)) ** 0.5)
    assert few == pytest.approx(91 * 4 / 2048 * (1 - 1e-6 ** (2 / 382)) ** 0.5)
    assert losses(b60=1_000_000, b90=1) == max(many, few)
    assert losses(b60=1_000_000, b61=1) > many
    lengths = Losses.none().lengths.copy()
    lengths[10] = 5
    assert Losses(lengths).across(2) == 11 * 4 / 2048  # of two numbers nothing is left to chance


def test_a_vector_of_another_kind_does_not_fit_and_any_fits_where_there_is_no_centre() -> None:
    chance = np.random.default_rng(5)
    units = units_of(narrow(chance, 300, 32))
    coding = Coding.for_such(units)
    assert coding.fits(units).all()
    assert not coding.fits(-units).any()
    assert Coding.plain(32).fits(np.concatenate([units, -units])).all()


@needs_faiss
def test_only_whole_groups_are_appended_to_and_only_at_the_end() -> None:
    units = units_of(normal(np.random.default_rng(0), 200, 20))
    codes = Codes(Coding.for_such(units))
    assert codes.add(0, units[:64])
    assert not codes.add(0, units[64:96])
    assert not codes.add(32, units[64:96])
    assert codes.add(64, units[64:100])
    assert not codes.add(100, units[100:132])
    assert codes.count == 100
    at_once = Codes(codes.coding)
    at_once.add(0, units[:100])
    for one, other in zip(*(each.search(list(units[:5]), 100, None, 30) for each in (codes, at_once)), strict=True):
        assert one.nodes.tolist() == other.nodes.tolist()
        assert one.products.tolist() == other.products.tolist()


@needs_faiss
@pytest.mark.parametrize("count", [0, 31, 32, 96, 100])
def test_the_first_of_them_are_saved(count: int) -> None:
    units = units_of(normal(np.random.default_rng(0), 200, 20))
    codes = Codes(Coding.for_such(units))
    codes.add(0, units[:128])
    again = Codes.restored(20, codes.parts(count))
    assert again.count == count
    only = Codes(codes.coding)
    only.add(0, units[:count])
    assert again.add(count, units[128:160]) == only.add(count, units[128:160]) == (count % TOGETHER == 0)
    for one, other in zip(*(each.search(list(units[:5]), again.count, None, 9) for each in (again, only)), strict=True):
        assert one.nodes.tolist() == other.nodes.tolist()
        assert one.products.tolist() == other.products.tolist()
        assert one.across >= other.across


@needs_faiss
def test_only_what_counts_is_proposed() -> None:
    units = units_of(normal(np.random.default_rng(0), 320, 24))
    codes = Codes(Coding.for_such(units))
    codes.add(0, units)
    among = np.random.default_rng(1).random(320) < 0.2
    (proposed,) = codes.search([units[5]], 320, among, 300)
    assert sorted(proposed.nodes) == np.flatnonzero(among).tolist()
    (proposed,) = codes.search([units[5]], 64, None, 300)
    assert sorted(proposed.nodes) == list(range(64))
    assert proposed.nodes[0] == 5


@needs_faiss
def test_faiss_is_not_used_where_its_sums_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    real = codes_module._nearest

    def saturated(*arguments: Any) -> Any:
        products, nodes = real(*arguments)
        return np.minimum(products, 100), nodes

    monkeypatch.setattr(codes_module, "_nearest", saturated)
    codes_module._counts_right.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="not right on this machine"):
            Codes(Coding.plain(48))
    finally:
        codes_module._counts_right.cache_clear()


@needs_faiss
def test_nobody_can_make_vectors_that_all_searches_have_to_allow_for() -> None:
    chance = np.random.default_rng(6)
    others = units_of(normal(chance, 20 * TOGETHER, 384))

    def losses(hostile: Matrix) -> tuple[Coding, Losses]:
        codes = Codes(Coding.for_such(others))
        codes.add(0, np.concatenate([others, np.tile(hostile, (TOGETHER, 1))]))
        return codes.coding, codes.search([others[0]], codes.count, None, 1)[0].losses

    known, usual = losses(others[:1])
    # Turned, it is a single number, far beyond the last level.
    hostile = known._rotation.turned(np.eye(384, dtype=np.float32))[:, 7]
    assert known.coded(hostile[np.newaxis]).losses.short > 10 * usual.short
    assert losses(hostile)[1].short < 2 * usual.short


def test_levels() -> None:
    assert levels_of(np.arange(LEVELS, dtype=np.uint8)).tolist() == [n - 7.5 for n in range(16)]
