"""One write from its beginning to its commit: the pool's session, what is known of the file, and the writer of records.

A class, like the pool's session within it, because each record that is added alone goes through it.
"""

from __future__ import annotations

from twofold.backends.sqlite.connections import Pool
from twofold.backends.sqlite.known import LastWrite
from twofold.backends.sqlite.reader import Parts
from twofold.backends.sqlite.writer import SqliteWriter

__all__ = ["WritingSession"]


class WritingSession:
    """A transaction, begun at entry with the write lock held, and committed at exit or, after an error, rolled back.

    Args:
        pool: the connections of the file.
        parts: what all sessions share.
        last_write: what the last such session knew when it was committed.
    """

    __slots__ = ("_last_write", "_parts", "_pool", "_session", "_writer")

    def __init__(self, pool: Pool, parts: Parts, last_write: LastWrite) -> None:
        self._pool = pool
        self._parts = parts
        self._last_write = last_write
        self._session = pool.writer()

    def __enter__(self) -> SqliteWriter:
        connection = self._session.__enter__()
        try:
            self._writer = SqliteWriter(self._last_write.known(connection, self._pool.turn), self._parts)
        except BaseException as error:
            self._session.__exit__(type(error), error, error.__traceback__)
            raise
        return self._writer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._writer.finish()
            except BaseException as failed:
                self._session.__exit__(type(failed), failed, failed.__traceback__)
                raise
        self._session.__exit__(kind, error, None)
        if error is None:
            self._last_write.keep(self._writer.known)
