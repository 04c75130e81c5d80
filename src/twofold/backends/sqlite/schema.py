"""The tables of a twofold file. Changed only by :mod:`twofold.backends.sqlite.migrations`.

``records`` is the truth; ``fts`` and the in-memory vector index are derived from it and from ``vectors``, and can
be made anew at will. Times are whole microseconds since 1970 in UTC. An owner is ``(scope, owner)``.

A namespace is stored as its words, each followed by U+001F, so that a whole-segment prefix is a range of the index
(``('users', 'u1')`` is ``users␟u1␟``; everything below it lies from there to ``users␟u1`` + U+0020, excluded).
"""

from __future__ import annotations

from typing import Final

from twofold.types import Scope

__all__ = [
    "APPLICATION_ID",
    "CLAIMS",
    "EQUAL_TEXT",
    "INITIAL",
    "LEAN_ADDS",
    "LINKS",
    "SCOPE_CODES",
    "fts_columns",
    "fts_ddl",
]

APPLICATION_ID: Final = 0x32464C44
"""Marks a file as twofold's in its SQLite header: the bytes ``2FLD``."""

SCOPE_CODES: Final = {Scope.GLOBAL: 0, Scope.PERSONAL: 1, Scope.ROOM: 2}
"""How scopes are stored, in the order of their names, so that SQL and Python put equal scores in the same order; a
global record's owner is ``''``."""

INITIAL: Final = (
    # name → value: fields (JSON list), language, stop_words (JSON list or null), analyzer (the version that fts was
    # made with, '' = fts is not to be used), tenant, fingerprint, dimension, tombstones_pruned (deletes of this
    # generation and before may have left no tombstone), strengthened (how many transactions let the strength of
    # records grow, which is no write of theirs), vec0 (JSON list: the generation, fingerprint and dimension that
    # the table vec belongs to), sidecar:<index> (JSON list: generation, bytes and BLAKE2b of an index saved beside the
    # file). A missing row is an unset value.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # One row: the number of the last write; touches do not count. A view since LEAN_ADDS.
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL)",
    "INSERT INTO state VALUES (1, 0)",
    """
    CREATE TABLE records (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        scope INTEGER NOT NULL,
        owner TEXT NOT NULL,
        namespace TEXT NOT NULL,
        kind TEXT NOT NULL,
        project TEXT,
        source TEXT,
        fields NOT NULL,              -- JSON object: TEXT, or BLOB (UTF-8, surrogatepass) for lone surrogates
        parts INTEGER NOT NULL,       -- how many pieces of its text can be embedded; 0: only given vectors
        tags TEXT NOT NULL,           -- JSON list
        metadata TEXT NOT NULL,       -- JSON object
        payload TEXT,                 -- JSON
        importance REAL NOT NULL,
        strength REAL NOT NULL,
        access_count INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        last_accessed INTEGER NOT NULL,
        event_at INTEGER,
        valid_from INTEGER,
        valid_to INTEGER,
        expires_at INTEGER,
        archived_at INTEGER,
        superseded_by TEXT,           -- an id under the same owner and namespace
        content_hash TEXT NOT NULL,
        revision INTEGER NOT NULL,
        generation INTEGER NOT NULL,  -- of the write that last changed the row, its tokens or its vectors
        UNIQUE (id, namespace, scope, owner)
    )
    """,
    "CREATE INDEX records_by_generation ON records (generation)",
    "CREATE INDEX records_by_namespace ON records (namespace, scope, owner)",  # partial since LEAN_ADDS
    "CREATE INDEX records_by_source ON records (source) WHERE source IS NOT NULL",
    "CREATE TABLE spaces (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, field TEXT NOT NULL,"
    " dimension INTEGER NOT NULL, UNIQUE (fingerprint, field))",
    """
    CREATE TABLE vectors (
        id INTEGER PRIMARY KEY,
        space INTEGER NOT NULL REFERENCES spaces (id),
        key INTEGER NOT NULL,
        part INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        vector BLOB NOT NULL,         -- little-endian float32, as given (not normalised)
        UNIQUE (key, space, part)
    )
    """,
    # Records that have text but no vector of the file's fingerprint. A reason: the embedder refused this one.
    "CREATE TABLE pending (key INTEGER PRIMARY KEY, reason TEXT, attempts INTEGER NOT NULL DEFAULT 0)",
    # What was deleted, for indexes that are behind.
    "CREATE TABLE tombstones (generation INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (generation, key))"
    " WITHOUT ROWID",
    # A record manager's entries.
    "CREATE TABLE marks (scope INTEGER NOT NULL, owner TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL,"
    " grp TEXT, time REAL NOT NULL, PRIMARY KEY (scope, owner, namespace, key)) WITHOUT ROWID",
)
"""The first schema, without the keyword index: that one needs FTS5, which a Python may lack."""

EQUAL_TEXT: Final = "CREATE INDEX IF NOT EXISTS records_by_content ON records (content_hash)"
"""What finds records of equal text. Made when a writer first asks for those: each add would write one or two more pages
of it, at random, and most stores never ask.
"""

LINKS: Final = (
    # A rank: what equal weights are ordered by, see twofold.backends.sqlite.links.
    """
    CREATE TABLE links (
        source INTEGER NOT NULL,
        target INTEGER NOT NULL,
        kind TEXT NOT NULL,
        weight REAL NOT NULL,
        created_at INTEGER NOT NULL,
        source_rank BLOB NOT NULL,
        target_rank BLOB NOT NULL,
        PRIMARY KEY (source, target, kind),
        CHECK (source <> target)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX links_by_source ON links (source, weight DESC, target_rank, kind)",
    "CREATE INDEX links_by_target ON links (target, weight DESC, source_rank, kind)",
)
"""The second migration: links, from either end, the strongest first."""

CLAIMS: Final = (
    # Until when somebody is making this record's vectors; a claim lapses by itself.
    "ALTER TABLE pending ADD COLUMN claimed_until INTEGER",
)
"""What lets several processes share a back-fill."""

LEAN_ADDS: Final = (
    # One row, for what no record or tombstone tells: the number of the last write that left neither, and the highest
    # key that was ever deleted.
    "CREATE TABLE counters (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL,"
    " last_key INTEGER NOT NULL)",
    "INSERT INTO counters SELECT 1, generation, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'records'), 0)"
    " FROM state",
    "DROP TABLE state",
    # The number of the last write, touches not counted, and the highest key there ever was. Under the name of the table
    # that it replaces: an older release that has the file open meanwhile reads on, and is refused when it writes.
    """
    CREATE VIEW state AS SELECT
        max(
            counters.generation,
            coalesce((SELECT max(generation) FROM records), 0),
            coalesce((SELECT max(generation) FROM tombstones), 0)
        ) AS generation,
        max(counters.last_key, coalesce((SELECT max(key) FROM records), 0)) AS last_key
    FROM counters
    """,
    # Of the root, which is above all others, an index tells little, and many stores have nothing else. A statement
    # that is to use it says "namespace > ''" in so many words.
    "DROP INDEX records_by_namespace",
    "CREATE INDEX records_by_namespace ON records (namespace, scope, owner) WHERE namespace > ''",
)
"""What spares an add three of the eighteen pages that it wrote: its row tells what stood on them."""

_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def fts_columns(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the keyword index: one a field, then the tags."""
    return (*(f"f_{field}" for field in fields), "tags")


def fts_ddl(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The keyword index: our tokens, joined by spaces, so FTS5's own tokenizer must cut at spaces alone."""
    columns = ", ".join(f'"{column}"' for column in fts_columns(fields))
    token_characters = _PUNCTUATION.replace("'", "''").replace('"', '""')
    return (
        f"CREATE VIRTUAL TABLE fts USING fts5({columns}, content='',"
        f" tokenize=\"ascii tokenchars '{token_characters}'\")",
        "CREATE VIRTUAL TABLE fts_terms USING fts5vocab(fts, 'row')",
        "CREATE VIRTUAL TABLE fts_postings USING fts5vocab(fts, 'instance')",
    )
