"""``twofold demo``: what hybrid search is good for, shown on the documentation that this machine has.

Everything is made anew on the spot, and nothing leaves the machine: the corpus is Python's own, the frameworks at the
end get a canned language model from their adapters.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import Final, NoReturn

from rich.console import Console
from rich.text import Text

import twofold
from twofold.cli import render
from twofold.cli.corpus import standard_library
from twofold.cli.opening import AUTO, INSTALL_LOCAL, NONE, has_local_extra
from twofold.embedders import EmbeddingKind, LocalEmbedder, resolve_embedder
from twofold.errors import ConfigurationError
from twofold.store import HybridStore
from twofold.types import Access, Mode, SearchResult

__all__ = ["QUESTIONS", "run_demo"]

QUESTIONS: Final = (
    "rmtree onerror",
    "find files by wildcard",
    "turn a string into a date",
    "send an e-mail message",
    "pick a random element from a list",
    "limit how long I wait for a task",
)
"""The first has a name in it that no model has seen, the others say in plain words what a user would want."""

_FRAMEWORKS: Final = {"langchain-twofold": "LangChain", "llama-index-twofold": "LlamaIndex"}
"""Adapters that show their framework, by the name of their distribution."""

_ENTRY_POINTS: Final = "twofold.demo"
"""The group in which an adapter names a function ``(store: HybridStore, question: str) -> str``: it asks through its
framework and returns what that printed."""

_SHOWN: Final = 3
_WIDTH: Final = 92
_COLUMN: Final = 28
_SAID: Final = 260
"""Characters of one line of a framework's that are shown."""


def run_demo(path: Path | None, modules: Sequence[str], embedder: str, questions: Sequence[str]) -> None:
    """Index, ask, and show each answer from keywords, from vectors and from both.

    Args:
        path: a new file to keep the store in. Default: one in a temporary folder, removed at the end.
        modules: only these modules of the standard library. Default: all.
        embedder: what makes vectors: the short form of an embedder, ``none``, or ``auto``, which is ``local`` if
            that is installed.
        questions: what to ask. Default: ``QUESTIONS``.

    Raises:
        ConfigurationError: the file is there already, or there is no such module.
        MissingExtraError: the local model was asked for by name and is not installed.
    """
    asked = tuple(questions) or QUESTIONS
    wanted = ("local" if has_local_extra() else NONE) if embedder == AUTO else embedder
    makes_vectors = resolve_embedder(None if wanted == NONE else wanted)
    console = Console(width=None if render.on_terminal() else _WIDTH, highlight=False, markup=False, soft_wrap=True)
    with _place(path) as file, twofold.open(file, embedder=makes_vectors) as store:
        show = _Show(console, store, has_vectors=makes_vectors is not None)
        show.indexing(modules)
        show.questions(asked)
        show.failure(file, asked[0])
        show.scopes()
        show.frameworks(asked[-1])
    if path is not None:
        show.say(f"The store is kept: twofold search --store {path} 'your question'")


@contextmanager
def _place(path: Path | None) -> Iterator[Path]:
    """Where the store goes."""
    if path is None:
        with tempfile.TemporaryDirectory(prefix="twofold-demo-") as folder:
            yield Path(folder) / "demo.db"
    elif path.exists():
        raise ConfigurationError(f"{path} is there already; the demo makes a new file: name another, or remove it")
    else:
        yield path


class _Show:
    """The steps of the demonstration; each prints a heading and what it found."""

    def __init__(self, console: Console, store: HybridStore, *, has_vectors: bool) -> None:
        self._console = console
        self._store = store
        self._has_vectors = has_vectors
        self._step = 0

    def indexing(self, modules: Sequence[str]) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        self._heading(f"Index the docstrings of Python {version}'s standard library")
        started = perf_counter()
        with render.progress_bar("Reading", None):
            records = standard_library(modules)
        read = perf_counter()
        with render.progress_bar("Indexing", len(records)) as step:
            self._store.add_many(records, progress=step)
        seconds = perf_counter() - read
        size = int(self._store.info().backend.details["file_bytes"])
        self.say(
            f"{len(records):,} records read from the installed source in {read - started:.1f} s, indexed in "
            f"{seconds:.1f} s ({len(records) / seconds:,.0f} a second), one file of {size / 2**20:.1f} MiB."
        )
        if self._has_vectors:
            self.say(f"Each has keywords and a vector of {self._store.info().embedder}.")
        else:
            self.say(f"No embedder, so keywords answer alone. For vectors beside them: {INSTALL_LOCAL}")

    def questions(self, asked: Sequence[str]) -> None:
        self._heading("Ask: the best three by keyword, by meaning, and fused" if self._has_vectors else "Ask")
        for question in asked:
            self._side_by_side(question)
        hits = self._store.search(asked[0], k=1).hits
        if hits:
            self.say(f"Why {hits[0].id} answers {asked[0]!r}:")
            self.say(f"  {hits[0].why}")
        if self._has_vectors:
            self.say("")
            self.say(
                "Fusion weighs what each leg says of a record. Where you know that one list is right, ask "
                "it alone: mode='keyword' or mode='vector'."
            )

    def failure(self, file: Path, question: str) -> None:
        self._heading("The embedder goes away: keywords answer, and the answer says so")
        said = self._store.info()
        unplugged = _Unplugged(said.embedder or LocalEmbedder().fingerprint, said.backend.dimension)
        with twofold.open(file, embedder=unplugged) as store:
            result = store.search(question, k=_SHOWN)
        for rank, hit in enumerate(result, start=1):
            self.say(f"  {rank}  {hit.id}")
        for degradation in result.degradations:
            self.say(f"  {degradation}")

    def scopes(self) -> None:
        self._heading("Two users, one id: each sees their own")
        for user, text in (("ann", "The door code is 4711."), ("ben", "The door code is 0815.")):
            self._store.add(text, id="door", access=Access(user=user))
        for access, name in ((Access(user="ann"), "ann"), (Access(user="ben"), "ben"), (Access(), "nobody")):
            record = self._store.get("door", access=access)
            found = [hit.text for hit in self._store.search("door code", access=access, k=100) if hit.id == "door"]
            got = "nothing" if record is None else record.text
            line = f"  {name:<7} get('door'): {got:<23}  search('door code'): {' '.join(found) or 'nothing of it'}"
            self._console.print(line)

    def frameworks(self, question: str) -> None:
        self._heading("The same store behind a framework, with a canned language model")
        self.say(f"  Asked: “{render.one_line(question)}”")
        self.say("")
        missing = dict(_FRAMEWORKS)
        for entry in sorted(entry_points(group=_ENTRY_POINTS), key=lambda entry: entry.name):
            distribution = _distribution(entry)
            self._framework(missing.pop(distribution, entry.name), entry, question)
        for distribution, name in missing.items():
            self.say(f"  {name} is shown when its adapter is installed: pip install {distribution}")

    def say(self, text: str) -> None:
        """Print a paragraph, wrapped to a width that a terminal and a page have."""
        margin = " " * (len(text) - len(text.lstrip()))
        self._console.print(fill(text, _WIDTH, subsequent_indent=margin))

    def _heading(self, text: str) -> None:
        self._step += 1
        self._console.print(Text(f"\n{self._step}. {text}\n", style="bold"))

    def _framework(self, name: str, entry: EntryPoint, question: str) -> None:
        try:
            run = entry.load()
        except ImportError as error:
            self.say(f"  {name}: its adapter cannot be loaded: {render.one_line(str(error))}")
            return
        self._console.print(Text(f"  {name}", style="bold"))
        for line in str(run(self._store, question)).splitlines():
            self.say(f"    {render.one_line(line, _SAID)}")
        self.say("")

    def _side_by_side(self, question: str) -> None:
        modes = (Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID) if self._has_vectors else (Mode.KEYWORD,)
        answers = [self._store.search(question, k=_SHOWN, mode=mode) for mode in modes]
        self._console.print(Text(f"“{render.one_line(question)}”", style="bold"))
        titles = ("keywords", "vectors", "fused")[: len(modes)]
        self._console.print(Text("     " + "  ".join(f"{title:<{_COLUMN}}" for title in titles).rstrip(), style="dim"))
        for rank in range(_SHOWN):
            cells = "  ".join(f"{_name_at(answer, rank):<{_COLUMN}}" for answer in answers)
            self._console.print(f"  {rank + 1}  {cells}".rstrip())
        best = answers[-1].hits
        self.say(f"  => {best[0].id}: {_first_line(best[0].text)}" if best else "  => nothing found")
        self.say("")


class _Unplugged:
    """The embedder as it is when its server is down."""

    def __init__(self, fingerprint: str, dimension: int | None) -> None:
        self.fingerprint = fingerprint
        self.dimension = dimension

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NoReturn:  # noqa: ARG002 - the protocol's
        raise ConnectionError("unplugged for the demonstration")


def _distribution(entry: EntryPoint) -> str:
    return "" if entry.dist is None else entry.dist.name.lower().replace("_", "-")


def _name_at(result: SearchResult, rank: int) -> str:
    """The id at a rank, its end if it is too long: that is where names differ."""
    if rank >= len(result):
        return render.ABSENT
    name = render.one_line(result[rank].id)
    return name if len(name) <= _COLUMN else f"…{name[1 - _COLUMN :]}"


def _first_line(text: str) -> str:
    """The beginning of a docstring, below the line with its name."""
    lines = text.partition("\n\n")[2].strip().splitlines() or [""]
    return render.one_line(lines[0], _WIDTH - 24)
