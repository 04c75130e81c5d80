"""The calls that move records out and in, copy the whole file, and remove records for good."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, get_args

from twofold.backends.protocol import Capability, Visibility, Writer
from twofold.errors import AccessError, ConfigurationError, StoreError, UnsupportedOperationError
from twofold.files import free_place, placed
from twofold.filters import A
from twofold.moving import Existing, Import, export_records, import_records
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike, Handle
from twofold.types import Access, ExportReport, ImportReport, Owner, Progress
from twofold.types.arguments import checked_count, checked_flag

__all__ = ["Moving"]

_LONGEST_LINE: Final = 64 * 2**20


class Moving(Handle):
    """Export and import, backup, purge."""

    def export_jsonl(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        access: Access | None = None,
        where: FilterLike = None,
        include_archived: bool = True,
        vectors: bool = False,
        overwrite: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> ExportReport:
        """Write what the access sees to a file of JSON Lines: each record as complete as it is stored, then the links
        of which both ends are written. It is one moment of the store, and others go on writing meanwhile.

        The file gets its name when it is whole. The same records make the same lines, whatever store they are in.

        Args:
            target: the file, or a stream that takes bytes (``sys.stdout.buffer``, say), which is left open.
            access: who exports. Default: the handle's, else ``Access()``; ``Access.everything()`` for all there are.
            where: a filter. Default: all.
            include_archived: whether archived, superseded, expired and not yet valid records are written too.
            vectors: whether vectors are written too. Without them the store that imports makes its own; but those of
                records without text would be lost.
            overwrite: whether a file that is there already is replaced.
            progress: called after each batch of records.

        Raises:
            ConfigurationError: the target cannot be used, or is there already.
            OSError: it cannot be written.
        """
        asker = self._access(access)
        visible = self._visible(asker, where, include_archived=include_archived)
        checked_flag(vectors, "vectors")
        _check_progress(progress)
        if isinstance(target, (str, os.PathLike)):
            place = free_place(target, overwrite=checked_flag(overwrite, "overwrite"))
            mine = self._file()
            self._refuse_own(place, mine)
            with placed(place, overwrite=overwrite, like=mine) as temporary, temporary.open("wb") as out:
                report = self._exported(visible, out, vectors=vectors, progress=progress)
                out.flush()
                os.fsync(out.fileno())
            return report
        if isinstance(target, io.TextIOBase) or not hasattr(target, "write"):
            raise ConfigurationError("target is the name of a file, or a stream that takes bytes: open it with 'wb'")
        return self._exported(visible, target, vectors=vectors, progress=progress)

    aexport_jsonl = in_thread(export_jsonl)

    def import_jsonl(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        *,
        access: Access | None = None,
        existing: Existing = "update",
        dry_run: bool = False,
        strict: bool = False,
        batch_size: int = 500,
        max_line_bytes: int = _LONGEST_LINE,
        progress: Callable[[Progress], None] | None = None,
    ) -> ImportReport:
        """Store what :meth:`export_jsonl` wrote: ids, owners, times, archived state, counts of uses, links.

        Each batch is committed before the next is read. Whatever ends the import, calling it again finds equal what is
        there already and goes on. Vectors are taken if they are of this store's embedder, or the store has neither
        vectors nor an embedder yet; other records wait for theirs until :meth:`embed_pending`. Of a record that is
        there already ``created_at`` stays.

        Args:
            source: the file, or a stream of bytes.
            access: who imports: lines of owners that it may not write for are problems. Default: the handle's, else
                ``Access()``; ``Access.everything()`` for all.
            existing: what to do with a record that is there already and differs: ``"update"`` puts the file's in its
                place, ``"skip"`` leaves it.
            dry_run: whether to read and check everything and write nothing.
            strict: whether the first line that cannot be used ends the import. Default: it is reported.
            batch_size: lines committed together, at least 1. Default: 500.
            max_line_bytes: longer lines are problems, so that a wrong file does not fill the memory. Default: 64 MiB.
            progress: called after each batch is committed.

        Raises:
            ConfigurationError: it is no export, or has fields that the store has not; nothing was written.
            NewerFormatError: a newer release of twofold wrote it; nothing was written.
            InvalidRecordError: with ``strict``, what is wrong with which line.
            ReadOnlyStoreError: the store is open for reading only.
            OSError: the source cannot be read.
        """
        if existing not in get_args(Existing):
            raise ConfigurationError(f"existing is one of {', '.join(get_args(Existing))}, not {existing!r}")
        _check_progress(progress)
        guard = self._parts.guard
        how = Import(
            backend=self._backend,
            write=self._write,
            access=self._access(access),
            fingerprint=None if guard is None else guard.fingerprint,
            now=self._now(),
            existing=existing,
            dry_run=checked_flag(dry_run, "dry_run"),
            strict=checked_flag(strict, "strict"),
            batch_size=checked_count(batch_size, "batch_size", least=1),
            longest_line=checked_count(max_line_bytes, "max_line_bytes", least=1),
            progress=progress,
        )
        with _reading(source) as stream:
            return import_records(stream, how)

    aimport_jsonl = in_thread(import_jsonl)

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Copy the whole file as it is at this moment, while this and other processes go on using it.

        The copy gets its name when it is whole, and is opened like any store. Indexes saved beside the file are not
        copied: they are made anew. Copies the whole file, so a view must be of ``Access.everything()``.

        Args:
            target: the copy's name, or a folder to put it in under the name that the file has (a tenant's copy is then
                opened with that folder and the tenant).
            overwrite: whether a file that is there already is replaced; never one that is in use.
            progress: called now and then with the pages copied and the pages in all.

        Returns:
            Where the copy is.

        Raises:
            ConfigurationError: the target cannot be used, or is there already, or in use.
            StorageFullError: the disk is full; nothing is left of the copy.
            UnsupportedOperationError: the backend cannot do it.
        """
        self._refuse_views("backup")
        self._need(Capability.BACKUP, "copy itself into a file")
        if not isinstance(target, (str, os.PathLike)):
            raise ConfigurationError(f"target is the name of a file, not {target!r}")
        _check_progress(progress)
        self._flush_touches()
        return Path(self._backend.backup(target, overwrite=checked_flag(overwrite, "overwrite"), progress=progress))

    abackup = in_thread(backup)

    def purge(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        user: str | None = None,
        room: str | None = None,
        access: Access | None = None,
        namespace: Sequence[str] = (),
        owner: Owner | None = None,
    ) -> int:
        """Remove records so that no byte of them is left: not in the file, not in its log, not in what is saved beside
        it. With them go their tokens, vectors, links, marks of the same key, and what an embedder said of their text.

        Like :meth:`delete`, and then the whole file is written anew, which takes the time and for a moment the room of
        a copy. What was deleted earlier is removed for good too, so that an id that is gone already may be purged.
        Backups, exports and snapshots of the disk are yours to remove.

        Args:
            ids: one id or several; unknown ones are passed over. Found as :meth:`get` does, archived ones too.
            user: instead of ids: everything that belongs to this user, marks included.
            room: instead of ids: everything that belongs to this room, marks included.
            access: who removes them. Default: the handle's; else the user or room named; else ``Access()``.
            namespace: where the ids are. Default: the root.
            owner: whose the ids are. Default: as :meth:`get`.

        Returns:
            How many records were removed.

        Raises:
            AccessError: the access may not write there; nothing was removed.
            ConfigurationError: not exactly one of ``ids``, ``user`` and ``room`` is given.
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: a reader of this or another process still needs an old state of the file. The records are
                deleted; call it again, with the same arguments, once that has ended.
            StorageFullError: as for StoreBusyError; the disk has no room for a copy.
            UnsupportedOperationError: the backend cannot do it; nothing was removed.
        """
        if sum(each is not None for each in (ids, user, room)) != 1:
            raise ConfigurationError("purge takes ids, or user=..., or room=...: exactly one of them")
        self._need(Capability.SCRUB, "leave no trace of what was deleted")
        if ids is not None:
            asker = self._access(access)
            with self._write() as writer:
                wanted = (ids,) if isinstance(ids, str) else ids
                keys: Sequence[int] = list(
                    self._located(writer, wanted, asker, namespace, owner, to_write=True).values()
                )
                self._forget(writer, keys)
        else:
            if namespace or owner is not None:
                raise ConfigurationError("namespace and owner go with ids: user=... and room=... mean all there is")
            whose = Owner.user(user) if user is not None else Owner.room(str(room))
            if access is None and self._bound is None:
                access = Access(user=user) if user is not None else Access(rooms=(str(room),))
            asker = self._access(access)
            if not asker.can_write(whose):
                raise AccessError(f"this access may not remove what belongs to {whose}")
            with self._write() as writer:
                keys = self._all_of(writer, whose)
                self._forget(writer, keys)
                writer.forget_marks(whose)
        self._backend.scrub()
        return len(keys)

    apurge = in_thread(purge)

    def _exported(
        self,
        visible: Visibility,
        out: BinaryIO,
        *,
        vectors: bool,
        progress: Callable[[Progress], None] | None,
    ) -> ExportReport:
        self._flush_touches()
        return export_records(self._backend, visible, out, at=self._now(), with_vectors=vectors, progress=progress)

    def _flush_touches(self) -> None:
        """Uses that were counted and not written yet belong to what is read; if they cannot be, it is read without."""
        with suppress(StoreError):
            self._parts.touches.flush()

    def _forget(self, writer: Writer, keys: Sequence[int]) -> None:
        """Delete records, and the marks of their ids."""
        by_owner: dict[Owner, list[str]] = {}
        for identity in writer.identities(keys).values():
            by_owner.setdefault(identity.owner, []).append(identity.id)
        for whose, gone in by_owner.items():
            writer.forget_marks(whose, gone)
        writer.delete(keys)

    def _all_of(self, writer: Writer, whose: Owner) -> Sequence[int]:
        """The keys of everything that belongs to an owner."""
        theirs = (A.scope == whose.scope.value) & (A.owner == str(whose.name))
        return writer.scan(self._visible(Access.everything(), theirs, include_archived=True), (), None, 0)

    def _need(self, capability: Capability, what: str) -> None:
        if capability not in self._backend.capabilities:
            raise UnsupportedOperationError(f"this backend, with this SQLite library, cannot {what}")

    def _file(self) -> str | None:
        """The file that the store is kept in; None if it is in none."""
        path = self._backend.info().details.get("path")
        return path if isinstance(path, str) and Path(path).is_file() else None

    def _refuse_own(self, place: Path, mine: str | None) -> None:
        """Never write an export over the store itself, or what lies beside it."""
        if mine is not None and str(place) in (mine, *(f"{mine}{suffix}" for suffix in ("-wal", "-shm", "-journal"))):
            raise ConfigurationError(f"{place} belongs to the store itself: name another file")


def _check_progress(progress: object) -> None:
    if progress is not None and not callable(progress):
        raise ConfigurationError(f"progress is a function, not {type(progress).__name__}")


@contextmanager
def _reading(source: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as stream:
            yield stream
        return
    if isinstance(source, io.TextIOBase) or not hasattr(source, "readline"):
        raise ConfigurationError("source is the name of a file, or a stream of bytes: open it with 'rb'")
    yield source
