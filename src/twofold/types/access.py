"""Who is asking, and whose a record is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from twofold.errors import AccessError, ConfigurationError
from twofold.types.arguments import checked_flag, checked_items

__all__ = ["Access", "Owner", "Scope", "checked_owner"]


class Scope(StrEnum):
    """How far a record is shared."""

    GLOBAL = "global"
    """Shared by all; has no owner."""
    ROOM = "room"
    """Shared by the members of a room, its owner."""
    PERSONAL = "personal"
    """Belongs to one user, its owner."""


class Owner(NamedTuple):
    """Whose a record is: a user's, a room's, or everybody's."""

    scope: Scope
    """The kind of owner."""
    name: str | None = None
    """The user or the room; None for ``Scope.GLOBAL``."""

    @classmethod
    def user(cls, name: str) -> Owner:
        """The owner of a user's personal records."""
        return cls(Scope.PERSONAL, _checked_name(name, "user"))

    @classmethod
    def room(cls, name: str) -> Owner:
        """The owner of a room's records."""
        return cls(Scope.ROOM, _checked_name(name, "room"))

    @classmethod
    def everybody(cls) -> Owner:
        """The owner of global records."""
        return _EVERYBODY

    def __str__(self) -> str:
        return self.scope.value if self.name is None else f"{self.scope.value}:{self.name}"


_EVERYBODY: Final = Owner(Scope.GLOBAL, None)


def checked_owner(value: object) -> Owner:
    """``value`` as one of the owners that there can be: ``Owner`` itself takes any scope and any name.

    Raises:
        ConfigurationError: it is no owner.
    """
    if not isinstance(value, Owner):
        raise ConfigurationError(f"owner is an Owner, not {value!r}: write Owner.user('u1'), say")
    if value.scope == Scope.PERSONAL:
        return Owner.user(value.name)  # type: ignore[arg-type]  # refused there
    if value.scope == Scope.ROOM:
        return Owner.room(value.name)  # type: ignore[arg-type]  # refused there
    if value.scope == Scope.GLOBAL and value.name is None:
        return Owner.everybody()
    raise ConfigurationError(f"there is no such owner as {value!r}: write Owner.user('u1'), say")


def _checked_name(name: object, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"a {what} is named by non-empty text, not {name!r}")
    if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
        raise ConfigurationError(f"the name of a {what} holds no NUL and no lone surrogate: {name!r}")
    return name


@dataclass(frozen=True, slots=True)
class Access:
    """Who is asking. Not a filter: every call takes it apart from the filter.

    ``Access()`` is the application working on shared records: it reads and writes global ones.
    ``Access(user="u1", rooms=("r1",))`` reads global records, its rooms' and its own, and writes its
    own and its rooms'. ``Access.everything()`` is for maintenance and must be asked for by name.

    Raises:
        ConfigurationError: a name is empty, not text, or holds NUL or a lone surrogate.
    """

    user: str | None = None
    """The user who asks. Default: none."""
    rooms: tuple[str, ...] = ()
    """The rooms whose records may be read and written. Default: none."""
    write_global: bool = False
    """Whether a user or a room may write global records too. Default: False."""
    _everything: bool = field(default=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.user is not None:
            _checked_name(self.user, "user")
        given = checked_items(self.rooms, "rooms", "rooms=('r1',)")
        rooms = tuple(dict.fromkeys(_checked_name(room, "room") for room in given))
        object.__setattr__(self, "rooms", rooms)
        checked_flag(self.write_global, "write_global")

    @classmethod
    def everything(cls) -> Access:
        """Reads and writes every record of the tenant: export, maintenance.

        No adapter uses it by itself.
        """
        return cls(write_global=True, _everything=True)

    @property
    def is_everything(self) -> bool:
        """Whether this is :meth:`everything`."""
        return self._everything

    @property
    def default_owner(self) -> Owner:
        """The owner of what is added with no scope: the user, else the first room, else everybody."""
        if self.user is not None:
            return Owner.user(self.user)
        if self.rooms:
            return Owner.room(self.rooms[0])
        return Owner.everybody()

    @property
    def readable_owners(self) -> tuple[Owner, ...]:
        """Whom an id is looked up under, in this order: own, the rooms as given, everybody.

        Empty for :meth:`everything`, which is bound to no list.
        """
        if self._everything:
            return ()
        own = (Owner.user(self.user),) if self.user is not None else ()
        return (*own, *(Owner.room(room) for room in self.rooms), Owner.everybody())

    def can_read(self, owner: Owner) -> bool:
        """Whether records of ``owner`` may be seen: the plain predicate that every backend must match."""
        if self._everything or owner.scope == Scope.GLOBAL:
            return True
        if owner.scope == Scope.ROOM:
            return owner.name in self.rooms
        return owner.scope == Scope.PERSONAL and owner.name is not None and owner.name == self.user

    def can_write(self, owner: Owner) -> bool:
        """Whether records of ``owner`` may be added, changed and deleted."""
        if owner.scope == Scope.GLOBAL:
            return self._everything or self.write_global or (self.user is None and not self.rooms)
        return self.can_read(owner)

    def owner_of_new(self, scope: Scope | str | None = None, room: str | None = None) -> Owner:
        """The owner of a record to be added.

        Raises:
            AccessError: this access may not write there.
            ConfigurationError: ``scope`` and ``room`` contradict each other, or do not say whose it is.
        """
        owner = self._named_owner(scope, room)
        if not self.can_write(owner):
            hint = "; pass Access(..., write_global=True)" if owner.scope is Scope.GLOBAL else ""
            raise AccessError(f"this access may not add records for {owner}{hint}")
        return owner

    def _named_owner(self, scope: Scope | str | None, room: str | None) -> Owner:
        if scope is None:
            return self.default_owner if room is None else Owner.room(room)
        try:
            scope = Scope(scope)
        except ValueError:
            raise ConfigurationError(f"scope is one of {', '.join(Scope)}, not {scope!r}") from None
        if room is not None and scope is not Scope.ROOM:
            raise ConfigurationError(f"room={room!r} goes with scope='room', not {scope.value!r}")
        if scope is Scope.GLOBAL:
            return Owner.everybody()
        if scope is Scope.PERSONAL:
            if self.user is None:
                raise ConfigurationError("scope='personal' needs an access with a user: Access(user=...)")
            return Owner.user(self.user)
        if room is None and len(self.rooms) != 1:
            raise ConfigurationError("scope='room' needs room=..., one of the access's rooms")
        return Owner.room(self.rooms[0] if room is None else room)
