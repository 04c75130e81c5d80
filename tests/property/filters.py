"""Many random filters, once: ``python -m tests.property.filters [--cases 1000000] [--seed 0] [--indexes-every 50]``.

A case is one random filter, flat or nested, on a handful of random records. What its SQL says of each record, selected
and as a condition, must be what ``matches`` says in plain Python. Every so many cases the same filter goes through the
listing and both legs of a backend with each vector index there is, which must find exactly the records that fit. The
records and the filters are drawn without hypothesis, some thirty times as quickly, and otherwise than in
``test_filter_sql.py``. Run it from the repository's root; a difference is printed with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Final

import numpy as np
from tests.property.test_filter_sql import EPOCH, OPERATORS, answers, insert, paths_and_values

from twofold import StoreSettings
from twofold.backends.protocol import Backend, Visibility
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.filter_sql import FUNCTIONS
from twofold.backends.sqlite.schema import INITIAL
from twofold.filters import (
    All,
    And,
    Between,
    Contains,
    Eq,
    Exists,
    F,
    Filter,
    Ge,
    Gt,
    In,
    IsEmpty,
    Le,
    Like,
    Lt,
    Ne,
    Not,
    NotIn,
    Or,
    Prefix,
    matches,
)
from twofold.filters import (
    Any as AnyOf,
)
from twofold.filters.expression import Attribute
from twofold.filters.values import ATTRIBUTE_TYPES, ValueType
from twofold.testing.records import make_record, make_vectors
from twofold.types import Access, Owner, Record, Scope
from twofold.types.json import dump_json

_FILTERS: Final = 40
"""How many filters each handful of records is asked."""
_DIMENSION: Final = 4
_KEYS: Final = (
    "a", "b", "c", "", "a.b", "0", "$x", "@kind", '"', "\\", 'q"\\u0041', "\t", "\n\x01", "é", "😀", "[0]", "a'b", "a]",
)  # fmt: skip
_TEXTS: Final = (
    "", "a", "A", "ab", "aB", "b", "1", "1.0", "true", "null", "[]", '["a"]', "{}", "%", "_", "\\", "ß", "SS", "ss",
    "é", "e\u0301", "É", "İ", "ı", "K", "\ue000", "\uffff", "\ufffd", "😀", "a\nb", "\x1f", '"', "2020", "a%b", "a_b",
)  # fmt: skip
_WORDS: Final = ("a", "ab", "b", "A", "ß", "😀", " ", "!", "\x1e", "~", "a%")
_INTEGERS: Final = (0, 1, -1, 2, 3, 2**53, 2**53 + 1, 2**53 - 1, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, 10**17)
_FLOATS: Final = (0.0, -0.0, 1.0, 2.0, 0.1, 0.30000000000000004, 2.0**53, 2.0**63, -(2.0**63), 1e308, 5e-324, 1e17, 1.5)
_TIMES: Final = (
    EPOCH, EPOCH - timedelta(microseconds=1), EPOCH + timedelta(days=20_000), datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)  # fmt: skip
_NULLABLE: Final = ("project", "source", "superseded_by")
_MAYBE_TIMES: Final = ("event_at", "valid_from", "valid_to", "expires_at", "archived_at")


class Draw(Random):
    """Draws values, records and filters."""

    def one_in(self, count: int) -> bool:
        return self.randrange(count) == 0

    def text(self) -> str:
        if self.one_in(4):
            return "".join(self.choice("aAbß%_\\é1") for _ in range(self.randrange(5)))
        return self.choice(_TEXTS)

    def integer(self) -> int:
        return self.randint(-(2**63), 2**63 - 1) if self.one_in(6) else self.choice(_INTEGERS)

    def real(self) -> float:
        if self.one_in(4):
            return math.nextafter(self.random(), 2.0)
        return self.uniform(-1e6, 1e6) if self.one_in(6) else self.choice(_FLOATS)

    def scalar(self) -> Any:
        kind = self.randrange(6)
        if kind < 2:
            return self.text()
        return (None, self.one_in(2), self.integer(), self.real())[kind - 2]

    def json(self, depth: int = 0) -> Any:
        kind = self.randrange(5) if depth < 2 else 0
        if kind == 3:
            return [self.json(depth + 1) for _ in range(self.randrange(4))]
        if kind == 4:
            return {self.choice(_KEYS): self.json(depth + 1) for _ in range(self.randrange(3))}
        return self.scalar()

    def time(self) -> datetime:
        if self.one_in(3):
            return EPOCH + timedelta(microseconds=self.randint(-(10**15), 10**15))
        return self.choice(_TIMES)

    def namespace(self) -> tuple[str, ...]:
        return tuple(self.choice(_WORDS) for _ in range(self.randrange(4)))

    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.text() for _ in range(self.randrange(4))))

    def record(self, number: int) -> Record:
        scope = self.choice(list(Scope))
        word = self.choice(_WORDS)
        owner = {Scope.GLOBAL: Owner.everybody(), Scope.PERSONAL: Owner.user(word), Scope.ROOM: Owner.room(word)}[scope]
        attributes: dict[str, Any] = {
            "kind": self.text(), "namespace": self.namespace(), "tags": self.tags(),
            "metadata": {self.choice(_KEYS): self.json() for _ in range(self.randrange(5))},
            "importance": self.choice((0.0, 1.0, 0.5, self.random())),
            "strength": self.choice((1.0, math.ulp(0.0), 2.0**53, 2.0**63, self.random() + 0.1)),
            "access_count": self.choice((0, 1, 3, 2**63 - 1)), "revision": self.randint(1, 3),
            **{name: None if self.one_in(3) else self.text() for name in _NULLABLE},
            **{name: None if self.one_in(2) else self.time() for name in _MAYBE_TIMES},
            **{name: self.time() for name in ("created_at", "updated_at", "last_accessed")},
        }  # fmt: skip
        return make_record(f"{self.text()}{number}", "kettle", owner=owner, attributes=attributes)

    def near(self, value: Any) -> Any:
        """A value that equals this one, nearly equals it, only looks like it, or any other."""
        close: list[Any] = [value, value]
        if isinstance(value, bool):
            close += [int(value), str(value).lower(), not value]
        elif isinstance(value, int):
            close += [float(value), str(value), bool(value), value + 1 if value < 2**63 - 1 else value - 1]
        elif isinstance(value, float):
            close += [math.nextafter(value, 0), repr(value), -value]
            close += [int(value)] if value.is_integer() and abs(value) < 2**63 else []
        elif isinstance(value, str):
            close += [value[:1], value[1:], value.swapcase(), value + "a", [value]]
        elif isinstance(value, list):
            close += [value[:1], value[::-1], dump_json(value), [*value, None], *value]
        elif isinstance(value, dict):
            close += [dict(reversed(value.items())), dump_json(value), {**value, "a": 1}]
        return self.json() if self.one_in(4) else self.choice(close)

    def part_of(self, text: Any) -> str:
        """A part of a text, or a pattern that may fit it."""
        if not isinstance(text, str) or not text or self.one_in(5):
            return self.text()
        start, end = sorted((self.randint(0, len(text)), self.randint(0, len(text))))
        part = text[start:end]
        kind = self.randrange(4)
        pattern = "".join(self.choice([*text, "%", "_"]) for _ in range(self.randrange(6)))
        return (part, part.swapcase(), f"%{part}%", pattern)[kind]

    def filter(self, record: Record, depth: int = 0) -> Filter:
        """A condition, or up to three levels of them joined; mostly on what the record holds."""
        kind = self.randrange(6) if depth < 3 else 0
        if kind < 3:
            return self.condition(record)
        if kind == 3:
            return Not(self.filter(record, depth + 1))
        parts = [self.filter(record, depth + 1) for _ in range(self.randrange(4))]
        return And(*parts) if kind == 4 else Or(*parts)

    def condition(self, record: Record) -> Filter:
        """One condition; what kind of operand an operator takes is chosen without asking the code."""
        return self._on_metadata(record) if self.one_in(2) else self._on_attribute(record)

    def _on_metadata(self, record: Record) -> Filter:
        inside = paths_and_values(record.metadata)
        if inside and not self.one_in(5):
            path, value = self.choice(inside)
        else:
            path, value = tuple(self.choice(_KEYS) for _ in range(self.randint(1, 3))), self.json()

        def element() -> Any:
            if isinstance(value, list) and value and self.one_in(2):
                return self.choice(value)
            return self.part_of(value) if isinstance(value, str) and self.one_in(2) else self.near(value)

        return self._made(F(tuple(path)), value, OPERATORS, lambda: self.near(value), lambda: self.near(value), element)

    def _on_attribute(self, record: Record) -> Filter:
        name = self.choice(list(ATTRIBUTE_TYPES))
        value: Any = getattr(record, name)
        type_, nullable = ATTRIBUTE_TYPES[name]
        order_ones = [Lt, Le, Gt, Ge, Between]
        extra, draw = {
            ValueType.TEXT: (OPERATORS, self.text),
            ValueType.SCOPE: ([], lambda: self.choice(list(Scope))),
            ValueType.NAMESPACE: ([Contains, AnyOf, All, Prefix], self.namespace),
            ValueType.TAGS: ([Contains, AnyOf, All], self.tags),
            ValueType.NUMBER: (order_ones, lambda: self.choice((self.integer(), self.real()))),
            ValueType.TIME: (order_ones, self.time),
        }[type_]
        elements = {
            ValueType.NAMESPACE: lambda: self.choice(_WORDS),
            ValueType.TAGS: lambda: self.choice(value) if value and self.one_in(2) else self.text(),
        }

        def order() -> Any:
            return draw() if value is None or self.one_in(2) else value

        def equal() -> Any:
            return None if nullable and self.one_in(4) else order()

        element = elements.get(type_, lambda: self.part_of(value))
        return self._made(Attribute(name), value, [Eq, Ne, In, NotIn, Exists, IsEmpty, *extra], equal, order, element)

    def _made(self, reference: Any, value: Any, operators: Any, equal: Any, order: Any, element: Any) -> Filter:
        operator: Any = self.choice(operators)
        if operator in (Eq, Ne):
            return operator(reference, equal())  # type: ignore[no-any-return]
        if operator in (In, NotIn):
            return operator(reference, [equal() for _ in range(self.randrange(5))])  # type: ignore[no-any-return]
        if operator in (Lt, Le, Gt, Ge):
            return operator(reference, order())  # type: ignore[no-any-return]
        if operator is Between:
            return Between(reference, order(), order())
        if operator is Contains:
            return Contains(reference, element())
        if operator in (AnyOf, All):
            return operator(reference, [element() for _ in range(self.randrange(4))])  # type: ignore[no-any-return]
        if operator is Exists:
            return Exists(reference, self.one_in(2))
        if operator is IsEmpty:
            return IsEmpty(reference)
        if operator is Prefix and isinstance(value, tuple):
            return Prefix(reference, value[: self.randrange(4)] if self.one_in(2) else self.namespace())
        text = self.part_of(value)
        if operator is Like and (len(text) - len(text.rstrip("\\"))) % 2:
            text += "\\"  # a pattern that ends in half an escape is refused
        return operator(reference, text)  # type: ignore[no-any-return]


def available_indexes() -> dict[str, dict[str, Any]]:
    """The settings of each vector index that is installed, by name."""
    found: dict[str, dict[str, Any]] = {"exact": {"index": "exact"}}
    if all(map(importlib.util.find_spec, ("sqlite_vec", "pysqlite3"))):
        found["sqlite-vec"] = {"index": "sqlite-vec", "driver": "pysqlite3"}
    if importlib.util.find_spec("faiss"):
        found |= {name: {"index": name} for name in ("faiss-flat", "faiss-hnsw", "faiss-ivf")}
    return found


@contextmanager
def table() -> Iterator[sqlite3.Connection]:
    """The table of records, bare, in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for name, count, function in FUNCTIONS:
            connection.create_function(name, count, function, deterministic=True)
        for statement in INITIAL:
            if "records" in statement.split("(")[0]:
                connection.execute(statement)
        yield connection


def fill(backend: Backend, rows: list[Record]) -> dict[int, int]:
    """Put records with vectors into a backend in place of those that are there; by key the place among ``rows``."""
    with backend.write() as writer:
        writer.delete(writer.scan(Visibility(Access.everything(), EPOCH, None, include_archived=True), (), None, 0))
        writer.adopt("random", _DIMENSION)
        vectors = [np.cos(np.arange(_DIMENSION) + place) for place in range(len(rows))]
        pairs = zip(rows, vectors, strict=True)
        keys = writer.insert_many([(row, make_vectors(row, vector.tolist())) for row, vector in pairs])
    return {key: place for place, key in enumerate(keys)}


def found_by(backend: Backend, where: Filter, limit: int) -> dict[str, set[int]]:
    """The keys that each way to look finds."""
    visible = Visibility(Access.everything(), EPOCH, where, include_archived=True)
    with backend.read() as reader:
        nearest = reader.nearest(np.ones(_DIMENSION, dtype=np.float32), visible, limit)
        keyword = reader.keyword(backend.analyzer.query("kettle"), visible, limit)
        return {
            "listing": set(reader.scan(visible, (), None, 0)),
            "vector leg": {key for key, _ in nearest.candidates},
            "keyword leg": {key for key, _ in keyword},
        }


def compare(cases: int, seed: int, indexes_every: int) -> dict[str, int]:
    """Compare so many filters; how many of what were compared.

    Raises:
        AssertionError: the first difference.
    """
    done = {"filters": 0, "verdicts": 0, "nested": 0, "with an index": 0}
    with ExitStack() as stack:
        connection = stack.enter_context(table())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        backends = {
            name: stack.enter_context(
                closing(SqliteBackend.open(folder / f"{name}.db", settings=StoreSettings(**settings)))
            )
            for name, settings in available_indexes().items()
        }
        batch = seed
        while done["filters"] < cases:
            draw = Draw(batch)
            rows = [draw.record(number) for number in range(draw.randint(2, 8))]
            connection.execute("BEGIN")
            insert(connection, rows)
            filled: dict[str, dict[int, int]] = {}
            for _ in range(min(_FILTERS, cases - done["filters"])):
                where = draw.filter(draw.choice(rows))
                expected = [int(matches(where, row)) for row in rows]
                if answers(connection, where) != expected:
                    raise AssertionError(f"SQL differs: --seed {batch}, {where!r}, {rows!r}")
                done["filters"] += 1
                done["verdicts"] += len(rows)
                done["nested"] += isinstance(where, (And, Or, Not))
                if done["filters"] % 100_000 == 0:
                    print(f"{done['filters']:,} filters, the next seed is {batch + 1}", file=sys.stderr, flush=True)
                if indexes_every and done["filters"] % indexes_every == 0:
                    fitting = {place for place, fits in enumerate(expected) if fits}
                    for name, backend in backends.items():
                        places = filled.get(name) or filled.setdefault(name, fill(backend, rows))
                        for way, keys in found_by(backend, where, len(rows)).items():
                            if {places[key] for key in keys} != fitting:
                                raise AssertionError(f"{name}, {way}, differs: --seed {batch}, {where!r}, {rows!r}")
                        done["with an index"] += 1
            connection.execute("ROLLBACK")
            batch += 1
    return done


def main() -> None:
    """Compare, and say how much was."""
    parser = argparse.ArgumentParser(prog="python -m tests.property.filters", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first records; the next ones have the next seed")
    parser.add_argument("--indexes-every", type=int, default=50, help="0: compare no index")
    asked = parser.parse_args()
    started = perf_counter()
    try:
        done = compare(asked.cases, asked.seed, asked.indexes_every)
    except AssertionError as difference:
        sys.exit(str(difference))
    print(
        ", ".join(f"{count:,} {name}" for name, count in done.items()),
        f"in {perf_counter() - started:.0f} s: no difference",
    )


if __name__ == "__main__":
    main()
