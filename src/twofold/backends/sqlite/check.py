"""Is everything that is derived still what its rows say? Reads only, in bounded memory.

FTS5's own check of a contentless table cannot see tokens that no row accounts for, so every record is analysed again
and compared with what the index holds: by a 64-bit sum over (token, column, place), by the sizes that BM25 divides by,
and by the totals.
"""

# ruff: noqa: S608 - values are always bound; what is put into the text of SQL are names of this module's own
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.backends.protocol import CheckReport, Damage
from twofold.backends.sqlite.connections import Pool
from twofold.backends.sqlite.driver import Connection
from twofold.backends.sqlite.faults import driver_errors
from twofold.backends.sqlite.head import Head, read_head
from twofold.backends.sqlite.keyword import is_index_fault
from twofold.backends.sqlite.links import ORPHAN_LINKS
from twofold.backends.sqlite.next_space import next_space
from twofold.backends.sqlite.reader import Parts
from twofold.backends.sqlite.schema import fts_columns
from twofold.backends.sqlite.vec0 import read_state
from twofold.errors import StoreBusyError

__all__ = ["run_check"]

_BATCH: Final = 20_000
_MASK: Final = (1 << 64) - 1
_REINDEX: Final = "make the keyword index anew with reindex()"
_ANEW: Final = "delete() such a record and add() it again"
_DAMAGED: Final = "damaged_keyword_index"


def run_check(pool: Pool, parts: Parts) -> CheckReport:
    """Look at everything.

    Args:
        pool: the connections of the file.
        parts: what the file's sessions share.
    """
    damage: list[Damage] = []
    skipped: list[str] = []
    with pool.reader() as connection:
        damage += _file_damage(connection)
        head = read_head(connection)
        records: int = connection.execute("SELECT count(*) FROM records").fetchone()[0]
        damage += _keyword_damage(connection, parts, head, records, skipped)
        damage += _unless_corrupt(lambda: _vector_damage(connection, parts, head), _file_is_damaged)
        damage += _vec0_damage(connection, parts, head, skipped)
    if parts.has_fts5:
        damage += _fts5_own_check(pool, skipped)
    by_code = {found.code: found for found in reversed(damage)}  # the first word on each matter stands
    return CheckReport(records, tuple(found for found in damage if by_code.get(found.code) is found), tuple(skipped))


# -- the file -----------------------------------------------------------------------------------------------------


def _file_damage(connection: Connection) -> list[Damage]:
    with suppress(*driver_errors()):  # whatever is wrong with it is found below
        # Newer releases of SQLite (3.51 at least) ask FTS5 too, which then looks at segments that it remembers from an
        # earlier snapshot of this connection and finds them gone, unless a query made it look anew.
        connection.execute("SELECT rowid FROM fts WHERE fts MATCH '\"x\"' LIMIT 1").fetchall()
    problems = [text for (text,) in connection.execute("PRAGMA quick_check(100)") if text != "ok"]
    index = [text for text in problems if "fts5" in text.lower()]
    rest = [text for text in problems if text not in index]
    damage = [_file_is_damaged(rest[0])] if rest else []
    return [*damage, _index_damage(index[0])] if index else damage


def _file_is_damaged(problem: object) -> Damage:
    message = f"SQLite finds the file damaged ({problem}); restore a backup, or export what can still be read"
    return Damage("corrupt_file", 1, message)


def _index_damage(problem: object) -> Damage:
    return Damage(_DAMAGED, 1, f"FTS5 finds the keyword index damaged ({problem}); {_REINDEX}")


def _fts5_own_check(pool: Pool, skipped: list[str]) -> list[Damage]:
    if pool.read_only:
        skipped.append("FTS5's own integrity check: it counts as a write, and the store is open for reading only")
        return []
    try:
        with pool.writer() as connection:
            return _unless_corrupt(lambda: _ask_fts5(connection), _index_damage)
    except StoreBusyError:
        skipped.append("FTS5's own integrity check: another process holds the write lock")
    return []


def _ask_fts5(connection: Connection) -> list[Damage]:
    connection.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")
    return []


def _unless_corrupt(look: Callable[[], list[Damage]], damaged: Callable[[object], Damage]) -> list[Damage]:
    """What ``look`` finds; if it cannot even be read, that."""
    try:
        return look()
    except driver_errors() as error:
        if is_index_fault(error):
            return [damaged(error)]
        raise


# -- the keyword index --------------------------------------------------------------------------------------------


def _keyword_damage(connection: Connection, parts: Parts, head: Head, records: int, skipped: list[str]) -> list[Damage]:
    version = parts.keyword.analyzer.version
    if not parts.has_fts5:
        skipped.append("the keyword index: this SQLite library has no FTS5")
        return []
    if head.analyzer != version:
        made_by = f"by {head.analyzer!r}" if head.analyzer else "without FTS5"
        message = f"the keyword index was last written {made_by}, not by {version!r}; {_REINDEX}"
        return [Damage("stale_analyzer", records, message)]
    if not parts.keyword.exists(connection):
        return [_index_damage("one of its tables is missing")]
    return _unless_corrupt(lambda: _compare_tokens(connection, parts), _index_damage)


def _compare_tokens(connection: Connection, parts: Parts) -> list[Damage]:
    keys = np.fromiter((key for (key,) in connection.execute("SELECT key FROM records ORDER BY key")), dtype=np.int64)
    orphans: set[int] = set()
    sums = _posting_sums(connection, keys, orphans)
    columns = fts_columns(parts.fields)
    sizes = _Sizes(connection)
    totals = np.zeros(len(columns) + 1, dtype=np.int64)
    stale = missing = 0
    for place, (key, tokens) in enumerate(parts.keyword.stored_tokens(connection)):
        words = [column.split() for column in tokens]
        lengths = [len(column) for column in words]
        totals[0] += 1
        totals[1:] += lengths
        size = sizes.of(key, orphans)
        if size is None:
            missing += 1
        elif size != lengths or int(sums[place]) != _token_sum(columns, words):
            stale += 1
    orphans.update(sizes.rest())
    damage = []
    if stale:
        message = f"the index holds other tokens than these records' text; {_REINDEX}"
        damage.append(Damage("stale_tokens", stale, message))
    if missing:
        damage.append(Damage("missing_tokens", missing, f"these records are not in the keyword index; {_REINDEX}"))
    if orphans:
        message = f"the keyword index holds tokens of records that do not exist; {_REINDEX}"
        damage.append(Damage("orphan_tokens", len(orphans), message))
    # Any of the above makes the totals wrong too.
    if not damage and _totals(connection, len(columns) + 1) != totals.tolist():
        damage.append(Damage("wrong_totals", 1, f"the totals that BM25 divides by are wrong; {_REINDEX}"))
    return damage


def _posting_sums(connection: Connection, keys: npt.NDArray[np.int64], orphans: set[int]) -> npt.NDArray[np.uint64]:
    """For each key the sum of its postings' hashes; keys that no record has go to ``orphans``."""
    sums = np.zeros(len(keys), dtype=np.uint64)
    rows = connection.execute("SELECT doc, term, col, offset FROM fts_postings")
    while batch := rows.fetchmany(_BATCH):
        docs = np.fromiter((row[0] for row in batch), dtype=np.int64, count=len(batch))
        hashes = np.fromiter((_hash(*row[1:]) & _MASK for row in batch), dtype=np.uint64, count=len(batch))
        places = np.searchsorted(keys, docs)
        known = places < len(keys)
        known[known] = keys[places[known]] == docs[known]
        np.add.at(sums, places[known], hashes[known])
        orphans.update(docs[~known].tolist())
    return sums


def _hash(token: str, column: str, place: int) -> int:
    """64 bits of SipHash. The hash of a tuple will not do: it is nearly linear in a small number, so that the sums of
    two tokens that changed places are often equal.
    """
    return hash(f"{token} {column} {place}")


def _token_sum(columns: Sequence[str], words: Sequence[Sequence[str]]) -> int:
    return (
        sum(
            _hash(word, column, place)
            for column, column_words in zip(columns, words, strict=True)
            for place, word in enumerate(column_words)
        )
        & _MASK
    )


class _Sizes:
    """FTS5's sizes of the records, read along with the rows."""

    def __init__(self, connection: Connection) -> None:
        self._rows: Iterator[tuple[int, bytes]] = connection.execute("SELECT id, sz FROM fts_docsize ORDER BY id")
        self._next = next(self._rows, None)

    def of(self, key: int, orphans: set[int]) -> list[int] | None:
        """The tokens a column of ``key``, which must ascend from call to call; None if the index lacks it."""
        while self._next is not None and self._next[0] < key:
            orphans.add(self._next[0])
            self._next = next(self._rows, None)
        if self._next is None or self._next[0] != key:
            return None
        size = _varints(self._next[1])
        self._next = next(self._rows, None)
        return size

    def rest(self) -> Iterator[int]:
        """The keys behind the last one asked for."""
        while self._next is not None:
            yield self._next[0]
            self._next = next(self._rows, None)


def _totals(connection: Connection, count: int) -> list[int]:
    """FTS5's "averages" record: how many rows, and how many tokens in each column."""
    row = connection.execute("SELECT block FROM fts_data WHERE id = 1").fetchone()
    found = _varints(row[0]) if row is not None else []
    return found + [0] * (count - len(found))


def _varints(data: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, the highest first; a ninth byte counts whole."""
    values: list[int] = []
    value = length = 0
    for byte in data:
        length += 1
        if length == 9:
            value = value << 8 | byte
        else:
            value = value << 7 | byte & 0x7F
            if byte & 0x80:
                continue
        values.append(value)
        value = length = 0
    return values


# -- vectors ------------------------------------------------------------------------------------------------------


class _Count(NamedTuple):
    code: str
    sql: str
    message: str


_EMBEDDED: Final = (
    "EXISTS (SELECT 1 FROM vectors v JOIN spaces s ON s.id = v.space"
    " WHERE v.key = r.key AND s.fingerprint = :fingerprint)"
)
_COUNTS: Final = (
    _Count(
        "orphan_vector",
        "SELECT count(*) FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.key = v.key)",
        "vectors of records that do not exist; they are never shown",
    ),
    _Count("orphan_link", ORPHAN_LINKS, "links from or to records that do not exist; they are never followed"),
    _Count(
        "stale_vector",
        "SELECT count(*) FROM vectors v JOIN records r ON r.key = v.key WHERE v.content_hash <> r.content_hash",
        f"vectors of an earlier text of their record; {_ANEW}",
    ),
    _Count(
        "missing_vector",
        "SELECT count(*) FROM records r WHERE r.parts > 0 AND :fingerprint IS NOT NULL"
        f" AND NOT {_EMBEDDED} AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.key = r.key)",
        "records that have text, but neither a vector nor a mark that they wait for one; add() them again",
    ),
    _Count(
        "needless_pending",
        "SELECT count(*) FROM pending p LEFT JOIN records r ON r.key = p.key"
        f" WHERE r.key IS NULL OR r.parts = 0 OR :fingerprint IS NULL OR {_EMBEDDED}",
        "marks that a vector is awaited, of records that do not exist, have no text or have their vector. They do no"
        " harm; embed_pending() clears those of records that have text",
    ),
    _Count(
        "foreign_vector",
        "SELECT count(*) FROM vectors v LEFT JOIN spaces s ON s.id = v.space"
        " WHERE s.id IS NULL OR NOT (s.fingerprint IS :fingerprint AND s.dimension IS :dimension"
        " OR s.fingerprint IS :next_fingerprint AND s.dimension IS :next_dimension)"
        " OR s.field NOT IN (SELECT value FROM json_each(:fields))",
        "vectors of another embedder or of a field that the store does not have; they are never compared. Those that a"
        " move to another embedder left behind are removed by reembed() with the embedder in use",
    ),
)


def _vector_damage(connection: Connection, parts: Parts, head: Head) -> list[Damage]:
    coming = next_space(connection)
    bound = {
        "fingerprint": head.fingerprint,
        "dimension": head.dimension,
        "next_fingerprint": None if coming is None else coming.fingerprint,
        "next_dimension": None if coming is None else coming.dimension,
        "fields": json.dumps(parts.fields),
    }
    damage = []
    for code, sql, message in _COUNTS:
        (count,) = connection.execute(sql, bound).fetchone()
        if count:
            damage.append(Damage(code, count, message))
    unusable = _unusable_vectors(connection)
    if unusable:
        message = f"vectors of the wrong length, all zero or not finite; they are passed over; {_ANEW}"
        damage.append(Damage("unusable_vector", unusable, message))
    return damage


def _vec0_damage(connection: Connection, parts: Parts, head: Head, skipped: list[str]) -> list[Damage]:
    if read_state(connection) is None:
        return []
    vec0 = parts.vectors.vec0
    if vec0 is None:
        skipped.append("the vec0 table: the store is not open with index='sqlite-vec'")
        return []
    if not vec0.is_current(connection, head):
        skipped.append("the vec0 table: it is behind the rows, and not used until the next write brings it up")
        return []
    try:
        differences = vec0.differences(connection, head)
    except driver_errors() as error:
        return [Damage("damaged_vec0", 1, f"the vec0 table cannot be read ({error}); make it anew with reindex()")]
    if not differences:
        return []
    message = "the vec0 table holds other vectors than the rows; make it anew with reindex()"
    return [Damage("stale_vec0", differences, message)]


def _unusable_vectors(connection: Connection) -> int:
    ill_formed = "typeof(v.vector) <> 'blob' OR length(v.vector) <> 4 * s.dimension"
    source = "FROM vectors v JOIN spaces s ON s.id = v.space WHERE"
    (unusable,) = connection.execute(f"SELECT count(*) {source} {ill_formed}").fetchone()
    for (dimension,) in connection.execute("SELECT DISTINCT dimension FROM spaces").fetchall():
        rows = connection.execute(f"SELECT v.vector {source} NOT ({ill_formed}) AND s.dimension = ?", (dimension,))
        while batch := rows.fetchmany(_BATCH // 10):
            joined = b"".join([blob for (blob,) in batch])
            vectors = np.frombuffer(joined, dtype="<f4").reshape(len(batch), dimension)
            usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
            unusable += len(batch) - int(np.count_nonzero(usable))
    return int(unusable)
