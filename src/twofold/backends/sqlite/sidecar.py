"""An index in memory, saved beside the file so that it need not be built anew.

A sidecar is a cache and nothing else. The file itself holds the sidecar's generation, size and digest, written in the
transaction in which the sidecar is put in its place: one that is torn, foreign, planted or of another past of the file
(a restored backup) has another digest, and is not even parsed. One that is behind is brought up like any index.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.head import Head, read_head
from twofold.backends.sqlite.migrations import write_meta

__all__ = ["Parts", "Sidecar", "sidecar_files"]

Parts: TypeAlias = "Mapping[str, npt.NDArray[np.generic]]"
"""An index as it is saved: arrays by name."""

_T = TypeVar("_T")

_MAGIC: Final = b"twofold index 1\n"
_DTYPES: Final = ("<i8", "<f4", "<f8", "|u1", "<u2", "<u4")
_KINDS: Final = ("faiss-*", "keyword", "keyword.*.tmp")
_STAMP: Final = "sidecar:"
"""The value of this name and the index's kind in ``meta``: generation, bytes and digest of the sidecar."""


def sidecar_files(path: str) -> list[Path]:
    """Everything that was, or was about to be, saved beside a file: it holds vectors and words, so who purges removes
    it too.
    """
    place = Path(path)
    name = glob.escape(place.name)
    return sorted(file for kind in _KINDS for file in place.parent.glob(f"{name}.{kind}"))


class _HasParts(Protocol):
    def parts(self) -> Parts:
        """The index as arrays."""
        ...


class _Stamp(NamedTuple):
    generation: int
    size: int
    digest: str


class Sidecar:
    """Where the index of one file is saved.

    Args:
        path: the file's.
        kind: the index's name, e.g. ``"faiss-ivf"``.
        made_with: what the index depends on besides the rows, by a session's head; of another, it is not used.
            Default: embedder and dimension.
    """

    def __init__(self, path: str, kind: str, made_with: Callable[[Head], Mapping[str, Any]] | None = None) -> None:
        self._file = Path(path)
        self._made_with = made_with or _embedder
        self._path = Path(f"{path}.{kind}")
        self._kind = kind

    def load(self, connection: Connection, head: Head, restored: Callable[[Parts], _T]) -> tuple[int, _T] | None:
        """The saved index and its generation, if the session's snapshot can bring it up to date; else None.

        Args:
            connection: of the session.
            head: of the session.
            restored: makes the index of its parts.
        """
        stamp = self._stamp(connection)
        if stamp is None or not head.pruned <= stamp.generation <= head.generation:
            return None
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size != stamp.size:
                    return None
                if hashlib.file_digest(file, "blake2b").hexdigest() != stamp.digest:
                    return None
                file.seek(0)
                header, parts = _read(file)
            if header != self._header(head):
                return None
            return stamp.generation, restored(parts)
        except (OSError, ValueError, KeyError, RuntimeError):  # RuntimeError: FAISS of another release
            return None

    def save(self, connection: Connection, head: Head, generation: int, index: _HasParts) -> None:
        """Put ``index`` in the sidecar's place.

        Args:
            connection: in a transaction with the write lock held, which the caller commits.
            head: of that transaction.
            generation: that the index belongs to.
            index: to be saved.

        Raises:
            OSError: it cannot be written; the former one may be gone, which does no harm.
        """
        with self._begun() as (temporary, file):
            self._place(connection, temporary, self._filled(temporary, file, head, generation, index))

    def save_unhurried(
        self,
        writer: Callable[[], AbstractContextManager[Connection]],
        generation: int,
        index: _HasParts,
        is_wanted: Callable[[], bool],
    ) -> None:
        """The same with the write lock held for two moments, at the beginning and the end, and not while a large index
        is written. One that was purged in between is not put in its place, and is removed by who purges.

        Args:
            writer: begins a transaction with the write lock held, which commits at the end of the block.
            generation: that the index belongs to.
            index: to be saved.
            is_wanted: asked at the end, with the lock held, whether it is still to be put in its place.

        Raises:
            OSError: as for :meth:`save`.
        """
        with ExitStack() as stack:
            with writer() as connection:
                head = read_head(connection)
                if generation < head.pruned:
                    return
                temporary, file = stack.enter_context(self._begun())
            stamp = self._filled(temporary, file, head, generation, index)
            with writer() as connection:
                if read_head(connection).pruned <= generation and is_wanted():
                    self._place(connection, temporary, stamp)

    @contextmanager
    def _begun(self) -> Iterator[tuple[Path, BinaryIO]]:
        """A new file to be filled, which is removed at the end unless it was moved."""
        # Under the write lock nobody else begins, and who is in the middle saves in vain: what lies there was left by a
        # process that died.
        for leftover in self._path.parent.glob(f"{glob.escape(self._path.name)}.*.tmp"):
            leftover.unlink(missing_ok=True)
        temporary = self._path.with_name(f"{self._path.name}.{uuid4().hex}.tmp")
        try:
            with temporary.open("xb") as file:
                temporary.chmod(self._file.stat().st_mode & 0o777)  # who may read the one may read the other
                yield temporary, file
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _filled(self, temporary: Path, file: BinaryIO, head: Head, generation: int, index: _HasParts) -> _Stamp:
        _write(file, self._header(head), index.parts())
        file.flush()
        os.fsync(file.fileno())
        file.close()
        with temporary.open("rb") as written:
            size = os.fstat(written.fileno()).st_size
            return _Stamp(generation, size, hashlib.file_digest(written, "blake2b").hexdigest())

    def _place(self, connection: Connection, temporary: Path, stamp: _Stamp) -> None:
        write_meta(connection, _STAMP + self._kind, json.dumps(stamp))
        temporary.replace(self._path)

    def disown(self, connection: Connection) -> None:
        """Let what is saved, or is just being saved, not be used any more."""
        connection.execute("DELETE FROM meta WHERE name = ?", (_STAMP + self._kind,))

    def is_current(self, connection: Connection, head: Head) -> bool:
        """Whether what is saved is so near to the session's state that saving again is not worth it: less than 2 % of
        the records have changed since.
        """
        stamp = self._stamp(connection)
        if stamp is None or not head.pruned <= stamp.generation <= head.generation or not self._path.exists():
            return False
        (changed,) = connection.execute(
            "SELECT (SELECT count(*) FROM records WHERE generation > :since)"
            " + (SELECT count(*) FROM tombstones WHERE generation > :since)",
            {"since": stamp.generation},
        ).fetchone()
        (records,) = connection.execute("SELECT count(*) FROM records").fetchone()
        return bool(50 * changed < records or changed == 0)

    def _stamp(self, connection: Connection) -> _Stamp | None:
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (_STAMP + self._kind,)).fetchone()
        if row is None:
            return None
        try:
            generation, size, digest = json.loads(row[0])
        except (ValueError, TypeError):
            return None
        return _Stamp(generation, size, digest) if isinstance(generation, int) else None

    def _header(self, head: Head) -> dict[str, Any]:
        return {"kind": self._kind, **self._made_with(head)}


def _embedder(head: Head) -> dict[str, Any]:
    return {"fingerprint": head.fingerprint, "dimension": head.dimension}


def _write(file: BinaryIO, header: Mapping[str, Any], parts: Mapping[str, npt.NDArray[np.generic]]) -> None:
    arrays = {name: np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")) for name, part in parts.items()}
    shapes = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    described = json.dumps({**header, "parts": shapes}).encode()
    file.write(_MAGIC + struct.pack("<Q", len(described)) + described)
    file.writelines(array.data for array in arrays.values())


def _read(file: BinaryIO) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.generic]]]:
    """Header and arrays.

    Raises:
        ValueError, KeyError: it is no sidecar of this format.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("of another format")
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    parts: dict[str, npt.NDArray[np.generic]] = {}
    for name, (dtype, shape) in header.pop("parts").items():
        if dtype not in _DTYPES:
            raise ValueError(f"an array of {dtype}")
        parts[name] = np.fromfile(file, dtype=dtype, count=math.prod(shape)).reshape(shape)
    return header, parts
