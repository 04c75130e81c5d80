"""Each preset on one small store checked by hand: the exact ids, in the exact order, with the exact scores.

The question is ``kettle pager`` with the vector [1, 0]. What the legs say of the records:

=====  ==================  ======  ==========  ========  ==================  ======  ==============================
id     text                cosine  importance  strength  words of the two    made    more
=====  ==================  ======  ==========  ========  ==================  ======  ==============================
both   kettle pager        0.6     0.5         1         both, side by side  first   confidence 0.5
weak   kettle              0.8     0.0         0.25      one                 second  project b
firm   kettle              0       1.0         4         one                 third   project a
far    teapot              1       0.5         1         none                fourth  project b, an insight
=====  ==================  ======  ==========  ========  ==================  ======  ==============================

``weak`` and ``firm`` have one text, so one BM25 too: ``share`` below is that over the BM25 of ``both``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import twofold
from twofold import (
    PRESETS,
    A,
    Access,
    ConfigurationError,
    GivenVectors,
    HybridStore,
    SearchParams,
    SearchResult,
    StoreSettings,
)
from twofold.store import Search
from twofold.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXT, VECTOR = "kettle pager", [1.0, 0.0]


@pytest.fixture
def store() -> Iterator[HybridStore]:
    clock = FakeClock(START)
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), settings=StoreSettings(clock=clock)) as store:

        def add(id_: str, text: str, vector: list[float], **more: Any) -> None:
            store.add(text, id=id_, vector=vector, **more)
            clock.advance(seconds=60)

        add("both", "kettle pager", [3.0, 4.0], metadata={"confidence": 0.5})
        add("weak", "kettle", [4.0, 3.0], importance=0.0, strength=0.25, project="b")
        add("firm", "kettle", [0.0, 1.0], importance=1.0, strength=4.0, project="a")
        add("far", "teapot", [1.0, 0.0], project="b", kind="insight")
        store.link("far", "firm", weight=0.8)
        for number in range(20):  # without text: they make the words rarer, and are in neither leg
            store.add(fields={}, tags=(f"other{number}",))
        yield store


def scores_of(result: SearchResult) -> dict[str, float]:
    return {hit.id: hit.score for hit in result}


def share_of(store: HybridStore, *, adjacency: float = 0.2) -> float:
    """The BM25 of one word over that of both, these moved up because they stand side by side."""
    found = store.search(TEXT, mode="keyword", params=SearchParams(prior="none"))
    raw = {hit.id: hit.explanation.legs["keyword"].raw for hit in found}
    assert raw["weak"] == raw["firm"] < raw["both"]
    return raw["weak"] / (raw["both"] * (1 + adjacency))


def in_order(scores: dict[str, float]) -> dict[str, float]:
    """No two of these are equal."""
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def expect(result: SearchResult, expected: dict[str, float]) -> None:
    assert result.ids == tuple(expected)
    assert scores_of(result) == pytest.approx(expected)
    assert not result.degraded


def test_rrf(store: HybridStore) -> None:
    """keyword: both, firm (newer), weak; vector: far, weak, both, firm; then what each carries, less than a rank."""
    most, span = 2 / 61, 1 / (2 * 60 + 4)
    expect(
        store.search(TEXT, vector=VECTOR, preset="rrf"),
        {
            "both": (1 / 61 + 1 / 63) / most,
            "firm": (1 / 62 + 1 / 64) * (1 + span * (1 + (4 - 1) / (4 + 1)) / 2) / most,
            "weak": (1 / 63 + 1 / 62) * (1 + span * (-1 + (0.25 - 1) / (0.25 + 1)) / 2) / most,
            "far": (1 / 61) / most,
        },
    )


def test_muninn(store: HybridStore) -> None:
    """bm25 · strength · (1 + importance) inside the keyword leg, 3 · k candidates, one hop, touched."""
    share = share_of(store, adjacency=0)
    assert share * 4 * (1 + 1.0) > 1 * 1.2 * (1 + 0.5) > share * 0.25 * (1 + 0)  # firm, both, weak
    result = store.search(TEXT, vector=VECTOR, k=3, preset="muninn")
    most = 1 / 61 + 1 / 61
    expect(
        result,
        {
            "firm": (1 / 61 + 1 / 64) / most,
            "weak": (1 / 63 + 1 / 62) / most,  # as good as the next, and newer
            "both": (1 / 62 + 1 / 63) / most,
        },
    )
    keyword = result[0].explanation.legs["keyword"]
    assert keyword.prior == 4 * (1 + 1.0)
    assert keyword.raw == pytest.approx(result[1].explanation.legs["keyword"].raw)
    assert "strength and importance x8" in result[0].why
    assert [(hit.id, hit.explanation.path[0].start) for hit in result.linked] == [("far", "firm")]
    store.add("more", vector=[0.0, 1.0])  # takes the touches along
    assert {record.id: (record.access_count, record.strength) for record in store.list(where=A.access_count > 0)} == {
        "both": (1, 1.0), "firm": (1, 4.0), "weak": (1, 0.25), "far": (1, 1.0)
    }  # fmt: skip


def test_localmem(store: HybridStore) -> None:
    """cosine + 0.25 · kw, shown up to 1, on the cosine's scale; nothing that a record carries counts."""
    share = share_of(store)
    expected = {"far": 1.0, "both": 0.6 + 0.25, "weak": 0.8 + 0.25 * share, "firm": 0 + 0.25 * share}
    order = list(in_order(expected))
    shown = {id_: min(1.0, score) for id_, score in in_order(expected).items()}
    expect(store.search(TEXT, vector=VECTOR, preset="localmem"), shown)
    near = SearchParams.preset("localmem", min_score=0.9)
    assert store.search(TEXT, vector=VECTOR, params=near).ids == tuple(id_ for id_ in order if expected[id_] >= 0.9)


def test_engram(store: HybridStore) -> None:
    """0.7 · vector + 0.3 · sparse, and other projects at half weight, insights at full."""
    share = share_of(store)
    expected = {"far": 0.7, "both": 0.7 * 0.6 + 0.3, "weak": 0.7 * 0.8 + 0.3 * share, "firm": 0.3 * share}
    expect(store.search(TEXT, vector=VECTOR, preset="engram"), in_order(expected))
    about_a = {
        "far": 0.7,
        "both": (0.7 * 0.6 + 0.3) * 0.5,
        "weak": (0.7 * 0.8 + 0.3 * share) * 0.5,
        "firm": 0.3 * share,
    }
    asked = SearchParams.preset("engram", project="a")
    expect(store.search(TEXT, vector=VECTOR, params=asked), in_order(about_a))
    only = SearchParams.preset("engram", project="a", project_only=True)
    assert store.search(TEXT, vector=VECTOR, params=only).ids == ("firm",)


def test_ariadne(store: HybridStore) -> None:
    """rrf_k a call, 0.5 + 0.5 · confidence, all words first and then any, touched and strengthened."""
    most = 1 / 21 + 1 / 21
    params = SearchParams.preset("ariadne", rrf_k=20)
    expect(
        store.search(TEXT, vector=VECTOR, params=params),
        {
            "weak": (1 / 23 + 1 / 22) / most,
            "firm": (1 / 22 + 1 / 24) / most,
            "both": (1 / 21 + 1 / 23) * (0.5 + 0.5 * 0.5) / most,
            "far": (1 / 21) / most,
        },
    )
    store.add("more", vector=[0.0, 1.0])
    strengths = {record.id: record.strength for record in store.list(where=A.access_count > 0)}
    assert strengths == pytest.approx({"weak": 0.25 * 1.5, "firm": 4 * 1.5, "both": 1.5, "far": 1.5})


def test_balanced(store: HybridStore) -> None:
    """0.6 · (cosine without the background) + 0.4 · kw, both legs' scores for all, and what a record carries."""
    share = share_of(store)
    vectors = {"both": (0.6, 0.8), "weak": (0.8, 0.6), "firm": (0.0, 1.0), "far": (1.0, 0.0)}
    cosines = [a[0] * b[0] + a[1] * b[1] for one, a in vectors.items() for other, b in vectors.items() if one != other]
    background = len(vectors) / 64 * sum(cosines) / len(cosines)

    def near(cosine: float) -> float:
        return max(0.0, (cosine - background) / (1 - background))

    expected = {
        "both": 0.6 * near(0.6) + 0.4,
        "weak": (0.6 * near(0.8) + 0.4 * share) * (1 + 0.1 * (-1 + (0.25 - 1) / (0.25 + 1)) / 2),
        "far": 0.6,
        "firm": 0.4 * share * (1 + 0.1 * (1 + (4 - 1) / (4 + 1)) / 2),
    }
    expect(store.search(TEXT, vector=VECTOR, preset="balanced"), in_order(expected))


def test_balanced_trusts_keywords_as_far_as_the_words_of_the_question_occur(store: HybridStore) -> None:
    def kettle(text: str, access: Access | None = None) -> float:
        found = store.search(text, vector=[-1.0, 0.0], preset="balanced", access=access)
        return next(hit.score for hit in found if hit.id == "both")

    assert kettle("pager") == pytest.approx(0.4)
    assert kettle("pager чайник самовар") == pytest.approx(0.4 / 3)
    store.add("чайник", id="hers", vector=[0.0, 1.0], access=Access(user="u2"))
    assert kettle("pager чайник самовар", Access(user="u1")) == pytest.approx(0.4 / 3)  # what is hers is not told
    hers = store.search("pager чайник самовар", vector=[-1.0, 0.0], preset="balanced", access=Access(user="u2"))
    assert hers[0].score == pytest.approx(0.4 * 2 / 3)


# -- naming and changing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_of_the_store_is_that_of_every_call(name: str) -> None:
    with twofold.open(":memory:", embedder=GivenVectors("v", 2), preset=name) as store:
        store.add("kettle pager", id="a", vector=[1, 0])
        store.add("kettle", id="b", vector=[0, 1], importance=0.9)
        own = store.search(TEXT, vector=VECTOR)
        assert scores_of(own) == scores_of(store.search(TEXT, vector=VECTOR, preset=name))
        assert scores_of(own) == scores_of(store.batch([Search(TEXT, vector=VECTOR, preset=name)])[0])
        assert own.hits[0].explanation.formula == store.search(TEXT, vector=VECTOR, preset=name)[0].explanation.formula


async def test_a_preset_of_one_call_that_waits_for_nobody(store: HybridStore) -> None:
    result = await store.asearch(TEXT, vector=VECTOR, preset="localmem")
    assert scores_of(result) == scores_of(store.search(TEXT, vector=VECTOR, preset="localmem"))


def test_no_preset_shows_what_the_caller_may_not_see(store: HybridStore) -> None:
    other = store.add("kettle pager", vector=VECTOR, importance=1.0, strength=9.0, access=Access(user="u2")).id
    for name in PRESETS:
        params = SearchParams.preset(name, trace=True, min_score=0.3)
        result = store.search(TEXT, vector=VECTOR, k=2, params=params, access=Access(user="u1"))
        told = [id_ for stage in result.trace or () for id_ in (*stage.output, *(each.id for each in stage.dropped))]
        assert other not in (*result.ids, *(hit.id for hit in result.linked), *told)
        assert other in store.search(TEXT, vector=VECTOR, preset=name, access=Access(user="u2")).ids


def test_the_background_is_made_of_what_the_caller_sees(store: HybridStore) -> None:
    mine = scores_of(store.search("", vector=VECTOR, preset="balanced"))
    store.add("teapot", vector=[1.0, 0.01], access=Access(user="u2"))
    assert scores_of(store.search("", vector=VECTOR, preset="balanced")) == mine


def test_a_preset_and_settings_together_are_refused(store: HybridStore) -> None:
    with pytest.raises(ConfigurationError, match=r"SearchParams\.preset\('muninn', \.\.\.\)"):
        store.search(TEXT, vector=VECTOR, preset="muninn", params=SearchParams())
    with pytest.raises(ConfigurationError, match="give one"):
        twofold.open(":memory:", preset="muninn", settings=StoreSettings(search=SearchParams(pool=5)))
    with twofold.open(":memory:", preset="muninn", settings=StoreSettings(max_readers=2)) as other:
        assert other._parts.settings.search == PRESETS["muninn"]


@pytest.mark.parametrize("name", ["", "Muninn", "nothing", 5, None, ["muninn"]])
def test_an_unknown_preset_names_those_there_are(store: HybridStore, name: Any) -> None:
    with pytest.raises(ConfigurationError, match=", ".join(PRESETS)):
        SearchParams.preset(name)
    if name is not None:
        for call in (
            lambda: store.search(TEXT, vector=VECTOR, preset=name),
            lambda: twofold.open(":memory:", preset=name),
            lambda: store.batch([Search(TEXT, vector=VECTOR, preset=name)]),
        ):
            with pytest.raises(ConfigurationError, match=", ".join(PRESETS)):
                call()


def test_a_preset_with_changes() -> None:
    changed = SearchParams.preset("muninn", rrf_k=20, expand=0)
    assert changed == dataclasses.replace(PRESETS["muninn"], rrf_k=20, expand=0)
    assert PRESETS["muninn"].expand == 3
    with pytest.raises(ConfigurationError, match="rrfk: no such setting"):
        SearchParams.preset("muninn", rrfk=20)
    with pytest.raises(ConfigurationError, match="rrf_k"):
        SearchParams.preset("muninn", rrf_k=-1)
    with pytest.raises(TypeError):
        PRESETS["mine"] = SearchParams()  # type: ignore[index]
