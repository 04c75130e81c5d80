"""How a file comes to have today's tables, whatever release wrote it.

Each migration runs in one transaction together with its record in ``twofold_migrations``, so a file is always between
two migrations, never inside one: whoever is killed, the next to open goes on from there. A migration that was released
is never changed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import Final, NamedTuple

from twofold.backends.sqlite import schema
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import DAMAGED_ADVICE
from twofold.backends.sqlite.rows import store_time
from twofold.errors import CorruptStoreError, NewerFormatError, NotAStoreError

__all__ = [
    "MIGRATIONS",
    "Creation",
    "Migration",
    "applied_migrations",
    "create_keyword_index",
    "migrate",
    "read_meta",
    "write_meta",
]


@dataclass(frozen=True, slots=True)
class Creation:
    """What a new file is made with."""

    fields: tuple[str, ...]
    """The names of a record's pieces of text."""
    language: str
    """The language of stemming and stop words."""
    stop_words: tuple[str, ...] | None
    """Words dropped from a query; None: the language's list."""
    tenant: str | None
    """Whom the file belongs to."""
    keyword_index: bool
    """Whether the keyword index can be made: it needs FTS5."""


class Migration(NamedTuple):
    """One step."""

    name: str
    """Never used twice; a number and what it does."""
    apply: Callable[[Connection, Creation], None]
    """Runs inside a transaction, which it leaves open."""


def _initial(connection: Connection, creation: Creation) -> None:
    for statement in schema.INITIAL:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    write_meta(connection, "fields", json.dumps(creation.fields))
    write_meta(connection, "language", creation.language)
    write_meta(connection, "stop_words", None if creation.stop_words is None else json.dumps(creation.stop_words))
    write_meta(connection, "tenant", creation.tenant)
    if creation.keyword_index:
        create_keyword_index(connection, creation.fields)
    else:
        write_meta(connection, "analyzer", "")


def _links(connection: Connection, _: Creation) -> None:
    for statement in schema.LINKS:
        connection.execute(statement)


def _claims(connection: Connection, _: Creation) -> None:
    for statement in schema.CLAIMS:
        connection.execute(statement)


def _lean_adds(connection: Connection, _: Creation) -> None:
    for statement in schema.LEAN_ADDS:
        connection.execute(statement)


MIGRATIONS: Final[tuple[Migration, ...]] = (
    Migration("0001_initial", _initial),
    Migration("0002_links", _links),
    Migration("0003_claims", _claims),
    Migration("0004_lean_adds", _lean_adds),
)
"""All steps there are, in the order they are taken."""


def create_keyword_index(connection: Connection, fields: tuple[str, ...]) -> None:
    """Make the empty keyword index; inside a transaction, on a driver that has FTS5."""
    for statement in schema.fts_ddl(fields):
        connection.execute(statement)


def applied_migrations(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[str, ...]:
    """The names of the migrations that the file has behind it; none if it is new. Changes nothing.

    Raises:
        NotAStoreError: it is another program's file.
        NewerFormatError: it has a migration that is not among ``migrations``.
    """
    with _one_moment(connection):
        return _applied(connection, migrations)


def _applied(connection: Connection, migrations: Sequence[Migration]) -> tuple[str, ...]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    if application == 0 and not tables:
        return ()
    if application != schema.APPLICATION_ID or "twofold_migrations" not in tables:
        raise NotAStoreError("the file is another program's database; give twofold a file of its own")
    rows = connection.execute("SELECT name FROM twofold_migrations ORDER BY rowid").fetchall()
    applied = tuple(name for (name,) in rows)
    unknown = sorted(set(applied) - {migration.name for migration in migrations})
    if unknown:
        raise NewerFormatError(
            f"the file was written by a newer release of twofold ({', '.join(unknown)}); upgrade with: "
            "pip install --upgrade twofold"
        )
    return applied


def _version() -> str:
    try:
        return metadata.version("twofold")
    except metadata.PackageNotFoundError:  # bundled into an application, without its metadata
        return "unknown"


@contextmanager
def _one_moment(connection: Connection) -> Iterator[None]:
    """See one state of the file, even if another process is making it; inside a transaction that is so anyway."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def migrate(
    connection: Connection,
    creation: Creation,
    *,
    now: Callable[[], datetime],
    migrations: Sequence[Migration] = MIGRATIONS,
) -> None:
    """Take every step that the file does not have behind it, each in a transaction of its own.

    Args:
        connection: writable, outside of a transaction.
        creation: what a new file is made with; ignored by one that exists.
        now: the clock.
        migrations: the steps.

    Raises:
        NotAStoreError: it is another program's file.
        NewerFormatError: it has a migration that is not among ``migrations``.
    """
    applied = applied_migrations(connection, migrations)  # without the lock: a busy writer must not delay opening
    for migration in migrations:
        if migration.name in applied:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again under the lock: another process may have been faster.
            if migration.name not in applied_migrations(connection, migrations):
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS twofold_migrations"
                    " (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL, writer_version TEXT NOT NULL)"
                )
                migration.apply(connection, creation)
                connection.execute(
                    "INSERT INTO twofold_migrations VALUES (?, ?, ?)",
                    (migration.name, store_time(now()), _version()),
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def read_meta(connection: Connection) -> dict[str, str]:
    """What the file says of itself: ``fields``, ``language``, ``tenant`` …; a name that is not set is left out.

    Raises:
        CorruptStoreError: what every file says is missing or unreadable.
    """
    meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    try:
        json.loads(meta["fields"]), json.loads(meta.get("stop_words", "null")), meta["language"]
    except (KeyError, ValueError) as error:
        raise CorruptStoreError(
            f"what the file says of itself cannot be read, so it is damaged: {DAMAGED_ADVICE}"
        ) from error
    return meta


def write_meta(connection: Connection, name: str, value: str | None) -> None:
    """Set one value, inside a transaction; None takes it away."""
    if value is None:
        connection.execute("DELETE FROM meta WHERE name = ?", (name,))
    else:
        connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
        )
