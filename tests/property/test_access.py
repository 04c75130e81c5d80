"""Access is a security boundary: no call of the façade gives, counts or changes what the plain predicate refuses."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold
from twofold import A, Access, F, Owner, Scope
from twofold.backends.sqlite import vec0
from twofold.errors import AccessError, RecordNotFoundError
from twofold.store import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search
from twofold.testing import FakeEmbedder, FlakyEmbedder
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

    @property
    def key(self) -> tuple[Any, ...]:
        """What ``identity`` gives of the record."""
        return (self.owner, self.namespace, self.id)

    @property
    def kind(self) -> str:
        """Tells whose it is, so that a kind that leaks is seen."""
        return f"{self.owner.scope.value} {self.owner.name}"

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.lang, f"tag of {self.kind}")


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
    unique_by=lambda each: each.key,
)


def owner_access(owner: Owner) -> Access:
    if owner.scope is Scope.PERSONAL:
        return Access(user=owner.name)
    return Access(rooms=(owner.name,)) if owner.scope is Scope.ROOM and owner.name else Access()


def fill(store: twofold.HybridStore, records: list[Stored]) -> None:
    """Add them all; each has a word of its own, so that no two vectors are equal."""
    for place, each in enumerate(records):
        access = owner_access(each.owner)
        store.add(
            f"{each.text} n{place}",
            id=each.id,
            namespace=each.namespace,
            kind=each.kind,
            tags=each.tags,
            metadata={"lang": each.lang},
            access=access,
        )
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


def keys_of(records: list[Stored], keep: Callable[[Stored], bool]) -> set[tuple[Any, ...]]:
    return {each.key for each in records if keep(each)}


def seen_by(access: Access, records: list[Stored], *, archived: bool = False) -> set[tuple[Any, ...]]:
    """What the plain predicate lets ``access`` see."""
    return keys_of(records, lambda each: access.can_read(each.owner) and (archived or not each.archived))


def identity(record: twofold.Record) -> tuple[Any, ...]:
    return (record.belongs_to, record.namespace, record.id)


@pytest.fixture(scope="module")
def make_store() -> Callable[[], twofold.HybridStore]:
    return lambda: twofold.open(":memory:", embedder=FakeEmbedder(16))


relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_searches(
    store: twofold.HybridStore, records: list[Stored], access: Access, words: list[str], lang: str, k: int
) -> None:
    """Every mode finds what is visible and nothing else, with and without a filter; fewer only where ``k`` cuts."""
    visible = seen_by(access, records)
    among = keys_of(records, lambda each: each.lang == lang and each.namespace[:1] == ("notes",))
    filters = ((None, visible), ((F("lang") == lang) & A.namespace.prefix(("notes",)), visible & among))
    params = twofold.SearchParams(pool=k)
    for where, fitting in filters:
        for mode in twofold.Mode:
            result = store.search(" ".join(words), access=access, where=where, k=k, mode=mode, params=params)
            found = {identity(hit.record) for hit in result}
            expected = fitting if words else set()
            if mode is twofold.Mode.KEYWORD:
                expected = fitting & keys_of(records, lambda each: not {*words}.isdisjoint(each.text.split()))
            assert found <= expected
            assert len(found) == len(result) == min(k, len(expected))
            assert not result.degradations


def check_listings(store: twofold.HybridStore, records: list[Stored], access: Access, lang: str) -> None:
    """Lists, counts and values are of what is visible."""
    visible, everything = seen_by(access, records), seen_by(access, records, archived=True)
    assert {identity(record) for record in store.list(access=access)} == visible
    assert store.count(access=access) == len(visible)
    assert store.count(access=access, include_archived=True) == len(everything)
    info = store.info(access=access)
    assert (info.records, info.pending) == (len(visible), 0)

    where = (F("lang") == lang) & A.namespace.prefix(("notes",))
    among = keys_of(records, lambda each: each.lang == lang and each.namespace[:1] == ("notes",))
    assert {identity(record) for record in store.list(access=access, where=where)} == visible & among

    for archived, keys in ((False, visible), (True, everything)):
        seen = [each for each in records if each.key in keys]
        for attribute, values in (
            ("kind", {each.kind for each in seen}),
            ("tags", {tag for each in seen for tag in each.tags}),
            ("namespace", {each.namespace for each in seen}),
        ):
            assert list(store.distinct(attribute, access=access, include_archived=archived)) == sorted(values)
    assert store.namespaces(access=access) == sorted({namespace for _, namespace, _ in visible})


def check_lookups(store: twofold.HybridStore, records: list[Stored], access: Access) -> None:
    """An id means the first record that is visible, whoever else has one of the same name."""
    everything = seen_by(access, records, archived=True)
    for namespace in NAMESPACES:
        for owner in (None, *{each.owner for each in records}):
            meant = access.readable_owners if owner is None else (owner,)
            expected = []
            for id_ in IDS:
                holders = [each for each in meant if (each, namespace, id_) in everything]
                record = store.get(id_, access=access, namespace=namespace, owner=owner, include_archived=True)
                assert (record and record.belongs_to) == (holders[0] if holders else None)
                expected += [] if record is None else [record]
            many = store.get_many(IDS, access=access, namespace=namespace, owner=owner, include_archived=True)
            assert many == expected


def check_batch(store: twofold.HybridStore, records: list[Stored], access: Access) -> None:
    visible = seen_by(access, records)
    reads: list[Operation] = [Search("kettle pager", k=200), ListRecords(), ListNamespaces(), Get("doc-1")]
    found, listed, namespaces, got = store.batch(reads, access=access)
    assert {identity(hit.record) for hit in found} == visible
    assert {identity(record) for record in listed} == visible
    assert namespaces == store.namespaces(access=access)
    assert got == store.get("doc-1", access=access)


@relaxed
@given(
    records=stored_records,
    access=accesses,
    words=st.lists(st.sampled_from(WORDS), max_size=3),
    lang=st.sampled_from(("en", "ru")),
)
def test_reads_show_what_the_predicate_lets_through(
    make_store: Callable[[], twofold.HybridStore], records: list[Stored], access: Access, words: list[str], lang: str
) -> None:
    with make_store() as store:
        fill(store, records)
        check_searches(store, records, access, words, lang, k=100)
        check_listings(store, records, access, lang)
        check_lookups(store, records, access)
        check_batch(store, records, access)


@relaxed
@given(records=stored_records, access=accesses, waiting=st.sets(st.integers(0, 24)))
def test_only_what_the_predicate_lets_through_is_counted_as_pending_and_embedded(
    records: list[Stored], access: Access, waiting: set[int]
) -> None:
    embedder = FlakyEmbedder(FakeEmbedder(16))
    patient = twofold.EmbeddingSettings(failures_to_open=1000, fill_in=False)
    with twofold.open(":memory:", embedder=embedder, settings=twofold.StoreSettings(embedding=patient)) as store:
        late = [each for place, each in enumerate(records) if place in waiting]
        fill(store, [each for each in records if each not in late])
        embedder.down = True
        fill(store, late)
        embedder.down = False

        pending = len(seen_by(access, late))
        assert store.info(access=access).pending == pending
        messages = [
            each.message
            for each in store.search("kettle", access=access).degradations
            if each.code is twofold.DegradationCode.VECTORS_PENDING
        ]
        assert len(messages) == (pending > 0)
        if messages and len(late) < len(records):
            assert messages[0].startswith(f"{pending} of the records")

        asked = len(embedder.texts)
        mine = seen_by(access, late, archived=True)
        progress: list[twofold.Progress] = []
        report = store.embed_pending(access=access, progress=progress.append)
        assert (report.embedded, report.parked, report.remaining) == (len(mine), 0, 0)
        assert all(each == twofold.Progress(len(mine), len(mine)) for each in progress)
        readable = {f"{each.text} n{place}" for place, each in enumerate(late) if access.can_read(each.owner)}
        assert set(embedder.texts[asked:]) <= readable
        assert store.info(access=access).pending == 0
        rest = store.embed_pending(access=Access.everything())
        assert rest.embedded == len(late) - len(mine)


@dataclass(frozen=True)
class Setter:
    """Somebody who marks a key of their own, and one that all mark."""

    access: Access
    own: str


@relaxed
@given(
    setters=st.lists(st.builds(Setter, accesses, st.sampled_from(("a", "b", "c"))), max_size=4),
    access=accesses,
)
def test_marks_are_seen_and_deleted_by_their_owner_only(
    make_store: Callable[[], twofold.HybridStore], setters: list[Setter], access: Access
) -> None:
    def listed(marks: Any, whose: Access) -> list[tuple[str, str | None, float]]:
        return sorted((mark.key, mark.group, mark.time) for mark in marks.list("index", access=whose))

    with make_store() as store:
        expected: dict[Owner, dict[str, tuple[str, str, float]]] = {}
        for time, each in enumerate(setters):
            owner = each.access.default_owner
            group = f"of {owner}"
            keys = ["all", each.own]
            store.marks.set("index", keys, groups=[group, group], time=float(time), access=each.access)
            expected.setdefault(owner, {}).update({key: (key, group, float(time)) for key in keys})

        mine = expected.get(access.default_owner, {})
        assert listed(store.marks, access) == sorted(mine.values())
        asked = ["all", "a", "b", "c"]
        assert store.marks.exists("index", asked, access=access) == [key in mine for key in asked]
        store.marks.delete("index", asked, access=access)
        for each in setters:
            owner = each.access.default_owner
            left = {} if owner == access.default_owner else expected[owner]
            assert listed(store.marks, each.access) == sorted(left.values())


def places(records: list[Stored]) -> dict[tuple[Any, ...], int]:
    return {each.key: place for place, each in enumerate(records)}


def fitting_places(records: list[Stored], access: Access, lang: str | None) -> set[int]:
    number = places(records)
    return {number[key] for key in seen_by(access, records) if lang in (None, records[number[key]].lang)}


def links_shown(records: list[Stored], shown: Iterable[twofold.Link]) -> set[Linked]:
    number = places(records)
    return {
        Linked(
            number[link.owner, link.namespace, link.source],
            number[link.target_owner, link.target_namespace, link.target],
            link.kind,
            link.weight,
        )
        for link in shown
    }


def check_expansion(
    store: twofold.HybridStore,
    records: list[Stored],
    made: set[Linked],
    access: Access,
    words: list[str],
    k: int,
    hops: int,
    lang: str | None,
) -> None:
    """What a search adds to its hits is what visible links lead to through what is visible and fits."""
    number = places(records)
    where = None if lang is None else F("lang") == lang
    params = twofold.SearchParams(expand=100, hops=hops, link_fan_out=1000, trace=True)
    plain = store.search(" ".join(words), access=access, k=k, where=where)
    result = store.search(" ".join(words), access=access, k=k, where=where, params=params)
    assert result.hits == plain.hits, "what is linked displaces no hit"
    hits = {number[identity(hit.record)] for hit in result}
    linked = [number[identity(hit.record)] for hit in result.linked]
    assert len(linked) == len(set(linked))
    assert set(linked) == reachable(hits, fitting_places(records, access, lang), made, hops)
    for hit in result.linked:
        assert 0 < hit.score < result[-1].score or result[-1].score == hit.score == 0
        assert 1 <= len(hit.explanation.path) <= hops
        assert hit.explanation.path[-1].end == hit.id


def check_links(
    store: twofold.HybridStore, records: list[Stored], made: set[Linked], access: Access, hops: int, lang: str | None
) -> None:
    """A link is seen by who sees both its ends, and leads only through what is visible and fits."""
    number = places(records)
    where = None if lang is None else F("lang") == lang
    visible, fitting = fitting_places(records, access, None), fitting_places(records, access, lang)
    for place, each in enumerate(records):
        where_it_is: dict[str, Any] = {"access": access, "namespace": each.namespace, "owner": each.owner}
        if place not in visible:
            for call in (store.links, store.neighbors):
                with pytest.raises(RecordNotFoundError):
                    call(each.id, **where_it_is)
            continue
        assert links_shown(records, store.links(each.id, **where_it_is)) == {
            one for one in made if place in (one.source, one.target) and {one.source, one.target} <= visible
        }
        near = store.neighbors(each.id, hops=hops, limit=100, where=where, **where_it_is)
        assert {number[identity(one.record)] for one in near} == reachable({place}, fitting, made, hops)


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
        check_expansion(store, records, made, access, words, k, hops, lang)
        check_links(store, records, made, access, hops, lang)
        assert store.check().ok


@relaxed
@given(records=stored_records, wanted=links, access=accesses)
def test_unlink_removes_only_what_the_predicate_lets_through(
    make_store: Callable[[], twofold.HybridStore], records: list[Stored], wanted: list[Linked], access: Access
) -> None:
    with make_store() as store:
        fill(store, records)
        left = connect(store, records, wanted)
        for each in sorted(left, key=lambda one: (one.source, one.target, one.kind)):
            source, target = records[each.source], records[each.target]

            def unlink(each: Linked = each, source: Stored = source, target: Stored = target) -> int:
                return store.unlink(
                    source.id,
                    target.id,
                    kind=each.kind,
                    access=access,
                    namespace=source.namespace,
                    target_namespace=target.namespace,
                    owner=source.owner,
                    target_owner=target.owner,
                )

            if access.can_read(source.owner) and not access.can_write(source.owner):
                with pytest.raises(AccessError):
                    unlink()
                continue
            allowed = access.can_write(source.owner) and access.can_read(target.owner)
            assert unlink() == allowed
            left -= {each} if allowed else set()
        everybody = Access.everything()
        for place, record in enumerate(records):
            shown = store.links(
                record.id, access=everybody, namespace=record.namespace, owner=record.owner, include_archived=True
            )
            assert links_shown(records, shown) == {one for one in left if place in (one.source, one.target)}


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
    way=st.sampled_from(("add", "add_many", "batch")),
)
def test_what_is_added_belongs_to_whom_the_access_may_write_for(
    make_store: Callable[[], twofold.HybridStore],
    records: list[Stored],
    access: Access,
    scope: Scope | None,
    room: str | None,
    way: Literal["add", "add_many", "batch"],
) -> None:
    def add(store: twofold.HybridStore) -> object:
        if way == "add":
            return store.add("fresh words", id="doc-1", scope=scope, room=room, access=access)
        new = twofold.NewRecord(text="fresh words", id="doc-1", scope=scope, room=room)
        return store.add_many([new], access=access) if way == "add_many" else store.batch([Add(new)], access=access)

    with make_store() as store:
        fill(store, records)
        before = {identity(record) for record in store.list(access=Access.everything(), include_archived=True)}
        try:
            add(store)
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
        changed = before ^ {
            identity(record) for record in store.list(access=Access.everything(), include_archived=True)
        }
        assert changed <= {(added[0].belongs_to, (), "doc-1")}


@relaxed
@given(records=stored_records.filter(bool), access=accesses)
def test_a_stored_record_given_back_is_refused_where_its_owner_may_not_be_written(
    make_store: Callable[[], twofold.HybridStore], records: list[Stored], access: Access
) -> None:
    with make_store() as store:
        fill(store, records)
        before = store.list(access=Access.everything(), include_archived=True)
        for record in before:
            if not access.can_write(record.belongs_to):
                with pytest.raises(AccessError):
                    store.batch([Add(record)], access=access)
        assert store.list(access=Access.everything(), include_archived=True) == before


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
def test_every_index_shows_what_the_predicate_lets_through(index: Any) -> None:
    # Records that everybody sees, and as many that nobody here does, surround those of the example.
    crowd = [
        Stored(owner, ("crowd",), f"c{number}", "kettle", "en", archived=False)
        for number in range(80)
        for owner in (Owner.everybody(), Owner.user("nobody"))
    ]
    with pytest.MonkeyPatch.context() as patch:
        answers = let_it_answer_on_few_rows(patch)

        @settings(relaxed, max_examples=4)
        @given(
            some=stored_records,
            wanted=links,
            access=accesses,
            words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
            lang=st.sampled_from(("en", "ru")),
        )
        def check(some: list[Stored], wanted: list[Linked], access: Access, words: list[str], lang: str) -> None:
            records = some + crowd
            chosen = twofold.StoreSettings(index=index)
            with twofold.open(":memory:", embedder=FakeEmbedder(16), settings=chosen) as store:
                fill(store, records)
                made = connect(store, records, wanted)
                for k in (3, 10, 200):
                    check_searches(store, records, access, words, lang, k)
                check_listings(store, records, access, lang)
                check_lookups(store, some, access)
                check_batch(store, records, access)
                check_expansion(store, records, made, access, words, 3, 2, lang)
                check_links(store, records[:25], made, access, 2, lang)

        check()
    assert answers or index == "faiss-flat", "the exact scan stood in for it all the time"


def let_it_answer_on_few_rows(patch: pytest.MonkeyPatch) -> list[str]:
    """Lower what has small stores scanned exactly; the list gets an entry for each answer that is no exact scan's."""
    answers: list[str] = []
    patch.setattr(approximate, "LEAST_ROWS", 100)
    patch.setattr(approximate, "_MARGIN", 4)
    patch.setattr(approximate, "_COSTS", 0.001)
    patch.setattr(vec0, "_EXACT_COUNT", 0)
    patch.setattr(vec0, "_MARGIN", 4)
    breadth_for, nearest = approximate.ApproximateIndex._breadth_for, vec0.Vec0._nearest

    def noted_breadth(index: Any, rows: Any, limit: int) -> Any:
        breadth = breadth_for(index, rows, limit)
        answers.extend([] if breadth is None else [index.kind])
        return breadth

    def noted_nearest(*asked: Any) -> Any:
        found = nearest(*asked)
        answers.extend([] if found is None else ["sqlite-vec"])
        return found

    patch.setattr(approximate.ApproximateIndex, "_breadth_for", noted_breadth)
    patch.setattr(vec0.Vec0, "_nearest", noted_nearest)
    return answers


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
