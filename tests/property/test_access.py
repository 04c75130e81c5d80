"""Access is a security boundary: no call of the façade gives, counts or changes what the plain predicate refuses."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold
from twofold import A, Access, F, Owner, Scope
from twofold.backends.sqlite import vec0
from twofold.errors import AccessError, RecordNotFoundError
from twofold.store import Add, Delete, Get, ListRecords, Search
from twofold.testing import FakeEmbedder
from twofold.vectors import approximate

USERS = ("u1", "u2")
ROOMS = ("r1", "r2", "u1")  # a room may be called like a user
IDS = ("doc-1", "doc-2", "doc-3")
WORDS = ("kettle", "teapot", "broker", "pager")
NAMESPACES: tuple[tuple[str, ...], ...] = ((), ("notes",), ("notes", "old"), ("notesx",))

owners = st.one_of(
    st.sampled_from(USERS).map(Owner.user),
    st.sampled_from(ROOMS).map(Owner.room),
    st.just(Owner.everybody()),
)
accesses = st.builds(
    Access,
    user=st.none() | st.sampled_from(USERS),
    rooms=st.lists(st.sampled_from(ROOMS), max_size=2).map(tuple),
    write_global=st.booleans(),
)


@dataclass(frozen=True)
class Stored:
    owner: Owner
    namespace: tuple[str, ...]
    id: str
    text: str
    lang: str
    archived: bool


stored_records = st.lists(
    st.builds(
        Stored,
        owner=owners,
        namespace=st.sampled_from(NAMESPACES),
        id=st.sampled_from(IDS),
        text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
        lang=st.sampled_from(("en", "ru")),
        archived=st.booleans(),
    ),
    max_size=25,
    unique_by=lambda each: (each.owner, each.namespace, each.id),
)


def owner_access(owner: Owner) -> Access:
    if owner.scope is Scope.PERSONAL:
        return Access(user=owner.name)
    return Access(rooms=(owner.name,)) if owner.scope is Scope.ROOM and owner.name else Access()


def fill(store: twofold.HybridStore, records: list[Stored]) -> None:
    for each in records:
        access = owner_access(each.owner)
        store.add(each.text, id=each.id, namespace=each.namespace, metadata={"lang": each.lang}, access=access)
        if each.archived:
            store.archive(each.id, namespace=each.namespace, access=access)


@dataclass(frozen=True)
class Linked:
    """A link between two of the records, by their places."""

    source: int
    target: int
    kind: str
    weight: float


links = st.lists(
    st.builds(
        Linked,
        source=st.integers(0, 24),
        target=st.integers(0, 24),
        kind=st.sampled_from(("related", "mine")),
        weight=st.sampled_from((0.25, 0.5, 1.0)),
    ),
    max_size=60,
)


def connect(store: twofold.HybridStore, records: list[Stored], wanted: list[Linked]) -> set[Linked]:
    """Make the links that the plain predicate allows the source's owner to make; those that there are then."""
    made: dict[tuple[Any, ...], Linked] = {}
    for each in wanted:
        if max(each.source, each.target) >= len(records) or each.source == each.target:
            continue
        source, target = records[each.source], records[each.target]
        access = owner_access(source.owner)

        def link(
            each: Linked = each, source: Stored = source, target: Stored = target, access: Access = access
        ) -> bool:
            return store.link(
                source.id,
                target.id,
                kind=each.kind,
                weight=each.weight,
                access=access,
                namespace=source.namespace,
                target_namespace=target.namespace,
                owner=source.owner,
                target_owner=target.owner,
            )

        if access.can_read(target.owner):
            place = (each.source, each.target, each.kind)
            assert link() == (place not in made)
            made[place] = each
        else:
            with pytest.raises(RecordNotFoundError):
                link()
    return set(made.values())


def reachable(start: set[int], allowed: set[int], made: set[Linked], hops: int) -> set[int]:
    """The records that links lead to from ``start`` through ``allowed`` ones."""
    found, frontier = set(start), set(start)
    for _ in range(hops):
        frontier = {
            far
            for each in made
            for near, far in ((each.source, each.target), (each.target, each.source))
            if near in frontier and far in allowed and far not in found
        }
        found |= frontier
    return found - start


def seen_by(access: Access, records: list[Stored], *, archived: bool = False) -> set[tuple[Any, ...]]:
    """What the plain predicate lets ``access`` see."""
    return {
        (each.owner, each.namespace, each.id)
        for each in records
        if access.can_read(each.owner) and (archived or not each.archived)
    }


def identity(record: twofold.Record) -> tuple[Any, ...]:
    return (record.belongs_to, record.namespace, record.id)


@pytest.fixture(scope="module")
def make_store() -> Callable[[], twofold.HybridStore]:
    return lambda: twofold.open(":memory:", embedder=FakeEmbedder(16))


relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(records=stored_records, access=accesses, words=st.lists(st.sampled_from(WORDS), max_size=3), data=st.data())
def test_reads_show_what_the_predicate_lets_through(
    make_store: Callable[[], twofold.HybridStore],
    records: list[Stored],
    access: Access,
    words: list[str],
    data: st.DataObject,
) -> None:
    with make_store() as store:
        fill(store, records)
        visible = seen_by(access, records)
        everything = seen_by(access, records, archived=True)

        for mode in ("hybrid", "keyword", "vector"):
            found = {identity(hit.record) for hit in store.search(" ".join(words), access=access, k=100, mode=mode)}
            assert found <= visible
            if words and mode != "keyword":
                assert found == visible
            if words and mode == "keyword":
                matching = {
                    (each.owner, each.namespace, each.id) for each in records if set(words) & set(each.text.split())
                }
                assert found == matching & visible

        assert {identity(record) for record in store.list(access=access)} == visible
        assert store.count(access=access) == len(visible)
        assert store.count(access=access, include_archived=True) == len(everything)
        assert store.info(access=access).records == len(visible)
        assert set(store.namespaces(access=access)) == {namespace for _, namespace, _ in visible}

        lang = data.draw(st.sampled_from(("en", "ru")))
        wanted = {
            (each.owner, each.namespace, each.id)
            for each in records
            if each.lang == lang and each.namespace[:1] == ("notes",)
        }
        where = (F("lang") == lang) & A.namespace.prefix(("notes",))
        assert {identity(record) for record in store.list(access=access, where=where)} == wanted & visible
        assert {identity(hit.record) for hit in store.search("kettle pager", access=access, where=where, k=100)} <= (
            wanted & visible
        )

        for namespace in NAMESPACES:
            for id_ in IDS:
                holders = [owner for owner in access.readable_owners if (owner, namespace, id_) in everything]
                record = store.get(id_, access=access, namespace=namespace, include_archived=True)
                assert (record and record.belongs_to) == (holders[0] if holders else None)
                for owner in {each.owner for each in records}:
                    record = store.get(id_, access=access, namespace=namespace, owner=owner, include_archived=True)
                    assert (record is not None) == ((owner, namespace, id_) in everything)

        results = store.batch([Search("kettle pager", k=100), ListRecords(), Get("doc-1")], access=access)
        assert {identity(hit.record) for hit in results[0]} <= visible
        assert {identity(record) for record in results[1]} == visible
        assert results[2] is None or identity(results[2]) in visible


@relaxed
@given(
    records=stored_records,
    wanted=links,
    access=accesses,
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
    k=st.integers(1, 4),
    hops=st.integers(1, 3),
    lang=st.none() | st.sampled_from(("en", "ru")),
)
def test_links_lead_only_to_and_through_what_the_predicate_lets_through(
    make_store: Callable[[], twofold.HybridStore],
    records: list[Stored],
    wanted: list[Linked],
    access: Access,
    words: list[str],
    k: int,
    hops: int,
    lang: str | None,
) -> None:
    with make_store() as store:
        fill(store, records)
        made = connect(store, records, wanted)
        number = {(each.owner, each.namespace, each.id): place for place, each in enumerate(records)}
        visible = {number[key] for key in seen_by(access, records)}
        fitting = {place for place in visible if lang is None or records[place].lang == lang}
        where = None if lang is None else F("lang") == lang

        params = twofold.SearchParams(expand=100, hops=hops, link_fan_out=1000, trace=True)
        plain = store.search(" ".join(words), access=access, k=k, where=where)
        result = store.search(" ".join(words), access=access, k=k, where=where, params=params)
        assert result.hits == plain.hits, "what is linked displaces no hit"
        hits = {number[identity(hit.record)] for hit in result}
        linked = [number[identity(hit.record)] for hit in result.linked]
        assert len(linked) == len(set(linked))
        assert set(linked) == reachable(hits, fitting, made, hops)
        for hit in result.linked:
            assert 0 < hit.score < result[-1].score or result[-1].score == hit.score == 0
            assert 1 <= len(hit.explanation.path) <= hops
            assert hit.explanation.path[-1].end == hit.id

        for place, each in enumerate(records):
            where_it_is = {"access": access, "namespace": each.namespace, "owner": each.owner}
            if place not in visible:
                for call in (store.links, store.neighbors):
                    with pytest.raises(RecordNotFoundError):
                        call(each.id, **where_it_is)
                continue
            shown = {
                (
                    number[link.owner, link.namespace, link.source],
                    number[link.target_owner, link.target_namespace, link.target],
                    link.kind,
                    link.weight,
                )
                for link in store.links(each.id, **where_it_is)
            }
            assert shown == {
                (one.source, one.target, one.kind, one.weight)
                for one in made
                if place in (one.source, one.target) and {one.source, one.target} <= visible
            }
            near = store.neighbors(each.id, hops=hops, limit=100, where=where, **where_it_is)
            assert {number[identity(one.record)] for one in near} == reachable({place}, fitting, made, hops)
        assert store.check().ok


@relaxed
@given(records=stored_records, access=accesses, id_=st.sampled_from(IDS), namespace=st.sampled_from(NAMESPACES))
def test_writes_change_only_what_the_predicate_lets_through(
    make_store: Callable[[], twofold.HybridStore],
    records: list[Stored],
    access: Access,
    id_: str,
    namespace: tuple[str, ...],
) -> None:
    by_identity = {(each.owner, each.namespace, each.id): each for each in records}

    def snapshot(store: twofold.HybridStore) -> dict[tuple[Any, ...], twofold.Record]:
        return {identity(record): record for record in store.list(access=Access.everything(), include_archived=True)}

    holders = [owner for owner in access.readable_owners if (owner, namespace, id_) in by_identity]
    target = (holders[0], namespace, id_) if holders else None
    calls: list[Callable[[twofold.HybridStore], object]] = [
        lambda store: store.update(id_, access=access, namespace=namespace, text="changed"),
        lambda store: store.archive(id_, access=access, namespace=namespace),
        lambda store: store.restore(id_, access=access, namespace=namespace),
        lambda store: store.delete([id_], access=access, namespace=namespace),
        lambda store: store.batch([Delete(id_, namespace)], access=access),
    ]
    for call in calls:
        with make_store() as store:
            fill(store, records)
            before = snapshot(store)
            try:
                call(store)
            except RecordNotFoundError:
                assert target is None
            except AccessError:
                assert target is not None
                assert not access.can_write(target[0])
            after = snapshot(store)
            changed = {key for key in before | after if before.get(key) != after.get(key)}
            assert changed <= ({target} if target is not None and access.can_write(target[0]) else set())

    with make_store() as store:
        fill(store, records)
        before = snapshot(store)
        store.delete(where=A.id == id_, access=access)
        expected = {key for key in before if not (key[2] == id_ and access.can_write(key[0]))}
        assert set(snapshot(store)) == expected
        store.clear(access=access, namespace=("notes",))
        expected = {key for key in expected if not (key[1][:1] == ("notes",) and access.can_write(key[0]))}
        assert set(snapshot(store)) == expected


@relaxed
@given(
    records=stored_records,
    access=accesses,
    scope=st.none() | st.sampled_from(list(Scope)),
    room=st.none() | st.sampled_from(ROOMS),
)
def test_what_is_added_belongs_to_whom_the_access_may_write_for(
    make_store: Callable[[], twofold.HybridStore],
    records: list[Stored],
    access: Access,
    scope: Scope | None,
    room: str | None,
) -> None:
    with make_store() as store:
        fill(store, records)
        before = {identity(record) for record in store.list(access=Access.everything(), include_archived=True)}
        try:
            store.add("fresh words", id="doc-1", scope=scope, room=room, access=access)
        except (AccessError, twofold.ConfigurationError):
            after = {identity(record) for record in store.list(access=Access.everything(), include_archived=True)}
            assert after == before
            return
        added = [
            record
            for record in store.list(access=Access.everything(), include_archived=True)
            if record.text == "fresh words"
        ]
        assert len(added) == 1
        assert access.can_write(added[0].belongs_to)
        assert room is None or added[0].owner == room


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("sqlite-vec", marks=needs("sqlite_vec", "pysqlite3")),
        *(pytest.param(name, marks=needs("faiss")) for name in ("faiss-flat", "faiss-hnsw", "faiss-ivf")),
    ],
)
@settings(relaxed, max_examples=4)
@given(records=stored_records, access=accesses)
def test_every_index_shows_what_the_predicate_lets_through(index: Any, records: list[Stored], access: Access) -> None:
    # Many records of one more user surround those of the example, so that the index itself is asked, and not a scan.
    crowd = np.random.default_rng(len(records)).standard_normal((600, 16)).astype(np.float32)
    mine = crowd[:300] + np.float32(0.1)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(approximate, "LEAST_ROWS", 100)
        patch.setattr(vec0, "_EXACT_COUNT", 0)
        given_index = twofold.StoreSettings(index=index)
        store = stack.enter_context(
            twofold.open(":memory:", embedder=twofold.GivenVectors("crowd", 16), settings=given_index)
        )
        for vectors, user in ((crowd, "nobody"), (mine, "u1")):
            news = [twofold.NewRecord(text="kettle", vector=vector) for vector in vectors]
            store.add_many(news, access=Access(user=user))
        fill(store, records)
        for query in (crowd[0], mine[0]):
            result = store.search("", vector=query, access=access, k=20, mode="vector")
            assert {hit.record.belongs_to for hit in result} <= set(access.readable_owners)
            assert len(result) == (20 if access.user == "u1" else 0)
            assert not [each for each in result.degradations if each.code == "exact_fallback"]


def test_an_id_that_may_not_be_seen_behaves_as_one_that_is_not_there() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    settings_ = twofold.StoreSettings(clock=lambda: now)
    with twofold.open(":memory:", settings=settings_) as store:
        store.add("secret kettle price", id="s1", access=Access(user="u2"))
        me = store.view(Access(user="u1"))
        for id_ in ("s1", "nothing"):
            assert me.get(id_) is None
            assert me.get(id_, owner=Owner.user("u2")) is None
            assert me.delete([id_]) == 0
            assert me.archive([id_]) == 0
            with pytest.raises(RecordNotFoundError) as raised:
                me.update(id_, text="mine now")
            assert str(raised.value).replace(id_, "ID") == "there is no record 'ID' here that this access may see"
        assert me.add("my kettle", id="s1").outcome == "added"
        assert me.batch([Add(twofold.NewRecord(text="again", id="s1")), Get("s1")])[1].text == "my kettle"
        theirs = store.get("s1", access=Access(user="u2"))
        assert theirs is not None
        assert theirs.text == "secret kettle price"


def test_a_view_takes_no_other_access() -> None:
    with twofold.open(":memory:") as store:
        me = store.view(Access(user="u1"))
        with pytest.raises(AccessError, match="bound to one access"):
            me.search("x", access=Access(user="u2"))
        with pytest.raises(AccessError, match="whole file"):
            me.check()
        with pytest.raises(AccessError, match="bound to one access"):
            me.view(Access(user="u2"))


def test_everything_names_the_holders_it_cannot_choose_from() -> None:
    with twofold.open(":memory:") as store:
        store.add("one", id="doc-1", access=Access(user="u1"))
        store.add("two", id="doc-1", access=Access(user="u2"))
        with pytest.raises(twofold.AmbiguousIdError, match="owner="):
            store.get("doc-1", access=Access.everything())
        found = store.get("doc-1", access=Access.everything(), owner=Owner.user("u2"))
        assert found is not None
        assert found.text == "two"
