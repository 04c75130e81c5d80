from __future__ import annotations

import importlib
import sqlite3
import types

import pytest

from twofold.backends.sqlite.driver import load_driver
from twofold.errors import ConfigurationError, MissingExtraError


@pytest.fixture(autouse=True)
def fresh():
    load_driver.cache_clear()
    yield
    load_driver.cache_clear()


def stand_in(**changes):
    module = types.ModuleType("sqlite3")
    names = ("connect", "sqlite_version", "sqlite_version_info", "Error")
    vars(module).update({name: getattr(sqlite3, name) for name in names} | changes)
    return module


def use(monkeypatch, module):
    def import_module(name):
        if isinstance(module, Exception):
            raise module
        return module

    monkeypatch.setattr(importlib, "import_module", import_module)


def test_what_a_driver_says_of_itself(driver_name):
    driver = load_driver(driver_name)
    assert driver.name == driver_name
    assert driver.version == driver.module.sqlite_version
    connection = driver.connect(":memory:")
    try:
        connection.enable_load_extension(True)
        loads = True
    except (AttributeError, driver.module.Error):
        loads = False
    assert driver.can_load_extensions is loads
    ((fts5,),) = connection.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')")
    assert driver.has_fts5 is bool(fts5)
    connection.close()


def test_it_is_probed_once(driver_name):
    assert load_driver(driver_name) is load_driver(driver_name)


def test_a_connection_begins_no_transaction_by_itself(driver_name):
    connection = load_driver(driver_name).connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (1)")
    assert not connection.in_transaction
    connection.close()


def test_the_missing_library_is_named_with_its_extra(monkeypatch):
    use(monkeypatch, ImportError("no"))
    with pytest.raises(MissingExtraError, match=r"pysqlite3 .*twofold\[sqlite-vec\]"):
        load_driver("pysqlite3")


def test_an_sqlite_that_is_too_old_is_refused(monkeypatch):
    use(monkeypatch, stand_in(sqlite_version="3.39.4", sqlite_version_info=(3, 39, 4)))
    with pytest.raises(ConfigurationError, match=r"3\.39\.4; twofold needs 3\.40"):
        load_driver("sqlite3")


class Weak(sqlite3.Connection):
    """An SQLite without FTS5 and threads."""

    def execute(self, sql, *parameters):
        if "fts5" in sql:
            raise sqlite3.OperationalError("no such module: fts5")
        if "compile_options" in sql:
            return super().execute("SELECT 'THREADSAFE=0'")
        return super().execute(sql, *parameters)


def test_an_sqlite_without_threads_is_refused(monkeypatch):
    use(monkeypatch, stand_in(connect=lambda name: sqlite3.connect(name, factory=Weak)))
    with pytest.raises(ConfigurationError, match="THREADSAFE=0"):
        load_driver("sqlite3")


def test_an_sqlite_without_fts5_is_told(monkeypatch):
    class NoFts5(Weak):
        def execute(self, sql, *parameters):
            return super().execute(sql.replace("compile_options", "data_version"), *parameters)

    use(monkeypatch, stand_in(connect=lambda name: sqlite3.connect(name, factory=NoFts5)))
    assert not load_driver("sqlite3").has_fts5
