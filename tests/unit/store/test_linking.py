"""Links through the façade: who may make them, who sees them, and what a search does with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import twofold
from twofold import Access, Direction, F, GivenVectors, Link, LinkKind, LinkStep, Owner, SearchParams, StoreSettings
from twofold.errors import AccessError, ConfigurationError, InvalidRecordError, RecordNotFoundError
from twofold.testing import FakeEmbedder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
U1, U2, R1 = Access(user="u1"), Access(user="u2"), Access(rooms=("r1",))


@pytest.fixture
def store():
    with twofold.open(":memory:", settings=StoreSettings(clock=lambda: NOW)) as store:
        yield store


def add(store, *ids, access=None, **more):
    for id_ in ids:
        store.add(f"text of {id_}", id=id_, access=access, **more)


def expanded(store, text, *, k=1, access=None, where=None, mode="keyword", **params):
    return store.search(
        text, k=k, access=access, where=where, mode=mode, params=SearchParams(expand=10, trace=True, **params)
    )


def ids(hits):
    return [hit.id for hit in hits]


# -- making and showing them --------------------------------------------------------------------------------------


def test_a_link_is_shown_from_both_ends_with_all_that_is_known_of_it(store):
    add(store, "a", namespace=("n",), access=U1)
    add(store, "g")
    assert store.link("a", "g", kind="mine", weight=0.25, namespace=("n",), target_namespace=(), access=U1)
    link = Link(
        source="a",
        target="g",
        kind="mine",
        weight=0.25,
        created_at=NOW,
        namespace=("n",),
        owner=Owner.user("u1"),
        target_namespace=(),
        target_owner=Owner.everybody(),
    )
    assert store.links("a", namespace=("n",), access=U1) == store.links("g", access=U1) == [link]
    assert store.links("g", access=U1, direction="out") == []
    assert store.links("g", access=U1, direction=Direction.IN, kinds=["mine"]) == [link]
    assert store.links("g", access=U1, kinds=["other"]) == store.links("g", access=U1, where=F("x") == 1) == []
    assert store.links("g") == store.links("g", access=U2) == [], "seen by who sees both ends"


def test_linking_again_gives_another_weight(store):
    add(store, "a", "b")
    assert store.link("a", "b", weight=0.5) is True
    assert store.link("a", "b", weight=1) is False
    assert [(link.kind, link.weight) for link in store.links("a")] == [(LinkKind.RELATED, 1.0)]
    assert store.link("b", "a") is store.link("a", "b", kind="mine") is True, "another direction, another kind"
    assert store.unlink("a", "b") == 2
    assert ids_of_links(store, "a") == [("b", "a")]
    assert store.unlink("b", "a", kind="mine") == 0
    assert store.unlink("b", "a", kind="related") == 1


def ids_of_links(store, id_, **more):
    return [(link.source, link.target) for link in store.links(id_, **more)]


@pytest.mark.parametrize("weight", [0, -0.5, 1.01, True, "1", None, float("nan"), float("inf")])
def test_a_weight_is_above_0_and_at_most_1(store, weight):
    add(store, "a", "b")
    with pytest.raises(ConfigurationError, match="above 0 and at most 1"):
        store.link("a", "b", weight=weight)


def test_what_cannot_be_linked_is_refused(store):
    add(store, "a", "b")
    with pytest.raises(ConfigurationError, match="one record"):
        store.link("a", "a")
    with pytest.raises(ConfigurationError, match="not empty"):
        store.link("a", "b", kind="")
    with pytest.raises(InvalidRecordError, match="NUL"):
        store.link("a", "b", kind="\0")
    with pytest.raises(ConfigurationError, match="direction"):
        store.links("a", direction="up")
    with pytest.raises(ConfigurationError, match="kinds"):
        store.links("a", kinds="related")
    with pytest.raises(ConfigurationError, match="hops"):
        store.neighbors("a", hops=6)
    for call in (store.links, store.neighbors):
        with pytest.raises(ConfigurationError, match="limit"):
            call("a", limit=-1)
    assert store.links("a") == []


def test_a_link_needs_the_right_to_write_its_source_and_to_see_its_target(store):
    """mem0ai/mem0#1805: a link between two users' records showed the one's to the other."""
    add(store, "g")
    add(store, "mine", access=U1)
    add(store, "theirs", access=U2)
    with pytest.raises(AccessError, match="not change it"):
        store.link("g", "mine", access=U1)
    for source, target in (("mine", "theirs"), ("theirs", "mine"), ("mine", "nothing")):
        hidden = target if source == "mine" else source
        with pytest.raises(RecordNotFoundError) as raised:
            store.link(source, target, access=U1)
        assert str(raised.value).replace(hidden, "ID") == "there is no record 'ID' here that this access may see"
        assert store.unlink(source, target, access=U1) == 0
    for hidden in ("theirs", "nothing"):
        for call in (store.links, store.neighbors):
            with pytest.raises(RecordNotFoundError) as raised:
                call(hidden, access=U1)
            assert str(raised.value).replace(hidden, "ID") == "there is no record 'ID' here that this access may see"
    assert store.link("mine", "g", access=U1)
    with pytest.raises(AccessError):
        store.unlink("g", "mine", access=U1)
    assert store.unlink("mine", "g", access=U1) == 1


def test_an_archived_record_may_be_linked_and_is_not_shown(store):
    add(store, "a", "b")
    store.archive("b")
    assert store.link("a", "b")
    assert store.links("a") == store.neighbors("a") == []
    assert ids_of_links(store, "a", include_archived=True) == [("a", "b")]
    assert [each.record.id for each in store.neighbors("a", include_archived=True)] == ["b"]
    with pytest.raises(RecordNotFoundError):
        store.links("b")
    assert ids_of_links(store, "b", include_archived=True) == [("a", "b")]


def test_neighbors_say_the_way_and_how_strong_it_is(store):
    add(store, "a", "b", "c")
    store.link("a", "b", weight=0.8)
    store.link("c", "b", kind="mine", weight=0.5)
    found = store.neighbors("a", hops=2)
    assert [(each.record.id, each.score) for each in found] == [
        ("b", 0.8 * 0.5),
        ("c", pytest.approx(0.8 * 0.5 * 0.5 * 0.5)),
    ]
    assert found[1].path == (
        LinkStep("a", "b", "related", 0.8, forward=True),
        LinkStep("b", "c", "mine", 0.5, forward=False),
    )
    assert [each.record.id for each in store.neighbors("a", hops=2, direction="out")] == ["b"]
    assert [each.record.id for each in store.neighbors("a", hops=2, limit=1)] == ["b"]
    assert store.neighbors("a", kinds=["mine"]) == []


async def test_every_call_has_its_twin(store):
    add(store, "a", "b")
    assert await store.alink("a", "b") is True
    assert await store.alinks("a") == store.links("a")
    assert await store.aneighbors("a") == store.neighbors("a")
    assert await store.aunlink("a", "b") == 1


# -- expansion ----------------------------------------------------------------------------------------------------


def test_linked_records_come_apart_and_below_with_their_way(store):
    store.add("kettle", id="hit")
    add(store, "near", "far")
    store.link("hit", "near", weight=0.5)
    store.link("far", "near", weight=1.0, kind="mine")
    result = expanded(store, "kettle", hops=2)
    assert result.ids == ("hit",)
    assert ids(result.linked) == ["near", "far"]
    near, far = result.linked
    one, two = 0.5 * 0.5, 0.5 * 0.5 * 1.0 * 0.5
    assert near.score == pytest.approx(1.0 * one / (1 + one))
    assert far.score == pytest.approx(1.0 * two / (1 + two))
    assert far.explanation.path == (
        LinkStep("hit", "near", "related", 0.5, forward=True),
        LinkStep("near", "far", "mine", 1.0, forward=False),
    )
    assert far.why == "linked: hit -[related 0.5]-> near, near <-[mine 1]- far"
    assert near.explanation.legs == {}
    assert result[0].explanation.path == ()
    assert {stage.name: stage.detail for stage in result.trace}["expand"] == {"hops": 2, "linked": 2}
    assert "expand" in result.timings


def test_nothing_is_linked_unless_asked_for_or_without_a_hit(store):
    store.add("kettle", id="hit")
    add(store, "near")
    store.link("hit", "near")
    plain = store.search("kettle", k=1)
    assert (plain.linked, "expand" in plain.timings) == ((), False)
    assert expanded(store, "zebra").linked == ()
    assert expanded(store, "kettle", k=0).linked == ()
    assert expanded(store, "kettle", link_kinds=("mine",)).linked == ()
    assert expanded(store, "kettle", min_score=1.0).ids == ("hit",)


def test_kinds_of_links_have_weights(store):
    store.add("kettle", id="hit")
    add(store, "mine", "cause", "third", "far")
    for kind in ("mine", "cause", "third"):
        store.link("hit", kind, kind=kind, weight=0.8)
    store.link("cause", "far", kind="mine", weight=0.5)

    def linked(**params):
        hits = expanded(store, "kettle", **params).linked
        return {hit.id: pytest.approx(hit.score) for hit in hits}, [hit.id for hit in hits]

    last = expanded(store, "kettle")[0].score
    weights = {"mine": 0.25, "cause": 1.0}
    scores, order = linked(link_kinds=weights, hops=2, link_decay=0.5)
    values = {"cause": 0.8 * 0.5, "mine": 0.8 * 0.25 * 0.5, "far": 0.8 * 0.5 * 0.5 * 0.25 * 0.5}
    assert scores == {id_: last * value / (1 + value) for id_, value in values.items()}
    assert order == ["cause", "mine", "far"]
    assert linked(link_kinds=weights, link_fan_out=1)[1] == ["cause"], "the strongest by what its kind makes of it"
    assert linked(link_kinds={"mine": 1.0, "cause": 0.25}, link_fan_out=1)[1] == ["mine"]
    assert linked(link_kinds={"third": 0.1})[1] == ["third"]
    assert linked(link_kinds={})[1] == linked(link_kinds=())[1] == []


def test_a_store_s_own_settings_may_expand():
    settings = StoreSettings(search=SearchParams(expand=1))
    with twofold.open(":memory:", settings=settings) as store:
        store.add("kettle", id="hit")
        add(store, "near", "other")
        store.link("hit", "near", weight=0.9)
        store.link("hit", "other", weight=0.8)
        assert ids(store.search("kettle", k=1).linked) == ["near"]


def test_hits_of_this_page_and_of_earlier_ones_are_not_among_the_linked(store):
    for number in range(4):
        store.add("kettle " * (4 - number) + "word " * number, id=f"h{number}")
    for number in range(1, 4):
        store.link("h0", f"h{number}")
        store.link("h1", f"h{number}") if number != 1 else None
    first = expanded(store, "kettle", k=2)
    assert (first.ids, set(ids(first.linked))) == (("h0", "h1"), {"h2", "h3"})
    params = SearchParams(expand=10)
    second = store.search("kettle", k=1, offset=1, mode="keyword", params=params)
    assert (second.ids, set(ids(second.linked))) == (("h1",), {"h2", "h3"})


def test_a_hop_never_leaves_what_the_access_sees(store):
    """kitfunso/hippo-memory#128: neighbours were loaded by id alone."""
    add(store, "g1")
    store.add("kettle m1", id="m1", access=U1)
    add(store, "s1", access=U2)
    add(store, "x1", access=R1)
    store.link("m1", "g1", access=U1)
    store.link("s1", "g1", access=U2)
    store.link("x1", "g1", access=R1)
    for hops in (1, 2):
        result = expanded(store, "kettle", access=U1, hops=hops)
        assert (result.ids, ids(result.linked)) == (("m1",), ["g1"])
    everything = expanded(store, "kettle", access=Access.everything(), hops=2)
    assert set(ids(everything.linked)) == {"g1", "s1", "x1"}


def test_a_hop_goes_through_living_records_only(store):
    """headroomlabs-ai/headroom#2209: archived, superseded and expired ones came back through links."""
    store.add("kettle", id="m1")
    add(store, "a1", "living", "behind")
    add(store, "e1", expires_at=NOW)
    store.archive("a1")
    store.link("m1", "a1")
    store.link("m1", "e1")
    store.link("a1", "behind")
    assert expanded(store, "kettle", hops=3).linked == ()
    assert set(ids(expanded(store, "kettle", hops=3, include_archived=True).linked)) == {"a1", "e1", "behind"}


def test_a_hop_satisfies_the_filter_at_every_step(store):
    store.add("kettle", id="hit", metadata={"lang": "en"})
    add(store, "wrong", metadata={"lang": "ru"})
    add(store, "behind", "right", metadata={"lang": "en"})
    store.link("hit", "wrong")
    store.link("wrong", "behind")
    store.link("hit", "right", weight=0.1)
    result = expanded(store, "kettle", where=F("lang") == "en", hops=3)
    assert ids(result.linked) == ["right"]


def test_a_hub_gives_its_strongest_links(store):
    """cajasmota/grafel#5691: a hub's links made the answer slow and noisy."""
    store.add("kettle", id="hub")
    store.add_many({"id": f"n{number:05}", "text": "word"} for number in range(2_000))
    with store._parts.backend.write() as writer:
        from twofold.backends.protocol import LinkWrite

        ((hub, _),) = writer.find("hub", (), None)
        writer.put_links([LinkWrite(hub, hub + 1 + n, "k", 0.5) for n in range(2_000)], NOW)
    store.link("hub", "n01999", weight=0.9)
    result = expanded(store, "kettle", k=10, hops=2)
    assert ids(result.linked) == ["n01999", *(f"n{number:05}" for number in range(9))], "then ties by id"


def test_a_hub_does_not_throw_hits_out():
    """scrypster/muninndb#569: what hung on a hub got an uncapped bonus and took the places of true hits."""
    with twofold.open(
        ":memory:", embedder=GivenVectors("given", 2), settings=StoreSettings(clock=lambda: NOW)
    ) as store:
        vectors = {"t": [0.8, 0.6]}
        vectors |= {f"s{n}": [0.5, 0.866] for n in range(1, 5)} | {f"h{n}": [0.0, 1.0] for n in range(1, 8)}
        for id_, vector in vectors.items():
            store.add(f"words {id_}", id=id_, vector=vector)
        store.add("the hub", id="hub", vector=[-1.0, 0.0])
        for id_ in vectors:
            store.link("hub", id_)
        params = SearchParams(expand=10, hops=2, min_similarity=0.3)
        result = store.search("zz", k=5, vector=[1, 0], params=params)
        assert result.ids == ("t", "s1", "s2", "s3", "s4")
        assert {hit.id for hit in result.linked} == {"hub", *(f"h{n}" for n in range(1, 8))}
        assert all(0 < hit.score < result[-1].score for hit in result.linked)
        assert all(hit.explanation.path for hit in result.linked)


def test_a_linked_record_that_a_leg_found_too_says_so(store):
    store.add("kettle kettle", id="hit")
    store.add("a kettle among many more words", id="second")
    store.link("hit", "second")
    (linked,) = expanded(store, "kettle").linked
    assert linked.explanation.legs["keyword"].rank == 2
    assert linked.explanation.path


# -- links that a write makes -------------------------------------------------------------------------------------


def test_what_is_extracted_together_is_linked(store):
    store.add_many([{"id": f"r{n}", "text": f"text {n}"} for n in range(10)], extracted_together=True, batch_size=3)
    links = {(link.source, link.target, link.kind, link.weight) for n in range(10) for link in store.links(f"r{n}")}
    assert links == {(f"r{a}", f"r{b}", "co_extracted", 1.0) for a in range(10) for b in range(a + 1, 10)}


def test_of_many_extracted_together_each_is_linked_to_the_nine_after_it(store):
    store.add_many(({"id": f"r{n}", "text": f"text {n}"} for n in range(25)), extracted_together=True, batch_size=4)
    for n in range(25):
        out = {link.target for link in store.links(f"r{n}", direction="out")}
        assert out == {f"r{other}" for other in range(n + 1, min(n + 10, 25))}


def test_extracted_together_links_what_was_there_and_nothing_twice(store):
    records = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}, {"id": "a", "text": "one again"}]
    store.add_many(records, extracted_together=True)
    store.add_many(records, extracted_together=True)
    assert set(ids_of_links(store, "a")) == {("a", "b"), ("b", "a")}
    store.add("three", id="c")
    store.add_many(["three", "four"], extracted_together=True, duplicates="skip")
    assert len(store.links("c")) == 1


def test_extracted_together_leaves_out_what_was_deleted_between_two_batches(store):
    def records():
        for n in range(6):
            if n == 4:  # the first batches are stored by then
                store.delete(["r1", "r2"])
            yield {"id": f"r{n}", "text": f"text {n}"}

    store.add_many(records(), extracted_together=True, batch_size=1)
    assert {link.target for link in store.links("r0", direction="out")} == {"r3", "r4", "r5"}
    assert {link.source for link in store.links("r5", direction="in")} == {"r0", "r3", "r4"}


def test_extracted_together_stays_within_one_owner(store):
    for access in (U1, U2):
        add(store, "a", "b", access=access)
    records = store.list(access=Access.everything())
    store.add_many(records, extracted_together=True, access=Access.everything())
    everything = Access.everything()
    for owner in (Owner.user("u1"), Owner.user("u2")):
        (link,) = store.links("a", access=everything, owner=owner)
        assert (link.owner, link.target_owner) == (owner, owner)
    with pytest.raises(ConfigurationError, match="extracted_together"):
        store.add_many(["x"], extracted_together="yes")


@pytest.fixture
def semantic():
    settings = StoreSettings(semantic_links=0.9, clock=lambda: NOW)
    with twofold.open(":memory:", embedder=GivenVectors("given", 2), settings=settings) as store:
        yield store


def angled(cosine):
    """A unit vector of this cosine to [1, 0]."""
    return [cosine, (1 - cosine**2) ** 0.5]


def test_a_record_is_linked_to_those_that_mean_much_the_same(semantic):
    semantic.add("x", id="base", vector=[2, 0])
    semantic.add("y", id="near", vector=angled(0.95))
    semantic.add("z", id="apart", vector=angled(0.1))
    (link,) = semantic.links("base")
    assert (link.source, link.target, link.kind) == ("near", "base", LinkKind.SEMANTIC)
    assert link.weight == pytest.approx(0.95, abs=1e-6)
    assert semantic.links("apart") == []
    semantic.add("copy", id="copy", vector=[1, 0])
    assert max(link.weight for link in semantic.links("copy")) <= 1.0


def test_the_nearest_three_are_linked_of_a_batch_too(semantic):
    semantic.add_many({"id": f"r{n}", "text": f"t{n}", "vector": angled(1 - n / 1000)} for n in range(6))
    assert [link.target for link in semantic.links("r5", direction="out")] == ["r4", "r3", "r2"]
    assert [link.target for link in semantic.links("r1", direction="out")] == ["r0"]
    assert semantic.links("r0", direction="out") == []
    assert semantic.check().ok


def test_semantic_links_stay_with_one_owner_in_one_namespace(semantic):
    semantic.add("x", id="global", vector=[1, 0])
    semantic.add("x", id="elsewhere", vector=[1, 0], namespace=("n",), access=U1)
    semantic.add("x", id="theirs", vector=[1, 0], access=U2)
    semantic.add("x", id="room", vector=[1, 0], access=Access(rooms=("u1",)))
    semantic.add("x", id="archived", vector=[1, 0], access=U1)
    semantic.archive("archived", access=U1)
    semantic.add("x", id="mine", vector=[1, 0], access=U1)
    everything = Access.everything()
    assert semantic.links("mine", access=everything, include_archived=True) == []
    semantic.add("x", id="mine too", vector=[1, 0], access=U1)
    assert ids_of_links(semantic, "mine", access=everything) == [("mine too", "mine")]


def test_a_new_text_is_linked_anew(semantic):
    semantic.add("one", id="a", vector=[1, 0])
    semantic.add("two", id="b", vector=[0, 1])
    semantic.add("three", id="c", vector=[1, 0])
    semantic.link("c", "b", kind="mine")
    assert ids_of_links(semantic, "c", kinds=["semantic"]) == [("c", "a")]
    semantic.update("c", text="changed", vector=[0, 1])
    assert {(link.source, link.target, link.kind) for link in semantic.links("c")} == {
        ("c", "b", "mine"),
        ("c", "b", "semantic"),
    }
    semantic.update("c", importance=0.9)
    assert len(semantic.links("c")) == 2, "the text is the same"


def test_what_has_no_vector_is_not_linked():
    with twofold.open(":memory:", settings=StoreSettings(semantic_links=0.5)) as store:
        store.add("kettle", id="a")
        store.add("kettle", id="b")
        assert store.links("a") == []
    with twofold.open(":memory:", embedder=FakeEmbedder(8), settings=StoreSettings(semantic_links=0.5)) as store:
        store.batch(
            [twofold.store.Add({"id": "a", "text": "kettle"}), twofold.store.Add({"id": "b", "text": "kettle"})]
        )
        assert ids_of_links(store, "a") == [("b", "a")]


def test_links_are_gone_with_their_records(store):
    add(store, "a", "b")
    store.link("a", "b")
    store.delete("b")
    assert store.links("a") == []
    add(store, "b")
    assert store.links("a") == [], "it is another record of the same id"
    assert store.check().ok


def test_times_are_the_clock_s():
    at = [NOW]
    with twofold.open(":memory:", settings=StoreSettings(clock=lambda: at[0])) as store:
        add(store, "a", "b")
        at[0] += timedelta(hours=1)
        store.link("a", "b", weight=0.5)
        at[0] += timedelta(hours=1)
        store.link("a", "b", weight=0.6)
        (link,) = store.links("a")
        assert (link.created_at, link.weight) == (NOW + timedelta(hours=1), 0.6)
