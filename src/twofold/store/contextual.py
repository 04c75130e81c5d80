"""The call that assembles what goes to a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from twofold.config import SearchParams
from twofold.context import (
    ContextBundle,
    ContextTemplate,
    CountTokens,
    MessageLike,
    as_messages,
    as_template,
    as_zone,
    assemble,
    estimate_tokens,
)
from twofold.errors import ConfigurationError
from twofold.store.asynchronous import in_thread
from twofold.store.handle import FilterLike
from twofold.store.reading import Reading
from twofold.types import Access, Hit, Mode, Vectors
from twofold.types.arguments import checked_count

__all__ = ["Contextual"]


class Contextual(Reading):
    """Context for a language model, made of a search and a conversation."""

    def context(
        self,
        query: str,
        *,
        access: Access | None = None,
        messages: Iterable[MessageLike] = (),
        budget_tokens: int | None = None,
        template: ContextTemplate | str | None = None,
        zone: str = "UTC",
        k: int = 5,
        last: int = 10,
        where: FilterLike = None,
        mode: Mode | str = Mode.HYBRID,
        params: SearchParams | None = None,
        preset: str | None = None,
        vector: Vectors | None = None,
        count_tokens: CountTokens | None = None,
        as_of: datetime | None = None,
        phrasings: Iterable[str] = (),
    ) -> ContextBundle:
        """What goes to a language model for one turn: the system text, the memories that answer ``query`` best, the
        last messages, and ``query`` itself; as text, and as messages.

        What does not fit the budget is left out, and the bundle says so: first memories that have no room even by
        themselves, then the oldest messages, then the weakest memories (linked records before hits). The system text
        and ``query`` are never cut.

        Args:
            query: the current message, which is also what is searched for.
            access: who asks. Default: the handle's, else ``Access()``.
            messages: what was said before, oldest first: each a :class:`Message`, or a dict with ``role``, ``content``
                and, if wanted, ``at``. If the newest is ``query`` itself, it is not told twice.
            budget_tokens: how many tokens at most, at least 1; it holds for the text and for the messages. Default:
                any number.
            template: a :class:`ContextTemplate`, or its system text. Default: ``ContextTemplate()``.
            zone: the name of the user's time zone, e.g. ``"Europe/Berlin"``. Default: UTC.
            k: how many memories at most; what links lead to comes besides, if ``params`` ask for it. Default: 5.
            last: how many of the newest messages at most. Default: 10.
            where: a filter for the memories. Default: none.
            mode: how they are searched for, as in :meth:`search`.
            params: how they are ranked. Default: the store's settings. With ``touch``, the memories that come into the
                bundle count as used, and no others.
            preset: the same as a name, one of ``twofold.PRESETS``, e.g. ``"muninn"``; in place of ``params``.
            vector: the query's embedding, used instead of asking the embedder.
            count_tokens: gives the number of tokens of a text; called several times, and what it raises is passed on.
                Default: :func:`twofold.estimate_tokens`.
            as_of: the memories as they stood at this instant, which has a time zone. Default: now.
            phrasings: other ways to ask ``query``, for the search alone; see :meth:`search`.

        Raises:
            BudgetTooSmallError: the system text and ``query`` alone have more tokens than the budget.
            SearchUnavailableError: the leg asked for by mode, or every leg, cannot answer.
            ConfigurationError: an argument cannot be used; naive times and unknown zones are such.
        """
        asker, said, words, clock = self._access(access), as_messages(messages), as_template(template), as_zone(zone)
        if budget_tokens is not None:
            checked_count(budget_tokens, "budget_tokens", least=1)
        checked_count(last, "last")
        if count_tokens is not None and not callable(count_tokens):
            raise ConfigurationError(f"count_tokens is a function of a text, not {type(count_tokens).__name__}")
        at = self._now()
        ranked = self._ranked_by(params, preset)
        # What counts as used is known only when the budget has been kept to.
        untouched = replace(ranked, touch=False)
        found = self.search(
            query,
            access=asker,
            k=k,
            where=where,
            mode=mode,
            params=untouched,
            vector=vector,
            as_of=as_of,
            phrasings=phrasings,
        )
        bundle = assemble(
            query,
            found,
            said,
            at=at,
            zone=clock,
            zone_name=zone,
            template=words,
            last=last,
            budget=budget_tokens,
            count=estimate_tokens if count_tokens is None else count_tokens,
        )
        if ranked.touch:
            self._touch(bundle.memories, at, ranked.touch_growth)
        return bundle

    acontext = in_thread(context)

    def _touch(self, memories: Sequence[Hit], at: datetime, growth: float | None) -> None:
        """Count one use of each."""
        keys: list[int] = []
        with self._backend.read() as reader:
            for hit in memories:
                holders = reader.find(hit.id, hit.record.namespace, (hit.record.belongs_to,))
                keys += [key for key, _ in holders]
        self._parts.touches.add(keys, at, growth)
