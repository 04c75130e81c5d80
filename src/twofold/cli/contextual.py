"""The command that prints what goes to a language model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from twofold.cli import render
from twofold.cli.opening import AUTO, opened
from twofold.cli.options import (
    DEFAULT_INDEX,
    DEFAULT_STORE,
    AsJson,
    AsOf,
    Embedder,
    Hyde,
    Index,
    Mmr,
    Phrasings,
    Preset,
    Project,
    Reranker,
    Rooms,
    Settings,
    Store,
    Tenant,
    User,
    Where,
    access_of,
    filter_of,
    instant_of,
    params_of,
)
from twofold.cli.reading_input import parsed_json, text_of
from twofold.context import ContextBundle, Message, as_messages
from twofold.errors import ConfigurationError
from twofold.types import Mode

__all__ = ["add_commands"]


class _Form(StrEnum):
    TEXT = "text"
    MESSAGES = "messages"


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the command of this module."""
    app.command()(context)


def context(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The current message, in any words.")],
    *,
    messages: Annotated[
        str | None, typer.Option(metavar="FILE", help="What was said before, JSON Lines; - is standard input.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="How many tokens at most, as estimated. Default: any number.")
    ] = None,
    zone: Annotated[str, typer.Option(metavar="NAME", help="The user's time zone, e.g. Europe/Berlin.")] = "UTC",
    template: Annotated[
        str | None, typer.Option(metavar="FILE", help="The system text, with {memories}, {now}, {weekday}, {zone}.")
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many memories at most.")] = 5,
    last: Annotated[int, typer.Option(metavar="N", help="How many of the newest messages at most.")] = 10,
    mode: Annotated[Mode, typer.Option(help="Which legs search.")] = Mode.HYBRID,
    where: Where = None,
    expand: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many records that links lead to from the memories are told too. Default: the preset's, else 0.",
        ),
    ] = None,
    touch: Annotated[bool, typer.Option("--touch", help="Count the memories that are told as used.")] = False,
    preset: Preset = None,
    project: Project = None,
    phrasing: Phrasings = None,
    mmr: Mmr = None,
    reranker: Reranker = None,
    hyde: Hyde = None,
    as_of: AsOf = None,
    setting: Settings = None,
    form: Annotated[_Form, typer.Option("--as", help="One text, or the messages as JSON.")] = _Form.TEXT,
    store: Store = DEFAULT_STORE,
    tenant: Tenant = None,
    embedder: Embedder = AUTO,
    index: Index = DEFAULT_INDEX,
    user: User = None,
    room: Rooms = None,
    as_json: AsJson = False,
) -> None:
    """Print what goes to a language model: system text, memories, talk.

    What does not fit the budget is left out, the oldest messages first, then the weakest memories; standard error says
    so. A line of --messages is {"role": "user" or "assistant", "content": "...", "at": "2026-03-02T08:01:00Z"}, the
    oldest first; "at" may be left out.

    --json: {"messages": [{"role", "content"}], "memories": [{"score", "legs", "record"}], "tokens", "budget",
    "left_out": {"messages", "memories", "earlier"}, "degradations": [{"code", "message"}]}; what was left out is
    counted. --as messages: the messages alone.
    """
    if as_json and form is _Form.MESSAGES:
        raise ConfigurationError("--json has the messages in it: give it or --as messages")
    if messages == template == "-":
        raise ConfigurationError("standard input can be read once: give - once")
    said = [] if messages is None else list(_messages(messages))
    words = None if template is None else text_of(template, sys.stdin.buffer).rstrip("\n")
    always = None if hyde is None else "always"
    params = params_of(
        preset, setting, expand=expand, touch=touch or None, project=project, mmr_lambda=mmr, hyde=always
    )
    asker, only, then = access_of(user, room), filter_of(where), None if as_of is None else instant_of(as_of)
    writer = None if hyde is None else lambda _: hyde
    with opened(store, tenant, embedder, index=index, reranker=reranker, hyde=writer) as it:
        bundle = it.store.context(
            question,
            access=asker,
            messages=said,
            budget_tokens=budget,
            template=words,
            zone=zone,
            k=k,
            last=last,
            where=only,
            mode=mode,
            params=params,
            as_of=then,
            phrasings=phrasing or (),
        )
    if as_json:
        render.print_json(_as_json(bundle))
    elif form is _Form.MESSAGES:
        render.print_json(bundle.as_messages())
    else:
        render.print_text(bundle.as_text())
    if it.warning is not None and mode is Mode.HYBRID:
        render.print_note(f"keywords answered alone: {it.warning}")
    for degradation in bundle.degradations:
        render.print_note(str(degradation))
    if bundle.left_out.messages or bundle.left_out.memories:
        render.print_note(
            f"no room for {len(bundle.left_out.messages)} messages and {len(bundle.left_out.memories)} memories"
        )


def _messages(name: str) -> Iterator[Message]:
    """The conversation in a file of JSON Lines.

    Raises:
        ConfigurationError: a line is no message; the error names it.
    """
    shown = "standard input" if name == "-" else name
    for number, line in enumerate(text_of(name, sys.stdin.buffer).split("\n"), start=1):
        if line.strip():
            value = parsed_json(line.strip(), f"{shown}:{number}")
            try:
                yield from as_messages([value])
            except ConfigurationError as error:
                raise ConfigurationError(f"{shown}:{number}: {str(error).removeprefix('messages[0]: ')}") from error


def _as_json(bundle: ContextBundle) -> dict[str, Any]:
    return {
        "messages": bundle.as_messages(),
        "memories": [render.hit_json(hit) for hit in bundle.memories],
        "tokens": bundle.tokens,
        "budget": bundle.budget,
        "left_out": {
            "messages": len(bundle.left_out.messages),
            "memories": len(bundle.left_out.memories),
            "earlier": bundle.left_out.earlier,
        },
        "degradations": render.degradations_json(bundle.degradations),
    }
