"""What ``twofold add`` is given, as records: texts, files, JSON Lines, standard input.

All of it is read and checked before the first record is handed on, so a mistake in the last line stores nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, Final, NoReturn, Self

from twofold.errors import ConfigurationError, InvalidRecordError
from twofold.types import NewRecord

__all__ = ["STDIN", "Input", "parsed_json", "text_of"]

STDIN: Final = "-"
"""What stands for standard input on the command line."""

_TIMES: Final = ("created_at", "event_at", "valid_from", "valid_to", "expires_at")
_IN_MEMORY: Final = 16 * 2**20
"""Bytes of standard input kept in memory; more goes to a temporary file."""
_BOM: Final = b"\xef\xbb\xbf"


def parsed_json(text: str, what: str) -> Any:
    """The value of strict JSON.

    Args:
        text: the JSON.
        what: how an error calls it, e.g. ``"--where"``.

    Raises:
        ConfigurationError: it is none; NaN and Infinity are none either.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{what}: no valid JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # ValueError: NaN, or a number of thousands of digits
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ConfigurationError(f"{what}: no valid JSON: {reason}") from error


def text_of(name: str, stdin: BinaryIO) -> str:
    """All of a file's text, or of standard input's.

    Args:
        name: the file; ``-`` is standard input.
        stdin: standard input.

    Raises:
        ConfigurationError: it cannot be read, or is not UTF-8.
    """
    if name == STDIN:
        return _decoded(stdin.read(), "standard input")
    with _reading(Path(name)):
        raw = Path(name).read_bytes()
    return _decoded(raw, name)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A source of JSON Lines that can be read again from its start."""

    name: str
    stream: IO[bytes]


class Input(AbstractContextManager["Input"]):
    """The records to be added, in the order texts, files, JSON Lines. Can be gone through more than once.

    Args:
        texts: one record each; ``-`` is all of standard input.
        files: text files, one record each, its path the id and the source.
        jsonl: JSON Lines files, one record a line; ``-`` is standard input.
        options: what the command line says of every record, by the names of :class:`NewRecord`; a line of JSON that
            says otherwise wins.
        stdin: standard input.

    Raises:
        ConfigurationError: nothing to add, a file that cannot be read, text that is not UTF-8, no JSON, an id for
            several records; messages name the file, and the line.
        InvalidRecordError: what no record can hold; named likewise.
    """

    def __init__(
        self,
        texts: Sequence[str],
        files: Sequence[Path],
        jsonl: Sequence[str],
        options: Mapping[str, Any],
        stdin: BinaryIO,
    ) -> None:
        if not (texts or files or jsonl):
            raise ConfigurationError("nothing to add: give texts, --file, --jsonl, or - for standard input")
        if (*texts, *jsonl).count(STDIN) > 1:
            raise ConfigurationError("standard input can be read once: give - once")
        if (jsonl or len(texts) + len(files) > 1) and not {"id", "source"}.isdisjoint(options):
            raise ConfigurationError("--id and --source are of one record: give one text or one file with them")
        self._options = options
        self._single = [_from_text(text, options, stdin) for text in texts]
        self._single += [_from_file(path, options) for path in files]
        self._sources: list[_Lines] = []
        try:
            for name in jsonl:
                self._sources.append(_lines_of(name, stdin))
            self._total = len(self._single) + sum(1 for source in self._sources for _ in self._read(source))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[NewRecord]:
        yield from self._single
        for source in self._sources:
            yield from self._read(source)

    def close(self) -> None:
        """Close what was opened."""
        for source in self._sources:
            source.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, source: _Lines) -> Iterator[NewRecord]:
        source.stream.seek(0)
        for number, line in enumerate(source.stream, start=1):
            if line.strip():
                place = f"{source.name}:{number}"
                yield _from_json(parsed_json(_decoded(line, place).strip(), place), self._options, place)


def _from_text(text: str, options: Mapping[str, Any], stdin: BinaryIO) -> NewRecord:
    if text == STDIN:
        return _record({**options, "text": _decoded(stdin.read(), "standard input")}, "standard input")
    return _record({**options, "text": text}, "the text")


def _from_file(path: Path, options: Mapping[str, Any]) -> NewRecord:
    with _reading(path):
        raw = path.read_bytes()
    # Its path is its id too: the same file added again takes the place of what it was before.
    return _record({"id": str(path), "source": str(path), **options, "text": _decoded(raw, str(path))}, str(path))


def _record(values: Mapping[str, Any], place: str) -> NewRecord:
    if not values["text"].strip():
        raise ConfigurationError(f"{place} is empty: there is nothing to store")
    return _checked(values, place)


def _lines_of(name: str, stdin: BinaryIO) -> _Lines:
    if name != STDIN:
        with _reading(Path(name)):
            return _Lines(name, Path(name).open("rb"))
    # Kept, as it is gone through twice: to check it all, then to store it.
    kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by Input
    while chunk := stdin.read(2**20):
        kept.write(chunk)
    return _Lines("standard input", kept)


def _from_json(value: Any, options: Mapping[str, Any], place: str) -> NewRecord:
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{place}: a line is an object with the names of a record, or a text")
    times = {name: _time(value[name], f"{place}: {name}") for name in _TIMES if value.get(name) is not None}
    return _checked({**options, **value, **times}, place)


def _time(value: Any, what: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{what} is a time such as 2025-03-01T12:00:00Z, not {value!r}") from error
    if time.tzinfo is None:
        raise ConfigurationError(f"{what} has no time zone: write 2025-03-01T12:00:00Z or ...+01:00, not {value!r}")
    return time


def _checked(values: Mapping[str, Any], place: str) -> NewRecord:
    try:
        return NewRecord.from_value(values)
    except InvalidRecordError as error:
        raise InvalidRecordError(f"{place}: {error}") from error


def _decoded(raw: bytes, place: str) -> str:
    try:
        return raw.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{place} is not UTF-8 (its byte {error.start + 1} cannot be read): convert it first, e.g. with iconv"
        ) from error


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            raise ConfigurationError(f"{path} is a folder: name the files in it")
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, ConfigurationError):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{path} cannot be read: {reason}") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
