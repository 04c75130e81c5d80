"""Lines into a store, a batch at a time, each batch in one transaction.

What was committed stays, whatever happens afterwards: importing the same file again finds it equal, and goes on from
there. A line that cannot be used is told by its number and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import BinaryIO, Final, Literal, TypeAlias

import numpy as np

from twofold.backends.protocol import Backend, LinkWrite, Reader, VectorWrite, Writer
from twofold.errors import AccessError, ConfigurationError, InvalidRecordError, InvalidVectorError
from twofold.ingest import pieces_of
from twofold.moving.lines import End, Header, LinkLine, Matrices, RecordLine, Reference, record_line
from twofold.moving.parsing import parse_header, parse_line
from twofold.types import (
    Access,
    Degradation,
    DegradationCode,
    ImportProblem,
    ImportReport,
    Outcome,
    Progress,
    Record,
)

__all__ = ["Existing", "Import", "import_records"]

Existing: TypeAlias = Literal["update", "skip"]
"""What to do with a record that is there already and differs: let the file win, or leave it as it is."""

MOST_PROBLEMS: Final = 1_000
"""How many problems are kept; of more only the number is."""
_LONGEST_HEADER: Final = 2**20
_PIECE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """How lines are to be imported."""

    backend: Backend
    """The store."""
    write: Callable[[], AbstractContextManager[Writer]]
    """Begins a transaction."""
    access: Access
    """Who imports them."""
    fingerprint: str | None
    """The embedder in use; None: there is none, so that the file may bring vectors of any."""
    now: datetime
    """Stands for times that a line leaves out."""
    existing: Existing
    """See :data:`Existing`."""
    dry_run: bool
    """Whether nothing is written."""
    strict: bool
    """Whether the first line that cannot be used ends the import."""
    batch_size: int
    """How many lines are committed together."""
    longest_line: int
    """In bytes; longer ones are not read."""
    progress: Callable[[Progress], None] | None
    """Called after each batch."""


def import_records(source: BinaryIO, how: Import) -> ImportReport:
    """Import the lines of ``source``.

    Args:
        source: gives bytes; read once, from where it stands.
        how: all else.

    Raises:
        ConfigurationError: it is no export, or has fields that the store has not.
        NewerFormatError: a newer release wrote it.
        InvalidRecordError: with ``strict``, the first line that cannot be used; its batch was not written.
        StoreError: the store cannot be written.
        OSError: the source cannot be read.
    """
    first = source.readline(_LONGEST_HEADER)
    header = parse_header(first)
    unknown = [name for name in header.fields if name not in how.backend.fields]
    if unknown:
        raise ConfigurationError(
            f"the export has the fields {', '.join(header.fields)}, this store {', '.join(how.backend.fields)}: import "
            f"it into one made with StoreSettings(fields={header.fields!r})"
        )
    return _Run(how, header).run(source)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A line that can be used."""

    number: int
    item: RecordLine | LinkLine


class _Run:
    """One import under way."""

    def __init__(self, how: Import, header: Header) -> None:
        self._how = how
        self._header = header
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._links = self._vectors = self._pending = 0
        self._problems: list[ImportProblem] = []
        self._failed = 0
        self._left_out: Degradation | None = None
        self._records = 0  # lines of this kind that were read
        self._seen: dict[int, int] = {}  # of a dry run: which records the file has had so far, and what they were

    def run(self, source: BinaryIO) -> ImportReport:
        batch: list[_Numbered] = []
        number, read = 1, 0
        end: End | None = None
        for number, raw in _lines(source, self._how.longest_line):
            if raw is not None and not raw.strip():
                continue
            try:
                item = self._parsed(raw)
            except (InvalidRecordError, InvalidVectorError, AccessError, ConfigurationError) as error:
                self._problem(number, str(error))
                read += 1
                continue
            if isinstance(item, End):
                end = item
                continue
            read += 1
            batch.append(_Numbered(number, item))
            if len(batch) >= self._how.batch_size:
                self._store(batch)
                batch = []
        if batch:
            self._store(batch)
        if end is None:
            self._problem(number + 1, "the file ends here, without the line that is its last: the rest was cut off")
        elif read < end.records + end.links:
            self._problem(
                number, f"the file had {end.records} records and {end.links} links; {read} lines are left of them"
            )
        return self._report()

    def _parsed(self, raw: bytes | None) -> RecordLine | LinkLine | End:
        how = self._how
        if raw is None:
            raise InvalidRecordError(
                f"it is longer than {how.longest_line:,} bytes and was not read; raise max_line_bytes"
            )
        item = parse_line(raw, self._header, how.backend.fields, how.now)
        if isinstance(item, RecordLine):
            self._records += 1
            owner = item.record.belongs_to
            if not how.access.can_write(owner):
                raise AccessError(f"this access may not add records for {owner}")
        return item

    def _problem(self, number: int, reason: str) -> None:
        problem = ImportProblem(number, reason)
        if self._how.strict:
            raise InvalidRecordError(f"{problem}; the lines before it are imported up to the last whole batch")
        self._failed += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)

    def _report(self) -> ImportReport:
        return ImportReport(
            added=self._outcomes[Outcome.ADDED],
            updated=self._outcomes[Outcome.UPDATED],
            unchanged=self._outcomes[Outcome.UNCHANGED],
            skipped=self._outcomes[Outcome.SKIPPED],
            links=self._links,
            vectors=self._vectors,
            pending=self._pending,
            problems=tuple(sorted(self._problems, key=lambda problem: problem.line)),
            failed=self._failed,
            degradations=() if self._left_out is None else (self._left_out,),
            dry_run=self._how.dry_run,
        )

    # -- a batch --------------------------------------------------------------------------------------------------

    def _store(self, batch: Sequence[_Numbered]) -> None:
        if self._how.dry_run:
            with self._how.backend.read() as reader:
                for each in batch:
                    self._judge(reader, each)
        else:
            with self._how.write() as writer:
                for each in batch:
                    if isinstance(each.item, RecordLine):
                        self._write_record(writer, each.item)
                    else:
                        self._write_link(writer, each.number, each.item)
        if self._how.progress is not None:
            self._how.progress(Progress(self._records, self._header.records))

    def _write_record(self, writer: Writer, line: RecordLine) -> None:
        vectors = self._usable(writer, line.vectors)
        if vectors is not None and writer.fingerprint is None:
            writer.adopt(str(self._header.fingerprint), int(self._header.dimension or 0))
        key = _key_of(writer, line.record)
        made = None if vectors is None else VectorWrite(line.record.content_hash, vectors)
        if key is None:
            key, outcome = writer.insert(line.record, made), Outcome.ADDED
        else:
            old = writer.records((key,))[key]
            outcome, record = self._outcome(old, line.record)
            if outcome is Outcome.UPDATED:
                writer.replace(key, record, made)
            elif outcome is Outcome.UNCHANGED and made is not None and not _takes(writer, key, made):
                writer.replace(key, old, made)
                outcome = Outcome.UPDATED
        self._count(outcome, writer, key, line.record, given=made is not None)

    def _write_link(self, writer: Writer, number: int, line: LinkLine) -> None:
        source = self._end(writer, line.source, to_write=True)
        target = self._end(writer, line.target)
        if source is None or target is None:
            self._problem(number, _no_end(line.source if source is None else line.target))
            return
        writer.put_links([LinkWrite(source, target, line.kind, line.weight)], line.created_at)
        self._links += 1

    def _end(self, reader: Reader, end: Reference, *, to_write: bool = False) -> int | None:
        """The key of a link's end; None if the access may not see it, or for the source not change it, as well as if
        there is none.
        """
        access = self._how.access
        if not (access.can_write(end.owner) if to_write else access.can_read(end.owner)):
            return None
        return next((key for key, _ in reader.find(end.id, end.namespace, (end.owner,))), None)

    def _outcome(self, old: Record, new: Record) -> tuple[Outcome, Record]:
        """What becomes of a record that is there, and what it will be. When it was created stays, for links are
        ordered by it; its revision grows, for who is changing it meanwhile must notice.
        """
        record = replace(new, created_at=old.created_at, revision=old.revision)
        if record_line(record) == record_line(old):  # tells True from 1 and the order of keys, as == does not
            return Outcome.UNCHANGED, old
        if self._how.existing == "skip":
            return Outcome.SKIPPED, old
        return Outcome.UPDATED, replace(record, revision=max(old.revision + 1, new.revision))

    def _count(self, outcome: Outcome, reader: Reader, key: int | None, record: Record, *, given: bool) -> None:
        """Add up a record; ``key`` is None if it is not stored."""
        self._outcomes[outcome] += 1
        self._vectors += given and outcome is not Outcome.SKIPPED
        embeds = self._how.fingerprint is not None or reader.fingerprint is not None
        if embeds and not given and outcome is not Outcome.SKIPPED and pieces_of(record.fields):
            keeps_its_own = key is not None and outcome is not Outcome.ADDED and key in reader.vectors((key,))
            self._pending += not keeps_its_own

    def _usable(self, reader: Reader, vectors: Matrices | None) -> Matrices | None:
        """The vectors of a line, if they can be compared with those of the store."""
        if vectors is None:
            return None
        header, mine = self._header, reader.fingerprint or self._how.fingerprint
        if mine in (None, header.fingerprint) and reader.dimension in (None, header.dimension):
            return vectors
        self._left_out = Degradation(
            DegradationCode.SPACE_MISMATCH,
            f"the export's vectors are of {header.fingerprint!r} ({header.dimension} numbers), this store's of {mine!r}"
            f"{'' if reader.dimension is None else f' ({reader.dimension} numbers)'}: they were left out, and "
            "embed_pending() makes new ones",
        )
        return None

    # -- a dry run ------------------------------------------------------------------------------------------------

    def _judge(self, reader: Reader, each: _Numbered) -> None:
        """What would become of a line."""
        if isinstance(each.item, LinkLine):
            self._judge_link(reader, each.number, each.item)
            return
        record = each.item.record
        name = hash((record.id, record.namespace, record.belongs_to))
        content = hash(record_line(replace(record, revision=1)))
        given = self._usable(reader, each.item.vectors) is not None
        before, key = self._seen.get(name), _key_of(reader, record)
        if before is not None:
            known = Outcome.SKIPPED if self._how.existing == "skip" else Outcome.UPDATED
            outcome = Outcome.UNCHANGED if before == content else known
        elif key is None:
            outcome = Outcome.ADDED
        else:
            outcome, _ = self._outcome(reader.records((key,))[key], record)
        self._seen[name] = content
        self._count(outcome, reader, key, record, given=given)

    def _judge_link(self, reader: Reader, number: int, line: LinkLine) -> None:
        for end, to_write in ((line.source, True), (line.target, False)):
            comes_before = hash((end.id, end.namespace, end.owner)) in self._seen
            if not comes_before and self._end(reader, end, to_write=to_write) is None:
                self._problem(number, _no_end(end))
                return
        self._links += 1


def _no_end(end: Reference) -> str:
    return (
        f"there is no record {end.id!r} of {end.owner} here that this access may link: lines of links come after those "
        "of the records"
    )


def _key_of(reader: Reader, record: Record) -> int | None:
    return next((key for key, _ in reader.find(record.id, record.namespace, (record.belongs_to,))), None)


def _takes(writer: Writer, key: int, vectors: VectorWrite) -> bool:
    """Whether a stored record of the same text has these vectors, or waited for some and has them now."""
    stored = writer.vectors((key,)).get(key)
    if stored is None:
        return writer.attach(key, vectors)
    return stored.by_field.keys() == vectors.by_field.keys() and all(
        np.array_equal(stored.by_field[name], matrix) for name, matrix in vectors.by_field.items()
    )


def _lines(source: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Lines from the second on with their numbers; None for one that is too long, which is passed by in pieces."""
    number = 1
    while raw := source.readline(longest + 1):
        number += 1
        if len(raw) <= longest or raw.endswith(b"\n"):
            yield number, raw
            continue
        yield number, None
        while raw and not raw.endswith(b"\n"):
            raw = source.readline(_PIECE)
