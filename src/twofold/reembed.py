"""A store moves to another embedder: its vectors are made anew beside those in use, then take their place at once.

Nothing is locked meanwhile, and the old vectors answer until the end. What is to be done is whatever has text and no
vector of the new embedder, so it does not matter who stopped where, or what others have written since: a call that was
killed, or ended by an embedder that failed, is gone on with by the next one. Several processes may work at it at once;
who finds that somebody else was faster goes on elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from twofold.backends.protocol import Backend, Reader, Space, VectorWrite, Writer
from twofold.backfill import embed_records
from twofold.embedders import Guard, degradation_of
from twofold.errors import ConfigurationError, EmbeddingError
from twofold.types import Degradation, Progress, Record, ReembedReport

__all__ = ["reembed"]

_PROBE: Final = "text"
"""What an embedder is asked that has refused all it was given: if it refuses this too, it is not the records' fault."""
_REMOVED_TOGETHER: Final = 20_000
"""How many former vectors are removed in one transaction."""
_LONGEST_JUMP: Final = 64
"""How many batches ahead at most somebody goes who finds others at the same work."""


def reembed(
    backend: Backend,
    guard: Guard,
    *,
    batch_size: int,
    forget_given: bool,
    abandon: bool,
    progress: Callable[[Progress], None] | None,
) -> ReembedReport:
    """Make all vectors anew and put them in the place of those in use; see :meth:`HybridStore.reembed`.

    Args:
        backend: where the records are.
        guard: what the new embedder is asked through.
        batch_size: how many records are embedded and committed together.
        forget_given: whether vectors that were given, and have no text to be made of, may be lost.
        abandon: whether a move to another embedder that is under way is given up.
        progress: called after each batch.

    Raises:
        ConfigurationError: the embedder makes no vectors; or another's are under way, or vectors would be lost, and
            that was not asked for.
    """
    if not guard.embeds:
        raise ConfigurationError("reembed needs an embedder that makes vectors; those that are given cannot be remade")
    if abandon:
        _abandon(backend, guard.fingerprint)
    with backend.read() as reader:
        _refuse(reader, guard, forget_given=forget_given)
        work = _Work(backend, guard, batch_size, guard.fingerprint, reader.count_lacking(guard.fingerprint), progress)
        work.begun = reader.next_space is not None
        finished = reader.fingerprint == guard.fingerprint
    trouble = None if finished else work.run()
    if trouble is None:
        _remove_former(backend)
    with backend.read() as reader:
        return ReembedReport(
            done=reader.fingerprint == guard.fingerprint,
            embedded=work.embedded,
            parked=len(work.refused),
            remaining=reader.count_lacking(guard.fingerprint),
            degradations=() if trouble is None else (trouble,),
        )


def _abandon(backend: Backend, wanted: str) -> None:
    """Give up a move to an embedder that is not the one wanted."""
    with backend.write() as writer:
        under_way = writer.next_space
        if under_way is None or under_way.fingerprint == wanted:
            return
        writer.drop_next()
    _remove_former(backend)


def _remove_former(backend: Backend) -> None:
    """Remove what was made by embedders that are no longer in use, a part at a time: others may write in between."""
    removed = _REMOVED_TOGETHER
    while removed == _REMOVED_TOGETHER:
        with backend.write() as writer:
            removed = writer.drop_former(_REMOVED_TOGETHER)


def _refuse(reader: Reader, guard: Guard, *, forget_given: bool) -> None:
    under_way = reader.next_space
    if under_way is not None and under_way.fingerprint != guard.fingerprint:
        raise ConfigurationError(
            f"the file is on its way to {under_way.fingerprint!r}: go on with that embedder, or give that up with "
            "abandon=True"
        )
    if reader.fingerprint == guard.fingerprint:
        if guard.dimension not in (None, reader.dimension):
            raise ConfigurationError(
                f"the file's vectors are of {guard.fingerprint!r} and have {reader.dimension} numbers, those of the "
                f"new embedder {guard.dimension}: an embedder that makes others needs another name"
            )
        return
    given = 0 if forget_given else reader.count_only_given()
    if given:
        raise ConfigurationError(
            f"{given} records have vectors that were given with them and no text that the new embedder could make "
            "them of: delete those records first, or lose these vectors with forget_given=True"
        )


@dataclass(slots=True)
class _Work:
    """One call's part of the work."""

    backend: Backend
    guard: Guard
    batch_size: int
    fingerprint: str
    total: int
    progress: Callable[[Progress], None] | None
    begun: bool = False
    """Whether the move is known to be under way: if it no longer is, somebody has given it up."""
    embedded: int = 0
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By key, the hash of a text that the embedder refused, and why."""
    after: int = 0
    """The key that the last batch ended with."""

    def run(self) -> Degradation | None:
        """Work until the new vectors are in use; why they are not, if the embedder fails."""
        if self.guard.dimension is not None:
            self._begin(self.guard.dimension)
        while True:
            batch = self._next_batch()
            if not batch:
                trouble = self._learn_dimension()
                if trouble is not None or self._swapped():
                    return trouble
                continue
            made, failed, trouble = self._made(batch)
            if made:
                self._begin(next(iter(next(iter(made.values())).by_field.values())).shape[1])
            if not self._keep(made):
                return None
            for key, error in failed.items():
                self.refused[key] = (batch[key].content_hash, error.summary)
            if self.progress is not None:
                self.progress(Progress(min(self.embedded + len(self.refused), self.total), self.total))
            if trouble is not None:
                return trouble

    def _next_batch(self) -> Mapping[int, Record]:
        """Records that lack a vector and were not refused, from where this call is, and then from the start."""
        from_start = self.after == 0
        while True:
            with self.backend.read() as reader:
                if reader.fingerprint == self.fingerprint:
                    return {}
                keys = reader.keys_lacking(self.fingerprint, self.after, self.batch_size)
                records = reader.records(keys)
            if not keys:
                if from_start:
                    return {}
                from_start, self.after = True, 0
                continue
            self.after = keys[-1]
            wanted = {key: records[key] for key in keys if not self._is_refused(key, records[key])}
            if wanted:
                return wanted

    def _is_refused(self, key: int, record: Record) -> bool:
        return key in self.refused and self.refused[key][0] == record.content_hash

    def _made(
        self, batch: Mapping[int, Record]
    ) -> tuple[Mapping[int, VectorWrite], Mapping[int, EmbeddingError], Degradation | None]:
        """Vectors, refusals, and why the embedder is not to be asked further."""
        made, failed, trouble = embed_records(self.guard, batch)
        if trouble is None and failed and not made:
            (probe,) = self.guard.documents([_PROBE])
            if isinstance(probe, EmbeddingError):
                return {}, {}, degradation_of(probe)
        return made, failed, trouble

    def _begin(self, dimension: int) -> None:
        with self.backend.write() as writer:
            if writer.fingerprint == self.fingerprint:
                return
            if self.begun and writer.next_space is None:
                raise ConfigurationError(f"the move to {self.fingerprint!r} was given up meanwhile; begin it anew")
            writer.begin_space(Space(self.fingerprint, dimension))
            self.begun = True

    def _keep(self, made: Mapping[int, VectorWrite]) -> bool:
        """Commit a batch; whether there is more to do, for somebody else may have done the rest."""
        with self.backend.write() as writer:
            if writer.fingerprint == self.fingerprint:
                return False
            self._refuse_strangers(writer)
            kept = sum(writer.put_next(key, vectors) for key, vectors in made.items())
        self.embedded += kept
        if made and not kept:  # somebody else is doing the very same
            self.after += self.batch_size * random.randint(1, _LONGEST_JUMP)  # noqa: S311 - nothing secret
        return True

    def _refuse_strangers(self, writer: Writer) -> None:
        under_way = writer.next_space
        if self.begun and (under_way is None or under_way.fingerprint != self.fingerprint):
            raise ConfigurationError(f"the move to {self.fingerprint!r} was given up meanwhile; begin it anew")

    def _learn_dimension(self) -> Degradation | None:
        """Where no text taught how long the vectors are, ask; why there is no answer."""
        if self.begun:
            return None
        (probe,) = self.guard.documents([_PROBE])
        if isinstance(probe, EmbeddingError):
            return degradation_of(probe)
        self._begin(int(probe.size))
        return None

    def _swapped(self) -> bool:
        """Let the new vectors be the ones in use, if by now none is missing that could be made."""
        with self.backend.write() as writer:
            if writer.fingerprint == self.fingerprint:
                return True
            self._refuse_strangers(writer)
            lacking = writer.keys_lacking(self.fingerprint, 0, len(self.refused) + 1)
            records = writer.records(lacking) if len(lacking) <= len(self.refused) else {}
            if not all(key in records and self._is_refused(key, records[key]) for key in lacking):
                return False
            writer.swap_space({key: self.refused[key][1] for key in lacking})
            return True
