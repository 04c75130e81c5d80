"""Several searches in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from twofold.config import SearchParams
from twofold.embedders import Guard
from twofold.errors import ConfigurationError, EmbeddingError
from twofold.search import answer, prepare
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike
from twofold.store.reading import Reading
from twofold.types import Access, Mode, SearchResult, Vectors
from twofold.types.arguments import checked_items

__all__ = ["Together"]


class Together(Reading):
    """Searching for several texts at once."""

    def search_many(
        self,
        texts: Iterable[str],
        *,
        access: Access | None = None,
        k: int = 10,
        offset: int = 0,
        where: FilterLike = None,
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        preset: str | None = None,
        vectors: Iterable[Vectors | None] | None = None,
        as_of: datetime | None = None,
    ) -> list[SearchResult]:
        """What :meth:`search` gives for each of ``texts``, in order; of one state of the file, and with the texts sent
        to the embedder together.

        So many texts go to it at a time as their vectors are remembered (``query_cache_size``). If the embedder fails
        keywords answer, and each result says so.

        Args:
            texts: what is asked.
            access: who asks. Default: the handle's, else ``Access()``.
            k: how many hits at most for each.
            offset: how many of the best to leave out of each.
            where: a filter, for all of them.
            mode: as for :meth:`search`.
            params: how to rank. Default: the store's settings.
            preset: the same as a name, in place of ``params``.
            vectors: one ready embedding for each text, used instead of asking the embedder; None among them: ask.
            as_of: search as things stood at this instant.

        Raises:
            SearchUnavailableError: the leg asked for by mode, or every leg, cannot answer one of them.
            ConfigurationError: an argument cannot be used.
        """
        asked = checked_items(texts, "texts", "search_many(['one', 'two'])")
        given: list[Vectors | None] = [None] * len(asked)
        if vectors is not None:
            given = checked_items(vectors, "vectors", "vectors=[vector, vector]")
            if len(given) != len(asked):
                raise ConfigurationError(f"vectors holds one for each text, {len(asked)}, not {len(given)}")
        requests = [
            self._search_request(text, access, k, offset, where, mode, params, preset, vector, as_of)
            for text, vector in zip(asked, given, strict=True)
        ]
        guard = self._parts.guard
        at_once = max(1, self._parts.settings.embedding.query_cache_size)
        prepared = []
        for start in range(0, len(requests), at_once):
            batch = requests[start : start + at_once]
            if guard is not None and batch[0].mode is not Mode.KEYWORD:
                _remember(guard, [request.text for request in batch if request.vector is None])
            prepared += [prepare(request, self._backend, guard) for request in batch]
        with self._backend.read() as reader:
            return [answer(each, reader, self._parts.touches.add) for each in prepared]

    asearch_many = in_thread(search_many)


def _remember(guard: Guard, texts: Sequence[str]) -> None:
    """Have the vectors made that the searches are going to ask for; if that fails each of them finds out itself."""
    wanted = list(dict.fromkeys(text for text in texts if any(map(str.isalnum, text))))
    if guard.embeds and len(wanted) > 1:
        with suppress(EmbeddingError):
            guard.queries(wanted)
