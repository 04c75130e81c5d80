"""What several commands take, and what is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from twofold.cli.opening import checked_embedder
from twofold.cli.reading_input import parsed_json
from twofold.config import INDEXES, PRESETS, StoreSettings
from twofold.errors import ConfigurationError
from twofold.types import Access

__all__ = [
    "DEFAULT_INDEX",
    "DEFAULT_STORE",
    "AsJson",
    "Embedder",
    "Index",
    "Namespace",
    "Preset",
    "Rooms",
    "Store",
    "Tenant",
    "User",
    "Where",
    "access_of",
    "filter_of",
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


def words_of(namespace: str | None) -> tuple[str, ...]:
    """The namespace that ``--namespace`` spells; the root if it is empty or not given."""
    return tuple(namespace.split("/")) if namespace else ()
