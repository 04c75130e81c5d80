"""Whose record an id means, where users, rooms and scopes have the same names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import twofold
from twofold import Access, AccessError, ConfigurationError, HybridStore, Owner, Scope

USER = Access(user="u1")
ROOM = Access(rooms=("u1",))


@pytest.fixture
def store() -> Iterator[HybridStore]:
    with twofold.open(":memory:") as store:
        store.add("of the room", id="d", access=ROOM)
        yield store


@pytest.mark.parametrize("scope", [Scope.ROOM, "room"])
def test_a_user_called_like_a_room_does_not_reach_it(store: HybridStore, scope: Scope) -> None:
    owner = Owner(scope, "u1")
    assert not USER.can_read(owner)
    assert not USER.can_write(owner)
    assert store.get("d", access=USER, owner=owner) is None
    assert store.delete("d", access=USER, owner=owner) == 0
    room = store.get("d", access=ROOM, owner=owner)
    assert room is not None
    assert room.text == "of the room"


def test_a_record_made_by_hand_is_written_for_whom_it_names(store: HybridStore) -> None:
    record = store.get("d", access=ROOM)
    assert record is not None
    forged = replace(record, scope="room", fields={"text": "forged"})  # type: ignore[arg-type]
    with pytest.raises(AccessError):
        store.add_many([forged], access=USER)
    store.add_many([forged], access=ROOM)
    assert [each.text for each in store.list(access=Access.everything())] == ["forged"]


@pytest.mark.parametrize(
    "owner", [Owner("club", "u1"), Owner(Scope.ROOM, ""), Owner(Scope.PERSONAL), Owner(Scope.GLOBAL, "u1"), "u1"]
)
def test_an_owner_that_cannot_be(store: HybridStore, owner: Owner) -> None:
    with pytest.raises(ConfigurationError):
        store.get("d", access=Access.everything(), owner=owner)


def test_an_id_is_found_among_very_many_rooms_in_their_order(store: HybridStore) -> None:
    rooms = tuple(f"r{n}" for n in range(3000))
    for room in ("r2999", "r7", "r400"):
        store.add(f"in {room}", id="d", access=Access(rooms=(room,)))
    store.add("everybody's", id="g")
    many = Access(user="u", rooms=rooms)
    assert store.get("d", access=many) is not None
    assert store.get("d", access=many).owner == "r7"
    assert store.get("d", access=Access(user="u", rooms=rooms[::-1])).owner == "r2999"
    assert [record.id for record in store.get_many([*map(str, range(2000)), "g", "d"], access=many)] == ["g", "d"]
    assert store.get("d", access=Access(rooms=tuple(f"x{n}" for n in range(100)))) is None


def test_the_size_of_the_file_tells_a_user_nothing_of_others(store: HybridStore) -> None:
    assert "file_bytes" in store.info().backend.details
    assert "file_bytes" in store.info(access=Access.everything()).backend.details
    for access in (USER, ROOM):
        assert "file_bytes" not in store.view(access).info().backend.details
