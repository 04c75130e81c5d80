"""The calls that make links, show them and go along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from twofold.backends.protocol import LinkWrite, Reader, Visibility
from twofold.errors import ConfigurationError, RecordNotFoundError
from twofold.links import paths_of, walk
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike, Handle
from twofold.types import DEFAULT_LINK_KIND, Access, Direction, Link, Neighbor, Owner
from twofold.types.arguments import checked_count, checked_items
from twofold.types.json import checked_text

__all__ = ["Linking"]


class Linking(Handle):
    """Linking, and asking for what is linked.

    A link belongs to its source's owner: making and removing it needs an access that may write the source and see the
    target. It is seen by who sees both its ends.
    """

    def link(
        self,
        source: str,
        target: str,
        *,
        kind: str = DEFAULT_LINK_KIND,
        weight: float = 1.0,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        target_namespace: Sequence[str] | None = None,
        owner: Owner | None = None,
        target_owner: Owner | None = None,
    ) -> bool:
        """Link one record to another, or give a link that is there another weight.

        Args:
            source: the id of the record that the link leads from; found as :meth:`get` does, archived ones too.
            target: the id of the record that it leads to.
            kind: a :class:`LinkKind`, or a word of yours.
            weight: how strong it is, above 0, at most 1.
            access: who links them. Default: the handle's, else ``Access()``.
            namespace: where the source is. Default: the root.
            target_namespace: where the target is. Default: where the source is.
            owner: whose the source is. Default: as :meth:`get`.
            target_owner: whose the target is. Default: as :meth:`get`.

        Returns:
            Whether the link is new.

        Raises:
            RecordNotFoundError: there is no such record that the access may see.
            AccessError: the access may see the source but not change it.
            ConfigurationError: both are one record, or ``kind`` or ``weight`` cannot be used.
        """
        asker, word, strength = self._access(access), _kind(kind), _weight(weight)
        there = namespace if target_namespace is None else target_namespace
        with self._write() as writer:
            first = self._found(writer, source, asker, namespace, owner, to_write=True)
            second = self._found(writer, target, asker, there, target_owner)
            if first == second:
                raise ConfigurationError(f"{source!r} and {target!r} are one record; a record is not linked to itself")
            return writer.put_links([LinkWrite(first, second, word, strength)], self._now()) == 1

    alink = in_thread(link)

    def unlink(
        self,
        source: str,
        target: str,
        *,
        kind: str | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        target_namespace: Sequence[str] | None = None,
        owner: Owner | None = None,
        target_owner: Owner | None = None,
    ) -> int:
        """Remove the links that lead from one record to another. The arguments are those of :meth:`link`.

        Args:
            source: the id of the record that they lead from.
            target: the id of the record that they lead to.
            kind: only this kind. Default: all.

        Returns:
            How many there were; 0 if there is no such record that the access may see.

        Raises:
            AccessError: the access may see the source but not change it.
        """
        asker = self._access(access)
        kinds = None if kind is None else [_kind(kind)]
        there = namespace if target_namespace is None else target_namespace
        with self._write() as writer:
            first = self._located(writer, [source], asker, namespace, owner, to_write=True).get(source)
            second = self._located(writer, [target], asker, there, target_owner).get(target)
            if first is None or second is None:
                return 0
            return writer.delete_links(source=first, target=second, kinds=kinds)

    aunlink = in_thread(unlink)

    def links(
        self,
        id: str,
        *,
        direction: Direction | str = Direction.BOTH,
        kinds: Iterable[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
        where: FilterLike = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[Link]:
        """The links of a record whose other end the access sees too; the strongest first, equal ones to the newer
        record first.

        Args:
            id: the record's id; found as :meth:`get` does.
            direction: those that lead from it (``"out"``), to it (``"in"``), or both.
            kinds: only these. Default: all.
            limit: how many at most. Default: all.
            offset: how many to leave out first.
            access: who asks. Default: the handle's, else ``Access()``.
            namespace: where the record is. Default: the root.
            owner: whose it is. Default: as :meth:`get`.
            where: a filter that the other end must fit. Default: none.
            include_archived: whether archived, superseded, expired and not yet valid records count, at either end.
            as_of: the instant, with a time zone, at which both ends must have been visible; links are as they stand.
                Default: now.

        Raises:
            RecordNotFoundError: there is no such record that the access may see.
        """
        asker = self._access(access)
        visible = self._visible(asker, where, include_archived=include_archived, as_of=as_of)
        way, words = _direction(direction), _kinds(kinds)
        most = None if limit is None else checked_count(limit, "limit")
        checked_count(offset, "offset")
        with self._backend.read() as reader:
            key = self._found(reader, id, asker, namespace, owner, visible=visible)
            found = reader.links(key, visible, direction=way, kinds=words, limit=most, offset=offset)
            ends = reader.identities(list({end for link in found for end in (link.source, link.target)}))
        return [
            Link(
                source=ends[link.source].id,
                target=ends[link.target].id,
                kind=link.kind,
                weight=link.weight,
                created_at=link.created_at,
                namespace=ends[link.source].namespace,
                owner=ends[link.source].owner,
                target_namespace=ends[link.target].namespace,
                target_owner=ends[link.target].owner,
            )
            for link in found
        ]

    alinks = in_thread(links)

    def neighbors(
        self,
        id: str,
        *,
        hops: int = 1,
        limit: int = 10,
        direction: Direction | str = Direction.BOTH,
        kinds: Iterable[str] | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
        where: FilterLike = None,
        include_archived: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[Neighbor]:
        """The records that links lead to from one, best first: through records only that the access sees, that live
        and that fit the filter. How far and wide links are followed is bounded by ``hops``, by the ``link_fan_out``
        of the store's settings, and by 256 records in all.

        Args:
            id: the record's id; found as :meth:`get` does.
            hops: how many links away at most, 1 to 5.
            limit: how many records at most.
            direction: which way links are followed: ``"out"``, ``"in"``, or both.
            kinds: only along these. Default: all.
            access: who asks. Default: the handle's, else ``Access()``.
            namespace: where the record is. Default: the root.
            owner: whose it is. Default: as :meth:`get`.
            where: a filter that every record on the way must fit. Default: none.
            include_archived: whether archived, superseded, expired and not yet valid records count.
            as_of: the instant, with a time zone, at which all of them must have been visible; links are as they stand.
                Default: now.

        Raises:
            RecordNotFoundError: there is no such record that the access may see.
        """
        asker = self._access(access)
        visible = self._visible(asker, where, include_archived=include_archived, as_of=as_of)
        way, words = _direction(direction), _kinds(kinds)
        params = replace(self._parts.settings.search, hops=hops)  # refuses what is out of range
        most = checked_count(limit, "limit")
        with self._backend.read() as reader:
            key = self._found(reader, id, asker, namespace, owner, visible=visible)
            reached = walk(reader, [key], visible, params, limit=most, hops=params.hops, kinds=words, direction=way)
            paths = paths_of(reader, reached)
            records = reader.records([each.key for each in reached])
        return [Neighbor(records[each.key], paths[each.key], each.value) for each in reached]

    aneighbors = in_thread(neighbors)

    def _found(
        self,
        reader: Reader,
        id: str,
        access: Access,
        namespace: Sequence[str],
        owner: Owner | None,
        *,
        to_write: bool = False,
        visible: Visibility | None = None,
    ) -> int:
        """The key of a record that must be there; whose lifecycle must let it be seen, if ``visible`` is given."""
        key = self._located(reader, [id], access, namespace, owner, to_write=to_write).get(id)
        if key is not None and visible is not None and not visible.include_archived:
            record = reader.records((key,)).get(key)
            if record is None or not self._living(record, visible):
                key = None
        if key is None:
            raise RecordNotFoundError(f"there is no record {id!r} here that this access may see")
        return key


def _kind(kind: object) -> str:
    word = checked_text(kind, "a link's kind")
    if not word:
        raise ConfigurationError("a link's kind is a word, not empty")
    return word


def _kinds(kinds: Iterable[str] | None) -> list[str] | None:
    return None if kinds is None else [_kind(kind) for kind in checked_items(kinds, "kinds", "kinds=['related']")]


def _weight(weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight <= 1:
        raise ConfigurationError(f"a link's weight is above 0 and at most 1, not {weight!r}")
    return float(weight)


def _direction(direction: Direction | str) -> Direction:
    try:
        return Direction(direction)
    except ValueError:
        raise ConfigurationError(f"direction is one of {', '.join(Direction)}, not {direction!r}") from None
