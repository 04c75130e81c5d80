"""Walks along links, on graphs written out by hand and on random ones held against an exhaustive search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.ranking import Edge, linked_score, reach
from twofold.ranking.expansion import MOST_FOLLOWED


class Graph:
    """Undirected, and counts what is asked of it."""

    def __init__(self, links: Sequence[tuple[int, int, float]]) -> None:
        self.edges: dict[int, list[Edge]] = {}
        for source, target, weight in links:
            self.edges.setdefault(source, []).append(Edge(target, "k", weight, forward=True))
            self.edges.setdefault(target, []).append(Edge(source, "k", weight, forward=False))
        self.calls: list[tuple[list[int], int]] = []

    def neighbors(self, keys: Sequence[int], most: int) -> Mapping[int, Sequence[Edge]]:
        self.calls.append((list(keys), most))
        ordered = {key: sorted(self.edges.get(key, []), key=lambda edge: (-edge.weight, edge.key)) for key in keys}
        return {key: edges[:most] for key, edges in ordered.items() if edges}

    def reach(self, *seeds: int, limit=10, hops=1, decay=1.0, fan_out=32, exclude=()):
        found = reach(
            seeds,
            self.neighbors,
            lambda keys: {key: key for key in keys},
            limit=limit,
            hops=hops,
            decay=decay,
            fan_out=fan_out,
            exclude=exclude,
        )
        return {each.key: each.value for each in found}, {
            each.key: [each.path[0].start, *(step.edge.key for step in each.path)] for each in found
        }


def test_the_value_is_the_product_of_weights_and_of_the_decay_once_a_link():
    graph = Graph([(1, 2, 0.5), (2, 3, 0.8)])
    values, paths = graph.reach(1, hops=2, decay=0.5)
    assert values == {2: 0.5 * 0.5, 3: pytest.approx(0.5 * 0.5 * 0.8 * 0.5)}
    assert paths == {2: [1, 2], 3: [1, 2, 3]}
    assert graph.reach(1, hops=1)[0] == {2: 0.5}


def test_the_best_of_several_paths_counts_alone():
    graph = Graph([(1, 4, 0.3), (1, 2, 0.9), (2, 4, 0.9), (3, 4, 0.3)])
    assert graph.reach(1, 3, hops=1)[0][4] == 0.3, "two links are no better than one"
    values, paths = graph.reach(1, hops=2)
    assert (values[4], paths[4]) == (0.9 * 0.9, [1, 2, 4])


def test_of_equal_paths_the_shorter_counts_then_that_of_the_earlier_seed():
    graph = Graph([(1, 9, 1.0), (2, 9, 1.0), (1, 3, 1.0), (3, 9, 1.0)])
    assert graph.reach(2, 1, hops=3)[1][9] == [2, 9]
    assert graph.reach(1, 2, hops=3)[1][9] == [1, 9]


def test_equal_records_are_ordered_by_their_tie_breakers():
    graph = Graph([(1, key, 0.5) for key in (5, 3, 4, 2)])
    assert list(graph.reach(1, limit=3)[0]) == [2, 3, 4]


def test_neither_seeds_nor_what_is_excluded_is_reached_or_passed():
    graph = Graph([(1, 2, 1.0), (2, 3, 1.0), (1, 4, 1.0), (4, 5, 1.0), (1, 1, 1.0)])
    assert set(graph.reach(1, 2, hops=3, exclude=(4,))[0]) == {3}


def test_a_cycle_ends():
    graph = Graph([(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (3, 2, 1.0)])
    assert graph.reach(1, hops=5)[0] == {2: 1.0, 3: 1.0}
    assert len(graph.calls) <= 3


def test_links_to_seeds_do_not_use_the_fan_out_up():
    graph = Graph([(1, 2, 1.0), (1, 3, 0.9), (1, 4, 0.5), (1, 5, 0.4)])
    assert set(graph.reach(1, 2, 3, fan_out=1)[0]) == {4}


def test_the_work_is_bounded_whatever_the_graph():
    hub = Graph([(0, key, 1.0) for key in range(1, 2000)] + [(key, key + 5000, 1.0) for key in range(1, 2000)])
    values, _ = hub.reach(0, limit=3, hops=5, fan_out=8)
    assert len(values) == 3
    assert all(most <= 8 + 1 for _, most in hub.calls)
    everywhere = Graph([(seed, seed + 10_000, 0.5) for seed in range(3000)])
    everywhere.reach(*range(3000), limit=5, hops=3)
    assert sum(len(keys) for keys, _ in everywhere.calls) <= MOST_FOLLOWED


def test_nothing_is_asked_where_nothing_is_wanted_or_begun():
    graph = Graph([(1, 2, 1.0)])
    assert graph.reach(1, limit=0) == ({}, {})
    assert graph.reach() == ({}, {})
    assert graph.calls == []


@pytest.mark.parametrize(
    ("value", "last", "score"), [(1.0, 0.8, 0.8 / 2), (0.5, 0.3, 0.3 * 0.5 / 1.5), (1.0, 0.0, 0.0)]
)
def test_the_score_of_a_linked_record(value, last, score):
    assert linked_score(value, last) == pytest.approx(score)


@given(
    value=st.floats(0, 1, exclude_min=True),
    better=st.floats(0, 1, exclude_min=True),
    last=st.floats(1e-300, 1),
)
def test_a_linked_record_scores_above_0_below_every_hit_and_as_its_path(value, better, last):
    assert 0 < linked_score(value, last) < last
    if value <= better:
        assert linked_score(value, last) <= linked_score(better, last)


@given(
    links=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from((0.25, 0.5, 0.75, 1.0))), max_size=20
    ),
    seeds=st.lists(st.integers(0, 7), min_size=1, max_size=2, unique=True),
    hops=st.integers(1, 4),
    limit=st.integers(1, 8),
    decay=st.sampled_from((0.5, 1.0)),
)
def test_it_finds_what_an_exhaustive_search_finds(links, seeds, hops, limit, decay):
    graph = Graph(links)
    best: dict[int, float] = {}
    ways = [(seed, 1.0) for seed in seeds]
    for _ in range(hops):
        ways = [
            (edge.key, value * edge.weight * decay)
            for key, value in ways
            for edge in graph.edges.get(key, [])
            if edge.key not in seeds
        ]
        ways = list({key: max(value for other, value in ways if other == key) for key, _ in ways}.items())
        for key, value in ways:
            best[key] = max(value, best.get(key, 0.0))
    expected = dict(sorted(best.items(), key=lambda item: (-item[1], item[0]))[:limit])
    assert graph.reach(*seeds, limit=limit, hops=hops, decay=decay)[0] == expected
