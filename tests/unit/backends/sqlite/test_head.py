"""What a session knows of the file: read again when, and only when, somebody else has written."""

from __future__ import annotations

import pytest

from twofold.backends.sqlite.connections import MEMORY
from twofold.backends.sqlite.head import head_of_reader, read_head


@pytest.fixture
def pool(opened, tmp_path):
    return opened(tmp_path / "a.db", max_readers=1).pool


def test_a_head_is_read_once_while_nobody_writes(pool):
    with pool.session(head_of_reader) as first:
        pass
    with pool.session(head_of_reader) as second:
        assert second is first
    with pool.reader() as connection:
        assert read_head(connection) == first


@pytest.mark.parametrize(
    "write",
    [
        "UPDATE counters SET generation = (SELECT generation + 1 FROM state)",
        "INSERT INTO meta VALUES ('strengthened', '1')",
        "INSERT INTO pending (key) VALUES (1)",
    ],
)
def test_it_is_read_again_when_another_connection_has_written(pool, write):
    with pool.session(head_of_reader) as before:
        with pool.writer() as connection:
            connection.execute(write)
        with pool.writer() as connection:
            after = read_head(connection)
    with pool.session(head_of_reader) as found:
        assert found == after
        assert found is not before


def test_a_session_keeps_the_head_that_it_began_with(pool):
    with pool.reader() as connection:
        before = head_of_reader(connection)
        with pool.writer() as writing:
            writing.execute("UPDATE counters SET generation = (SELECT generation + 1 FROM state)")
        assert head_of_reader(connection) is before
        assert read_head(connection) == before


def test_in_memory_a_session_sees_what_its_own_connection_wrote(opened):
    pool = opened(MEMORY).pool
    with pool.writer() as connection:
        connection.execute("UPDATE counters SET generation = (SELECT generation + 1 FROM state)")
    with pool.session(read_head) as head:
        assert head.generation == 1
