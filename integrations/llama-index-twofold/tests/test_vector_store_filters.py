"""LlamaIndex's metadata filters: what the vector store takes them to mean, held against LlamaIndex's own meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

import twofold
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.vector_stores.twofold import TwofoldVectorStore, as_filter
from twofold import F
from twofold.filters import And
from twofold.filters.matching import matches

Op = FilterOperator
Make = Callable[..., TwofoldVectorStore]

KEYS = ("a", "b", "a.b", "", " ", "it's", 'a"b', "a\\b", "$.a", "a' OR '1'='1", "üñï", "[0]")
TEXTS = st.text(alphabet="abAB é'%_\"\\", max_size=4)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.5, 2**40, 1e30]))
SCALARS = st.one_of(TEXTS, NUMBERS)
STORED = st.recursive(
    st.one_of(st.none(), SCALARS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Any JSON but booleans, of which see below."""
METADATA = st.dictionaries(st.sampled_from(KEYS), STORED, max_size=5)
LISTS = st.one_of(
    st.lists(TEXTS, max_size=4),
    st.lists(st.integers(-3, 3), max_size=4),
    st.lists(NUMBERS, max_size=4).map(lambda xs: [float(x) for x in xs]),
)

VALUES = {
    Op.EQ: st.one_of(st.none(), SCALARS, LISTS),
    Op.NE: st.one_of(st.none(), SCALARS, LISTS),
    Op.GT: SCALARS,
    Op.GTE: SCALARS,
    Op.LT: SCALARS,
    Op.LTE: SCALARS,
    Op.IN: LISTS,
    Op.NIN: LISTS,
    Op.ANY: LISTS,
    Op.ALL: LISTS,
    Op.CONTAINS: st.one_of(SCALARS, LISTS),
    Op.TEXT_MATCH: TEXTS,
    Op.TEXT_MATCH_INSENSITIVE: TEXTS,
    Op.IS_EMPTY: st.one_of(st.none(), SCALARS),
}
"""Of each operator, what it can be about."""


@st.composite
def leaf(draw: st.DrawFn) -> MetadataFilter:
    operator = draw(st.sampled_from(list(Op)))
    return MetadataFilter(
        key=draw(st.one_of(st.just("a"), st.sampled_from(KEYS))), value=draw(VALUES[operator]), operator=operator
    )


CONDITIONS = st.sampled_from([None, *FilterCondition])
FLAT = st.builds(MetadataFilters, filters=st.lists(leaf(), max_size=4), condition=CONDITIONS)
NESTED = st.recursive(
    FLAT,
    lambda inner: st.builds(
        MetadataFilters, filters=st.lists(st.one_of(leaf(), inner), max_size=3), condition=CONDITIONS
    ),
    max_leaves=6,
)
newer_meaning = pytest.mark.skipif(
    not build_metadata_filter_fn(
        lambda _: {}, MetadataFilters(filters=[MetadataFilter(key="a", value=1, operator=Op.NE)])
    )("x"),
    reason="this LlamaIndex still means less by its filters: what is missing equals anything, and there is no NOT",
)
PROPERTY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def vectors() -> Iterator[TwofoldVectorStore]:
    with TwofoldVectorStore(embed_model=NoEmbedding()) as made:
        yield made


def test_there_is_no_operator_that_is_not_tested() -> None:
    assert set(VALUES) == set(Op)


def kept(vectors: TwofoldVectorStore, every: list[dict[str, Any]], filters: MetadataFilters) -> list[bool]:
    """Which of ``every`` metadata the store lets through."""
    vectors.clear()
    vectors.add([TextNode(id_=str(place), text="x", metadata=metadata) for place, metadata in enumerate(every)])
    found = {node.node_id for node in vectors.get_nodes(filters=filters)}
    asked = VectorStoreQuery(query_str=None, filters=filters, similarity_top_k=99)
    if filters.filters:
        assert set(vectors.query(asked).ids or []) == found
    return [str(place) in found for place in range(len(every))]


EVERY: list[dict[str, Any]] = [
    {},
    *(
        {"a": stored}
        for stored in (
            None, "", "a", "A", "ab", "1", 0, 1, 1.0, 2, -1, 0.5, [], ["a"], ["a", "b"], [1], [1, 2], [None], [[]],
            [[1]], {}, {"a": 1}, {"a": None, "b": 2}, {"": 0}, {"1": 1}, {"ab": "a"},
        )
    ),
]  # fmt: skip
ASKED: dict[str, list[Any]] = {
    "one": [None, "", "a", "A", "ab", "b", "1", 0, 1, 1.5, 2, [], ["a"], [1], [1, 2]],
    "list": [[], ["a"], ["a", "b"], ["b", "a"], ["", "a"], ["ab"], [1], [1, 2], [1.0, 0.5], ["1"]],
}


@newer_meaning
@pytest.mark.parametrize("operator", list(Op))
def test_each_operator_on_every_kind_of_value(vectors: TwofoldVectorStore, operator: Op) -> None:
    compared = 0
    of_lists = operator in (Op.IN, Op.NIN, Op.ANY, Op.ALL)
    vectors.clear()
    vectors.add([TextNode(id_=str(place), text="x", metadata=metadata) for place, metadata in enumerate(EVERY)])
    for value in ASKED["list" if of_lists else "one"]:
        filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=operator)])
        try:
            found = {node.node_id for node in vectors.get_nodes(filters=filters)}
        except twofold.UnsupportedFilterError:  # see below for which
            continue
        for place, metadata in enumerate(EVERY):
            try:
                expected = build_metadata_filter_fn(lambda _, metadata=metadata: metadata, filters)("x")
            except TypeError:
                expected = False
            assert (str(place) in found) == expected, (metadata, value)
            compared += 1
    assert compared >= 4 * len(EVERY)


@newer_meaning
@PROPERTY
@given(every=st.lists(METADATA, min_size=1, max_size=4), filters=FLAT)
def test_flat_filters_mean_what_they_mean_to_llama_index(
    vectors: TwofoldVectorStore, every: list[dict[str, Any]], filters: MetadataFilters
) -> None:
    told = kept(vectors, every, filters)
    for metadata, is_kept in zip(every, told, strict=True):
        try:
            expected = build_metadata_filter_fn(lambda _, metadata=metadata: metadata, filters)("x")
        except TypeError:  # LlamaIndex cannot compare the two; see below for what happens here
            continue
        assert is_kept == expected, metadata


def meant(filters: MetadataFilters | MetadataFilter, metadata: dict[str, Any]) -> bool:
    """Nested filters by LlamaIndex's meaning of single ones; what it cannot compare does not match."""
    if isinstance(filters, MetadataFilter):
        try:
            return build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[filters]))("x")
        except TypeError:
            return False
    parts = [meant(each, metadata) for each in filters.filters]
    if not parts:
        return True
    if filters.condition == FilterCondition.OR:
        return any(parts)
    return not any(parts) if filters.condition == FilterCondition.NOT else all(parts)


@newer_meaning
@PROPERTY
@given(every=st.lists(METADATA, min_size=1, max_size=4), filters=NESTED)
def test_nested_filters_mean_what_their_parts_mean(
    vectors: TwofoldVectorStore, every: list[dict[str, Any]], filters: MetadataFilters
) -> None:
    told = kept(vectors, every, filters)
    where = as_filter(filters)
    for place, (metadata, is_kept) in enumerate(zip(every, told, strict=True)):
        record = vectors.store.get(str(place))
        assert record is not None
        assert is_kept == meant(filters, metadata), metadata
        assert is_kept == (where is None or matches(where, record)), metadata


# What a filter is


@pytest.mark.parametrize("condition", [None, *FilterCondition])
def test_without_filters_everything_passes(vectors: TwofoldVectorStore, condition: Any) -> None:
    empty = MetadataFilters(filters=[], condition=condition)
    assert as_filter(None) is None
    assert as_filter(empty) is None
    assert kept(vectors, [{}, {"a": 1}], empty) == [True, True]
    for nested in (MetadataFilters(filters=[empty]), MetadataFilters(filters=[MetadataFilters(filters=[empty] * 2)])):
        assert as_filter(nested) is None
        assert kept(vectors, [{}, {"a": 1}], nested) == [True, True]
    either = [MetadataFilter(key="a", value=1), empty]
    for joined, expected in (
        (FilterCondition.AND, [False, True]),
        (FilterCondition.OR, [True, True]),
        (FilterCondition.NOT, [False, False]),
    ):
        assert kept(vectors, [{}, {"a": 1}], MetadataFilters(filters=either, condition=joined)) == expected


def test_not_is_none_of_them(vectors: TwofoldVectorStore) -> None:
    both = [MetadataFilter(key="a", value=1), MetadataFilter(key="b", value=2)]
    every = [{"a": 1, "b": 2}, {"a": 1}, {"b": 2}, {}]
    assert kept(vectors, every, MetadataFilters(filters=both, condition=FilterCondition.NOT)) == [False] * 3 + [True]


@pytest.mark.parametrize("operator", [Op.NE, Op.NIN])
def test_what_is_missing_or_null_is_other_than_anything(vectors: TwofoldVectorStore, operator: Op) -> None:
    value: Any = ["x"] if operator is Op.NIN else "x"
    filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=operator)])
    assert kept(vectors, [{}, {"a": None}, {"a": "x"}, {"a": "y"}], filters) == [True, True, False, True]


def test_true_is_not_1(vectors: TwofoldVectorStore) -> None:
    """The one difference in equality: to Python, and so to LlamaIndex, they are equal."""
    every = [{"a": True}, {"a": 1}, {"a": 1.0}, {"a": [True]}, {"a": [1]}]
    for operator, value, expected in (
        (Op.EQ, 1, [False, True, True, False, False]),
        (Op.NE, 1, [True, False, False, True, True]),
        (Op.IN, [1], [False, True, True, False, False]),
        (Op.GTE, 1, [False, True, True, False, False]),
        (Op.CONTAINS, 1, [False, False, False, False, True]),
    ):
        filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=operator)])
        assert kept(vectors, every, filters) == expected


def test_case_is_folded_as_unicode_does(vectors: TwofoldVectorStore) -> None:
    found = MetadataFilter(key="a", value="STRASSE", operator=Op.TEXT_MATCH_INSENSITIVE)
    assert kept(vectors, [{"a": "Hauptstraße 1"}, {"a": "Strasse"}], MetadataFilters(filters=[found])) == [True, True]


@newer_meaning
@pytest.mark.parametrize(
    ("operator", "value", "stored"),
    [
        (Op.GT, 1, "2"),
        (Op.LT, "b", 1),
        (Op.GT, 1, [2]),
        (Op.TEXT_MATCH, "a", ["a"]),
        (Op.TEXT_MATCH_INSENSITIVE, "1", 1),
        (Op.CONTAINS, 1, "1"),
        (Op.CONTAINS, "1", 1),
        (Op.ANY, ["1"], 1),
        (Op.ALL, [1], "1"),
    ],
)
def test_what_llama_index_cannot_compare_does_not_match(
    vectors: TwofoldVectorStore, operator: Op, value: Any, stored: Any
) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=operator)])
    with pytest.raises(TypeError):
        build_metadata_filter_fn(lambda _: {"a": stored}, filters)("x")
    assert kept(vectors, [{"a": stored}], filters) == [False]


@pytest.mark.parametrize(
    ("operator", "value", "words"),
    [
        (Op.IN, "abc", "a list of values"),
        (Op.NIN, 1, "a list of values"),
        (Op.ANY, "abc", "a list of values"),
        (Op.ALL, None, "a list of values"),
        (Op.GT, None, "a number or a text"),
        (Op.LTE, [1], "a number or a text"),
        (Op.TEXT_MATCH, 1, "a text"),
        (Op.TEXT_MATCH_INSENSITIVE, None, "a text"),
    ],
)
def test_an_operator_says_what_it_can_be_about(
    vectors: TwofoldVectorStore, operator: Op, value: Any, words: str
) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=operator)])
    for ask in (
        lambda: vectors.get_nodes(filters=filters),
        lambda: vectors.delete_nodes(filters=filters),
        lambda: vectors.query(VectorStoreQuery(query_str="x", filters=filters)),
    ):
        with pytest.raises(twofold.UnsupportedFilterError, match=f"{operator.value}.* takes {words}"):
            ask()


@pytest.mark.parametrize("other", [{"a": 1}, F("a") == 1, [MetadataFilter(key="a", value=1)]])
def test_filters_of_another_kind_are_refused(vectors: TwofoldVectorStore, other: Any) -> None:
    for ask in (
        lambda: vectors.get_nodes(filters=other),
        lambda: vectors.delete_nodes(filters=other),
        lambda: vectors.query(VectorStoreQuery(query_str="x", filters=other)),
    ):
        with pytest.raises(twofold.UnsupportedFilterError, match="MetadataFilters"):
            ask()


def test_any_number_of_values(vectors: TwofoldVectorStore) -> None:
    many = [f"v{number}" for number in range(5000)]
    every = [{"a": "v4999"}, {"a": ["v77"]}, {"a": "other"}]
    for operator, expected in (
        (Op.IN, [True, False, False]),
        (Op.NIN, [False, True, True]),
        (Op.ANY, [True, True, False]),
        (Op.ALL, [False, False, False]),
    ):
        filters = MetadataFilters(filters=[MetadataFilter(key="a", value=many, operator=operator)])
        assert kept(vectors, every, filters) == expected


@pytest.mark.parametrize("deep", [41, 700])
def test_filters_that_are_too_many_or_too_deep_are_refused_in_words(vectors: TwofoldVectorStore, deep: int) -> None:
    one = MetadataFilter(key="a", value=1)
    nested = MetadataFilters(filters=[one])
    for _ in range(deep):
        nested = MetadataFilters(filters=[nested])
    for filters in (nested, MetadataFilters(filters=[one] * 2_000, condition=FilterCondition.OR)):
        with pytest.raises(twofold.InvalidFilterError, match=r"side by side|at most 1000 conditions"):
            vectors.get_nodes(filters=filters)
    assert kept(vectors, [{"a": 1}, {"a": 2}], MetadataFilters(filters=[one] * 900)) == [True, False]


@pytest.mark.parametrize("key", ["author' = 'alice' OR '1'='1' --", "$.author", 'author") OR 1=1 --', "', '$.author"])
def test_nothing_in_a_key_or_value_is_sql(vectors: TwofoldVectorStore, key: str) -> None:
    """run-llama/llama_index#22475, #21822, #21823, #21825."""
    every: list[dict[str, Any]] = [{"author": "alice"}, {"author": key}, {key: "alice"}]
    for asked, expected in (
        (MetadataFilter(key=key, value="alice"), [False, False, True]),
        (MetadataFilter(key="author", value=key), [False, True, False]),
        (MetadataFilter(key=key, value=[key, "alice"], operator=Op.IN), [False, False, True]),
        (MetadataFilter(key="author", value=key, operator=Op.TEXT_MATCH), [False, True, False]),
        (MetadataFilter(key=key, value="", operator=Op.IS_EMPTY), [True, True, False]),
    ):
        assert kept(vectors, every, MetadataFilters(filters=[asked])) == expected


def test_numbers_in_a_list_keep_their_type(vectors: TwofoldVectorStore) -> None:
    """run-llama/llama_index#22895."""
    every = [{"a": 3}, {"a": "3"}, {"a": 3.0}, {"a": 4}]
    for value, expected in (([3, 7], [True, False, True, False]), (["3"], [False, True, False, False])):
        filters = MetadataFilters(filters=[MetadataFilter(key="a", value=value, operator=Op.IN)])
        assert kept(vectors, every, filters) == expected


@pytest.mark.parametrize("key", ["document_id", "doc_id", "ref_doc_id", "_node_content", "_node_type", "id", "text"])
def test_keys_that_other_stores_keep_for_themselves_are_the_users(vectors: TwofoldVectorStore, key: str) -> None:
    """run-llama/llama_index#17025."""
    filters = MetadataFilters(filters=[MetadataFilter(key=key, value="mine")])
    assert kept(vectors, [{key: "mine"}, {key: "None"}, {}], filters) == [True, False, False]
    assert vectors.get_nodes(["0"])[0].metadata == {key: "mine"}


def test_a_filter_holds_inside_of_both_legs(make_vectors: Make) -> None:
    """run-llama/llama_index#22897, #16588: what does not match is never ranked, however few remain."""
    vectors = make_vectors()
    vectors.add(
        [TextNode(id_=f"n{n}", text="common words", metadata={"n": n}, embedding=[1.0, n / 400]) for n in range(400)]
    )
    filters = MetadataFilters(filters=[MetadataFilter(key="n", value=397, operator=Op.GTE)])
    for mode in ("default", "sparse", "hybrid", "mmr"):
        asked = VectorStoreQuery(
            query_str="common words",
            query_embedding=[1.0, 0.0],
            similarity_top_k=10,
            filters=filters,
            mode=mode,  # type: ignore[arg-type]
        )
        assert set(vectors.query(asked).ids or []) == {"n397", "n398", "n399"}


def test_a_key_is_taken_as_it_is(vectors: TwofoldVectorStore) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="a.b", value=1)])
    assert kept(vectors, [{"a.b": 1}, {"a": {"b": 1}}], filters) == [True, False]
    assert as_filter(filters) == And(F(("a.b",)) == 1)
