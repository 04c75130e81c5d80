"""Who may read and write what."""

from __future__ import annotations

from typing import Any

import pytest

from twofold import Access, AccessError, ConfigurationError, Owner, Scope

U1, U2, R1, R2, ALL = Owner.user("u1"), Owner.user("u2"), Owner.room("r1"), Owner.room("r2"), Owner.everybody()


@pytest.mark.parametrize(
    ("access", "reads", "writes", "default"),
    [
        (Access(), {ALL}, {ALL}, ALL),
        (Access(user="u1"), {U1, ALL}, {U1}, U1),
        (Access(user="u1", rooms=("r1",)), {U1, R1, ALL}, {U1, R1}, U1),
        (Access(user="u1", write_global=True), {U1, ALL}, {U1, ALL}, U1),
        (Access(rooms=("r1",)), {R1, ALL}, {R1}, R1),
        (Access(rooms=("r2", "r1")), {R1, R2, ALL}, {R1, R2}, R2),
        (Access.everything(), {U1, U2, R1, R2, ALL}, {U1, U2, R1, R2, ALL}, ALL),
    ],
)
def test_what_an_access_reads_and_writes(access: Access, reads: set[Owner], writes: set[Owner], default: Owner) -> None:
    owners = {U1, U2, R1, R2, ALL}
    assert {owner for owner in owners if access.can_read(owner)} == reads
    assert {owner for owner in owners if access.can_write(owner)} == writes
    assert access.default_owner == default
    if not access.is_everything:
        assert set(access.readable_owners) == reads


def test_a_room_and_a_user_of_one_name_are_two_owners() -> None:
    access = Access(user="r1")
    assert not access.can_read(Owner.room("r1"))
    assert not Access(rooms=("u1",)).can_read(Owner.user("u1"))


def test_ids_are_looked_up_own_first_then_rooms_in_order_then_global() -> None:
    assert Access(user="u1", rooms=("r2", "r1", "r2")).readable_owners == (U1, R2, R1, ALL)


@pytest.mark.parametrize(
    ("access", "scope", "room", "owner"),
    [
        (Access(user="u1", rooms=("r1",)), None, None, U1),
        (Access(user="u1", rooms=("r1", "r2")), None, "r2", R2),
        (Access(user="u1", rooms=("r1",)), "room", None, R1),
        (Access(user="u1", write_global=True), "global", None, ALL),
        (Access(user="u1"), Scope.PERSONAL, None, U1),
        (Access.everything(), None, None, ALL),
    ],
)
def test_the_owner_of_what_is_added(access: Access, scope: Any, room: str | None, owner: Owner) -> None:
    assert access.owner_of_new(scope, room) == owner


@pytest.mark.parametrize(
    ("access", "scope", "room", "error"),
    [
        (Access(user="u1"), "global", None, AccessError),
        (Access(user="u1"), None, "r1", AccessError),
        (Access(rooms=("r1",)), "global", None, AccessError),
        (Access(rooms=("r1",)), "personal", None, ConfigurationError),
        (Access(user="u1", rooms=("r1", "r2")), "room", None, ConfigurationError),
        (Access(user="u1", rooms=("r1",)), "personal", "r1", ConfigurationError),
        (Access(), "everyone", None, ConfigurationError),
    ],
)
def test_where_nothing_may_be_added(access: Access, scope: Any, room: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        access.owner_of_new(scope, room)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 7, b"u1"])
def test_names_that_cannot_be_told_apart_in_the_file_are_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError):
        Access(user=name)
    with pytest.raises(ConfigurationError):
        Access(rooms=(name,))
    with pytest.raises(ConfigurationError):
        Owner.user(name)


def test_rooms_written_as_one_word_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"rooms=\('r1',\)"):
        Access(rooms="r1")  # type: ignore[arg-type]


def test_everything_must_be_asked_for_by_name() -> None:
    assert Access.everything() != Access(write_global=True)
    with pytest.raises(TypeError):
        Access("u1", (), False, True)  # type: ignore[misc]
