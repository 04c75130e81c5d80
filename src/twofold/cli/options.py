"""What several commands take, and what is made of it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from twofold.cli.opening import checked_embedder
from twofold.cli.reading_input import parsed_json
from twofold.config import INDEXES, PRESETS, SearchParams, StoreSettings
from twofold.errors import ConfigurationError
from twofold.types import Access

__all__ = [
    "DEFAULT_INDEX",
    "DEFAULT_STORE",
    "AsJson",
    "AsOf",
    "Embedder",
    "Hyde",
    "Index",
    "Mmr",
    "Namespace",
    "Phrasings",
    "Preset",
    "Project",
    "Reranker",
    "Rooms",
    "Settings",
    "Store",
    "Tenant",
    "User",
    "Where",
    "access_of",
    "filter_of",
    "instant_of",
    "params_of",
    "words_of",
]

DEFAULT_STORE: Final = Path("twofold.db")
DEFAULT_INDEX: Final[str] = StoreSettings().index

Store = Annotated[
    Path,
    typer.Option(
        "--store", envvar="TWOFOLD_STORE", metavar="PATH", help="The file; with --tenant, the folder of the files."
    ),
]
Tenant = Annotated[str | None, typer.Option(metavar="NAME", help="Whose file in the folder.")]
Embedder = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        callback=checked_embedder,
        help="What makes vectors: local; ollama, fastembed, sentence-transformers, openai or voyage, also with "
        ":<model>; none; or auto: what the file's vectors are of; local for a new file; each if its extra is "
        "installed, else none, and keywords answer alone.",
    ),
]
Index = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"What finds the nearest vectors: {', '.join(INDEXES)}. Any file can be opened with any.",
    ),
]
User = Annotated[str | None, typer.Option(metavar="NAME", help="Who asks. Default: nobody, on shared records.")]
Rooms = Annotated[list[str] | None, typer.Option("--room", metavar="NAME", help="A room of theirs; repeatable.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Namespace = Annotated[str | None, typer.Option(metavar="A/B", help="Where it is kept: words apart by /.")]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help='A filter, e.g. \'{"lang": "en", "@kind": {"$in": ["insight"]}}\'; @ names an attribute.'
    ),
]


Preset = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"How to rank: {', '.join(PRESETS)}. Default: as the store does.")
]


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of a search by its name in SearchParams, e.g. min_score=0.5; repeatable.",
    ),
]


Project = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What it is about; records of other projects count half, insights in full."),
]
Phrasings = Annotated[
    list[str] | None,
    typer.Option("--phrasing", metavar="TEXT", help="The same asked in other words; repeatable."),
]
Mmr = Annotated[
    float | None,
    typer.Option(metavar="LAMBDA", help="Hits that also differ from each other: 1 least, 0 most. Default: not so."),
]
Reranker = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What puts the best in a better order: cross-encoder, cross-encoder:<model>."),
]
Hyde = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What an answer might say: it is looked for by meaning too.")
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="As things stood then, e.g. 2026-01-31T12:00:00Z. Default: now."),
]


def access_of(user: str | None, rooms: list[str] | None) -> Access:
    """Who asks."""
    return Access(user=user, rooms=tuple(rooms or ()))


def filter_of(where: str | None) -> dict[str, object] | None:
    """The filter that ``--where`` spells.

    Raises:
        ConfigurationError: it is no JSON object.
    """
    if where is None:
        return None
    value = parsed_json(where, "--where")
    if not isinstance(value, dict):
        raise ConfigurationError('--where is a JSON object such as {"lang": "en"}')
    return value


def instant_of(text: str) -> datetime:
    """The time that an option spells.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"a time is written 2026-01-31T12:00:00Z, not {text!r}") from None


def params_of(preset: str | None, settings: list[str] | None, **options: object) -> SearchParams:
    """How to rank: the preset, with the settings that ``--set`` spells and the options that were given.

    A value is JSON where it can be read as that, else text.

    Raises:
        ConfigurationError: there is no such preset or setting, or a value is outside of its range.
    """
    changes = {name: value for name, value in options.items() if value is not None}
    for each in settings or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigurationError(f"--set is NAME=VALUE, e.g. min_score=0.5, not {each!r}")
        try:
            given = json.loads(value)
        except ValueError:
            given = value
        changes[name.strip()] = tuple(given) if isinstance(given, list) else given
    return SearchParams.preset("balanced" if preset is None else preset, **changes)


def words_of(namespace: str | None) -> tuple[str, ...]:
    """The namespace that ``--namespace`` spells; the root if it is empty or not given."""
    return tuple(namespace.split("/")) if namespace else ()
