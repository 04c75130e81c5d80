"""A backup that is copied into a file while it is open: nobody sees by what was known of the writes that are gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from twofold import StoreSettings
from twofold.backends.sqlite import SqliteBackend
from twofold.testing.contract_rows import seen_by, stored
from twofold.testing.records import make_record
from twofold.types import Access, Owner


def seen(backend: SqliteBackend, user: str) -> list[str]:
    with backend.read() as reader:
        found = reader.keyword(backend.analyzer.query("kettle"), seen_by(Access(user=user)), 10)
        return sorted(record.id for record in reader.records([each.key for each in found]).values())


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_a_key_that_is_given_again_is_not_seen_by_whom_it_belonged_to(
    settings: Callable[..., StoreSettings], tmp_path: Path, *, looks: bool, times: int
) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with closing(SqliteBackend.open(path, settings=settings())) as backend:
        stored(backend, make_record("everybody's", "kettle"))
        backend.backup(copy)
        for name in ("u1", "u2", "u3")[: times + 1]:
            (key,) = stored(backend, make_record(f"of {name}", "kettle", owner=Owner.user(name)))
            assert key == 2
            for user in ("u1", "u2", "u3"):
                assert seen(backend, user) == (["everybody's", f"of {name}"] if user == name else ["everybody's"])
            connect = backend._file.driver.module.connect  # of two libraries each would undo the other's locks
            with closing(connect(copy)) as source, closing(connect(path)) as target:
                source.backup(target)
            if looks:
                assert seen(backend, name) == ["everybody's"]
        assert backend.check().ok
