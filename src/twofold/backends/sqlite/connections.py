"""Who may use which connection, when, and for how long."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Final, TypeVar

from twofold.backends.sqlite import forks, pragmas
from twofold.backends.sqlite.connecting import SqlFunction, connect
from twofold.backends.sqlite.driver import Connection, Driver
from twofold.backends.sqlite.faults import InterruptedStoreError, driver_errors, translate, translating
from twofold.backends.sqlite.registry import Claim
from twofold.cancellation import current_cancellation
from twofold.config import StoreSettings
from twofold.errors import ForkedStoreError, ReadOnlyStoreError, StoreBusyError, StoreClosedError, StoreError

__all__ = ["MEMORY", "Pool"]

MEMORY = ":memory:"
"""The name of a database that lives in memory."""

Session = TypeVar("Session")

_READING: Final = "reading the store"


class Pool:
    """The connections of one store.

    Readers run side by side, each in a snapshot of its own; there is one writer at a time. A session belongs to the
    thread that opened it. ``:memory:`` is a single connection that everybody takes turns with.

    Args:
        driver: the SQLite library.
        database: a ``file:`` URI, or ``":memory:"``.
        settings: how many readers, how long to wait, how to write.
        functions: functions that SQL may call.
        extensions: the paths of extensions that each connection loads.
        read_only: whether :meth:`writer` is refused.
        main: a connection that is open already, for the writer to use.
        claim: the right to the file, which is given back at the end.
    """

    def __init__(
        self,
        driver: Driver,
        database: str,
        settings: StoreSettings,
        *,
        functions: Sequence[SqlFunction] = (),
        extensions: Sequence[str] = (),
        read_only: bool = False,
        main: Connection | None = None,
        claim: Claim | None = None,
    ) -> None:
        self._driver = driver
        self._database = database
        self._settings = settings
        self._functions = tuple(functions)
        self._extensions = tuple(extensions)
        self._read_only = read_only
        self._shared = database == MEMORY
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)  # as a context it is a detour to its lock
        self._waiting = 0  # threads, for the condition
        self._idle: list[Connection] = []
        self._reading: dict[int, int] = {}  # thread → sessions
        self._writing: int | None = None  # thread
        self._turn = 0
        self._main = main  # the writer's; of :memory:, the only one
        self._main_writes = True
        self._using: set[Connection] = set()  # what readers hold
        self._claim = claim
        self._closed = False
        forks.watch(self)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        return self._read_only

    @property
    def turn(self) -> int:
        """How many sessions the writer's connection has had, a present one included."""
        return self._turn

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def reader(self) -> AbstractContextManager[Connection]:
        """One snapshot, taken at entry and given up at exit. It cannot write.

        Fetch all rows of a statement within the block: a cursor that is kept open keeps the snapshot open. Under a
        :class:`twofold.cancellation.Cancellation`, cancelling interrupts the running statement.

        Raises:
            StoreClosedError: the pool is closed.
            ForkedStoreError: this is a child of the process that opened it.
            StoreBusyError: no connection became free within ``busy_timeout``.
            StoreError: the file was deleted, moved or replaced meanwhile.
        """
        return self.session(_with_snapshot)

    def session(
        self, opened: Callable[[Connection], Session], ended: Callable[[], None] | None = None
    ) -> AbstractContextManager[Session]:
        """The same, as what ``opened`` makes of the connection.

        Args:
            opened: is called at entry, and must read: a deferred transaction has no snapshot before its first read.
            ended: is called at exit, unless the block raises, when the connection is given back.
        """
        return _Reading(self, opened, ended)

    def writer(self, *, wait: bool = True) -> AbstractContextManager[Connection]:
        """One transaction, begun with the write lock held. It commits at the end of the block, or rolls back if that
        raises; the block's own error is never masked.

        Args:
            wait: whether to wait for the lock. Default: up to ``busy_timeout``.

        Raises:
            ReadOnlyStoreError: the store is open for reading only.
            StoreBusyError: the lock was held elsewhere for longer than ``busy_timeout``.
            StorageFullError: the disk is full; nothing was written.
            StoreError: the file was deleted, moved or replaced meanwhile.
            StoreClosedError: the pool is closed.
            ForkedStoreError: this is a child of the process that opened it.
        """
        return _Writing(self, wait=wait, transaction=True)

    def exclusive(self, *, wait: bool = True) -> AbstractContextManager[Connection]:
        """The writer's connection outside of a transaction, for what cannot run in one (VACUUM, a checkpoint).

        A transaction that is open at the end of the block is rolled back. Raises what :meth:`writer` raises.
        """
        return _Writing(self, wait=wait, transaction=False)

    def close(self) -> None:
        """Wait for the sessions in flight, then close all connections. Calling it again does nothing.

        In a child of the process that opened the pool nothing is touched: the connections are the parent's.

        Raises:
            StoreError: called by a thread inside a session of its own.
        """
        if self._is_forked():
            return
        thread = threading.get_ident()
        with self._lock:
            if self._reading.get(thread) or self._writing == thread:
                raise StoreError("the store cannot be closed inside one of its own sessions")
            self._closed = True
            self._condition.notify_all()
            self._wait_for(self._is_idle, None)
            self._close_idle()
        if self._claim is not None:
            self._claim.release()

    def before_fork(self) -> None:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._condition.acquire()
        if not self._shared and self._is_idle():
            self._close_idle()

    def after_fork_in_parent(self) -> None:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._condition.release()

    def after_fork_in_child(self) -> list[Connection]:
        """See :class:`twofold.backends.sqlite.forks.Forkable`."""
        self._condition.release()
        if self._claim is not None and self._is_idle():
            self._claim.release()
        return [*self._idle, *self._using, *([] if self._main is None else [self._main])]

    def _is_idle(self) -> bool:
        return self._writing is None and not sum(self._reading.values())

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
        main, self._main = self._main, None
        if main is not None:
            # Best effort: another process may still be reading the log.
            with suppress(*driver_errors()):
                pragmas.busy_timeout(main, 0)
                pragmas.checkpoint(main)
            main.close()

    def _let_write(self, main: Connection, *, may: bool) -> None:
        """Let the only connection write, or only read; whenever that changes SQLite compiles every statement anew."""
        if self._main_writes is not may:
            pragmas.query_only(main, on=not may)
            self._main_writes = may

    def _enter_reader(self, thread: int) -> Connection | None:
        """Take a place among the readers; a connection that is idle, or None: one is to be made."""
        self._refuse_fork()
        self._refuse_moved()
        if self._shared:
            return self._enter_writer(thread, wait=True)
        with self._lock:
            if self._closed or not self._has_room():
                if self._reading.get(thread):
                    raise StoreError(
                        "every reading connection is in use, one of them by this thread, which would wait for itself: "
                        "end the outer session first, or raise max_readers"
                    )
                self._wait(self._has_room, f"all {self._settings.max_readers} reading connections were in use")
            self._reading[thread] = self._reading.get(thread, 0) + 1
            if not self._idle:
                return None
            connection = self._idle.pop()
            self._using.add(connection)
            return connection

    def _new_reader(self) -> Connection:
        connection = self._connect()
        pragmas.query_only(connection, on=True)
        with self._lock:
            self._using.add(connection)
        return connection

    def _leave_reader(self, thread: int, connection: Connection | None) -> None:
        if self._is_forked():
            return
        if self._shared:
            self._leave_writer()
            return
        usable = connection is not None and _end_transaction(connection)
        with self._lock:
            if connection is not None:
                self._using.discard(connection)
                if usable:
                    self._idle.append(connection)
                else:
                    connection.close()
            self._reading[thread] -= 1
            if not self._reading[thread]:
                del self._reading[thread]
            if self._waiting:
                self._condition.notify_all()

    def _has_room(self) -> bool:
        return sum(self._reading.values()) < self._settings.max_readers

    def _enter_writer(self, thread: int, *, wait: bool) -> Connection:
        """Take the one place among the writers; its connection."""
        with self._lock:
            if self._writing == thread:
                raise StoreError(
                    "this thread is inside a session that this one would wait for: end that first. "
                    "There is one writer at a time, and a store in memory has one session at a time"
                )
            if self._closed or self._writing is not None:
                self._wait(lambda: self._writing is None, "another thread of this process was writing", wait=wait)
            self._writing = thread
            self._turn += 1
        if self._main is None:
            try:
                self._main = self._connect()
            except BaseException:
                self._leave_writer()
                raise
        return self._main

    def _leave_writer(self) -> None:
        usable = self._main is not None and _end_transaction(self._main)
        with self._lock:
            if self._main is not None and not usable and not self._shared:  # in memory it is the data itself
                self._main.close()
                self._main = None
            self._writing = None
            if self._waiting:
                self._condition.notify_all()

    def _wait(self, condition: Callable[[], bool], problem: str, *, wait: bool = True) -> None:
        timeout = self._settings.busy_timeout if wait else 0.0
        if not self._wait_for(lambda: self._closed or condition(), timeout):
            raise StoreBusyError(f"{problem} for {timeout:g} seconds (busy_timeout); try again, or raise it")
        if self._closed:
            raise StoreClosedError("the store is closed; open it again")

    def _wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        self._waiting += 1
        try:
            return self._condition.wait_for(condition, timeout)
        finally:
            self._waiting -= 1

    def _is_forked(self) -> bool:
        return os.getpid() != self._pid

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedStoreError("the store was opened by the parent process; open it anew in this one")

    def _refuse_moved(self) -> None:
        """What is written to a file that lies there no longer is lost without a word."""
        if self._claim is not None and not self._claim.is_in_place() and not self._closed:
            raise StoreError(
                f"{self._claim.path} was deleted, moved or replaced while it was open; close the store and open it anew"
            )

    def _connect(self) -> Connection:
        return connect(self._driver, self._database, self._settings, self._functions, self._extensions)


class _Reading(AbstractContextManager[Session]):
    """A reader's connection, taken at entry and given back at exit. Written out: every search goes through it."""

    __slots__ = ("_cancelling", "_connection", "_ended", "_opened", "_pool", "_thread")

    def __init__(self, pool: Pool, opened: Callable[[Connection], Session], ended: Callable[[], None] | None) -> None:
        self._pool = pool
        self._opened = opened
        self._ended = ended
        self._thread = threading.get_ident()
        self._connection: Connection | None = None
        self._cancelling: AbstractContextManager[None] | None = None

    def __enter__(self) -> Session:
        pool = self._pool
        connection = self._connection = pool._enter_reader(self._thread)  # noqa: SLF001 - a part of it
        try:
            if connection is None:
                connection = self._connection = pool._new_reader()  # noqa: SLF001
            elif pool._shared:  # noqa: SLF001
                pool._let_write(connection, may=False)  # noqa: SLF001
            cancellation = current_cancellation.get()
            if cancellation is not None:
                self._cancelling = cancellation.calling(connection.interrupt)
                self._cancelling.__enter__()
                if cancellation.cancelled:
                    raise InterruptedStoreError(f"{_READING}: it was called off")
            connection.execute("BEGIN")
            return self._opened(connection)
        except BaseException as error:
            self.__exit__(None, error, None)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._cancelling is not None:
            self._cancelling.__exit__(None, None, None)
        self._pool._leave_reader(self._thread, self._connection)  # noqa: SLF001
        if error is not None:
            translate(error, _READING)
        elif self._ended is not None:
            self._ended()


def _with_snapshot(connection: Connection) -> Connection:
    """The connection, when its transaction has a snapshot: of all that reads, this reads least."""
    connection.execute("PRAGMA data_version").fetchone()
    return connection


class _Writing:
    """The writer's connection, taken at entry and given back at exit, with or without a transaction in between.

    A class, because it is entered for each record that is added: generators within each other take longer.
    """

    __slots__ = ("_connection", "_pool", "_transaction", "_wait")

    def __init__(self, pool: Pool, *, wait: bool, transaction: bool) -> None:
        self._pool = pool
        self._wait = wait
        self._transaction = transaction

    def __enter__(self) -> Connection:
        pool = self._pool
        pool._refuse_fork()  # noqa: SLF001 - a part of it, as all that follows
        pool._refuse_moved()  # noqa: SLF001
        if pool.read_only:
            raise ReadOnlyStoreError("the store is open for reading only")
        with _WRITING:
            self._connection = pool._enter_writer(threading.get_ident(), wait=self._wait)  # noqa: SLF001
            try:
                if pool._shared:  # noqa: SLF001
                    pool._let_write(self._connection, may=True)  # noqa: SLF001
                if not self._wait:
                    pragmas.busy_timeout(self._connection, 0)
                if self._transaction:
                    self._connection.execute("BEGIN IMMEDIATE")
            except BaseException:
                self._leave()
                raise
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        pool = self._pool
        if pool._is_forked():  # noqa: SLF001 - the block forked: connection and transaction are the parent's
            if error is None and self._transaction:
                pool._refuse_fork()  # noqa: SLF001
        else:
            try:
                if error is None and self._transaction:
                    with _WRITING:
                        self._connection.execute("COMMIT")
            finally:
                self._leave()
        _WRITING.__exit__(kind, error, trace)

    def _leave(self) -> None:
        try:
            if not self._wait:
                pragmas.busy_timeout(self._connection, self._pool._settings.busy_timeout)  # noqa: SLF001
        finally:
            self._pool._leave_writer()  # noqa: SLF001


_WRITING: Final = translating("writing to the store")


def _end_transaction(connection: Connection) -> bool:
    """Roll back what is open; whether that could be done. Never raises, so that nothing is masked."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except driver_errors():
        return False
    return True
