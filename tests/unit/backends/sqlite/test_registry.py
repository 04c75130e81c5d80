from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from twofold.backends.sqlite.registry import claim
from twofold.errors import DriverConflictError, StoreError


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.db")


def test_the_first_handle_decides_until_the_last_is_closed(path):
    first = claim(path, "pysqlite3", create=True)
    second = claim(path, "auto", create=True)
    assert (first.driver, first.first) == ("pysqlite3", True)
    assert (second.driver, second.first) == ("pysqlite3", False)
    first.release()
    with pytest.raises(DriverConflictError, match="open in this process with pysqlite3"):
        claim(path, "sqlite3", create=True)
    second.release()
    assert claim(path, "sqlite3", create=True).first


def test_releasing_twice_does_not_release_another(path):
    first, second = claim(path, "pysqlite3", create=True), claim(path, "auto", create=True)
    first.release()
    first.release()
    assert claim(path, "auto", create=True).driver == second.driver == "pysqlite3"


def test_auto_is_pythons_own(path):
    assert claim(path, "auto", create=True).driver == "sqlite3"


def test_a_claim_that_nobody_holds_is_gone(path):
    held = claim(path, "pysqlite3", create=True)
    del held
    gc.collect()
    assert claim(path, "sqlite3", create=True).first


def test_other_files_are_not_concerned(path, tmp_path):
    held = claim(path, "pysqlite3", create=True)
    assert claim(str(tmp_path / "b.db"), "sqlite3", create=True).driver == "sqlite3"
    held.release()


def test_a_hard_link_is_the_same_file_and_its_log_lies_elsewhere(path, tmp_path):
    held = claim(path, "pysqlite3", create=True)
    link = str(tmp_path / "b.db")
    os.link(path, link)
    with pytest.raises(DriverConflictError):
        claim(link, "sqlite3", create=True)
    with pytest.raises(StoreError, match=r"open in this process as .*a\.db"):
        claim(link, "auto", create=True)
    held.release()
    assert claim(link, "sqlite3", create=True).first


def test_a_missing_file_is_made_only_if_asked(path):
    with pytest.raises(FileNotFoundError):
        claim(path, "auto", create=False)
    claim(path, "auto", create=True)
    assert Path(path).stat().st_size == 0


def test_many_threads_agree(path):
    barrier = threading.Barrier(16)
    claims = []

    def work(wanted):
        barrier.wait()
        try:
            claims.append(claim(path, wanted, create=True))
        except DriverConflictError:
            claims.append(None)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("sqlite3", "pysqlite3") * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = [made for made in claims if made is not None]
    assert len(claims) == 16
    assert len(granted) == 8
    assert len({made.driver for made in granted}) == 1
    assert sum(made.first for made in granted) == 1
