"""The call that moves a store to another embedder."""

from __future__ import annotations

from collections.abc import Callable

from twofold.embedders import Embedder, Guard, resolve_embedder
from twofold.errors import ConfigurationError
from twofold.extras import require_extra
from twofold.reembed import reembed
from twofold.store.asynchronous import in_thread
from twofold.store.handle import Handle
from twofold.types import Progress, ReembedReport
from twofold.types.arguments import checked_count, checked_flag

__all__ = ["Reembedding"]


class Reembedding(Handle):
    """Moving to another embedder."""

    def reembed(
        self,
        embedder: Embedder | str,
        *,
        batch_size: int | None = None,
        forget_given: bool = False,
        abandon: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> ReembedReport:
        """Make all vectors anew with another model, of any dimension, and go over to it when they are all there.

        Until then the old ones answer every search, and records may be added and changed by anybody: what they change
        is embedded as well. Then the new ones take their place in one transaction. This store and its views use the new
        embedder from then on; others that have the file open are to be opened anew with it, and answer from keywords
        and say ``space_mismatch`` until they are.

        A call that ends early, because it was interrupted, its process killed or the embedder failed, leaves the store
        as it was, and the next one goes on where it ended. Several processes may share the work: they do the same
        call. Looks at the whole file, so a view must be of ``Access.everything()``.

        Args:
            embedder: as for :func:`twofold.open`; one that makes vectors.
            batch_size: records embedded and committed together, at least 1. Default: that of the embedding settings.
            forget_given: whether vectors may be lost that were given with records and have no text to be made of.
            abandon: whether a move to another embedder that was not finished is given up, and what it made removed;
                with the embedder in use, that is all that is done.
            progress: called after each batch is committed.

        Raises:
            ConfigurationError: the embedder makes no vectors; or a move to another is under way, or given vectors
                would be lost, and that was not asked for.
            StoreError: the store cannot be written, or was closed meanwhile.
        """
        self._refuse_views("reembed")
        resolved = resolve_embedder(embedder)
        require_extra(embedder)
        if resolved is None:
            raise ConfigurationError("reembed needs an embedder: reembed('local'), say")
        for name, flag in (("forget_given", forget_given), ("abandon", abandon)):
            checked_flag(flag, name)
        if progress is not None and not callable(progress):
            raise ConfigurationError(f"progress is a function that takes a Progress, not {type(progress).__name__}")
        embedding = self._parts.settings.embedding
        guard = Guard(resolved, embedding)
        report = reembed(
            self._backend,
            guard,
            batch_size=embedding.batch_size if batch_size is None else checked_count(batch_size, "batch_size", least=1),
            forget_given=forget_given,
            abandon=abandon,
            progress=progress,
        )
        if report.done:
            self._parts.use(guard)
        return report

    areembed = in_thread(reembed)
