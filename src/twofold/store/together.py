"""Several searches in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from twofold.config import SearchParams
from twofold.errors import ConfigurationError
from twofold.search import answers, prepare, remember
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
        """What :meth:`search` gives for each of ``texts``, in order; of one state of the file at one instant, with
        the texts sent to the embedder together and the vectors of the file compared with several questions at a time.

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
        if not asked:
            return []
        first = self._search_request(asked[0], access, k, offset, where, mode, params, preset, given[0], as_of)
        requests = [replace(first, text=text, vector=vector) for text, vector in zip(asked, given, strict=True)]
        guard, helpers, settings = self._parts.guard, self._parts.helpers, self._parts.settings
        at_once = settings.embedding.query_cache_size
        if helpers.hyde is not None:
            at_once = min(at_once // 2, settings.hyde_cache_size)  # each question then has two vectors
        at_once = max(1, at_once)
        prepared = []
        for start in range(0, len(requests), at_once):
            batch = requests[start : start + at_once]
            remember(batch, guard, helpers)
            prepared += [prepare(request, self._backend, guard, helpers) for request in batch]
        return answers(prepared, self._backend.read, self._parts.touches.add)

    asearch_many = in_thread(search_many)
