"""The context of one turn, and how it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from twofold.context.budget import CountTokens, count_messages, counted, estimate_tokens, first_that_fits
from twofold.context.messages import ASSISTANT, USER, Message
from twofold.context.rendering import conversation_block, memories_block, stamped, well_formed
from twofold.context.template import ContextTemplate
from twofold.context.zones import WEEKDAYS, in_zone, minute
from twofold.errors import BudgetTooSmallError
from twofold.types import Degradation, Hit, SearchResult

__all__ = ["ContextBundle", "LeftOut", "assemble"]

SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What did not come into a context."""

    messages: tuple[Message, ...] = ()
    """Of the last messages, those that the budget had no room for, oldest first."""
    memories: tuple[Hit, ...] = ()
    """Of the memories found, those that the budget had no room for, best first."""
    earlier: int = 0
    """How many messages before the last ones were not considered at all."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.memories or self.earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBundle:
    """What goes to a language model for one turn. Made by :meth:`HybridStore.context`."""

    system: str
    """The system text, the block of memories in its place."""
    memories: tuple[Hit, ...]
    """What the block holds, best first, linked records after the hits; the entry ``[n]`` is ``memories[n - 1]``."""
    messages: tuple[Message, ...]
    """What was said before, oldest first."""
    query: str
    """The current message, whole."""
    at: datetime
    """The time of the call, in UTC."""
    zone: tzinfo
    """The zone that times are written in."""
    template: ContextTemplate
    """What it was written by."""
    tokens: int
    """What it counts: the larger of ``as_text()`` as a whole and of a chat made of ``as_messages()``, whose contents
    count 4 more each, and 3 for the start of the answer."""
    budget: int | None
    """What it was held to; None: nothing."""
    left_out: LeftOut
    """What there was no room for. True in a condition if that is anything."""
    result: SearchResult = field(repr=False)
    """The search that the memories come from, with all that it found."""

    @property
    def degradations(self) -> tuple[Degradation, ...]:
        """Why the memories are less than they could be; empty if they are not."""
        return self.result.degradations

    def as_text(self) -> str:
        """All of it as one text: the system text, the conversation, the current message."""
        said = conversation_block(self.messages, self.template.messages_heading, self.zone)
        return "\n\n".join(part for part in (self.system, said, well_formed(self.query)) if part)

    def as_messages(self) -> list[dict[str, str]]:
        """As OpenAI's chat interface has it: dicts of ``role`` and ``content``, new ones with each call.

        First the system message, if there is one to give; then what was said, each with its time before it; last the
        current message.
        """
        system = [{"role": SYSTEM, "content": self.system}] if self.system else []
        said = [
            {"role": each.role, "content": stamped(well_formed(each.content), each, self.zone)}
            for each in self.messages
        ]
        return [*system, *said, {"role": USER, "content": well_formed(self.query)}]

    def __str__(self) -> str:
        return self.as_text()


def assemble(
    query: str,
    found: SearchResult,
    messages: Sequence[Message],
    *,
    at: datetime,
    zone: tzinfo,
    zone_name: str,
    template: ContextTemplate,
    last: int,
    budget: int | None = None,
    count: CountTokens = estimate_tokens,
) -> ContextBundle:
    """The context of one turn that keeps to the budget: the oldest messages go first, then the weakest memories.

    If not all fits, a memory that has no room even by itself goes before anything else, for it would keep out all that
    rank below it.

    Args:
        query: the current message. If it is the newest of ``messages`` too, it is not told twice.
        found: the memories, as searched for.
        messages: what was said, oldest first.
        at: now.
        zone: what times are written in.
        zone_name: how the template calls it.
        template: the system text.
        last: how many of the newest messages are considered.
        budget: how many tokens at most; None: any number.
        count: gives the tokens of a text.

    Raises:
        BudgetTooSmallError: the system text and the current message alone are more.
        ConfigurationError: ``count`` gives something that is no number of tokens.
    """
    before = messages[:-1] if messages and _is_current(messages[-1], query) else messages
    recent = tuple(before[max(0, len(before) - last) :])
    everything = (*found.hits, *found.linked)
    slots = {
        "now": minute(at, zone),
        "weekday": WEEKDAYS[in_zone(at, zone).weekday()],
        "zone": zone_name,
    }

    def made(memories: Sequence[Hit], kept: Sequence[Message]) -> tuple[ContextBundle, int]:
        """The bundle of these, and its tokens."""
        block = memories_block(memories, template.memories_heading, zone)
        inside = {id(hit) for hit in memories}
        bundle = ContextBundle(
            system=well_formed(template.filled({**slots, "memories": block})),
            memories=tuple(memories),
            messages=tuple(kept),
            query=query,
            at=at,
            zone=zone,
            template=template,
            tokens=0,
            budget=budget,
            left_out=LeftOut(
                recent[: len(recent) - len(kept)],
                tuple(hit for hit in everything if id(hit) not in inside),
                len(before) - len(recent),
            ),
            result=found,
        )
        return bundle, _tokens(bundle, count)

    try:
        bundle, tokens = first_that_fits(len(recent), lambda gone: made(everything, recent[gone:]), budget)
    except BudgetTooSmallError as error:  # some of the memories must go as well
        memories = [hit for hit in everything if made([hit], ())[1] <= error.budget]

        def without(dropped: int) -> tuple[ContextBundle, int]:
            """The bundle with the first so many of all that can go left out."""
            gone = min(dropped, len(recent))
            return made(memories[: len(memories) - (dropped - gone)], recent[gone:])

        bundle, tokens = first_that_fits(len(recent) + len(memories), without, budget)
    object.__setattr__(bundle, "tokens", tokens)  # nobody else has it yet
    return bundle


def _is_current(message: Message, query: str) -> bool:
    return message.role != ASSISTANT and message.content == query


def _tokens(bundle: ContextBundle, count: CountTokens) -> int:
    chat = count_messages((message["content"] for message in bundle.as_messages()), count)
    return max(counted(bundle.as_text(), count), chat)
